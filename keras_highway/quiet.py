"""Keeps TensorFlow's start-up notices off the screen of this package's own command.

They must be turned off before TensorFlow is imported, and Keras imports it. A program that
imports `keras_highway` is left alone.
"""

import os
import sys
from pathlib import Path


def is_own_command(arguments):
    """Whether the interpreter was started as `keras-highway` or `python -m keras_highway`."""
    script = Path(arguments[1]).name if len(arguments) > 1 else ""
    return script == "keras-highway" or "keras_highway" in (
        after for before, after in zip(arguments, arguments[1:], strict=False) if before == "-m"
    )


if is_own_command(sys.orig_argv):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

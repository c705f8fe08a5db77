"""Keeps TensorFlow's start-up notices off the screen of this package's own command.

They come while Keras imports TensorFlow, in part before TensorFlow reads its own settings. A
program that imports `keras_highway` is left alone.
"""

import contextlib
import os
import sys
from pathlib import Path


def is_own_command(arguments):
    """Whether the interpreter was started as `keras-highway` or `python -m keras_highway`."""
    script = Path(arguments[1]).name if len(arguments) > 1 else ""
    return script == "keras-highway" or list(arguments[1:3]) == ["-m", "keras_highway"]


@contextlib.contextmanager
def standard_error_discarded():
    """Sends what any code, Python or not, writes to standard error to nowhere meanwhile."""
    if sys.stderr is None:  # closed already
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


if is_own_command(sys.orig_argv):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # The same sums on every processor: with oneDNN the order of additions depends on it.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    try:
        with standard_error_discarded():
            import keras  # noqa: F401
    except KeyboardInterrupt:
        sys.exit(130)  # what a shell reports for a program stopped by Ctrl-C

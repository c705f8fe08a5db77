"""Exporting a model for serving, and checking the file where it will be used."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np

from keras_highway import quiet
from keras_highway.experiments import serve_check
from keras_highway.files import write_whole


def export_reason():
    """Why Keras cannot write a SavedModel here; empty where it can."""
    if keras.backend.backend() not in ("tensorflow", "jax"):
        return (
            "Keras writes SavedModels from its TensorFlow and JAX backends. Load the .keras file "
            "with KERAS_BACKEND=tensorflow and export it there."
        )
    try:
        with quiet.standard_error_discarded():
            import tensorflow  # noqa: F401
    except ImportError:
        return "SavedModels need TensorFlow: pip install tensorflow"
    return ""


def export_and_check(model, path: Path, x: np.ndarray):
    """Writes a SavedModel and computes `x` with it in a process without this package.

    Returns:
        The outputs for `x` in that process, as a NumPy array.
    """
    write_whole(path, lambda temporary: model.export(str(temporary), verbose=False))
    with tempfile.TemporaryDirectory() as folder:
        inputs, outputs = Path(folder) / "inputs.npy", Path(folder) / "outputs.npy"
        np.save(inputs, x)
        result = subprocess.run(
            [sys.executable, serve_check.__file__, str(path), str(inputs), str(outputs)],
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            check=False,
            capture_output=True,
            text=True,
        )
        if result.returncode:
            raise RuntimeError(f"{path} could not be served:\n{result.stderr[-2000:]}")
        return np.load(outputs)

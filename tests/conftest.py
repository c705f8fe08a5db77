"""Set-up for all tests: quiet backends, a seed, and what each test needs of the surroundings."""

import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("MPLBACKEND", "Agg")

import keras
import pytest

ROOT = Path(__file__).resolve().parent.parent
REAL_DATA = ROOT.parent / "shared" / "data" / "tensorflow_datasets"


@pytest.fixture(autouse=True)
def fresh_keras():
    """The same seed and no left-over names or policies for every test."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(0)
    policy, data_format = keras.config.dtype_policy(), keras.config.image_data_format()
    yield
    keras.config.set_dtype_policy(policy)
    keras.config.set_image_data_format(data_format)


@pytest.fixture
def float64(monkeypatch):
    """Runs the test in double precision.

    JAX has it only when told so, and on JAX and PyTorch Keras rounds what it computes from float64
    to float32 by a table, which is put aside here.
    """
    from keras.src.backend.common import dtypes

    monkeypatch.setitem(dtypes.BIT64_TO_BIT32_DTYPE, "float64", "float64")
    is_jax = keras.backend.backend() == "jax"
    if is_jax:
        import jax

        jax.config.update("jax_enable_x64", True)
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_floatx("float32")
    if is_jax:
        jax.config.update("jax_enable_x64", False)


@pytest.fixture
def real_data():
    if not REAL_DATA.is_dir():
        pytest.skip(f"the prepared MNIST is not at {REAL_DATA}")
    return REAL_DATA

"""Data sets: values, and errors for files that cannot be used."""

import importlib.util
import sys

import keras
import numpy as np
import pytest

from keras_highway.data import digits, load_arrays, mnist
from keras_highway.data.dataset import require
from keras_highway.validation import InputError


def test_digits_are_split_as_in_the_lesson():
    data = digits()
    assert data.x_train.shape == (1257, 8, 8, 1) and data.x_test.shape == (540, 8, 8, 1)
    assert data.x_train.dtype == "float32" and 0 <= data.x_train.min() < data.x_train.max() == 1
    assert data.num_classes == 10
    assert round(data.chance, 4) == 0.1019
    assert data.fingerprint() == digits().fingerprint()


def test_mnist_from_a_prepared_folder(real_data):
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("TensorFlow, with which TensorFlow Datasets reads MNIST, is not installed")
    data = mnist(real_data, download=False)
    assert data.x_train.shape == (60000, 28, 28, 1) and data.x_test.shape == (10000, 28, 28, 1)
    assert data.x_train.max() == 1.0
    assert np.bincount(data.y_test).tolist() == [
        980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009,
    ]  # fmt: skip


def test_mnist_offline_names_the_folder_and_the_two_ways(tmp_path):
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("TensorFlow, with which TensorFlow Datasets reads MNIST, is not installed")
    with pytest.raises(InputError) as caught:
        mnist(tmp_path / "nothing", download=False)
    for word in (str(tmp_path / "nothing"), "download=False", "--download", "--data-dir"):
        assert word in str(caught.value)


def test_missing_package_is_named_with_the_pip_line():
    with pytest.raises(ImportError, match="pip install a-package"):
        require("no_such_module_anywhere", "a-package", "This")


def save(path, **arrays):
    np.savez(path, **arrays)
    return path


X, Y = np.ones((40, 3)), np.arange(40) % 4


def test_arrays_that_are_split_already(tmp_path):
    path = save(tmp_path / "d.npz", x_train=X, y_train=Y, x_test=X[:4], y_test=Y[:4])
    data = load_arrays(path)
    assert data.name == "d" and data.num_classes == 4 and len(data.x_test) == 4


def test_arrays_to_split(tmp_path):
    data = load_arrays(save(tmp_path / "d.npz", x=X, y=Y[:, None].astype("float64")))
    assert (len(data.x_train), len(data.x_test)) == (28, 12)
    assert data.y_train.dtype == "int64"


def test_pixels_are_scaled(tmp_path):
    images = np.full((40, 2, 2), 255, dtype="uint8")
    assert load_arrays(save(tmp_path / "d.npz", x=images, y=Y)).x_train.max() == 1.0


BAD = {
    "labels below zero": ({"x": X, "y": Y - 1}, ["from -1 to 2", "np.unique"]),
    "labels with a gap": ({"x": X, "y": Y * 2}, ["4 different labels from 0 to 6", "np.unique"]),
    "labels in words": ({"x": X, "y": Y.astype(str)}, ["integer label", "<U"]),
    "fractions as labels": ({"x": X, "y": Y + 0.5}, ["integer label", "float64"]),
    "one-hot labels": ({"x": X, "y": np.eye(4)[Y]}, ["shape (40, 4)", "vector"]),
    "one class": ({"x": X, "y": Y * 0}, ["two classes"]),
    "no labels": ({"x": X, "y": Y[:0]}, ["shape (0,)"]),
    "test labels out of range": (
        {"x_train": X, "y_train": Y, "x_test": X, "y_test": Y + 1},
        ["from 1 to 4", "4 classes"],
    ),
    "lengths": ({"x": X[:30], "y": Y}, ["30 and 40 rows"]),
    "nan": ({"x": X * np.nan, "y": Y}, ["finite", "120 values"]),
    "words": ({"x": X.astype(str), "y": Y}, ["must hold numbers"]),
    "names": ({"a": X, "b": Y}, ["x_train, y_train, x_test, y_test", "with a, b", "np.savez"]),
    "half of a split": ({"x_train": X, "y_train": Y}, ["without x_test, y_test"]),
    "other shape": (
        {"x_train": X, "y_train": Y, "x_test": X[:, :2], "y_test": Y},
        ["one shape", "(3,) and (2,)"],
    ),
    "too few": ({"x": X[:5], "y": Y[:5]}, ["enough examples"]),
    "objects": ({"x": np.array([{}] * 40), "y": Y}, ["NumPy .npz"]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arrays_are_refused_in_words(name, tmp_path):
    arrays, words = BAD[name]
    path = save(tmp_path / "d.npz", **arrays)
    with pytest.raises(InputError) as caught:
        load_arrays(path)
    for word in ("Received: ", *words):
        assert word in str(caught.value), str(caught.value)


@pytest.mark.parametrize("content", [None, b"", b"not a zip file", b"PK\x03\x04 broken"])
def test_unreadable_files_are_refused_in_words(content, tmp_path):
    path = tmp_path / "d.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_arrays(path)
    assert str(path) in str(caught.value) and "np.savez" in str(caught.value)


def test_a_folder_is_refused_in_words(tmp_path):
    with pytest.raises(InputError, match=r"NumPy \.npz"):
        load_arrays(tmp_path)


def test_data_needs_no_particular_backend():
    assert keras.backend.backend() in sys.modules
    assert digits().x_train.__class__ is np.ndarray

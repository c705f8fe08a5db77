"""A user's own arrays, from a NumPy file."""

import os
import zipfile
from pathlib import Path

import numpy as np

from keras_highway.data.dataset import Dataset, check_labels, require
from keras_highway.validation import InputError, explain

_SPLIT = ("x_train", "y_train", "x_test", "y_test")
_CONTENT = (
    f"A data file must be a NumPy .npz with the arrays {', '.join(_SPLIT)}, or with x and y, "
    "which are then split 70 to 30."
)
_HOW = "Write one with np.savez(path, x_train=..., y_train=..., x_test=..., y_test=...)."


def load_arrays(path: str | os.PathLike) -> Dataset:
    """Reads examples and labels from a `.npz` file.

    Pixels of type uint8 are divided by 255; other numbers are taken as they are.

    Args:
        path: A file with the arrays `x_train`, `y_train`, `x_test`, `y_test`, or `x` and `y`,
            which are split 70 to 30, stratified, `random_state=0`. Examples have the shape
            `(examples, ...)`, labels `(examples,)`.

    Raises:
        InputError: A `ValueError`, if the file cannot be read, an array is missing, examples
            are not finite numbers, or labels are not 0, 1, ... without a gap.
    """
    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, TypeError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise InputError(explain(_CONTENT, f"{path} ({reason})", _HOW)) from error
    if {"x", "y"} <= arrays.keys() and not arrays.keys() & set(_SPLIT):
        x, y = _examples("x", arrays["x"]), check_labels("y", arrays["y"])
        _check_lengths("x", x, "y", y)
        selection = require("sklearn.model_selection", "scikit-learn", "Splitting the data")
        try:
            x_train, x_test, y_train, y_test = selection.train_test_split(
                x, y, test_size=0.3, random_state=0, stratify=y
            )
        except ValueError as error:
            raise InputError(
                explain(
                    "Each class must have enough examples to be in both parts of the split.",
                    f"{len(x)} examples of {len(np.unique(y))} classes ({error})",
                    "Give more examples, or split them yourself. " + _HOW,
                )
            ) from error
        return Dataset(path.stem, x_train, y_train, x_test, y_test)
    if missing := [name for name in _SPLIT if name not in arrays]:
        received = f"{path} with {', '.join(sorted(arrays)) or 'no arrays'}"
        raise InputError(explain(_CONTENT, f"{received}, without {', '.join(missing)}", _HOW))
    x_train, x_test = (_examples(name, arrays[name]) for name in ("x_train", "x_test"))
    if x_train.shape[1:] != x_test.shape[1:]:
        raise InputError(
            explain(
                "x_train and x_test must hold examples of one shape.",
                f"{x_train.shape[1:]} and {x_test.shape[1:]}",
                "Bring them to one shape.",
            )
        )
    y_train = check_labels("y_train", arrays["y_train"])
    y_test = check_labels("y_test", arrays["y_test"], num_classes=int(y_train.max()) + 1)
    _check_lengths("x_train", x_train, "y_train", y_train)
    _check_lengths("x_test", x_test, "y_test", y_test)
    return Dataset(path.stem, x_train, y_train, x_test, y_test)


def _examples(name, array):
    if array.dtype.kind not in "fiub" or array.ndim < 2 or not len(array):
        raise InputError(
            explain(
                f"{name} must hold numbers, (examples, ...), with one example or more.",
                f"an array of type {array.dtype} and shape {array.shape}",
                "Give one row an example.",
            )
        )
    scale = 255.0 if array.dtype == np.uint8 else 1.0
    array = array.astype("float32") / np.float32(scale)
    if not np.isfinite(array).all():
        raise InputError(
            explain(
                f"{name} must hold finite numbers.",
                f"{int((~np.isfinite(array)).sum())} values that are nan or infinite",
                "Remove or replace them, for example with np.nan_to_num.",
            )
        )
    return array


def _check_lengths(x_name, x, y_name, y):
    if len(x) != len(y):
        raise InputError(
            explain(
                f"{x_name} and {y_name} must have one row an example each.",
                f"{len(x)} and {len(y)} rows",
                "Bring them to one length.",
            )
        )

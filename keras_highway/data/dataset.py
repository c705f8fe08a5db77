"""The form that every data set of this package has."""

import hashlib
import importlib
from dataclasses import dataclass

import numpy as np

from keras_highway.validation import InputError, explain


@dataclass(frozen=True)
class Dataset:
    """Arrays to train and to test on.

    Attributes:
        name: What the tables call it.
        x_train, x_test: float32, `(examples, ...)`.
        built_in: Whether it is one that this package names, not a user's own.
        y_train, y_test: int64 labels from 0 to `num_classes - 1`, `(examples,)`.
    """

    name: str
    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    built_in: bool = False

    @property
    def num_classes(self) -> int:
        return int(self.y_train.max()) + 1

    @property
    def chance(self) -> float:
        """Accuracy of always giving the test set's most frequent label."""
        return float(np.bincount(self.y_test).max() / len(self.y_test))

    def fingerprint(self) -> str:
        """A short hash of all values, by which runs on other data are told apart."""
        digest = hashlib.sha256()
        for array in (self.x_train, self.y_train, self.x_test, self.y_test):
            digest.update(str(array.shape).encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:16]


def require(module, package, purpose):
    """Imports a module of an optional dependency, or says which package is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            explain(
                f"{purpose} needs the package {package}.",
                f"an import error ({error})",
                f"Install it: pip install {package}",
            )
        ) from error


def check_labels(name: str, labels: np.ndarray, num_classes: int | None = None) -> np.ndarray:
    """Returns labels as int64; they must be integers from 0 up, and none left out in training."""
    labels = np.asarray(labels)
    rule = f"{name} must hold one integer label an example, from 0 to the number of classes - 1"
    fix = "Number the classes: np.unique(labels, return_inverse=True)[1]."
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or not len(labels):
        raise InputError(explain(f"{rule}.", f"shape {labels.shape}", "Give a vector of labels."))
    whole = labels.dtype.kind == "f" and np.array_equal(labels, np.round(labels))
    if labels.dtype.kind not in "iu" and not whole:
        raise InputError(explain(f"{rule}.", f"values of type {labels.dtype}", fix))
    labels = labels.astype("int64")
    if labels.min() < 0 or (num_classes is not None and labels.max() >= num_classes):
        wanted = "" if num_classes is None else f"; the training set has {num_classes} classes"
        received = f"labels from {labels.min()} to {labels.max()}{wanted}"
        raise InputError(explain(f"{rule}.", received, fix))
    if num_classes is None:
        present = np.unique(labels)
        if len(present) != labels.max() + 1:
            received = f"{len(present)} different labels from {labels.min()} to {labels.max()}"
            raise InputError(explain(f"{rule}, each of them used.", received, fix))
        if len(present) < 2:
            raise InputError(
                explain(f"{rule}, of two classes or more.", "one class", "Give more classes.")
            )
    return labels

"""MNIST, through TensorFlow Datasets."""

import os
from pathlib import Path

from keras_highway.data.dataset import Dataset, require
from keras_highway.validation import InputError, explain


def mnist(data_dir: str | os.PathLike | None = None, download: bool = True) -> Dataset:
    """70,000 images of 28x28 pixels in 10 classes, 60,000 to train on and 10,000 to test on.

    Pixels are divided by 255. `x_train` has the shape `(60000, 28, 28, 1)`.

    Args:
        data_dir: Folder in which TensorFlow Datasets keeps its data sets. Defaults to `None`,
            its own default (`~/tensorflow_datasets`, or `TFDS_DATA_DIR`).
        download: Whether to download MNIST if it is not there. Defaults to `True`.

    Raises:
        ImportError: If tensorflow-datasets or TensorFlow is not installed.
        InputError: A `ValueError`, if the data is not in the folder and cannot be downloaded.
    """
    require("importlib_resources", "importlib_resources", "TensorFlow Datasets")
    require("tensorflow", "tensorflow", "Reading MNIST with TensorFlow Datasets")
    tfds = require("tensorflow_datasets", "tensorflow-datasets", "MNIST")
    folder = data_dir or os.environ.get("TFDS_DATA_DIR") or tfds.core.constants.DATA_DIR
    folder = str(Path(folder).expanduser())
    try:
        train, test = tfds.load(
            "mnist",
            split=["train", "test"],
            data_dir=folder,
            download=download,
            batch_size=-1,
            as_supervised=True,
        )
    except Exception as error:  # it has no common class for what a network or a disk can do
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(
            explain(
                "MNIST must be in the data folder, or be downloaded into it.",
                f"data folder {folder}, download={download} ({reason})",
                "Either run once with download=True (--download) on a machine with a network, "
                "or copy a prepared folder, with mnist/ inside, and name it by "
                "data_dir (--data-dir).",
            )
        ) from error
    (x_train, y_train), (x_test, y_test) = tfds.as_numpy(train), tfds.as_numpy(test)
    return Dataset(
        name="mnist",
        x_train=x_train.astype("float32") / 255.0,
        y_train=y_train.astype("int64"),
        x_test=x_test.astype("float32") / 255.0,
        y_test=y_test.astype("int64"),
        built_in=True,
    )

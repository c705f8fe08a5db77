"""The handwritten digits that scikit-learn ships: real data without a download."""

from keras_highway.data.dataset import Dataset, require


def digits() -> Dataset:
    """1,797 images of 8x8 pixels in 10 classes, 1,257 to train on and 540 to test on.

    Pixels are divided by 16. The split is that of the NumPy lesson: 70 to 30, stratified,
    `random_state=0`. `x_train` has the shape `(1257, 8, 8, 1)`.

    Raises:
        ImportError: If scikit-learn is not installed.

    Example:

    >>> from keras_highway.data import digits
    >>> digits().x_test.shape
    (540, 8, 8, 1)
    """
    datasets = require("sklearn.datasets", "scikit-learn", "The digits data set")
    selection = require("sklearn.model_selection", "scikit-learn", "The digits data set")
    x, y = datasets.load_digits(return_X_y=True)
    x_train, x_test, y_train, y_test = selection.train_test_split(
        x / 16.0, y, test_size=0.3, random_state=0, stratify=y
    )
    return Dataset(
        name="digits",
        x_train=x_train.reshape(-1, 8, 8, 1).astype("float32"),
        y_train=y_train.astype("int64"),
        x_test=x_test.reshape(-1, 8, 8, 1).astype("float32"),
        y_test=y_test.astype("int64"),
        built_in=True,
    )

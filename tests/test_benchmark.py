"""The benchmark times what it says; no test looks at how long that took."""

import keras
import numpy as np
import pytest

from keras_highway.experiments import benchmark
from keras_highway.experiments.benchmark import ARMS, SecondGradient, Size


def test_every_kind_is_timed_in_every_turn():
    row = benchmark.measure(Size(4, 2, 8, steps=3, most=1.0), repeats=3)
    assert list(row["seconds"]) == list(ARMS) == list(row["ratios"])
    for arm in ARMS:
        assert len(row["seconds"][arm]) == 3 and min(row["seconds"][arm]) > 0
        assert np.allclose(
            row["ratios"][arm], np.divide(row["seconds"][arm], row["seconds"]["without"])
        )


def test_what_fails_in_a_turn_is_raised():
    with pytest.raises(ValueError, match="depth"):
        benchmark.measure(Size(4, 0, 8, steps=1, most=1.0), repeats=1)


def test_the_second_gradient_is_that_of_the_batch():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, use_bias=False)])
    x, y = np.ones((4, 3), "float32"), np.zeros(4, "int32")
    model.set_weights([np.zeros((3, 2))])
    model.compile(keras.optimizers.SGD(0.0), benchmark.LOSS)
    second = SecondGradient(x, y, 2)
    model.fit(x, y, batch_size=2, shuffle=False, verbose=0, callbacks=[second])
    # The gradient of each logit is +-0.5, for each of three inputs of 1.
    assert np.allclose(second.norms, np.sqrt(6 * 0.25), rtol=1e-5)
    assert len(second.norms) == 2

"""Gradients and their names, on models of every kind."""

import keras
import numpy as np

from keras_highway import HighwayDense
from keras_highway.analysis import compute_gradients, gradient_norms


class Subclassed(keras.Model):
    """Its `call` has no `training`, and two of its layers have one name."""

    def __init__(self):
        super().__init__()
        self.parts = [keras.layers.Dense(3, name="same"), keras.layers.Dense(1, name="same")]

    def call(self, inputs):
        for part in self.parts:
            inputs = part(inputs)
        return inputs


def test_a_subclassed_model_keeps_every_gradient():
    x, y = np.ones((4, 2), "float32"), np.zeros((4, 1), "float32")
    model = Subclassed()
    model(x)
    norms = gradient_norms(model, x, y, "mse")
    assert list(norms) == ["same/kernel", "same/bias", "same/kernel_1", "same/bias_1"]
    gradients = compute_gradients(model, x, y, "mse")
    assert np.allclose(list(norms.values()), [np.linalg.norm(g) for g in gradients], rtol=1e-6)
    prediction = keras.ops.convert_to_numpy(model(x))
    assert np.isclose(norms["same/bias_1"], abs(2 * prediction.mean()), rtol=1e-5)


def test_names_are_paths_in_the_model():
    inputs = keras.Input((2,))
    inner = keras.Sequential([keras.Input((2,)), HighwayDense(name="hw")], name="inner")
    model = keras.Model(inputs, inner(keras.layers.Dense(2, name="net")(inputs)), name="net")
    x = np.ones((4, 2), "float32")
    assert list(gradient_norms(model, x, x, "mse")) == [
        "net/kernel",
        "net/bias",
        "inner/hw/transform/kernel",
        "inner/hw/transform/bias",
        "inner/hw/gate/kernel",
        "inner/hw/gate/bias",
    ]

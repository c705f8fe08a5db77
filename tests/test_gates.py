"""Mean gates of whole models."""

import harness
import keras
import numpy as np
import pytest

from keras_highway import HighwayConv2D, HighwayDense
from keras_highway.analysis import mean_gates


def test_mean_gates_are_those_of_all_examples_and_units():
    model = keras.Sequential(
        [
            keras.Input((4, 4, 2)),
            HighwayConv2D(gate_bias=-1.0, name="conv"),
            keras.layers.Flatten(),
            HighwayDense(gate_bias="deep", name="dense"),
            HighwayDense(gate_mode="residual", name="residual"),
        ]
    )
    x = np.random.default_rng(0).normal(size=(10, 4, 4, 2)).astype("float32")
    gates = mean_gates(model, x, batch_size=4)
    conv, dense = model.get_layer("conv"), model.get_layer("dense")
    hidden = keras.ops.reshape(conv(x), (10, -1))
    assert list(gates) == ["conv", "dense"]
    assert np.isclose(gates["conv"], harness.to_numpy(conv.compute_gate(x)).mean(), atol=1e-6)
    assert np.isclose(
        gates["dense"], harness.to_numpy(dense.compute_gate(hidden)).mean(), atol=1e-6
    )


def test_a_model_without_highway_layers_has_no_gates():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    assert mean_gates(model, np.zeros((3, 4))) == {}


def test_a_subclassed_model_is_refused_in_words():
    class Own(keras.Model):
        def call(self, inputs):
            return inputs

    with pytest.raises(TypeError, match=r"Functional or Sequential.*Received: Own"):
        mean_gates(Own(), np.zeros((3, 4)))


def test_nested_highway_layers_are_not_passed_over_in_silence():
    inner = keras.Sequential([keras.Input((4,)), HighwayDense()], name="inner")
    model = keras.Sequential([keras.Input((4,)), inner, HighwayDense()])
    with pytest.raises(ValueError, match=r"nested model 'inner'.*by itself"):
        mean_gates(model, np.zeros((3, 4)))

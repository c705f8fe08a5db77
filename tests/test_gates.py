"""Mean gates of whole models."""

import harness
import keras
import numpy as np
import pytest

from keras_highway import Highway, HighwayConv2D, HighwayDense
from keras_highway.analysis import mean_gates
from keras_highway.analysis.paths import shortest_unique


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


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.encoder = keras.Sequential([HighwayDense(name="hw")], name="encoder")
        self.hw = HighwayDense(name="hw", gate_bias=-1.0)
        self.idle = HighwayDense(name="idle")

    def call(self, inputs):  # without `training`
        return self.hw(self.encoder(inputs))


def test_subclassed_and_nested_models_are_measured_and_unused_layers_named():
    model, x = Subclassed(), np.zeros((3, 4), "float32")
    gates = mean_gates(model, x)
    assert list(gates) == ["encoder/hw", "hw", "idle"]
    assert np.isclose(gates["encoder/hw"], 0.1192, atol=1e-4)
    assert np.isclose(gates["hw"], 0.2689, atol=1e-4)
    assert np.isnan(gates["idle"])


def test_layers_inside_of_other_layers_are_measured():
    inner = HighwayDense(gate_bias=-1.0, name="inner")
    model = keras.Sequential(
        [
            keras.Input((5, 4)),
            keras.layers.TimeDistributed(HighwayDense(name="each")),
            Highway(inner, gate_bias=-3.0, name="outer"),
        ]
    )
    gates = mean_gates(model, np.zeros((3, 5, 4), "float32"))
    assert {name: round(gate, 4) for name, gate in gates.items()} == {
        "each": 0.1192,
        "outer": 0.0474,
        "inner": 0.2689,
    }


def test_a_shared_layer_is_measured_in_all_its_uses_and_a_model_may_have_several_inputs():
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    shared = HighwayDense(name="shared")
    model = keras.Model({"a": a, "b": b}, keras.layers.Add()([shared(a), shared(b)]))
    rng = np.random.default_rng(0)
    x = {name: rng.normal(size=(7, 4)).astype("float32") for name in "ab"}
    gates = mean_gates(model, x, batch_size=3)
    expected = np.mean([harness.to_numpy(shared.compute_gate(x[name])).mean() for name in "ab"])
    assert np.isclose(gates["shared"], expected, atol=1e-6)


def test_measuring_leaves_nothing_behind():
    model = keras.Sequential([keras.Input((4,)), HighwayDense()])
    with pytest.raises(Exception, match=r"shape|incompatible|features"):
        mean_gates(model, np.zeros((3, 5), "float32"))
    assert model.layers[0].gate_observer is None
    mean_gates(model, np.zeros((3, 4), "float32"))
    assert model.layers[0].gate_observer is None


def test_a_layer_by_itself_is_measured_too():
    layer = HighwayDense(gate_bias=-2.0, name="hw")
    assert mean_gates(layer, np.zeros((3, 4), "float32")) == {"hw": pytest.approx(0.1192, abs=1e-4)}


@pytest.mark.parametrize("x", [[[1, 2, 3, 4]], object(), []])
def test_what_is_no_array_is_refused_in_words(x):
    with pytest.raises(TypeError, match=r"must be an array.*Received: .*Give arrays"):
        mean_gates(keras.Sequential([HighwayDense()]), x)


def test_no_examples_are_refused_in_words():
    with pytest.raises(ValueError, match=r"at least one example"):
        mean_gates(keras.Sequential([HighwayDense()]), np.zeros((0, 4)))


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        ([("a", "x"), ("b", "x"), ("y",)], ["a/x", "b/x", "y"]),
        ([("x",), ("a", "x")], ["x", "a/x"]),
        ([("a", "b", "x"), ("c", "b", "x")], ["a/b/x", "c/b/x"]),
        ([("x",), ("x",), ("x_1",)], ["x", "x_1", "x_1_1"]),
    ],
)
def test_names_are_the_shortest_unique_paths(paths, names):
    assert shortest_unique(paths) == names

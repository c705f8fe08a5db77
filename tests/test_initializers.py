"""Initializers: values, presets, round trips and errors."""

import json
import math

import harness
import keras
import numpy as np
import pytest

from keras_highway import GateBias, HighwayDense, NormalizedUniform, StandardUniform
from keras_highway.initializers import Negated, clone_initializer


@pytest.mark.parametrize(
    ("depth", "bias"), [(10, -2.63), (20, -3.34), (50, -4.27), (100, -4.97), (900, -7.17)]
)
def test_bias_for_a_depth_as_published(depth, bias):
    assert round(GateBias.for_depth(depth).value, 2) == bias


@pytest.mark.parametrize("depth", [1, 7, 1000])
@pytest.mark.parametrize("carry", [0.1, 0.5, 0.999])
def test_bias_for_a_depth_carries_what_it_says(depth, carry):
    bias = GateBias.for_depth(depth, carry=carry).value
    assert math.isclose((1 - 1 / (1 + math.exp(-bias))) ** depth, carry, rel_tol=1e-9)


@pytest.mark.parametrize(("preset", "value"), [("shallow", -1), ("deep", -2), ("very_deep", -4)])
def test_presets_are_accepted_wherever_gate_bias_is(preset, value):
    assert GateBias(preset).value == value
    assert repr(GateBias(preset)) == f"GateBias({value})"
    layer = HighwayDense(gate_bias=preset)
    layer.build((None, 3))
    assert np.all(harness.to_numpy(layer.gate.bias) == value)
    assert layer.get_config()["gate_bias"] == preset


@pytest.mark.parametrize(
    "initializer",
    [
        GateBias(-3.5),
        StandardUniform(seed=3),
        StandardUniform(fan_in=9, seed=3),
        NormalizedUniform(seed=3),
        Negated(keras.initializers.HeNormal(seed=3)),
    ],
    ids=lambda initializer: type(initializer).__name__,
)
def test_round_trip_gives_the_same_values(initializer):
    text = json.dumps(keras.saving.serialize_keras_object(initializer))
    again = keras.saving.deserialize_keras_object(json.loads(text))
    assert type(again) is type(initializer)
    assert again.get_config() == initializer.get_config()
    values = harness.to_numpy(initializer((4, 5)))
    assert np.array_equal(harness.to_numpy(again((4, 5))), values)


def test_registered_names_are_file_format():
    names = {
        cls: keras.saving.get_registered_name(cls)
        for cls in (GateBias, StandardUniform, NormalizedUniform)
    }
    assert list(names.values()) == [
        "keras_highway>GateBias",
        "keras_highway>StandardUniform",
        "keras_highway>NormalizedUniform",
    ]


def test_unseeded_initializers_draw_anew_for_every_layer():
    shared = keras.initializers.HeNormal()
    a, b = (HighwayDense(kernel_initializer=shared) for _ in range(2))
    a.build((None, 4)), b.build((None, 4))
    assert not np.allclose(
        harness.to_numpy(a.transform.kernel), harness.to_numpy(b.transform.kernel)
    )
    assert clone_initializer(shared) is not shared


def test_one_object_for_both_kernels_does_not_make_them_equal():
    shared = keras.initializers.HeNormal()
    layer = HighwayDense(kernel_initializer=shared, gate_kernel_initializer=shared)
    layer.build((None, 4))
    transform, gate = harness.to_numpy(layer.transform.kernel), harness.to_numpy(layer.gate.kernel)
    assert not np.allclose(transform, gate)


def test_a_seed_generator_draws_anew_for_every_kernel():
    shared = keras.initializers.HeNormal(seed=keras.random.SeedGenerator(1))
    arguments = {"kernel_initializer": shared, "gate_kernel_initializer": shared}
    layers = [HighwayDense(**arguments) for _ in range(2)]
    for layer in layers:
        layer.build((None, 4))
    kernels = [harness.to_numpy(part.kernel) for a in layers for part in (a.transform, a.gate)]
    assert not any(np.allclose(kernels[0], other) for other in kernels[1:])


def test_explicit_seeds_are_kept():
    initializer = keras.initializers.HeNormal(seed=5)
    layer = HighwayDense(kernel_initializer=initializer)
    layer.build((None, 8))
    expected = harness.to_numpy(keras.initializers.HeNormal(seed=5)((8, 8)))
    assert np.array_equal(harness.to_numpy(layer.transform.kernel), expected)


def test_same_global_seed_same_weights():
    def weights(seed):
        keras.utils.set_random_seed(seed)
        layer = HighwayDense(gate_mode="independent")
        layer.build((None, 8))
        return layer.get_weights()

    assert all(np.array_equal(a, b) for a, b in zip(weights(7), weights(7), strict=True))
    assert not np.array_equal(weights(7)[0], weights(8)[0])


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: GateBias(float("nan")), ValueError, ["must be finite", "value=nan", "-2.0"]),
        (lambda: GateBias(float("-inf")), ValueError, ["must be finite", "value=-inf"]),
        (lambda: GateBias(True), TypeError, ["must be a number", "value=True of type bool"]),
        (lambda: GateBias(None), TypeError, ["must be a number", "NoneType"]),
        (
            lambda: GateBias("depe"),
            ValueError,
            ["or a preset", "value='depe'", "Did you mean 'deep'?"],
        ),
        (lambda: GateBias.for_depth(0), ValueError, ["positive integer", "depth=0"]),
        (lambda: GateBias.for_depth(2.5), TypeError, ["positive integer", "depth=2.5"]),
        (lambda: GateBias.for_depth(5, carry=1.0), ValueError, ["between 0 and 1", "carry=1.0"]),
        (lambda: StandardUniform(fan_in=0), ValueError, ["positive integer", "fan_in=0"]),
    ],
)
def test_errors_say_the_rule_what_was_received_and_the_fix(make, error, words):
    with pytest.raises(error) as caught:
        make()
    message = str(caught.value)
    assert "Received: " in message
    for word in words:
        assert word in message

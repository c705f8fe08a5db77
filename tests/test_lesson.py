"""The NumPy lesson's own numbers, through our layers."""

import harness
import keras
import numpy as np
import pytest
import reference

from keras_highway import GateBias, Highway, HighwayDense, StandardUniform
from keras_highway.analysis import compute_gradients, gradient_norms
from keras_highway.data import digits
from keras_highway.models import highway_mlp, plain_mlp


def cross_entropy():
    """Made in the test, since a Keras loss computes in the precision it was made under."""
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def with_weights_of(network):
    """The Keras network of the same kind and depth, with the weights of the NumPy one."""
    make = plain_mlp if network.kind == "plain" else highway_mlp
    model = make((64,), 10, network.depth)
    # Copies, since JAX may keep the very arrays, which the NumPy network trains in place.
    model.set_weights([values.copy() for values in network.parameters])
    return model


@pytest.mark.parametrize(
    ("bias", "mean_gate", "distance"),
    [(0.0, "0.513", "0.360"), (-2.0, "0.128", "0.083"), (-5.0, "0.007", "0.005")],
)
def test_four_unit_table(bias, mean_gate, distance):
    rng = np.random.default_rng(0)
    transform, gate = rng.normal(0, 0.5, (4, 4)), rng.normal(0, 0.5, (4, 4))
    x = rng.normal(size=(1, 4)).astype("float32")
    layer = HighwayDense(activation="tanh", gate_bias=bias)
    layer.build((None, 4))
    layer.set_weights([transform.T, np.zeros(4), gate.T, layer.get_weights()[3]])
    assert f"{harness.to_numpy(layer.compute_gate(x)).mean():.3f}" == mean_gate
    assert f"{np.linalg.norm(harness.to_numpy(layer(x)) - x):.3f}" == distance


def test_worked_example_by_hand():
    """x = (1, -0.5), H = (2, 0), T = (0.1, 0.8) give y = (1.1, -0.1)."""
    x = np.array([[1.0, -0.5]], dtype="float32")
    constant = {"kernel_initializer": "zeros"}
    layer = Highway(keras.layers.Dense(2, **constant), keras.layers.Dense(2, **constant))
    layer.build((None, 2))
    layer.transform.bias.assign([2.0, 0.0])
    layer.gate.bias.assign([np.log(0.1 / 0.9), np.log(0.8 / 0.2)])
    assert np.allclose(harness.to_numpy(layer(x)), [[1.10, -0.10]], atol=1e-6)


def test_mean_gate_at_the_start():
    gate = HighwayDense(gate_bias=-2.0).compute_gate(np.zeros((3, 16), "float32"))
    assert np.allclose(harness.to_numpy(gate), 0.1192, atol=5e-5)
    assert np.allclose(
        harness.to_numpy(HighwayDense().compute_gate(np.zeros((3, 16)))), 0.1192, atol=5e-5
    )
    # With a Glorot gate kernel the mean gate on data of variance one lies above sigmoid(-2).
    x = np.random.default_rng(0).normal(size=(2000, 256)).astype("float32")
    assert 0.15 < harness.to_numpy(HighwayDense(gate_bias=-2.0).compute_gate(x)).mean() < 0.165


@pytest.mark.parametrize(
    ("kind", "depth", "first", "last"),
    [
        ("plain", 10, "2.36e-05", "1.65e-02"),
        ("highway", 10, "3.36e-03", "4.28e-03"),
        ("plain", 50, "4.28e-21", "8.99e-03"),
        ("highway", 50, "2.37e-05", "7.17e-04"),
    ],
)
def test_gradient_norms_at_the_start(kind, depth, first, last, float64):
    rng = np.random.default_rng(0)
    network = reference.LessonNetwork(kind, depth, rng)
    x, y = rng.normal(size=(256, 64)), rng.integers(0, 10, 256)
    norms = gradient_norms(with_weights_of(network), x, y, cross_entropy())
    kernel = "transform/kernel" if kind == "highway" else "kernel"
    ours = [norms[f"layer_{index + 1}/{kernel}"] for index in range(depth)]
    assert f"{ours[0]:.2e}" == first
    assert f"{ours[-1]:.2e}" == last
    oracle = network.transform_gradient_norms(x, y)
    assert np.allclose(ours, oracle, rtol=1e-9, atol=0)


class LessonAdam(keras.optimizers.Adam):
    """Adam in the lesson's form and in the variables' own precision.

    Keras's rounds 0.999 to float32, which changes `1 - 0.999` by 1e-5, and adds epsilon before
    the bias correction; over 600 steps of a deep network both lead elsewhere.
    """

    def update_step(self, gradient, variable, learning_rate):
        def constant(value):
            return keras.ops.convert_to_tensor(value, dtype=variable.dtype)

        index = self._get_variable_index(variable)
        m, v = self._momentums[index], self._velocities[index]
        step = keras.ops.cast(self.iterations + 1, variable.dtype)
        self.assign_add(m, constant(0.1) * (gradient - m))
        self.assign_add(v, constant(0.001) * (gradient * gradient - v))
        m_hat = m / (1 - keras.ops.power(constant(0.9), step))
        v_hat = v / (1 - keras.ops.power(constant(0.999), step))
        rate = keras.ops.cast(learning_rate, variable.dtype)
        self.assign_sub(variable, rate * m_hat / (keras.ops.sqrt(v_hat) + constant(1e-8)))


@pytest.mark.parametrize(("depth", "published"), [(5, 0.9630), (20, 0.9500)])
def test_trains_to_the_accuracy_of_the_numpy_network(depth, published, float64):
    data = digits()
    x_train = data.x_train.reshape(-1, 64).astype("float64")
    x_test = data.x_test.reshape(-1, 64).astype("float64")
    rng = np.random.default_rng(0)
    network = reference.LessonNetwork("highway", depth, rng)
    model = with_weights_of(network)
    model.compile(LessonAdam(1e-3), cross_entropy())
    for order in network.train(x_train, data.y_train, rng):
        model.fit(x_train[order], data.y_train[order], batch_size=64, shuffle=False, verbose=0)
    theirs = round(network.accuracy(x_test, data.y_test) * 540)
    assert round(theirs / 540, 4) == published
    logits = model.predict(x_test, verbose=0)
    ours = int((logits.argmax(1) == data.y_test).sum())
    assert abs(ours - theirs) <= 2
    assert np.allclose(logits, network.forward(x_test), atol=1e-3)


def test_compute_gradients_equals_the_oracle(float64):
    rng = np.random.default_rng(1)
    network = reference.LessonNetwork("highway", 3, rng)
    x, y = rng.normal(size=(32, 64)), rng.integers(0, 10, 32)
    _, oracle = network.loss_and_gradients(x, y)
    ours = compute_gradients(with_weights_of(network), x, y, cross_entropy())
    for our, their in zip(ours, oracle, strict=True):
        assert harness.relative_error(our, their) < harness.RELATIVE_64


@pytest.mark.parametrize(
    ("t", "shares"),
    [
        (0.02, ["0.817", "0.545", "0.364"]),
        (0.10, ["0.349", "0.0424", "0.00515"]),
        (0.50, ["0.000977", "9.31e-10", "8.88e-16"]),
    ],
)
def test_share_carried_by_shut_transforms(t, shares):
    """(1 - T)**L, as a stack of L layers with H = 0 and a constant gate T computes it."""
    for depth, share in zip((10, 30, 50), shares, strict=True):
        x = np.ones((1, 1), "float32")
        y = x
        layer = HighwayDense(
            kernel_initializer="zeros",
            gate_kernel_initializer="zeros",
            gate_bias=float(np.log(t / (1 - t))),
        )
        for _ in range(depth):
            y = layer(y)
        # Up to fifty roundings of float32.
        assert np.isclose(harness.to_numpy(y)[0, 0], float(share), rtol=6e-3)


def test_parameters_of_one_layer():
    layer = HighwayDense()
    layer.build((None, 64))
    assert layer.count_params() == 8320
    plain = keras.layers.Dense(64)
    plain.build((None, 64))
    assert plain.count_params() == 4160


def test_standard_initialization_is_the_lessons():
    model = highway_mlp((784,), 10, 2, gate_bias=-2.0, initialization="standard")
    first, layer = model.get_layer("first"), model.get_layer("layer_1")
    for values, fan_in in (
        (first.kernel, 784),
        (first.bias, 784),
        (layer.transform.kernel, 64),
        (layer.transform.bias, 64),
        (layer.gate.kernel, 64),
        (model.get_layer("logits").bias, 64),
    ):
        values = harness.to_numpy(values)
        limit = 1 / np.sqrt(fan_in)
        assert 0.6 * limit < np.abs(values).max() <= limit
    assert np.all(harness.to_numpy(layer.gate.bias) == -2.0)


def test_auto_gate_bias_depends_on_the_depth():
    for depth in (5, 50):
        layer = highway_mlp((4,), 2, depth).get_layer("layer_1")
        expected = GateBias.for_depth(depth).value
        assert np.allclose(harness.to_numpy(layer.gate.bias), expected)


def test_standard_uniform_has_variance_one_third_over_n():
    values = harness.to_numpy(StandardUniform(seed=0)((400, 300)))
    assert np.isclose(values.var() * 400, 1 / 3, rtol=0.02)

"""What single highway layers promise beyond the battery."""

import json
import random as python_random

import harness
import keras
import numpy as np
import pytest
from harness import to_numpy

from keras_highway import (
    GateBias,
    Highway,
    HighwayConv1D,
    HighwayConv2D,
    HighwayConv3D,
    HighwayDense,
)
from keras_highway.analysis import compute_gradients


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


# ---- the gate


def test_default_bias_carries_and_its_sign_is_the_papers():
    for layer, x in ((HighwayDense(), random(64, 32)), (HighwayConv2D(), random(8, 6, 6, 16))):
        assert 0.1 < to_numpy(layer.compute_gate(x)).mean() < 0.2
        assert np.all(to_numpy(layer.gate.bias) == -2.0)
        assert np.all(to_numpy(layer.transform.bias) == 0.0)


def test_independent_carry_gate_starts_at_one_minus_the_transform_gate():
    x = random(16, 8)
    layer = HighwayDense(gate_mode="independent", gate_bias=-1.5)
    layer(x)
    carry = to_numpy(keras.ops.sigmoid(layer.carry(x)))
    assert np.allclose(carry, 1 - to_numpy(layer.compute_gate(x)), atol=1e-6)
    assert np.all(to_numpy(layer.carry.bias) == 1.5)
    assert {w.path.split("/", 1)[1] for w in layer.weights} == {
        f"{part}/{weight}"
        for part in ("transform", "gate", "carry")
        for weight in ("kernel", "bias")
    }


def test_carry_gate_starts_at_one_minus_the_gate_whatever_draws_the_gate():
    def draws(shape, dtype=None):
        return keras.random.normal(shape, dtype=dtype)

    x = random(16, 8)
    generator = keras.random.SeedGenerator(1)
    for initializer in (draws, keras.initializers.RandomNormal(seed=generator)):
        for layer in (
            HighwayDense(gate_mode="independent", gate_kernel_initializer=initializer),
            HighwayDense(gate_mode="independent", gate_bias=initializer),
        ):
            layer(x)
            carry = to_numpy(keras.ops.sigmoid(layer.carry(x)))
            assert np.allclose(carry, 1 - to_numpy(layer.compute_gate(x)), atol=1e-6)


def test_gate_bias_takes_an_initializer_under_either_name():
    for arguments in (
        {"gate_bias": GateBias.for_depth(50)},
        {"gate_bias_initializer": GateBias.for_depth(50)},
        {"gate_bias": keras.initializers.Constant(GateBias.for_depth(50).value)},
    ):
        layer = harness.json_round_trip(HighwayDense(**arguments))
        layer.build((None, 3))
        assert np.allclose(to_numpy(layer.gate.bias), -4.27, atol=0.005)


def test_mixture_is_the_better_form_in_half_precision():
    """x + T (H - x) strays less from the exact result than T H + (1 - T) x over many layers."""
    for dtype in ("float16", "bfloat16"):
        x = keras.ops.convert_to_tensor(random(64, 64), dtype=dtype)
        h = keras.ops.convert_to_tensor(random(64, 64, seed=1), dtype=dtype)
        t = keras.ops.cast(keras.ops.full((64, 64), 2e-3), dtype)
        exact = to_numpy(keras.ops.cast(x, "float32"))
        exact_h = to_numpy(keras.ops.cast(h, "float32"))
        exact_t = to_numpy(keras.ops.cast(t, "float32"))
        ours, other = x, x
        for _ in range(100):
            exact = exact + exact_t * (exact_h - exact)
            ours = ours + t * (h - ours)
            other = t * h + (1 - t) * other
        error = {
            name: np.abs(to_numpy(keras.ops.cast(y, "float32")) - exact).mean()
            for name, y in (("ours", ours), ("other", other))
        }
        assert error["ours"] < error["other"], (dtype, error)


# ---- regularizers, constraints, training state


def test_regularizers_and_constraints_reach_each_weight():
    l2 = keras.regularizers.L2
    layer = HighwayDense(
        activation="tanh",
        kernel_regularizer=l2(1.0),
        bias_regularizer=l2(10.0),
        gate_kernel_regularizer=l2(100.0),
        gate_bias_regularizer=l2(1000.0),
        kernel_constraint="non_neg",
        bias_constraint=keras.constraints.MaxNorm(1.0),
        gate_kernel_constraint=keras.constraints.MaxNorm(2.0),
        gate_bias_constraint=keras.constraints.MaxNorm(3.0),
        activity_regularizer=l2(0.5),
    )
    x = random(4, 5)
    y = keras.ops.convert_to_tensor(to_numpy(layer(x)), dtype="float32")
    expected = [
        factor * (to_numpy(w) ** 2).sum()
        for factor, w in zip((1.0, 10.0, 100.0, 1000.0), layer.weights, strict=True)
    ]
    # A layer of Keras says what an activity regularizer adds, which changed between versions.
    activation = keras.layers.Activation("linear", activity_regularizer=l2(0.5))
    activation(y)
    expected += [float(to_numpy(loss)) for loss in activation.losses]
    losses = [float(to_numpy(loss)) for loss in layer.losses]
    assert len(losses) == 5 and np.allclose(sorted(losses), sorted(expected), rtol=1e-5)
    names = [type(weight.constraint).__name__ for weight in layer.weights]
    assert names == ["NonNeg", "MaxNorm", "MaxNorm", "MaxNorm"]
    again = harness.json_round_trip(layer)
    assert json.dumps(again.get_config()) == json.dumps(layer.get_config())


def test_every_argument_is_in_the_config():
    import inspect

    for layer in (HighwayDense(), HighwayConv1D(), HighwayConv2D(), HighwayConv3D()):
        arguments = set(inspect.signature(type(layer).__init__).parameters)
        arguments -= {"self", "kwargs", "gate_bias_initializer"}  # kept as gate_bias
        assert arguments <= set(layer.get_config())


def test_training_mode_reaches_dropout_inside():
    layer = Highway(
        keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dropout(0.5)])
    )
    x = random(8, 32)
    assert np.array_equal(to_numpy(layer(x)), to_numpy(layer(x, training=False)))
    assert not np.array_equal(to_numpy(layer(x, training=True)), to_numpy(layer(x, training=True)))


def test_frozen_layer_stays_frozen_also_in_a_file(tmp_path):
    layer = HighwayDense(name="hw")
    model = keras.Sequential([keras.Input((4,)), layer])
    layer.gate.trainable = False
    assert len(model.trainable_weights) == 2
    model.save(tmp_path / "m.keras")
    again = keras.saving.load_model(tmp_path / "m.keras")
    assert len(again.trainable_weights) == 2 and not again.layers[0].gate.trainable
    layer.trainable = False
    assert not model.trainable_weights
    layer.trainable = True
    assert len(model.trainable_weights) == 4


@pytest.mark.parametrize("how", ["constructor", "before the build", "wrapper"])
def test_a_layer_frozen_before_it_is_built_does_not_train(how):
    if how == "wrapper":
        layer = Highway(keras.layers.Dense(4), trainable=False)
    else:
        layer = HighwayDense(trainable=how != "constructor")
        layer.trainable = False
    model = keras.Sequential([keras.Input((4,)), layer, keras.layers.Dense(1)])
    assert len(model.trainable_variables) == 2
    assert not keras.models.clone_model(model).layers[0].gate.trainable
    layer.trainable = True
    assert len(model.trainable_variables) == 6


def test_the_config_is_made_without_a_draw_or_a_trace():
    calls = []

    class Traced(keras.layers.Dense):
        def call(self, inputs, training=None):
            calls.append("call")
            return super().call(inputs, training)

        def compute_output_shape(self, input_shape):
            calls.append("shape")
            return super().compute_output_shape(input_shape)

    layer = Highway(Traced(4), shortcut="project")
    layer.build((None, 4))
    calls.clear()
    python_random.seed(3)
    expected = python_random.random()
    python_random.seed(3)
    layer.get_config()
    assert python_random.random() == expected and not calls


@pytest.mark.parametrize("frozen_at_build", [True, False])
@pytest.mark.parametrize("frozen", [("gate",), ("transform", "gate"), ()])
def test_what_is_frozen_is_so_in_a_copy(frozen_at_build, frozen):
    layer = HighwayDense(trainable=not frozen_at_build, name="hw")
    model = keras.Sequential([keras.Input((4,)), layer])
    layer.trainable = True
    for name in frozen:
        getattr(layer, name).trainable = False
    copy = keras.models.clone_model(keras.models.clone_model(model)).layers[0]
    assert [v.name for v in copy.trainable_variables] == [v.name for v in layer.trainable_variables]
    assert (copy.gate.trainable, copy.transform.trainable) == (
        "gate" not in frozen,
        "transform" not in frozen,
    )


# ---- the wrapper


def test_wrapper_equals_highway_dense():
    x = random(5, 6)
    dense = HighwayDense(activation="tanh", gate_bias=-1.0)
    wrapped = Highway(keras.layers.Dense(6, activation="tanh"), gate_bias=-1.0)
    dense.build(x.shape), wrapped.build(x.shape)
    wrapped.set_weights(dense.get_weights())
    assert np.array_equal(to_numpy(dense(x)), to_numpy(wrapped(x)))


def test_wrapper_around_a_convolution_gates_with_a_convolution():
    layer = Highway(keras.layers.Conv2D(3, (3, 1), padding="same", dilation_rate=2))
    layer.build((None, 7, 7, 3))
    assert tuple(layer.gate.kernel.shape) == (3, 1, 3, 3)
    assert layer.gate.dilation_rate == (2, 2)


def test_wrapper_around_a_sequence_layer_passes_the_mask():
    tokens = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(10, 8, mask_zero=True)(tokens)
    x = Highway(keras.layers.LSTM(8, return_sequences=True))(x)
    model = keras.Model(tokens, keras.layers.LSTM(4)(HighwayConv1D(padding="causal")(x)))
    padded = model.predict(np.array([[3, 1, 2, 0, 0]]), verbose=0)
    assert np.allclose(padded, model.predict(np.array([[3, 1, 2]]), verbose=0), atol=1e-5)


def test_mask_is_sub_sampled_by_strides():
    mask = keras.ops.convert_to_tensor([[True, True, True, False, False]])
    layer = HighwayConv1D(strides=2, shortcut="project")
    layer.build((1, 5, 4))
    x = random(1, 5, 4)
    assert keras.ops.convert_to_numpy(layer.compute_mask(x, mask)).tolist() == [[True, True, False]]
    layer = HighwayConv1D()
    layer.build((1, 5, 4))
    assert layer.compute_mask(x, mask) is mask
    assert layer.compute_mask(x, None) is None


@keras.saving.register_keras_serializable(package="test")
class Composed(keras.layers.Layer):
    """As users write them: no `build`, the parts get their weights when called."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = keras.layers.Dense(4)

    def call(self, inputs):
        return keras.ops.tanh(self.dense(inputs))


def test_wrapper_around_a_composed_layer_has_its_weights_at_once(tmp_path):
    layer = Highway(Composed())
    model = keras.Sequential([keras.Input((4,)), layer])
    assert len(model.weights) == 4
    x = random(3, 4)
    expected = model.predict(x, verbose=0)
    model.save(tmp_path / "m.keras")
    again = keras.saving.load_model(tmp_path / "m.keras")
    assert np.array_equal(again.predict(x, verbose=0), expected)


def test_a_gate_of_ones_own_is_used_as_it_is_or_activated_if_linear():
    x = random(5, 4)
    bias = {"kernel_initializer": "zeros", "bias_initializer": GateBias(-1.0)}
    for gate in (
        keras.layers.Dense(4, activation="sigmoid", **bias),
        keras.layers.Dense(4, **bias),
        keras.Sequential([keras.layers.Dense(4, **bias), keras.layers.Activation("sigmoid")]),
        keras.Sequential([keras.layers.Dense(3, "relu"), keras.layers.Dense(4, **bias)]),
        keras.Sequential([keras.layers.Dense(4, **bias), keras.layers.Dropout(0.5)]),
        keras.Sequential([keras.Sequential([keras.layers.Dense(4, **bias)])]),
        functional(lambda h: keras.layers.Dense(4, **bias)(keras.layers.Dense(3, "relu")(h))),
        functional(lambda h: keras.ops.sigmoid(keras.layers.Dense(4, **bias)(h))),
        functional(lambda h: keras.layers.Dropout(0.5)(keras.layers.Dense(4, **bias)(h))),
    ):
        layer = Highway(keras.layers.Dense(4), gate=gate)
        assert np.allclose(to_numpy(layer.compute_gate(x)), 0.26894142, atol=1e-6)
    sequence = keras.layers.TimeDistributed(keras.layers.Dense(4, **bias))
    layer = Highway(keras.layers.Dense(4), gate=sequence)
    assert np.allclose(to_numpy(layer.compute_gate(random(2, 3, 4))), 0.26894142, atol=1e-6)


def functional(function):
    inputs = keras.Input((4,))
    return keras.Model(inputs, function(inputs))


def test_gate_activation_none_takes_the_gates_output_as_it_is():
    gate = keras.layers.Dense(4, kernel_initializer="zeros", bias_initializer=GateBias(0.25))
    layer = Highway(keras.layers.Dense(4), gate=gate, gate_activation=None)
    assert np.allclose(to_numpy(layer.compute_gate(random(5, 4))), 0.25)


def test_a_gate_of_one_value_is_broadcast_to_the_output():
    x = random(5, 4)
    layer = Highway(keras.layers.Dense(4), gate=keras.layers.Dense(1))
    gate = to_numpy(layer.compute_gate(x))
    assert gate.shape == (5, 4) and np.all(gate == gate[:, :1])
    h = to_numpy(layer.transform(x))
    assert np.allclose(to_numpy(layer(x)), gate * h + (1 - gate) * x, atol=1e-6)
    assert tuple(layer.compute_gate(keras.Input((4,))).shape) == (None, 4)


def test_config_of_a_wrapper_with_everything_given():
    layer = Highway(
        keras.layers.Dense(4, name="h"),
        keras.layers.Dense(4, "sigmoid", name="t"),
        carry=keras.layers.Dense(4, "sigmoid", name="c"),
        gate_mode="independent",
    )
    x = random(2, 4)
    y = to_numpy(layer(x))
    again = harness.json_round_trip(layer)
    again.build((None, 4))
    again.set_weights(layer.get_weights())
    assert np.array_equal(to_numpy(again(x)), y)
    assert again.gate.name == "t" and again.carry.name == "c"


def test_symbolic_gate_can_be_an_output_of_a_model():
    inputs = keras.Input((4,))
    layer = HighwayDense()
    model = keras.Model(inputs, [layer(inputs), layer.compute_gate(inputs)])
    x = random(3, 4)
    assert np.allclose(model.predict(x, verbose=0)[1], to_numpy(layer.compute_gate(x)), atol=1e-6)


def test_integers_and_sublayers_of_another_dtype_are_brought_to_the_layers_own():
    assert to_numpy(HighwayDense()(np.ones((2, 3), "int32"))).shape == (2, 3)
    images, layer = np.arange(2 * 4 * 4 * 3).reshape(2, 4, 4, 3) % 256, HighwayConv2D()
    y = to_numpy(layer(images.astype("uint8")))
    assert np.allclose(y, to_numpy(layer(images.astype("float32"))), rtol=1e-6)
    layer = Highway(keras.layers.Dense(4, dtype="float32"), dtype="mixed_float16")
    assert keras.backend.standardize_dtype(layer(random(2, 4)).dtype) == "float16"
    assert keras.backend.standardize_dtype(layer.compute_gate(random(2, 4)).dtype) == "float16"


# ---- depth


def test_gradient_reaches_the_first_of_fifty_default_layers():
    layers = [HighwayDense() for _ in range(50)]
    model = keras.Sequential([keras.Input((16,)), *layers, keras.layers.Dense(1)])
    gradients = compute_gradients(model, random(32, 16), random(32, 1, seed=1), "mse")
    first, last = (np.linalg.norm(gradients[index]) for index in (0, -6))
    assert 0.01 < first / last < 100


# ---- parameter counts of published networks


def count(*layers, shape):
    return keras.Sequential([keras.Input(shape), *layers]).count_params()


@pytest.mark.parametrize(("width", "published"), [(16, 38_986), (32, 151_690)])
def test_parameters_of_the_published_mnist_networks(width, published):
    def stage(layers, size):
        pool = keras.layers.MaxPooling2D(size, 2, padding="same")
        return [*(HighwayConv2D(gate_bias="shallow") for _ in range(layers)), pool]

    total = count(
        keras.layers.Conv2D(width, 5, activation="relu"),
        *stage(2, 3),
        *stage(3, 3),
        *stage(3, 2),
        keras.layers.Flatten(),
        keras.layers.Dense(10),
        shape=(28, 28, 1),
    )
    assert total == published


@pytest.mark.parametrize(("classes", "published"), [(10, 2_256_838), (100, 2_265_928)])
def test_parameters_of_the_published_cifar_network(classes, published):
    def stage(filters, layers):
        plain = keras.layers.Conv2D(filters, 3, padding="same", activation="relu")
        return [plain, *(HighwayConv2D(gate_bias="deep") for _ in range(layers))]

    total = count(
        *stage(32, 4),
        keras.layers.MaxPooling2D(2),
        *stage(80, 5),
        keras.layers.MaxPooling2D(2),
        *stage(128, 5),
        keras.layers.Conv2D(100, 1, activation="relu"),
        keras.layers.AveragePooling2D(8),
        keras.layers.Flatten(),
        keras.layers.Dense(classes),
        shape=(32, 32, 3),
    )
    assert total == published


def test_padding_is_written_in_either_case_as_for_keras_layers():
    assert HighwayConv2D(padding="SAME").get_config()["padding"] == "same"


# ---- errors

ERRORS = {
    "width": (
        lambda: HighwayDense(32, name="alpha")(keras.Input((16,))),
        ValueError,
        ["one shape", "(None, 16)", "(None, 32)", "'alpha'", "shortcut='project'", "plain layer"],
    ),
    "rank": (
        lambda: HighwayDense()(keras.Input(())),
        ValueError,
        ["rank 2 or more", "rank 1", "expand_dims"],
    ),
    "rank of a convolution": (
        lambda: HighwayConv2D()(keras.Input((8, 4))),
        ValueError,
        ["rank 4, (batch, height, width, channels)", "rank 3", "Add the missing axis (one channel"],
    ),
    "shape unknown": (
        lambda: HighwayDense()(keras.Input((None,))),
        ValueError,
        [
            "must know its number of features",
            "(None, None)",
            "Give that axis a size in keras.Input.",
        ],
    ),
    "another width once built": (
        lambda: HighwayDense(name="alpha").build((None, 6)) or built()(random(2, 7)),
        ValueError,
        ["built for axis -1 of the input of size 6", "(2, 7)", "build a new layer"],
    ),
    "strides": (
        lambda: HighwayConv2D(strides=2),
        ValueError,
        ["keeps the size", "strides=(2, 2)", "shortcut='project'", "plain layer"],
    ),
    "strides and dilation": (
        lambda: HighwayConv2D(strides=2, dilation_rate=2, shortcut="pad"),
        ValueError,
        ["not both", "strides=(2, 2) and dilation_rate=(2, 2)"],
    ),
    "valid": (
        lambda: HighwayConv2D(padding="valid"),
        ValueError,
        ["`padding` must keep the size", "padding='valid'", "padding='same'"],
    ),
    "valid inside": (
        lambda: Highway(keras.layers.Conv2D(4, 3))(keras.Input((8, 8, 4))),
        ValueError,
        ["must keep the size", "padding='valid'", "padding='same'"],
    ),
    "causal in two dimensions": (
        lambda: HighwayConv2D(padding="causal"),
        ValueError,
        ["must be 'same'", "padding='causal'"],
    ),
    "filters": (
        lambda: HighwayConv2D(8)(keras.Input((8, 8, 4))),
        ValueError,
        ["one shape", "(None, 8, 8, 4)", "(None, 8, 8, 8)", "leave out units or filters"],
    ),
    "groups and channels": (
        lambda: HighwayConv2D(groups=3)(keras.Input((8, 8, 8))),
        ValueError,
        ["must divide the channels of the input", "8 and groups=3"],
    ),
    "groups and filters": (
        lambda: HighwayConv2D(8, groups=3),
        ValueError,
        ["must divide the filters", "filters 8 and groups=3"],
    ),
    "nan": (lambda: HighwayDense(gate_bias=float("nan")), ValueError, ["finite", "gate_bias=nan"]),
    "infinite": (lambda: HighwayConv2D(gate_bias=np.inf), ValueError, ["finite", "gate_bias=inf"]),
    "bool": (
        lambda: HighwayDense(gate_bias=True),
        TypeError,
        ["a number, an initializer or a preset", "gate_bias=True of type bool", "example -2.0"],
    ),
    "a number as text": (
        lambda: HighwayDense(gate_bias="-2"),
        ValueError,
        ["gate_bias='-2'", "without quotes: gate_bias=-2."],
    ),
    "preset": (
        lambda: HighwayDense(gate_bias="verydeep"),
        ValueError,
        ["'very_deep' (-4)", "gate_bias='verydeep'", "Did you mean 'very_deep'?"],
    ),
    "mode": (
        lambda: HighwayDense(gate_mode="copled"),
        ValueError,
        ["'carry_only' or 'coupled'", "gate_mode='copled'", "Did you mean 'coupled'?"],
    ),
    "shortcut": (
        lambda: HighwayDense(shortcut="projection"),
        ValueError,
        ["'identity' or 'pad' or 'project'", "Did you mean 'project'?"],
    ),
    "both names of the gate bias": (
        lambda: HighwayDense(gate_bias=-1.0, gate_bias_initializer="zeros"),
        ValueError,
        ["not both", "gate_bias=-1.0", "Keep `gate_bias`"],
    ),
    "an activation for units": (
        lambda: HighwayDense("relu"),
        TypeError,
        ["units='relu'", "HighwayDense(activation='relu')"],
    ),
    "an activation for filters": (
        lambda: HighwayConv2D("relu"),
        TypeError,
        ["filters='relu'", "HighwayConv2D(activation='relu')"],
    ),
    "shape of a layer that is not built": (
        lambda: HighwayDense(7).compute_output_shape((None, 5)),
        ValueError,
        ["one shape", "(None, 5)", "(None, 7)"],
    ),
    "shape without channels": (
        lambda: HighwayConv2D(groups=2).compute_output_shape((None, 8, 8, None)),
        ValueError,
        ["must know its number of features", "(None, 8, 8, None)"],
    ),
    "named inputs": (
        lambda: HighwayDense()({"a": keras.Input((3,)), "b": keras.Input((3,))}),
        ValueError,
        ["takes one input", "2 of the shapes", "Concatenate"],
    ),
    "several outputs": (
        lambda: Highway(keras.layers.LSTM(4, return_sequences=True, return_state=True))(
            keras.Input((5, 4))
        ),
        ValueError,
        ["must return one tensor", "of type LSTM, which returns 3", "Wrap it in a layer"],
    ),
    "a layer of two inputs": (
        lambda: Highway(keras.layers.MultiHeadAttention(2, 4))(keras.Input((5, 8))),
        TypeError,
        ["called on one input", "of type MultiHeadAttention", "Wrap it in a layer"],
    ),
    "a function": (
        lambda: Highway(lambda x: x),
        TypeError,
        ["must be a Keras layer", "keras.layers.Lambda(function)"],
    ),
    "pooling to one": (
        lambda: Highway(
            keras.layers.GlobalAveragePooling2D(keepdims=True), gate=keras.layers.Dense(3)
        )(keras.Input((None, None, 3))),
        ValueError,
        ["one shape", "(None, None, None, 3)", "(None, 1, 1, 3)"],
    ),
    "pooling of an unknown size": (
        lambda: pooled()(random(2, 2, 2, 3)),
        ValueError,
        ["one shape", "(2, 2, 2, 3)", "(2, 1, 1, 3)", "keeps the size"],
    ),
    "channels first inside": (
        lambda: Highway(
            keras.Sequential(
                [keras.layers.DepthwiseConv2D(3, padding="same", data_format="channels_first")]
            )
        )(keras.Input((4, 8, 8))),
        ValueError,
        ["channels_first Sequential", "Pass a layer"],
    ),
    "units": (lambda: HighwayDense(0), ValueError, ["positive integer", "units=0"]),
    "units as text": (lambda: HighwayDense("64"), TypeError, ["integer", "example units=64."]),
    "units as a float": (lambda: HighwayDense(64.0), TypeError, ["integer", "example units=64."]),
    "units of a kind": (lambda: HighwayDense(2.5), TypeError, ["units=2.5 of type float"]),
    "units that are a bool": (lambda: HighwayDense(True), TypeError, ["units=True of type bool"]),
    "kernel size": (
        lambda: HighwayConv2D(kernel_size=(3, 3, 3)),
        ValueError,
        ["one integer or 2", "kernel_size=(3, 3, 3)", "Give kernel_size=(3, 3)"],
    ),
    "no kernel size": (
        lambda: HighwayConv2D(kernel_size=()),
        ValueError,
        ["one integer or 2", "kernel_size=()", "Give kernel_size=(1, 1)"],
    ),
    "data format": (
        lambda: HighwayConv2D(data_format="channels_fist"),
        ValueError,
        ["Did you mean 'channels_first'?"],
    ),
    "no layer": (lambda: Highway("relu"), TypeError, ["must be a Keras layer", "transform='relu'"]),
    "a class": (
        lambda: Highway(keras.layers.Dense),
        TypeError,
        ["must be a Keras layer", "Give an instance"],
    ),
    "gate shape": (
        lambda: Highway(keras.layers.Dense(4), gate=keras.layers.Dense(3))(keras.Input((4,))),
        ValueError,
        ["gate of `Highway`", "(None, 3)", "(None, 4)"],
    ),
    "gate bias without use": (
        lambda: Highway(keras.layers.Dense(4), keras.layers.Dense(4), gate_bias=-4.0),
        ValueError,
        ["a gate that it makes itself", "gate_bias=-4.0", "bias_initializer=GateBias(-2.0)"],
    ),
    "gate without use": (
        lambda: Highway(keras.layers.Dense(4), keras.layers.Dense(4), gate_mode="residual"),
        ValueError,
        ["has no gate gate", "Leave out `gate`"],
    ),
    "pad to fewer": (
        lambda: HighwayDense(3, shortcut="pad")(keras.Input((4,))),
        ValueError,
        ["can add features, not remove them", "shortcut='project'"],
    ),
    "gate of a residual layer": (
        lambda: HighwayDense(gate_mode="residual").compute_gate(random(2, 3)),
        ValueError,
        ["needs a gate", "gate_mode='residual'"],
    ),
    "steps lost": (
        lambda: Highway(keras.layers.LSTM(8))(keras.Input((5, 8))),
        ValueError,
        ["one shape", "(None, 5, 8)", "(None, 8)", "keeps the rank", "return_sequences=True"],
    ),
    "smaller": (
        lambda: HighwayDense(3)(keras.Input((4,))),
        ValueError,
        ["one shape", "pass shortcut='project', or change the size"],
    ),
    "larger": (
        lambda: HighwayDense(5)(keras.Input((4,))),
        ValueError,
        ["one shape", "pass shortcut='project' or shortcut='pad', or change the size"],
    ),
    "one layer twice": (
        lambda: (lambda dense: Highway(dense, dense))(keras.layers.Dense(4, name="d")),
        ValueError,
        ["layers of their own", "transform='d', gate='d', one layer", "Make a second layer"],
    ),
    "a quantized dtype": (
        lambda: HighwayDense(dtype="int8_from_float32"),
        ValueError,
        ["quantized after", "dtype='int8_from_float32'", "model.quantize('int8')"],
    ),
    "nothing to quantize": (
        lambda: normalized().quantize("int8"),
        NotImplementedError,
        ["none of the layers inside of this `Highway`", "'alpha' and mode='int8'"],
    ),
    "low rank before it is built": (
        lambda: HighwayDense(name="alpha").enable_lora(2),
        ValueError,
        ["HighwayDense.enable_lora", "'alpha', which is not built", "Call the layer once"],
    ),
    "channels first without a gate": (
        lambda: Highway(
            keras.layers.DepthwiseConv2D(3, padding="same", data_format="channels_first")
        )(keras.Input((4, 8, 8))),
        ValueError,
        ["channels_first DepthwiseConv2D", "Pass a layer"],
    ),
    "two inputs": (
        lambda: HighwayDense()([keras.Input((3,)), keras.Input((3,))]),
        ValueError,
        ["takes one input", "2 of the shapes", "Concatenate"],
    ),
    "misspelt argument": (lambda: HighwayDense(gatebias=-1), ValueError, ["gatebias"]),
}


def pooled():
    layer = Highway(keras.layers.MaxPooling2D(2), gate_mode="residual")
    layer.build((None, None, None, 3))
    return layer


def normalized():
    layer = Highway(
        keras.layers.LayerNormalization(), keras.layers.Activation("sigmoid"), name="alpha"
    )
    layer.build((None, 6))
    return layer


def built():
    layer = HighwayDense(name="alpha")
    layer.build((None, 6))
    return layer


@pytest.mark.parametrize("name", ERRORS)
def test_bad_input_is_an_error_that_says_what_to_do(name):
    make, error, words = ERRORS[name]
    with pytest.raises(error) as caught:
        make()
    for word in words:
        assert word in str(caught.value), str(caught.value)

"""Ready-made networks of plain and of highway layers."""

import keras

from keras_highway.initializers import GateBias, StandardUniform
from keras_highway.layers import HighwayDense
from keras_highway.validation import check_choice, check_positive_integer

INITIALIZATIONS = ("normalized", "standard")


def highway_mlp(
    input_shape,
    num_classes,
    depth,
    *,
    width=64,
    gate_bias="auto",
    activation="relu",
    initialization="normalized",
    name=None,
):
    """A plain first layer, `depth` highway layers of one width, and a linear output.

    The network of Srivastava et al. (2015), whose first layer brings the input to the width of the
    others, and of the NumPy lesson with `initialization="standard"`.

    Args:
        input_shape: Shape of one example; it is flattened.
        num_classes: Number of outputs, which are logits.
        depth: Number of highway layers, named `layer_1` to `layer_<depth>`.
        width: Units of each layer. Defaults to `64`.
        gate_bias: What `HighwayDense` takes, or `"auto"` (default), the bias at which half of
            the input is carried through all layers, `GateBias.for_depth(depth)`.
        activation: Of every layer but the output. Defaults to `"relu"`.
        initialization: `"normalized"` (default), Keras's own: Glorot-uniform kernels and zero
            biases; or `"standard"`, kernels and biases from U[-1/sqrt(n), 1/sqrt(n)], as PyTorch
            and the lesson do.
        name: Of the model. Defaults to `None`.

    Returns:
        A `keras.Sequential` with logits of the shape `(batch, num_classes)`.

    Raises:
        TypeError, ValueError: If an argument is outside of its values.

    Example:

    >>> from keras_highway.models import highway_mlp
    >>> highway_mlp((8, 8, 1), 10, depth=50).count_params()
    420810
    """
    if isinstance(gate_bias, str) and gate_bias == "auto":
        gate_bias = GateBias.for_depth(depth)

    def layer(fan_in, name):
        kernels = _initializers(initialization, fan_in)
        return HighwayDense(
            activation=activation,
            gate_bias=gate_bias,
            gate_kernel_initializer=kernels["kernel_initializer"],
            name=name,
            **kernels,
        )

    return _mlp(layer, input_shape, num_classes, depth, width, activation, initialization, name)


def plain_mlp(
    input_shape,
    num_classes,
    depth,
    *,
    width=64,
    activation="relu",
    initialization="normalized",
    name=None,
):
    """The twin of `highway_mlp` with plain `Dense` layers; same arguments, same layer names."""

    def layer(fan_in, name):
        return keras.layers.Dense(
            width, activation=activation, name=name, **_initializers(initialization, fan_in)
        )

    return _mlp(layer, input_shape, num_classes, depth, width, activation, initialization, name)


def _mlp(layer, input_shape, num_classes, depth, width, activation, initialization, name):
    depth = check_positive_integer("mlp", "depth", depth)
    check_choice("mlp", "initialization", initialization, INITIALIZATIONS)
    flatten = keras.layers.Flatten(name="flatten")
    inputs = keras.Input(input_shape)
    fan_in = flatten.compute_output_shape((None, *input_shape))[-1]
    first = _initializers(initialization, fan_in)
    return keras.Sequential(
        [
            inputs,
            flatten,
            keras.layers.Dense(width, activation=activation, name="first", **first),
            *(layer(width, f"layer_{index + 1}") for index in range(depth)),
            keras.layers.Dense(num_classes, name="logits", **_initializers(initialization, width)),
        ],
        name=name,
    )


def _initializers(initialization, fan_in):
    if initialization == "standard":
        return {
            "kernel_initializer": StandardUniform(),
            "bias_initializer": StandardUniform(fan_in=fan_in),
        }
    return {"kernel_initializer": "glorot_uniform", "bias_initializer": "zeros"}

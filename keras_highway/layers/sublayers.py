"""Making the gate, and other layers of the same kind as a transform."""

import inspect

import keras

from keras_highway.validation import explain

CONVOLUTIONS = {1: keras.layers.Conv1D, 2: keras.layers.Conv2D, 3: keras.layers.Conv3D}
NORMALIZATIONS = (
    keras.layers.BatchNormalization,
    keras.layers.GroupNormalization,
    keras.layers.LayerNormalization,
)
# Layers after which values that lay between 0 and 1 do so still, in inference.
KEEPS_RANGE = (
    keras.layers.AlphaDropout,
    keras.layers.Dropout,
    keras.layers.Flatten,
    keras.layers.GaussianDropout,
    keras.layers.GaussianNoise,
    keras.layers.GlobalAveragePooling1D,
    keras.layers.GlobalAveragePooling2D,
    keras.layers.GlobalAveragePooling3D,
    keras.layers.Identity,
    keras.layers.InputLayer,
    keras.layers.Permute,
    keras.layers.RepeatVector,
    keras.layers.Reshape,
)


def convolution_rank(layer):
    """1, 2 or 3 for a `Conv1D`, `Conv2D` or `Conv3D`, 0 for any other layer."""
    for rank, convolution in CONVOLUTIONS.items():
        if isinstance(layer, convolution):
            return rank
    return 0


def same_geometry(transform, output_shape, *, kernel_size=None, **arguments):
    """A linear layer with the receptive field of `transform` and the shape of its output.

    A convolution beside a convolution (of another `kernel_size`, if that is given); beside
    anything else a `Dense` over the last axis.
    """
    rank = convolution_rank(transform)
    if not rank:
        return keras.layers.Dense(output_shape[-1], **arguments)
    return CONVOLUTIONS[rank](
        transform.filters,
        kernel_size or transform.kernel_size,
        strides=transform.strides,
        dilation_rate=transform.dilation_rate,
        padding=transform.padding,
        groups=transform.groups,
        data_format=transform.data_format,
        **arguments,
    )


def pointwise(transform, output_shape, **arguments):
    """A linear layer from each position of the input to that of `transform`'s output there."""
    rank = convolution_rank(transform)
    if not rank:
        return keras.layers.Dense(output_shape[-1], **arguments)
    return CONVOLUTIONS[rank](
        transform.filters,
        1,
        strides=transform.strides,
        padding=transform.padding,
        data_format=transform.data_format,
        **arguments,
    )


def output_shape_of(owner, argument, layer, input_shape, dtype):
    """The shape of the one output that `layer` computes from one input of `input_shape`."""
    wrap = "Wrap it in a layer of your own whose call(inputs) returns one tensor."
    received = f"{argument}={layer.name!r} of type {type(layer).__name__}"
    try:
        spec = layer.compute_output_spec(keras.KerasTensor(input_shape, dtype=dtype))
    except TypeError as error:  # a call that asks for more than one input
        rule = f"The {argument} of `{owner}` is called on one input."
        raise TypeError(explain(rule, f"{received}, which fails: {error}", wrap)) from error
    if not isinstance(spec, keras.KerasTensor):
        number = len(keras.tree.flatten(spec))
        rule = f"The {argument} of `{owner}` must return one tensor."
        raise ValueError(explain(rule, f"{received}, which returns {number}", wrap))
    return tuple(spec.shape)


def ends_linear(layer):
    """Whether the last thing that `layer` computes is a linear map, as far as Keras layers say."""
    if isinstance(layer, keras.layers.Wrapper):
        return ends_linear(layer.layer)
    if isinstance(layer, keras.Sequential):
        parts = layer.layers
    else:
        parts = getattr(layer, "operations", ())  # of a Functional model, its output last
    for part in reversed(parts):
        if not isinstance(part, KEEPS_RANGE):
            return ends_linear(part)
    if isinstance(layer, NORMALIZATIONS):
        return True
    return hasattr(layer, "activation") and layer.activation in (None, keras.activations.linear)


def ensure_built(layer, input_shape, dtype):
    """Builds `layer` if it is not, also a composed one that has no `build` of its own."""
    if layer.built:
        return
    if type(layer).build is keras.layers.Layer.build:
        # Keras makes the weights of such a layer when its `call` is traced.
        layer.compute_output_spec(keras.KerasTensor(input_shape, dtype=dtype))
    layer.build(input_shape)


def check_layer(owner, argument, layer):
    """Raises a `TypeError` unless `layer` is a Keras 3 layer."""
    if not isinstance(layer, keras.layers.Layer):
        if isinstance(layer, type):
            hint = "Give an instance, as in keras.layers.Dense(64)."
        elif inspect.isfunction(layer):
            hint = "Wrap a function as keras.layers.Lambda(function)."
        else:
            hint = "Give a keras.layers.Layer; layers of tf_keras (Keras 2) cannot be mixed in."
        raise TypeError(
            explain(
                f"`{owner}({argument}=...)` must be a Keras layer.",
                f"{argument}={layer!r} of type {type(layer).__name__}",
                hint,
            )
        )

"""Making the gate, and other layers of the same kind as a transform."""

import keras

from keras_highway.validation import explain

CONVOLUTIONS = {1: keras.layers.Conv1D, 2: keras.layers.Conv2D, 3: keras.layers.Conv3D}


def convolution_rank(layer):
    """1, 2 or 3 for a `Conv1D`, `Conv2D` or `Conv3D`, 0 for any other layer."""
    for rank, convolution in CONVOLUTIONS.items():
        if isinstance(layer, convolution):
            return rank
    return 0


def same_kind(transform, output_shape, name, dtype, *, kernel_size=None, **arguments):
    """A linear layer that maps an input of `transform` to the shape of its output.

    A convolution beside a convolution, with its geometry (and its receptive field, unless
    `kernel_size` says otherwise); beside anything else a `Dense` over the last axis.
    """
    if rank := convolution_rank(transform):
        return CONVOLUTIONS[rank](
            transform.filters,
            transform.kernel_size if kernel_size is None else kernel_size,
            strides=transform.strides,
            dilation_rate=transform.dilation_rate if kernel_size != 1 else 1,
            padding=transform.padding,
            groups=transform.groups if kernel_size != 1 else 1,
            data_format=transform.data_format,
            name=name,
            dtype=dtype,
            **arguments,
        )
    return keras.layers.Dense(output_shape[-1], name=name, dtype=dtype, **arguments)


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
        hint = (
            "Give an instance, as in keras.layers.Dense(64)."
            if isinstance(layer, type)
            else "Give a keras.layers.Layer; layers of tf_keras (Keras 2) cannot be mixed in."
        )
        raise TypeError(
            explain(
                f"`{owner}({argument}=...)` must be a Keras layer.",
                f"{argument}={layer!r} of type {type(layer).__name__}",
                hint,
            )
        )

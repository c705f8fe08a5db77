"""What carries the input past a layer whose output has another shape."""

import keras

from keras_highway.layers.sublayers import convolution_rank, same_kind
from keras_highway.validation import explain

SHORTCUTS = ("identity", "project", "pad")


def make_shortcut(highway, transform, input_shape, output_shape):
    """The layer on the carry path of `highway`, or `None` where the input itself is carried.

    Every kind is the identity where the transform keeps the shape.
    """
    owner = type(highway).__name__
    received = (
        f"input shape {input_shape} and output shape {output_shape} in layer {highway.name!r}"
    )
    mismatch = ValueError(
        explain(
            f"`{owner}` mixes its input with its transform's output, so both must have one shape.",
            received,
            "Either keep the shape (leave out units or filters, and strides), or pass "
            "shortcut='project' or shortcut='pad', or change the size with a plain layer "
            "between the highway layers.",
        )
    )
    if (
        convolution_rank(transform)
        and transform.padding == "valid"
        and set(transform.kernel_size) != {1}
    ):
        raise ValueError(
            explain(
                f"`{owner}` mixes its input with a convolution of it, so that must keep the size.",
                f"padding='valid' in layer {transform.name!r}",
                "Use padding='same', or change the size with a plain convolution before it.",
            )
        )
    if len(input_shape) != len(output_shape) or not _keeps_size(
        transform, input_shape, output_shape
    ):
        raise mismatch
    strides, axis = _strides(transform), _channel_axis(transform)
    if max(strides) == 1 and input_shape[axis] == output_shape[axis]:
        return None
    if highway.shortcut == "identity":
        raise mismatch
    dtype = highway.dtype_policy
    if highway.shortcut == "project":
        return same_kind(transform, output_shape, "shortcut", dtype, kernel_size=1)
    if output_shape[axis] < input_shape[axis]:
        raise ValueError(
            explain(
                f"`{owner}` with shortcut='pad' can add features, not remove them.",
                received,
                "Use shortcut='project'.",
            )
        )
    return PadShortcut(output_shape[axis], strides, axis, name="shortcut", dtype=dtype)


class PadShortcut(keras.layers.Layer):
    """Sub-samples the input in space and fills new features with zeros; it has no weights."""

    def __init__(self, features, strides, axis, **kwargs):
        super().__init__(**kwargs)
        self.features = features
        self.strides = strides
        self.axis = axis

    def call(self, inputs):
        if max(self.strides) > 1:
            steps = [slice(None, None, stride) for stride in self.strides]
            position = 1 if self.axis == -1 else 2
            inputs = inputs[(*[slice(None)] * position, *steps)]
        widths = [(0, 0)] * len(inputs.shape)
        widths[self.axis] = (0, self.features - inputs.shape[self.axis])
        return keras.ops.pad(inputs, widths)

    def get_config(self):
        return {
            **super().get_config(),
            "features": self.features,
            "strides": self.strides,
            "axis": self.axis,
        }


def _strides(transform):
    strides = transform.strides if convolution_rank(transform) else 1
    return (strides,) if isinstance(strides, int) else tuple(strides)


def _channel_axis(transform):
    channels_first = getattr(transform, "data_format", None) == "channels_first"
    return 1 if channels_first and convolution_rank(transform) else -1


def _keeps_size(transform, input_shape, output_shape):
    """Whether only strides change the axes between batch and channels."""
    return bool(convolution_rank(transform)) or all(
        before == after or None in (before, after)
        for before, after in zip(input_shape[1:-1], output_shape[1:-1], strict=True)
    )

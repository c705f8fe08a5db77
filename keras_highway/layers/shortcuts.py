"""What carries the input past a layer whose output has another shape."""

import keras

from keras_highway.layers.sublayers import convolution_rank, pointwise
from keras_highway.validation import explain

SHORTCUTS = ("identity", "project", "pad")


def needs_shortcut(highway, transform, input_shape, output_shape):
    """Whether the carry path of `highway` must change the shape of the input.

    Raises:
        ValueError: If `highway.shortcut` cannot make the shapes equal.
    """
    owner = type(highway).__name__
    rule = f"`{owner}` mixes its input with its transform's output, so both must have one shape."
    received = (
        f"input shape {input_shape} and output shape {output_shape} in layer {highway.name!r}"
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
    if len(input_shape) != len(output_shape):
        fix = "Use a transform that keeps the rank, such as LSTM(..., return_sequences=True)."
        raise ValueError(explain(rule, received, fix))
    if not _keeps_size(transform, input_shape, output_shape):
        fix = "Use a transform that keeps the axes between batch and features as they are."
        raise ValueError(explain(rule, received, fix))
    axis = _channel_axis(transform)
    if max(_strides(transform)) == 1 and input_shape[axis] == output_shape[axis]:
        return False
    unknown = None in (input_shape[axis], output_shape[axis])
    shrinks = not unknown and output_shape[axis] < input_shape[axis]
    if highway.shortcut == "identity":
        ways = "shortcut='project'" if shrinks else "shortcut='project' or shortcut='pad'"
        fix = (
            f"Either keep the shape (leave out units or filters, and strides), or pass {ways}, "
            "or change the size with a plain layer between the highway layers."
        )
        raise ValueError(explain(rule, received, fix))
    if unknown:
        raise ValueError(
            explain(
                f"`{owner}` with shortcut={highway.shortcut!r} must know the number of features "
                "before and after.",
                received,
                "Give that axis a size in keras.Input.",
            )
        )
    if highway.shortcut == "pad" and shrinks:
        raise ValueError(
            explain(
                f"`{owner}` with shortcut='pad' can add features, not remove them.",
                received,
                "Use shortcut='project'.",
            )
        )
    return True


def make_shortcut(highway, transform, output_shape):
    """The layer on the carry path of `highway`, where one is needed."""
    arguments = {"name": "shortcut", "dtype": highway.dtype_policy}
    if highway.shortcut == "project":
        return pointwise(transform, output_shape, **arguments)
    axis = _channel_axis(transform)
    return PadShortcut(output_shape[axis], _strides(transform), axis, **arguments)


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
    """Whether only strides change the axes between batch and channels, as far as is known."""
    return bool(convolution_rank(transform)) or all(
        before == after or after is None
        for before, after in zip(input_shape[1:-1], output_shape[1:-1], strict=True)
    )

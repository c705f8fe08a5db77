"""Convolutional highway layers in one, two and three dimensions."""

import keras

from keras_highway.layers.kernel_highway import KernelHighway, check_size
from keras_highway.layers.sublayers import CONVOLUTIONS
from keras_highway.validation import (
    check_choice,
    check_integer_tuple,
    check_positive_integer,
    explain,
)


class BaseHighwayConv(KernelHighway):
    """The layer behind `HighwayConv1D`, `HighwayConv2D` and `HighwayConv3D`."""

    rank = 0
    paddings: tuple[str, ...] = ("same",)

    def __init__(
        self,
        filters=None,
        kernel_size=3,
        *,
        strides=1,
        dilation_rate=1,
        groups=1,
        padding="same",
        data_format=None,
        activation="relu",
        gate_kernel_size=None,
        gate_bias=-2.0,
        gate_mode="coupled",
        shortcut="identity",
        use_bias=True,
        gate_activation="sigmoid",
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        gate_kernel_initializer="glorot_uniform",
        gate_bias_initializer=None,
        kernel_regularizer=None,
        bias_regularizer=None,
        gate_kernel_regularizer=None,
        gate_bias_regularizer=None,
        kernel_constraint=None,
        bias_constraint=None,
        gate_kernel_constraint=None,
        gate_bias_constraint=None,
        **kwargs,
    ):
        owner = type(self).__name__
        filters = check_size(owner, "filters", filters)
        kernel_size = check_integer_tuple(owner, "kernel_size", kernel_size, self.rank)
        strides = check_integer_tuple(owner, "strides", strides, self.rank)
        dilation_rate = check_integer_tuple(owner, "dilation_rate", dilation_rate, self.rank)
        groups = check_positive_integer(owner, "groups", groups)
        if gate_kernel_size is not None:
            gate_kernel_size = check_integer_tuple(
                owner, "gate_kernel_size", gate_kernel_size, self.rank
            )
        padding = padding.lower() if isinstance(padding, str) else padding
        if padding == "valid":
            raise ValueError(
                explain(
                    f"`{owner}` mixes its input with a convolution of it, so `padding` must "
                    f"keep the size: {' or '.join(map(repr, self.paddings))}.",
                    "padding='valid'",
                    "Use padding='same', or change the size with a plain convolution before it.",
                )
            )
        check_choice(owner, "padding", padding, self.paddings)
        if max(strides) > 1 and shortcut == "identity":
            raise ValueError(
                explain(
                    f"`{owner}` with shortcut='identity' keeps the size of its input.",
                    f"strides={strides}",
                    "Pass shortcut='project' or shortcut='pad', or leave out `strides` and "
                    "change the size with a plain layer.",
                )
            )
        if max(strides) > 1 and max(dilation_rate) > 1:
            raise ValueError(
                explain(
                    f"`{owner}` can have strides or dilation above 1, not both.",
                    f"strides={strides} and dilation_rate={dilation_rate}",
                    "Set one of them to 1.",
                )
            )
        if filters is not None and filters % groups:
            raise ValueError(_groups_message(owner, "filters", filters, groups))
        super().__init__(
            activation=activation,
            gate_bias=gate_bias,
            gate_mode=gate_mode,
            shortcut=shortcut,
            use_bias=use_bias,
            gate_activation=gate_activation,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            gate_kernel_initializer=gate_kernel_initializer,
            gate_bias_initializer=gate_bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            gate_kernel_regularizer=gate_kernel_regularizer,
            gate_bias_regularizer=gate_bias_regularizer,
            kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint,
            gate_kernel_constraint=gate_kernel_constraint,
            gate_bias_constraint=gate_bias_constraint,
            **kwargs,
        )
        self.filters = filters
        self.kernel_size = kernel_size
        self.strides = strides
        self.dilation_rate = dilation_rate
        self.groups = groups
        self.padding = padding
        self.data_format = keras.config.image_data_format() if data_format is None else data_format
        check_choice(owner, "data_format", self.data_format, ("channels_first", "channels_last"))
        self.channel_axis = 1 if self.data_format == "channels_first" else -1
        self.gate_kernel_size = gate_kernel_size

    def make_transform(self, input_shape):
        channels = input_shape[self.channel_axis]
        if channels % self.groups:
            raise ValueError(
                _groups_message(type(self).__name__, "channels of the input", channels, self.groups)
            )
        return CONVOLUTIONS[self.rank](
            self.filters or channels,
            self.kernel_size,
            strides=self.strides,
            padding=self.padding,
            data_format=self.data_format,
            dilation_rate=self.dilation_rate,
            groups=self.groups,
            **self.transform_arguments(),
        )

    def check_input_rank(self, rank):
        if rank != self.rank + 2:
            sizes = ("steps",) if self.rank == 1 else ("depth", "height", "width")[-self.rank :]
            space = ", ".join(sizes)
            axes = f"channels, {space}" if self.channel_axis == 1 else f"{space}, channels"
            owner = type(self).__name__
            raise ValueError(
                explain(
                    f"`{owner}` takes inputs of rank {self.rank + 2}, (batch, {axes}).",
                    f"an input of rank {rank} in layer {self.name!r}",
                    "Add the missing axis (one channel: keras.layers.Reshape), or use the highway "
                    "layer for the rank of the input.",
                )
            )

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "strides": self.strides,
            "dilation_rate": self.dilation_rate,
            "groups": self.groups,
            "padding": self.padding,
            "data_format": self.data_format,
            "gate_kernel_size": self.gate_kernel_size,
        }


def _groups_message(owner, what, size, groups):
    return explain(
        f"`{owner}(groups=...)` must divide the {what}.",
        f"{what} {size} and groups={groups}",
        "Choose another number of groups, or change the number of features.",
    )


@keras.saving.register_keras_serializable(package="keras_highway")
class HighwayConv1D(BaseHighwayConv):
    """Mixes a `Conv1D` layer's output with its input, as a learned gate says.

    Use it for sequences where depth is needed, such as dilated causal stacks. The arguments, the
    equation and the errors are those of `HighwayConv2D`; `padding` may also be `"causal"`, so that
    no step sees a later one. A mask over the steps is passed on, and sub-sampled by `strides`.

    Input shape:
        `(batch, steps, channels)`, or `(batch, channels, steps)` with `"channels_first"`

    Output shape:
        `(batch, new_steps, filters)`, or `(batch, filters, new_steps)` with `"channels_first"`

    Example:

    >>> import keras
    >>> from keras_highway import HighwayConv1D
    >>> layer = HighwayConv1D(kernel_size=2, padding="causal", dilation_rate=4)
    >>> layer(keras.ops.ones((2, 9, 5))).shape == (2, 9, 5)
    True
    """

    rank = 1
    paddings = ("same", "causal")


@keras.saving.register_keras_serializable(package="keras_highway")
class HighwayConv2D(BaseHighwayConv):
    """Mixes a `Conv2D` layer's output with its input, as a learned gate says.

    Use it in place of `keras.layers.Conv2D` between layers of one size and width, when a network is
    too deep to train or should learn by itself how many layers it uses. H and T have the same
    receptive field, as in the paper.

    ```
    T = gate_activation(conv(x, gate_kernel) + gate_bias)
    H = activation(conv(x, kernel) + bias)
    y = T * H + (1 - T) * x
    y = x    where T = 0    # gate_bias very negative: carries
    y = H    where T = 1    # gate_bias very positive: the plain layer
    ```

    Reference:

    - Srivastava, Greff, Schmidhuber (2015), Training Very Deep Networks,
      https://arxiv.org/abs/1507.06228

    Args:
        filters: Number of output channels. Defaults to `None`, that of the input.
        kernel_size: Integer or one a spatial axis, of H and, without `gate_kernel_size`, of T.
            Defaults to `3`.
        strides: Integer or one a spatial axis; above 1 they need a `shortcut`. Defaults to `1`.
        dilation_rate: Integer or one a spatial axis. Defaults to `1`.
        groups: Groups of channels that are convolved apart, in H and in T. Defaults to `1`.
        padding: Only `"same"` keeps the size that the mixture needs. Defaults to `"same"`.
        data_format: `"channels_last"` or `"channels_first"`. Defaults to `None`,
            `keras.config.image_data_format()`. TensorFlow cannot run `"channels_first"` on
            every CPU.
        activation: Of H. Defaults to `"relu"`.
        gate_kernel_size: Of T, if it is to differ. Defaults to `None`.
        gate_bias: Initial bias of T. **Negative carries.** A number, a preset's name
            (`"shallow"` -1, `"deep"` -2, `"very_deep"` -4) or an initializer, such as
            `GateBias.for_depth(50)`. Defaults to `-2.0`.
        gate_mode: `"coupled"` (default), `"independent"`, `"transform_only"`, `"carry_only"` or
            `"residual"`; see `Highway`.
        shortcut: What carries x if the output has another shape: `"identity"` (default, then an
            error), `"project"` (a 1x1 convolution with the strides) or `"pad"` (zeros for new
            channels, sub-sampling for strides).
        use_bias: Whether H has a bias; the gate always has one. Defaults to `True`.
        gate_activation: Defaults to `"sigmoid"`.
        kernel_initializer, gate_kernel_initializer: Default to `"glorot_uniform"`.
        bias_initializer: Defaults to `"zeros"`.
        gate_bias_initializer: Keras's usual name for what `gate_bias` sets; give one of them.
            Defaults to `None`.
        kernel_regularizer, bias_regularizer, gate_kernel_regularizer, gate_bias_regularizer:
            Default to `None`.
        kernel_constraint, bias_constraint, gate_kernel_constraint, gate_bias_constraint:
            Default to `None`.
        **kwargs: Of `keras.layers.Layer`: `name`, `dtype`, `trainable`, `activity_regularizer`.

    Call arguments:
        inputs: Floating-point tensor of rank 4.

    Input shape:
        `(batch, height, width, channels)`, or `(batch, channels, height, width)` with
        `"channels_first"`

    Output shape:
        The same with `filters` channels, and height and width divided by the strides, rounded up

    Raises:
        TypeError: If a number is a bool or no number.
        ValueError: If an argument is outside of its values (`padding="valid"`, strides with
            `shortcut="identity"`, groups that do not divide), or when built, if the number of
            channels is unknown, or differs from `filters` while `shortcut="identity"`.

    Example:

    >>> import keras
    >>> from keras_highway import HighwayConv2D
    >>> images = keras.Input((None, None, 16))
    >>> HighwayConv2D(kernel_size=3)(images).shape
    (None, None, None, 16)
    >>> HighwayConv2D(32, strides=2, shortcut="project")(keras.Input((28, 28, 16))).shape
    (None, 14, 14, 32)
    """

    rank = 2


@keras.saving.register_keras_serializable(package="keras_highway")
class HighwayConv3D(BaseHighwayConv):
    """Mixes a `Conv3D` layer's output with its input, as a learned gate says.

    Use it for volumes and video. The arguments, the equation and the errors are those of
    `HighwayConv2D`.

    Input shape:
        `(batch, depth, height, width, channels)`, or `(batch, channels, depth, height, width)`
        with `"channels_first"`

    Output shape:
        The same with `filters` channels, and the sizes in space divided by the strides, rounded up

    Example:

    >>> import keras
    >>> from keras_highway import HighwayConv3D
    >>> HighwayConv3D()(keras.Input((8, 8, 8, 4))).shape
    (None, 8, 8, 8, 4)
    """

    rank = 3

"""A dense highway layer."""

import keras

from keras_highway.layers.kernel_highway import KernelHighway, check_size
from keras_highway.validation import explain


@keras.saving.register_keras_serializable(package="keras_highway")
class HighwayDense(KernelHighway):
    """Mixes a `Dense` layer's output with its input, as a learned gate says.

    Use it in place of `keras.layers.Dense` between layers of one width, when a network is too deep
    to train or should learn by itself how many layers it uses. It has twice the parameters of a
    `Dense`; below about five layers a plain network trains as well.

    ```
    T = gate_activation(x @ gate_kernel + gate_bias)
    H = activation(x @ kernel + bias)
    y = T * H + (1 - T) * x
    y = x    where T = 0    # gate_bias very negative: carries
    y = H    where T = 1    # gate_bias very positive: the plain layer
    ```

    Reference:

    - Srivastava, Greff, Schmidhuber (2015), Highway Networks, https://arxiv.org/abs/1505.00387

    Args:
        units: Width of the output. Defaults to `None`, the width of the input.
        activation: Of H. Defaults to `"relu"`.
        gate_bias: Initial bias of T. **Negative carries.** A number, a preset's name
            (`"shallow"` -1, `"deep"` -2, `"very_deep"` -4) or an initializer, such as
            `GateBias.for_depth(50)`. Defaults to `-2.0`.
        gate_mode: `"coupled"` (default), `"independent"`, `"transform_only"`, `"carry_only"` or
            `"residual"`; see `Highway`.
        shortcut: What carries x if `units` differs from its width: `"identity"` (default, then
            an error), `"project"` (a `Dense`) or `"pad"` (zeros for the new features).
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
        inputs: Floating-point tensor of rank 2 or more; a mask on it is passed on.

    Input shape:
        `(batch, ..., features)`

    Output shape:
        `(batch, ..., units)`

    Raises:
        TypeError: If a number is a bool or no number.
        ValueError: If an argument is outside of its values, or when built, if the width of the
            input is unknown, or differs from `units` while `shortcut="identity"`.

    Example:

    >>> import keras
    >>> from keras_highway import HighwayDense
    >>> model = keras.Sequential([keras.Input((64,)), HighwayDense(), keras.layers.Dense(10)])
    >>> model.layers[0].count_params()
    8320
    """

    def __init__(
        self,
        units=None,
        activation="relu",
        *,
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
        units = check_size("HighwayDense", "units", units)
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
        self.units = units

    def make_transform(self, input_shape):
        return keras.layers.Dense(self.units or input_shape[-1], **self.transform_arguments())

    def check_input_rank(self, rank):
        if rank < 2:
            raise ValueError(
                explain(
                    "`HighwayDense` takes inputs of rank 2 or more, (batch, ..., features).",
                    f"an input of rank {rank} in layer {self.name!r}",
                    "Add the missing axis, for example with keras.ops.expand_dims(x, 0).",
                )
            )

    def get_config(self):
        return {**super().get_config(), "units": self.units}

"""What dense and convolutional highway layers share: the arguments of the transform."""

import keras

from keras_highway.initializers import clone_initializer
from keras_highway.layers.highway import Highway
from keras_highway.validation import check_positive_integer, explain


def check_size(owner, argument, value):
    """Returns `value`, `units` or `filters`, as an integer above zero, or `None` as it is."""
    if isinstance(value, str) and not value.strip().isdigit():
        raise TypeError(
            explain(
                f"`{owner}({argument}=...)` must be a positive integer or None.",
                f"{argument}={value!r}",
                f"Name an activation, as in {owner}(activation={value!r}).",
            )
        )
    return None if value is None else check_positive_integer(owner, argument, value)


class KernelHighway(Highway):
    """Base of the highway layers that make their own transform, with a kernel and a bias.

    Subclasses make it in `make_transform` and say in `check_input_rank` what they take.
    """

    channel_axis = -1

    def __init__(
        self,
        activation="relu",
        use_bias=True,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        bias_regularizer=None,
        kernel_constraint=None,
        bias_constraint=None,
        **kwargs,
    ):
        super().__init__(None, **kwargs)
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = clone_initializer(kernel_initializer)
        self.bias_initializer = clone_initializer(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)

    def transform_arguments(self):
        """The arguments that every transform takes, as keywords of a Keras layer."""
        return {
            "activation": self.activation,
            "use_bias": self.use_bias,
            "kernel_initializer": self.kernel_initializer,
            "bias_initializer": self.bias_initializer,
            "kernel_regularizer": self.kernel_regularizer,
            "bias_regularizer": self.bias_regularizer,
            "kernel_constraint": self.kernel_constraint,
            "bias_constraint": self.bias_constraint,
            "name": "transform",
            "dtype": self.dtype_policy,
        }

    def check_input_rank(self, rank):
        """Raises a `ValueError` if the layer cannot take inputs of this rank."""
        raise NotImplementedError

    def check_input_shape(self, input_shape):
        if input_shape.__class__ is not tuple:
            input_shape = tuple(input_shape)
        self.check_input_rank(len(input_shape))
        features = input_shape[self.channel_axis]
        axis = f"axis {self.channel_axis} of the input"
        if features is None and not self.built:
            raise ValueError(
                explain(
                    f"`{type(self).__name__}` must know its number of features, {axis}, "
                    "before it is built.",
                    f"input shape {input_shape} in layer {self.name!r}",
                    "Give that axis a size in keras.Input.",
                )
            )
        if self.built and features not in (None, self._input_shape[self.channel_axis]):
            raise ValueError(
                explain(
                    f"`{type(self).__name__}` was built for {axis} of size "
                    f"{self._input_shape[self.channel_axis]}.",
                    f"input shape {input_shape} in layer {self.name!r}",
                    "Give inputs of that size, or build a new layer for the other size.",
                )
            )

    def get_config(self):
        return {
            **super().get_config(),
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
            "kernel_regularizer": keras.regularizers.serialize(self.kernel_regularizer),
            "bias_regularizer": keras.regularizers.serialize(self.bias_regularizer),
            "kernel_constraint": keras.constraints.serialize(self.kernel_constraint),
            "bias_constraint": keras.constraints.serialize(self.bias_constraint),
        }

"""The highway equation, around any Keras layer."""

import contextlib

import keras

from keras_highway.initializers import Negated, clone_initializer, get_gate_bias
from keras_highway.layers.shortcuts import SHORTCUTS, make_shortcut, needs_shortcut
from keras_highway.layers.sublayers import (
    check_layer,
    convolution_rank,
    ends_linear,
    ensure_built,
    output_shape_of,
    same_geometry,
)
from keras_highway.validation import check_choice, explain

DEFAULT_GATE_BIAS = -2.0
GATE_MODES = ("coupled", "independent", "transform_only", "carry_only", "residual")


@keras.saving.register_keras_serializable(package="keras_highway")
class Highway(keras.layers.Layer):
    """Mixes a layer's output with its input, as a learned gate says.

    Use it to make any shape-keeping layer skippable, so that deep stacks of it train. For dense
    and convolutional layers `HighwayDense` and `HighwayConv2D` are shorter. Where no layer has to
    decide by its input how much to transform, a plain residual connection
    (`gate_mode="residual"`) costs half the parameters and is often enough.

    ```
    T = gate(x)                      # in (0, 1), one value a unit
    y = T * H(x) + (1 - T) * x       # H is the transform
    y = x       where T = 0          # carries: very negative gate bias
    y = H(x)    where T = 1          # the plain layer
    ```

    The mixture is computed as `x + T * (H(x) - x)`, which is the same and better in half
    precision: `1 - T` rounds to 1 in float16 from T = 0.0002 down and in bfloat16 from T = 0.002,
    and a layer would then add `T * H(x)` without taking away `T * x`.

    Reference:

    - Srivastava, Greff, Schmidhuber (2015), Highway Networks, https://arxiv.org/abs/1505.00387
    - Srivastava, Greff, Schmidhuber (2015), Training Very Deep Networks,
      https://arxiv.org/abs/1507.06228
    - Greff, Srivastava, Schmidhuber (2017), Highway and Residual Networks learn Unrolled
      Iterative Estimation, https://arxiv.org/abs/1612.07771 (the gate modes)

    Args:
        transform: The Keras layer that computes H(x) from one input.
        gate: A Keras layer that computes T(x), in the shape of H(x) or broadcast to it. If it
            ends in a layer without activation (a linear `Dense`), `gate_activation` is applied to
            its output; otherwise its output is T, which should lie between 0 and 1. With
            `gate_activation=None` the output is T in any case. Defaults to `None`: a convolution
            with the same geometry if `transform` is a `Conv1D`, `Conv2D` or `Conv3D`, else a
            `Dense` over the last axis. The `gate_...` arguments below describe that default gate;
            a gate of your own brings its own bias.
        carry: The same for the carry gate C, in mode `"independent"` only.
        gate_bias: Initial bias of T. **Negative carries.** A number, a preset's name
            (`"shallow"` -1, `"deep"` -2, `"very_deep"` -4) or an initializer, such as
            `GateBias.for_depth(50)`. Defaults to `-2.0`.
        gate_mode: How T and x are used. Defaults to `"coupled"`.
            `"coupled"`: `H * T + x * (1 - T)`.
            `"independent"`: `H * T + x * C`, C having weights of its own, which start at minus
            those of T, so that C = 1 - T at first.
            `"transform_only"`: `H * T + x`.
            `"carry_only"`: `H + x * (1 - T)`.
            `"residual"`: `H + x`, no gate, and `gate_bias` is not used.
        shortcut: What carries x if H(x) has another shape. Defaults to `"identity"`, which
            makes that an error. `"project"`: a learned linear map (`Dense`, or a 1x1 convolution
            with the strides). `"pad"`: zeros for new features, sub-sampling for strides.
        gate_activation: Defaults to `"sigmoid"`.
        gate_kernel_initializer: Defaults to `"glorot_uniform"`.
        gate_bias_initializer: Keras's usual name for what `gate_bias` sets; give one of them.
            Defaults to `None`.
        gate_kernel_regularizer, gate_bias_regularizer: Default to `None`.
        gate_kernel_constraint, gate_bias_constraint: Default to `None`.
        **kwargs: Of `keras.layers.Layer`: `name`, `dtype`, `trainable`, `activity_regularizer`.

    Call arguments:
        inputs: Floating-point tensor; a mask on it is passed on.

    Input shape:
        `(batch, ..., features)`, as the transform takes it.

    Output shape:
        The transform's; the input's own with the default `shortcut`.

    Raises:
        TypeError: If `transform`, `gate` or `carry` is no Keras 3 layer, or `gate_bias` is a bool.
        ValueError: If an argument is outside of its values, or when built, if the transform
            changes the shape and `shortcut` does not provide for it.

    Example:

    >>> import keras
    >>> from keras_highway import Highway
    >>> block = Highway(keras.layers.EinsumDense("abc,cd->abd", (None, 8), activation="gelu"))
    >>> block(keras.ops.ones((2, 5, 8))).shape == (2, 5, 8)
    True
    """

    gate_kernel_size = None  # that of the transform, if it is a convolution
    gate_observer = None  # called with T where a measurement of this package wants to see it

    def __init__(
        self,
        transform,
        gate=None,
        *,
        carry=None,
        gate_bias=DEFAULT_GATE_BIAS,
        gate_mode="coupled",
        shortcut="identity",
        gate_activation="sigmoid",
        gate_kernel_initializer="glorot_uniform",
        gate_bias_initializer=None,
        gate_kernel_regularizer=None,
        gate_bias_regularizer=None,
        gate_kernel_constraint=None,
        gate_bias_constraint=None,
        **kwargs,
    ):
        owner = type(self).__name__
        check_choice(owner, "gate_mode", gate_mode, GATE_MODES)
        check_choice(owner, "shortcut", shortcut, SHORTCUTS)
        if transform is not None or type(self) is Highway:
            check_layer(owner, "transform", transform)
        for argument, layer, modes in (
            ("gate", gate, set(GATE_MODES) - {"residual"}),
            ("carry", carry, {"independent"}),
        ):
            if layer is None:
                continue
            check_layer(owner, argument, layer)
            if gate_mode not in modes:
                raise ValueError(
                    explain(
                        f"`{owner}` has no {argument} gate in gate_mode={gate_mode!r}.",
                        f"{argument}={layer.name!r}",
                        f"Leave out `{argument}`, or use gate_mode={min(modes)!r}.",
                    )
                )
        given = {"transform": transform, "gate": gate, "carry": carry}
        given = {name: layer for name, layer in given.items() if layer is not None}
        if len({id(layer) for layer in given.values()}) < len(given):
            raise ValueError(
                explain(
                    f"`{owner}` needs layers of their own for transform and gates.",
                    ", ".join(f"{name}={layer.name!r}" for name, layer in given.items())
                    + ", one layer in two places",
                    "Make a second layer of the same kind.",
                )
            )
        if gate_bias_initializer is not None:
            if gate_bias != DEFAULT_GATE_BIAS:
                raise ValueError(
                    explain(
                        f"`{owner}` takes `gate_bias` or `gate_bias_initializer`, not both.",
                        f"gate_bias={gate_bias!r} and "
                        f"gate_bias_initializer={gate_bias_initializer!r}",
                        "Keep `gate_bias`, which takes an initializer too.",
                    )
                )
            gate_bias = gate_bias_initializer
        makes_a_gate = gate is None or (gate_mode == "independent" and carry is None)
        if gate_bias != DEFAULT_GATE_BIAS and not makes_a_gate:
            raise ValueError(
                explain(
                    f"`{owner}` sets the gate bias of a gate that it makes itself.",
                    f"gate_bias={gate_bias!r} and gate={gate.name!r}",
                    "Leave out `gate_bias`, and start the bias inside the gate: "
                    "keras.layers.Dense(..., bias_initializer=GateBias(-2.0)).",
                )
            )
        initializer = get_gate_bias(owner, gate_bias)
        super().__init__(**kwargs)
        if self.dtype_policy.quantization_mode is not None:
            raise ValueError(
                explain(
                    f"`{owner}` is quantized after its weights are there.",
                    f"dtype={self.dtype_policy.name!r}",
                    "Make it without, and call model.quantize('int8') on the trained model.",
                )
            )
        self.transform = transform
        self.gate = gate
        self.carry = carry
        self.shortcut_layer = None
        self.gate_bias = gate_bias if isinstance(gate_bias, (str, float, int)) else initializer
        self.gate_bias_initializer = initializer
        self.gate_mode = gate_mode
        self.shortcut = shortcut
        self.gate_activation = keras.activations.get(gate_activation)
        self.gate_kernel_initializer = clone_initializer(gate_kernel_initializer)
        self.gate_kernel_regularizer = keras.regularizers.get(gate_kernel_regularizer)
        self.gate_bias_regularizer = keras.regularizers.get(gate_bias_regularizer)
        self.gate_kernel_constraint = keras.constraints.get(gate_kernel_constraint)
        self.gate_bias_constraint = keras.constraints.get(gate_bias_constraint)
        self.supports_masking = True
        self._given = tuple(given)
        if not self.trainable:
            for name in self._given:
                getattr(self, name).trainable = False
        self._as_made = {}  # configs of the sublayers made here, before anything changed them
        self._changes = None  # what `sublayer_changes` of a loaded config says, until built

    def build(self, input_shape):
        input_shape = self._check_one_input(input_shape)
        changes, self._changes = self._changes or {}, None
        for name, layer in self._make_sublayers(input_shape).items():
            self._as_made[name] = layer.get_config()
            layer.trainable = self.trainable
            if name in changes:
                layer = type(layer).from_config({**layer.get_config(), **changes[name]})
            # The mask is passed on here; Keras would warn that a convolution drops it.
            layer.supports_masking = True
            setattr(self, name, layer)
        for layer in (self.transform, self.gate, self.shortcut_layer):
            if layer is not None:
                ensure_built(layer, input_shape, self.compute_dtype)
        if self.carry is not None:
            if {"gate", "carry"} <= self._as_made.keys():
                self.carry.kernel_initializer.variable = self.gate.kernel
                self.carry.bias_initializer.variable = self.gate.bias
            ensure_built(self.carry, input_shape, self.compute_dtype)
        self._check_gate_shapes(input_shape)
        self._input_shape = input_shape

    def call(self, inputs, training=None):
        self.check_input_shape(inputs.shape)
        if not keras.backend.is_float_dtype(inputs.dtype):
            inputs = self._computed(inputs)
        h = self._computed(self.transform(inputs))
        x = self._computed(self.shortcut_layer(inputs) if self.shortcut_layer else inputs)
        self._check_sizes(x.shape, h.shape)
        if self.gate_mode == "residual":
            return h + x
        t = self._gate(self.gate, inputs)
        if self.gate_observer is not None:
            self.gate_observer(t)
        if self.gate_mode == "coupled":
            return x + t * (h - x)
        if self.gate_mode == "independent":
            return h * t + x * self._gate(self.carry, inputs)
        if self.gate_mode == "transform_only":
            return h * t + x
        return h + x * (1 - t)

    def compute_gate(self, inputs):
        """T(x), the transform gate, in the shape of the output.

        Args:
            inputs: What the layer is called on: an array, a tensor or a `KerasTensor`.

        Raises:
            ValueError: If `gate_mode="residual"`, which has no gate.

        Example:

        >>> import keras, numpy as np
        >>> from keras_highway import HighwayDense
        >>> gate = HighwayDense(gate_bias=-2.0).compute_gate(np.zeros((1, 3)))
        >>> [round(float(value), 4) for value in keras.ops.convert_to_numpy(gate)[0]]
        [0.1192, 0.1192, 0.1192]
        """
        if self.gate_mode == "residual":
            raise ValueError(
                explain(
                    f"`{type(self).__name__}.compute_gate` needs a gate.",
                    f"layer {self.name!r} with gate_mode='residual'",
                    "Use one of the other gate modes.",
                )
            )
        if not isinstance(inputs, keras.KerasTensor):
            inputs = keras.ops.convert_to_tensor(inputs, dtype=self.compute_dtype)
        if not self.built:
            self.build(inputs.shape)
        self.check_input_shape(inputs.shape)
        t = self._gate(self.gate, inputs)
        output_shape = self._output_shape("transform", self.transform, tuple(inputs.shape))
        if 1 in t.shape and tuple(t.shape[1:]) != output_shape[1:]:
            t = t * keras.ops.ones_like(self.transform(inputs))
        return t

    def compute_output_shape(self, input_shape):
        input_shape = self._check_one_input(input_shape)
        transform = self.transform if self.built else self.make_transform(input_shape)
        output_shape = self._output_shape("transform", transform, input_shape)
        needs_shortcut(self, transform, input_shape, output_shape)
        return output_shape

    def compute_mask(self, inputs, previous_mask):
        strides = getattr(self.transform, "strides", 1) if convolution_rank(self.transform) else 1
        if previous_mask is None or set(keras.tree.flatten(strides)) == {1}:
            return previous_mask
        if convolution_rank(self.transform) == 1:
            return previous_mask[:, :: self.transform.strides[0]]
        return None

    def enable_lora(self, rank, **arguments):
        """Adds trainable low-rank matrices to the kernels of transform and gates.

        Args:
            rank, **arguments: As for `enable_lora` of `keras.layers.Dense`.
        """
        if not self.built:
            raise ValueError(
                explain(
                    f"`{type(self).__name__}.enable_lora` needs the weights of the layer.",
                    f"layer {self.name!r}, which is not built",
                    "Call the layer once, or its `build` with an input shape.",
                )
            )
        for layer in self._leaf_layers():
            if hasattr(layer, "enable_lora"):
                layer.enable_lora(rank, **arguments)

    def quantize(self, mode=None, **arguments):
        """Quantizes the sublayers that Keras can quantize, such as `Dense`.

        `model.quantize` does it for all layers of a model.

        Args:
            mode, **arguments: As for `quantize` of `keras.layers.Dense`.
        """
        quantized = False
        for layer in self._leaf_layers():
            with contextlib.suppress(NotImplementedError):
                layer.quantize(mode, **arguments)
                quantized = True
        if not quantized:
            raise NotImplementedError(
                explain(
                    f"Keras quantizes none of the layers inside of this `{type(self).__name__}`.",
                    f"layer {self.name!r} and mode={mode!r}",
                    "Leave it as it is; model.quantize passes over such layers.",
                )
            )

    def make_transform(self, input_shape):
        """The transform for inputs of this shape; subclasses make theirs here."""
        return self.transform

    def check_input_shape(self, input_shape):
        """Raises a `ValueError` for an input that the layer cannot take."""

    def get_config(self):
        config = super().get_config()
        config.update(
            gate_mode=self.gate_mode,
            shortcut=self.shortcut,
            gate_activation=keras.activations.serialize(self.gate_activation),
            gate_kernel_initializer=keras.initializers.serialize(self.gate_kernel_initializer),
            gate_kernel_regularizer=keras.regularizers.serialize(self.gate_kernel_regularizer),
            gate_bias_regularizer=keras.regularizers.serialize(self.gate_bias_regularizer),
            gate_kernel_constraint=keras.constraints.serialize(self.gate_kernel_constraint),
            gate_bias_constraint=keras.constraints.serialize(self.gate_bias_constraint),
        )
        gate_bias = self.gate_bias
        if not isinstance(gate_bias, (str, float, int)):
            gate_bias = keras.initializers.serialize(gate_bias)
        config["gate_bias"] = gate_bias
        for name in self._given:
            config[name] = keras.saving.serialize_keras_object(getattr(self, name))
        if changes := self._sublayer_changes():
            config["sublayer_changes"] = changes
        return config

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        changes = config.pop("sublayer_changes", None)
        for name in ("transform", "gate", "carry"):
            if name in config:
                config[name] = keras.saving.deserialize_keras_object(config[name])
        layer = super().from_config(config)
        layer._changes = changes
        return layer

    def _leaf_layers(self):
        layers = self._flatten_layers(include_self=False)
        return [layer for layer in layers if not layer._layers]

    def _gate(self, layer, inputs):
        value = self._computed(layer(inputs))
        return self.gate_activation(value) if ends_linear(layer) else value

    def _computed(self, value):
        """Brings integers, and the outputs of sublayers with a dtype of their own, to ours."""
        return keras.ops.cast(value, self.compute_dtype)

    def _check_one_input(self, input_shape):
        """The shape as a tuple, if it is one and of a kind that the layer takes."""
        shapes = list(input_shape.values()) if isinstance(input_shape, dict) else input_shape
        if isinstance(input_shape, dict) or (shapes and isinstance(shapes[0], (list, tuple))):
            raise ValueError(
                explain(
                    f"`{type(self).__name__}` takes one input.",
                    f"{len(shapes)} of the shapes {input_shape} in layer {self.name!r}",
                    "Join them first, for example with keras.layers.Concatenate().",
                )
            )
        self.check_input_shape(tuple(input_shape))
        return tuple(input_shape)

    def _check_sizes(self, x_shape, h_shape):
        """Finds in a call what was unknown to `build`; arithmetic would repeat an axis of size 1.

        A part of the batch axis may be unknown, and the wrapped layer may be any.
        """
        if tuple(x_shape) != tuple(h_shape) and any(
            before != after and None not in (before, after)
            for before, after in zip(x_shape, h_shape, strict=True)
        ):
            raise ValueError(
                explain(
                    f"`{type(self).__name__}` mixes its input with its transform's output, so both "
                    "must have one shape.",
                    f"carried shape {tuple(x_shape)} and transformed shape {tuple(h_shape)} "
                    f"in layer {self.name!r}",
                    "Use a transform that keeps the size.",
                )
            )

    def _make_sublayers(self, input_shape):
        """The sublayers that were not given, by attribute, not built yet."""
        transform = self.make_transform(input_shape)
        output_shape = self._output_shape("transform", transform, input_shape)
        made = {} if "transform" in self._given else {"transform": transform}
        if needs_shortcut(self, transform, input_shape, output_shape):
            made["shortcut_layer"] = make_shortcut(self, transform, output_shape)
        kernel, bias = self.gate_kernel_initializer, self.gate_bias_initializer
        if self.gate_mode != "residual" and "gate" not in self._given:
            made["gate"] = self._make_gate("gate", transform, output_shape, kernel, bias)
        if self.gate_mode == "independent" and "carry" not in self._given:
            made["carry"] = self._make_gate(
                "carry", transform, output_shape, Negated(kernel), Negated(bias)
            )
        return made

    def _make_gate(self, name, transform, output_shape, kernel_initializer, bias_initializer):
        if not convolution_rank(transform) and any(
            getattr(layer, "data_format", None) == "channels_first"
            for layer in transform._flatten_layers()
        ):
            raise ValueError(
                explain(
                    f"`{type(self).__name__}` makes no {name} for a channels_first "
                    f"{type(transform).__name__}.",
                    f"transform={transform.name!r}",
                    f"Pass a layer that computes it as `{name}=`.",
                )
            )
        return same_geometry(
            transform,
            output_shape,
            kernel_size=self.gate_kernel_size,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=self.gate_kernel_regularizer,
            bias_regularizer=self.gate_bias_regularizer,
            kernel_constraint=self.gate_kernel_constraint,
            bias_constraint=self.gate_bias_constraint,
            name=name,
            dtype=self.dtype_policy,
        )

    def _check_gate_shapes(self, input_shape):
        output_shape = self._output_shape("transform", self.transform, input_shape)
        for name in ("gate", "carry"):
            gate = getattr(self, name)
            if gate is None:
                continue
            gate_shape = self._output_shape(name, gate, input_shape)
            if len(gate_shape) != len(output_shape) or any(
                size not in (1, None, wanted) and wanted is not None
                for size, wanted in zip(gate_shape, output_shape, strict=True)
            ):
                raise ValueError(
                    explain(
                        f"The {name} of `{type(self).__name__}` must have the shape of the "
                        "transform's output, or broadcast to it.",
                        f"gate shape {gate_shape} and output shape {output_shape} "
                        f"in layer {self.name!r}",
                        f"Pass as `{name}=` a layer with the output shape {output_shape}.",
                    )
                )

    def _output_shape(self, argument, layer, input_shape):
        owner = type(self).__name__
        return output_shape_of(owner, argument, layer, input_shape, self.compute_dtype)

    def _sublayer_changes(self):
        """What was changed in the sublayers made here: dtypes (int8), LoRA, `trainable`.

        A layer that makes its sublayers anew when loaded needs it to make them the same.
        """
        if not self.built:
            return self._changes
        changes = {}
        for name, config in self._as_made.items():
            as_made = {**config, "trainable": self.trainable}
            now = getattr(self, name).get_config()
            changed = {key: value for key, value in now.items() if value != as_made.get(key)}
            if changed:
                changes[name] = changed
        return changes

"""Initializers of highway networks: the gate bias, and the two uniform rules."""

import math

import keras

from keras_highway.validation import (
    check_number,
    check_positive_integer,
    did_you_mean,
    explain,
)

GATE_BIAS_PRESETS = {"shallow": -1.0, "deep": -2.0, "very_deep": -4.0}


@keras.saving.register_keras_serializable(package="keras_highway")
class GateBias(keras.initializers.Constant):
    """Starts every gate of a layer at the same bias; a negative bias carries the input.

    On zero input the gate is then `T = sigmoid(value)`: 0.269 at -1, 0.119 at -2, 0.018 at -4.
    With a random gate kernel the mean gate on real data lies somewhat above that.

    | preset        | value | from                                                             |
    |---------------|-------|------------------------------------------------------------------|
    | `"shallow"`   | -1    | the 10-layer MNIST networks of Srivastava et al. (2015)          |
    | `"deep"`      | -2    | their 50-layer MNIST and 19-layer CIFAR-10 networks              |
    | `"very_deep"` | -4    | their 50-layer CIFAR-100 network                                 |

    A preset's name is accepted wherever a layer takes `gate_bias`. When the depth is known,
    `GateBias.for_depth` is the better choice.

    Reference:

    - Srivastava, Greff, Schmidhuber (2015), Training Very Deep Networks,
      https://arxiv.org/abs/1507.06228 (there the value is called b_T)

    Args:
        value: A finite number, or the name of a preset.

    Raises:
        TypeError: If `value` is neither a number nor a string.
        ValueError: If `value` is not finite, or an unknown preset.

    Example:

    >>> from keras_highway import GateBias
    >>> GateBias("deep").value
    -2.0
    >>> round(GateBias.for_depth(50).value, 2)
    -4.27
    """

    def __init__(self, value):
        if isinstance(value, str):
            if value not in GATE_BIAS_PRESETS:
                raise ValueError(_unknown_preset("GateBias", "value", value))
            value = GATE_BIAS_PRESETS[value]
        super().__init__(check_number("GateBias", "value", value))

    def __repr__(self):
        return f"GateBias({self.value:g})"

    @classmethod
    def for_depth(cls, depth, carry=0.5):
        """The bias at which `depth` layers together carry the share `carry` of their input.

        Solves `(1 - sigmoid(b)) ** depth = carry` for b. A carry of one half gives -2.63 for
        10 layers, -3.34 for 20, -4.27 for 50, -4.97 for 100 and -7.17 for 900.

        Args:
            depth: Number of highway layers, a positive integer.
            carry: Share of the input that reaches the end along the carry path at
                initialisation, between 0 and 1, both excluded. Defaults to `0.5`.

        Raises:
            TypeError: If `depth` is no integer or `carry` no number.
            ValueError: If either is out of its range.
        """
        depth = check_positive_integer("GateBias.for_depth", "depth", depth)
        carry = check_number("GateBias.for_depth", "carry", carry)
        if not 0.0 < carry < 1.0:
            raise ValueError(
                explain(
                    "`GateBias.for_depth(carry=...)` must lie between 0 and 1, both excluded.",
                    f"carry={carry!r}",
                    "Give the share to carry, for example carry=0.5.",
                )
            )
        log_carry = math.log(carry) / depth
        return cls(math.log(-math.expm1(log_carry)) - log_carry)


@keras.saving.register_keras_serializable(package="keras_highway")
class StandardUniform(keras.initializers.VarianceScaling):
    """Draws from U[-1/sqrt(n), 1/sqrt(n)], n being the number of inputs of a unit.

    The rule that Glorot & Bengio (2010) call standard (their equation 1); it is what PyTorch's
    `nn.Linear` does. The variance times n is 1/3, so signals shrink from layer to layer.

    Reference:

    - Glorot, Bengio (2010), Understanding the difficulty of training deep feedforward neural
      networks, https://proceedings.mlr.press/v9/glorot10a.html

    Args:
        fan_in: The n of the formula. Defaults to `None`, the fan-in of the kernel drawn. Give it
            for a bias, whose shape does not tell how many inputs its units have.
        seed: Integer or `keras.random.SeedGenerator`. Defaults to `None`, a seed from Keras's
            global one.

    Example:

    >>> import keras
    >>> from keras_highway import StandardUniform
    >>> kernel = keras.ops.convert_to_numpy(StandardUniform(seed=0)((100, 50)))
    >>> bool(abs(kernel).max() <= 0.1)
    True
    """

    def __init__(self, fan_in=None, seed=None):
        super().__init__(scale=1.0 / 3.0, mode="fan_in", distribution="uniform", seed=seed)
        if fan_in is not None:
            fan_in = check_positive_integer("StandardUniform", "fan_in", fan_in)
        self.fan_in = fan_in

    def __call__(self, shape, dtype=None):
        if self.fan_in is None:
            return super().__call__(shape, dtype=dtype)
        limit = 1.0 / math.sqrt(self.fan_in)
        return keras.random.uniform(shape, -limit, limit, dtype=dtype, seed=self.seed)

    def get_config(self):
        return {"fan_in": self.fan_in, "seed": super().get_config()["seed"]}


@keras.saving.register_keras_serializable(package="keras_highway")
class NormalizedUniform(keras.initializers.VarianceScaling):
    """Draws from U[-sqrt(6)/sqrt(n_in + n_out), +sqrt(6)/sqrt(n_in + n_out)].

    The rule that Glorot & Bengio (2010) propose (their equation 16). It is the same as
    `keras.initializers.GlorotUniform`, under the name that the paper gives it.

    Reference:

    - Glorot, Bengio (2010), Understanding the difficulty of training deep feedforward neural
      networks, https://proceedings.mlr.press/v9/glorot10a.html

    Args:
        seed: Integer or `keras.random.SeedGenerator`. Defaults to `None`, a seed from Keras's
            global one.

    Example:

    >>> import keras
    >>> from keras_highway import NormalizedUniform
    >>> ours, theirs = NormalizedUniform(seed=1), keras.initializers.GlorotUniform(seed=1)
    >>> bool(keras.ops.all(ours((4, 3)) == theirs((4, 3))))
    True
    """

    def __init__(self, seed=None):
        super().__init__(scale=1.0, mode="fan_avg", distribution="uniform", seed=seed)

    def get_config(self):
        return {"seed": super().get_config()["seed"]}


@keras.saving.register_keras_serializable(package="keras_highway")
class Negated(keras.initializers.Initializer):
    """Minus the values of `variable` or, where that is not set, of another initializer.

    A carry gate whose kernel and bias start at minus those of the transform gate gives
    `C = sigmoid(-z) = 1 - sigmoid(z) = 1 - T` for every input. It reads the variables of that
    gate, since an initializer called twice may give other values.
    """

    variable = None

    def __init__(self, initializer):
        self.initializer = keras.initializers.get(initializer)

    def get_config(self):
        return {"initializer": keras.initializers.serialize(self.initializer)}

    def __call__(self, shape, dtype=None):
        if self.variable is not None:
            return -keras.ops.cast(self.variable, dtype)
        return -self.initializer(shape, dtype=dtype)


def clone_initializer(initializer):
    """A Keras initializer from what a user gives, never the user's own object.

    An unseeded initializer object repeats its values at each call, so one object that is handed
    to several kernels would make them equal; a clone draws its own seed, and keeps an explicit one.
    One with a `SeedGenerator` draws anew at each call, and is kept.
    """
    initializer = keras.initializers.get(initializer)
    draws_anew = isinstance(getattr(initializer, "seed", None), keras.random.SeedGenerator)
    if isinstance(initializer, keras.initializers.Initializer) and not draws_anew:
        return initializer.clone()
    return initializer


def get_gate_bias(owner, gate_bias):
    """The initializer that a layer's `gate_bias` stands for."""
    if isinstance(gate_bias, str):
        if gate_bias in GATE_BIAS_PRESETS:
            return GateBias(gate_bias)
        try:
            return keras.initializers.get(gate_bias)
        except ValueError:
            raise ValueError(_unknown_preset(owner, "gate_bias", gate_bias)) from None
    if isinstance(gate_bias, (dict, keras.initializers.Initializer)) or callable(gate_bias):
        return clone_initializer(gate_bias)
    try:
        value = check_number(owner, "gate_bias", gate_bias)
    except TypeError:
        received = f"{gate_bias!r} of type {type(gate_bias).__name__}"
        fix = "Give a number, for example -2.0."
        raise TypeError(_gate_bias_message(owner, "gate_bias", received, fix)) from None
    return GateBias(value)


def _unknown_preset(owner, argument, value):
    if value == "auto":
        fix = "For a bias by depth use GateBias.for_depth(depth)."
    else:
        try:
            fix = f"Give the number without quotes: {argument}={float(value):g}."
        except ValueError:
            fix = did_you_mean(value, GATE_BIAS_PRESETS)
    return _gate_bias_message(owner, argument, repr(value), fix)


def _gate_bias_message(owner, argument, received, fix):
    presets = ", ".join(f"{name!r} ({bias:g})" for name, bias in sorted(GATE_BIAS_PRESETS.items()))
    takes = (
        "a number or a preset" if owner == "GateBias" else "a number, an initializer or a preset"
    )
    return explain(
        f"`{owner}({argument}=...)` takes {takes}: {presets}.", f"{argument}={received}", fix
    )

"""How the outputs of layers are distributed."""

import keras
import numpy as np

from keras_highway.analysis.paths import find_layers, length_of, rows_of, unit_layers
from keras_highway.layers import Highway
from keras_highway.validation import explain

RANGES = {
    keras.activations.sigmoid: (0.0, 1.0),
    keras.activations.hard_sigmoid: (0.0, 1.0),
    keras.activations.tanh: (-1.0, 1.0),
    keras.activations.hard_tanh: (-1.0, 1.0),
    keras.activations.softsign: (-1.0, 1.0),
}
ACTIVATION_LAYERS = (
    keras.layers.Activation,
    keras.layers.ELU,
    keras.layers.LeakyReLU,
    keras.layers.PReLU,
    keras.layers.ReLU,
)
MARGIN = 0.025  # of the range, at either end, in which a value counts as saturated


def activated_layers(model):
    """The layers of `model` that have weights, or are an activation, by shortest unique path."""
    return {
        name: layer
        for name, layer in unit_layers(model).items()
        if layer.weights or isinstance(layer, ACTIVATION_LAYERS)
    }


def saturated_ends(layer):
    """The two values outside of which an output of `layer` is saturated; `None` if it is unbounded.

    They lie 2.5 % of the activation's range from its ends: a tanh is saturated beyond +-0.95. The
    output of a highway layer is unbounded, whatever its activation.
    """
    bounds = RANGES.get(getattr(layer, "activation", None))
    if bounds is None or isinstance(layer, Highway):
        return None
    low, high = bounds
    margin = MARGIN * (high - low)
    return low + margin, high - margin


def output_tensor(outputs):
    """The first of the outputs of a layer that has floating-point numbers; `None` if none has."""
    for output in keras.tree.flatten(outputs):
        dtype = getattr(output, "dtype", None)
        if dtype is not None and keras.backend.is_float_dtype(dtype):
            return output
    return None


def activation_statistics(model, x, layers=None, batch_size=256):
    """Glorot & Bengio's (2010) quantities of the outputs of each layer, over all units and `x`.

    Args:
        model: A built Keras model.
        x: Inputs as the model takes them: an array `(examples, ...)`, or a list or dict of them.
        layers: List of layers, or of their names. Defaults to `None`: all that have weights or are
            an activation, those inside of nested models, and a layer that is made of layers as one.
        batch_size: Examples that are computed at a time, in inference. Defaults to `256`.

    Returns:
        A dict from layer name to a dict of floats: `"mean"`, `"std"` (standard deviation), `"p98"`
        (98th percentile), and, where the layer's `activation` is bounded, `"saturated"`, the
        fraction within 2.5 % of the range from either end. They are nan for a layer that the model
        does not use.

    Raises:
        TypeError: If `x` is no array or structure of arrays.
        ValueError: If `x` has no examples, or `layers` are not of the model.

    Example:

    >>> import keras, numpy as np
    >>> from keras_highway.analysis import activation_statistics
    >>> layer = keras.layers.Dense(1, "tanh", use_bias=False, kernel_initializer="ones", name="t")
    >>> model = keras.Sequential([keras.Input((1,)), layer])
    >>> activation_statistics(model, np.array([[0.0], [9.0]]))["t"]["saturated"]
    0.5
    """
    if not length_of(x):
        raise ValueError(
            explain(
                "`activation_statistics` takes at least one example.",
                "no examples",
                "Give some inputs.",
            )
        )
    if not model.built:
        model(rows_of(x, 0, 1), training=False)
    if layers is None:
        chosen = activated_layers(model)
    else:
        chosen = find_layers("activation_statistics", model, layers)
    values: dict[str, list[np.ndarray]] = {name: [] for name in chosen}

    def observed(call, seen):
        def call_and_see(*arguments, **keywords):
            outputs = call(*arguments, **keywords)
            if (output := output_tensor(outputs)) is not None:
                seen.append(np.ravel(keras.ops.convert_to_numpy(output)).astype("float64"))
            return outputs

        return call_and_see

    before = {name: vars(layer).get("call") for name, layer in chosen.items()}
    try:
        for name, layer in chosen.items():
            vars(layer)["call"] = observed(layer.call, values[name])
        for start in range(0, length_of(x), batch_size):
            model(rows_of(x, start, start + batch_size), training=False)
    finally:
        for name, layer in chosen.items():
            del vars(layer)["call"]
            if before[name] is not None:
                vars(layer)["call"] = before[name]
    return {
        name: _statistics(np.concatenate([np.empty(0), *values[name]]), saturated_ends(layer))
        for name, layer in chosen.items()
    }


def _statistics(values, ends):
    if not len(values):
        values = np.array([np.nan])
    found = {
        "mean": float(values.mean()),
        "std": float(values.std()),
        "p98": float(np.percentile(values, 98)),
    }
    if ends is not None:
        found["saturated"] = float(np.mean((values < ends[0]) | (values > ends[1])))
    return found

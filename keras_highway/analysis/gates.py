"""How far the gates of a model are open."""

import keras
import numpy as np

from keras_highway.analysis.paths import layer_names, length_of, rows_of
from keras_highway.layers import Highway
from keras_highway.validation import explain


def gated_layers(model):
    """The highway layers inside `model` that have a gate, by shortest unique path."""
    return {
        name: layer
        for name, layer in layer_names(model).items()
        if isinstance(layer, Highway) and layer.gate_mode != "residual"
    }


def mean_gates(model, x, batch_size=256):
    """The mean transform gate T of each highway layer over all units and all of `x`.

    Any model will do: nested ones, subclassed ones, highway layers inside of other layers, shared
    ones (the mean of all uses), several inputs.

    Args:
        model: A Keras model or layer. One that is not built yet is built by the first batch.
        x: Inputs as the model takes them: an array `(examples, ...)`, or a list or dict of them.
        batch_size: Examples that are computed at a time. Defaults to `256`.

    Returns:
        A dict from layer name (its shortest unique path, such as `"encoder/highway_dense"`) to a
        float, in the order of the model's layers; empty if no highway layer has a gate. It is nan
        for a layer that the model does not use in inference.

    Raises:
        TypeError: If `x` is no array or structure of arrays.
        ValueError: If `x` has no examples.

    Example:

    >>> import keras, numpy as np
    >>> from keras_highway import HighwayDense
    >>> from keras_highway.analysis import mean_gates
    >>> model = keras.Sequential([keras.Input((3,)), HighwayDense(gate_bias=-2.0, name="hw")])
    >>> {name: round(gate, 4) for name, gate in mean_gates(model, np.zeros((5, 3))).items()}
    {'hw': 0.1192}
    """
    if not length_of(x):
        raise ValueError(
            explain("`mean_gates` takes at least one example.", "no examples", "Give some inputs.")
        )
    if not model.built:
        model(rows_of(x, 0, 1), training=False)
    layers = gated_layers(model)
    totals = {name: [0.0, 0] for name in layers}  # the sum of T, and how many there were

    def observer(total):
        def observe(gate):
            gate = keras.ops.convert_to_numpy(keras.ops.cast(gate, "float32"))
            total[0] += float(gate.sum(dtype="float64"))
            total[1] += gate.size

        return observe

    before = {name: layer.gate_observer for name, layer in layers.items()}
    try:
        for name, layer in layers.items():
            layer.gate_observer = observer(totals[name])
        for start in range(0, length_of(x) if layers else 0, batch_size):
            model(rows_of(x, start, start + batch_size), training=False)
    finally:
        for name, layer in layers.items():
            layer.gate_observer = before[name]
    return {name: total / count if count else np.nan for name, (total, count) in totals.items()}

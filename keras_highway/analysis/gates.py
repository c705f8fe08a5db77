"""How far the gates of a model are open."""

import keras
import numpy as np

from keras_highway.layers import Highway
from keras_highway.validation import explain


def mean_gates(model, x, batch_size=256):
    """The mean transform gate T of each highway layer over all units and all of `x`.

    Args:
        model: A built Functional or Sequential model, its highway layers not inside of other
            models. A layer that is used several times is measured at its first use.
        x: Array of inputs, `(examples, ...)`.
        batch_size: Examples that are computed at a time. Defaults to `256`.

    Returns:
        A dict from layer name to a float between 0 and 1, in the order of the model's layers;
        empty if it has no highway layer with a gate.

    Raises:
        TypeError: If the model's layers cannot be listed with their inputs.
        ValueError: If there are highway layers inside of nested models.

    Example:

    >>> import keras, numpy as np
    >>> from keras_highway import HighwayDense
    >>> from keras_highway.analysis import mean_gates
    >>> model = keras.Sequential([keras.Input((3,)), HighwayDense(gate_bias=-2.0, name="hw")])
    >>> {name: round(gate, 4) for name, gate in mean_gates(model, np.zeros((5, 3))).items()}
    {'hw': 0.1192}
    """
    if not getattr(model, "inputs", None):
        raise TypeError(
            explain(
                "`mean_gates` takes a Functional or Sequential model.",
                f"{type(model).__name__}",
                "Call `compute_gate` of the layers of a subclassed model instead.",
            )
        )
    nested = [
        layer
        for layer in model.layers
        if isinstance(layer, keras.Model)
        and any(isinstance(part, (Highway, keras.Model)) for part in layer.layers)
    ]
    if nested:
        raise ValueError(
            explain(
                "`mean_gates` measures the highway layers of the model itself.",
                f"the nested model {nested[0].name!r}, which may hold others",
                "Measure that model by itself, on its own inputs.",
            )
        )
    layers = [
        layer
        for layer in model.layers
        if isinstance(layer, Highway) and layer.gate_mode != "residual"
    ]
    if not layers:
        return {}
    inputs = model.inputs[0] if len(model.inputs) == 1 else model.inputs
    inputs_of = keras.Model(inputs, [layer.input for layer in layers])
    sums, count = np.zeros(len(layers)), 0
    for start in range(0, len(x), batch_size):
        batch = x[start : start + batch_size]
        for index, inputs in enumerate(keras.tree.flatten(inputs_of(batch, training=False))):
            gate = keras.ops.convert_to_numpy(layers[index].compute_gate(inputs))
            sums[index] += gate.mean(dtype="float64") * len(batch)
        count += len(batch)
    return {layer.name: float(total / count) for layer, total in zip(layers, sums, strict=True)}

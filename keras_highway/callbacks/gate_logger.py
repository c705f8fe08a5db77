"""The mean gate of each highway layer, during `fit`."""

import keras
import numpy as np

from keras_highway.analysis.gates import gated_layers, mean_gates
from keras_highway.callbacks import in_step
from keras_highway.callbacks.logger import Logger
from keras_highway.validation import explain


class GateLogger(Logger):
    """Logs the mean transform gate T of each highway layer in each epoch of `fit`.

    Without `data` it is the mean over all units and all training batches of the epoch, measured
    inside the training step, as the weights were at each batch. Validation is not counted. Nothing
    is left in the model, its optimizer or its files, and the trained weights are the same with and
    without it.

    Put it before callbacks that use its keys, such as `EarlyStopping`, `ModelCheckpoint` or
    `CSVLogger`: Keras calls them in order.

    Keys in `logs`, and so in the `History`: `gate_mean`, the mean over the layers, and
    `gate_mean/<layer>`, where `<layer>` is the shortest path that no other layer has. Values are
    Python floats between 0 (carries all) and 1 (transforms all).

    Args:
        layers: List of layers, or of their names, to watch. Defaults to `None`, all highway layers
            that have a gate.
        data: Inputs on which the gates are measured at the end of each epoch (without dropout)
            instead: an array `(examples, ...)`, or a list or dict of them. Defaults to `None`.
        per_layer_logs: Whether `logs` get the keys of the layers, besides the total; `history`
            has them anyway. Defaults to `True`.
        every: Adds a row to `history` every so many steps, for a curve within an epoch. Defaults
            to `None`, one row an epoch.

    Attributes:
        history: Dict of lists, one entry for each measurement: `"epoch"` (from zero), `"step"`
            (training steps until then), and all keys.

    Raises:
        TypeError, ValueError: If an argument is outside of its values, or, when `fit` begins, if
            the model has no such layer.

    Example:

    >>> import keras, numpy as np
    >>> from keras_highway import GateLogger, HighwayDense
    >>> model = keras.Sequential([keras.Input((3,)), HighwayDense(gate_bias=-2.0, name="hw")])
    >>> model.compile("sgd", "mse")
    >>> x = np.zeros((5, 3))
    >>> log = model.fit(x, x, epochs=2, verbose=0, callbacks=[GateLogger()]).history
    >>> [round(gate, 4) for gate in log["gate_mean/hw"]]
    [0.1192, 0.1192]
    """

    watches = "a highway layer that has a gate"

    def default_layers(self, model):
        return gated_layers(model)

    def place(self, watch):
        super().place(watch)
        gated = {id(layer) for layer in gated_layers(watch.model).values()}
        for name, layer in self._layers.items():
            if id(layer) not in gated:
                raise ValueError(
                    explain(
                        "`GateLogger(layers=...)` takes highway layers that have a gate.",
                        f"layer {name!r} of type {type(layer).__name__}",
                        "Name others, or leave `layers` out.",
                    )
                )
        if self.data is None:
            self._store = watch.make_store(len(self._layers), 2)
            for row, layer in enumerate(self._layers.values()):
                watch.put(layer, "gate_observer", self._observer(row, layer.gate_observer))

    def take_sums(self):
        return self._store.take()

    def values_of(self, sums):
        with np.errstate(invalid="ignore"):
            return self._keyed(sums[:, 0] / sums[:, 1])

    def layers_missing_in(self, sums):
        return [name for name, (_, count) in zip(self._layers, sums, strict=True) if not count]

    def measure_data(self, model):
        gates = mean_gates(model, self.data)
        by_layer = {id(layer): gates[name] for name, layer in gated_layers(model).items()}
        return self._keyed([by_layer[id(layer)] for layer in self._layers.values()])

    def release(self):
        super().release()
        self._store = None

    def _keyed(self, means):
        known = [mean for mean in means if not np.isnan(mean)] or [np.nan]
        total = {"gate_mean": float(np.mean(means if len(known) == len(means) else known))}
        by_layer = zip(self._layers, means, strict=True)
        return total | {f"gate_mean/{name}": float(mean) for name, mean in by_layer}

    def _observer(self, row, another):
        store, watch = self._store, self._watch

        def observe(gate):
            if another is not None:
                another(gate)
            if watch.batch_size is not None:
                total = keras.ops.sum(in_step.at_least_float32(gate))
                store.add(row, [total, keras.ops.size(gate)])

        return observe

"""How the outputs of each layer are distributed, during `fit`."""

import keras
import numpy as np

from keras_highway.analysis.activations import (
    activated_layers,
    activation_statistics,
    output_tensor,
    saturated_ends,
)
from keras_highway.callbacks import in_step
from keras_highway.callbacks.logger import Logger


class ActivationLogger(Logger):
    """Logs how the outputs of each layer are distributed in each epoch, for any Keras model.

    The quantities of Glorot & Bengio (2010): mean, standard deviation, the fraction of saturated
    outputs, and of `data` the 98th percentile. Without `data` they are over all units and all
    training batches of the epoch, measured inside the training step. Validation is not counted.
    Nothing is left in the model, its optimizer or its files, and the trained weights are the same
    with and without it.

    Put it before callbacks that use its keys, such as `EarlyStopping`, `ModelCheckpoint` or
    `CSVLogger`: Keras calls them in order.

    Keys in `logs`, and so in the `History`, as Python floats: `activation_mean/<layer>`,
    `activation_std/<layer>`, `activation_p98/<layer>` (with `data`), and, for a layer whose
    `activation` is sigmoid, tanh or softsign or the hard form of one,
    `activation_saturated/<layer>`: the fraction within 2.5 % of the range from either end. Without
    `/<layer>`: the means over the layers. `<layer>` is the shortest path that no other layer has.

    Args:
        layers: List of layers, or of their names, to watch, at any depth. Defaults to `None`: all
            that have weights or are an activation, those inside of nested models, and a highway
            layer, or any other that is made of layers, as one.
        data: Inputs that the model is computed on at the end of each epoch (without dropout)
            instead: an array `(examples, ...)`, or a list or dict of them. Defaults to `None`.
        per_layer_logs: Whether `logs` get the keys of the layers, besides the totals; `history`
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
    >>> from keras_highway import ActivationLogger
    >>> layer = keras.layers.Dense(1, "tanh", use_bias=False, kernel_initializer="ones", name="t")
    >>> model = keras.Sequential([keras.Input((1,)), layer])
    >>> model.compile("sgd", "mse")
    >>> x = np.array([[0.0], [9.0]])
    >>> log = model.fit(x, np.tanh(x), verbose=0, callbacks=[ActivationLogger()]).history
    >>> log["activation_saturated/t"]
    [0.5]
    """

    watches = "a layer that has weights or is an activation"

    def default_layers(self, model):
        return activated_layers(model)

    def place(self, watch):
        super().place(watch)
        self._ends = {name: saturated_ends(layer) for name, layer in self._layers.items()}
        if self.data is None:
            # Sums of mean, variance and squared mean by value; how many values; saturated ones.
            self._store = watch.make_store(len(self._layers), 5)
            for row, (name, layer) in enumerate(self._layers.items()):
                watch.put(layer, "call", self._observed(row, self._ends[name], layer.call))

    def take_sums(self):
        return self._store.take()

    def values_of(self, sums):
        statistics = {}
        with np.errstate(invalid="ignore"):
            for (name, ends), (*sums_of, count, outside) in zip(
                self._ends.items(), sums, strict=True
            ):
                mean, variance, squared_mean, saturated = np.array([*sums_of, outside]) / count
                between = np.maximum(squared_mean - mean**2, 0.0)
                statistics[name] = {"mean": mean, "std": np.sqrt(variance + between)}
                if ends is not None:
                    statistics[name]["saturated"] = saturated
        return self._keyed(statistics)

    def layers_missing_in(self, sums):
        return [name for name, row in zip(self._layers, sums, strict=True) if not row[3]]

    def measure_data(self, model):
        layers = list(self._layers.values())
        return self._keyed(activation_statistics(model, self.data, layers))

    def release(self):
        super().release()
        self._store = None
        self._ends = {}

    def _keyed(self, statistics):
        totals: dict[str, float] = {}
        by_layer: dict[str, float] = {}
        for quantity in ("mean", "std", "p98", "saturated"):
            values = {name: of[quantity] for name, of in statistics.items() if quantity in of}
            if values:
                key = f"activation_{quantity}"
                known = [value for value in values.values() if not np.isnan(value)]
                totals[key] = float(np.mean(known)) if known else float("nan")
                by_layer |= {f"{key}/{name}": float(value) for name, value in values.items()}
        return totals | by_layer

    def _observed(self, row, ends, call):
        ops, store, watch = keras.ops, self._store, self._watch

        def call_and_see(*arguments, **keywords):
            outputs = call(*arguments, **keywords)
            output = output_tensor(outputs)
            if watch.batch_size is not None and output is not None:
                values = in_step.at_least_float32(output)
                count = ops.cast(ops.size(values), values.dtype)
                mean = ops.mean(values)
                sums = [mean * count, ops.sum(ops.square(values - mean)), mean * mean * count]
                saturated = ops.zeros_like(mean)
                if ends is not None:
                    is_inside = ops.logical_and(values >= ends[0], values <= ends[1])
                    saturated = ops.sum(ops.cast(ops.logical_not(is_inside), values.dtype))
                store.add(row, [*sums, count, saturated])
            return outputs

        return call_and_see

"""The gradient norm of each layer, during `fit`."""

import keras
import numpy as np

from keras_highway.analysis.gradients import compute_gradients
from keras_highway.analysis.paths import length_of, unit_layers
from keras_highway.callbacks import in_step
from keras_highway.callbacks.alarm import make_alarms
from keras_highway.callbacks.logger import Logger
from keras_highway.validation import explain


class GradientNormLogger(Logger):
    """Logs the gradient norm of each layer in each epoch of `fit`, for any Keras model.

    Without `data` it is that of the gradient which the optimizer receives in each training step:
    after class weights and regularizers, summed over replicas, unscaled under loss scaling, before
    accumulation and clipping. A step that loss scaling skips is not counted. The norm is the l2
    norm over all trainable weights of the layer; the epoch's value is the mean over its steps,
    weighted by batch size. Nothing is left in the model, its optimizer or its files, and the
    trained weights are the same with and without it.

    Put it before callbacks that use its keys, such as `EarlyStopping`, `ModelCheckpoint` or
    `CSVLogger`: Keras calls them in order.

    Keys in `logs`, and so in the `History`: `gradient_norm`, that of all weights together (in each
    step the root of the sum of the layers' squares), and `gradient_norm/<layer>`, where `<layer>`
    is the shortest path that no other layer has. Values are Python floats; nan and infinity are
    shown as they are.

    Args:
        layers: List of layers, or of their names, to watch, at any depth: `"block/gate"`. Defaults
            to `None`: all that have trainable weights, those inside of nested models, and a highway
            layer, or any other that is made of layers, as one.
        data: `(x, y)` or `(x, y, sample_weight)`, a batch on which the gradient of the model's loss
            is computed at the end of each epoch (without dropout) instead. Defaults to `None`.
        per_layer_logs: Whether `logs` get the keys of the layers, besides the total; `history`
            has them anyway. Defaults to `True`.
        every: Adds a row to `history` every so many steps, for a curve within an epoch. Defaults
            to `None`, one row an epoch.
        on_vanishing: What happens in the first step in which the norm of a layer is below `floor`:
            `"warn"` names the layer and the step when the numbers are next read, at the end of the
            epoch or sooner; `"stop"` does so after the step and ends training, for which every step
            is waited for. Defaults to `None`, nothing.
        on_exploding: The same for a norm above `ceiling`, or not finite. Defaults to `None`.
        floor, ceiling: The bounds. Default to `1e-8` and `1e4`.

    Attributes:
        history: Dict of lists, one entry for each measurement: `"epoch"` (from zero), `"step"`
            (training steps until then), and all keys.

    Raises:
        TypeError, ValueError: If an argument is outside of its values, or, when `fit` begins, if
            the model has no such layer.

    Example:

    >>> import keras, numpy as np
    >>> from keras_highway import GradientNormLogger
    >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
    >>> model.set_weights([np.zeros((1, 1))])
    >>> model.compile("sgd", "mse")
    >>> x, y = np.ones((4, 1)), np.full((4, 1), 3.0)
    >>> log = model.fit(x, y, verbose=0, callbacks=[GradientNormLogger()]).history
    >>> log["gradient_norm"]
    [6.0]
    """

    watches = "a layer that has trainable weights"

    def __init__(
        self,
        layers=None,
        *,
        data=None,
        per_layer_logs=True,
        every=None,
        on_vanishing=None,
        on_exploding=None,
        floor=1e-8,
        ceiling=1e4,
    ):
        self.alarms = make_alarms(on_vanishing, on_exploding, floor, ceiling)
        if self.alarms and data is not None:
            raise ValueError(
                explain(
                    "`GradientNormLogger` looks at training steps for gradients that vanish or "
                    "explode.",
                    "data and on_vanishing or on_exploding",
                    "Leave out one of the two.",
                )
            )
        super().__init__(layers, data=data, per_layer_logs=per_layer_logs, every=every)

    def check_data(self, data):
        if not isinstance(data, (tuple, list)) or len(data) not in (2, 3):
            raise TypeError(
                explain(
                    "`GradientNormLogger(data=...)` must be (x, y) or (x, y, sample_weight).",
                    f"an object of type {type(data).__name__}",
                    "Give inputs and targets of one batch as a tuple.",
                )
            )
        length_of(data[0])

    def default_layers(self, model):
        return {
            name: layer for name, layer in unit_layers(model).items() if layer.trainable_variables
        }

    def place(self, watch):
        super().place(watch)
        self._variables = self._variables_by_layer(watch.model)
        for name, variables in self._variables.items():
            if not variables:
                raise ValueError(
                    explain(
                        f"`GradientNormLogger(layers=...)` needs {self.watches}.",
                        f"layer {name!r}",
                        "Name others, or leave `layers` out.",
                    )
                )
        if self.data is None:
            count = len(self._variables) + 1  # the last one is the total
            self._store = watch.make_store(2, count)
            for alarm in self.alarms:
                alarm.place(list(self._variables), watch)

    def observe_gradients(self, optimizer, gradients, variables):
        if self.data is not None:
            return
        gradients, variables = zip(
            *(
                (gradient, variable)
                for gradient, variable in zip(gradients, variables, strict=True)
                # A few variables, scales of quantization, take their new value by this way.
                if not getattr(variable, "overwrite_with_gradient", False)
            ),
            strict=True,
        )
        norms, present = self._norms_by_layer(gradients, variables, self._watch.model.jit_compile)
        if optimizer.loss_scale_factor:
            norms = norms / optimizer.loss_scale_factor
        weight = keras.ops.cast(self._watch.batch_size, self._store.dtype)
        weights = keras.ops.convert_to_tensor(present, self._store.dtype) * weight
        self._store.add(0, norms * weights)
        self._store.add(1, weights)
        for alarm in self.alarms:
            alarm.note(norms[:-1], present[:-1])

    def take_sums(self):
        return self._store.take()

    def values_of(self, sums):
        with np.errstate(invalid="ignore"):
            return self._keyed(sums[0] / sums[1])

    def layers_missing_in(self, sums):
        return [name for name, weight in zip(self._variables, sums[1], strict=False) if not weight]

    def measure_data(self, model):
        x, y, *rest = self.data
        sample_weight = rest[0] if rest else None
        gradients = compute_gradients(model, x, y, sample_weight=sample_weight)
        squares = {
            id(variable): float(np.sum(np.square(gradient, dtype="float64")))
            for variable, gradient in zip(model.trainable_variables, gradients, strict=True)
        }
        norms = [
            sum(squares.get(id(variable), 0.0) for variable in variables) ** 0.5
            for variables in self._variables.values()
        ]
        return self._keyed([*norms, sum(squares.values()) ** 0.5])

    def after_execution(self):
        super().after_execution()
        for alarm in self.alarms:
            if alarm.action == "stop":
                alarm.report()

    def release(self):
        super().release()
        self._store = None
        self._variables = {}
        for alarm in self.alarms:
            alarm.release()

    def _read(self):
        super()._read()
        for alarm in self.alarms:
            alarm.report()

    def _keyed(self, norms):
        *norms, total = (float(norm) for norm in norms)
        by_layer = zip(self._variables, norms, strict=True)
        return {"gradient_norm": total} | {f"gradient_norm/{name}": norm for name, norm in by_layer}

    def _variables_by_layer(self, model):
        found = {name: layer.trainable_variables for name, layer in self._layers.items()}
        if self.layers is not None:
            return found
        # Those which a model or a wrapper has beside its layers.
        owned = {id(variable) for variables in found.values() for variable in variables}
        others = [v for v in model.trainable_variables if id(v) not in owned]
        return {**found, model.name: others} if others else found

    def _norms_by_layer(self, gradients, variables, xla):
        """Norms by layer and of all, and for which there was anything, inside the step."""
        position = {}
        for index, variable in enumerate(variables):
            position[id(variable)] = position[id(getattr(variable, "value", None))] = index
        members, segments = [], []
        for segment, layer_variables in enumerate(self._variables.values()):
            for variable in layer_variables:
                if id(variable) in position:
                    members.append(position[id(variable)])
                    segments.append(segment)
        total = len(self._variables)
        members += range(len(gradients))
        segments += [total] * len(gradients)
        present = np.isin(np.arange(total + 1), segments).astype("float32")
        known = [index for index, gradient in enumerate(gradients) if gradient is not None]
        norms = in_step.norms_of([gradients[index] for index in known], self._store.dtype, xla)
        if len(known) < len(gradients):  # a weight that the loss does not depend on has zero
            norms = keras.ops.concatenate([norms, keras.ops.zeros((1,), self._store.dtype)])
            places = [known.index(i) if i in known else len(known) for i in range(len(gradients))]
            members = [places[member] for member in members]
        members = keras.ops.convert_to_tensor(members, "int32")
        return in_step.root_of_squares(keras.ops.take(norms, members), segments, total + 1), present

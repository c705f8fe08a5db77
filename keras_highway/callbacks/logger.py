"""What the loggers have in common: which layers, when numbers are read, and where they go."""

import warnings

import keras

from keras_highway.analysis.paths import find_layers, length_of
from keras_highway.callbacks.watch import Watch
from keras_highway.validation import check_positive_integer, explain

# Float32 sums, as on JAX, stay exact to some 1e-6 when they are moved to Python this often.
EXECUTIONS_BETWEEN_READS = 64


class Logger(keras.callbacks.Callback):
    """Base of the loggers: measures layers during `fit` and puts the numbers into `logs`.

    A subclass says which layers there are, what the step adds up, and what the sums mean.

    Attributes:
        history: Dict of lists with one entry for each measurement of the last `fit`: `"epoch"`
            (as Keras counts, from zero), `"step"` (training steps of this `fit` until then), and
            every key of the logger, for every layer.
    """

    watches = ""  # in an error message
    _next_row: int

    def __init__(self, layers=None, *, data=None, per_layer_logs=True, every=None):
        super().__init__()
        owner = type(self).__name__
        if layers is not None:
            layers = _check_layers(owner, layers)
        if data is not None:
            self.check_data(data)
        if every is not None:
            every = check_positive_integer(owner, "every", every)
            if data is not None:
                raise ValueError(
                    explain(
                        f"`{owner}` measures `data` at the end of each epoch, or the training "
                        "batches every so many steps.",
                        f"every={every} and data",
                        "Leave out one of the two.",
                    )
                )
        self.layers = layers
        self.data = data
        self.per_layer_logs = per_layer_logs
        self.every = every
        self.history = {}
        self.release()

    # What a subclass says.

    def check_data(self, data):
        """Raises an exception unless `data` is what `measure_data` takes."""
        length_of(data)

    def default_layers(self, model):
        """Dict from name to layer of what is watched without `layers`."""
        raise NotImplementedError

    def place(self, watch):
        """Makes stores and places taps; called before the training function is compiled."""
        self._watch = watch
        self._layers = self._choose_layers(watch.model)

    def observe_gradients(self, optimizer, gradients, variables):
        """Called inside the step with what the optimizer receives."""

    def take_sums(self):
        """Reads and clears what the step has added up: an array."""
        raise NotImplementedError

    def values_of(self, sums):
        """Dict from key to float of what sums over some steps mean, the totals first."""
        raise NotImplementedError

    def layers_missing_in(self, sums):
        """The names of layers of which no step had anything."""
        raise NotImplementedError

    def measure_data(self, model):
        """Dict from key to float of `data` at the present weights, the totals first."""
        raise NotImplementedError

    # When it is measured.

    def on_train_begin(self, logs=None):
        self.release()
        self.history = {}
        self._watch = Watch.start(self._model, self)

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch, self._epoch_sums = epoch, 0.0
        if self._watch is not None:
            self._watch.begin()

    def after_execution(self):
        """Called after each execution of the training function, of one or several steps."""
        if self.data is not None:
            return
        self._executions += 1
        executed = self._executions * self._watch.model.steps_per_execution
        if self.every and executed >= self._next_row:
            self._next_row = executed + self.every
            self._read()
            self._add_row()
        elif self._executions % EXECUTIONS_BETWEEN_READS == 0:
            self._read()

    def on_epoch_end(self, epoch, logs=None):
        if self._watch is None:
            return
        if self.data is None:
            self._read()
            values = self.values_of(self._epoch_sums)
            self._add_row()
            self._warn_of_missing()
        else:
            values = self.measure_data(self.model)
            self._add_row(values)
        if logs is not None:
            logs.update({k: v for k, v in values.items() if self.per_layer_logs or "/" not in k})

    def on_train_end(self, logs=None):
        if self._watch is not None:
            self._watch.remove()

    def release(self):
        """Forgets the model and everything of one `fit` but its history."""
        self._watch = None
        self._layers = {}
        self._epoch = 0
        self._epoch_sums = 0.0  # of the epoch so far
        self._row_sums = 0.0  # since the last row of the history
        self._executions = 0
        self._next_row = self.every or 0
        self._has_warned = False

    def _choose_layers(self, model):
        if self.layers is not None:
            return find_layers(type(self).__name__, model, self.layers)
        found = self.default_layers(model)
        if not found:
            raise ValueError(
                explain(
                    f"`{type(self).__name__}` needs {self.watches}.",
                    f"model {model.name!r}, which has none",
                    "Leave out this callback for this model.",
                )
            )
        return found

    def _read(self):
        sums = self.take_sums()
        self._epoch_sums = self._epoch_sums + sums
        self._row_sums = self._row_sums + sums

    def _add_row(self, values=None):
        """Adds to the history `values`, or what was added up since the last row."""
        step = int(self._watch.steps.read()[0][0])
        if self.history and self.history["step"][-1] == step:
            return  # the epoch has ended at the step of a row
        if values is None:
            values, self._row_sums = self.values_of(self._row_sums), 0.0
        for key, value in {"epoch": self._epoch, "step": step, **values}.items():
            self.history.setdefault(key, []).append(value)

    def _warn_of_missing(self):
        missing = self.layers_missing_in(self._epoch_sums)
        if missing and not self._has_warned:
            self._has_warned = True
            rest = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            warnings.warn(
                explain(
                    f"`{type(self).__name__}` logs nan for what the training step does not "
                    "compute.",
                    f"nothing of {', '.join(map(repr, missing[:3]))}{rest}",
                    "Name the layers to watch by `layers=`; a `train_step` of your own must call "
                    "the model's layers, and an optimizer that the model has as an attribute.",
                ),
                stacklevel=2,
            )


def _check_layers(owner, layers):
    """`layers` as a list, if it is one of names and layers."""
    if isinstance(layers, (str, keras.layers.Layer)):
        layers = [layers]
    if not isinstance(layers, (list, tuple)) or not all(
        isinstance(layer, (str, keras.layers.Layer)) for layer in layers
    ):
        raise TypeError(
            explain(
                f"`{owner}(layers=...)` must be a list of layers or of their names.",
                f"layers={layers!r}",
                "Give names as in layers=['dense', 'encoder/dense'], or leave it out.",
            )
        )
    if not layers:
        raise ValueError(
            explain(
                f"`{owner}(layers=...)` must name a layer.",
                "layers=[]",
                "Leave it out to watch them all.",
            )
        )
    return list(layers)

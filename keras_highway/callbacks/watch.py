"""What is placed on a model while loggers watch one `fit`, and taken away after it.

The taps are placed in `on_train_begin`, when `fit` has made its training function but not yet run
it. When the first epoch begins it is made anew, and that one is the only one that is compiled:

- `model.train_step` is wrapped, to know that a step is running and how many examples it has;
- `optimizer.apply` is wrapped, to see the gradients;
- what a logger adds: observers of gates and of the outputs of layers;
- what may raise an exception is wrapped, since Keras tells no callback of one.

All of them are attributes of an instance in front of the method of its class. They are removed when
`fit` ends or is cut off, and the training function of before is put back, still compiled.
"""

import functools
import sys
import types

import keras

from keras_highway.callbacks import in_step

ATTRIBUTE = "_keras_highway_watch"
_ABSENT = object()


class Watch:
    """The loggers that watch a model in one `fit`, and what they placed on it.

    Attributes:
        model: The model.
        steps: A store of one number, the training steps of this `fit` so far, counted in the step.
    """

    @classmethod
    def start(cls, model, logger):
        """Watches `model` with `logger` until `fit` ends.

        Called in `on_train_begin`. Loggers of one `fit` share a watch.
        """
        callback_list = _calling_callback_list()
        watch = vars(model).get(ATTRIBUTE)
        if watch is not None and (watch._begun or watch._callback_list is not callback_list):
            watch.remove()  # of a `fit` that was cut off where nobody could see it
            watch = None
        watch = watch or cls(model, callback_list)
        watch._loggers.append(logger)
        watch._to_place.append(logger)
        if model.built:
            watch._place_loggers()
        return watch

    def __init__(self, model, callback_list):
        self.model = model
        self._loggers = []
        self._to_place = []  # those of the loggers whose layers are not there yet
        self._callback_list = callback_list
        self._begun = False
        self._batch_sizes = {}  # of the running step, by replica
        self._replaced = []  # what stood in place of each tap
        self._stores: list[in_step.Store] = []
        self.steps = self.make_store(1, 1, of_first_replica=True)
        self.put(model, ATTRIBUTE, self)
        step = self._watched_step(model.train_step)
        self.put(model, "train_step", in_step.with_stores(step, self._stores))
        for optimizer in optimizers_of(model):
            self.put(optimizer, "apply", self._watched_apply(optimizer, optimizer.apply))
        self._make_train_function = model.make_train_function
        self.put(model, "make_train_function", self._remove_and_make_train_function)
        self.put(model, "evaluate", self._guarded(model.evaluate))
        for name in dir(keras.callbacks.Callback) if callback_list is not None else ():
            if name.startswith("on_"):
                self.put(callback_list, name, self._guarded(getattr(callback_list, name)))

    def make_store(self, rows, columns, of_first_replica=False):
        """Numbers that the step writes; see `in_step.make_store`."""
        store = in_step.make_store(rows, columns, self.model, of_first_replica)
        self._stores.append(store)
        return store

    def begin(self):
        """Makes the training function; called when the first epoch begins, after all joined."""
        if self._begun:
            return
        self._begun = True
        model, stores = self.model, self._stores
        if (shardings := in_step.state_shardings(model, stores)) is not None:
            self.put(model, *shardings)
        self.put(model, "train_function", None)
        self._make_train_function()
        execution = in_step.carry_into_execution(model.train_function, stores)
        self.put(model, "train_function", self._guarded_execution(execution))

    def remove(self):
        """Takes everything off the model again."""
        for owner, name, before in reversed(self._replaced):
            if before is _ABSENT:
                vars(owner).pop(name, None)
            else:
                vars(owner)[name] = before
        self._replaced = []
        loggers, self._loggers = self._loggers, []
        for logger in loggers:
            logger.release()

    def put(self, owner, name, value):
        """Sets an attribute of an instance until the end of `fit`."""
        self._replaced.append((owner, name, vars(owner).get(name, _ABSENT)))
        vars(owner)[name] = value

    @property
    def batch_size(self):
        """Examples of the step that is running, for this replica; `None` if none is."""
        return self._batch_sizes.get(in_step.replica_id()) if self._batch_sizes else None

    def _place_loggers(self):
        try:
            while self._to_place:
                self._to_place.pop(0).place(self)
        except BaseException:
            self.remove()
            raise

    def _watched_step(self, original):
        @functools.wraps(original)
        def train_step(*arguments, **keywords):
            data = arguments[-1] if arguments else keywords["data"]
            if self._to_place:  # TensorFlow builds a model without known inputs in its first step
                in_step.build(self.model, data)
                self._place_loggers()
            replica = in_step.replica_id()
            self._batch_sizes[replica] = number_of_examples(data)
            self.steps.set(0, self.steps.get(0) + 1.0)
            try:
                return original(*arguments, **keywords)
            finally:
                self._batch_sizes.pop(replica, None)

        return train_step

    def _watched_apply(self, optimizer, original):
        @functools.wraps(original)
        def apply(grads, trainable_variables=None, **keywords):
            if self.batch_size is not None:
                if trainable_variables is not None:
                    trainable_variables = list(trainable_variables)
                grads = list(grads)
                variables = trainable_variables or optimizer._trainable_variables
                for logger in self._loggers:
                    logger.observe_gradients(optimizer, grads, variables)
            return original(grads, trainable_variables, **keywords)

        return apply

    def _guarded_execution(self, original):
        guarded = self._guarded(original)

        def train_function(*arguments):
            result = guarded(*arguments)
            for logger in self._loggers:
                logger.after_execution()
            return result

        return train_function

    def _remove_and_make_train_function(self, force=False):
        """In place of the model's: it is called next when the present `fit` is over."""
        self.remove()
        return self.model.make_train_function(force)

    def _guarded(self, original):
        """`original`, which takes everything off the model if it raises an exception."""

        @functools.wraps(original)
        def guarded(*arguments, **keywords):
            try:
                return original(*arguments, **keywords)
            except BaseException as error:
                if not in_step.is_end_of_data(error):
                    self.remove()
                raise

        return guarded


def optimizers_of(model):
    """Those which receive the model's gradients: the compiled one, and any that it has besides."""
    found = {}
    for optimizer in [getattr(model, "optimizer", None), *vars(model).values()]:
        while isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
            optimizer = optimizer.inner_optimizer  # which sees unscaled gradients
        if isinstance(optimizer, keras.optimizers.Optimizer):
            found[id(optimizer)] = optimizer
    return list(found.values())


def number_of_examples(data):
    """The first axis of a batch, a Python integer where it is known."""
    first = next(leaf for leaf in keras.tree.flatten(data) if leaf is not None)
    return first.shape[0] if first.shape[0] is not None else keras.ops.shape(first)[0]


def _calling_callback_list():
    """The `CallbackList` that is calling its callbacks now; `None` if something else does.

    A callback is not told which list it is in, and that list is the only place where an exception
    of another callback can be seen.
    """
    frame: types.FrameType | None = sys._getframe(1)
    for _ in range(6):  # methods of subclasses may lie between
        if frame is not None:
            if isinstance(frame.f_locals.get("self"), keras.callbacks.CallbackList):
                return frame.f_locals["self"]
            frame = frame.f_back
    return None

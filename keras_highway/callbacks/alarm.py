"""Gradients that vanish or explode: noted inside the step, told in words outside of it."""

import warnings

import keras
import numpy as np

from keras_highway.validation import check_choice, check_number, explain

ACTIONS = ("stop", "warn")


def make_alarms(on_vanishing, on_exploding, floor, ceiling):
    """The alarms that are switched on by the arguments of `GradientNormLogger`."""
    owner = "GradientNormLogger"
    floor = check_number(owner, "floor", floor)
    ceiling = check_number(owner, "ceiling", ceiling)
    if not 0 <= floor < ceiling:
        raise ValueError(
            explain(
                f"`{owner}` needs 0 <= floor < ceiling.",
                f"floor={floor!r} and ceiling={ceiling!r}",
                "Give a floor below the ceiling.",
            )
        )
    alarms: list[Alarm] = []
    if on_vanishing is not None:
        check_choice(owner, "on_vanishing", on_vanishing, ACTIONS)
        alarms.append(VanishingAlarm(on_vanishing, floor))
    if on_exploding is not None:
        check_choice(owner, "on_exploding", on_exploding, ACTIONS)
        alarms.append(ExplodingAlarm(on_exploding, ceiling))
    return alarms


class Alarm:
    """Names the first layer, in the order of the model, whose norm leaves the range.

    Args:
        action: `"warn"` or `"stop"`.
        bound: The end of the range.
    """

    what: str
    relation: str
    remedy: str
    _names: list[str]
    _reported: bool

    def __init__(self, action: str, bound: float):
        self.action = action
        self.bound = bound
        self.release()

    def is_outside(self, norms):
        """For each norm whether it is outside; takes and gives tensors."""
        raise NotImplementedError

    def place(self, names, watch):
        """Gets ready for a `fit` in which the layers `names` are watched."""
        self._names, self._watch = names, watch
        # The step, and the norms in it, of the first step in which one was outside.
        self._first = watch.make_store(1, 1 + len(names), of_first_replica=True)

    def note(self, norms, present):
        """Called inside the step; `present` says which of the norms were computed."""
        ops = keras.ops
        step = ops.cast(self._watch.steps.get(0), self._first.dtype)
        outside = ops.logical_and(self.is_outside(norms), ops.convert_to_tensor(present > 0))
        noted = self._first.get(0)
        is_first = ops.logical_and(noted[0] == 0, ops.any(outside))
        # The bound itself, where nothing was computed, is not outside.
        norms = ops.where(ops.convert_to_tensor(present > 0), norms, self.bound)
        self._first.set(0, ops.where(is_first, ops.concatenate([step, norms]), noted))

    def report(self):
        """Warns, once in a `fit`, if a step has left the range, and stops training if so asked."""
        if self._reported or self._first is None:
            return
        step, *norms = self._first.read()[0]
        if not step:
            return
        self._reported = True
        is_outside = self.is_outside(keras.ops.convert_to_tensor(norms))
        outside = np.flatnonzero(keras.ops.convert_to_numpy(is_outside))
        norm = norms[outside[0]]
        relation = f"{self.relation} {self.bound:g}" if np.isfinite(norm) else "not finite"
        stops = self.action == "stop"
        if stops:
            self._watch.model.stop_training = True
        warnings.warn(
            f"{self.what} in step {int(step)}: the norm of layer {self._names[outside[0]]!r} is "
            f"{norm:.2g}, {relation}. In that step {len(outside)} of {len(norms)} layers are "
            f"outside. {'Training is stopped. ' if stops else ''}{self.remedy}",
            stacklevel=2,
        )

    def release(self):
        """Forgets what belongs to one `fit`."""
        self._names = []
        self._watch = self._first = None
        self._reported = False


class VanishingAlarm(Alarm):
    what = "Gradients vanish"
    relation = "below the floor of"
    remedy = (
        "Such layers hardly learn. Use highway layers that carry at first, "
        "HighwayDense(gate_bias=GateBias.for_depth(depth)), or fewer layers, or normalization "
        "between them."
    )

    def is_outside(self, norms):
        return norms < self.bound


class ExplodingAlarm(Alarm):
    what = "Gradients explode"
    relation = "above the ceiling of"
    remedy = (
        "Lower the learning rate, or set `clipnorm` or `global_clipnorm` of the optimizer, and "
        "look for very large or missing values in the data."
    )

    def is_outside(self, norms):
        # TensorFlow simplifies `not (norms <= bound)` to `norms > bound`, which nan is not.
        return keras.ops.logical_or(norms > self.bound, keras.ops.isnan(norms))

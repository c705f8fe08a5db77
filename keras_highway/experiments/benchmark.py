"""What watching costs: step times of `fit` with and without the loggers, side by side."""

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import keras
import numpy as np

from keras_highway.callbacks import GateLogger, GradientNormLogger
from keras_highway.models import highway_mlp

LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
ARMS = ("without", "loggers", "second gradient")


@dataclass(frozen=True)
class Size:
    """A network of highway layers and its batches; `most` is the ratio that is aimed at."""

    width: int
    depth: int
    batch_size: int
    steps: int
    most: float


SIZES = (Size(512, 10, 256, steps=10, most=1.05), Size(64, 50, 64, steps=40, most=1.20))


class SecondGradient(keras.callbacks.Callback):
    """What users do otherwise: computes the gradient of each batch once more, after its step."""

    def __init__(self, x, y, batch_size):
        super().__init__()
        self.batches = [
            (x[start : start + batch_size], y[start : start + batch_size])
            for start in range(0, len(x), batch_size)
        ]
        self.norms = []

    def on_train_begin(self, logs=None):
        self.gradient_norms = _compiled_gradient_norms(self.model)

    def on_train_batch_end(self, batch, logs=None):
        norms = self.gradient_norms(self.model, *self.batches[batch])
        self.norms.append(keras.ops.convert_to_numpy(norms))


def _compiled_gradient_norms(model):
    """A function of the model and a batch, compiled as its backend does, to a vector of norms."""
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        @tf.function
        def compiled(x, y):
            with tf.GradientTape() as tape:
                value = LOSS(y, model(x, training=True))
            gradients = tape.gradient(value, model.trainable_weights)
            return tf.stack([tf.norm(gradient) for gradient in gradients])

        return lambda model, x, y: compiled(tf.constant(x), tf.constant(y))
    if backend == "jax":
        import jax

        def loss(trainable, fixed, x, y):
            y_pred, _ = model.stateless_call(trainable, fixed, x, training=True)
            return LOSS(y, y_pred)

        @jax.jit
        def compiled(trainable, fixed, x, y):
            gradients = jax.grad(loss)(trainable, fixed, x, y)
            return jax.numpy.stack([jax.numpy.linalg.norm(g.ravel()) for g in gradients])

        def call(model, x, y):
            trainable = [variable.value for variable in model.trainable_variables]
            fixed = [variable.value for variable in model.non_trainable_variables]
            return compiled(trainable, fixed, x, y)

        return call
    import torch

    def eager(model, x, y):
        value = LOSS(y, model(x, training=True))
        tensors = [variable.value for variable in model.trainable_variables]
        gradients = torch.autograd.grad(value, tensors)
        return torch.stack([torch.linalg.vector_norm(gradient) for gradient in gradients])

    return eager


class _InTurn(keras.callbacks.Callback):
    """Lets one `fit` after the other train an epoch, and times it.

    Times on a busy machine drift; taking turns, all drift alike.
    """

    def __init__(self, turns: "queue.Queue[None]", next_turns: "queue.Queue[None]"):
        super().__init__()
        self.turns, self.next_turns = turns, next_turns
        self.seconds: list[float] = []

    def on_epoch_begin(self, epoch, logs=None):
        self._began = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.seconds.append(time.perf_counter() - self._began)
        self.next_turns.put(None)
        self.turns.get()


def _fit(size: Size, arm: str, epochs: int, turn: _InTurn) -> None:
    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(size.batch_size * size.steps, size.width)).astype("float32")
    y = rng.integers(0, 10, size=len(x))
    model = highway_mlp((size.width,), 10, size.depth, width=size.width)
    model.compile("adam", LOSS)
    callbacks: dict[str, Callable[[], list[keras.callbacks.Callback]]] = {
        "without": list,
        "loggers": lambda: [GateLogger(), GradientNormLogger()],
        "second gradient": lambda: [SecondGradient(x, y, size.batch_size)],
    }
    model.fit(
        x,
        y,
        batch_size=size.batch_size,
        epochs=epochs,
        shuffle=False,
        verbose=0,
        callbacks=[*callbacks[arm](), turn],
    )


def measure(size: Size, repeats: int = 30) -> dict:
    """Times a training step with each kind of callbacks, epoch by epoch in turn.

    Args:
        size: The network and its batches.
        repeats: Epochs of each that are timed, after two that warm up.

    Returns:
        A dict with the fields of `size`, and for each of `ARMS` a list of `seconds` of a step, one
        an epoch, and of `ratios` to `"without"` in the same turn.
    """
    turns: list[queue.Queue[None]] = [queue.Queue() for _ in ARMS]
    clocks = [_InTurn(turns[i], turns[(i + 1) % len(ARMS)]) for i in range(len(ARMS))]
    failures: list[BaseException] = []

    def run(index: int) -> None:
        try:
            turns[index].get()
            _fit(size, ARMS[index], repeats + 2, clocks[index])
        except BaseException as error:
            failures.append(error)
        finally:
            clocks[index].next_turns.put(None)  # so that nobody waits for this one

    keras.utils.clear_session()
    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(ARMS))]
    for thread in threads:
        thread.start()
    turns[0].put(None)
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    seconds = {
        arm: [total / size.steps for total in clock.seconds[2:]]
        for arm, clock in zip(ARMS, clocks, strict=True)
    }
    ratios = {
        arm: [t / t0 for t, t0 in zip(times, seconds["without"], strict=True)]
        for arm, times in seconds.items()
    }
    return {**asdict(size), "seconds": seconds, "ratios": ratios}

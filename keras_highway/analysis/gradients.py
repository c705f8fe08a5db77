"""Gradients of the loss on one batch, at a model's present weights, on every backend."""

import keras
import numpy as np

from keras_highway.analysis.paths import variable_names
from keras_highway.validation import explain


def compute_gradients(model, x, y, loss=None, sample_weight=None):
    """The gradient of the mean loss on one batch for each of `model.trainable_variables`.

    The model runs as in inference (no dropout), and is not changed.

    Args:
        model: A built Keras model.
        x: Inputs of one batch.
        y: Targets of that batch.
        loss: A Keras loss, or its name. Defaults to `None`: the one that the model is compiled
            with, and its regularizers.
        sample_weight: Weights of the examples, for the compiled loss. Defaults to `None`.

    Returns:
        A list of NumPy arrays in the order of `model.trainable_variables`.

    Raises:
        ValueError: If there is no `loss`, and the model is not compiled.
    """
    if loss is None and not getattr(model, "compiled", False):
        raise ValueError(
            explain(
                "Gradients are those of a loss.",
                f"model {model.name!r}, which is not compiled, and no `loss`",
                "Give `loss`, or compile the model.",
            )
        )
    metrics = [] if loss else model.metrics_variables
    before = [keras.ops.convert_to_numpy(variable) for variable in metrics]
    try:
        return _compute_gradients(model, lambda: _loss_of(model, x, y, loss, sample_weight))
    finally:  # the compiled loss of several outputs counts what it has seen in metrics
        for variable, value in zip(metrics, before, strict=True):
            variable.assign(value)


def _loss_of(model, x, y, loss, sample_weight):
    y_pred = model(x, training=False)
    if loss is None:
        value = model.compute_loss(x, y, y_pred, sample_weight, training=False)
    else:
        value = keras.ops.mean(keras.losses.get(loss)(y, y_pred))
    return value


def _compute_gradients(model, compute_loss):
    backend = keras.backend.backend()
    variables = model.trainable_variables
    if backend == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            value = compute_loss()
        gradients = tape.gradient(
            value,
            [variable.value for variable in variables],
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
    elif backend == "jax":
        import jax

        def value_of(values):
            with keras.StatelessScope(state_mapping=zip(variables, values, strict=True)):
                return compute_loss()

        gradients = jax.grad(value_of)([variable.value for variable in variables])
    else:
        import torch

        value = compute_loss()
        tensors = [variable.value for variable in variables]
        gradients = torch.autograd.grad(value, tensors, allow_unused=True)
        gradients = [
            torch.zeros_like(tensor) if gradient is None else gradient
            for tensor, gradient in zip(tensors, gradients, strict=True)
        ]
    return [keras.ops.convert_to_numpy(gradient) for gradient in gradients]


def gradient_norms(model, x, y, loss):
    """The l2 norm of each trainable variable's gradient on one batch, by its path in the model.

    Args:
        model, x, y, loss: As for `compute_gradients`.

    Returns:
        A dict from path (such as `"layer_1/transform/kernel"`) to float.

    Example:

    >>> import keras, numpy as np
    >>> from keras_highway.analysis import gradient_norms
    >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="out")])
    >>> norms = gradient_norms(model, np.ones((4, 2)), np.zeros((4, 1)), "mse")
    >>> list(norms)
    ['out/kernel', 'out/bias']
    """
    gradients = compute_gradients(model, x, y, loss)
    return {
        # In double precision: squares of a vanishing float32 gradient would round to zero.
        name: float(np.linalg.norm(gradient.astype("float64").ravel()))
        for name, gradient in zip(variable_names(model), gradients, strict=True)
    }

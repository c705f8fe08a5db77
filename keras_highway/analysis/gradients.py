"""Gradients of the loss on one batch, at a model's present weights, on every backend."""

import keras
import numpy as np

from keras_highway.analysis.paths import variable_names


def compute_gradients(model, x, y, loss):
    """The gradient of the mean loss on one batch for each of `model.trainable_variables`.

    The model runs as in inference (no dropout), and is not changed.

    Args:
        model: A built Keras model.
        x: Inputs of one batch.
        y: Targets of that batch.
        loss: A Keras loss, or its name.

    Returns:
        A list of NumPy arrays in the order of `model.trainable_variables`.
    """
    loss = keras.losses.get(loss)
    backend = keras.backend.backend()
    variables = model.trainable_variables
    if backend == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            value = keras.ops.mean(loss(y, model(x, training=False)))
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
                return keras.ops.mean(loss(y, model(x, training=False)))

        gradients = jax.grad(value_of)([variable.value for variable in variables])
    else:
        import torch

        value = keras.ops.mean(loss(y, model(x, training=False)))
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

"""What the battery does with a layer, on whichever backend Keras runs."""

import json
import os
import subprocess
import sys
import textwrap

import keras
import numpy as np
import reference

BACKEND = keras.backend.backend()
PARTS = ("transform", "gate", "carry", "shortcut_layer")

# float64: sums of at most some hundred products, each exact to 1e-16.
RELATIVE_64 = 1e-10
# float32: the same sums, each exact to 1e-7; the backends sum in different orders.
RELATIVE_32 = 1e-5


def to_numpy(tensor):
    return np.asarray(keras.ops.convert_to_numpy(tensor), dtype="float64")


def inputs_for(case, batch=3, dtype="float32", seed=1):
    return np.random.default_rng(seed).normal(size=(batch, *case.shape)).astype(dtype)


def relative_error(ours, theirs):
    """The largest difference, relative to the largest value of the oracle."""
    scale = max(float(np.max(np.abs(theirs))), np.finfo("float64").tiny)
    return float(np.max(np.abs(ours - theirs))) / scale


def randomize(layer, seed=2):
    """Gives every weight, biases too, a value that no error in it could hide behind."""
    rng = np.random.default_rng(seed)
    layer.set_weights([rng.normal(size=w.shape) * 0.4 for w in layer.weights])


def weights_by_path(layer):
    return {
        f"{part.removesuffix('_layer')}/{variable.name}": variable
        for part in PARTS
        if getattr(layer, part) is not None
        for variable in getattr(layer, part).trainable_variables
    }


def oracle(layer):
    """The NumPy twin of a built highway layer, with its weights."""
    transform = layer.transform
    maps = {}
    for part in PARTS:
        sublayer = getattr(layer, part)
        if sublayer is None:
            continue
        name = part.removesuffix("_layer")
        if not sublayer.weights:
            maps[name] = reference.Pad(sublayer.features, sublayer.strides)
            continue
        kernel, bias = (to_numpy(v) for v in (sublayer.kernel, sublayer.bias))
        if kernel.ndim == 2:
            maps[name] = reference.Dense(kernel, bias)
        else:
            maps[name] = reference.Convolution(
                kernel,
                bias,
                sublayer.strides,
                sublayer.dilation_rate,
                sublayer.groups,
                sublayer.padding,
            )
    activation = keras.activations.serialize(transform.activation)
    return reference.Highway(layer.gate_mode, activation, **maps)


def forward_and_gradients(layer, x, dy):
    """y, and the gradients of sum(y * dy): that of x, and those of the weights by path."""
    variables = weights_by_path(layer)
    if BACKEND == "tensorflow":
        import tensorflow as tf

        x = tf.convert_to_tensor(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x)
            total = tf.reduce_sum(y * dy)
        values = tape.gradient(total, [x, *(v.value for v in variables.values())])
    elif BACKEND == "jax":
        import jax

        trainable = [v.value for v in layer.trainable_variables]
        fixed = [v.value for v in layer.non_trainable_variables]

        def total(x, trainable):
            y, _ = layer.stateless_call(trainable, fixed, x)
            return (y * dy).sum(), y

        gradients, y = jax.grad(total, argnums=(0, 1), has_aux=True)(
            keras.ops.convert_to_tensor(x), trainable
        )
        by_id = dict(zip(map(id, layer.trainable_variables), gradients[1], strict=True))
        values = [gradients[0], *(by_id[id(v)] for v in variables.values())]
    else:
        import torch

        x = torch.tensor(x, requires_grad=True)
        y = layer(x)
        leaves = [x, *(v.value for v in variables.values())]
        values = torch.autograd.grad((y * torch.tensor(dy)).sum(), leaves)
        y = y.detach()
    values = [to_numpy(value) for value in values]
    return to_numpy(y), values[0], dict(zip(variables, values[1:], strict=True))


def run_python(code, *, hide=(), **environment):
    """Runs `code` in a fresh interpreter, where a line `hide()` makes the modules vanish.

    TensorFlow asks for Keras while it is imported, so what hides Keras comes after that.
    """
    hider = f"""
        import sys

        def hide():
            for name in {tuple(hide)!r}:
                for module in [m for m in sys.modules if m.split(".")[0] == name]:
                    del sys.modules[module]
                sys.modules[name] = None
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(hider) + textwrap.dedent(code)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


def json_round_trip(layer):
    text = json.dumps(keras.saving.serialize_keras_object(layer))
    return keras.saving.deserialize_keras_object(json.loads(text))


def needs_tensorflow_export():
    """Why `model.export` cannot write a SavedModel here; empty where it can."""
    if BACKEND == "torch":
        return "Keras exports SavedModels from the TensorFlow and JAX backends only"
    try:
        import tensorflow  # noqa: F401
    except ImportError:
        return "TensorFlow, which writes SavedModels, is not installed"
    return ""

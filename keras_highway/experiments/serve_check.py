"""A script, run in a process of its own: outputs of a SavedModel where this package is absent.

    python serve_check.py SAVED_MODEL INPUTS.npy OUTPUTS.npy

TensorFlow asks for Keras while it is imported; after that neither Keras nor keras_highway can be.
"""

import sys

import numpy as np


def main(saved_model, inputs_path, outputs_path):
    import tensorflow as tf

    for hidden in ("keras", "keras_highway"):
        for name in [name for name in sys.modules if name.split(".")[0] == hidden]:
            del sys.modules[name]
        sys.modules[hidden] = None  # type: ignore[assignment]
    serve = tf.saved_model.load(saved_model).signatures["serving_default"]
    (key,) = serve.structured_input_signature[1]
    (outputs,) = serve(**{key: tf.constant(np.load(inputs_path))}).values()
    np.save(outputs_path, outputs.numpy())


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Writes the golden file of the present version: python tests/golden/make.py

Run it once for each released version, on the TensorFlow backend; files of earlier versions are
never written again, since users have such files.
"""

from pathlib import Path

import keras
import numpy as np

import keras_highway
from keras_highway import Highway, HighwayConv1D, HighwayConv2D, HighwayDense


def main():
    keras.utils.set_random_seed(1)
    images = keras.Input((6, 6, 3), name="images")
    x = HighwayConv2D(gate_bias="shallow", name="conv")(images)
    x = HighwayConv2D(4, strides=2, shortcut="project", activation="tanh", name="project")(x)
    x = HighwayConv2D(5, shortcut="pad", gate_mode="transform_only", name="pad")(x)
    x = keras.layers.Reshape((9, 5))(x)
    x = HighwayConv1D(padding="causal", gate_mode="carry_only", name="causal")(x)
    x = HighwayDense(gate_mode="independent", name="dense")(x)
    x = HighwayDense(gate_mode="residual", name="residual")(x)
    x = Highway(keras.layers.GRU(5, return_sequences=True, name="gru"), name="wrapper")(x)
    outputs = keras.layers.Dense(2, name="logits")(keras.layers.Flatten()(x))
    model = keras.Model(images, outputs)
    example = np.random.default_rng(0).normal(size=(2, 6, 6, 3)).astype("float32")
    path = Path(__file__).parent / f"v{keras_highway.__version__}"
    model.save(path.with_name(path.name + ".keras"))
    expected = model.predict(example, verbose=0)
    np.savez(path.with_name(path.name + ".npz"), inputs=example, outputs=expected)


if __name__ == "__main__":
    main()

# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A first highway layer
#
# A highway layer computes a candidate `H(x)` like any other layer, and besides it a *gate* `T(x)` between 0 and 1
# for every unit. The output is a mixture of the candidate and the input itself:
#
# $$y = T(x) \cdot H(x) + (1 - T(x)) \cdot x$$
#
# This notebook looks at the gate of one layer, then puts fifty such layers into a model and trains it on
# handwritten digits. It needs no download and takes about a minute.

# %%
# %matplotlib inline
import keras
import numpy as np

from keras_highway import GateBias, HighwayDense
from keras_highway.analysis import gradient_norms, mean_gates
from keras_highway.data import digits
from keras_highway.models import highway_mlp, plain_mlp
from keras_highway.plots import new_figure, plot_gradient_norms, plot_mean_gates

keras.utils.set_random_seed(0)

# %% [markdown]
# ## What the gate bias does
#
# The gate bias is the number added before the sigmoid. A **negative** bias shuts the gate, so that the layer carries
# its input. The further below zero, the less the layer changes.

# %%
x = np.random.default_rng(0).normal(size=(256, 64)).astype("float32")
for bias in (2.0, 0.0, -2.0, -5.0):
    layer = HighwayDense(gate_bias=bias)
    gate = keras.ops.convert_to_numpy(layer.compute_gate(x))
    change = keras.ops.convert_to_numpy(layer(x)) - x
    print(
        f"gate bias {bias:4.1f}: mean gate {gate.mean():.3f}, mean change {np.abs(change).mean():.3f}"
    )

# %% [markdown]
# ## How negative for how many layers?
#
# Through a stack of $L$ layers the carried share of the input is $(1 - T)^L$. `GateBias.for_depth` gives the bias
# at which one half of it arrives.

# %%
for depth in (5, 20, 50, 900):
    bias = GateBias.for_depth(depth).value
    share_at_minus_two = (1 - 1 / (1 + np.exp(2.0))) ** depth
    print(f"{depth:3d} layers: {share_at_minus_two:.1e} carried at bias -2, one half at {bias:.2f}")

# %% [markdown]
# ## Do gradients reach the first layer?
#
# Two networks of 50 layers, one plain and one with highway layers, before any training. The figure shows how much
# gradient reaches each layer, on a logarithmic scale.

# %%
data = digits()
initial = {"initialization": "standard"}
plain = plain_mlp((8, 8, 1), 10, depth=50, **initial)
highway = highway_mlp((8, 8, 1), 10, depth=50, **initial)  # gate_bias="auto" is for_depth(50)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

norms = {}
for kind, model, kernel in (("plain", plain, "kernel"), ("highway", highway, "transform/kernel")):
    by_path = gradient_norms(model, data.x_train[:256], data.y_train[:256], loss)
    norms[kind] = [[by_path[f"layer_{layer}/{kernel}"] for layer in range(1, 51)]]
    print(f"{kind:7}: first layer {norms[kind][0][0]:.1e}, last layer {norms[kind][0][-1]:.1e}")

figure, (ax,) = new_figure(width=7)
plot_gradient_norms(norms, ax=ax, title="Gradient norm by layer, 50 layers, before training")
figure

# %% [markdown]
# In the plain network the first layer gets nothing that an optimizer could use.
#
# ## Training
#
# Highway layers are ordinary Keras layers: `compile`, `fit`, `evaluate`.

# %%
for model in (plain, highway):
    model.compile(keras.optimizers.Adam(epsilon=1e-8), loss, metrics=["accuracy"])
    model.fit(data.x_train, data.y_train, batch_size=64, epochs=10, verbose=0)
    _, accuracy = model.evaluate(data.x_test, data.y_test, verbose=0)
    print(f"{model.count_params():,} parameters, test accuracy {100 * accuracy:.1f} %")

# %% [markdown]
# The plain network stays at chance, 10 %; the highway network learns.
#
# ## What the gates do after training

# %%
gates = mean_gates(highway, data.x_test)
figure, (ax,) = new_figure(width=7)
start = 1 / (1 + np.exp(-GateBias.for_depth(50).value))
plot_mean_gates(
    [list(gates.values())], ax=ax, start=start, title="Mean gate by layer after 10 epochs"
)
figure

# %% [markdown]
# ## A model of your own
#
# Replace a `Dense` between two layers of one width by `HighwayDense()`, and give it the gate bias for the number of
# layers you stack. To change the width, put a plain layer in between or pass `shortcut="project"`.

# %%
depth = 8
inputs = keras.Input((8, 8, 1))
hidden = keras.layers.Dense(96, activation="relu")(keras.layers.Flatten()(inputs))
for _ in range(depth):
    hidden = HighwayDense(activation="tanh", gate_bias=GateBias.for_depth(depth))(hidden)
own = keras.Model(inputs, keras.layers.Dense(10, activation="softmax")(hidden))
own.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
history = own.fit(data.x_train, data.y_train, epochs=15, validation_split=0.1, verbose=0).history
print(f"validation accuracy {100 * history['val_accuracy'][-1]:.1f} %")
print(f"test accuracy {100 * own.evaluate(data.x_test, data.y_test, verbose=0)[1]:.1f} %")

"""The loggers inside of `fit`: what they measure, and that they change and leave nothing."""

import copy
import csv
import gc
import json
import re
import warnings
import zipfile

import h5py
import harness
import keras
import numpy as np
import pytest
from harness import BACKEND, to_numpy

from keras_highway import ActivationLogger, GateLogger, GradientNormLogger, HighwayDense
from keras_highway.analysis import activation_statistics, compute_gradients, mean_gates

RATE = 1.0
# What Keras itself leaves on a model when `fit` is cut off.
OF_KERAS = {"_jax_state", "_eval_epoch_iterator"}


def data(n=12, width=6, seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n, width)).astype("float32"),
        rng.normal(size=(n, 1)).astype("float32"),
    )


def small_model(width=6, **arguments):
    return keras.Sequential(
        [
            keras.Input((width,)),
            HighwayDense(activation="tanh", gate_bias=-1.0, name="a", **arguments),
            HighwayDense(activation="tanh", gate_bias=-1.0, name="b", **arguments),
            keras.layers.Dense(1, name="out", dtype="float32"),
        ]
    )


def logged_in_fit(model, loggers, *arguments, **keywords):
    keywords = {"verbose": 0, "shuffle": False, **keywords}
    return model.fit(*arguments, callbacks=loggers, **keywords).history


# Norms: each row makes a model, what it is compiled with, and what `fit` is called with, so that
# exactly one update of the weights happens.


class Row:
    def __init__(self, model=None, compiled=None, reference=None, fitted=None, optimizer=None):
        self.model = small_model() if model is None else model
        self.compiled = compiled or {}
        self.optimizer = optimizer or {}
        self.without_clipping = self.optimizer if reference is None else reference
        x, y = data()
        self.fitted = {"x": x, "y": y, "batch_size": 12, **(fitted or {})}

    def compile(self, optimizer):
        optimizer = keras.optimizers.SGD(RATE, **optimizer)
        self.model.compile(optimizer, **{"loss": "mse", **self.compiled})


def plain():
    return Row()


def compiled_by_xla():
    return Row(compiled={"jit_compile": True})


def not_compiled_by_xla():
    return Row(compiled={"jit_compile": False})


def eager():
    return Row(compiled={"run_eagerly": True})


def loss_scaling():
    keras.config.set_dtype_policy("mixed_float16")
    return Row()


def own_loss_scale():
    return Row(optimizer={"loss_scale_factor": 64.0})


def accumulation():
    x, y = data()
    fitted = {"x": np.concatenate([x, x]), "y": np.concatenate([y, y])}
    return Row(optimizer={"gradient_accumulation_steps": 2}, fitted=fitted)


def clipnorm():
    return Row(optimizer={"clipnorm": 1e-3}, reference={})


def global_clipnorm():
    return Row(optimizer={"global_clipnorm": 1e-3}, reference={})


def class_weights():
    x, _ = data()
    y = np.arange(12) % 3
    model = keras.Sequential(
        [keras.Input((6,)), HighwayDense(name="a"), keras.layers.Dense(3, "softmax", name="out")]
    )
    return Row(
        model,
        compiled={"loss": "sparse_categorical_crossentropy"},
        fitted={"x": x, "y": y, "class_weight": {0: 1.0, 1: 5.0, 2: 0.1}},
    )


def sample_weights():
    return Row(fitted={"sample_weight": np.linspace(0.1, 3.0, 12)})


def regularizer():
    return Row(small_model(kernel_regularizer="l2"))


def frozen():
    model = small_model()
    model.get_layer("a").trainable = False
    return Row(model)


def embedding():
    model = keras.Sequential(
        [
            keras.Input((4,), dtype="int32"),
            keras.layers.Embedding(9, 5, name="embedding"),
            HighwayDense(name="a"),
            keras.layers.Flatten(),
            keras.layers.Dense(1, name="out"),
        ]
    )
    x = np.random.default_rng(0).integers(0, 4, size=(12, 4))
    return Row(model, fitted={"x": x})


def embedding_by_xla():
    row = embedding()
    row.compiled["jit_compile"] = True
    return row


def steps_per_execution():
    x, y = data()
    return Row(
        compiled={"steps_per_execution": 4},
        optimizer={"gradient_accumulation_steps": 4},
        fitted={"x": np.tile(x, (4, 1)), "y": np.tile(y, (4, 1))},
    )


def nested():
    inner = keras.Sequential([keras.Input((6,)), HighwayDense(name="a")], name="inner")
    middle_input = keras.Input((6,))
    middle = keras.Model(middle_input, HighwayDense(name="b")(inner(middle_input)), name="middle")
    inputs = keras.Input((6,))
    each = keras.layers.TimeDistributed(keras.layers.Dense(2, name="each"))
    hidden = each(keras.layers.Reshape((2, 3))(middle(inputs)))
    outputs = keras.layers.Dense(1, name="out")(keras.layers.Flatten()(hidden))
    return Row(keras.Model(inputs, outputs))


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__(name="subclassed")
        self.a, self.b = HighwayDense(name="a"), keras.layers.Dense(1, name="b")

    def build(self, input_shape):
        self.scale = self.add_weight(shape=(6,), initializer="ones", name="scale")
        self.a.build(input_shape)
        self.b.build(input_shape)
        self.built = True

    def call(self, inputs):
        return self.b(self.a(inputs * self.scale))


def subclassed():
    return Row(Subclassed())


def used_twice():
    inputs, shared = keras.Input((6,)), HighwayDense(name="a")
    outputs = keras.layers.Dense(1, name="out")(shared(shared(inputs)))
    return Row(keras.Model(inputs, outputs))


def several_inputs_and_outputs():
    first, second = keras.Input((6,), name="first"), keras.Input((6,), name="second")
    hidden = keras.layers.Add()([HighwayDense(name="a")(first), HighwayDense(name="b")(second)])
    outputs = {name: keras.layers.Dense(1, name=name)(hidden) for name in ("one", "two")}
    (x, y), (x_2, y_2) = data(), data(seed=1)
    return Row(
        keras.Model({"first": first, "second": second}, outputs),
        compiled={"loss": {"one": "mse", "two": "mae"}, "loss_weights": {"one": 1.0, "two": 3.0}},
        fitted={"x": {"first": x, "second": x_2}, "y": {"one": y, "two": y_2}},
    )


def weight_without_gradient():
    inputs = keras.Input((6,))
    hidden = HighwayDense(name="a")(inputs)
    model = keras.Model(inputs, [keras.layers.Dense(1, name=name)(hidden) for name in "bc"])
    return Row(model, compiled={"loss": ["mse", None]}, fitted={"y": [data()[1], data()[1]]})


def generator():
    def batches():
        while True:
            yield data()

    return Row(fitted={"x": batches, "y": None, "batch_size": None, "steps_per_epoch": 1})


def tf_data():
    tensorflow = pytest.importorskip("tensorflow")
    dataset = tensorflow.data.Dataset.from_tensor_slices(data()).batch(12)
    return Row(fitted={"x": dataset, "y": None, "batch_size": None})


ROWS = [
    plain,
    compiled_by_xla,
    not_compiled_by_xla,
    eager,
    loss_scaling,
    own_loss_scale,
    accumulation,
    clipnorm,
    global_clipnorm,
    class_weights,
    sample_weights,
    regularizer,
    frozen,
    embedding,
    embedding_by_xla,
    steps_per_execution,
    nested,
    subclassed,
    used_twice,
    several_inputs_and_outputs,
    weight_without_gradient,
    generator,
    tf_data,
]


def layer_variables(model):
    """Trainable variables by the name that each layer has in the rows above."""
    names = ("a", "b", "c", "each", "embedding", "out", "one", "two")
    found = {
        layer.name: layer.trainable_variables
        for layer in model._flatten_layers()
        if layer.name in names and layer.trainable_variables
    }
    if isinstance(model, Subclassed):
        found[model.name] = [model.scale]
    return found


@pytest.mark.parametrize("make", ROWS)
@pytest.mark.parametrize("fits", [1, 2])
def test_logged_norms_are_those_of_the_gradient_that_fit_used(make, fits):
    if BACKEND == "torch" and make in (steps_per_execution, compiled_by_xla, embedding_by_xla):
        pytest.skip("Keras on PyTorch has no such way to run steps, or needs a C++ compiler for it")
    row = make()

    def arguments():
        x = row.fitted["x"]
        return {**row.fitted, "x": x() if callable(x) else x}

    if not row.model.built:
        row.model.build((None, 6))
    before = row.model.get_weights()
    row.compile(row.without_clipping)
    for _ in range(fits):
        started = {k: [to_numpy(v) for v in vs] for k, vs in layer_variables(row.model).items()}
        logged_in_fit(row.model, [], **arguments())
    expected = {
        name: np.sqrt(
            sum(
                np.sum((then - to_numpy(variable)) ** 2)
                for then, variable in zip(started[name], variables, strict=True)
            )
        )
        / RATE
        for name, variables in layer_variables(row.model).items()
    }
    row.model.set_weights(before)
    row.compile(row.without_clipping if fits > 1 else row.optimizer)
    for _ in range(fits):
        log = logged_in_fit(row.model, [GradientNormLogger()], **arguments())
    norms = {k.removeprefix("gradient_norm/"): v[0] for k, v in log.items() if "norm/" in k}
    assert set(norms) == set(expected)
    for name, norm in norms.items():
        assert np.isclose(norm, expected[name], rtol=1e-4, atol=1e-6), name
    assert any(norm > 1e-2 for norm in norms.values())
    total = np.sqrt(sum(norm**2 for norm in norms.values()))
    assert np.isclose(log["gradient_norm"][0], total, rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-21, 1e-12, 1e15])
def test_norms_beyond_the_squares_of_float32_are_right(scale):
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(1, use_bias=False, name="out")])

    def loss(y, y_pred):
        return keras.ops.mean(y_pred) * scale

    model.compile(keras.optimizers.SGD(0.0), loss)
    x, y = data()
    log = logged_in_fit(model, [GradientNormLogger()], x, y, batch_size=12)
    expected = np.linalg.norm(x.mean(axis=0)) * scale
    assert np.isclose(log["gradient_norm/out"][0], expected, rtol=1e-4, atol=0)
    assert np.isclose(log["gradient_norm"][0], expected, rtol=1e-4, atol=0)


def test_epoch_norms_are_means_over_steps_weighted_by_batch_size():
    model, (x, y) = small_model(), data(10)
    model.compile(keras.optimizers.SGD(0.0), "mse")
    log = logged_in_fit(model, [GradientNormLogger(layers=["b"])], x, y, batch_size=8)
    assert [key for key in log if "norm" in key] == ["gradient_norm", "gradient_norm/b"]
    variables = model.trainable_variables
    b = {id(v) for v in model.get_layer("b").trainable_variables}
    norms = []
    for rows in (slice(0, 8), slice(8, 10)):
        gradients = compute_gradients(model, x[rows], y[rows], "mse")
        total = np.sqrt(sum((g**2).sum() for g in gradients))
        pairs = zip(gradients, variables, strict=True)
        norms.append([total, np.sqrt(sum((g**2).sum() for g, v in pairs if id(v) in b))])
    expected = np.average(norms, axis=0, weights=[8, 2])
    assert np.allclose([log["gradient_norm"], log["gradient_norm/b"]], expected[:, None], rtol=1e-5)


def test_gradients_of_data_are_those_of_the_compiled_loss():
    model, (x, y) = small_model(kernel_regularizer="l2"), data()
    model.compile(keras.optimizers.SGD(0.0), "mse", metrics=["mae"])
    batch = GradientNormLogger(data=(x, y))
    steps = GradientNormLogger()
    log = logged_in_fit(model, [batch, steps], x, y, batch_size=12)
    assert np.isclose(batch.history["gradient_norm/a"][0], steps.history["gradient_norm/a"][0])
    assert np.isclose(batch.history["gradient_norm"][0], steps.history["gradient_norm"][0])
    assert log["mae"] == logged_in_fit(model, [], x, y, batch_size=12)["mae"]
    weighted = GradientNormLogger(data=(x, y, np.zeros(12)))
    logged_in_fit(model, [weighted], x, y)
    assert weighted.history["gradient_norm/out"] == [0.0]


# Gates and activations.


def test_gate_means_are_those_of_the_batches_that_were_seen():
    model, (x, y) = small_model(), data(10)
    x[8:] *= 20
    model.compile(keras.optimizers.SGD(0.0), "mse")
    fixed = GateLogger(data=x[:3])
    loggers = [GateLogger(), fixed]
    log = logged_in_fit(model, [loggers[0]], x, y, batch_size=8, epochs=2, validation_data=(-x, y))
    expected = mean_gates(model, x)
    batches = [mean_gates(model, x[:8])["a"], mean_gates(model, x[8:])["a"]]
    assert abs(np.mean(batches) - expected["a"]) > 1e-3  # the smaller batch does not weigh as much
    for name in ("a", "b"):
        assert np.allclose(log[f"gate_mean/{name}"], [expected[name]] * 2, atol=1e-5)
    assert np.allclose(log["gate_mean"], np.mean(list(expected.values())), atol=1e-5)
    logged_in_fit(model, [fixed], x, y)
    expected = mean_gates(model, x[:3])
    assert np.isclose(fixed.history["gate_mean/b"][0], expected["b"], atol=1e-6)


def test_gates_of_a_shared_layer_in_nested_models_and_of_ragged_lengths():
    shared = HighwayDense(name="shared")
    inner = keras.Sequential([keras.Input((None, 3)), shared], name="inner")
    inputs = keras.Input((None, 3))
    model = keras.Model(inputs, inner(shared(inputs)))
    model.compile(keras.optimizers.SGD(0.0), "mse")
    rng = np.random.default_rng(0)
    batches = [rng.normal(size=(4, steps, 3)).astype("float32") for steps in (2, 5)]

    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return batches[index], batches[index]

    log = logged_in_fit(model, [GateLogger()], Batches())
    gates = [mean_gates(model, batch) for batch in batches]
    expected = np.average([gate["shared"] for gate in gates], weights=[2, 5])
    assert np.isclose(log["gate_mean/shared"][0], expected, atol=1e-5)


def test_gates_inside_of_a_wrapper_are_measured():
    inputs = keras.Input((3, 4))
    outputs = keras.layers.TimeDistributed(HighwayDense(name="each"))(inputs)
    model = keras.Model(inputs, outputs)
    model.compile(keras.optimizers.SGD(0.0), "mse")
    x = np.random.default_rng(0).normal(size=(7, 3, 4)).astype("float32")
    log = logged_in_fit(model, [GateLogger()], x, x, batch_size=4)
    assert np.isclose(log["gate_mean/each"][0], mean_gates(model, x)["each"], atol=1e-5)


def test_a_model_that_is_not_built_is_watched_from_its_first_step():
    model = keras.Sequential([HighwayDense(name="a"), keras.layers.Dense(1, name="out")])
    model.compile(keras.optimizers.SGD(0.0), "mse")
    x, y = data()
    log = logged_in_fit(model, all_loggers(), x, y, batch_size=12)
    assert np.isclose(log["gate_mean/a"][0], mean_gates(model, x)["a"], atol=1e-5)
    statistics = activation_statistics(model, x)
    assert np.isclose(log["activation_std/a"][0], statistics["a"]["std"], atol=1e-5)
    gradients = compute_gradients(model, x, y, "mse")
    norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients))
    assert np.isclose(log["gradient_norm"][0], norm, rtol=1e-4)


@pytest.mark.skipif(BACKEND != "jax", reason="Keras computes again in the backward pass on JAX")
def test_layers_that_are_computed_again_in_the_backward_pass_are_measured():
    logs = []
    for mode in ("full", None):
        keras.utils.set_random_seed(0)
        with keras.RematScope(mode=mode):
            model = small_model()
        model.compile(keras.optimizers.SGD(0.1), "mse")
        logs.append(logged_in_fit(model, all_loggers(), *data(), batch_size=5, epochs=2))
    assert logs[0].keys() == logs[1].keys()
    for key, values in logs[0].items():
        assert np.allclose(values, logs[1][key], atol=1e-5), key


def test_activations_are_those_of_the_batches_that_were_seen():
    inputs = keras.Input((6,))
    hidden = keras.layers.Dense(5, "tanh", kernel_initializer="he_normal", name="t")(inputs)
    hidden = keras.layers.Activation("sigmoid", name="s")(HighwayDense(name="hw")(hidden))
    model = keras.Model(inputs, keras.layers.Dense(1, name="out")(keras.layers.Flatten()(hidden)))
    model.compile(keras.optimizers.SGD(0.0), "mse")
    x, y = data(20)
    x *= 3
    seen, fixed = ActivationLogger(), ActivationLogger(data=x)
    log = logged_in_fit(model, [seen, fixed], x, y, batch_size=8, validation_data=(x * 5, y))
    values = to_numpy(model.get_layer("t")(x))
    expected = {
        "mean": values.mean(),
        "std": values.std(),
        "p98": np.percentile(values, 98),
        "saturated": np.mean(np.abs(values) > 0.95),
    }
    assert 0 < expected["saturated"] < 1
    for quantity, value in expected.items():
        assert np.isclose(fixed.history[f"activation_{quantity}/t"][0], value, atol=1e-5)
        if quantity != "p98":
            assert np.isclose(seen.history[f"activation_{quantity}/t"][0], value, atol=1e-5)
    bounded = [key for key in seen.history if key.startswith("activation_saturated/")]
    assert bounded == ["activation_saturated/t", "activation_saturated/s"]
    assert [k.split("/")[1] for k in log if k.startswith("activation_mean/")] == [
        "t",
        "hw",
        "s",
        "out",
    ]
    statistics = activation_statistics(model, x, batch_size=7)
    assert np.isclose(statistics["hw"]["std"], seen.history["activation_std/hw"][0], atol=1e-5)


def test_a_layer_that_is_not_computed_is_nan_and_named():
    class Idle(Subclassed):
        def build(self, input_shape):
            super().build(input_shape)
            self.idle = HighwayDense(name="idle")
            self.idle.build(input_shape)

    model, (x, y) = Idle(), data()
    model.build((None, 6))
    model.compile("sgd", "mse")
    with pytest.warns(UserWarning, match=r"logs nan .*'idle'.*`layers=`"):
        log = logged_in_fit(model, [GateLogger()], x, y)
    assert np.isnan(log["gate_mean/idle"][0])
    assert log["gate_mean"] == log["gate_mean/a"]


# What users already have.


def all_loggers(**arguments):
    return [GateLogger(**arguments), GradientNormLogger(**arguments), ActivationLogger(**arguments)]


def test_other_callbacks_see_the_keys(tmp_path):
    model, (x, y) = small_model(), data()
    model.compile("sgd", "mse")
    others = [
        keras.callbacks.EarlyStopping("gradient_norm", min_delta=1e9, patience=1, mode="min"),
        keras.callbacks.ModelCheckpoint(
            tmp_path / "best.keras", monitor="gate_mean", mode="max", save_best_only=True
        ),
        keras.callbacks.CSVLogger(tmp_path / "log.csv"),
    ]
    log = logged_in_fit(model, [*all_loggers(), *others], x, y, epochs=9)
    assert len(log["gradient_norm"]) == 2
    assert (tmp_path / "best.keras").exists()
    with (tmp_path / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    for key in ("gate_mean", "gradient_norm/a", "activation_std/out"):
        assert [float(row[key]) for row in rows] == pytest.approx(log[key])
    assert {type(value) for values in log.values() for value in values} == {float}
    json.dumps(log)


def test_tensorboard_reads_the_numbers(tmp_path):
    pytest.importorskip("tensorflow")
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    model, (x, y) = small_model(), data()
    model.compile("sgd", "mse")
    board = keras.callbacks.TensorBoard(tmp_path, write_graph=False)
    log = logged_in_fit(model, [*all_loggers(), board], x, y, epochs=3)
    events = accumulator.EventAccumulator(str(tmp_path / "train"))
    events.Reload()
    for key in ("gate_mean/a", "gradient_norm", "activation_saturated/t"):
        if key in log:
            # Keras writes scalars as tensors.
            tensors = events.Tensors(f"epoch_{key}")
            values = [float(np.asarray(_number(event.tensor_proto))) for event in tensors]
            assert [event.step for event in tensors] == [0, 1, 2]
            assert values == pytest.approx(log[key], rel=1e-6)
    assert "epoch_gate_mean/b" in events.Tags()["tensors"]


def _number(proto):
    import tensorflow as tf

    return tf.make_ndarray(proto)


def test_only_totals_are_in_logs_if_asked_and_history_has_all():
    model, (x, y) = small_model(), data()
    model.compile("sgd", "mse")
    loggers = all_loggers(per_layer_logs=False)
    log = logged_in_fit(model, loggers, x, y)
    assert not [key for key in log if "/" in key]
    assert {"gate_mean", "gradient_norm", "activation_mean", "activation_std"} <= set(log)
    assert loggers[0].history["gate_mean/a"] and loggers[1].history["gradient_norm/out"]


def test_every_keeps_a_trace_within_the_epoch():
    model, (x, y) = small_model(), data(20)
    model.compile(keras.optimizers.SGD(0.01), "mse")
    loggers = [*all_loggers(every=2), GradientNormLogger(every=1)]
    log = logged_in_fit(model, loggers, x, y, batch_size=4, epochs=2, initial_epoch=0)
    for logger in loggers[:3]:
        assert logger.history["step"] == [2, 4, 5, 6, 8, 10]
        assert logger.history["epoch"] == [0, 0, 0, 1, 1, 1]
        assert {len(values) for values in logger.history.values()} == {6}
    each, two = loggers[3].history["gradient_norm"], loggers[1].history["gradient_norm"]
    assert np.allclose([np.mean(each[:2]), np.mean(each[2:4])], two[:2], rtol=1e-5)
    assert np.isclose(np.mean(each[:5]), log["gradient_norm"][0], rtol=1e-5)


def test_long_epochs_are_summed_exactly():
    model, (x, y) = small_model(), data(300)
    model.compile(keras.optimizers.SGD(0.0), "mse")
    log = logged_in_fit(model, [GateLogger()], x, y, batch_size=2)
    assert np.isclose(log["gate_mean/a"][0], mean_gates(model, x)["a"], atol=1e-6)


# Watching changes nothing.


def everything(folder, loggers):
    """Trains a model with what has state, and returns all that could be changed by watching."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(3)
    inputs = keras.Input((6,))
    hidden = HighwayDense(name="a")(inputs)
    hidden = keras.layers.Dropout(0.3, seed=1)(keras.layers.BatchNormalization()(hidden))
    hidden = HighwayDense(activation="tanh", name="b")(hidden)
    model = keras.Model(inputs, keras.layers.Dense(1, name="out")(hidden))
    optimizer = keras.optimizers.Adam(0.01, clipnorm=1.0, use_ema=True)
    model.compile(optimizer, "mse", metrics=["mae"])
    x, y = data(40)
    log = logged_in_fit(
        model,
        [
            *loggers,
            keras.callbacks.ModelCheckpoint(folder / "checkpoint.keras"),
            keras.callbacks.ModelCheckpoint(
                folder / "checkpoint.weights.h5", save_weights_only=True
            ),
        ],
        x,
        y,
        batch_size=16,
        epochs=3,
        validation_data=data(9, seed=1),
        shuffle=True,
    )
    model.save(folder / "model.keras")
    state = {
        "variables": [to_numpy(v) for v in model.variables],
        "optimizer": [to_numpy(v) for v in optimizer.variables],
        "log": [log[key] for key in ("loss", "mae", "val_loss", "val_mae")],
        "config": json.dumps(model.get_config()),
        "compile config": json.dumps(model.get_compile_config()),
        "metrics": [metric.name for metric in model.metrics],
        "attributes": sorted(vars(model)),
        "attributes of the optimizer": sorted(vars(optimizer)),
        "attributes of a layer": sorted(vars(model.get_layer("a"))),
    }
    for name in ("model.keras", "checkpoint.keras"):
        with zipfile.ZipFile(folder / name) as archive:
            # Keras numbers objects by their place in memory.
            config = re.sub(rb'"shared_object_id": \d+', b"", archive.read("config.json"))
            state[f"config in {name}"] = config
            with archive.open("model.weights.h5") as file, h5py.File(file) as weights:
                state[f"weights in {name}"] = saved_weights(weights)
    with h5py.File(folder / "checkpoint.weights.h5") as weights:
        state["weights in a checkpoint"] = saved_weights(weights)
    if not harness.needs_tensorflow_export():
        model.export(folder / "saved_model", verbose=False)
        import tensorflow as tf

        served = tf.saved_model.load(str(folder / "saved_model"))
        state["served"] = served.serve(x).numpy()
        state["served variables"] = [v.numpy() for v in served.variables]
    return model, state


def saved_weights(file):
    found = {}
    file.visititems(
        lambda name, item: found.update({name: item[()]} if hasattr(item, "shape") else {})
    )
    return found


def test_watching_changes_nothing(tmp_path):
    (tmp_path / "without").mkdir()
    (tmp_path / "with").mkdir()
    _, expected = everything(tmp_path / "without", [])
    loggers = [*all_loggers(every=2), GradientNormLogger(on_vanishing="warn", on_exploding="stop")]
    _, state = everything(tmp_path / "with", loggers)
    assert state.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_equal(state[key], value, err_msg=key)


def test_a_checkpoint_written_while_watching_restores_the_optimizer(tmp_path):
    model, state = everything(tmp_path, all_loggers())
    reloaded = keras.saving.load_model(tmp_path / "checkpoint.keras")
    for ours, theirs in zip(reloaded.optimizer.variables, state["optimizer"], strict=True):
        np.testing.assert_array_equal(to_numpy(ours), theirs)
    assert len(reloaded.variables) == len(model.variables)


def test_many_epochs_compile_once_and_leave_nothing_behind():
    traces, objects = [], []

    class Counted(keras.Sequential):
        def train_step(self, *arguments):
            traces.append(1)
            return super().train_step(*arguments)

    def count(epoch, logs):
        if epoch in (49, 199):
            gc.collect()
            objects.append(len(gc.get_objects()))

    model, (x, y) = Counted(small_model().layers), data()
    model.build((None, 6))
    model.compile("sgd", "mse")
    counter = keras.callbacks.LambdaCallback(on_epoch_end=count)
    log = logged_in_fit(model, [*all_loggers(), counter], x, y, epochs=200)
    assert len(log["gate_mean"]) == 200
    if BACKEND != "torch":  # which runs each step in Python
        assert len(traces) <= 2
    assert objects[1] - objects[0] < 100


def test_the_training_function_of_before_is_put_back_still_compiled():
    model, (x, y) = small_model(), data()
    model.compile("sgd", "mse")
    logged_in_fit(model, [], x, y)
    before = model.train_function
    logged_in_fit(model, all_loggers(), x, y)
    assert model.train_function is before
    logged_in_fit(model, [], x, y)


# Being cut off.


class Failing(keras.callbacks.Callback):
    def __init__(self, hook, error):
        super().__init__()
        setattr(self, hook, self.fail)
        self.error = error

    def fail(self, *arguments, **keywords):
        raise self.error


@pytest.mark.parametrize("error", [RuntimeError("cut off"), KeyboardInterrupt()])
@pytest.mark.parametrize(
    "hook",
    ["on_train_begin", "on_epoch_begin", "on_train_batch_end", "on_test_begin", "on_epoch_end"],
)
def test_nothing_stays_when_fit_is_cut_off(hook, error):
    model, (x, y) = small_model(), data()
    model.compile(keras.optimizers.SGD(0.1), "mse")
    logged_in_fit(model, [], x, y, validation_data=(x, y))
    attributes, of_optimizer = set(vars(model)), set(vars(model.optimizer))
    loggers = all_loggers()
    with pytest.raises(type(error)):
        logged_in_fit(model, [*loggers, Failing(hook, error)], x, y, validation_data=(x, y))
    if hook != "on_train_begin":  # where it is seen when training next begins
        assert not {"_keras_highway_watch", "train_step", "evaluate"} & set(vars(model))
        assert "apply" not in vars(model.optimizer)
        copy.deepcopy(loggers)
    assert "gate_mean" not in logged_in_fit(model, [], x, y)
    assert not set(vars(model)) - attributes - OF_KERAS
    assert not set(vars(model.optimizer)) - of_optimizer
    assert model.get_layer("a").gate_observer is None
    assert "call" not in vars(model.get_layer("a"))
    assert len(logged_in_fit(model, loggers, x, y)["gate_mean"]) == 1


def test_nothing_stays_when_the_data_fail():
    def batches():
        yield data()
        raise OSError("the disk is gone")

    model = small_model()
    model.compile("sgd", "mse")
    with pytest.raises(Exception, match="disk is gone"):
        logged_in_fit(model, all_loggers(), batches(), steps_per_epoch=5)
    assert "train_step" not in vars(model)


def test_loggers_can_be_copied_and_used_again_on_another_model():
    loggers, (x, y) = all_loggers(), data()
    first = small_model()
    other = keras.Sequential([keras.Input((6,)), HighwayDense(name="c"), keras.layers.Dense(1)])
    for model in (first, other):
        model.compile("sgd", "mse")
    copies = copy.deepcopy(loggers)
    logged_in_fit(first, loggers, x, y)
    log = logged_in_fit(other, loggers, x, y)
    assert "gate_mean/c" in log and "gate_mean/a" not in log
    assert "gate_mean/a" not in loggers[0].history
    copy.deepcopy(loggers)
    assert "gate_mean/a" in logged_in_fit(first, copies, x, y)


def test_evaluate_and_predict_take_the_loggers_and_do_nothing():
    model, (x, y) = small_model(), data()
    model.compile("sgd", "mse")
    model.evaluate(x, y, verbose=0)
    model.predict(x, verbose=0)
    attributes = set(vars(model))
    model.evaluate(x, y, verbose=0, callbacks=all_loggers())
    model.predict(x, verbose=0, callbacks=all_loggers())
    assert set(vars(model)) == attributes


def test_a_callback_list_of_ones_own_may_be_used_twice():
    model, (x, y) = small_model(), data()
    model.compile("sgd", "mse")
    callbacks = keras.callbacks.CallbackList(all_loggers(), add_history=True, model=model)
    for _ in range(2):
        log = model.fit(x, y, verbose=0, callbacks=callbacks).history
    assert len(log["gradient_norm"]) == 2


@pytest.mark.skipif(BACKEND != "tensorflow", reason="its own training step is TensorFlow's")
def test_a_training_step_of_ones_own_with_two_optimizers():
    import tensorflow as tf

    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.a, self.b = HighwayDense(name="a"), keras.layers.Dense(1, name="b")

        def compile(self, first, second):
            super().compile()
            self.first, self.second = first, second

        def call(self, inputs):
            return self.b(self.a(inputs))

        def train_step(self, batch):
            x, y = batch
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
            layers = (self.a, self.b)
            variables = [layer.trainable_variables for layer in layers]
            gradients = tape.gradient(loss, variables)
            self.first.apply_gradients(zip(gradients[0], variables[0], strict=True))
            self.second.apply_gradients(zip(gradients[1], variables[1], strict=True))
            return {"mine": loss}

    model, (x, y) = Own(), data()
    model(x)
    expected = compute_gradients(model, x, y, "mse")
    model.compile(keras.optimizers.SGD(0.1), keras.optimizers.SGD(0.1))
    log = logged_in_fit(model, [GradientNormLogger(), GateLogger()], x, y, batch_size=12)
    assert "mine" in log
    norm = np.sqrt(sum((gradient**2).sum() for gradient in expected[:4]))
    assert np.isclose(log["gradient_norm/a"][0], norm, rtol=1e-4)


def test_gradients_that_the_optimizer_never_sees_are_nan_and_said():
    class NoUpdate(keras.Sequential):
        def train_step(self, *arguments):
            logs = {"none": keras.ops.zeros(())}
            return logs if BACKEND != "jax" else (logs, arguments[0])

    model, (x, y) = NoUpdate(small_model().layers), data()
    model.compile("sgd", "mse")
    with pytest.warns(UserWarning, match=r"logs nan .*`train_step`"):
        log = logged_in_fit(model, [GradientNormLogger()], x, y)
    assert np.isnan(log["gradient_norm"][0])


# Gradients that vanish or explode.


def deep_plain_model(depth=50, width=16):
    layers = [
        keras.layers.Dense(width, "sigmoid", name=f"layer_{i + 1}", kernel_initializer="zeros")
        for i in range(depth)
    ]
    rng = np.random.default_rng(0)
    model = keras.Sequential([keras.Input((6,)), *layers, keras.layers.Dense(1, name="out")])
    for layer in layers:
        layer.kernel.assign(rng.normal(size=layer.kernel.shape) * 0.25)
    return model


@pytest.mark.parametrize("action", ["warn", "stop"])
def test_a_network_that_vanishes_is_named(action):
    model, (x, y) = deep_plain_model(), data(40)
    model.compile(keras.optimizers.SGD(0.01), "mse")
    logger = GradientNormLogger(on_vanishing=action, on_exploding=action)
    with pytest.warns(UserWarning) as caught:
        log = logged_in_fit(model, [logger], x, y, batch_size=8, epochs=3)
    (message,) = [str(one.message) for one in caught if "vanish" in str(one.message)]
    assert "vanish in step 1: the norm of layer 'layer_1' is" in message
    assert "GateBias.for_depth" in message and "below the floor of 1e-08" in message
    assert logger.history["gradient_norm/layer_1"][0] < 1e-8
    assert len(log["loss"]) == (1 if action == "stop" else 3)
    assert logger.history["step"][0] == (1 if action == "stop" else 5)


@pytest.mark.parametrize("action", ["warn", "stop"])
def test_a_network_that_explodes_is_named(action):
    model = keras.Sequential(
        [keras.Input((6,)), *(keras.layers.Dense(6, name=f"layer_{i + 1}") for i in range(4))]
    )
    x, _ = data(40)
    model.compile(keras.optimizers.SGD(1e3), "mse")
    trace = GradientNormLogger(every=1)
    logger = GradientNormLogger(on_vanishing=action, on_exploding=action)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        log = logged_in_fit(model, [trace, logger], x, x, batch_size=8, epochs=2)
    (message,) = [str(one.message) for one in caught if "explode" in str(one.message)]
    norms = np.array([trace.history[f"gradient_norm/layer_{i + 1}"] for i in range(4)])
    outside = ~(norms <= 1e4)
    step = int(np.flatnonzero(outside.any(axis=0))[0]) + 1
    layer = int(np.flatnonzero(outside[:, step - 1])[0]) + 1
    assert f"explode in step {step}: the norm of layer 'layer_{layer}' is" in message
    assert "Lower the learning rate" in message
    assert len(log["loss"]) == (1 if action == "stop" else 2)


def test_nan_is_logged_as_nan_and_named():
    model, (x, y) = small_model(), data()
    y[3] = np.nan
    model.compile(keras.optimizers.SGD(0.1), "mse")
    logger = GradientNormLogger(on_exploding="warn")
    others = [keras.callbacks.TerminateOnNaN()]
    with pytest.warns(UserWarning, match=r"layer 'a' is nan, not finite"):
        log = logged_in_fit(model, [logger, GateLogger(), *others], x, y, batch_size=4, epochs=5)
    assert len(log["loss"]) == 1
    assert np.isnan(log["gradient_norm/a"][0])
    assert "gate_mean/a" in log


def test_a_loss_of_zero_has_gradients_of_zero():
    model, (x, y) = small_model(), data()
    model.compile(keras.optimizers.SGD(0.1), "mse", loss_weights=0.0)
    log = logged_in_fit(model, [GradientNormLogger()], x, y, epochs=2)
    assert log["gradient_norm/a"] == [0.0, 0.0] and log["gradient_norm"] == [0.0, 0.0]


# Layers by name, and bad input.


def test_layers_are_chosen_by_any_path_or_as_objects():
    row = nested()
    row.compile({})
    loggers = [
        GradientNormLogger(["middle/inner/a", row.model.get_layer("out"), "b/gate"]),
        GateLogger(layers="a"),
    ]
    logged_in_fit(row.model, loggers, **row.fitted)
    keys = [key for key in loggers[0].history if "/" in key]
    assert keys == ["gradient_norm/a", "gradient_norm/out", "gradient_norm/b/gate"]
    assert [key for key in loggers[1].history if "/" in key] == ["gate_mean/a"]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: GateLogger(layers=["aa"]), ValueError, r"none of model.*Did you mean 'a'"),
        (lambda: GateLogger(layers=["out"]), ValueError, r"takes highway layers.*'out'"),
        (lambda: GateLogger(layers=["gate"]), ValueError, r"any of 'a/gate', 'b/gate'.*longer"),
        (lambda: GateLogger(layers=[]), ValueError, r"must name a layer"),
        (lambda: GateLogger(layers=7), TypeError, r"list of layers.*Received: layers=7"),
        (lambda: GateLogger(every=0), ValueError, r"every=.*positive integer.*every=0"),
        (lambda: GateLogger(data=np.ones((2, 6)), every=2), ValueError, r"every=2 and data"),
        (lambda: GateLogger(data=[[1.0]]), TypeError, r"must be an array"),
        (lambda: GradientNormLogger(data=np.ones(3)), TypeError, r"\(x, y\)"),
        (lambda: GradientNormLogger(on_vanishing="stopp"), ValueError, r"Did you mean 'stop'"),
        (lambda: GradientNormLogger(floor=2.0, ceiling=1.0), ValueError, r"floor < ceiling"),
        (
            lambda: GradientNormLogger(data=(np.ones(3), np.ones(3)), on_vanishing="warn"),
            ValueError,
            r"data and on_vanishing",
        ),
        (lambda: GradientNormLogger(layers=[keras.layers.Dense(1)]), ValueError, r"none of model"),
    ],
)
def test_bad_input_is_refused_in_words_before_training(make, error, words):
    model, (x, y) = small_model(), data()
    model.compile("sgd", "mse")
    steps = []
    counter = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: steps.append(1))
    with pytest.raises(error, match=words):
        logged_in_fit(model, [make(), counter], x, y)
    assert not steps
    assert "train_step" not in vars(model)


@pytest.mark.parametrize("logger", [GateLogger, GradientNormLogger])
def test_a_model_with_nothing_to_watch_is_refused_in_words(logger):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, trainable=False)])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match=rf"`{logger.__name__}` needs a .*Leave out this callback"):
        logged_in_fit(model, [logger()], np.ones((3, 1)), np.ones((3, 1)))


# More than one device.


@pytest.mark.skipif(BACKEND != "tensorflow", reason="tf.distribute is TensorFlow's")
@pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
def test_replicas_log_the_norms_of_the_reduced_gradient(policy):
    harness.run_python(
        f"""
        import numpy as np, keras, tensorflow as tf
        cpu, = tf.config.list_physical_devices("CPU")
        logical = tf.config.LogicalDeviceConfiguration()
        tf.config.set_logical_device_configuration(cpu, [logical, logical])
        from keras_highway import *
        from keras_highway.analysis import mean_gates
        keras.config.set_dtype_policy({policy!r})
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        x = np.random.default_rng(0).normal(size=(12, 6)).astype("float32")
        y = x[:, :1] ** 2

        def fit(callbacks, rate=1.0):
            keras.utils.set_random_seed(0)
            with strategy.scope():
                model = keras.Sequential([
                    keras.Input((6,)), HighwayDense(name="a"), HighwayDense(name="b"),
                    keras.layers.Dense(1, name="out", dtype="float32"),
                ])
                optimizer = keras.optimizers.SGD(rate)
                if {policy!r} == "mixed_float16":  # from a scale at which nothing overflows
                    optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=64.0)
                model.compile(optimizer, "mse")
            before = {{
                name: [v.numpy() for v in model.get_layer(name).trainable_variables]
                for name in ("a", "b", "out")
            }}
            log = model.fit(x, y, batch_size=12, verbose=0, shuffle=False, callbacks=callbacks)
            return model, before, log.history

        loggers = [GateLogger(), GradientNormLogger(on_vanishing="warn"), ActivationLogger()]
        model, before, log = fit(loggers)
        for name, then in before.items():
            now = [v.numpy() for v in model.get_layer(name).trainable_variables]
            norm = np.sqrt(sum(((a - b) ** 2).sum() for a, b in zip(then, now)))
            assert np.isclose(log[f"gradient_norm/{{name}}"][0], norm, rtol=1e-4), (name, norm, log)
        plain, _, _ = fit([])
        for ours, theirs in zip(model.variables, plain.variables):
            assert np.array_equal(ours.numpy(), theirs.numpy())
        assert loggers[1].history["step"] == [1]
        model, _, log = fit(loggers, rate=0.0)
        expected = mean_gates(model, x)
        tolerance = 1e-5 if {policy!r} == "float32" else 1e-3
        for name in ("a", "b"):
            assert np.isclose(log[f"gate_mean/{{name}}"][0], expected[name], atol=tolerance)
        """
    )


@pytest.mark.skipif(BACKEND != "jax", reason="keras.distribution is JAX's")
def test_data_parallel_training_is_watched():
    harness.run_python(
        """
        import numpy as np, keras
        from keras_highway import *
        from keras_highway.analysis import mean_gates
        keras.distribution.set_distribution(keras.distribution.DataParallel())
        assert len(keras.distribution.list_devices()) == 2
        x = np.random.default_rng(0).normal(size=(12, 6)).astype("float32")
        model = keras.Sequential([keras.Input((6,)), HighwayDense(name="a")])
        model.compile(keras.optimizers.SGD(1.0), "mse")
        before = model.get_weights()
        loggers = [GateLogger(), GradientNormLogger()]
        expected = mean_gates(model, x)["a"]
        log = model.fit(x, 2 * x, batch_size=12, verbose=0, callbacks=loggers).history
        norm = np.sqrt(sum(((a - b) ** 2).sum() for a, b in zip(before, model.get_weights())))
        assert np.isclose(log["gradient_norm/a"][0], norm, rtol=1e-4)
        assert np.isclose(log["gate_mean/a"][0], expected, atol=1e-5)
        """,
        XLA_FLAGS="--xla_force_host_platform_device_count=2",
    )

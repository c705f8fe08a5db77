"""The battery: everything that every highway layer must do, one row of `cases.py` a layer."""

import json

import harness
import keras
import numpy as np
import pytest
from cases import CASES
from harness import RELATIVE_32, RELATIVE_64, relative_error, to_numpy

from keras_highway import HighwayDense

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def check_against_oracle(case, dtype, tolerance):
    layer = case.make()
    x = harness.inputs_for(case, dtype=dtype)
    layer.build((None, *case.free_shape))
    harness.randomize(layer)
    twin = harness.oracle(layer)
    y = twin.forward(x.astype("float64"))
    dy = np.random.default_rng(3).normal(size=y.shape).astype(dtype)
    dx, gradients = twin.backward(dy.astype("float64"))
    our_y, our_dx, our_gradients = harness.forward_and_gradients(layer, x, dy)
    assert relative_error(our_y, y) < tolerance
    assert relative_error(our_dx, dx) < tolerance
    assert our_gradients.keys() == gradients.keys()
    for path, gradient in gradients.items():
        assert relative_error(our_gradients[path], gradient) < tolerance, path


@every_case
def test_equals_the_oracle_in_float64(case, float64):
    check_against_oracle(case, "float64", RELATIVE_64)


@every_case
def test_equals_the_oracle_in_float32(case):
    check_against_oracle(case, "float32", RELATIVE_32)


@every_case
def test_config_survives_json(case):
    layer = case.make(name="hw", trainable=False)
    again = harness.json_round_trip(layer)
    assert type(again) is type(layer)
    assert json.dumps(again.get_config()) == json.dumps(layer.get_config())


@every_case
def test_symbolic_shape_is_the_real_one_with_sizes_unknown(case):
    layer = case.make()
    symbolic = layer(keras.Input(case.free_shape)).shape
    assert layer.built and layer.weights
    real = layer(harness.inputs_for(case)).shape
    assert len(symbolic) == len(real)
    assert all(s in (None, r) for s, r in zip(symbolic, real, strict=True)), (symbolic, real)
    assert case.make().compute_output_shape((3, *case.shape)) == tuple(real)


@every_case
def test_shut_gate_carries_and_open_gate_transforms(case):
    def outputs(bias):
        layer = case.make(gate_bias=bias)
        x = harness.inputs_for(case)
        y = to_numpy(layer(x))
        carried = x if layer.shortcut_layer is None else layer.shortcut_layer(x)
        return layer.gate_mode, y, to_numpy(carried), to_numpy(layer.transform(x))

    for bias, t in ((-100.0, 0.0), (100.0, 1.0)):
        mode, y, x, h = outputs(bias)
        expected = {
            "coupled": t * h + (1 - t) * x,
            "independent": t * h + (1 - t) * x,
            "transform_only": t * h + x,
            "carry_only": h + (1 - t) * x,
            "residual": h + x,
        }[mode]
        assert np.allclose(y, expected, atol=1e-6), (mode, bias)


@every_case
def test_gate_is_a_share_in_the_shape_of_the_output(case):
    layer = case.make()
    x = harness.inputs_for(case)
    y = layer(x)
    if layer.gate_mode == "residual":
        with pytest.raises(ValueError, match="needs a gate"):
            layer.compute_gate(x)
        return
    gate = to_numpy(layer.compute_gate(x))
    assert gate.shape == tuple(y.shape)
    assert gate.min() > 0 and gate.max() < 1


@every_case
def test_trains_in_a_compiled_model(case):
    layer = case.make()
    model = keras.Sequential([keras.Input(case.shape), layer, keras.layers.Flatten()])
    before = model.get_weights()
    model.compile("sgd", "mse")
    x = harness.inputs_for(case, batch=8)
    loss = model.fit(x, np.ones((8, *model.output_shape[1:])), verbose=0).history["loss"]
    assert np.isfinite(loss[0])
    for old, new, variable in zip(before, model.get_weights(), model.weights, strict=True):
        assert not np.array_equal(old, new), variable.path


@every_case
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float64"])
def test_dtype_policies(case, policy, request):
    if policy == "float64":
        request.getfixturevalue("float64")
    keras.config.set_dtype_policy(policy)
    layer = case.make()
    y = layer(keras.ops.convert_to_tensor(harness.inputs_for(case)))
    computed = keras.DTypePolicy(policy).compute_dtype
    assert keras.backend.standardize_dtype(y.dtype) == computed
    stored = {keras.backend.standardize_dtype(v.dtype) for v in layer.weights}
    assert stored == {keras.DTypePolicy(policy).variable_dtype}
    assert np.isfinite(to_numpy(keras.ops.cast(y, "float32"))).all()


@every_case
def test_channels_first_equals_channels_last_transposed(case):
    first = case.make()
    if not hasattr(first, "data_format"):
        pytest.skip("only convolutions have a data format")
    rank = len(case.shape) - 1
    to_first = (0, rank + 1, *range(1, rank + 1))
    to_last = (0, *range(2, rank + 2), 1)
    last, first = case.make(), case.make(data_format="channels_first")
    x = harness.inputs_for(case)
    last.build(x.shape)
    first.build(x.transpose(to_first).shape)
    first.set_weights(last.get_weights())
    try:
        y = to_numpy(first(x.transpose(to_first)))
    except Exception as error:
        # TensorFlow has no such kernel on the CPU for some convolutions; it must say which.
        assert harness.BACKEND == "tensorflow"
        assert any(word in str(error) for word in ("NCHW", "NHWC", "NCDHW", "channels_first"))
        pytest.skip("TensorFlow cannot run this convolution in channels_first on the CPU")
    assert np.allclose(y.transpose(to_last), to_numpy(last(x)), atol=1e-5)


def all_models():
    models = {}
    for index, case in enumerate(CASES):
        layer = case.make(name=f"hw{index}")
        strided = max(getattr(layer, "strides", (1,))) > 1 or "strided" in case.name
        # JAX cannot export a strided layer for unknown sizes: it finds -(-n // 2) and
        # (n + 1) // 2, the sizes of the two paths, not to be surely equal.
        shape = case.shape if strided and harness.BACKEND == "jax" else case.free_shape
        model = keras.Sequential([keras.Input(shape), layer])
        harness.randomize(layer)
        models[case.name] = model
    return models


def write_models(folder, write):
    inputs, outputs = {}, {}
    for case, (name, model) in zip(CASES, all_models().items(), strict=True):
        write(model, str(folder / name))
        inputs[name] = harness.inputs_for(case, batch=4)
        outputs[name] = to_numpy(model(inputs[name]))
    np.savez(folder / "inputs.npz", **inputs)
    return outputs


def check_outputs(folder, outputs):
    with np.load(folder / "outputs.npz") as served:
        assert set(served) == set(outputs)
        for name, expected in outputs.items():
            assert np.allclose(served[name], expected, atol=1e-6), name


def test_keras_files_load_in_a_new_process(tmp_path):
    outputs = write_models(tmp_path, lambda model, path: model.save(path + ".keras"))
    harness.run_python(
        f"""
        import keras, keras_highway, numpy as np
        inputs = np.load({str(tmp_path / "inputs.npz")!r})
        outputs = {{}}
        for name in inputs:
            model = keras.saving.load_model(f"{tmp_path}/{{name}}.keras")
            outputs[name] = keras.ops.convert_to_numpy(model(inputs[name]))
        np.savez({str(tmp_path / "outputs.npz")!r}, **outputs)
        """
    )
    check_outputs(tmp_path, outputs)


def test_saved_models_are_served_without_the_package(tmp_path):
    if reason := harness.needs_tensorflow_export():
        pytest.skip(reason)
    outputs = write_models(tmp_path, lambda model, path: model.export(path, verbose=False))
    harness.run_python(
        f"""
        import numpy as np, tensorflow as tf
        hide()
        inputs = np.load({str(tmp_path / "inputs.npz")!r})
        outputs = {{}}
        for name in inputs:
            served = tf.saved_model.load(f"{tmp_path}/{{name}}").signatures["serving_default"]
            (key,) = served.structured_input_signature[1]
            (outputs[name],) = served(**{{key: tf.constant(inputs[name])}}).values()
        np.savez({str(tmp_path / "outputs.npz")!r}, **outputs)
        """,
        hide=("keras", "keras_highway"),
    )
    check_outputs(tmp_path, outputs)


def test_the_battery_can_fail():
    """The oracle comparison notices a layer that carries with the wrong sign."""

    class Wrong(HighwayDense):
        def call(self, inputs, training=None):
            return super().call(inputs) - 2 * inputs

    case = next(case for case in CASES if case.name == "dense-coupled")
    wrong = type(case)("wrong", lambda: Wrong(activation="tanh"), case.shape)
    with pytest.raises(AssertionError):
        check_against_oracle(wrong, "float32", RELATIVE_32)

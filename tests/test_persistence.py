"""Files: what is saved is what is loaded, in new processes, changed sublayers included."""

import json
import zipfile
from pathlib import Path

import harness
import keras
import numpy as np
import pytest
from harness import to_numpy

from keras_highway import Highway, HighwayConv1D, HighwayConv2D, HighwayConv3D, HighwayDense
from keras_highway.layers.highway_conv import BaseHighwayConv

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.keras"))


def version(text):
    return tuple(int(part) for part in text.split(".")[:2])


def random(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def mixed_model():
    """Images of any size into a convolutional and then a dense highway layer."""
    images = keras.Input((None, None, 3))
    x = HighwayConv2D(gate_bias=-1.0)(images)
    x = HighwayDense(gate_bias=-1.0)(keras.layers.GlobalAveragePooling2D()(x))
    return keras.Model(images, keras.layers.Dense(2)(x))


def predictions_in_a_new_process(path, x, tmp_path):
    np.save(tmp_path / "x.npy", x)
    harness.run_python(
        f"""
        import keras, keras_highway, numpy as np
        model = keras.saving.load_model({str(path)!r})
        y = model.predict(np.load({str(tmp_path / "x.npy")!r}), verbose=0)
        np.save({str(tmp_path / "y.npy")!r}, y)
        """
    )
    return np.load(tmp_path / "y.npy")


def test_mixed_model_is_served_without_the_package_at_other_sizes(tmp_path):
    if reason := harness.needs_tensorflow_export():
        pytest.skip(reason)
    model = mixed_model()
    inputs = {"a": random(1, 6, 6, 3), "b": random(5, 9, 7, 3)}
    np.savez(tmp_path / "inputs.npz", **inputs)
    model.export(str(tmp_path / "served"), verbose=False)
    harness.run_python(
        f"""
        import numpy as np, tensorflow as tf
        hide()
        served = tf.saved_model.load({str(tmp_path / "served")!r}).signatures["serving_default"]
        (key,) = served.structured_input_signature[1]
        inputs = np.load({str(tmp_path / "inputs.npz")!r})
        outputs = {{}}
        for name in inputs:
            (outputs[name],) = served(**{{key: tf.constant(inputs[name])}}).values()
        try:
            import keras_highway
        except ImportError:
            np.savez({str(tmp_path / "outputs.npz")!r}, **outputs)
        """,
        hide=("keras", "keras_highway"),
    )
    outputs = np.load(tmp_path / "outputs.npz")
    for name, x in inputs.items():
        assert np.allclose(outputs[name], to_numpy(model(x)), atol=1e-6)


def test_keras_file_of_the_mixed_model_loads_in_a_new_process(tmp_path):
    model, x = mixed_model(), random(3, 8, 5, 3)
    model.save(tmp_path / "m.keras")
    served = predictions_in_a_new_process(tmp_path / "m.keras", x, tmp_path)
    assert np.allclose(served, model.predict(x, verbose=0), atol=1e-6)


@pytest.mark.parametrize("mode", ["coupled", "independent"])
def test_int8_reaches_every_kernel_and_reloads_in_a_new_process(mode, tmp_path):
    layer = HighwayDense(24, shortcut="project", gate_mode=mode, name="hw")
    model = keras.Sequential([keras.Input((16,)), layer, keras.layers.Dense(2)])
    x = random(8, 16)
    exact = model.predict(x, verbose=0)
    model.quantize("int8")
    parts = [layer.transform, layer.gate, layer.shortcut_layer]
    parts += [layer.carry] if mode == "independent" else []
    for part in parts:
        assert keras.backend.standardize_dtype(part._kernel.dtype) == "int8", part.name
    quantized = model.predict(x, verbose=0)
    assert 0 < np.abs(quantized - exact).max() < 0.1 * np.abs(exact).max()
    model.save(tmp_path / "m.keras")
    again = predictions_in_a_new_process(tmp_path / "m.keras", x, tmp_path)
    assert np.allclose(again, quantized, atol=1e-6)


def test_lora_reaches_both_kernels_and_reloads_in_a_new_process(tmp_path):
    layer = HighwayDense(name="hw")
    model = keras.Sequential([keras.Input((6,)), layer, keras.layers.Dense(2)])
    layer.enable_lora(2)
    names = ["/".join(w.path.split("/")[-2:]) for w in layer.trainable_weights]
    assert names.count("transform/lora_kernel_a") == names.count("gate/lora_kernel_a") == 1
    assert not {"transform/kernel", "gate/kernel"} & set(names)
    model.compile(keras.optimizers.Adam(0.1), "mse")
    model.fit(random(32, 6), np.ones((32, 2)), epochs=2, verbose=0)
    x = random(4, 6)
    expected = model.predict(x, verbose=0)
    model.save(tmp_path / "m.keras")
    again = predictions_in_a_new_process(tmp_path / "m.keras", x, tmp_path)
    assert np.allclose(again, expected, atol=1e-5)
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    assert len(loaded.trainable_weights) == len(model.trainable_weights)
    assert int(loaded.optimizer.iterations) == int(model.optimizer.iterations)


def test_a_layer_is_quantized_by_itself_also_around_other_layers():
    inner = keras.Sequential([keras.layers.Dense(4), keras.layers.LayerNormalization()])
    layer = Highway(Highway(inner))
    layer.build((None, 4))
    layer.quantize("int8")
    kernels = [w for w in layer.weights if w.name == "kernel"]
    assert [kernel.dtype for kernel in kernels] == ["int8"] * 3


def test_lora_on_convolutions(tmp_path):
    layer = HighwayConv2D(name="hw")
    model = keras.Sequential([keras.Input((5, 5, 3)), layer])
    layer.enable_lora(1)
    model.save(tmp_path / "m.keras")
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    assert len(loaded.trainable_weights) == len(model.trainable_weights) == 6


def test_a_clone_has_the_same_config_and_its_own_weights():
    model = mixed_model()
    clone = keras.models.clone_model(model)
    assert not {id(w) for w in model.weights} & {id(w) for w in clone.weights}
    clone.set_weights(model.get_weights())
    x = random(2, 5, 5, 3)
    assert np.array_equal(to_numpy(clone(x)), to_numpy(model(x)))


def test_registered_names_are_file_format():
    layers = (Highway, HighwayDense, HighwayConv1D, HighwayConv2D, HighwayConv3D)
    names = [keras.saving.get_registered_name(layer) for layer in layers]
    assert names == [f"keras_highway>{layer.__name__}" for layer in layers]
    assert keras.saving.get_registered_name(BaseHighwayConv) == "BaseHighwayConv"


def test_there_is_a_golden_file():
    assert GOLDEN


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_files_of_released_versions_stay_loadable(path):
    with zipfile.ZipFile(path) as file:
        writer = json.loads(file.read("metadata.json"))["keras_version"]
    if version(keras.__version__) < version(writer):
        pytest.skip(f"Keras {keras.__version__} cannot read all that Keras {writer} writes")
    with np.load(path.with_suffix(".npz")) as golden:
        model = keras.saving.load_model(path)
        y = model.predict(golden["inputs"], verbose=0)
        assert np.allclose(y, golden["outputs"], atol=1e-5), (
            "users have files like this one: mend the layers so that it loads as it did; "
            "tests/golden/make.py writes the file of a new version only"
        )

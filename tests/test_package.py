"""The package as it is installed: names, weight of the import, metadata, documentation."""

import doctest
import importlib
import importlib.metadata
import pkgutil
import re
import sys

import harness
import keras
import pytest
from conftest import ROOT

import keras_highway

PUBLIC = [
    "ActivationLogger",
    "GateLogger",
    "GradientNormLogger",
    "GateBias",
    "Highway",
    "HighwayConv1D",
    "HighwayConv2D",
    "HighwayConv3D",
    "HighwayDense",
    "NormalizedUniform",
    "StandardUniform",
]
BACKENDS = {"tensorflow": "tensorflow", "jax": "jax", "torch": "torch"}
MODULES = [
    module.name
    for module in pkgutil.walk_packages(keras_highway.__path__, "keras_highway.")
    if not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names(name):
    assert getattr(keras_highway, name).__doc__


def modules_after(code):
    printed = harness.run_python(f"{code}\nprint('MODULES', *sorted(sys.modules))")
    return {name.split(".")[0] for name in printed.split("MODULES", 1)[1].split()}


def test_import_brings_no_backend_but_keras_own_and_nothing_heavy():
    with_package = modules_after("import keras_highway")
    with_keras = modules_after("import keras")
    assert with_package - with_keras <= {"keras_highway", "difflib"}
    others = set(BACKENDS.values()) - {BACKENDS[harness.BACKEND]}
    assert not others & (with_package - with_keras)


def test_the_import_check_can_fail():
    assert "jupytext" in modules_after("import keras_highway, jupytext")


def test_import_prints_nothing_of_its_own():
    assert harness.run_python("import keras_highway") == ""


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_every_layer_has_an_example():
    finder = doctest.DocTestFinder(recurse=False)
    for name in PUBLIC:
        (example, *_) = finder.find(getattr(keras_highway, name), name)
        assert example.examples, name


def test_metadata():
    metadata = importlib.metadata.metadata("keras-highway")
    assert metadata["Version"] == keras_highway.__version__
    required = importlib.metadata.requires("keras-highway")
    plain = sorted(re.split(r"[>=<]", line)[0] for line in required if "extra" not in line)
    assert plain == ["keras", "numpy"]
    assert not [line for line in required if "==" in re.split(r";", line)[0]]
    extras = set(metadata.get_all("Provides-Extra"))
    assert {"tensorflow", "jax", "torch", "cli", "data", "test"} <= extras


def test_tests_run_against_the_installed_package():
    if keras_highway.__file__.startswith(str(ROOT / "keras_highway")):
        pytest.skip("keras_highway is imported from the checkout, not from an installed wheel")
    assert "site-packages" in keras_highway.__file__


def test_works_with_legacy_keras_switched_on():
    harness.run_python(
        """
        import keras, keras_highway, numpy as np
        assert keras.__version__.startswith("3")
        model = keras.Sequential([keras.Input((4,)), keras_highway.HighwayDense()])
        model.compile("sgd", "mse")
        model.fit(np.ones((2, 4)), np.ones((2, 4)), verbose=0)
        """,
        TF_USE_LEGACY_KERAS="1",
    )


def test_building_and_training_need_no_network():
    harness.run_python(
        """
        import socket

        def refused(*arguments, **keywords):
            raise OSError("the network is off")

        socket.socket.connect = socket.create_connection = socket.getaddrinfo = refused
        import keras, keras_highway, numpy as np
        model = keras.Sequential([keras.Input((4,)), keras_highway.HighwayDense()])
        model.compile("sgd", "mse")
        model.fit(np.ones((2, 4)), np.ones((2, 4)), verbose=0)
        """
    )


def test_only_the_own_command_is_kept_quiet():
    from keras_highway.quiet import is_own_command

    assert is_own_command(["python", "/usr/bin/keras-highway", "compare"])
    assert is_own_command(["python", "-m", "keras_highway", "compare"])
    assert not is_own_command(["python", "-m", "pytest", "keras_highway"])
    assert not is_own_command(["python"])
    assert not is_own_command(["python", "-c", "import keras_highway"])


def test_backend_is_the_one_asked_for():
    assert keras.backend.backend() in BACKENDS
    assert BACKENDS[keras.backend.backend()] in sys.modules


README = ROOT / "README.md"


def python_blocks():
    block = r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?"
    return re.findall(block, README.read_text(), re.DOTALL)


def test_readme_blocks_run_and_print_what_they_show(tmp_path, monkeypatch, capsys):
    blocks = python_blocks()
    assert len(blocks) >= 3
    monkeypatch.chdir(tmp_path)
    namespace = {}
    compared = 0
    for code, shown in blocks:
        if "export" in code and harness.needs_tensorflow_export():
            continue
        capsys.readouterr()
        keras.utils.set_random_seed(0)
        exec(compile(code, "README.md", "exec"), namespace)
        if not shown:
            continue
        printed = capsys.readouterr().out
        numbers = re.compile(r"-?\d+\.\d+")
        assert numbers.sub("#", printed).split() == numbers.sub("#", shown).split()
        ours, theirs = ([float(n) for n in numbers.findall(text)] for text in (printed, shown))
        # The backends draw different random numbers; the README shows TensorFlow's.
        tolerance = 0.05 if harness.BACKEND == "tensorflow" else 0.25
        assert all(abs(a - b) <= tolerance for a, b in zip(ours, theirs, strict=True)), printed
        compared += 1
    assert compared


def test_readme_names_the_versions_of_setup_py():
    setup = (ROOT / "setup.py").read_text()
    readme = README.read_text()
    for package in ("keras", "numpy", "tensorflow"):
        (version,) = set(re.findall(rf'"{package}>=([\d.]+)"', setup))
        assert re.search(rf"\| {package} \| {re.escape(version)} ", readme, re.IGNORECASE), package
    (python,) = re.findall(r'python_requires=">=([\d.]+)"', setup)
    assert re.search(rf"\| Python \| {re.escape(python)} ", readme)


def test_readme_begins_with_what_a_newcomer_needs():
    head = "\n".join(README.read_text().splitlines()[:40])
    needed = "# keras_highway", ".png", "```python", "pip install", "highway compare", "pytest"
    assert [part for part in needed if part not in head] == []

"""`keras-highway compare`: results, interruption, resuming, and errors before anything long."""

import csv
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import harness
import keras
import numpy as np
import pytest

from keras_highway import cli
from keras_highway.experiments import compare, serving
from keras_highway.validation import InputError

SMALL = ["--depths", "1", "2", "--seeds", "2", "--epochs", "1", "--width", "8"]


def command(*arguments, **keywords):
    return subprocess.run(
        [sys.executable, "-m", "keras_highway", "compare", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "COLUMNS": "100"},
        **keywords,
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("compare") / "results"
    return out, command(*SMALL, "--out", out)


def test_writes_table_files_figures_and_models(finished):
    out, result = finished
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    for word in ("depth", "highway", "plain", "most frequent label", "best.keras"):
        assert word in result.stdout
    results = json.loads((out / "results.json").read_text())
    assert results["complete"] and len(results["runs"]) == 8
    assert {(r["kind"], r["depth"], r["seed"]) for r in results["runs"]} == {
        (kind, depth, seed) for kind in ("plain", "highway") for depth in (1, 2) for seed in (0, 1)
    }
    for run in results["runs"]:
        assert 0 <= run["test_accuracy"] <= 1
        assert len(run["gradient_norms_at_start"]) == run["depth"]
        assert min(run["gradient_norms_at_start"]) > 0
        assert len(run["mean_gates"]) == (run["depth"] if run["kind"] == "highway" else 0)
        epochs = run["measured_by_epoch"]
        assert len(epochs) == run["depth"] * (2 if run["kind"] == "highway" else 1)
        assert min(min(values) for values in epochs.values()) > 0
        assert {len(values) for values in epochs.values()} == {len(run["loss_by_epoch"])}
    with (out / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8 and float(rows[0]["test_accuracy"]) == results["runs"][0]["test_accuracy"]
    for name in (
        "accuracy_by_depth",
        "gradient_norm_by_layer",
        "mean_gate_by_layer",
        "gradient_norm_by_epoch",
        "gate_mean_by_epoch",
    ):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert not [path for path in out.rglob(".partial*")]


def test_summary_is_the_mean_and_spread_of_the_runs(finished):
    results = json.loads((finished[0] / "results.json").read_text())
    for row in results["summary"]:
        ours = [
            run["test_accuracy"]
            for run in results["runs"]
            if (run["kind"], run["depth"]) == (row["kind"], row["depth"])
        ]
        assert row["seeds"] == 2
        assert np.isclose(row["test_accuracy_mean"], np.mean(ours))
        assert np.isclose(row["test_accuracy_std"], np.std(ours, ddof=1))


def test_best_model_is_the_one_of_its_record(finished):
    out, result = finished
    runs = json.loads((out / "results.json").read_text())["runs"]
    best = min(runs, key=lambda run: run["train_loss"])
    model = keras.saving.load_model(out / "best.keras")
    assert model.name == f"{best['kind']}_{best['depth']}"
    data = cli.digits()
    _, accuracy = model.evaluate(data.x_test, data.y_test, verbose=0)
    assert np.isclose(accuracy, best["test_accuracy"], atol=1e-6)
    if harness.needs_tensorflow_export():
        assert "No SavedModel was written" in result.stdout
    else:
        assert (out / "best_saved_model" / "saved_model.pb").exists()
        assert "without keras_highway" in result.stdout


def test_same_command_again_trains_nothing(finished):
    out, _ = finished
    before = {path: path.stat().st_mtime for path in (out / "runs").iterdir()}
    result = command(*SMALL, "--out", out)
    assert result.returncode == 0 and "8 of 8 runs are in" in result.stdout
    assert {path: path.stat().st_mtime for path in (out / "runs").iterdir()} == before


def test_other_settings_in_the_same_folder_are_refused(finished):
    out, _ = finished
    before = (out / "results.json").read_text()
    result = command(*SMALL, "--gate-bias", "auto", "--out", out)
    assert result.returncode == 2
    assert "gate_bias -2.0 then, 'auto' now" in result.stderr and "another --out" in result.stderr
    assert "Traceback" not in result.stderr
    assert (out / "results.json").read_text() == before


def tiny(out, data=None, **changes):
    settings = {"depths": (1,), "kinds": ("plain",), "seeds": 2, "epochs": 1, "width": 8}
    return compare.Comparison(compare.Settings(**settings | changes), data or cli.digits(), out)


def trained(out, **changes):
    comparison = tiny(out, **changes)
    for run in comparison.remaining():
        comparison.train(run)
    return comparison


def test_seeds_depths_and_kinds_can_be_added_but_not_left_out(tmp_path):
    first = trained(tmp_path / "out")
    more = {"seeds": 3, "depths": (2, 1), "kinds": ("plain", "highway")}
    second = tiny(tmp_path / "out", **more)
    assert second.records == first.records and len(second.remaining()) == 12 - 2
    with pytest.raises(InputError, match=r"seeds 3 then, 2 now"):
        tiny(tmp_path / "out")
    assert tiny(tmp_path / "out", **more).records == first.records


def test_a_run_whose_model_was_removed_is_trained_again(tmp_path):
    first = trained(tmp_path / "out")
    best = first.best()
    (tmp_path / "out" / "best.keras").unlink()
    assert tiny(tmp_path / "out").remaining() == [(best["kind"], best["depth"], best["seed"])]
    again = trained(tmp_path / "out")
    model = keras.saving.load_model(tmp_path / "out" / "best.keras")
    loss, _ = model.evaluate(again.data.x_train, again.data.y_train, batch_size=512, verbose=0)
    assert np.isclose(loss, best["train_loss"], rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "text"),
    [("settings.json", "[]"), ("settings.json", ""), ("runs/plain_depth1_seed0.json", "{")],
)
def test_damaged_files_are_refused_in_words(name, text, tmp_path):
    trained(tmp_path / "out")
    (tmp_path / "out" / name).write_text(text)
    with pytest.raises(InputError, match=rf"as they were written.*{name}.*Remove that file"):
        tiny(tmp_path / "out")


def test_a_run_that_diverges_is_recorded_as_null_and_never_best(tmp_path):
    data = cli.digits()
    huge = dataclasses.replace(data, x_train=data.x_train * np.float32(1e38))
    comparison = tiny(tmp_path / "out", huge, seeds=1)
    comparison.train(comparison.remaining()[0])
    names = [path.name for path in comparison.write_results()]
    assert "accuracy_by_depth.png" in names
    (run,) = json.loads((tmp_path / "out" / "results.json").read_text())["runs"]
    assert run["train_loss"] is None and run["loss_by_epoch"] == [None]
    assert cli._loss(comparison.best()) == "not finite"
    if not harness.needs_tensorflow_export():
        assert comparison.export_best()["agree"]


def test_interrupting_keeps_what_is_finished_and_resuming_completes_it(tmp_path):
    out = tmp_path / "results"
    arguments = ["--depths", "1", "--seeds", "2", "--epochs", "8", "--out", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "keras_highway", "compare", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    runs = out / "runs"
    deadline = time.monotonic() + 300
    while not (runs.is_dir() and any(runs.glob("*.json"))) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=300)
    kept = {path.name: path.read_text() for path in runs.glob("*.json")}
    assert 1 <= len(kept) < 4
    assert process.returncode == cli.INTERRUPTED, errors
    assert f"{len(kept)} of 4 runs are kept" in printed
    assert not json.loads((out / "results.json").read_text())["complete"]
    result = command(*arguments)
    assert result.returncode == 0, result.stderr
    assert f"{len(kept)} of 4 runs are in" in result.stdout
    assert all((runs / name).read_text() == text for name, text in kept.items())
    assert json.loads((out / "results.json").read_text())["complete"]


def run_here(*arguments):
    return cli.main(["compare", *map(str, arguments)])


def refused(capsys, *arguments):
    """The message of a command that must end before it trains anything."""
    try:
        status = run_here(*arguments)
    except SystemExit as stopped:
        status = stopped.code
    assert status == 2
    message = capsys.readouterr().err
    assert "Traceback" not in message
    return message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--gate-bias", "nan"], ["finite number", "'nan'"]),
        (["--gate-bias", "deap"], ["'deap'", "Did you mean 'deep'?"]),
        (["--seeds", "0"], ["at least 1", "'0'"]),
        (["--depths", "five"], ["integer", "'five'"]),
        (["--depths", "2,3"], ["integer", "'2,3'", "Separate several by spaces"]),
        (["--kinds", "highwai"], ["invalid choice", "highway"]),
        (["--dataset", "digit"], ["'digit'", "Did you mean 'digits'?"]),
        (["--dataset", "nothing.npz"], ["nothing.npz", "np.savez"]),
    ],
)
def test_bad_arguments_are_refused_in_words(arguments, words, tmp_path, capsys):
    message = refused(capsys, *arguments, "--out", tmp_path / "results")
    for word in words:
        assert word in message, message
    assert not (tmp_path / "results").exists()


def test_labels_out_of_range_are_refused_in_words(tmp_path, capsys):
    np.savez(tmp_path / "d.npz", x=np.ones((40, 3)), y=np.arange(40) % 4 - 1)
    message = refused(capsys, "--dataset", tmp_path / "d.npz", "--out", tmp_path / "results")
    assert "labels from -1 to 2" in message and "np.unique" in message


def test_a_folder_of_other_things_is_refused(tmp_path, capsys):
    (tmp_path / "letter.txt").write_text("mine")
    message = refused(capsys, "--out", tmp_path)
    assert "holds other files" in message
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_an_output_that_cannot_be_written_is_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    message = refused(capsys, "--out", tmp_path / "file" / "results")
    assert "must be one in which files can be written" in message


def test_mnist_offline_is_refused_in_words(tmp_path, capsys):
    folder = tmp_path / "none"
    message = refused(
        capsys, "--dataset", "mnist", "--no-download", "--data-dir", folder, "--out", tmp_path / "r"
    )
    assert str(folder) in message or "pip install" in message


def test_mnist_is_looked_for_in_the_usual_folder_by_default(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "usual"))
    message = refused(capsys, "--dataset", "mnist", "--no-download", "--out", tmp_path / "r")
    assert str(tmp_path / "usual") in message or "pip install" in message


def test_published_figures_stand_only_beside_the_same_setting(tmp_path):
    data = cli.digits()

    def published(kind, depth, **changes):
        settings = compare.Settings(**changes)
        out = tmp_path / str(len(list(tmp_path.iterdir())))
        return compare.Comparison(settings, data, out)._published(kind, depth)

    assert published("highway", 20) == 0.95
    assert published("plain", 50) == 0.1019
    assert published("highway", 50, gate_bias=-5.0) == 0.9611
    assert published("highway", 50, gate_bias="auto") is None
    assert published("highway", 20, epochs=3) is None
    assert published("highway", 7) is None


def test_a_served_model_that_disagrees_is_found(tmp_path, monkeypatch):
    if harness.needs_tensorflow_export():
        pytest.skip(harness.needs_tensorflow_export())
    data = cli.digits()
    comparison = compare.Comparison(
        compare.Settings(depths=(1,), kinds=("plain",), seeds=1, epochs=1), data, tmp_path / "out"
    )
    comparison.train(comparison.remaining()[0])
    assert comparison.export_best()["agree"]
    right = serving.export_and_check
    monkeypatch.setattr(serving, "export_and_check", lambda *a: right(*a) + 0.1)
    assert not comparison.export_best()["agree"]

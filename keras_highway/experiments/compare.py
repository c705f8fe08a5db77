"""Plain against highway networks by depth: the NumPy lesson's experiment, over several seeds.

Each (kind, depth, seed) is one run. A run's record is written when the run has ended, so an
interrupted comparison keeps what is finished and the same command takes it up again.
"""

import csv
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np

import keras_highway
from keras_highway import analysis, plots
from keras_highway.callbacks import GateLogger, GradientNormLogger
from keras_highway.data import Dataset
from keras_highway.experiments import serving
from keras_highway.experiments.published import LESSON_ACCURACY, LESSON_SETTING
from keras_highway.files import (
    make_output_folder,
    read_json,
    without_nan,
    write_json,
    write_whole,
)
from keras_highway.initializers import GateBias, get_gate_bias
from keras_highway.models import highway_mlp, plain_mlp
from keras_highway.validation import InputError, explain

KINDS = ("plain", "highway")
SELECTION = ("depths", "kinds", "seeds")  # which runs there are; the other settings change a run
PROBE_SIZE = 256  # training examples on which gradients at the start are measured
LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@dataclass(frozen=True)
class Settings:
    """What is compared. Runs belong together only if all but `SELECTION` is equal."""

    depths: tuple[int, ...] = (5, 20, 50)
    kinds: tuple[str, ...] = KINDS
    gate_bias: float | str = -2.0  # a number, a preset's name or "auto"
    seeds: int = 3
    epochs: int = 30
    width: int = 64
    batch_size: int = 64
    learning_rate: float = 1e-3

    def runs(self) -> list[tuple[str, int, int]]:
        return [
            (kind, depth, seed)
            for depth in self.depths
            for kind in self.kinds
            for seed in range(self.seeds)
        ]

    def bias_at(self, depth: int) -> float:
        """The gate bias as a number, for networks of this depth."""
        if self.gate_bias == "auto":
            return GateBias.for_depth(depth).value
        return get_gate_bias("compare", self.gate_bias).value


def build(settings: Settings, data: Dataset, kind: str, depth: int) -> keras.Model:
    """The lesson's network of one kind and depth: its shape, its initialisation."""
    arguments: dict[str, Any] = {
        "input_shape": data.x_train.shape[1:],
        "num_classes": data.num_classes,
        "depth": depth,
        "width": settings.width,
        "initialization": "standard",
        "name": f"{kind}_{depth}",
    }
    if kind == "plain":
        return plain_mlp(**arguments)
    return highway_mlp(gate_bias=settings.bias_at(depth), **arguments)


def train_one(
    settings: Settings,
    data: Dataset,
    run: tuple[str, int, int],
    on_epoch: Callable[[int, dict[str, float]], None] = lambda epoch, logs: None,
) -> tuple[dict[str, Any], keras.Model]:
    """Trains the network of one kind, depth and seed.

    Returns:
        The record of the run, plain numbers only, and the model.
    """
    started = time.perf_counter()
    kind, depth, seed = run
    keras.utils.clear_session()
    keras.utils.set_random_seed(seed)
    model = build(settings, data, kind, depth)
    norms = analysis.gradient_norms(
        model, data.x_train[:PROBE_SIZE], data.y_train[:PROBE_SIZE], LOSS
    )
    kernel = "transform/kernel" if kind == "highway" else "kernel"
    layers = [f"layer_{index + 1}" for index in range(depth)]
    # The lesson's epsilon: Keras's 1e-7 damps the small gradients that deep networks start with.
    optimizer = keras.optimizers.Adam(settings.learning_rate, epsilon=1e-8)
    model.compile(optimizer, LOSS, metrics=["accuracy"])
    watching = {"gradient_norm": GradientNormLogger(layers, per_layer_logs=False)}
    if kind == "highway":
        watching["gate_mean"] = GateLogger(layers, per_layer_logs=False)
    history = model.fit(
        data.x_train,
        data.y_train,
        batch_size=settings.batch_size,
        epochs=settings.epochs,
        verbose=0,
        callbacks=[
            *watching.values(),
            keras.callbacks.LambdaCallback(on_epoch_end=on_epoch),
        ],
    ).history
    train_loss, train_accuracy = model.evaluate(
        data.x_train, data.y_train, batch_size=512, verbose=0
    )
    test_loss, test_accuracy = model.evaluate(data.x_test, data.y_test, batch_size=512, verbose=0)
    gates = analysis.mean_gates(model, data.x_test)
    record = {
        "kind": kind,
        "depth": depth,
        "seed": seed,
        "gate_bias": settings.bias_at(depth) if kind == "highway" else None,
        "parameters": model.count_params(),
        "test_accuracy": float(test_accuracy),
        "test_loss": float(test_loss),
        "train_accuracy": float(train_accuracy),
        "train_loss": float(train_loss),
        "loss_by_epoch": [float(loss) for loss in history["loss"]],
        "gradient_norms_at_start": [norms[f"{layer}/{kernel}"] for layer in layers],
        "measured_by_epoch": {
            f"{quantity}/{layer}": logger.history[f"{quantity}/{layer}"]
            for quantity, logger in watching.items()
            for layer in layers
        },
        "mean_gates": [gates[layer] for layer in layers if layer in gates],
        "seconds": time.perf_counter() - started,
    }
    return record, model


class Comparison:
    """A comparison in one output folder: its runs so far, and what is written about them."""

    def __init__(self, settings: Settings, data: Dataset, out: Path):
        self.settings, self.data, self.out = settings, data, out
        self.identity = {
            **{k: list(v) if isinstance(v, tuple) else v for k, v in asdict(settings).items()},
            "dataset": data.name,
            "data_fingerprint": data.fingerprint(),
            "backend": keras.backend.backend(),
            "keras": keras.__version__,
            "keras_highway": keras_highway.__version__,
        }
        self._open()
        self.records = {
            run: read_json(self._record_path(run))
            for run in settings.runs()
            if self._record_path(run).exists()
        }
        if self.records and not (out / "best.keras").exists():
            best = self.best()  # whose model was removed: that run is trained again
            del self.records[best["kind"], best["depth"], best["seed"]]
        write_json(out / "settings.json", self.identity)

    def _open(self):
        """Makes the folder this comparison's own, or refuses one that is something else's."""
        identity_path = self.out / "settings.json"
        if self.out.is_dir() and any(self.out.iterdir()) and not identity_path.exists():
            raise InputError(
                explain(
                    "The output folder must be new, empty, or hold an earlier comparison.",
                    f"--out {self.out}, which holds other files",
                    "Give another folder.",
                )
            )
        make_output_folder(self.out)
        before = read_json(identity_path) if identity_path.exists() else self.identity
        different = [
            f"{key} {before.get(key)!r} then, {value!r} now"
            for key, value in self.identity.items()
            if before.get(key) != value and not (key in SELECTION and self._extends(before))
        ]
        if different:
            raise InputError(
                explain(
                    "A comparison is taken up again with the settings it was begun with; seeds, "
                    "depths and kinds may be added.",
                    f"--out {self.out}: {'; '.join(different)}",
                    "Use the same settings, or another --out.",
                )
            )

    def _extends(self, before):
        """Whether all runs of an earlier comparison are runs of this one."""
        try:
            selection = {key: before[key] for key in SELECTION}
            return set(Settings(**selection).runs()) <= set(self.settings.runs())
        except (KeyError, TypeError):
            return False

    def _record_path(self, run):
        kind, depth, seed = run
        return self.out / "runs" / f"{kind}_depth{depth}_seed{seed}.json"

    def remaining(self) -> list[tuple[str, int, int]]:
        return [run for run in self.settings.runs() if run not in self.records]

    def best(self) -> dict[str, Any]:
        """The run with the lowest loss on the training set; the test set chooses nothing."""
        return min(self.records.values(), key=_training_loss)

    def train(self, run, on_epoch=lambda epoch, logs: None) -> dict[str, Any]:
        """Trains one run and keeps its record, and its model if it is the best so far."""
        record, model = train_one(self.settings, self.data, run, on_epoch)
        record = without_nan(record)
        if not self.records or _training_loss(record) < _training_loss(self.best()):
            write_whole(self.out / "best.keras", model.save)
        path = self._record_path(run)
        path.parent.mkdir(exist_ok=True)
        write_json(path, record)
        self.records[run] = record
        return record

    def summary(self) -> list[dict[str, Any]]:
        """One row a kind and depth: mean and spread over the seeds, and the published figure."""
        rows = []
        for depth in self.settings.depths:
            for kind in self.settings.kinds:
                records = self._records_of(kind, depth)
                if not records:
                    continue
                accuracies = np.array([record["test_accuracy"] for record in records])
                rows.append(
                    {
                        "kind": kind,
                        "depth": depth,
                        "gate_bias": records[0]["gate_bias"],
                        "parameters": records[0]["parameters"],
                        "seeds": len(records),
                        "test_accuracy_mean": float(accuracies.mean()),
                        "test_accuracy_std": (
                            float(accuracies.std(ddof=1)) if len(records) > 1 else None
                        ),
                        "test_accuracy_min": float(accuracies.min()),
                        "test_accuracy_max": float(accuracies.max()),
                        "published_test_accuracy": self._published(kind, depth),
                        "seconds_mean": float(np.mean([record["seconds"] for record in records])),
                    }
                )
        return rows

    def _records_of(self, kind, depth):
        return [r for (k, d, _), r in self.records.items() if (k, d) == (kind, depth)]

    def _published(self, kind, depth):
        name = self.data.name if self.data.built_in else None
        ours = {"dataset": name} | asdict(self.settings)
        if any(ours[key] != value for key, value in LESSON_SETTING.items()):
            return None
        bias = self.settings.bias_at(depth) if kind == "highway" else None
        return LESSON_ACCURACY.get((kind, depth, bias))

    def write_results(self) -> list[Path]:
        """Writes `results.json`, `results.csv` and the figures for the runs there are."""
        results = {
            "settings": self.identity,
            "complete": not self.remaining(),
            "chance": self.data.chance,
            "summary": self.summary(),
            "runs": list(self.records.values()),
        }
        json_path, csv_path = self.out / "results.json", self.out / "results.csv"
        write_json(json_path, results)
        write_whole(csv_path, self._write_csv)
        return [json_path, csv_path, *self._draw()]

    def _write_csv(self, path):
        with path.open("w", newline="") as file:
            plain = [
                {key: value for key, value in record.items() if not isinstance(value, (list, dict))}
                for record in self.records.values()
            ]
            writer = csv.DictWriter(file, fieldnames=list(plain[0]))
            writer.writeheader()
            writer.writerows(plain)

    def _draw(self):
        accuracies: dict[str, dict[int, list[float]]] = {}
        published: dict[str, dict[int, float]] = {}
        for row in self.summary():
            kind, depth = row["kind"], row["depth"]
            accuracies.setdefault(kind, {})[depth] = [
                record["test_accuracy"] for record in self._records_of(kind, depth)
            ]
            if row["published_test_accuracy"] is not None:
                published.setdefault(kind, {})[depth] = row["published_test_accuracy"]
        figure, (ax,) = plots.new_figure()
        plots.plot_accuracy_by_depth(
            accuracies, ax=ax, chance=self.data.chance, published=published
        )
        bias = f"gate bias: {self.settings.gate_bias}"
        setting = f"{self.data.name}, epochs: {self.settings.epochs}, {bias}"
        ax.set_title(setting)
        paths = [self._save(figure, "accuracy_by_depth.png")]

        depths = [d for d in self.settings.depths if any(d in by for by in accuracies.values())]
        figure, axes = plots.new_figure(columns=len(depths), width=4.6)
        for ax, depth in zip(axes, depths, strict=True):
            norms = {
                kind: [r["gradient_norms_at_start"] for r in self._records_of(kind, depth)]
                for kind in self.settings.kinds
                if depth in accuracies.get(kind, {})
            }
            plots.plot_gradient_norms(norms, ax=ax, title=f"depth {depth}")
        figure.suptitle(f"Before training, on {PROBE_SIZE} examples of {self.data.name}, {bias}")
        paths.append(self._save(figure, "gradient_norm_by_layer.png"))

        depths = sorted(accuracies.get("highway", {}))
        if depths:
            figure, axes = plots.new_figure(columns=len(depths), width=4.6)
            for ax, depth in zip(axes, depths, strict=True):
                plots.plot_mean_gates(
                    [record["mean_gates"] for record in self._records_of("highway", depth)],
                    ax=ax,
                    start=1.0 / (1.0 + np.exp(-self.settings.bias_at(depth))),
                    title=f"depth {depth}",
                )
            figure.suptitle(f"After training, on the test examples of {setting}")
            paths.append(self._save(figure, "mean_gate_by_layer.png"))
        return [*paths, *self._draw_epochs()]

    def _draw_epochs(self):
        """What the loggers measured in the first seed of the deepest networks."""
        depth, seed = max(depth for _, depth, _ in self.records), 0
        paths = []
        for kinds, name, plot in (
            (self.settings.kinds, "gradient_norm_by_epoch.png", plots.plot_gradients_over_epochs),
            (("highway",), "gate_mean_by_epoch.png", plots.plot_gates_over_epochs),
        ):
            runs = {
                k: self.records[k, depth, seed] for k in kinds if (k, depth, seed) in self.records
            }
            if runs:
                figure, axes = plots.new_figure(columns=len(runs), width=5.4)
                for ax, (kind, record) in zip(axes, runs.items(), strict=True):
                    plot(record["measured_by_epoch"], ax=ax, title=f"{kind}, depth {depth}")
                figure.suptitle(f"On the training batches of {self.data.name}, seed {seed}")
                paths.append(self._save(figure, name))
        return paths

    def _save(self, figure, name):
        write_whole(self.out / name, figure.savefig)
        return self.out / name

    def export_best(self) -> dict[str, Any]:
        """Exports the best model and compares it, in a process without this package, with Keras.

        Returns:
            A dict with `saved_model` (the path), `largest_difference` of the logits on the test
            set, `test_accuracy` as served, and `agree`; or with `reason` alone where Keras cannot
            export.
        """
        if reason := serving.export_reason():
            return {"reason": reason}
        model = keras.saving.load_model(self.out / "best.keras")
        path = self.out / "best_saved_model"
        expected = model.predict(self.data.x_test, batch_size=512, verbose=0)
        served = serving.export_and_check(model, path, self.data.x_test)
        same = (served == expected) | (np.isnan(served) & np.isnan(expected))
        difference = float(np.where(same, 0.0, np.abs(served - expected)).max())
        scale = max(1.0, float(np.nan_to_num(np.abs(expected)).max()))
        return {
            "saved_model": str(path),
            "largest_difference": difference,
            "test_accuracy": float((served.argmax(1) == self.data.y_test).mean()),
            "agree": difference <= 1e-5 * scale,
        }


def _training_loss(record):
    loss = record["train_loss"]  # None where it is not finite
    return np.inf if loss is None else loss

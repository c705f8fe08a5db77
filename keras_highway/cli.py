"""The command line: parses, shows progress and prints; the work is in `experiments`."""

import argparse
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np

import keras_highway
from keras_highway.data import Dataset, digits, load_arrays, mnist
from keras_highway.data.dataset import require
from keras_highway.experiments import benchmark, compare
from keras_highway.initializers import GATE_BIAS_PRESETS
from keras_highway.validation import InputError, check_number, did_you_mean

INTERRUPTED = 130  # what a shell reports for a program stopped by Ctrl-C


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit status: 0 done, 1 a check failed, 2 bad input."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except (InputError, ImportError) as error:
        print(f"keras-highway {options.command}: error: {error}", file=sys.stderr)
        return 2


def _parser():
    parser = argparse.ArgumentParser(
        prog="keras-highway", description="Experiments with highway networks."
    )
    version = f"%(prog)s {keras_highway.__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_compare(commands)
    _add_benchmark(commands)
    return parser


def _add_benchmark(commands):
    parser = commands.add_parser(
        "benchmark",
        help="time what watching a training costs",
        description="Times training steps with and without GateLogger and GradientNormLogger, and "
        "with a second computation of the gradient in a callback, side by side.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("what", choices=["watching"], help="what is timed")
    parser.add_argument("--repeats", type=_positive, default=30, help="epochs that are timed")
    parser.set_defaults(run=_benchmark)


def _benchmark(options) -> int:
    console = require("rich.console", "rich", "The command line").Console()
    table_module = require("rich.table", "rich", "The command line")
    table = table_module.Table(
        title=f"A training step of a highway network, {keras.backend.backend()}",
        caption=f"medians of {options.repeats} epochs, taken in turn; in brackets the middle half",
    )
    for heading in ("width", "depth", "batch", "callbacks", "ms", "ratio", "aim"):
        table.add_column(heading, justify="left" if heading == "callbacks" else "right")
    for size in benchmark.SIZES:
        with console.status(f"Timing width {size.width}, depth {size.depth} ..."):
            row = benchmark.measure(size, options.repeats)
        for arm, ratios in row["ratios"].items():
            low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75))
            table.add_row(
                str(size.width),
                str(size.depth),
                str(size.batch_size),
                arm,
                f"{1000 * np.median(row['seconds'][arm]):.1f}",
                "1" if arm == "without" else f"{middle:.3f} ({low:.2f}-{high:.2f})",
                f"{size.most:.2f}" if arm == "loggers" else "",
            )
    console.print(table)
    return 0


def _add_compare(commands):
    defaults = compare.Settings()
    parser = commands.add_parser(
        "compare",
        help="train plain and highway networks at several depths and compare them",
        description="Trains plain and highway networks at several depths, with several seeds, "
        "and writes a table, figures and the best model. Ctrl-C keeps what is finished; the same "
        "command takes it up again.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "--depths",
        type=_positive,
        nargs="+",
        default=list(defaults.depths),
        metavar="N",
        help="layers between the first and the output",
    )
    parser.add_argument(
        "--kinds",
        nargs="+",
        choices=compare.KINDS,
        default=list(defaults.kinds),
        help="kinds of network",
    )
    parser.add_argument(
        "--gate-bias",
        type=_gate_bias,
        default=defaults.gate_bias,
        metavar="BIAS",
        help=f"a number, {', '.join(GATE_BIAS_PRESETS)}, or auto: the bias at which half of the "
        "input is carried through all layers",
    )
    parser.add_argument("--seeds", type=_positive, default=defaults.seeds, help="runs of each")
    parser.add_argument("--epochs", type=_positive, default=defaults.epochs, help="of each run")
    parser.add_argument("--width", type=_positive, default=defaults.width, help="units a layer")
    parser.add_argument(
        "--dataset",
        default="digits",
        metavar="DATA",
        help="digits, mnist, or the path of a .npz file",
    )
    parser.add_argument(
        "--data-dir",
        default=argparse.SUPPRESS,
        help="folder of TensorFlow Datasets, for mnist (default: its own)",
    )
    parser.add_argument(
        "--download",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="download mnist if it is not there",
    )
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the results")
    # Python before 3.14 takes -1e-1 for an option.
    parser._negative_number_matcher = re.compile(r"-\.?\d")
    parser.set_defaults(run=_compare)


def _positive(text):
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        fix = " Separate several by spaces." if "," in text else ""
        raise argparse.ArgumentTypeError(
            f"must be an integer of at least 1. Received: {text!r}.{fix}"
        )
    return value


def _gate_bias(text):
    words = ("auto", *GATE_BIAS_PRESETS)
    if text in words:
        return text
    try:
        return check_number("compare", "gate_bias", float(text))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be a finite number or one of {', '.join(sorted(words))}. "
            f"Received: {text!r}. {did_you_mean(text, words)}"
        ) from None


def _load(options) -> Dataset:
    if options.dataset == "digits":
        return digits()
    if options.dataset == "mnist":
        return mnist(getattr(options, "data_dir", None), download=options.download)
    if Path(options.dataset).suffix != ".npz":
        raise InputError(
            "--dataset must be digits, mnist or the path of a .npz file. "
            f"Received: {options.dataset!r}. {did_you_mean(options.dataset, ('digits', 'mnist'))}"
        )
    return load_arrays(options.dataset)


def _compare(options) -> int:
    console = require("rich.console", "rich", "The command line").Console()
    settings = compare.Settings(
        depths=tuple(dict.fromkeys(options.depths)),
        kinds=tuple(dict.fromkeys(options.kinds)),
        gate_bias=options.gate_bias,
        seeds=options.seeds,
        epochs=options.epochs,
        width=options.width,
    )
    comparison = compare.Comparison(settings, _load(options), options.out)
    if comparison.records:
        total = len(settings.runs())
        console.print(f"{len(comparison.records)} of {total} runs are in {options.out} already.")
    try:
        with _Interrupt() as interrupt:
            _train_all(comparison, console, interrupt)
    except KeyboardInterrupt:
        kept = len(comparison.records)
        console.print(f"Interrupted. {kept} of {len(settings.runs())} runs are kept.")
        if kept:
            _report(comparison, console)
        console.print("The same command goes on where this one stopped.")
        return INTERRUPTED
    _report(comparison, console)
    return _check_export(comparison, console)


class _Interrupt:
    """Ctrl-C that is never lost: the first ends training with the epoch, a second one at once.

    Python drops a `KeyboardInterrupt` that happens to be raised inside a garbage collector's
    callback, of which there are many between two trainings.
    """

    def __enter__(self):
        self._received = False
        self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *exception):
        signal.signal(signal.SIGINT, self._before)

    def check(self):
        if self._received:
            raise KeyboardInterrupt

    def _handle(self, number, frame):
        self.check()
        self._received = True


def _train_all(comparison, console, interrupt):
    progress_module = require("rich.progress", "rich", "The command line")
    settings = comparison.settings
    with progress_module.Progress(
        progress_module.TextColumn("{task.description}"),
        progress_module.BarColumn(),
        progress_module.MofNCompleteColumn(),
        progress_module.TimeElapsedColumn(),
        progress_module.TextColumn("{task.fields[note]}"),
        console=console,
    ) as progress:
        runs = progress.add_task(
            "runs", total=len(settings.runs()), completed=len(comparison.records), note=""
        )
        for run in comparison.remaining():
            kind, depth, seed = run
            name = f"{kind:7} depth {depth:4} seed {seed}"
            epochs = progress.add_task(name, total=settings.epochs, note="preparing")

            def on_epoch(epoch, logs, epochs=epochs):
                note = f"training accuracy {100 * logs['accuracy']:.1f} %"
                progress.update(epochs, completed=epoch + 1, note=note)
                interrupt.check()

            record = comparison.train(run, on_epoch)
            progress.remove_task(epochs)
            progress.advance(runs)
            progress.console.print(
                f"{name}  test accuracy {100 * record['test_accuracy']:6.2f} %  "
                f"training loss {_loss(record):>7}  {record['seconds']:4.0f} s",
                highlight=False,
            )
            interrupt.check()


def _report(comparison, console):
    table_module = require("rich.table", "rich", "The command line")
    settings = comparison.settings
    rows = comparison.summary()
    seeds = sorted({row["seeds"] for row in rows})
    published = any(row["published_test_accuracy"] is not None for row in rows)
    counts = str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    table = table_module.Table(
        title=f"Test accuracy in %, {comparison.data.name}, epochs: {settings.epochs}, "
        f"most frequent label: {100 * comparison.data.chance:.2f}",
        caption=f"ours: mean ± standard deviation, and extremes. Seeds: {counts}"
        + ("\npublished: the NumPy lesson, its one seed" if published else ""),
    )
    columns = ["depth", "kind", "gate bias", "ours", "from", "to"]
    for heading in columns + (["published"] if published else []):
        table.add_column(heading, justify="left" if heading == "kind" else "right")
    for row in rows:
        spread = row["test_accuracy_std"]
        table.add_row(
            str(row["depth"]),
            row["kind"],
            _or_dash(row["gate_bias"], 1),
            _or_dash(row["test_accuracy_mean"])
            + ("" if spread is None else f" ± {100 * spread:.2f}"),
            _or_dash(row["test_accuracy_min"]),
            _or_dash(row["test_accuracy_max"]),
            *([_or_dash(row["published_test_accuracy"])] if published else []),
        )
    console.print(table)
    written = ", ".join(path.name for path in comparison.write_results())
    console.print(f"Written to {comparison.out}: {written}", highlight=False, soft_wrap=True)


def _check_export(comparison, console) -> int:
    best = comparison.best()
    console.print(
        f"Lowest training loss, {_loss(best)}: {best['kind']} of depth {best['depth']}, "
        f"seed {best['seed']}, test accuracy {100 * best['test_accuracy']:.2f} %, saved as "
        f"{comparison.out / 'best.keras'}",
        highlight=False,
        soft_wrap=True,
    )
    result = comparison.export_best()
    if "reason" in result:
        console.print(f"No SavedModel was written. {result['reason']}")
        return 0
    console.print(
        f"{result['saved_model']}, loaded in a new process without keras_highway: test "
        f"accuracy {100 * result['test_accuracy']:.2f} %, largest difference of a logit "
        f"{result['largest_difference']:.1e}",
        highlight=False,
        soft_wrap=True,
    )
    if not result["agree"]:
        console.print("The served model does not agree with the Keras model.", style="bold red")
        return 1
    return 0


def _loss(record):
    return "not finite" if record["train_loss"] is None else f"{record['train_loss']:.4f}"


def _or_dash(value, scale=100):
    return "-" if value is None else f"{scale * value:.2f}"

"""Writing files whole or not at all: to a temporary name first, then renamed."""

import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keras_highway.validation import InputError, explain


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Calls `write` with a temporary path beside `path`, and renames what it wrote.

    The suffix is kept, since Keras and Matplotlib tell the format by it. What stood at `path`,
    a file or a folder, is replaced only once `write` has come to its end.
    """
    temporary = path.with_name(f".partial-{os.getpid()}-{path.name}")
    try:
        write(temporary)
        if temporary.is_file():
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())  # or a crash of the machine could leave an empty file
        if path.is_dir():
            shutil.rmtree(path)
        temporary.replace(path)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary)
        else:
            temporary.unlink(missing_ok=True)


def make_output_folder(path: Path) -> None:
    """Creates `path` and makes sure, before anything long starts, that files can be written."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".partial-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(
            explain(
                "The output folder must be one in which files can be written.",
                f"--out {path} ({error.strerror})",
                "Give another folder.",
            )
        ) from error


def write_json(path: Path, value: object) -> None:
    """Writes plain values as JSON, in which nan and infinite numbers become null."""
    text = json.dumps(without_nan(value), indent=2, allow_nan=False)
    write_whole(path, lambda temporary: temporary.write_text(text))


def read_json(path: Path) -> dict[str, Any]:
    """Reads a JSON object; a file that holds none is an `InputError` that names it."""
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError):
        value = None
    if not isinstance(value, dict):
        raise InputError(
            explain(
                "The files of an earlier run must be as they were written.",
                f"{path}, which cannot be read",
                "Remove that file, or give another --out.",
            )
        )
    return value


def without_nan(value: Any) -> Any:
    """The same dicts, lists and numbers with `None` for each number that is not finite."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""Writing files whole or not at all: to a temporary name first, then renamed."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from keras_highway.validation import InputError, explain


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Calls `write` with a temporary path beside `path`, and renames what it wrote.

    The suffix is kept, since Keras and Matplotlib tell the format by it. What stood at `path`,
    a file or a folder, is replaced only once `write` has come to its end.
    """
    temporary = path.with_name(f".partial-{os.getpid()}-{path.name}")
    try:
        write(temporary)
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

"""Checks of arguments. Each error says the rule, what was received and the fix."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np


class InputError(ValueError):
    """An error in what the user gave, which the command line shows without a traceback."""


def explain(rule: str, received: str, fix: str) -> str:
    """The one form that every error message of this package has."""
    return f"{rule} Received: {received}. {fix}"


def did_you_mean(value: Any, allowed: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(value), list(allowed), n=1, cutoff=0.5)
    return f"Did you mean {close[0]!r}?" if close else "Give an allowed value."


def check_choice(owner: str, argument: str, value: Any, allowed: Iterable[str]) -> str:
    """Returns `value` if it is one of the strings in `allowed`."""
    allowed = sorted(allowed)
    if isinstance(value, str) and value in allowed:
        return value
    raise ValueError(
        explain(
            f"`{owner}({argument}=...)` must be {' or '.join(map(repr, allowed))}.",
            f"{argument}={value!r}",
            did_you_mean(value, allowed),
        )
    )


def check_number(owner: str, argument: str, value: Any) -> float:
    """Returns `value` as a Python float if it is a finite real number and no bool."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(
            explain(
                f"`{owner}({argument}=...)` must be a number.",
                f"{argument}={value!r} of type {type(value).__name__}",
                f"Give a finite number, for example {argument}=-2.0.",
            )
        )
    if not math.isfinite(value):
        raise ValueError(
            explain(
                f"`{owner}({argument}=...)` must be finite.",
                f"{argument}={value!r}",
                f"Give a finite number, for example {argument}=-2.0.",
            )
        )
    return float(value)


def check_positive_integer(owner: str, argument: str, value: Any) -> int:
    """Returns `value` as a Python int if it is an integer above zero and no bool."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise TypeError(
            explain(
                f"`{owner}({argument}=...)` must be a positive integer.",
                f"{argument}={value!r} of type {type(value).__name__}",
                f"Give an integer, for example {argument}={_as_integer(value) or 1}.",
            )
        )
    if value < 1:
        raise ValueError(
            explain(
                f"`{owner}({argument}=...)` must be a positive integer.",
                f"{argument}={value!r}",
                f"Give an integer of at least 1, for example {argument}=1.",
            )
        )
    return int(value)


def check_integer_tuple(owner: str, argument: str, value: Any, length: int) -> tuple[int, ...]:
    """Returns `value`, one positive integer or `length` of them, as a tuple of that length."""
    if isinstance(value, (list, tuple)):
        if len(value) != length:
            raise ValueError(
                explain(
                    f"`{owner}({argument}=...)` takes one integer or {length}, one a spatial axis.",
                    f"{argument}={value!r}",
                    f"Give {argument}={tuple(value[:1] or [1]) * length}, for example.",
                )
            )
        return tuple(check_positive_integer(owner, argument, item) for item in value)
    return (check_positive_integer(owner, argument, value),) * length


def _as_integer(value: Any) -> int | None:
    """The positive integer that `value` probably stands for, or `None`."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return int(number) if number.is_integer() and number >= 1 else None

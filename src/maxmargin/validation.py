"""What messages about wrong calls have in common: names that exist and the closest of them, objects and not classes."""

from __future__ import annotations

import contextlib
import difflib
import math
from collections.abc import Iterable
from numbers import Integral
from typing import Any, SupportsIndex

import numpy as np


def one_of(name: str, value: object, known: Iterable[str], besides: str = "") -> Any:
    """The value, if it is one of the known names. ``besides`` is what else the argument may be.

    >>> one_of("loss", "hing", ["hinge", "squared_hinge"])
    Traceback (most recent call last):
    ValueError: loss must be one of ['hinge', 'squared_hinge'], got 'hing'. Perhaps you meant 'hinge'.
    """
    known = list(known)
    if isinstance(value, str) and value in known:
        return value
    raise ValueError(f"{name} must be one of {known}{besides}, got {shown(value)}.{meant(value, known)}")


def meant(value: object, known: Iterable[str]) -> str:
    """The sentence that names what was probably meant, if anything comes close."""
    if not isinstance(value, str):
        return ""
    plain = {name.lower(): name for name in known}
    close = difflib.get_close_matches(value.lower(), plain, n=1)
    return f" Perhaps you meant {plain[close[0]]!r}." if close else ""


def lacking(value: object, *names: str) -> list[str]:
    """Which of these methods and attributes it does not have: what a message says of an object that cannot serve.

    >>> lacking([], "append", "conjugate")
    ['conjugate']
    """
    kind = type(value)  # asked first: to ask the object would compute its properties, and read a whole file for some
    return [name for name in names if not hasattr(kind, name) and not hasattr(value, name)]


def is_source(data: object) -> bool:
    """Whether this is data in chunks rather than in memory (arrays of other libraries may have ``chunks``, a tuple)."""
    return callable(getattr(data, "chunks", None))


def is_seekable(source: object) -> bool:
    """Whether the chunks of a source can be read in any order."""
    return callable(getattr(source, "chunk", None)) and hasattr(source, "offsets")


def check_object(name: str, value: object) -> Any:
    """The value, unless it is a class where an object of it is needed: the parentheses were forgotten."""
    if isinstance(value, type):
        raise ValueError(f"{name} is the class {value.__name__}; give an object of it: {value.__name__}(…).")
    return value


def check_unmasked(name: str, given: object) -> None:
    """Refuse arrays with masked values, also in a list: what stands behind a mask is not meant to be used.

    A mask that hides nothing is no harm.

    >>> check_unmasked("y", np.ma.array([1, 2], mask=[True, False]))
    Traceback (most recent call last):
    ValueError: y is a masked array with 1 masked values. Fill them in, y.filled(value), or drop those rows.
    """
    if type(given) is np.ndarray:  # most are, and single rows are asked for by the thousand
        return
    for part in given if isinstance(given, list | tuple) else (given,):
        if isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part):
            what = f"{name} is" if part is given else f"{name} holds"
            raise ValueError(
                f"{what} a masked array with {np.ma.count_masked(part)} masked values. Fill them in, "
                f"{name if part is given else 'each'}.filled(value), or drop those rows."
            )


def as_float(value: Any) -> float:
    """A number as double precision has it: infinite where it is larger than any.

    >>> as_float(-(10**400))
    -inf
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def whole(name: str, value: Any, least: int = 1, most: int = 2**63 - 1) -> int:
    """A whole number that is not too small, nor more than compiled code can count to."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {shown(value)}.")
    if int(value) > most:
        raise ValueError(f"{name} must be a whole number of at most {most}, got {shown(value)}.")
    return int(value)


def numbers(name: str, value: object) -> np.ndarray:
    """A number or an array of numbers, as float64."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be a number or an array of numbers, got {shown(value)}.") from None


def indices(name: str, value: Any) -> np.ndarray:
    """A list of whole numbers as an array; it may be empty."""
    index = None
    with contextlib.suppress(ValueError):  # NumPy's word for lists of different lengths
        index = np.asarray(value)
    if index is None or (index.size and (index.dtype.kind not in "iu" or index.ndim != 1)):
        raise ValueError(f"{name} must be a list of whole numbers, got {shown(value)}.")
    return index


def switch(name: str, value: object) -> None:
    """True or False, or what stands for them in a table of settings."""
    if not isinstance(value, bool) and not (isinstance(value, SupportsIndex) and value in (0, 1)):
        raise ValueError(f"{name} must be True or False, got {shown(value)}.")


def shown(value: object, most: int = 80) -> str:
    """A value as a message shows it: on one line, and cut where it is long."""
    try:
        text = " ".join(repr(_plain(value)).split())
    except ValueError:  # Python writes no numbers of thousands of digits
        text = f"a {type(value).__name__} of more digits than can be shown"
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _plain(value: Any) -> Any:
    """Numbers and text without the name of NumPy's type around them."""
    if type(value) in (list, tuple, set):
        return type(value)(_plain(entry) for entry in value)
    if type(value) is dict:
        return {_plain(key): _plain(entry) for key, entry in value.items()}
    return value.item() if type(value).__module__ == "numpy" and not getattr(value, "ndim", 1) else value

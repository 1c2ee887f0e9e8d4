"""Checks of numbers and index sets that regularizers are made with."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from ..validation import shown


def numbers(name: str, value: Any) -> np.ndarray:
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


def dot(a: np.ndarray, b: np.ndarray) -> float:
    """a·b on the calling thread.

    BLAS hands long vectors to its thread pool and waits; inside a solver that calls it once per pass, on a
    machine with other work to do, the waiting took most of the time of a fit.

    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return float(np.einsum("i,i->", a, b))

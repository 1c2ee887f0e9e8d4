"""Numbers: settings, checked before any image is read, and those that are drawn."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from ...wording import shown

MOST_SCALES = 64  # of an octave: more would take the memory of all of them and tell nothing
FINEST = 8.0  # times that images may be enlarged
_MOST = 2**31 - 1  # what nobody means


def generator_for(image: np.ndarray, seed: int) -> np.random.Generator:
    """Draws from an image depend on its pixels, not on its place among others."""
    pixels = hashlib.blake2b(image.tobytes(), digest_size=8).digest()
    return np.random.default_rng([seed, int.from_bytes(pixels, "little")])


def whole(name: str, value: Any, least: int, of: str = "", most: int = _MOST) -> int:
    """A whole number that is neither too small nor too large.

    >>> whole("stride", 2, least=1)
    2
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        limits = f"at least {least}" + (f" and at most {most}" if most < _MOST else "")
        raise ValueError(f"{name} must be a whole number{of and f' of {of}'}, {limits}, got {shown(value)}.")
    return int(value)

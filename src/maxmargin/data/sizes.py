"""Sizes as people write them: bytes and threads."""

from __future__ import annotations

import os
import re

from ..validation import shown

_ENDLESS = 2**63  # bytes that no machine can address
_UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", start=1):
    _UNITS |= dict.fromkeys((_letter, f"{_letter}B", f"{_letter}IB"), 2 ** (10 * _power))


def as_bytes(size: float | str, name: str) -> int:
    """A number of bytes, also from text such as "512MB" or "1.5 G", units being powers of 1024.

    ``name`` is what the message calls it.

    >>> as_bytes("1.5 KiB", "memory"), as_bytes(7, "memory")
    (1536, 7)
    """
    found: float = -1.0
    if isinstance(size, str):
        parts = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([A-Za-z]*)\s*", size)
        if parts is not None and parts[2].upper() in _UNITS:
            found = float(parts[1]) * _UNITS[parts[2].upper()]
    else:
        found = size
    if not (found >= 1 and found < _ENDLESS):
        raise ValueError(f"{name} must be a number of bytes or text such as '512MB', not {shown(size)}.")
    return int(found)


def few_threads(n: int) -> int:
    """No more threads than can be of use, though more than there are cores, as some wait for a disk.

    >>> few_threads(2), few_threads(10**9) < 10**5
    (2, True)
    """
    return min(n, max(64, 4 * (os.cpu_count() or 1)))

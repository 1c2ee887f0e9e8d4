"""Sizes in bytes as people write them."""

from __future__ import annotations

import re

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
    if not found >= 1:
        raise ValueError(f"{name} must be a number of bytes or text such as '512MB', not {size!r}.")
    return int(found)

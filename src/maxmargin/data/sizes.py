"""Sizes in bytes as people write them."""

from __future__ import annotations

import re

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def as_bytes(size: int | str, name: str) -> int:
    """A number of bytes, also from text such as "512MB" or "1.5 GiB"; ``name`` is what the message calls it.

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

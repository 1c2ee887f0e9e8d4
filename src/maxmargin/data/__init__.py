"""Data on its way in: user arrays become ``Rows`` without a copy, files become sources that are read chunk by chunk."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import DataError as DataError

if TYPE_CHECKING:
    from . import synthetic as synthetic
    from .bags import Bags as Bags
    from .conll import read_conll as read_conll, write_conll as write_conll
    from .conversion import convert as convert
    from .dependencies import read_trees as read_trees
    from .opening import open as open
    from .segments import convert_segments as convert_segments

__all__ = [
    "Bags",
    "DataError",
    "convert",
    "convert_segments",
    "open",
    "read_conll",
    "read_trees",
    "synthetic",
    "write_conll",
]

_HOMES = {
    "Bags": "bags",
    "convert": "conversion",
    "convert_segments": "segments",
    "open": "opening",
    "read_conll": "conll",
    "read_trees": "dependencies",
    "write_conll": "conll",
}


def __getattr__(name: str) -> Any:
    """Names are imported when they are first used, like all that needs SciPy."""
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    if name == "synthetic":
        return import_module(".synthetic", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

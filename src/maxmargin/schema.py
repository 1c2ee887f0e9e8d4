"""What the attributes of a fitted estimator look like, in a few characters each.

    float, int, bool, text      one number that is finite; one from 0 on; True or False; a string
    d                           a whole number, and the size that this letter stands for
    float[k, d], int[n]<k       arrays of finite numbers and of whole numbers from 0 to k − 1
    float[...]                  an array of any shape
    labels[k]                   text or numbers, sorted and all different
    names[d]                    text
    list, tuple, dict, none, any  what they say
    Planes, Chain               an object of the class of that name
    float[n]|none               one or the other

A letter stands for the same size in all attributes of an estimator. The same text is used when it is saved and when it
is loaded: a file whose numbers are others than ``fit`` could have made is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

_ONE = re.compile(r"(\w+)(?:\[([^\]]*)\])?(?:<(\w+))?")
_KINDS = {"float": "f", "int": "iu", "bool": "b"}
_LABELS = (str, bool, int, float)


def check(owner: str, values: Mapping[str, Any], specs: Mapping[str, str]) -> None:
    """Complain of the first attribute that is not what its specification says."""
    sizes: dict[str, int] = {}
    for name, spec in specs.items():
        if name in values and not any(_fits(values[name], one.strip(), sizes) for one in spec.split("|")):
            known = {letter: size for letter, size in sizes.items() if letter in re.findall(r"\w+", spec)}
            told = f", where {', '.join(f'{k} = {v}' for k, v in known.items())}" if known else ""
            raise ValueError(f"{name} of {owner} must be {spec}{told}; it is {_described(values[name])}")


def is_label(value: object) -> bool:
    """Whether a value may name a class: text, a number that is finite, or a tuple of such."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, tuple):
        return all(map(is_label, value))
    return isinstance(value, _LABELS) and (not isinstance(value, float) or bool(np.isfinite(value)))


def _fits(value: object, one: str, sizes: dict[str, int]) -> bool:
    found = _ONE.fullmatch(one)
    assert found is not None, one
    kind, axes, below = found.groups()
    if axes is not None:
        return _fits_array(value, kind, [axis.strip() for axis in axes.split(",")], below, sizes)
    value = value.item() if isinstance(value, np.generic) else value
    if kind == "float":
        return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))
    if kind == "int" or len(kind) == 1:
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            return False
        if len(kind) == 1:
            return sizes.setdefault(kind, value) == value
        return below is None or value < int(below)
    plain = {"bool": bool, "text": str, "list": list, "tuple": tuple, "dict": dict, "none": type(None), "any": object}
    if kind in plain:
        return isinstance(value, plain[kind])
    return kind in (cls.__name__ for cls in type(value).__mro__)


def _fits_array(value: object, kind: str, axes: list[str], below: str | None, sizes: dict[str, int]) -> bool:
    if not isinstance(value, np.ndarray):
        return False
    if axes != ["..."]:
        if value.ndim != len(axes):
            return False
        sizes_here = dict(sizes)
        for axis, size in zip(axes, value.shape, strict=True):
            if (int(axis) if axis.isdigit() else sizes_here.setdefault(axis, size)) != size:
                return False
        sizes.update(sizes_here)
    if kind in ("labels", "names"):
        return _are_labels(value) if kind == "labels" else all(isinstance(name, str) for name in value.tolist())
    if value.dtype.kind not in _KINDS[kind] or (kind == "float" and not np.isfinite(value).all()):
        return False
    if below is None or not value.size:
        return True
    return int(value.min()) >= 0 and int(value.max()) < (int(below) if below.isdigit() else sizes[below])


def _are_labels(value: np.ndarray) -> bool:
    names = value.tolist()
    try:
        return value.dtype.kind in "iufbUO" and all(map(is_label, names)) and all(a < b for a, b in pairwise(names))
    except TypeError:  # which cannot be compared
        return False


def _described(value: object) -> str:
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            return f"an array with entries that are not finite, of shape {value.shape}"
        return f"an array of {value.dtype} of shape {value.shape}"
    return f"{type(value).__name__} {value!r}"[:80]

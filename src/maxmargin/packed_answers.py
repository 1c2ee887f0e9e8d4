"""Answers of one kind as few arrays, and back again: how files hold those behind the dual variables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import schema

_COLUMNS = 8  # more than rows of any answer have
# Kinds of answers that a file can hold: how they are recognised, and how they are made from an array again.
_ANSWERS: dict[str, tuple[Callable[[Any], bool], Callable[[np.ndarray], Any]]] = {
    "number": (lambda label: isinstance(label, int | np.integer), lambda array: array.item()),
    "array": (lambda label: isinstance(label, np.ndarray) and label.dtype.kind in "iub", lambda array: array),
    "tuple": (lambda label: isinstance(label, tuple) and _all_whole(label), lambda array: tuple(array.tolist())),
    "list": (lambda label: isinstance(label, list) and _all_whole(label), lambda array: array.tolist()),
}


def _all_whole(label: Any) -> bool:
    return all(isinstance(part, int | np.integer) and not isinstance(part, bool) for part in label)


def packed(labels: list[Any]) -> dict[str, Any] | None:
    """Answers of one kind as few arrays; None if they are of no such kind."""
    kind = next((k for k, (is_one, _) in _ANSWERS.items() if all(map(is_one, labels))), None)
    if kind is None:
        if not all(isinstance(label, tuple) and len(label) == 2 for label in labels):
            return None
        halves = [packed([label[k] for label in labels]) for k in (0, 1)]
        return None if None in halves else {"pairs": halves}
    found = [np.asarray(label) for label in labels]
    if len({(label.ndim, label.dtype) for label in found}) > 1:
        return None
    flat, shapes = (
        np.concatenate([label.ravel() for label in found]),
        np.array([label.shape for label in found], np.int64),
    )
    return {"kind": kind, "values": flat, "shapes": shapes}


def unpacked(parts: dict[str, Any]) -> list[Any]:
    """The answers that ``packed`` was given; ValueError if these arrays hold none."""
    if "each" in parts:
        return parts["each"]
    if "pairs" in parts:
        return list(zip(*map(unpacked, parts["pairs"]), strict=True))
    schema.check("answers", parts, {"values": "int[m]|bool[m]", "shapes": "int[n,a]"})
    _, make = _ANSWERS[parts["kind"]]
    values, shapes = parts["values"], parts["shapes"].tolist()
    sizes = [math.prod(shape) for shape in shapes]  # of Python's numbers, which do not overflow
    most = max(values.size, _COLUMNS)  # where an answer has no rows, its columns are still there
    if sum(sizes) != values.size or any(not 0 <= size <= most for shape in shapes for size in shape):
        raise ValueError("the shapes of answers are not those of their values")
    if parts["kind"] != "array" and parts["shapes"].shape[1] != (parts["kind"] != "number"):
        raise ValueError(f"answers of kind {parts['kind']} have {parts['shapes'].shape[1]} axes")
    flat = np.split(values, np.cumsum(sizes, dtype=np.int64)[:-1])
    return [make(part.reshape(shape)) for part, shape in zip(flat, shapes, strict=True)]

"""What the loops of ``kernels`` do, in array code: for points so few that to compile the loops would take longer."""

from __future__ import annotations

import numpy as np

_Array = np.ndarray


def _squares(X: _Array, centres: _Array) -> _Array:
    """‖x_i − μ_z‖² of every row and centre."""
    gaps = X.astype(np.float64)[:, None, :] - centres[None, :, :]
    return np.einsum("nkd,nkd->nk", gaps, gaps)


def measure(
    X: _Array,
    s: _Array,
    shift: _Array,
    centres: _Array,
    label: _Array,
    near: _Array,
    least: _Array,
    start: int,
    stop: int,
) -> tuple[float, float, int]:
    part = slice(start, stop)
    far, label = _squares(X[part], centres), label[part]
    rows = np.arange(label.size)
    own, lowest = far[rows, label], far.min(axis=1)
    near[part] = np.where(own > lowest, far.argmin(axis=1), label)
    least[part] = lowest
    return float(s[part] @ lowest), float(s[part] @ (own - lowest)), int((near[part] != label).sum())


def add_rows(X: _Array, s: _Array, label: _Array, start: int, stop: int, total: _Array, mass: _Array) -> None:
    part = slice(start, stop)
    np.add.at(mass, label[part], s[part])
    np.add.at(total, label[part], s[part, None] * X[part])


def runners_up(
    X: _Array,
    s: _Array,
    shift: _Array,
    centres: _Array,
    near: _Array,
    least: _Array,
    second: _Array,
    price: _Array,
    start: int,
    stop: int,
) -> None:
    part = slice(start, stop)
    far, own = _squares(X[part], centres), near[part]
    rows = np.arange(own.size)
    far[rows, own] = np.inf
    second[part] = far.argmin(axis=1)
    np.add.at(price, own, s[part] * np.maximum(0.0, far[rows, second[part]] - least[part]))


def approach(X: _Array, s: _Array, closest: _Array, candidates: _Array, total: _Array, start: int, stop: int) -> None:
    far = _squares(X[start:stop], X[candidates])
    total += s[start:stop] @ np.minimum(far, closest[start:stop, None])


def come_closer(X: _Array, s: _Array, closest: _Array, chosen: int, share: _Array, start: int, stop: int) -> None:
    part = slice(start, stop)
    closest[part] = np.minimum(closest[part], _squares(X[part], X[[chosen]])[:, 0])
    share[part] = s[part] * closest[part]

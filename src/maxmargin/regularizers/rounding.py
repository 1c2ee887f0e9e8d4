"""What rounding may have changed in Ω and Ω*: certificates are moved apart by so much."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.vectors import dot
from ..rounding import gamma

_FORMULA = 16  # operations besides those of the sums


def value_error(regularizer: Any, w: np.ndarray) -> float:
    """By how much the exact Ω(w) may be above ``value(w)``.

    A regularizer may say so itself, by a method of this name; any other is taken for a sum of terms that are not
    negative, each formed in a few operations.
    """
    own = getattr(regularizer, "value_error", None)
    if own is not None:
        return own(w)
    return gamma(w.size + _FORMULA) * abs(regularizer.value(w))


def conjugate_error(regularizer: Any, v: np.ndarray, error: np.ndarray) -> float:
    """By how much Ω* may be above ``conjugate(v)`` anywhere within ``error`` of v.

    A regularizer may say so itself, by a method of this name.
    """
    own = getattr(regularizer, "conjugate_error", None)
    return smooth_conjugate_error(regularizer, v, error) if own is None else own(v, error)


def smooth_conjugate_error(regularizer: Any, v: np.ndarray, error: np.ndarray) -> float:
    """The same for a strongly convex Ω whose map from v to w is diagonal, as ``shape`` says, clipped or shrunk.

    The gradient of Ω* at v is w, and its curvature is at most the scale of the map. Ω*(v) = w·v − Ω(w) consists of
    terms no larger than these.
    """
    shape = regularizer.shape(v.size)
    scale = np.ones(v.size) if shape.scale is None else shape.scale
    centre = np.zeros(v.size) if shape.centre is None else np.abs(shape.centre)
    w = regularizer.weights(v)
    # The weights themselves are rounded by so much. w·v − Ω(w) is largest there: what it loses is of second order.
    slip = gamma(v.size + _FORMULA) * np.where(v == 0.0, 0.0, scale * np.abs(v) + centre)
    terms = dot(np.abs(w), np.abs(v)) + abs(regularizer.value(w))
    moved = dot(np.abs(w) + slip, error) + 0.5 * (dot(scale * error, error) + dot(slip, slip / scale))
    return 4.0 * gamma(v.size + _FORMULA) * terms + (1.0 + gamma(v.size + _FORMULA)) * moved

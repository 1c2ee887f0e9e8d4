"""Losses: what an example pays for missing its margin, and the conjugate that its dual variable sees.

A loss is one class here and one line in the tables below, which say what users may call it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.losses import LossShape, cost
from ..protocols import Loss
from ..validation import as_float, check_object, lacking, one_of, shown
from .hinges import EpsilonInsensitive, Hinge, SmoothedHinge, SquaredEpsilonInsensitive, SquaredHinge

__all__ = ["EpsilonInsensitive", "Hinge", "LossShape", "SmoothedHinge", "SquaredEpsilonInsensitive", "SquaredHinge"]

MARGIN: dict[str, type] = {"hinge": Hinge, "squared_hinge": SquaredHinge, "smoothed_hinge": SmoothedHinge}
"""Losses of classifiers and rankings: of a margin that is missed on one side."""

DISTANCE: dict[str, type] = {
    "epsilon_insensitive": EpsilonInsensitive,
    "squared_epsilon_insensitive": SquaredEpsilonInsensitive,
}
"""Losses of regressions: of a distance on either side."""


def named(loss: Any, known: dict[str, type], **settings: float) -> Loss:
    """The loss of that name, made with these settings; an object with the methods of a loss is returned as it is.

    >>> named("smoothed_hinge", MARGIN)
    SmoothedHinge(width=1.0)
    """
    check_object("loss", loss)
    if isinstance(loss, str) or loss is None:
        return known[one_of("loss", loss, known, " or a loss of maxmargin.losses")](**settings)
    missing = lacking(loss, "value", "conjugate", "shape")
    if missing:
        raise ValueError(
            f"loss must be one of {list(known)} or have the methods of maxmargin.protocols.Loss; {shown(loss)} lacks "
            f"{', '.join(missing)}."
        )
    _check_alike(loss)
    return loss


def _check_alike(loss: Loss) -> None:
    """Kernels and certificates know a loss by its shape alone: it must be the shape of its value."""
    shape = shape_of(loss)
    missed = np.array([0.0, 0.5, 1.0, 2.0, 4.0]) * (1.0 + shape.epsilon + shape.curvature)
    kernel = np.array([cost.py_func(m - shape.epsilon, 1.0, shape) for m in missed])
    value = np.asarray(loss.value(missed))
    if value.shape != missed.shape or not np.allclose(value, kernel, rtol=1e-9, atol=1e-12):
        raise ValueError(
            f"{loss!r}: value and shape are of different losses. At {missed} value gives {value}, {shape} is {kernel}. "
            "Only the losses that LossShape describes can be trained; maxmargin.checks.check_loss says more."
        )


def shape_of(loss: Loss) -> LossShape:
    """The loss as kernels read it, checked; numbers have the types that kernels were compiled for."""
    check_object("loss", loss)
    given = loss.shape()
    try:
        epsilon, curvature, bounded = given
        shape = LossShape(as_float(epsilon), as_float(curvature), bool(bounded))
    except (TypeError, ValueError):
        raise ValueError(
            f"{loss!r}: its shape must be two numbers and a truth value, got {shown(given)}. Return "
            "maxmargin.losses.LossShape(epsilon, curvature, bounded)."
        ) from None
    if not (0.0 <= shape.epsilon < float("inf") and 0.0 <= shape.curvature < float("inf")):
        raise ValueError(f"{loss!r}: epsilon and curvature of its shape must be finite and not negative, got {shape}.")
    if shape.curvature == 0.0 and not shape.bounded:
        raise ValueError(f"{loss!r}: a loss without curvature must be bounded, got {shape}.")
    return shape

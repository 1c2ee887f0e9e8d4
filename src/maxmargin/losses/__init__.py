"""Losses: what an example pays for missing its margin, and the conjugate that its dual variable sees.

A loss is one class here and one line in the tables below, which say what users may call it.
"""

from __future__ import annotations

from typing import Any

from ..kernels.losses import LossShape
from ..protocols import Loss
from ..validation import as_float, check_object, one_of, shown
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
    missing = [method for method in ("value", "conjugate", "shape") if not hasattr(loss, method)]
    if missing:
        raise ValueError(
            f"loss must be one of {list(known)} or have the methods of maxmargin.protocols.Loss; {shown(loss)} lacks "
            f"{', '.join(missing)}."
        )
    return loss


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

"""Closed constraints in a few numbers: what a solver is chosen by where no row is at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..kernels.losses import LossShape

_HINGE = LossShape()


@dataclass(frozen=True)
class Description:
    """What constraints are like.

    Numbers about rows are means, over all of them or over a sample. They are small and travel well: whoever has rows
    describes them, whoever has none joins the descriptions.

    Parameters
    ----------
    kind : str
        Name of their class, for messages.
    n_examples : int
    scalar : bool
        Whether each example has one signed dual variable, for which there are compiled Newton steps.
    slots_per_example : float
        Constraints of an example that share its slack, and one more for the slack itself where the loss is bounded.
        Zero: no Newton steps are known for such constraints, and the numbers below mean nothing.
    columns : int
        Classes of a joint problem, which has so many weights for each column of the matrix.
    loss : LossShape
        What the kernels know of the loss.
    two_sided : bool
        Whether an example may cost above its target as well as below it.
    dense : bool
        Whether every value of a row is stored.
    paired : bool
        Whether rows are differences of two stored ones.
    width : int
        Columns of the stored matrix.
    stored : float
        Stored values of a row.
    squared_norm : float
        ‖x‖² of a row.
    budget : float
        C of an example.

    Examples
    --------
    >>> few = Description("Scalar", 10, scalar=True, width=4, stored=2.0, budget=1.0)
    >>> many = Description("Scalar", 30, scalar=True, width=4, stored=4.0, budget=1.0)
    >>> Description.joined([few, many]).stored
    3.5
    """

    kind: str
    n_examples: int
    scalar: bool = False
    slots_per_example: float = 0.0
    columns: int = 1
    loss: LossShape = _HINGE
    two_sided: bool = False
    dense: bool = False
    paired: bool = False
    width: int = 0
    stored: float = 0.0
    squared_norm: float = 0.0
    budget: float = 0.0

    @staticmethod
    def joined(parts: Sequence[Description]) -> Description:
        """All parts of a problem as one; parts without examples have no say, unless there are no others.

        ``two_sided``, ``dense`` and ``paired`` are true if they are true of one part.
        """
        heard = [part for part in parts if part.n_examples] or list(parts[:1])
        if not heard:
            raise ValueError("A problem has one part at least, but no description was given.")
        first = heard[0]
        for part in heard[1:]:
            if (part.kind, part.columns, part.loss) != (first.kind, first.columns, first.loss):
                raise ValueError(
                    "All parts of a problem must have the same kind of constraints and the same loss, but there are "
                    f"{first.kind} with {first.loss} and {part.kind} with {part.loss}. Make them by the same model."
                )
        shares = np.array([float(part.n_examples) for part in heard])
        shares = shares / shares.sum() if shares.any() else shares

        def mean(values: list[float]) -> float:
            return float(shares @ np.array(values))

        return replace(
            first,
            n_examples=sum(part.n_examples for part in heard),
            two_sided=any(part.two_sided for part in heard),
            dense=any(part.dense for part in heard),
            paired=any(part.paired for part in heard),
            slots_per_example=mean([part.slots_per_example for part in heard]),
            width=max(part.width for part in heard),
            stored=mean([part.stored for part in heard]),
            squared_norm=mean([part.squared_norm for part in heard]),
            budget=mean([part.budget for part in heard]),
        )


def description_of(constraints: Any) -> Description:
    """What constraints say of themselves; of others only their name is known."""
    if hasattr(constraints, "describe"):
        return constraints.describe()
    return Description(type(constraints).__name__, constraints.n_examples)

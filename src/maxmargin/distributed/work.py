"""What a round asks of a worker, and what comes back."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ..problem import TotalLoss, Totals


class Task(NamedTuple):
    """What a round asks of a worker. The v that the round begins with comes beside it."""

    sigma: float
    """σ of Ω/σ, under which the worker improves its dual variables: the number of shards is always safe."""
    everything: bool
    """Whether to visit all examples, or only those that were last seen to move."""
    wanted: float
    """The duality gap that the whole problem may keep."""
    momentum: float = 0.0
    """Go on so far along the last change first. The v that is sent has gone along already."""
    evaluate: bool = False
    """Whether to compute the loss at the weights of v, too."""
    sweeps: int = 1
    """Go over what moves so often: the more, the longer it takes to call everybody."""
    hand_over: int = 0
    """So many bytes of the examples that still move may leave for the driver's own memory."""


class Report(NamedTuple):
    """What has come of a round; the change of v comes beside it."""

    linear: float
    """The change of the part of the dual objective that is linear in α."""
    gap: float
    """The duality gap that was met on the way."""
    visited: int
    active: int
    """Examples that were visited, and those among the shard's own that still move."""
    n_constraints: int
    nbytes: int
    bytes_active: int = 0
    """What those that still move would take in the driver's memory; 0 where they cannot leave."""
    loss: TotalLoss | None = None
    parcel: Any = None
    """Examples that leave for the driver: (constraints, their places in the shard, dual variables, norms)."""
    goes_along: bool = False
    """Whether the dual variables can take part in momentum."""
    round: int = 0
    """The number of the round that asked for this: slow workers answer in a later one."""
    seconds: float = 0.0


class Work(Protocol):
    """The dual variables of a shard, and the solver that improves them while all others stand still."""

    n_examples: int

    @property
    def alpha(self) -> Any: ...

    def improve(self, v: np.ndarray, task: Task) -> tuple[Report, np.ndarray]:
        """Raise the dual objective of the shard under Ω/σ, seen from v. Returns the change of v as well."""
        ...

    def totals(self) -> Totals:
        """The linear part of the dual objective and Σ α (truth − rival), from nothing."""
        ...

"""The interior point over shards: sums over rows are sums over workers, added by a tree."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.normal_equations import Point
from ..problem import Problem
from ..solvers.interior_point import InteriorPoint, InteriorState
from ..solvers.interior_rows import added_advances, added_looks
from ..solvers.interior_slots import SlotValues

if TYPE_CHECKING:
    from .sharded import Sharded
    from .worker_group import Arguments


class InteriorOnShards:
    """What the interior point asks of rows (as ``InteriorRows``), as sums over shards."""

    def __init__(self, sharded: Sharded, n_threads: int) -> None:
        self._sharded, self._workers = sharded, sharded.workers
        self._deaths = self._workers.deaths
        self.description = sharded.describe()
        self._fetched: dict[str, np.ndarray] = {}
        self._workers.set_up("begin_interior", lambda k: (self.description, n_threads))

    @property
    def lost(self) -> bool:
        """Whether a worker has died, and its points with it."""
        return self._workers.deaths != self._deaths

    def centre(self, w: np.ndarray, mu: float) -> None:
        self._ask(lambda k: ("centre", w, mu))

    def look(self, w: np.ndarray, directions: np.ndarray, mu: float) -> tuple[np.ndarray, np.ndarray]:
        sums, heavy = self._workers.total("interior", lambda k: ("look", w, directions, mu))
        nothing = np.zeros(w.size)
        _, joined = added_looks(w.size, [(nothing, part) for part in sums if part is not None])
        return heavy[0] if heavy else nothing, joined

    def advance(
        self, w: np.ndarray, directions: np.ndarray, mu: float, length: float, precise: bool, keep: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self._fetched.clear()
        _, heavy = self._workers.total("interior", lambda k: ("advance", w, directions, mu, length, precise, keep))
        return added_advances(w.size, [heavy] if heavy else [])  # type: ignore[list-item]

    @property
    def alpha(self) -> np.ndarray:
        return self._whole("alpha")

    @property
    def kept(self) -> np.ndarray:
        return self._whole("kept")

    def saved(self) -> Point | SlotValues:
        parts = self._ask(lambda k: ("saved",))
        return type(parts[0])(*(np.concatenate(values) for values in zip(*parts, strict=True)))

    def _whole(self, name: str) -> np.ndarray:
        """Dual variables of all shards, fetched once after a step: workers may die, and lose those of theirs."""
        if name not in self._fetched:
            self._fetched[name] = np.concatenate(self._ask(lambda k: (name,)))
        return self._fetched[name]

    def _ask(self, question: Arguments) -> list[Any]:
        return [answer for answer in self._workers.ask("interior", question) if answer is not None]

    def load(self, point: Sequence[np.ndarray], kept: np.ndarray | None = None) -> None:
        spans = [slice(a, b) for a, b in pairwise(self._sharded.first.tolist())]

        def part(k: int) -> tuple[str, list[np.ndarray], np.ndarray | None]:
            mine = [p[spans[k]] if p.size else p for p in point]
            return "load", mine, None if kept is None else kept[spans[k]]

        self._fetched.clear()
        self._ask(part)


class ShardInterior(InteriorPoint):
    """The interior point, begun anew whenever a worker has died: its rows have lost their place on the path."""

    def start(self, problem: Problem, warm: Any = None) -> InteriorState:
        while _are_lost(state := super().start(problem, warm)):
            pass
        return state

    def step(self, problem: Problem, state: InteriorState) -> InteriorState:
        if not _are_lost(state):
            state = super().step(problem, state)
        return self.start(problem) if _are_lost(state) else state

    def restore(self, problem: Problem, saved: dict[str, Any]) -> InteriorState:
        while _are_lost(state := super().restore(problem, saved)):
            pass
        return state


def _are_lost(state: InteriorState) -> bool:
    rows: Any = state.rows
    return rows.lost

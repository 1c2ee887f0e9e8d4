"""Choosing the labels of the next bound, within a budget of regret; ``kernels.py`` has the formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from . import kernels
from .points import Measured, Points
from .starts import Spread


class Chooser(Protocol):
    """Chooses the next bound."""

    def ceiling(self, last: float, at: Measured, eta: float) -> float:
        """What the next bound may be worth at these centres at most, from the ceiling of the bound before.

        As in the thesis: that of the bound before, less the share η of its gap.
        """
        return at.objective + (1.0 - eta) * at.gap

    def choose(
        self, points: Points, centres: np.ndarray, at: Measured, budget: float, rng: np.random.Generator
    ) -> np.ndarray | None:
        """Labels whose regrets at these centres sum up to no more than a budget above zero.

        None: there is nothing to choose, nor will there be with a smaller budget.
        """
        ...


@dataclass(frozen=True)
class RandomWalk(Chooser):
    """Any valid labels, all equally likely but for the finite length of the walk: ``sweeps`` steps per point."""

    sweeps: float

    def choose(
        self, points: Points, centres: np.ndarray, at: Measured, budget: float, rng: np.random.Generator
    ) -> np.ndarray:
        label = np.empty(points.n, np.int32)
        steps = max(1, round(self.sweeps * points.n))
        seed = int(rng.integers(1, 2**63))
        kernels.walk(points.X, points.weight, centres, at.near, at.least, label, budget, steps, seed)
        return label


@dataclass(frozen=True)
class Merge(Chooser):
    """Clusters that cost little are given up to their neighbours: their centres are free to go where they are needed.

    The cheapest first, as long as the budget lasts and one more centre, drawn as k-means++ draws it, would gain
    ``worth`` times the price. The centre gains more when it moves on from its point to a mean, hence a number below 1.
    A cluster that takes in points is not given up in the same bound.

    Which cluster is cheap is only seen when centres have settled, and the gaps of settled centres are small. So the
    ceiling sinks from its own last value, by the share ``sinks`` (η, where that is more) of its height above F: v_t =
    v_{t−1} − η (v_{t−1} − F(μ_t)). Bounds may rise beneath it.
    """

    worth: float = 0.5
    sinks: float = 0.3

    def ceiling(self, last: float, at: Measured, eta: float) -> float:
        return last - max(eta, self.sinks) * (last - at.objective)

    def choose(
        self, points: Points, centres: np.ndarray, at: Measured, budget: float, rng: np.random.Generator
    ) -> np.ndarray | None:
        k, label, second = points.n_clusters, at.near.copy(), np.empty(points.n, np.int32)

        def work(start: int, stop: int) -> np.ndarray:
            price = np.zeros(k)
            points.loops.runners_up(
                points.X, points.weight, points.shift, centres, at.near, at.least, second, price, start, stop
            )
            return price

        price = np.sum(points.over_parts(work), axis=0)
        if at.changed == 0.0 and price.min() > budget:
            return None  # centres have settled, and all clusters are too dear
        gone, needed = np.zeros(k, bool), np.zeros(k, bool)
        spread = Spread(points, at.least)
        for z in np.argsort(price, kind="stable"):
            if price[z] > budget:
                break
            members = np.flatnonzero(at.near == z)
            heirs = second[members]
            if needed[z] or gone[heirs].any():
                continue
            before = spread.share.sum()
            spread.draw(rng)
            if before - spread.share.sum() <= self.worth * price[z]:
                break
            budget -= price[z]
            gone[z], needed[heirs] = True, True
            label[members] = heirs
        return label


class MaximumEntropy(Chooser):
    """G-MME: labels drawn independently, with the most entropy for which the *expected* regret fits the budget."""

    def __init__(self) -> None:
        self._last = 0.0

    def choose(
        self, points: Points, centres: np.ndarray, at: Measured, budget: float, rng: np.random.Generator
    ) -> np.ndarray:
        t = self._tilt(points, centres, at, budget)
        label, uniform = np.empty(points.n, np.int32), rng.random(points.n)

        def work(start: int, stop: int) -> None:
            kernels.draw(
                points.X, points.weight, points.shift, centres, at.near, at.least, t, uniform, label, start, stop
            )

        points.over_parts(work)
        return label

    def _tilt(self, points: Points, centres: np.ndarray, at: Measured, budget: float) -> float:
        """The least t ≥ 0 whose expected regret is within the budget, from above: the expectation falls with t.

        Bisection between a t that is known to be too small and one that is not; Newton's step in its place where it
        falls between the two, which takes a quarter of the evaluations.
        """

        def excess(t: float) -> tuple[float, float]:
            def work(start: int, stop: int) -> tuple[float, float]:
                return kernels.expected_regret(points.X, points.weight, points.shift, centres, at.least, t, start, stop)

            mean, variance = (sum(column) for column in zip(*points.over_parts(work), strict=True))
            return mean - budget, variance

        over, fall = excess(0.0)
        if over <= 0.0:
            return 0.0
        low, high = 0.0, np.inf
        t = self._last or points.n / budget
        for _ in range(100):
            over, fall = excess(t)
            if over > 0.0:
                low = t
            else:
                high = t
                if over > -1e-3 * budget:
                    break
            step = t + (over + 5e-4 * budget) / fall if fall > 0.0 else np.inf
            middle = 0.5 * (low + high) if np.isfinite(high) else 4.0 * low
            t = step if low < step < min(high, 4.0 * t) else middle
        self._last = high
        return high


# How a bound is chosen, by name: from the number of sweeps, which only the walk has a use for.
BOUNDS: dict[str, Callable[[float], Chooser]] = {
    "merge": lambda sweeps: Merge(),
    "random": RandomWalk,
    "gmme": lambda sweeps: MaximumEntropy(),
}

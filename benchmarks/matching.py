"""Time at matched quality: which runs reach a target, and how the times compare.

Ours reaches a target when its *certificate* says so: (upper - lower) / upper <= target. A peer, which
certifies nothing, is credited as soon as its primal objective is within the target of the optimum,
although its user would not know it yet.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from runs import Run


@dataclass(frozen=True)
class Optimum:
    """The best bounds known: `lower` from our certificates, `upper` the best primal value of anyone."""

    lower: float
    upper: float

    @classmethod
    def of(cls, runs: Iterable[Run]) -> "Optimum":
        known = [run for run in runs if run.primal is not None]
        return cls(
            max((run.lower for run in known if run.lower is not None), default=0.0),
            min((run.primal for run in known), default=float("inf")),
        )

    @property
    def uncertainty(self) -> float:
        return max(0.0, (self.upper - self.lower) / self.upper)

    def side(self, target: float) -> str:
        """Which bound stands for the optimum: the lower one if it is sharp enough for this target.

        Otherwise the upper one, which flatters the peers and never us.
        """
        return "lower" if self.uncertainty <= target / 10 else "upper"

    def value(self, target: float) -> float:
        return self.lower if self.side(target) == "lower" else self.upper

    def suboptimality(self, run: Run, target: float = 0.0) -> float:
        value = self.value(target) if target else self.lower or self.upper
        return max(0.0, (run.primal - value) / value)


def reaches(run: Run, target: float, optimum: Optimum) -> bool:
    if not run.finished:
        return False
    if run.lower is not None:
        # The last digits of a gap are rounding: a run stopped at tol = target must not fail by one ulp.
        return (run.upper - run.lower) / run.upper <= target * (1 + 1e-9)
    return optimum.suboptimality(run, target) <= target


def fastest(runs: Iterable[Run], target: float, optimum: Optimum) -> Run | None:
    """The quickest run that reaches the target, or None."""
    good = [run for run in runs if reaches(run, target, optimum)]
    return min(good, key=lambda run: min(run.seconds), default=None)


def ratio(ours: Run, peer: Run) -> float:
    """Peer's time over ours, best of equally many runs on both sides.

    The latest runs are taken: those were interleaved in time.
    """
    k = min(len(ours.seconds), len(peer.seconds))
    return min(peer.seconds[-k:]) / min(ours.seconds[-k:])


def best_effort(runs: Iterable[Run], target: float, optimum: Optimum) -> tuple[float, float] | None:
    """(suboptimality, seconds) of the best finished run, for a peer that does not reach the target."""
    finished = [run for run in runs if run.finished]
    if not finished:
        return None
    best = min(finished, key=lambda run: run.primal)
    return optimum.suboptimality(best, target), min(best.seconds)


def insufficient_seconds(runs: Iterable[Run]) -> float:
    """The longest time that was spent without reaching the target."""
    return max((min(run.seconds) for run in runs), default=0.0)

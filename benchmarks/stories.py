"""When did a run get there: reading the stories that chains.py tells.

A cell holds runs by setting ("maxmargin 0.001", "Frank-Wolfe", "dlib 0.1"), each repeated some times.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Event = dict[str, Any]
Run = dict[str, Any]


@dataclass(frozen=True)
class Arrival:
    """Seconds of every repeat, and the fewest epochs, until something became true."""

    seconds: list[float]
    epochs: float


def runs_of(cell: dict[str, Any], solver: str) -> dict[str, list[Run]]:
    return {name: runs for name, runs in cell["runs"].items() if name.split()[0] == solver}


def best_lower(cell: dict[str, Any]) -> float:
    """The best certified lower bound of the optimum that any run left behind."""
    return max(run["lower"] for run in _all(cell) if run.get("lower") is not None)


def best_upper(cell: dict[str, Any]) -> float:
    return min(run["upper"] for run in _all(cell))


def _all(cell: dict[str, Any]) -> Iterator[Run]:
    return (run for runs in cell["runs"].values() for run in runs)


def first(runs: list[Run], there: Callable[[Event], bool]) -> Arrival | None:
    """When a setting first got there; None unless it did so in every repeat."""
    arrivals = [next((event for event in run["story"] if event["upper"] and there(event)), None) for run in runs]
    if not arrivals or None in arrivals:
        return None
    epochs = min(event["calls"] / run["n"] for event, run in zip(arrivals, runs, strict=True))
    return Arrival([event["seconds"] for event in arrivals], epochs)


def soonest(cell: dict[str, Any], solver: str, there: Callable[[Event], bool]) -> Arrival | None:
    """The setting of a solver that got there first."""
    known = [first(runs, there) for runs in runs_of(cell, solver).values()]
    return min((a for a in known if a), key=lambda a: min(a.seconds), default=None)


def whole(runs: list[Run]) -> Arrival | None:
    """The whole of a run that ended by itself."""
    if not runs or not all(run["finished"] for run in runs):
        return None
    return Arrival([run["seconds"] for run in runs], min(run["calls"] / run["n"] for run in runs))


def objective_below(value: float) -> Callable[[Event], bool]:
    return lambda event: event["upper"] <= value


def gap_below(gap: float) -> Callable[[Event], bool]:
    """The gap that the solver itself can prove."""
    return lambda event: event["lower"] is not None and event["upper"] - event["lower"] <= gap * event["upper"]

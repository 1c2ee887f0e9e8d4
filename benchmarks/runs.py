"""One run of one solver, and what it left behind."""

import time
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np


@dataclass
class Outcome:
    """What a trained model tells about itself; bounds only from a solver that certifies."""

    weights: np.ndarray
    passes: int | None = None
    capped: bool = False
    lower: float | None = None
    upper: float | None = None
    history: list[dict[str, float]] = field(default_factory=list)


@dataclass
class Run:
    """Timings and quality of one setting; `seconds` has one entry per repeat.

    A run that was not `finished` was stopped by the clock; if it left bounds, they are true all the same.
    `primal` is always recomputed here from the weights, in float64, whoever found them.
    """

    solver: str
    tol: float
    seconds: list[float]
    cpu_seconds: list[float]
    finished: bool = True
    primal: float | None = None
    lower: float | None = None
    upper: float | None = None
    passes: int | None = None
    capped: bool = False
    history: list[dict[str, float]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value not in (None, [])}

    @classmethod
    def out_of_time(cls, solver: str, tol: float, limit: float) -> "Run":
        return cls(solver, tol, [limit], [], finished=False)


class Solver(Protocol):
    """A solver bound to a problem's data. `fit` is what is timed; all preparation comes before."""

    name: str

    def prepare(self, C: float, tol: float) -> Any: ...

    def fit(self, prepared: Any) -> Any: ...

    def outcome(self, fitted: Any) -> Outcome: ...


def timed(solver: Solver, prepared: Any) -> tuple[Any, float, float]:
    """The fitted model, wall-clock seconds and processor seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    fitted = solver.fit(prepared)
    return fitted, time.perf_counter() - wall, time.process_time() - cpu

"""What the library promises against LIBLINEAR, as factors of speed, and whether a cell keeps it."""

from dataclasses import dataclass

from matching import Optimum, fastest, insufficient_seconds, ratio
from runs import Run

TIMES = "\N{MULTIPLICATION SIGN}"
THREADS_GOAL = 1.5
MEMORY_GOAL = 12.0  # bytes per example and class beyond the input

_TWICE = {(C, target): 2.0 for C in (0.01, 1, 100) for target in (1e-3, 1e-4)}
_GOALS: dict[str, dict[tuple[float, float], float]] = {
    "news20 binary": _TWICE,
    "news20 one-vs-rest": _TWICE,
    "news20 Crammer-Singer": _TWICE,
    "MNIST Crammer-Singer": _TWICE,
    "MNIST 20k Crammer-Singer": _TWICE,
    "housing": _TWICE,
    "covtype": {(1, 1e-4): 3.0, (1, 1e-6): 10.0, (100, 1e-3): 10.0},
}


def goal(problem: str, C: float, target: float) -> float | None:
    """The factor promised here; at 1e-3 nothing may be slower than LIBLINEAR."""
    return _GOALS.get(problem, {}).get((C, target), 1.0 if target == 1e-3 else None)


@dataclass(frozen=True)
class Verdict:
    """`state` is met, miss, open (no peer arrives, and what it spent decides nothing) or none (no goal)."""

    state: str
    text: str


def judge(wanted: float | None, target: float, optimum: Optimum, runs: dict[str, list[Run]]) -> Verdict:
    """The peer is LIBLINEAR where it arrives, else scikit-learn (the same code without the cap on passes)."""
    if wanted is None:
        return Verdict("none", "")
    mine = fastest(runs["maxmargin"], target, optimum)
    if mine is None:
        return Verdict("miss", f"**miss** (not reached; goal {wanted:g}{TIMES})")
    for name in ("LIBLINEAR", "scikit-learn"):
        peer = fastest(runs[name], target, optimum)
        if peer is not None:
            factor = ratio(mine, peer)
            note = "" if name == "LIBLINEAR" else f", {name}"
            if factor >= wanted:
                return Verdict("met", f"met {wanted:g}{TIMES}{note}")
            return Verdict("miss", f"**miss** ({factor:.2f}{TIMES} of {wanted:g}{TIMES}{note})")
    bound = insufficient_seconds(runs["LIBLINEAR"] + runs["scikit-learn"]) / min(mine.seconds)
    text = f"{wanted:g}{TIMES}: no peer arrives in {bound:.1f} times our time"
    return Verdict("met", f"met {text}") if bound >= wanted else Verdict("open", f"open {text}")

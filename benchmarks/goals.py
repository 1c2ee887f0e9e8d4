"""What the library promises against LIBLINEAR, as factors of speed, and whether a cell keeps it."""

from dataclasses import dataclass

from matching import Optimum, fastest, insufficient_seconds, ratio
from runs import Run

TIMES = "\N{MULTIPLICATION SIGN}"
THREADS_GOAL = 1.7
MEMORY_GOAL = 12.0  # bytes per example and class beyond the input

FACTOR = 1.2  # of LIBLINEAR's speed, at the two gaps that people ask for
_GAPS = (1e-3, 1e-4)
JUDGED_FROM = 0.05  # seconds: below that, what every fit takes besides training decides


def goal(target: float) -> float | None:
    """The factor promised at this gap."""
    return FACTOR if target in _GAPS else None


@dataclass(frozen=True)
class Verdict:
    """`state` is met, miss, open (no peer arrives, and what it spent decides nothing) or none (not judged)."""

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
            if min(peer.seconds) < JUDGED_FROM:
                return Verdict("none", f"({factor:.2f}{TIMES}{note})")
            if factor >= wanted:
                return Verdict("met", f"met {wanted:g}{TIMES}{note}")
            return Verdict("miss", f"**miss** ({factor:.2f}{TIMES} of {wanted:g}{TIMES}{note})")
    bound = insufficient_seconds(runs["LIBLINEAR"] + runs["scikit-learn"]) / min(mine.seconds)
    text = f"{wanted:g}{TIMES}: no peer arrives in {bound:.1f} times our time"
    return Verdict("met", f"met {text}") if bound >= wanted else Verdict("open", f"open {text}")

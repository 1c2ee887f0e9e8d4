"""Turns results/latent.json into results/latent.md."""

from typing import Any

from report import environment_text, markdown_table, seconds_text
from results import Results
from structured_goals import TIMES, verdict

Cell = dict[str, Any]

GOAL = 10.0  # times faster than mining and retraining, at an objective that is no higher
AS_GOOD = 1.002  # the peer's time is that of its fastest run within this factor of its own best objective
ROUNDING = 1.001  # objectives count as equal within both sides' own tolerance

INTRODUCTION = """\
# Latent variables

## Bags of instances: maxmargin and a loop around scikit-learn's LinearSVC

Every run has a fresh process and one thread, and those that are compared took turns. Seconds are those of the
processor (both sides compute all the time and wait for nothing), minima over repeats; in brackets the spread,
(slowest - fastest) / fastest. Compiled code is loaded before the clock starts. The clock covers all from a list of
matrices to weights. Bags are generated (benchmarks/bag_data.py): 5 to 50 instances each, one of them telling in every
second bag; *dense* has 100 features, *text* 20000, about 30 of them in an instance.

- **maxmargin**: `LatentSVC(C, negatives=...)` from the means of the bags, with CCCP or with `MultiFold(4)`, which takes
  longer and goes deeper, to gaps of 1e-2 and 1e-3: the fastest counts of those that end no higher than scikit-learn.
- **scikit-learn**: the same start and the same steps around `LinearSVC(loss="hinge")` (benchmarks/peer_bags.py): the
  best instances of positive bags are fixed, negatives are mined until none is new, and so on until F stands still.
  Of its tolerances 1e-1 and 1e-2 the faster counts if it comes within 0.2 % of its own best objective (finer ones take
  longer still).

F is computed from the definition for both. With `negatives="bag"` the highest instance of a negative bag pays.
LIBLINEAR has no slack that several rows share, so the peer lets mined instances pay one by one, as is usual, and its F
is that of the weights it finds so. With `negatives="instances"` both sides minimise the very same F.
"""


def write(results: Results) -> None:
    results.path.with_suffix(".md").write_text(report(results))


def report(results: Results) -> str:
    parts = [INTRODUCTION, environment_text(results.data["environment"])]
    if results.path.stem.endswith("quick"):
        parts.append("**A quick check on few bags: the goal is not meant for it.**\n")
    cells = [cell for key, cell in results.cells.items() if key.startswith("bags/")]
    for data in dict.fromkeys(cell["data"] for cell in cells):
        parts.append(_section(data, [cell for cell in cells if cell["data"] == data]))
    states = [cell for key, cell in results.cells.items() if key.startswith("states/")]
    if states:
        parts.append(_states(states))
    return "\n".join(parts)


def _states(cells: list[Cell]) -> str:
    head = ["bags", "features", "all states", "those kept", "faster"]
    rows = [
        [
            str(cell["n"]),
            str(cell["d"]),
            seconds_text(cell["full"]),
            seconds_text(cell["few"]),
            f"{min(cell['full']) / min(cell['few']):.1f}{TIMES}",
        ]
        for cell in cells
    ]
    return (
        "## Prediction without the states that the group norm dropped\n\n"
        f'`models.Bags(states="separate")`, {cells[0]["n_states"]} instances in every bag, two classes; '
        f"{cells[0]['kept']} of {2 * cells[0]['n_states']} states are kept. A state whose weights are zero is not "
        "looked at; where the data does not fit into the processor's cache, fetching it takes as long.\n\n"
        + markdown_table(head, rows)
        + "\n"
    )


def _section(data: str, cells: list[Cell]) -> str:
    rows = []
    for cell in cells:
        peer = _chosen(cell, "scikit-learn")
        mine = _as_low(cell, peer[0]["objective"])
        factor = _least(peer) / _least(mine)
        excess = mine[0]["objective"] / peer[0]["objective"] - 1.0
        met = factor >= GOAL and excess <= ROUNDING - 1.0
        rows.append(
            [
                cell["negatives"],
                f"{cell['C']:g}",
                seconds_text([run["seconds"] for run in mine]),
                mine[0]["who"].removeprefix("maxmargin").lstrip(", ") or "CCCP",
                f"{mine[0]['objective']:.5g}",
                seconds_text([run["seconds"] for run in peer]),
                f"{peer[0]['objective']:.5g}",
                f"{peer[0]['tol']:g}",
                f"{100 * excess:+.2f} %",
                verdict(met, f"{GOAL:g}{TIMES}", f"{factor:.1f}{TIMES}"),
            ]
        )
    head = ["negatives", "C", "maxmargin", "bounds", "F", "scikit-learn", "F", "its tol", "our F against its", "goal"]
    first = next(iter(cells[0]["runs"].values()))[0]
    title = f"### {data}: {cells[0]['n']} bags, {first['instances']} instances\n"
    return title + "\n" + markdown_table(head, rows) + "\n"


def _chosen(cell: Cell, who: str) -> list[Cell]:
    """The runs of the fastest tolerance that is as good as any of this side's."""
    settings = [runs for runs in cell["runs"].values() if runs[0]["who"] == who]
    best = min(runs[0]["objective"] for runs in settings)
    return min((runs for runs in settings if runs[0]["objective"] <= AS_GOOD * best), key=_least)


def _as_low(cell: Cell, goal: float) -> list[Cell]:
    """Our fastest runs that end no higher than the peer, or else those that end lowest."""
    settings = [runs for runs in cell["runs"].values() if runs[0]["who"].startswith("maxmargin")]
    low = [runs for runs in settings if runs[0]["objective"] <= ROUNDING * goal]
    return min(low, key=_least) if low else min(settings, key=lambda runs: runs[0]["objective"])


def _least(runs: list[Cell]) -> float:
    return min(run["seconds"] for run in runs)

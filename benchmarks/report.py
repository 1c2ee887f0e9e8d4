"""Turns results/linear.json into results/linear.md (tables) and results/linear.png (figure).

python benchmarks/report.py [--quick] [--cpu]
"""

import argparse
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from figure import draw
from goals import FACTOR, JUDGED_FROM, MEMORY_GOAL, THREADS_GOAL, TIMES, Verdict, goal, judge
from matching import Optimum, best_effort, fastest, ratio
from results import FOLDER, Results
from runs import Run

PEERS = ["LIBLINEAR", "scikit-learn"]

INTRODUCTION = """\
# Linear SVMs: maxmargin, LIBLINEAR and scikit-learn

Every cell is the time to a given quality on the same problem, in one run on one machine, one thread each.

- **maxmargin**: the whole of `fit`, validation included, until the *certified* relative gap
  (upper - lower) / upper is at most the target.
- **LIBLINEAR**: only `train`, with the problem already in its own format, at the loosest tolerance on a
  ladder of half-decades whose primal objective, recomputed in float64, is within the target of the
  optimum. It stops by itself after 300 passes (not for Crammer-Singer).
- **scikit-learn**: `LinearSVC` or `LinearSVR`, given float64 CSR, cap on passes lifted; same rule, on the
  ladder from where LIBLINEAR arrived or stopped (an empty cell: LIBLINEAR had run out of time there).

Times are minima of {clock} seconds; in brackets the spread, (slowest - fastest) / fastest, where a run was
repeated. Ratios compare the minima of equally many runs that took turns. "not reached: 3e-3 in 2.1 s, nor in
30 s" tells the best that the solver did, and after what time a tighter run was stopped; where it is its own
cap that stopped it, the latter is missing. "> 30 s" is a solver that never finished.
A goal marked *open* is one where no peer arrives and the time it was given does not decide.
"""


def runs_of(cell: dict[str, Any]) -> dict[str, list[Run]]:
    defaults: dict[str, Any] = {"seconds": [], "cpu_seconds": []}
    return {name: [Run(**(defaults | run)) for run in runs] for name, runs in cell["runs"].items()}


def with_cpu_seconds(cell: dict[str, Any]) -> dict[str, Any]:
    """The same cell by the processor's clock, which a busy machine disturbs less.

    A run that was stopped left wall-clock seconds only. A peer's is dropped: set against processor seconds
    of ours it would make the peer look slower than it is. Ours stays for the sake of its bounds.
    """
    runs = {
        name: [
            run | {"seconds": run.get("cpu_seconds") or run["seconds"]}
            for run in some
            if run["finished"] or name == "maxmargin"
        ]
        for name, some in cell["runs"].items()
    }
    return cell | {"runs": runs}


def optimum_of(runs: dict[str, list[Run]]) -> Optimum:
    return Optimum.of(run for some in runs.values() for run in some)


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def seconds_text(seconds: list[float]) -> str:
    low, high = min(seconds), max(seconds)
    text = f"{low:.3g} s" if low < 100 else f"{low:.0f} s"
    return f"{text} ({(high - low) / low:.0%})" if len(seconds) > 1 else text


def time_text(runs: list[Run], target: float, optimum: Optimum) -> str:
    """Time to the target, or how far the solver came."""
    run = fastest(runs, target, optimum)
    if run is not None:
        return seconds_text(run.seconds)
    if not runs:
        return ""
    best = best_effort(runs, target, optimum)
    if best is None:
        return f"> {max(run.seconds[0] for run in runs):.0f} s"
    # Ours is judged by its certificate, so that is what is told when it falls short.
    gaps = [(run.upper - run.lower) / run.upper for run in runs if run.finished and run.lower is not None]
    quality = min(gaps) if gaps else best[0]
    stopped = "".join(f", nor in {run.seconds[0]:.0f} s" for run in runs if not run.finished)
    return f"not reached: {quality:.0e} in {best[1]:.3g} s{stopped}"


def ratio_text(runs: dict[str, list[Run]], peer: str, target: float, optimum: Optimum) -> str:
    mine, theirs = (fastest(runs[name], target, optimum) for name in ("maxmargin", peer))
    return f"{ratio(mine, theirs):.2f}{TIMES}" if mine and theirs else ""


def quality_rows(cell: dict[str, Any]) -> Iterator[tuple[list[str], Verdict]]:
    runs = runs_of(cell)
    optimum = optimum_of(runs)
    for target in cell["targets"]:
        verdict = judge(goal(target), target, optimum, runs)
        row = [f"{cell['C']:g}", f"{target:.0e}", time_text(runs["maxmargin"], target, optimum)]
        for peer in PEERS:
            row += [time_text(runs[peer], target, optimum), ratio_text(runs, peer, target, optimum)]
        yield [*row, verdict.text], verdict


def quality_section(cells: dict[str, Any]) -> str:
    header = ["C", "gap", "maxmargin", "LIBLINEAR", "ratio", "scikit-learn", "ratio", "goal"]
    tables, missed, count = [], [], Counter()
    for problem in dict.fromkeys(cell["problem"] for cell in cells.values()):
        rows = []
        mine = [cell for cell in cells.values() if cell["problem"] == problem]
        for cell in sorted(mine, key=lambda cell: cell["C"]):
            for row, verdict in quality_rows(cell):
                rows.append(row)
                count[verdict.state] += 1
                if verdict.state in ("miss", "open"):
                    missed.append(f"- {problem}, C = {row[0]}, gap {row[1]}: {verdict.text}")
        tables.append(f"### {problem}\n\n" + markdown_table(header, rows))
    summary = (
        f"The goal is {FACTOR:g}{TIMES} the speed of LIBLINEAR at gaps of 1e-3 and 1e-4; where LIBLINEAR takes less "
        f"than {1e3 * JUDGED_FROM:g} ms the ratio is told and not judged. {count['met']} goals met, "
        f"{count['miss']} missed, {count['open']} open.\n\n"
    )
    listing = "\n".join(missed) + "\n\n" if missed else ""
    return "## Time at matched quality\n\n" + summary + listing + "\n".join(tables)


OPTIMUM = """\
## The optimum

The optimum is taken as the best certified lower bound of maxmargin, run to 1e-8 or as far as the budget
allows. Where that is not ten times sharper than a target, the best objective that any solver found stands
in its place at that target ("upper at"), which favours the peers. The last column checks the certificates:
the largest relative difference between an upper bound and the objective of the returned weights, recomputed
in float64, and a warning if anyone found an objective below a lower bound.

"""


def optimum_section(cells: dict[str, Any]) -> str:
    """How well the optimum is known, and whether an independent evaluation agrees with the certificates."""
    rows = []
    for cell in cells.values():
        runs = runs_of(cell)
        optimum = optimum_of(runs)
        certified = [run for run in runs["maxmargin"] if run.finished]
        error = max((abs(run.primal - run.upper) / run.primal for run in certified), default=math.nan)
        below = (optimum.lower - optimum.upper) / optimum.upper
        rows.append(
            [
                cell["problem"],
                f"{cell['C']:g}",
                f"{optimum.lower:.9g}",
                f"{optimum.upper:.9g}",
                f"{optimum.uncertainty:.1e}",
                ", ".join(f"{target:.0e}" for target in cell["targets"] if optimum.side(target) == "upper"),
                f"{error:.0e}" + (f", **lower bound violated by {below:.0e}**" if below > 1e-9 else ""),
            ]
        )
    header = ["problem", "C", "lower bound", "best objective", "relative gap", "upper at", "check"]
    return OPTIMUM + markdown_table(header, rows)


def threads_section(cells: dict[str, Any]) -> str:
    rows = []
    for cell in cells.values():
        which = [cell["problem"], f"{cell['C']:g}"]
        if "seconds" not in cell:
            rows.append([*which, f"> {cell['budget']:g} s", "", "", "**miss** (out of time)"])
            continue
        one, two = cell["seconds"].values()
        gain = min(one) / min(two)
        verdict = "met" if gain >= THREADS_GOAL else f"**miss** ({gain:.2f}{TIMES})"
        rows.append([*which, seconds_text(one), seconds_text(two), f"{gain:.2f}{TIMES}", verdict])
    header = ["problem", "C", "n_jobs=1", "n_jobs=2", "gain", f"goal {THREADS_GOAL}{TIMES}"]
    return "## Two threads, gap 1e-4\n\n" + markdown_table(header, rows)


def growth_section(cells: dict[str, Any]) -> str:
    shares = sorted({point["share"] for cell in cells.values() for point in cell["points"]})
    rows = []
    for cell in cells.values():
        seconds = {point["share"]: point["seconds"] for point in cell["points"]}
        few, many = min(seconds, default=0), max(seconds, default=0)
        # Seconds grow as n to this power, from the smallest part to the largest.
        power = math.log(seconds[many] / seconds[few], many / few) if few < many else math.nan
        times = [f"{seconds[share]:.3g} s" if share in seconds else "out of time" for share in shares]
        rows.append([cell["problem"], *times, f"{power:.2f}"])
    header = ["problem", *(f"{share:g} of the rows" for share in shares), "power of n"]
    return "## Growth with the number of examples, C = 1, gap 1e-3\n\n" + markdown_table(header, rows)


def memory_section(cells: dict[str, Any]) -> str:
    rows = []
    for cell in cells.values():
        if "beyond_input" not in cell:
            rows.append([cell["problem"], "", "", "", "", "**miss** (out of time)"])
            continue
        each, bare = cell["bytes_per_example_class"], cell["bytes_per_example_class_without_weights"]
        rows.append(
            [
                cell["problem"],
                f"{cell['beyond_input'] / 1e6:.1f} MB",
                f"{cell['weights_bytes'] / 1e6:.1f} MB",
                f"{each:.1f}",
                f"{bare:.1f}",
                "met" if each <= MEMORY_GOAL else f"**miss** ({each:.1f})",
            ]
        )
    header = ["problem", "beyond the input", "of it weights", "bytes / example / class", "without weights"]
    return "## Peak memory of a fit, C = 1, gap 1e-3\n\n" + markdown_table([*header, f"goal {MEMORY_GOAL:g}"], rows)


def environment_text(environment: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in environment["packages"].items())
    return (
        f"{environment['processor']}, {environment['cores']} cores, {environment['system']}, "
        f"Python {environment['python']}, {versions}.\n"
    )


def report(results: Results, clock: str) -> str:
    def section(prefix: str) -> dict[str, Any]:
        return {key: cell for key, cell in results.cells.items() if key.startswith(prefix)}

    parts = [INTRODUCTION.format(clock=clock), environment_text(results.data["environment"])]
    for prefix, write in [
        ("table/", quality_section),
        ("table/", optimum_section),
        ("threads/", threads_section),
        ("growth/", growth_section),
        ("memory/", memory_section),
    ]:
        if section(prefix):
            parts.append(write(section(prefix)))
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="report on the quick run")
    parser.add_argument("--cpu", action="store_true", help="processor seconds instead of wall-clock seconds")
    args = parser.parse_args()
    name = "linear-quick" if args.quick else "linear"
    results = Results(FOLDER / f"{name}.json")
    if not results.cells:
        raise SystemExit(f"There are no results in {name}.json yet: run `python benchmarks/linear.py` first.")
    if args.cpu:
        name += "-cpu"
        for key, cell in results.cells.items():
            if key.startswith("table/"):
                results.cells[key] = with_cpu_seconds(cell)
    (FOLDER / f"{name}.md").write_text(report(results, "processor" if args.cpu else "wall-clock"))
    tables = [cell for key, cell in results.cells.items() if key.startswith("table/")]
    if tables:
        draw(
            [(cell["problem"], cell["C"], runs_of(cell), optimum_of(runs_of(cell))) for cell in tables],
            FOLDER / f"{name}.png",
        )


if __name__ == "__main__":
    main()

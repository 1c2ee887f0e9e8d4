"""Turns results/clusters.json into results/clusters.md, and renews the tables of docs/guide/scaling.md."""

import re
import statistics
from pathlib import Path
from typing import Any

from report import environment_text, markdown_table, seconds_text
from results import Results
from scale_model import Constants, Laws, Projection, project
from structured_goals import TIMES, verdict

Cell = dict[str, Any]

SPEED = 1.6  # of two workers over one
WORK = 2.0  # times the processor seconds of one shard, at most, for eight
OVERHEAD = 0.1  # seconds of a round beside the work, with Ray, at a million weights
TOL = 1e-3
ENTRIES = 54
MANY_ROWS = 1e10
GUIDE = Path(__file__).parent.parent / "docs" / "guide" / "scaling.md"

INTRODUCTION = """\
# Training on clusters

Every run has a fresh process, its workers are fresh processes with one thread each, and compiled code is loaded before
the clocks start. *Seconds* are those of training alone, from the first question to the workers until a relative gap of
1e-3 is certified; *whole* is all of `fit`, with the start of the workers and the reading of their data. *CPU* are
processor seconds of training, of driver and workers together; *path* is the driver's and the busiest worker's share of
them, which is what training takes where nobody else uses the machine and no time is spent on waiting.
Times are minima of runs that took turns; in brackets the spread, (slowest - fastest) / fastest. A *round* is one
broadcast of v and one sum over the workers; *proofs* are rounds that only evaluate. Bytes are those that one worker
receives and sends.
"""


def write(results: Results) -> None:
    results.path.with_suffix(".md").write_text(report(results))
    if not results.path.stem.endswith("quick"):
        renew(GUIDE, tables(results.cells))


def report(results: Results) -> str:
    cells = results.cells
    parts = [INTRODUCTION, environment_text(results.data["environment"])]
    if results.path.stem.endswith("quick"):
        parts.append("**A quick check on little data: the goals are not meant for it.**\n")
    sections = {"sparse": sparse_section, "chains": chains_section, "rounds": rounds_section, "peers": peers_section}
    parts += [section(cells[key]) for key, section in sections.items() if key in cells]
    parts += [f"## {title}\n\n{table}" for title, table in tables(cells).items()]
    return "\n".join(parts)


def tables(cells: dict[str, Cell]) -> dict[str, str]:
    """Those that docs/guide/scaling.md has too, by their titles."""
    found = {}
    for key, title in {"scale/sparse": "Shards, sparse rows", "scale/dense": "Shards, dense rows"}.items():
        if key in cells:
            found[title] = scale_table(cells[key])
    if "growth" in cells:
        found["Rows, eight shards"] = growth_table(cells["growth"])
    if {"sparse", "rounds", "scale/sparse", "growth"} <= cells.keys():
        found["Constants"] = constants_table(cells)
        found["Projection"] = projection_table(cells)
    return found


def renew(path: Path, found: dict[str, str]) -> None:
    """Puts tables between the marks of a page that bear their titles; the text around them stays."""
    if not path.exists():
        return
    text = path.read_text()
    for title, table in found.items():
        mark = re.escape(f"<!-- table: {title} -->")
        text = re.sub(rf"({mark}\n).*?(\n<!-- end -->)", lambda m, t=table: f"{m[1]}\n{t}{m[2]}", text, flags=re.S)
    path.write_text(text)


def _seconds(runs: list[Cell], key: str = "seconds") -> str:
    return seconds_text([run[key] for run in runs])


def _least(runs: list[Cell], key: str = "seconds") -> float:
    return min(run[key] for run in runs)


def _bytes(count: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count / 1e3:.3g} kB"


def _millions(n: float) -> str:
    return f"{n / 1e6:.3g} million"


def _path(run: Cell) -> float:
    """Without a cluster there is one process, which is all of the path."""
    return run.get("path_seconds", run["cpu_seconds"])


def _certified(runs: list[Cell]) -> bool:
    return all(run["relative_gap"] <= TOL for run in runs)


def _speed_table(cell: Cell, size: float) -> str:
    rows = []
    for name, runs in cell["runs"].items():
        best = min(runs, key=lambda run: run["seconds"])
        rounds = f"{best['rounds']} + {best['proofs']}" if "rounds" in best else ""
        row = [name, _seconds(runs), _seconds(runs, "whole_seconds"), _seconds(runs, "cpu_seconds")]
        row += [seconds_text([_path(run) for run in runs]), rounds]
        rows.append([*row, f"{best['visits'] / size:.1f}", f"{best['relative_gap']:.1e}"])
    return markdown_table(["", "seconds", "whole", "CPU", "path", "rounds + proofs", "visits per example", "gap"], rows)


def _paths(runs: dict[str, list[Cell]]) -> float:
    one, two = (min(_path(run) for run in runs[name]) for name in ("local:1", "local:2"))
    return one / two


def sparse_section(cell: Cell) -> str:
    runs = cell["runs"]
    text = f"## {_millions(cell['rows'])} sparse rows, {cell['width']} features\n\n"
    text += (
        "`LinearSVC(C=1, fit_intercept=False)`; files on disk, every worker reads its part into memory. *One process* "
        "has no cluster: the rows are a matrix in its memory. It has one thread where nothing else is said, and so has "
        "the driver, which works on what was handed over to it while the workers wait.\n\n"
    )
    text += _speed_table(cell, cell["rows"])
    ratio = _least(runs["local:1"]) / _least(runs["local:2"])
    text += f"\n- two workers against one: {verdict(ratio >= SPEED, f'{SPEED}{TIMES}', f'{ratio:.2f}{TIMES}')}"
    text += f"; by the path {_paths(runs):.2f}{TIMES}"
    alone = _least(runs["one process"]) / _least(runs["local:2"])
    text += f"\n- two workers against one process without a cluster: {alone:.2f}{TIMES}\n"
    if "local:8" in runs:
        work = _least(runs["local:8"], "cpu_seconds") / _least(runs["local:1"], "cpu_seconds")
        met = verdict(work <= WORK, f"{WORK:g}{TIMES}", f"{work:.2f}{TIMES}")
        text += f"- CPU seconds of eight shards against one: {met}\n"
    return text


def chains_section(cell: Cell) -> str:
    runs = cell["runs"]
    words = runs["local:1"][0]["words"]
    text = f"## {words} handwritten words, searches of a millisecond\n\n"
    text += (
        "`StructuralSVM(C=0.1)` with a chain whose every search burns a millisecond of processor time more than it "
        f"needs (costly_chain.py). Runs are ended after {cell['limit']:.0f} s.\n\n"
    )
    text += _speed_table(cell, words)
    if all(_certified(runs[name]) for name in ("local:1", "local:2")):
        ratio = _least(runs["local:1"]) / _least(runs["local:2"])
        found = verdict(ratio >= SPEED, f"{SPEED}{TIMES}", f"{ratio:.2f}{TIMES}")
        found += f"; by the path {_paths(runs):.2f}{TIMES}"
    else:
        gaps = [f"{_least(runs[name], 'relative_gap'):.1e}" for name in ("local:1", "local:2")]
        found = f"**miss** (gaps of {gaps[0]} and {gaps[1]} when time was over)"
    return text + f"\n- two workers against one: {found}\n"


def _overheads(run: Cell) -> list[float]:
    return [a - b for a, b in zip(run["round_seconds"], run["slowest_seconds"], strict=True)]


def rounds_section(cell: Cell) -> str:
    rows, text = [], ""
    for name, runs in cell["runs"].items():
        beside = [statistics.median(_overheads(run)) for run in runs]
        worst = min(max(_overheads(run)) for run in runs)
        work = [statistics.median(run["slowest_seconds"]) for run in runs]
        driver = [statistics.median(run["driver_seconds"]) for run in runs]
        row = [name, *(f"{1e3 * x:.1f} ms" for x in (min(beside), worst, min(work), min(driver)))]
        rows.append([*row, _seconds(runs, "start_seconds")])
        goal = f"{1e3 * OVERHEAD:.0f} ms"
        met = verdict(min(beside) <= OVERHEAD, goal, f"{1e3 * min(beside):.1f} ms")
        text += f"- {name}: {met}\n"
    head = ["", "beside the work", "the longest", "slowest worker", "driver between rounds", "start"]
    return (
        f"## What a round costs, {cell['width']} weights\n\n"
        "Inside training, without the centre: from the broadcast to the sum, less what the slowest worker says it has "
        "worked (its copies of v are among that). Medians over the rounds of a run; of several runs the least.\n\n"
        + markdown_table(head, rows)
        + "\n"
        + text
    )


def peers_section(cell: Cell) -> str:
    text = (
        f"## Rounds of other methods, {_millions(cell['rows'])} sparse rows\n\n"
        "maxmargin runs until a gap of 1e-3 is certified, and its proofs are counted. The others are stopped, by "
        "someone who knows the optimum, as soon as their objective is within 1e-3 of it. Steps of the last two are "
        "the best of a few lengths.\n\n"
    )
    for loss in ("squared_hinge", "hinge"):
        best, rows = cell[loss]["optimum"], []
        for name, run in cell[loss]["runs"].items():
            ours = "upper" in run
            value = run["upper"] if ours else run["objective"]
            there = run["relative_gap"] <= TOL if ours else run["arrived"]
            count = run["rounds"] + (run["proofs"] if ours else 0)
            row = [name, f"{count}" if there else f"not in {count}", _bytes(run["bytes_per_worker"])]
            rows.append([*row, f"{value / best - 1:.1e}"])
        head = ["", "rounds, proofs included", "bytes per worker", "above the optimum"]
        text += f"{loss.replace('_', ' ')}:\n\n" + markdown_table(head, rows) + "\n"
    return text


HEAD = ["centre", "rounds + proofs", "bytes per worker", "visits per row, workers", "at the centre", "gap"]


def _counted(run: Cell, centre: str) -> list[str]:
    own = run["worker_visits"] / run["rows"]
    late = (run["visits"] - run["worker_visits"]) / run["rows"]
    count = f"{run['rounds']} + {run['proofs']}"
    return [centre, count, _bytes(run["bytes_per_worker"]), f"{own:.1f}", f"{late:.1f}", f"{run['relative_gap']:.1e}"]


def scale_table(cell: Cell) -> str:
    runs = cell["runs"]
    rows = [[str(run["workers"]), *_counted(run, "yes" if run["centre"] else "no")] for run in runs]
    for run in cell.get("interior", []):
        row = _counted(run, "")
        rows.append(
            [f"{run['workers']}, interior point", "", *row[1:3], f"{run['visits'] / run['rows']:.1f}", "", row[5]]
        )
    text = f"{_millions(runs[0]['rows'])} rows, {runs[0]['width']} features.\n\n"
    return text + markdown_table(["shards", *HEAD], rows)


def growth_table(cell: Cell) -> str:
    rows = [[_millions(run["rows"]), *_counted(run, "yes" if run["centre"] else "no")] for run in cell["runs"]]
    return markdown_table(["rows", *HEAD], rows)


def laws(cells: dict[str, Cell], centre: bool) -> Laws:
    some = [[run for run in cells[key]["runs"] if run["centre"] == centre] for key in ("scale/sparse", "growth")]
    return Laws.of(*some)


def constants(cells: dict[str, Cell]) -> Constants:
    run = min(cells["sparse"]["runs"]["local:2"], key=lambda run: run["worker_cpu"])
    price = cells["rounds"]["runs"]
    runs = price.get("ray:2", price["local:2"])
    fixed = min(statistics.median(_overheads(run)) for run in runs)
    return Constants(run["worker_cpu"] / (run["worker_visits"] * ENTRIES), fixed)


def constants_table(cells: dict[str, Cell]) -> str:
    found = constants(cells)
    rows = [
        ["seconds per entry that is visited", f"{1e9 * found.per_entry:.1f} ns", "measured: CPU of two workers"],
        ["seconds of a round beside the work", f"{1e3 * found.per_round:.0f} ms", "measured: Ray, a million weights"],
    ]
    for centre in (True, False):
        law = laws(cells, centre)
        name = "with the centre" if centre else "without it"
        for what, one in (("rounds", law.rounds), ("visits per row, workers", law.visits)):
            formula = f"{one.scale:.3g} · K^{one.shards:.2f} · n^{one.rows:.2f}"
            rows.append([f"{what} {name}", formula, "fitted to the tables above, K of 2 and more"])
    law = laws(cells, True)
    rows.append(["visits per row at the centre", f"{law.centre_visits:.2f}", "counted at the most shards"])
    rows.append(["bytes per row that leave for the centre", f"{law.centre_bytes:.0f}", "counted at the most shards"])
    rows.append(["network", "10 Gbit/s, 0.5 ms", "assumed"])
    rows.append(["reading", "1 GB/s per shard", "assumed"])
    return markdown_table(["constant", "value", "where from"], rows)


def projection_table(cells: dict[str, Cell]) -> str:
    fixed = constants(cells)
    rows = []
    for centre in (True, False):
        law = laws(cells, centre)
        for shards in (8, 100, 1000):
            for n, width in ((2e6, 3e5), (MANY_ROWS, 3e5), (MANY_ROWS, 1e8)):
                rows.append(_projected(project(law, fixed, shards, n, ENTRIES, width), centre, shards, n, width))
    head = ["centre", "shards", "rows", "weights", "rounds", "sending", "work", "centre's", "reading", "in all"]
    return markdown_table([*head, "most of it", "memory of the centre", "of a worker"], rows)


def _projected(found: Projection, centre: bool, shards: int, n: float, width: float) -> list[str]:
    parts = [found.broadcast, found.work, found.centre, found.reading, found.seconds]
    return [
        "yes" if centre else "no",
        str(shards),
        f"{n:.0e}",
        f"{width:.0e}",
        f"{found.rounds:.0f}",
        *(_duration(part) for part in parts),
        found.bottleneck,
        _bytes(found.centre_memory) if found.centre_memory else "",
        _bytes(found.worker_memory),
    ]


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds >= 0.01 else "0 s" if seconds == 0 else "< 0.01 s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"

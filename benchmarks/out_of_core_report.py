"""Turns results/out_of_core.json into results/out_of_core.md."""

from typing import Any

import numpy as np
from report import environment_text, markdown_table, seconds_text
from results import Results
from structured_goals import TIMES, verdict

Cell = dict[str, Any]

BEYOND = 300e6  # bytes that a process may take beyond the memory it was given: interpreter, libraries, mapped files
FACTOR = 2.0  # of the time that training in memory and reading would take together

PANDAS = " (pandas, which scikit-learn loads where it is installed, takes about 90 MB of them)"

INTRODUCTION = """\
# Data larger than memory

Every run has a fresh process and one thread (reading ahead has another); compiled code is loaded from disk before the
clock starts. Times are minima; in brackets the spread, (slowest - fastest) / fastest, where a run was repeated. Rows of
the first three tables are generated: sparse, of unit norm, up to 60 entries, features of log-uniform popularity, noisy
labels of two classes. The task is `LinearSVC(C=1, fit_intercept=False)` until a relative gap of 1e-3 is certified.
A *pass* goes through the data once; *readings* are the bytes that were read over those that there are, proofs
included. *CPU* are processor seconds of all threads. *Peak* is the high-water mark of the whole process, interpreter
and libraries included. Files may be held by the page cache of the machine, where it has the memory: the time of one
reading says how fast they were.
"""


def write(results: Results) -> None:
    results.path.with_suffix(".md").write_text(report(results))


def report(results: Results) -> str:
    cells = results.cells
    parts = [INTRODUCTION, environment_text(results.data["environment"])]
    if results.path.stem.endswith("quick"):
        parts.append("**A quick check on little data: the goals are not meant for it.**\n")
    for key, section in {"scale": scale_section, "growth": growth_section, "tight": tight_section}.items():
        if key in cells:
            parts.append(section(cells[key]))
    for prefix, section in {"streams/": streams_section, "reading/": reading_section}.items():
        some = {key.removeprefix(prefix): cell for key, cell in cells.items() if key.startswith(prefix)}
        if some:
            parts.append(section(some))
    return "\n".join(parts)


def _size(count: float) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _rows(n: int) -> str:
    return f"{n / 1e6:.3g} million"


def _seconds(runs: list[Cell]) -> str:
    return seconds_text([run["seconds"] for run in runs])


def _cpu(run: Cell) -> str:
    """Of all threads together, which a busy machine disturbs less."""
    return seconds_text([run["cpu_seconds"]])


def _fastest(runs: list[Cell]) -> Cell:
    return min(runs, key=lambda run: run["seconds"])


def scale_section(cell: Cell) -> str:
    run, part = cell["run"], cell["part"]
    times = run["rows"] / part["rows"]
    bound = FACTOR * (times * part["seconds"] + run["passes"] * run["read_seconds"])
    allowed = run["memory"] + BEYOND
    rows = [
        ["from files", _rows(run["rows"]), _seconds([run]), _cpu(run), str(run["passes"]), f"{run['readings']:.2f}"],
        ["in memory", _rows(part["rows"]), seconds_text(part["all"]), _cpu(part), str(part["passes"]), ""],
    ]
    rows[0] += [f"{run['relative_gap']:.1e}", _size(run["peak"])]
    rows[1] += [f"{part['relative_gap']:.1e}", ""]
    header = ["", "rows", "seconds", "CPU", "passes", "readings", "gap", "peak"]
    ratio = run["seconds"] / bound
    return (
        f"## {_size(run['size'])} with memory={_size(run['memory'])}\n\n"
        f"The machine has {_size(cell['machine_memory'])}. One reading of all files takes {run['read_seconds']:.2f} s "
        f"({run['size'] / run['read_seconds'] / 1e9:.2f} GB/s).\n\n"
        + markdown_table(header, rows)
        + f"\n- certified: bounds {run['lower']:.8g} and {run['upper']:.8g}\n"
        f"- time against {FACTOR:g} {TIMES} ({times:.3g} {TIMES} the time in memory + passes {TIMES} one reading) = "
        f"{bound:.1f} s: {verdict(ratio <= 1, 'ratio 1', f'{ratio:.2f}')}\n"
        f"- peak against memory + {_size(BEYOND)} = {_size(allowed)}: "
        f"{verdict(run['peak'] <= allowed, _size(allowed), _size(run['peak']))}; "
        f"beyond memory {_size(run['peak'] - run['memory'])}, of which {_size(run['peak_before'])} were there "
        f"before the fit began{PANDAS if run['pandas'] else ''}\n"
    )


def growth_section(cell: Cell) -> str:
    best = [_fastest(runs) for runs in cell["runs"].values()]
    rows = []
    for runs, run in zip(cell["runs"].values(), best, strict=True):
        per_pass = run["seconds"] / run["passes"] / (run["rows"] / 1e6)
        row = [
            _rows(run["rows"]),
            _size(run["size"]),
            _seconds(runs),
            _cpu(run),
            str(run["passes"]),
            f"{run['readings']:.2f}",
        ]
        rows.append([*row, f"{per_pass:.2f}", f"{run['relative_gap']:.1e}", _size(run["peak"])])
    header = ["rows", "size", "seconds", "CPU", "passes", "readings", "s per million rows and pass", "gap", "peak"]
    exponent = _slope([run["rows"] for run in best], [run["seconds"] for run in best])
    text = f"\nSeconds grow as rows to the power of {exponent:.2f} (slope of the logarithms, least squares).\n"
    return f"## Growth with the rows, memory={_size(cell['memory'])}\n\n" + markdown_table(header, rows) + text


def _slope(x: list[float], y: list[float]) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def tight_section(cell: Cell) -> str:
    rows = []
    reference = _fastest(cell["runs"]["in memory"])["seconds"]
    for name, runs in cell["runs"].items():
        run = _fastest(runs)
        files = "readings" in run
        row = [name, _size(run["memory"]) if files else "", _seconds(runs), f"{run['seconds'] / reference:.2f}{TIMES}"]
        row += [_cpu(run), str(run["passes"]), f"{run['readings']:.2f}" if files else "", f"{run['relative_gap']:.1e}"]
        rows.append([*row, _size(run["peak"]) if files else ""])
    header = ["memory", "bytes", "seconds", "of in memory", "CPU", "passes", "readings", "gap", "peak"]
    title = f"## Less and less memory: {_rows(cell['rows'])} rows, {_size(cell['size'])}\n\n"
    return title + "Memory as a share of the data.\n\n" + markdown_table(header, rows)


KINDS = {"crammer_singer": "Crammer-Singer", "ovr": "one-vs-rest"}

STREAMS = """\
## One pass over a stream

Chunks of 1000 rows, once each, C = 1, no intercept. *Excess* is how far the primal objective over all rows is above
the optimum, as the lower bound of a fit in memory (relative gap 1e-4) knows it. scikit-learn's `SGDClassifier` (hinge,
alpha = 1/(C n), the same chunks) gives the same objective, one-vs-rest; its step is the optimal one of scikit-learn or
eta0 / sqrt(t), and the best of the five is marked.

"""


def streams_section(cells: dict[str, Cell]) -> str:
    rows = []
    for name, cell in cells.items():
        for kind, problem in cell["problems"].items():
            title = f"{name} ({cell['n']} rows, {cell['classes']} classes)"
            kind_text = KINDS[kind] if cell["classes"] > 2 else "two classes"
            excess = {who: _excess(run, problem) for who, run in problem["runs"].items()}
            best = min((who for who in excess if who.startswith("SGD")), key=excess.__getitem__, default=None)
            optimum = problem["optimum"]
            rows.append([title, kind_text, "in memory, gap 1e-4", f"{optimum['upper']:.6g}", "", ""])
            rows[-1][-1] = f"{optimum['seconds']:.3g} s"
            for who, run in problem["runs"].items():
                text = f"{excess[who]:.2f}%"
                text = f"**{text}**" if who == best else text
                rows.append(["", "", who, f"{run['objective']:.6g}", text, seconds_text(run["seconds"])])
    return STREAMS + markdown_table(["data", "problem", "", "objective", "excess", "seconds"], rows)


def _excess(run: Cell, problem: Cell) -> float:
    """Percent."""
    return 100 * (run["objective"] / problem["optimum"]["lower"] - 1)


READING = """\
## svmlight text, one core

Made-up files like a9a (short binary rows) and news20 (word counts; the same with real values). *convert* shuffles and
writes shards with checksums (default options, and with 64 MB); *chunks* only reads. Ratios are scikit-learn's
`load_svmlight_file` over ours; peaks are what reading added to the process.

"""


def reading_section(cells: dict[str, Cell]) -> str:
    rows = []
    for name, cell in cells.items():
        for reader, run in cell["runs"].items():
            ratio = min(cell["runs"]["scikit-learn"]["seconds"]) / min(run["seconds"])
            first = [name, _size(cell["bytes"])] if reader == "scikit-learn" else ["", ""]
            speed = f"{cell['bytes'] / min(run['seconds']) / 1e6:.0f}"
            times = "" if reader == "scikit-learn" else f"{ratio:.1f}{TIMES}"
            rows.append([*first, reader, seconds_text(run["seconds"]), speed, times, _size(run["peak"])])
    return READING + markdown_table(["file", "size", "reader", "seconds", "MB/s", "ratio", "peak"], rows)

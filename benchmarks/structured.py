"""Structural SVMs side by side with block-coordinate Frank-Wolfe, dlib and CRFsuite: time, quality, threads, memory.

    python benchmarks/structured.py [--quick] [--only ocr,text,files,threads,memory] [--repeats 3] [--resume]
    python benchmarks/structured.py --report

Needs the data folder (see sequence_data.py). Each cell goes to results/structured.json as soon as it is measured;
at the end, or alone with --report, tables and a figure are made of that file.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import results
import structured_report
from structured_job import fresh

results.PACKAGES += ["dlib-bin", "python-crfsuite"]

GAPS = [1e-2, 1e-3, 1e-4]
EPSILONS = [0.1, 0.01, 0.001]  # of dlib: the mean loss is known so well
SMALL = {"part": "fold 1", "loss": "hamming", "C": 0.1}
LARGE = {"part": "folds 1-9", "loss": "hamming", "C": 0.1}
NORMALIZED = {"part": "folds 1-9", "loss": "normalized_hamming", "C": 1.0}
SEGMENTED = "CoNLL-2000"  # the task whose tags are those of segments
TAGGERS = [
    "maxmargin",
    "maxmargin, order 2",
    "maxmargin, segments",
    "CRFsuite averaged perceptron",
    "CRFsuite passive-aggressive",
    "CRFsuite l-bfgs",
]
READY = ["CRFsuite averaged perceptron", "CRFsuite passive-aggressive"]
MEMORY = 48_000_000  # bytes for the cache, where it is bounded
QUICK_MEMORY = 2_000_000

Setting = tuple[str, dict[str, Any]]
Cell = dict[str, Any]


def in_turns(settings: list[Setting], args: argparse.Namespace) -> dict[str, list[Cell]]:
    """Repeats all settings in turns, so that they share the machine's good and bad minutes; long ones run once."""
    runs: dict[str, list[Cell]] = {}
    for _ in range(args.repeats):
        for name, job in settings:
            known = runs.setdefault(name, [])
            if known and known[0]["wall"] > args.budget / 2:
                continue
            start = time.perf_counter()
            run = fresh(**job)
            known.append({"wall": time.perf_counter() - start} | run)
            print(f"    {name:32s} {_summary(run)}", flush=True)
    return runs


def _summary(run: Cell) -> str:
    if "score" in run:
        return f"{run['score']:.4f}  {run['cpu_training']:8.2f} CPU s"
    epochs = run["calls"] / run["n"]
    return f"tol {run['tol']:<7g} {run['seconds']:8.2f} s  objective {run['upper']:.8g}  {epochs:.1f} epochs"


def ocr(task: dict[str, Any], gaps: list[float], epsilons: list[float], args: argparse.Namespace) -> Cell:
    """Ours at each gap, Frank-Wolfe to the smallest, dlib at each epsilon."""
    common = {"task": task | {"words": args.words}, "limit": args.budget}
    settings: list[Setting] = [(f"maxmargin {gap:g}", {"job": "maxmargin", "tol": gap} | common) for gap in gaps]
    settings += [("Frank-Wolfe", {"job": "Frank-Wolfe", "tol": min(gaps)} | common)]
    settings += [(f"dlib {epsilon:g}", {"job": "dlib", "tol": epsilon} | common) for epsilon in epsilons]
    return {"task": task, "gaps": gaps, "budget": args.budget, "runs": in_turns(settings, args)}


def text(task: str, args: argparse.Namespace) -> Cell:
    job = {"job": "tagging", "task": task, "limit": args.sentences}
    taggers = [name for name in TAGGERS if task == SEGMENTED or name != "maxmargin, segments"]
    return {"task": task, "runs": in_turns([(name, job | {"name": name}) for name in taggers], args)}


def files(task: str, args: argparse.Namespace) -> Cell:
    """From raw files, beside CRFsuite from ready strings."""
    common = {"task": task, "limit": args.sentences}
    ours: Setting = ("maxmargin from files", {"job": "file tagging"} | common)
    peers = [(name, {"job": "tagging", "name": name} | common) for name in READY]
    return {"task": task, "runs": in_turns([ours, *peers], args)}


def threads(args: argparse.Namespace) -> Cell:
    job = {"job": "maxmargin", "task": LARGE | {"words": args.words}, "tol": 1e-3, "limit": args.budget}
    return {"task": LARGE, "runs": in_turns([(f"n_jobs={n}", job | {"n_jobs": n}) for n in (1, 2)], args)}


def memory(args: argparse.Namespace) -> Cell:
    job = {"job": "maxmargin", "task": LARGE | {"words": args.words}, "tol": 1e-3, "limit": args.budget, "weigh": True}
    allowed = {"no limit": None, f"memory={args.memory}": args.memory}
    return {"task": LARGE, "runs": in_turns([(name, job | {"memory": most}) for name, most in allowed.items()], args)}


def plan(args: argparse.Namespace) -> Iterator[tuple[str, Callable[[], Cell]]]:
    """Every cell: its key in the results and how to measure it."""
    gaps, epsilons = ([1e-3], [0.1]) if args.quick else (GAPS, EPSILONS)
    yield "ocr/small", lambda: ocr(SMALL, gaps, epsilons, args)
    yield "ocr/large", lambda: ocr(LARGE, gaps, [], args)
    yield "ocr/normalized", lambda: ocr(NORMALIZED, gaps[:2], [], args)
    for task in ("CoNLL-2000", "EWT"):
        yield f"text/{task}", lambda task=task: text(task, args)
        yield f"files/{task}", lambda task=task: files(task, args)
    yield "threads/ocr", lambda: threads(args)
    yield "memory/ocr", lambda: memory(args)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="150 words, 300 sentences, one repeat: checks every path")
    parser.add_argument(
        "--only", default="", help="measure only cells whose key begins so: ocr,text,files,threads,memory"
    )
    parser.add_argument("--repeats", type=int, default=3, help="timings of each run")
    parser.add_argument("--budget", type=float, default=120, help="seconds that one run on handwritten words may take")
    parser.add_argument("--resume", action="store_true", help="skip cells that the results already hold")
    parser.add_argument("--report", action="store_true", help="measure nothing, only write tables and figure")
    args = parser.parse_args()
    args.words = args.sentences = None
    args.memory = MEMORY
    if args.quick:
        args.repeats, args.budget, args.words, args.sentences, args.memory = 1, 2.0, 150, 300, QUICK_MEMORY
    return args


def main() -> None:
    args = arguments()
    results.measure("structured", args, plan(args), structured_report.write)


if __name__ == "__main__":
    main()

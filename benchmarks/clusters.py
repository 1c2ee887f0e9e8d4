"""Training on clusters: speed and work over shards, costly searches, the price of a round, rounds of peers, scale.

    python benchmarks/clusters.py [--quick] [--only sparse,chains,rounds,peers,scale,growth] [--rows 2000000]
                                  [--study-rows 200000] [--folder PATH] [--repeats 3] [--budget 120] [--limit 300]
                                  [--resume]
    python benchmarks/clusters.py --report

Each cell goes to results/clusters.json as soon as it is measured; at the end, or alone with --report, tables are made
of that file, here and in docs/guide/scaling.md. Sparse rows are generated (skewed.py), 445 bytes each on disk; words
and the dense rows need the data folder (see datasets.py). Ray is measured where it is installed.
"""

import argparse
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import clusters_report
import results
from clusters_job import fresh
from skewed import WIDTH, shards

results.PACKAGES = ["numpy", "scipy", "scikit-learn", "numba", "pyarrow"]

SHARDS = [1, 2, 4, 8, 16, 32, 64]
ALONE = 16  # shards up to which the study is made without the centre as well: then rounds are too many
GROWTH = [1, 2, 4, 8]
PEER_SHARDS = [2, 8]
WIDE = 1_000_000
TOL = 1e-3
MOST = 2_000  # rounds of a study run; what has not arrived by then is told by its gap
Cell = dict[str, Any]


def sparse(args: argparse.Namespace) -> Cell:
    """Rows on disk: seconds on the cores that there are, and the work of more shards than cores."""
    with shards(args.rows, args.width, args.batch, args.folder) as folder:
        names = [None, *(f"local:{k}" for k in args.processes)]
        settings = [(name or "one process", {"job": "on files", "folder": folder, "cluster": name}) for name in names]
        for name in (None, "local:2"):
            job = {"job": "on files", "folder": folder, "cluster": name, "threads": 2}
            settings.append((f"{name or 'one process'}, 2 threads", job))
        return {"rows": args.rows, "width": args.width, "runs": in_turns(settings, args)}


def chains(args: argparse.Namespace) -> Cell:
    """Handwritten words whose searches are costly."""
    job = {"job": "chains", "part": "fold 1", "words": args.words, "C": 0.1, "limit": args.limit}
    names = [None, "local:1", "local:2"]
    settings = [(name or "one process", job | {"cluster": name}) for name in names]
    return {"limit": args.limit, "runs": in_turns(settings, args)}


def rounds(args: argparse.Namespace) -> Cell:
    names = ["local:2", *(["ray:2"] if importlib.util.find_spec("ray") else [])]
    job = {"job": "rounds", "rows": args.wide_rows, "width": WIDE}
    return {"width": WIDE, "runs": in_turns([(name, job | {"cluster": name}) for name in names], args)}


def peers(args: argparse.Namespace) -> Cell:
    """Rounds until the primal objective is within 1e-3 of the optimum; ours until the gap is certified."""
    data = {"data": "sparse", "rows": args.peer_rows}
    found: Cell = {"rows": args.peer_rows}
    for loss in ("squared_hinge", "hinge"):
        best = fresh("optimum", **data, loss=loss)
        goal = {"goal": best["upper"] * (1.0 + TOL)}
        runs: dict[str, Cell] = {}
        for k in PEER_SHARDS:
            runs[f"maxmargin, {k} shards"] = counted(**data, workers=k, centre=True, loss=loss)
            runs[f"maxmargin without the centre, {k} shards"] = counted(**data, workers=k, centre=False, loss=loss)
        if loss == "squared_hinge":
            runs["L-BFGS, any number of shards"] = fresh("gradients", **data, **goal, most=args.most_gradients)
        else:
            runs["subgradients, any number of shards"] = fresh("subgradients", **data, **goal, most=args.most_gradients)
            for k in PEER_SHARDS:
                runs[f"averaged SGD, {k} shards"] = fresh(
                    "averaging", **data, **goal, most=args.most_averages, workers=k
                )
        for name, run in runs.items():
            print(f"    {loss:14s} {name:42s} {run['rounds']} rounds", flush=True)
        found[loss] = {"optimum": best["upper"], "runs": runs}
    return found


def scale(data: str, rows: int, args: argparse.Namespace) -> Cell:
    """Rounds, bytes and visits by the number of shards."""
    runs = []
    for k in args.shards:
        for centre in (True, False) if k <= ALONE else (True,):
            run = counted(data=data, rows=rows, workers=k, centre=centre, most=MOST)
            runs.append(run | {"centre": centre})
            print(f"    {k:3d} shards, centre {centre!s:5}  {run['rounds']} rounds {run['seconds']:.1f} s", flush=True)
    found = {"runs": runs}
    if data == "dense":
        found["interior"] = [counted(data=data, rows=rows, workers=k, centre=True, solver="auto") for k in (1, 8)]
    return found


def growth(args: argparse.Namespace) -> Cell:
    """The same by the number of rows."""
    runs = []
    for rows in (args.growth_rows * k for k in GROWTH):
        for centre in (True, False):
            run = counted(data="sparse", rows=rows, workers=8, centre=centre, most=MOST)
            runs.append(run | {"centre": centre})
            print(f"    {rows} rows, centre {centre!s:5}  {run['rounds']} rounds {run['seconds']:.1f} s", flush=True)
    return {"runs": runs}


def counted(**arguments: Any) -> Cell:
    return _short(fresh("counted", **arguments))


def _short(run: Cell) -> Cell:
    """Without the times of single rounds."""
    return {key: value for key, value in run.items() if not isinstance(value, list)}


def in_turns(settings: list[tuple[str, Cell]], args: argparse.Namespace) -> dict[str, list[Cell]]:
    """Repeats all settings in turns, so that they share the machine's good and bad minutes; long ones run once."""
    runs: dict[str, list[Cell]] = {}
    for _ in range(args.repeats):
        for name, job in settings:
            known = runs.setdefault(name, [])
            if not known or known[0]["whole_seconds"] <= args.budget / 2:
                run = fresh(**job)
                known.append(run)
                told = f"{run['seconds']:8.2f} s  CPU {run['cpu_seconds']:8.2f} s  {run['passes']} passes"
                print(f"    {name:12s} {told}  gap {run['relative_gap']:.1e}", flush=True)
    return runs


def plan(args: argparse.Namespace) -> Iterator[tuple[str, Callable[[], Cell]]]:
    """Every cell: its key in the results and how to measure it."""
    yield "sparse", lambda: sparse(args)
    yield "chains", lambda: chains(args)
    yield "rounds", lambda: rounds(args)
    yield "peers", lambda: peers(args)
    yield "scale/sparse", lambda: scale("sparse", args.scale_rows, args)
    yield "scale/dense", lambda: scale("dense", args.dense_rows, args)
    yield "growth", lambda: growth(args)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rows, one repeat: checks every path")
    parser.add_argument("--only", default="", help="measure only cells whose key begins so: sparse,chains,rounds,…")
    parser.add_argument("--rows", type=int, help="rows of the cell sparse; 2 million by default")
    parser.add_argument("--study-rows", type=int, help="rows of the cell scale/sparse; 200 000 by default")
    parser.add_argument("--folder", help="where the rows of the cell sparse are, or stay; else a temporary folder")
    parser.add_argument("--repeats", type=int, default=3, help="timings of each run")
    parser.add_argument("--budget", type=float, default=120, help="runs of more than half these seconds run once")
    parser.add_argument("--limit", type=float, help="seconds after which a fit of words is ended; 300 by default")
    parser.add_argument("--resume", action="store_true", help="skip cells that the results already hold")
    parser.add_argument("--report", action="store_true", help="measure nothing, only write tables")
    args = parser.parse_args()
    args.width, args.batch, args.shards, args.processes = WIDTH, "4MB", SHARDS, [1, 2, 4, 8]
    args.rows = args.rows or (50_000 if args.quick else 2_000_000)
    args.limit = args.limit or (10.0 if args.quick else 300.0)
    if args.quick:
        args.repeats, args.width, args.batch, args.shards, args.processes = 1, 2_000, "64KB", [1, 2, 4], [1, 2]
        args.words, args.wide_rows, args.peer_rows, args.scale_rows = 60, 5_000, 5_000, 20_000
        args.dense_rows, args.growth_rows, args.most_gradients, args.most_averages = 5_000, 5_000, 100, 5
    else:
        args.words, args.wide_rows, args.peer_rows, args.scale_rows = None, 100_000, 200_000, 200_000
        args.dense_rows, args.growth_rows, args.most_gradients, args.most_averages = 200_000, 50_000, 300, 60
    args.scale_rows = args.study_rows or args.scale_rows
    return args


def main() -> None:
    args = arguments()
    results.measure("clusters", args, plan(args), clusters_report.write)


if __name__ == "__main__":
    main()

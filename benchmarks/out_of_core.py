"""Data larger than memory: time, readings and memory of training from files; streams; reading of text.

    python benchmarks/out_of_core.py [--quick] [--only scale,growth,tight,streams,reading] [--rows 20000000]
                                     [--folder PATH] [--repeats 2] [--budget 120] [--resume]
    python benchmarks/out_of_core.py --report

Each cell goes to results/out_of_core.json as soon as it is measured; at the end, or alone with --report, tables are
made of that file. Rows are generated (skewed.py) and take about 445 bytes each on disk; streams need the data folder
(see datasets.py). Temporary files go where TMPDIR says.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import out_of_core_report
import results
from out_of_core_job import fresh
from reading import FILES, READERS, write_file
from skewed import WIDTH, shards
from sourced_fits import machine_memory, size_of
from streams import SETS

import maxmargin as mm

results.PACKAGES = ["numpy", "scipy", "scikit-learn", "numba", "pyarrow"]

SHARE = 20  # of the data that memory is allowed, one in so many
PART = 0.1  # of the data that is trained on in memory
GROWTH = [1, 2, 4, 8]  # times as many rows
TIGHT = [1, 2, 5, 10, 20]  # memory is the data over these
Cell = dict[str, Any]


def scale(args: argparse.Namespace) -> Cell:
    """A twentieth of the data in memory, against the speed in memory on a tenth of the rows."""
    with shards(args.rows, args.width, args.batch, args.folder) as folder:
        size = size_of(mm.data.open(folder))
        run = fresh("from files", folder=folder, memory=size // SHARE, warm=args.warm)
        _say("from files", run)
        part = fresh("in memory", folder=folder, share=PART, repeats=2, warm=args.warm)
        _say(f"{PART:.0%} in memory", part)
    return {"run": run, "part": part, "machine_memory": machine_memory()}


def growth(args: argparse.Namespace) -> Cell:
    """The same memory for more and more rows."""
    runs: dict[str, list[Cell]] = {}
    for rows in (args.growth_rows * k for k in args.growth):
        with shards(rows, args.width, args.batch) as folder:
            job = {"job": "from files", "folder": folder, "memory": args.growth_memory, "warm": args.warm}
            runs |= in_turns([(str(rows), job)], args)
    return {"memory": args.growth_memory, "runs": runs}


def tight(args: argparse.Namespace) -> Cell:
    """Less and less memory for the same rows."""
    with shards(args.tight_rows, args.width, args.batch) as folder:
        size = size_of(mm.data.open(folder))
        job = {"folder": folder, "warm": args.warm}
        settings = [("in memory", job | {"job": "in memory", "share": 1.0, "repeats": 1})]
        for k in args.tight:
            settings.append(("all" if k == 1 else f"1/{k}", job | {"job": "from files", "memory": size // k}))
        return {"rows": args.tight_rows, "size": size, "runs": in_turns(settings, args)}


def streams(name: str, args: argparse.Namespace) -> Cell:
    return fresh("stream", name=name, rows=args.stream_rows.get(name), repeats=args.repeats, budget=args.budget)


def reading(name: str, args: argparse.Namespace) -> Cell:
    with tempfile.TemporaryDirectory() as folder:
        path = write_file(name, folder, args.text_share)
        runs = {reader: fresh("reading", reader=reader, path=path, repeats=args.repeats) for reader in READERS}
        if len({run["rows"] for run in runs.values()}) != 1:
            raise SystemExit(f"The readers disagree on the rows of {name}: {runs}")
        return {"file": name, "bytes": Path(path).stat().st_size, "runs": runs}


def in_turns(settings: list[tuple[str, Cell]], args: argparse.Namespace) -> dict[str, list[Cell]]:
    """Repeats all settings in turns, so that they share the machine's good and bad minutes; long ones run once."""
    runs: dict[str, list[Cell]] = {}
    for _ in range(args.repeats):
        for name, job in settings:
            known = runs.setdefault(name, [])
            if not known or known[0]["seconds"] <= args.budget / 2:
                known.append(fresh(**job))
                _say(name, known[-1])
    return runs


def _say(name: str, run: Cell) -> None:
    memory = f"peak {run['peak'] / 1e6:.0f} MB" if "peak" in run else ""
    print(f"    {name:12s} {run['seconds']:8.2f} s  {run['passes']} passes  {memory}", flush=True)


def plan(args: argparse.Namespace) -> Iterator[tuple[str, Callable[[], Cell]]]:
    """Every cell: its key in the results and how to measure it."""
    yield "scale", lambda: scale(args)
    yield "growth", lambda: growth(args)
    yield "tight", lambda: tight(args)
    for name in SETS:
        yield f"streams/{name}", lambda name=name: streams(name, args)
    for name in FILES[:1] if args.quick else FILES:
        yield f"reading/{name}", lambda name=name: reading(name, args)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rows, one repeat: checks every path")
    parser.add_argument("--only", default="", help="measure only cells whose key begins so: scale,growth,tight,…")
    parser.add_argument("--rows", type=int, help="rows of the cell scale; 20 million by default")
    parser.add_argument("--folder", help="where the rows of the cell scale are, or stay; else a temporary folder")
    parser.add_argument("--repeats", type=int, default=2, help="timings of each run")
    parser.add_argument("--budget", type=float, default=120, help="runs of more than half these seconds run once")
    parser.add_argument("--resume", action="store_true", help="skip cells that the results already hold")
    parser.add_argument("--report", action="store_true", help="measure nothing, only write tables")
    args = parser.parse_args()
    if args.quick:
        args.repeats, args.width, args.batch = 1, 2_000, "64KB"
        args.growth, args.growth_rows, args.growth_memory = GROWTH[:2], 20_000, 2_000_000
        args.tight, args.tight_rows = TIGHT[::4], 50_000
        args.stream_rows, args.text_share = {"news20": 8_000, "covtype": 3_000, "mnist": 2_000}, 0.02
    else:
        args.width, args.batch = WIDTH, "4MB"
        args.growth, args.growth_rows, args.growth_memory = GROWTH, 500_000, 100_000_000
        args.tight, args.tight_rows = TIGHT, 2_000_000
        args.stream_rows, args.text_share = {}, 4.0
    args.rows = args.rows or (50_000 if args.quick else 20_000_000)
    return args


def main() -> None:
    args = arguments()
    with shards(2_000, 100, "16KB") as args.warm:
        if not args.report:
            fresh("warm up", folder=args.warm)  # compiles: a process that does needs more memory than one that loads
        results.measure("out_of_core", args, plan(args), out_of_core_report.write)


if __name__ == "__main__":
    main()

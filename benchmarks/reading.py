"""Reading svmlight text: seconds and peak memory beside scikit-learn's loader, on one core.

    python benchmarks/reading.py [--rows 1.0] [--repeats 5]

Files are made up like well-known ones: many short binary rows (a9a), word counts, and the same words with real values
(news20). Each reader has a process of its own for each file, so that peaks of memory can be told apart. scikit-learn
hands over one matrix; maxmargin hands over chunks, which is what everything else in it works on.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from memory import resident_peak


def _rows(rng: np.random.Generator, n: int, per_row: int, width: int, skew: float) -> sp.csr_matrix:
    columns = (width * rng.random((n, per_row)) ** skew).astype(np.int32)
    x = sp.csr_matrix((np.ones(n * per_row, np.float32), columns.ravel(), np.arange(n + 1) * per_row), (n, width))
    x.sum_duplicates()
    return x


def write_files(folder: Path, share: float) -> list[Path]:
    from maxmargin.data.svmlight import write_svmlight

    rng = np.random.default_rng(0)
    short = _rows(rng, int(400_000 * share), 14, 123, 1.0)
    short.data[:] = 1
    counts = _rows(rng, int(40_000 * share), 130, 46_000, 3.0)
    real = sp.csr_matrix((np.log1p(counts.data) * rng.random(counts.nnz), counts.indices, counts.indptr), counts.shape)
    digits = real.copy()
    digits.data = digits.data.round(6)
    paths = []
    for name, x in {"a9a-like": short, "counts": counts, "6 decimals": digits, "all digits": real}.items():
        paths.append(folder / f"{name}.svm")
        write_svmlight(paths[-1], x, rng.choice([-1.0, 1.0], x.shape[0]))
    return paths


def measure(reader: str, path: Path, repeats: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--reader", reader, "--path", str(path), "--repeats", str(repeats)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _with_maxmargin(path: str) -> int:
    from maxmargin.data.svmlight import SvmlightSource

    return sum(chunk.x.nnz for chunk in SvmlightSource(path, dtype=np.float64).chunks())


def _with_sklearn(path: str) -> int:
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(path, dtype=np.float64)[0].nnz


_READERS = {"maxmargin": _with_maxmargin, "scikit-learn": _with_sklearn}


def _child(reader: str, path: str, repeats: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    with tempfile.NamedTemporaryFile(suffix=".svm") as tiny:
        tiny.write(b"1 1:1\n")
        tiny.flush()
        _READERS[reader](tiny.name)  # imports and compilation are no part of it
    before = resident_peak(reset=True)
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        entries = _READERS[reader](path)
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": min(seconds), "peak": resident_peak() - before, "entries": entries}))


def _main(share: float, repeats: int) -> None:
    print(f"{'file':12}{'MB':>6}{'sklearn s':>11}{'ours s':>9}{'ratio':>8}{'MB/s':>7}{'sklearn MB':>12}{'ours MB':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for path in write_files(Path(folder), share):
            size = path.stat().st_size / 1e6
            theirs, ours = measure("scikit-learn", path, min(repeats, 3)), measure("maxmargin", path, repeats)
            assert theirs["entries"] == ours["entries"]
            print(
                f"{path.stem:12}{size:6.0f}{theirs['seconds']:11.2f}{ours['seconds']:9.3f}"
                f"{theirs['seconds'] / ours['seconds']:8.1f}{size / ours['seconds']:7.0f}"
                f"{theirs['peak'] / 1e6:12.0f}{ours['peak'] / 1e6:9.0f}"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1.0, help="share of the rows, to try it out")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--reader", choices=list(_READERS), help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.reader:
        _child(given.reader, given.path, given.repeats)
    else:
        _main(given.rows, given.repeats)

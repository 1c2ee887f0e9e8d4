"""svmlight text on one core: seconds and peak memory of reading and converting, beside scikit-learn's loader.

Files are made up like well-known ones: many short binary rows (a9a), word counts, and the same words with real values
(news20). scikit-learn hands over one matrix. maxmargin hands over chunks; or it converts: rows in random order, as
files with checksums, which is what data larger than memory is trained on.
"""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from resident import resident_peak

FILES = ["a9a-like", "counts", "6 decimals", "all digits"]


def write_file(name: str, folder: str, share: float) -> str:
    """One of the files, at this share of its usual number of rows; returns its path."""
    from sklearn.datasets import dump_svmlight_file

    rng = np.random.default_rng(0)
    if name == "a9a-like":
        x = _rows(rng, int(400_000 * share), 14, 123, 1.0)
        x.data[:] = 1
    else:
        x = _rows(rng, int(40_000 * share), 130, 46_000, 3.0)
        if name != "counts":
            x = sp.csr_matrix((np.log1p(x.data) * rng.random(x.nnz), x.indices, x.indptr), x.shape)
        if name == "6 decimals":
            x.data = x.data.round(6)
    path = Path(folder) / f"{name}.svm"
    dump_svmlight_file(x, rng.choice([-1.0, 1.0], x.shape[0]), str(path), zero_based=False)
    return str(path)


def _rows(rng: np.random.Generator, n: int, per_row: int, width: int, skew: float) -> sp.csr_matrix:
    columns = (width * rng.random((n, per_row)) ** skew).astype(np.int32)
    x = sp.csr_matrix((np.ones(n * per_row, np.float32), columns.ravel(), np.arange(n + 1) * per_row), (n, width))
    x.sum_duplicates()
    return x


def _sklearn(path: str) -> int:
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(path, dtype=np.float64)[0].shape[0]


def _chunks(path: str) -> int:
    import maxmargin as mm

    return sum(len(chunk) for chunk in mm.data.open(path, dtype="float64").chunks())


def _convert(path: str, **options: Any) -> int:
    import maxmargin as mm

    with tempfile.TemporaryDirectory(dir=Path(path).parent) as place:
        return len(mm.data.convert(path, f"{place}/shards", **options))


READERS: dict[str, Callable[[str], int]] = {
    "scikit-learn": _sklearn,
    "convert": _convert,
    "convert, memory = 64 MB": lambda path: _convert(path, memory="64MB"),
    "chunks": _chunks,
}


def measure(reader: str, path: str, repeats: int) -> dict[str, Any]:
    """Seconds of each repeat, and the memory that was added to the process at most."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    with tempfile.NamedTemporaryFile(suffix=".svm") as tiny:
        tiny.write(b"1 1:1\n")
        tiny.flush()
        READERS[reader](tiny.name)  # imports and compilation are no part of it
    before = resident_peak(reset=True)
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        rows = READERS[reader](path)
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds, "peak": resident_peak() - before, "rows": rows}

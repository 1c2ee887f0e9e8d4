"""One linear SVM trained on shards: from the files with bounded memory, or with the same rows in memory."""

import os
import sys
import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from resident import resident_peak
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin import LinearSVC

TOL = 1e-3


class Counted:
    """A source that counts what is read of it."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.bytes_read = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def __len__(self) -> int:
        return len(self._source)

    def chunks(self, order: np.ndarray | None = None) -> Any:
        numbers = range(len(self.offsets) - 1) if order is None else order
        self.bytes_read += sum(self.nbytes(int(i)) for i in numbers)
        return self._source.chunks(order)


def size_of(source: Any) -> int:
    """Bytes of all chunks."""
    return sum(source.nbytes(i) for i in range(len(source.offsets) - 1))


def warm_up(folder: str) -> dict[str, Any]:
    """Loads all kernels, compiled if need be, by fits on a few rows."""
    source: Any = mm.data.open(folder)
    _svm(memory="4MB").fit(source)
    _svm().fit(*_loaded(source, 1.0))
    return {}


def from_files(folder: str, memory: int, warm: str) -> dict[str, Any]:
    """Seconds, readings, and the peak memory of this whole process, interpreter and libraries included.

    `warm` is a folder for `warm_up`. Another process has written it: this one has no use for what writing needs.
    """
    warm_up(warm)
    source = Counted(mm.data.open(folder))
    _read(source)  # verifies checksums
    read = _read(source)
    base, source.bytes_read = resident_peak(), 0
    found = _timed(_svm(memory=memory), source)
    size = size_of(source)
    return found | {
        "rows": len(source),
        "size": size,
        "memory": memory,
        "read_seconds": read,
        "readings": source.bytes_read / size,
        "peak_before": base,
        "peak": resident_peak(),
        "pandas": "pandas" in sys.modules,
    }


def in_memory(folder: str, share: float, repeats: int, warm: str) -> dict[str, Any]:
    """The first share of the chunks, as one matrix."""
    warm_up(warm)
    X, y = _loaded(mm.data.open(folder), share)
    runs = [_timed(_svm(), X, y) for _ in range(repeats)]
    fastest = min(runs, key=lambda run: run["seconds"])
    return fastest | {"rows": len(y), "all": [run["seconds"] for run in runs]}


def machine_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _svm(memory: Any = None) -> LinearSVC:
    return LinearSVC(C=1.0, fit_intercept=False, random_state=0, tol=TOL, memory=memory)


def _read(source: Any) -> float:
    start = time.perf_counter()
    for _ in source.chunks():
        pass
    return time.perf_counter() - start


def _loaded(source: Any, share: float) -> tuple[sp.csr_matrix, np.ndarray]:
    first = np.arange(round((len(source.offsets) - 1) * share))
    xs, ys = zip(*((chunk.x.copy(), chunk.y.copy()) for chunk in source.chunks(first)), strict=True)
    return sp.vstack(xs, format="csr"), np.concatenate(ys)


def _timed(svm: LinearSVC, *data: Any) -> dict[str, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate is in the table
        svm.fit(*data)
    seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
    bounds = svm.certificate_
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "passes": svm.n_passes_,
        "lower": bounds.lower,
        "upper": bounds.upper,
        "relative_gap": bounds.relative_gap,
    }

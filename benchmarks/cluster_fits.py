"""One fit, on a cluster or without one, with all that is to be known of it."""

import functools
import time
import warnings
from typing import Any

import datasets
import numpy as np
import scipy.sparse as sp
from costly_chain import CostlyChain
from metered import Metered, OneProcess, transport_for
from sequence_data import letters
from skewed import Skewed
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin import LinearSVC, StructuralSVM
from maxmargin.distributed.ascent import ShardAscent
from maxmargin.models import Chain

TOL = 1e-3
N_LABELS = 26
MANY = 100_000


def warm_up() -> None:
    """Loads all kernels that a fit over shards of rows needs, compiled if need be."""
    few = Skewed(400, 50)
    chunk = next(iter(few.chunks()))
    dense = np.asarray(chunk.x.toarray(), dtype=np.float32)
    for loss in ("hinge", "squared_hinge"):
        for x in (chunk.x, dense):
            _svm(loss).fit(x, chunk.y)
            _svm(loss, solver=ShardAscent(random_state=0, sweeps=1)).fit(x, chunk.y, cluster=OneProcess(2))
            _svm(loss, solver="interior_point").fit(x, chunk.y, cluster=OneProcess(2))


def warm_up_chains() -> None:
    """The same for chains of letters, which are generated here."""
    rng = np.random.default_rng(0)
    Y = [rng.integers(0, 4, 5) for _ in range(20)]
    X = [(rng.random((5, 8)) < 0.5).astype(np.uint8) for _ in Y]
    StructuralSVM(Chain(n_labels=4), C=0.1, tol=1e-2, random_state=0).fit(X, Y, cluster=OneProcess(2))
    StructuralSVM(Chain(n_labels=4), C=0.1, tol=1e-2, random_state=0).fit(X, Y)


def _svm(loss: str = "hinge", C: float = 1.0, **settings: Any) -> LinearSVC:
    return LinearSVC(C=C, loss=loss, fit_intercept=False, random_state=0, tol=TOL, max_passes=MANY, **settings)


def on_files(folder: str, cluster: str | None, threads: int = 1) -> dict[str, Any]:
    """The sparse rows on disk; without a cluster they are read into memory first, and that is not timed.

    ``threads`` are those of the process without a cluster, or of the centre.
    """
    warm_up()
    source: Any = mm.data.open(folder)
    if cluster is None:
        begin = time.perf_counter()
        chunks = [(chunk.x.copy(), chunk.y.copy()) for chunk in source.chunks()]
        X, y = sp.vstack([x for x, _ in chunks], format="csr"), np.concatenate([y for _, y in chunks])
        del chunks
        reading = time.perf_counter() - begin
        return _plain(_svm(n_jobs=threads), X, y) | {"reading_seconds": reading}
    return _fitted(_svm(n_jobs=threads), (source,), transport_for(cluster), warm_up)


def chains(cluster: str | None, part: str, words: int | None, C: float, limit: float) -> dict[str, Any]:
    """Handwritten words with costly searches, until the gap is certified or the time is over."""
    warm_up_chains()
    X, Y = letters(part, words)
    svm = StructuralSVM(CostlyChain(n_labels=N_LABELS), C=C, tol=TOL, random_state=0, max_passes=MANY)
    stop = {"callbacks": [lambda record: record.seconds > limit]}
    found = (
        _plain(svm, X, Y, **stop)
        if cluster is None
        else _fitted(svm, (X, Y), transport_for(cluster), warm_up_chains, **stop)
    )
    return found | {"words": len(Y)}


def rounds_at(cluster: str, rows: int, width: int) -> dict[str, Any]:
    """Few rows of many features: what a round costs beside the work. The centre would add work of the driver's."""
    warm_up()
    X, y = _rows(rows, width)
    return _fitted(_svm(solver=ShardAscent(random_state=0, centre=0)), (X, y), transport_for(cluster), warm_up)


def counted(
    data: str, rows: int, workers: int, centre: bool, loss: str = "hinge", solver: str = "ascent", most: int = MANY
) -> dict[str, Any]:
    """Rounds, bytes and visits over so many shards, all of them in one process."""
    warm_up()
    X, y = examples(data, rows)
    settings = {} if centre else {"centre": 0}
    chosen: Any = ShardAscent(random_state=0, sweeps=0.25, **settings) if solver == "ascent" else solver
    svm = _svm(loss, solver=chosen).set_params(max_passes=most)
    found = _fitted(svm, (X, y), OneProcess(workers), int)
    stored = X.nnz if sp.issparse(X) else X.size
    return found | {"rows": len(y), "width": X.shape[1], "stored": stored}


@functools.cache
def examples(data: str, rows: int) -> tuple[Any, np.ndarray]:
    if data == "sparse":
        return _rows(rows)
    X, y = datasets.load("covtype", rows)
    order = np.random.default_rng(0).permutation(len(y))  # the file is sorted by place
    return X[order], y[order]


def _rows(rows: int, width: int | None = None) -> tuple[sp.csr_matrix, np.ndarray]:
    source = Skewed(rows) if width is None else Skewed(rows, width)
    chunks = list(source.chunks())
    return sp.vstack([c.x for c in chunks], format="csr"), np.concatenate([c.y for c in chunks])


def _plain(estimator: Any, X: Any, y: Any, **how: Any) -> dict[str, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    _quietly(estimator, X, y, **how)
    whole, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return _outcome(estimator) | {"whole_seconds": whole, "cpu_seconds": cpu}


def _fitted(estimator: Any, data: tuple[Any, ...], transport: Any, warm: Any, **how: Any) -> dict[str, Any]:
    with Metered(transport, warm) as metered:
        begin = time.perf_counter()
        _quietly(estimator, *data, cluster=metered, **how)
        whole = time.perf_counter() - begin
        driver, workers = metered.processor_seconds()
        found = metered.summary()
    if isinstance(transport, OneProcess):
        workers = [0.0]  # they are this process
    visits = estimator.history_[-1].oracle_calls
    return (
        _outcome(estimator)
        | found
        | {
            "whole_seconds": whole,
            "driver_cpu": driver,
            "worker_cpu": sum(workers),
            "cpu_seconds": driver + sum(workers),
            "path_seconds": driver + max(workers),
            "visits": visits,
        }
    )


def _quietly(estimator: Any, *data: Any, **how: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate is in the table
        estimator.fit(*data, **how)


def _outcome(estimator: Any) -> dict[str, Any]:
    """Seconds are those of the solver alone: workers have been started and have read their data before."""
    bounds = estimator.certificate_
    return {
        "seconds": estimator.history_[-1].seconds,
        "passes": estimator.n_passes_,
        "visits": estimator.history_[-1].oracle_calls,
        "lower": bounds.lower,
        "upper": bounds.upper,
        "relative_gap": bounds.relative_gap,
    }

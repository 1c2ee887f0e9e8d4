"""Many searches at once: threads where the search releases the GIL, processes where it is plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..problem import Rivals
from ..protocols import Oracle
from .threads import run

Search = Callable[[np.ndarray, np.ndarray], list[tuple[np.ndarray, Rivals]]]


@contextmanager
def searchers(oracle: Oracle, n_jobs: int) -> Iterator[Search]:
    """A function (ids, w) → [(some of the ids, their rivals), …] that shares the work out."""
    if n_jobs == 1:
        yield lambda ids, w: [(ids, oracle.rivals(ids, w))]
    elif oracle.releases_gil:
        yield lambda ids, w: _in_threads(oracle, ids, w, n_jobs)
    else:
        yield lambda ids, w: _in_processes(oracle, ids, w, n_jobs)


def _shares(ids: np.ndarray, n: int) -> list[np.ndarray]:
    return [part for part in np.array_split(ids, n) if part.size]


def _in_threads(oracle: Oracle, ids: np.ndarray, w: np.ndarray, n_jobs: int) -> list[tuple[np.ndarray, Rivals]]:
    parts = _shares(ids, n_jobs)
    return list(zip(parts, run(lambda part: oracle.rivals(part, w), parts), strict=True))


_bound: Any = None


def _bind(oracle: Oracle) -> None:
    global _bound  # noqa: PLW0603
    _bound = oracle


def _search_bound(ids: np.ndarray, w: np.ndarray) -> Rivals:
    return _bound.rivals(ids, w)


def _in_processes(oracle: Oracle, ids: np.ndarray, w: np.ndarray, n_jobs: int) -> list[tuple[np.ndarray, Rivals]]:
    """The data travels to the workers once, when they start; after that only weights and answers do."""
    from loky import get_reusable_executor

    pool = get_reusable_executor(max_workers=n_jobs, initializer=_bind, initargs=(oracle,), timeout=60)
    parts = _shares(ids, n_jobs)
    futures = [pool.submit(_search_bound, part, w) for part in parts]
    return [(part, f.result()) for part, f in zip(parts, futures, strict=True)]

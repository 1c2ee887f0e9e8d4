"""Searches that run ahead: threads where the search releases the GIL, processes where it is plain Python, or workers.

While the solver takes in what was found for one chunk of examples, the next chunks are already being searched, at the
weights of the moment at which they were handed out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from typing import Any

import numpy as np

from ..problem import Rivals
from ..protocols import Oracle
from .threads import one_blas_thread, pool

Found = tuple[np.ndarray, np.ndarray, Rivals]


def search(
    oracle: Oracle, chunks: Iterable[np.ndarray], weights: Callable[[], np.ndarray], n_jobs: int, sharing: float = 1
) -> Iterator[Found]:
    """(ids, the weights they were searched at, their rivals), chunk by chunk in order.

    Threads search at copies of the weights, each of which serves so many chunks (``sharing``).
    """
    if hasattr(oracle, "submit"):
        elsewhere: Any = oracle
        yield from _ahead(oracle, chunks, weights, elsewhere.n_ahead - 1, elsewhere.submit, waits=False)
    elif n_jobs == 1:
        for ids in chunks:
            w = weights()
            yield ids, w, oracle.rivals(ids, w)
    elif oracle.releases_gil:
        with one_blas_thread():  # each of ours has a core to itself
            submit = pool(n_jobs).submit
            yield from _ahead(
                oracle, chunks, weights, n_jobs, lambda ids, w: submit(oracle.rivals, ids, w), sharing=sharing
            )
    else:
        yield from _ahead(oracle, chunks, weights, n_jobs, _processes(oracle, n_jobs))


def _ahead(
    oracle: Oracle,
    chunks: Iterable[np.ndarray],
    weights: Callable[[], np.ndarray],
    most: int,
    submit: Callable[[np.ndarray, np.ndarray], Future[Rivals]],
    waits: bool = True,
    sharing: float = 1,
) -> Iterator[Found]:
    """At most so many chunks are ahead of the one that is taken in.

    With ``waits`` nobody is still at work when this ends, in whatever way it ends; else what is under way elsewhere is
    not waited for.
    """
    in_view = getattr(oracle, "in_view", lambda ids: True)
    ahead: deque[tuple[np.ndarray, np.ndarray, Future[Rivals]]] = deque()
    w, served = np.empty(0), 0
    try:
        for ids in chunks:
            if not in_view(ids):
                # Of data that does not fit into memory others come into view only when nobody searches any more.
                while ahead:
                    yield _first(ahead)
                w = weights().copy()
                yield ids, w, oracle.rivals(ids, w)
                served = 0
                continue
            if served % sharing == 0:
                w = weights().copy()
            served += 1
            ahead.append((ids, w, submit(ids, w)))
            if len(ahead) > most:
                yield _first(ahead)
        while ahead:
            yield _first(ahead)
    finally:
        if waits:
            for _, _, future in ahead:
                future.cancel()
            wait([future for _, _, future in ahead])


def _first(ahead: deque[tuple[np.ndarray, np.ndarray, Future[Rivals]]]) -> Found:
    ids, w, future = ahead[0]
    found = future.result()
    ahead.popleft()
    return ids, w, found


_bound: Any = None


def _bind(oracle: Oracle) -> None:
    global _bound  # noqa: PLW0603
    _bound = oracle


def _search_bound(ids: np.ndarray, w: np.ndarray) -> Rivals:
    return _bound.rivals(ids, w).evaluated()


# The workers of every oracle that is being searched by processes, and the oracle, so that its number is not given anew.
_workers: dict[int, tuple[Oracle, Any]] = {}


def _processes(oracle: Oracle, n_jobs: int) -> Callable[[np.ndarray, np.ndarray], Future[Rivals]]:
    """The data travels to the workers once, when they start; after that only weights and answers do."""
    from loky import ProcessPoolExecutor

    # Data that does not fit into memory does not fit into the workers either: they are sent what they search.
    travels = hasattr(oracle, "part")
    if id(oracle) not in _workers:
        initial: dict[str, Any] = {} if travels else {"initializer": _bind, "initargs": (oracle,)}
        _workers[id(oracle)] = (oracle, ProcessPoolExecutor(n_jobs, **initial))
    workers = _workers[id(oracle)][1]
    if travels:
        return lambda ids, w: workers.submit(oracle.part(ids).rivals, w)  # type: ignore[attr-defined]
    return lambda ids, w: workers.submit(_search_bound, ids, w)


def dismiss(oracle: Oracle | None) -> None:
    """Send home the processes that search for this oracle, if there are any, and with them its data."""
    if id(oracle) in _workers:
        _workers.pop(id(oracle))[1].shutdown(wait=True, kill_workers=True)

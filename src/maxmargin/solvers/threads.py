"""Work shared out over threads: one pool for all solvers, and BLAS kept out of the way."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController


@functools.cache
def pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="maxmargin")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.cache_clear)  # threads do not survive a fork


def run(work: Callable[..., Any], *arguments: list) -> list:
    """``work`` for each tuple of arguments, on as many threads. Nobody is still at work when this returns or raises."""
    if len(arguments[0]) == 1:
        return [work(*(a[0] for a in arguments))]
    futures = [pool(len(arguments[0])).submit(work, *one) for one in zip(*arguments, strict=True)]
    try:
        return [f.result() for f in futures]
    except BaseException:
        wait(futures)
        raise


class _BlasLimit:
    """BLAS on one thread while anybody asks for it; the setting is the process's, so requests are counted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limiter: Any = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
            if self._users == 1:
                # Not as a context manager: those belong to the thread that entered, and another may be the last to go.
                self._limiter = _blas().limit(limits=1, user_api="blas")
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._limiter.restore_original_limits()


@functools.cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


one_blas_thread = _BlasLimit()

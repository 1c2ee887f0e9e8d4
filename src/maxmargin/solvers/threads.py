"""Work shared out over threads: one pool for all solvers, and BLAS kept out of the way."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")


@functools.cache
def pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="maxmargin")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.cache_clear)  # threads do not survive a fork


def run(work: Callable[..., object], *arguments: list) -> list:
    """``work`` for each tuple of arguments, on as many threads. Nobody is still at work when this returns or raises."""
    if len(arguments[0]) == 1:
        return [work(*(a[0] for a in arguments))]
    futures = [pool(len(arguments[0])).submit(work, *one) for one in zip(*arguments, strict=True)]
    try:
        return [f.result() for f in futures]
    except BaseException:
        wait(futures)
        raise


def in_parts(work: Callable[[slice], T], n: int, size: int, threads: int) -> list[T]:
    """``work`` for all of 0 … n − 1, at most so many of them at once; on several threads if there are more than one."""
    parts = [slice(at, min(at + size, n)) for at in range(0, n, size)]
    if threads == 1:
        return [work(part) for part in parts]
    done: list[T] = []
    with one_blas_thread():
        for start in range(0, len(parts), threads):
            done += run(work, parts[start : start + threads])
    return done


class WhileAsked:
    """A setting of the whole process, for as long as anybody asks for it: requests are counted.

    ``change`` is called for the first of them, and what it returns after the last, perhaps by another thread.
    """

    def __init__(self, change: Callable[[], Callable[[], object]]) -> None:
        self._change = change
        self._lock = threading.Lock()
        self._users = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._restore = self._change()
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._restore()


@functools.cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def _limit_blas() -> Callable[[], object]:
    limit = _blas().limit(limits=1, user_api="blas")

    def restore() -> None:
        _let_go()
        limit.restore_original_limits()
        _let_go()

    return restore


def _let_go() -> None:
    """From version 3.8 on, threadpoolctl lets the first thread that sets a limit alone change it; others do in vain."""
    for library in _blas().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


one_blas_thread = WhileAsked(_limit_blas)

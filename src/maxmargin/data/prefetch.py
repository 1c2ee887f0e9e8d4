"""The next item is made ready in the background while the last one is in use."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


def prefetched(items: Iterable[T], depth: int = 1) -> Generator[T, None, None]:
    """The same items in the same order, up to ``depth`` of them made ahead of time in a thread of their own.

    An error of ``items`` is raised where its item would have come. The thread has ended, and ``items`` is closed,
    when the iterator is exhausted, closed or dropped: also by Ctrl-C.

    >>> list(prefetched(range(3)))
    [0, 1, 2]
    """
    ready: SimpleQueue[tuple[str, Any]] = SimpleQueue()
    # One slot per item that may be made ahead: nothing has to poll, and stopping is one more slot.
    slots = threading.Semaphore(depth)
    stopped = threading.Event()

    def work() -> None:
        made = iter(items)
        try:
            while True:
                slots.acquire()
                if stopped.is_set():
                    return
                ready.put(("item", next(made)))
        except StopIteration:
            ready.put(("end", None))
        except BaseException as error:
            ready.put(("error", error))
        finally:
            close = getattr(made, "close", None)
            if close is not None:
                close()

    thread = threading.Thread(target=work, name="maxmargin-prefetch", daemon=True)
    thread.start()
    try:
        while True:
            kind, item = ready.get()
            if kind == "end":
                return
            if kind == "error":
                raise item
            slots.release()
            yield item
            del item  # else it would stay alive while the next one is waited for
    finally:
        stopped.set()
        slots.release()
        if thread is not threading.current_thread():  # the garbage collector may close us from anywhere
            thread.join()

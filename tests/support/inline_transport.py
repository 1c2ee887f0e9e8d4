"""A transport without processes: workers are objects of this one. For tests of what is said, not of how it travels."""

from collections.abc import Callable, Sequence
from typing import Any

import cloudpickle
import numpy as np

from maxmargin.distributed.transport import Answer, WorkerDied, fold, sums


class _Done:
    def __init__(self, worker: int, outcome: Any) -> None:
        self.worker, self.outcome = worker, outcome

    def result(self) -> Any:
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome.light if isinstance(self.outcome, Answer) else self.outcome

    @property
    def heavy(self) -> tuple:
        return self.outcome.heavy if isinstance(self.outcome, Answer) else ()


class Inline:
    """Workers that are objects of this process. ``dies(worker, method, count)`` says when one is to die."""

    def __init__(self, n_workers: int, dies: Callable[[int, str, int], bool] = lambda *_: False) -> None:
        self.n_workers, self._dies = n_workers, dies
        self.calls: list[tuple[int, str]] = []
        self.kills = 0

    def start(self, makers: Sequence[Callable[[], Any]]) -> None:
        self.n_workers = len(makers)
        self._makers = [cloudpickle.dumps(maker) for maker in makers]
        self.objects = [cloudpickle.loads(maker)() for maker in self._makers]

    def send(self, worker: int, method: str, *args: Any) -> _Done:
        self.calls.append((worker, method))
        if self.objects[worker] is None or self._dies(worker, method, len(self.calls)):
            self._kill(worker)
            return _Done(worker, WorkerDied(worker, "as it was told to"))
        try:
            return _Done(worker, cloudpickle.loads(cloudpickle.dumps(getattr(self.objects[worker], method)(*args))))
        except Exception as error:
            return _Done(worker, error)

    def _kill(self, worker: int) -> None:
        if self.objects[worker] is not None:
            self.kills += 1
            self.objects[worker]._close()  # its locks, as an operating system would
            self.objects[worker] = None

    def broadcast(self, array: np.ndarray) -> np.ndarray:
        copy = array.copy()
        copy.flags.writeable = False
        return copy

    def wait(self, tickets: Sequence[_Done], timeout: float | None) -> list[_Done]:
        return list(tickets)

    def add_up(self, tickets: Sequence[_Done]) -> tuple[np.ndarray, ...]:
        heavy = [ticket.heavy for ticket in tickets if ticket.heavy]
        return fold(heavy, sums) if heavy else ()

    def restart(self, worker: int) -> None:
        self.objects[worker] = cloudpickle.loads(self._makers[worker])()

    def pid(self, worker: int) -> int:
        return 0

    def close(self) -> None:
        self.objects = []

    def __enter__(self) -> "Inline":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def binary_bounds(svm, X, y):
    """Both bounds of a binary hinge problem, by NumPy alone."""
    rows = np.hstack([X, np.full((X.shape[0], 1), svm.intercept_scaling)])
    w = np.append(svm.coef_, svm.intercept_ / svm.intercept_scaling)
    share = svm.dual_coef_.ravel() * y
    assert (share >= -1e-9).all()
    assert (share <= svm.C * (1 + 1e-9)).all()
    v = svm.dual_coef_.ravel() @ rows
    return share.sum() - 0.5 * v @ v, 0.5 * w @ w + svm.C * np.maximum(0.0, 1.0 - y * (rows @ w)).sum()

"""Transports that tell what a run has sent, how long its rounds took, and what its workers worked."""

import pickle
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxmargin.distributed import LocalProcesses, RayActors
from maxmargin.distributed.transport import Answer, Transport, fold, sums


def transport_for(name: str) -> Transport:
    """Workers by the name that tables have for them: ``local:2``; ``ray:2``, of a Ray that is begun here."""
    kind, _, n_workers = name.partition(":")
    if kind == "local":
        return LocalProcesses(int(n_workers))
    import ray

    if not ray.is_initialized():
        ray.init(address="local", num_cpus=8, include_dashboard=False, log_to_driver=False, configure_logging=False)
    return RayActors(n_workers=int(n_workers))


class Done:
    """A call that has been answered."""

    def __init__(self, worker: int, answer: Any) -> None:
        self.worker, self.answer = worker, answer

    def result(self) -> Any:
        return self.answer.light if isinstance(self.answer, Answer) else self.answer

    @property
    def heavy(self) -> tuple[np.ndarray, ...]:
        return self.answer.heavy if isinstance(self.answer, Answer) else ()


class OneProcess:
    """Workers that are objects of this process and take turns: for counting, as it is the same every time."""

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self._objects: list[Any] = []
        self._makers: list[Callable[[], Any]] = []

    def start(self, makers: Sequence[Callable[[], Any]]) -> None:
        self._makers, self.n_workers = list(makers), len(makers)
        self._objects = [maker() for maker in makers]

    def send(self, worker: int, method: str, *args: Any) -> Done:
        return Done(worker, getattr(self._objects[worker], method)(*args))

    def broadcast(self, array: np.ndarray) -> np.ndarray:
        return array.copy()

    def wait(self, tickets: Sequence[Any], timeout: float | None) -> list[Any]:
        return list(tickets)

    def add_up(self, tickets: Sequence[Any]) -> tuple[np.ndarray, ...]:
        heavy = [ticket.heavy for ticket in tickets if ticket.heavy]
        return fold(heavy, sums) if heavy else ()

    def restart(self, worker: int) -> None:
        self._objects[worker] = self._makers[worker]()

    def pid(self, worker: int) -> int:
        return 0

    def close(self) -> None:
        self._objects = []

    def __enter__(self) -> "OneProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Clocked:
    """A worker's object that also tells the processor time of its process. Compiled code is loaded beforehand."""

    def __init__(self, warm_up: Callable[[], object], maker: Callable[[], Any]) -> None:
        warm_up()
        self._object = maker()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._object, name)

    def processor_seconds(self) -> float:
        return time.process_time()


class _Maker:
    def __init__(self, warm_up: Callable[[], object], maker: Callable[[], Any]) -> None:
        self._warm_up, self._maker = warm_up, maker

    def __call__(self) -> Clocked:
        return Clocked(self._warm_up, self._maker)


class Round:
    """One call of all workers to improve, from the broadcast to the sum."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.ended = 0.0
        self.slowest = 0.0
        self.visited = 0
        self.parcel_bytes = 0


class Metered:
    """A transport whose calls are counted. Training begins, for the clocks, when sums or searches are first asked for.

    Parameters
    ----------
    transport : Transport
    warm_up : function
        Called in each worker before its object is made.
    """

    def __init__(self, transport: Transport, warm_up: Callable[[], object]) -> None:
        self._inner, self._warm_up = transport, warm_up
        self.rounds: list[Round] = []
        self.calls: Counter[str] = Counter()
        self.bytes_down = self.bytes_up = 0  # of all workers together
        self.start_seconds = 0.0
        self._before: list[float] | None = None
        self._driver_before = 0.0
        self._sizes: dict[int, int] = {}
        self._broadcast_at = 0.0

    @property
    def n_workers(self) -> int:
        return self._inner.n_workers

    def start(self, makers: Sequence[Callable[[], Any]]) -> None:
        begin = time.perf_counter()
        self._inner.start([_Maker(self._warm_up, maker) for maker in makers])
        self.start_seconds = time.perf_counter() - begin

    def send(self, worker: int, method: str, *args: Any) -> Any:
        if method in ("totals", "ask") and self._before is None:
            self._before = self._workers_seconds()
            self._driver_before = time.process_time()
        self.calls[method] += worker == 0
        if self._before is not None:
            self.bytes_down += sum(self._sizes.get(id(a), 0) for a in args)
        if method == "improve" and worker == 0:
            self.rounds.append(Round())
            self.rounds[-1].began = self._broadcast_at
        return self._inner.send(worker, method, *args)

    def broadcast(self, array: np.ndarray) -> Any:
        self._broadcast_at = time.perf_counter()
        handle = self._inner.broadcast(array)
        self._sizes = {id(handle): array.nbytes}
        return handle

    def wait(self, tickets: Sequence[Any], timeout: float | None) -> list[Any]:
        return self._inner.wait(tickets, timeout)

    def add_up(self, tickets: Sequence[Any]) -> tuple[np.ndarray, ...]:
        total = self._inner.add_up(tickets)
        now = time.perf_counter()
        self.bytes_up += len(tickets) * sum(a.nbytes for a in total)
        reports = [r for r in (ticket.result() for ticket in tickets) if hasattr(r, "visited")]
        if reports:
            turn = self.rounds[-1]
            turn.ended = now
            turn.slowest = max(report.seconds for report in reports)
            turn.visited = sum(report.visited for report in reports)
            turn.parcel_bytes = sum(_size(report.parcel) for report in reports if report.parcel is not None)
            self.bytes_up += turn.parcel_bytes
        return total

    def restart(self, worker: int) -> None:
        self._inner.restart(worker)

    def pid(self, worker: int) -> int:
        return self._inner.pid(worker)

    def close(self) -> None:
        self._inner.close()

    def __enter__(self) -> "Metered":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def processor_seconds(self) -> tuple[float, list[float]]:
        """Of the driver and of each worker since training began."""
        if self._before is None:
            raise RuntimeError("No training has begun.")
        workers = [now - before for now, before in zip(self._workers_seconds(), self._before, strict=True)]
        return time.process_time() - self._driver_before, workers

    def _workers_seconds(self) -> list[float]:
        tickets = [self._inner.send(k, "processor_seconds") for k in range(self.n_workers)]
        return [ticket.result() for ticket in tickets]

    def summary(self) -> dict[str, Any]:
        """Rounds and bytes; a call of all workers for the sake of a proof is a round as well, and counted apart."""
        K = self.n_workers
        between = [b.began - a.ended for a, b in zip(self.rounds, self.rounds[1:], strict=False)]
        return {
            "workers": K,
            "rounds": len(self.rounds) + self.calls["interior"],
            "proofs": self.calls["evaluate"] + self.calls["totals"],
            "bytes_per_worker": (self.bytes_down + self.bytes_up) / K,
            "parcel_bytes": sum(turn.parcel_bytes for turn in self.rounds),
            "worker_visits": sum(turn.visited for turn in self.rounds),
            "start_seconds": self.start_seconds,
            "round_seconds": [turn.ended - turn.began for turn in self.rounds],
            "slowest_seconds": [turn.slowest for turn in self.rounds],
            "driver_seconds": between,
        }


def _size(content: Any) -> int:
    """Bytes of a pickle, of which large arrays are not copied."""
    buffers: list[pickle.PickleBuffer] = []
    light = pickle.dumps(content, protocol=5, buffer_callback=buffers.append)
    return len(light) + sum(buffer.raw().nbytes for buffer in buffers)

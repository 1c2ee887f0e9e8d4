"""A transport over Ray: every worker is an actor, on this machine or on the machines of a cluster."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from types import ModuleType
from typing import Any, cast

import numpy as np

from maxmargin.distributed.transport import Failure, Ticket, WorkerDied, WorkerTransport, fold, reply, sums


class _Held:
    """What lives in the actor's process. Its object is made by a call, which tells errors like any other."""

    def __init__(self) -> None:
        self._target: Any = None

    def pid(self) -> tuple[int, int]:
        return os.getpid(), 0

    def make(self, pickled: bytes) -> tuple[Any, int]:
        def make() -> None:
            self._target = pickle.loads(pickled)()

        return reply(make)[0], 0

    def call(self, method: str, *args: Any) -> tuple[tuple[Any, int], tuple[np.ndarray, ...]]:
        if self._target is None:  # the driver has ended this actor, and Ray does not do so at once
            _ray().actor.exit_actor()
        light, heavy = reply(lambda: getattr(self._target, method)(*args))
        return (light, len(heavy)), heavy


class _Actor:
    """The driver's view of one worker. Ray does not begin a dead actor anew: it would have no object."""

    def __init__(self, ray: ModuleType, index: int, maker: bytes, cpus: float, patience: float) -> None:
        self._ray = ray
        self._index = index
        self._cpus, self._patience = cpus, patience
        self._handle = ray.remote(num_cpus=cpus)(_Held).remote()
        self._found = self._ticket(self._handle.pid.remote())
        self._making = self._ticket(self._handle.make.remote(maker))
        self.pid = 0

    def _ticket(self, light: Any, heavy: Any = None) -> _RayTicket:
        return _RayTicket(self._ray, self._index, light, heavy)

    def send(self, method: str, args: tuple[Any, ...]) -> _RayTicket:
        return self._ticket(*self._handle.call.options(num_returns=2).remote(method, *args))

    def made(self) -> None:
        if not self._ray.wait([self._found.light], timeout=self._patience)[0]:
            free = self._ray.available_resources().get("CPU", 0)
            raise TimeoutError(
                f"Ray found no place for worker {self._index} within {self._patience:g} s. It asks for "
                f"{self._cpus:g} CPUs, and {free:g} are free in the cluster: ask for fewer workers, or add machines."
            )
        self.pid = self._found.result()
        try:
            self._making.result()
        except Exception:
            self.end()  # without an object it is of no use
            raise

    def end(self) -> None:
        self._ray.kill(self._handle)


class _RayTicket:
    """One call: two objects of Ray, the light part (with the number of heavy arrays) and the heavy one."""

    def __init__(self, ray: ModuleType, worker: int, light: Any, heavy: Any) -> None:
        self._ray = ray
        self.worker = worker
        self.light = light
        self.heavy = heavy

    def result(self) -> Any:
        return self._get()[0]

    def n_heavy(self) -> int:
        return self._get()[1]

    def check_heavy(self) -> None:
        """WorkerDied if the heavy part is lost, as it is when its machine is."""
        try:
            self._ray.get(self.heavy)
        except self._ray.exceptions.RayError as error:
            raise WorkerDied(self.worker, f"its answer is lost ({type(error).__name__})") from None

    def _get(self) -> tuple[Any, int]:
        errors = self._ray.exceptions
        try:
            answer = self._ray.get(self.light)
        except (errors.RayActorError, errors.ObjectLostError) as error:
            raise WorkerDied(self.worker, f"Ray says: {' '.join(str(error).split())}") from None
        if isinstance(answer[0], Failure):
            raise answer[0].error()
        return answer


class RayActors(WorkerTransport[_Actor]):
    """Workers that are actors of Ray.

    Heavy parts of answers stay in Ray's object stores; ``add_up`` adds them there, in a tree, so that one sum comes to
    the driver. Where this process has joined or begun a Ray already, that is used as it is, and ``close`` leaves it
    running.

    Parameters
    ----------
    address : str, default="auto"
        ``"auto"`` or ``"host:6379"``: join the cluster to which this machine belongs. ``"ray://host:10001"``: reach a
        cluster elsewhere through a Ray client server. A cluster that asks for a token finds it where Ray looks for it,
        as in ``RAY_AUTH_TOKEN``.
    n_workers : int, optional
        How many there can be; as many as the CPUs of the cluster allow, if not given.
    cpus_per_worker : float, default=1
        What each worker asks of Ray.
    patience : float, default=300
        Seconds to wait for Ray to find a place for a worker, at the start or after a death.
    """

    def __init__(
        self,
        address: str = "auto",
        n_workers: int | None = None,
        *,
        cpus_per_worker: float = 1,
        patience: float = 300.0,
    ) -> None:
        if (n_workers is not None and n_workers < 1) or cpus_per_worker <= 0:
            raise ValueError(
                "A cluster needs at least one worker, with more than zero CPUs; "
                f"got n_workers={n_workers}, cpus_per_worker={cpus_per_worker}."
            )
        self._ray = ray = _ray()
        self._cpus = cpus_per_worker
        self._patience = patience
        self._ours = not ray.is_initialized()
        if self._ours:
            _join(ray, address)
        if n_workers is None:
            n_workers = max(1, int(ray.cluster_resources().get("CPU", 1) // cpus_per_worker))
        super().__init__(n_workers)
        self._sums = ray.remote(num_cpus=0)(sums)

    def _begin(self, worker: int, maker: bytes) -> _Actor:
        return _Actor(self._ray, worker, maker, self._cpus, self._patience)

    def send(self, worker: int, method: str, *args: Any) -> _RayTicket:
        return self._worker(worker).send(method, args)

    def _shared(self, array: np.ndarray) -> Any:
        return self._ray.put(array)

    def wait(self, tickets: Sequence[Ticket], timeout: float | None) -> list[Ticket]:
        mine = cast("Sequence[_RayTicket]", tickets)
        if not mine:
            return []
        lights = [t.light for t in mine]
        self._ray.wait(lights, num_returns=1, timeout=timeout)
        done = set(self._ray.wait(lights, num_returns=len(lights), timeout=0)[0])
        return [t for t in mine if t.light in done]

    def add_up(self, tickets: Sequence[Ticket]) -> tuple[np.ndarray, ...]:
        full = [ticket for ticket in cast("Sequence[_RayTicket]", tickets) if ticket.n_heavy()]
        if not full:
            return ()
        try:
            total = self._ray.get(fold([t.heavy for t in full], self._sums.remote))
        except self._ray.exceptions.RayError as error:
            for ticket in full:
                ticket.check_heavy()
            raise getattr(error, "cause", None) or error from None
        return tuple(a.copy() for a in total)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for worker in self._workers:
            worker.end()
        self._workers.clear()
        if self._ours:
            self._ray.shutdown()


def _ray() -> ModuleType:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when Ray is imported
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            'Workers on a Ray cluster need ray, which is not installed: pip install "maxmargin[ray]".'
        ) from error
    return ray


def _join(ray: ModuleType, address: str) -> None:
    try:
        ray.init(address=address, log_to_driver=False)
    except (ConnectionError, ray.exceptions.RayError) as error:
        raise ConnectionError(
            f"The Ray cluster at {address} could not be joined: {' '.join(str(error).split())}. Does it run, and "
            "can this machine reach it? If it asks for a token, this program needs RAY_AUTH_MODE=token in its "
            "environment, and the token; else Ray waits until its time is up."
        ) from error

"""What a round of distributed training costs beside the work: 8 MB to every worker, 8 MB back from each, added up.

    python benchmarks/transport.py [local] [ray]

Prints the shortest of 10 rounds, for 2 and for 8 workers. "sent" is the same round with the array as a plain argument
of every call, in place of a broadcast.
"""

from __future__ import annotations

import importlib.util
import sys
import time

import numpy as np
from metered import transport_for

from maxmargin.distributed import Answer, Transport

ROUNDS = 10
SIZE = 1_000_000


class Echo:
    """Answers with an array as large as the one it got, without computing."""

    def __init__(self) -> None:
        self._change = np.ones(SIZE)

    def round(self, v: np.ndarray) -> Answer:
        return Answer(float(v[-1]), (self._change,))

    def nothing(self) -> None:
        """For the time of a bare call."""


def best(transport: Transport, method: str, broadcast: bool) -> float:
    v = np.zeros(SIZE)
    times = []
    for i in range(ROUNDS + 2):
        v[-1] = i
        begin = time.perf_counter()
        if method == "nothing":
            args: tuple = ()
        else:
            args = (transport.broadcast(v) if broadcast else v,)
        tickets = [transport.send(worker, method, *args) for worker in range(transport.n_workers)]
        if method == "nothing":
            for ticket in tickets:
                ticket.result()
        else:
            (total,) = transport.add_up(tickets)
            assert total[0] == transport.n_workers and tickets[0].result() == i
        times.append(time.perf_counter() - begin)
    return min(times[2:])


def main() -> None:
    kinds = sys.argv[1:] or ["local", *(["ray"] if importlib.util.find_spec("ray") else [])]
    print(f"{'transport':>10} {'start, s':>9} {'bare call, ms':>14} {'broadcast, ms':>14} {'sent, ms':>9}")
    for kind in kinds:
        for n_workers in (2, 8):
            begin = time.perf_counter()
            with transport_for(f"{kind}:{n_workers}") as transport:
                transport.start([Echo] * n_workers)
                start = time.perf_counter() - begin
                bare, shared, sent = (
                    1e3 * best(transport, *how) for how in (("nothing", True), ("round", True), ("round", False))
                )
            print(
                f"{kind}:{n_workers:<3}".rjust(10), f"{start:9.2f} {bare:14.2f} {shared:14.1f} {sent:9.1f}", flush=True
            )


if __name__ == "__main__":
    main()

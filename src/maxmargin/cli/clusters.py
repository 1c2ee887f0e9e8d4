"""The workers of a command that trains on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def workers(cluster: str | None) -> Iterator[Any]:
    """The transport that ``--cluster`` asks for, closed afterwards; None where training stays in this process."""
    if cluster is None:
        yield None
        return
    from ..distributed import WorkerDied, transport_of

    try:
        with transport_of(cluster) as transport:
            yield transport
    except WorkerDied as died:
        # It was started anew again and again before this was raised: the cause is not in this program.
        raise ChildProcessError(
            f"{died}. Systems end processes when memory runs out: fewer workers or a smaller --memory may help. With "
            "--checkpoint, the same command goes on from what was saved."
        ) from died

"""The workers of a command that trains on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def check_place(cluster: str | None) -> None:
    """Complain of a place that is none. Nothing is begun yet: whoever has mistyped it knows at once."""
    if cluster is None:
        return
    from ..distributed.address import WORDS, place_of

    try:
        known = place_of(cluster)
    except ValueError:
        raise ValueError(
            f"--cluster: the number of workers must be a whole number of at least 1, got {cluster!r}."
        ) from None
    if known is None:
        possible = WORDS.replace('"', "")  # the shell needs no quotes
        raise ValueError(f"--cluster: must be {possible}, got {cluster!r}.")


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

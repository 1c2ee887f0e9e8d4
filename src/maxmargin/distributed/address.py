"""Where the workers are, in one word: ``cluster="local:4"``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from maxmargin.distributed.processes import LocalProcesses
from maxmargin.distributed.ray_actors import RayActors
from maxmargin.validation import shown

if TYPE_CHECKING:
    from maxmargin.distributed.transport import Transport

_WORDS = (
    '"local" or "local:4" (processes of this machine), "ray" or "ray:4" (Ray, begun on this machine), '
    '"ray://auto" or "ray://auto?workers=4" (the Ray cluster that this machine belongs to), '
    '"ray://host:10001" or "ray://host:10001?workers=4" (a Ray cluster elsewhere)'
)


class Place(NamedTuple):
    """A word, understood: processes (``address`` None) or a Ray, and how many workers, if that was said."""

    address: str | None
    n_workers: int | None


def place_of(cluster: str) -> Place:
    """What a word says, before anything is begun; an error if it says nothing.

    >>> place_of("ray://auto?workers=4")
    Place(address='auto', n_workers=4)
    """
    found = re.fullmatch(r"(local|ray)(?::(\d+))?|ray://([^/?#]+)(?:\?workers=([^&#]*))?", cluster)
    if found is None:
        raise ValueError(f"cluster={cluster!r} is not understood. Possible are:\n{_WORDS}.")
    kind, count, host, more = found.groups()
    address = {"local": None, "ray": "local"}[kind] if kind else "auto" if host == "auto" else f"ray://{host}"
    digits = count or more
    if digits is not None and not (digits.isdecimal() and int(digits) >= 1):
        raise ValueError(f"cluster={cluster!r} asks for {digits!r} workers; it takes a whole number of at least 1.")
    return Place(address, None if digits is None else int(digits))


def transport_of(cluster: str | Transport, limit: int | None = None) -> Transport:
    """The transport that a user's word asks for.

    Parameters
    ----------
    cluster : str or Transport
        ``"local"``: processes of this machine, one per core; ``"local:4"``: four of them. ``"ray"``, ``"ray:4"``:
        actors of a Ray that is begun on this machine. ``"ray://auto"``: the Ray cluster to which this machine belongs;
        ``"ray://host:10001"``: one that is elsewhere; ``?workers=4`` may follow either, else there is one worker per
        CPU of the cluster. A transport is returned as it is, and remains the caller's to close.
    limit : int, optional
        More workers than this are not of use. Lowers the number that the word asks for.

    Examples
    --------
    >>> transport_of("local:4").n_workers
    4
    >>> transport_of("local:4", limit=3).n_workers
    3
    """
    if not isinstance(cluster, str):
        if isinstance(cluster, type) or not callable(getattr(cluster, "add_up", None)):
            raise ValueError(
                f"cluster={shown(cluster)} is not understood. Possible are:\n{_WORDS},\nor an object with the methods "
                "of maxmargin.distributed.Transport."
            )
        return cluster
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1; got {limit}.")
    place = place_of(cluster)
    if place.address is not None:
        return RayActors(place.address, place.n_workers, limit=limit)
    n_workers = LocalProcesses().n_workers if place.n_workers is None else place.n_workers
    return LocalProcesses(n_workers if limit is None else min(n_workers, limit))

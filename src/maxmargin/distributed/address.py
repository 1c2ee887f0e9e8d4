"""Where the workers are, in one word: ``cluster="local:4"``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from maxmargin.distributed.processes import LocalProcesses
from maxmargin.distributed.ray_actors import RayActors
from maxmargin.validation import shown

if TYPE_CHECKING:
    from maxmargin.distributed.transport import Transport


def transport_of(cluster: str | Transport) -> Transport:
    """The transport that a user's word asks for.

    Parameters
    ----------
    cluster : str or Transport
        ``"local"``: processes of this machine, one per core; ``"local:4"``: four of them. ``"ray://auto"``: actors of
        the Ray cluster to which this machine belongs, or of a Ray that this program has begun by ``ray.init()``;
        ``"ray://host:10001"``: of a cluster elsewhere; ``?workers=4`` may follow either, else there is one worker per
        CPU of the cluster. A transport is returned as it is, and remains the caller's to close.

    Examples
    --------
    >>> transport_of("local:4").n_workers
    4
    """
    if isinstance(cluster, str):
        found = re.fullmatch(r"local(?::(\d+))?|ray://([^/?#]+)(?:\?workers=(\d+))?", cluster)
        if found is not None:
            processes, host, actors = found.groups()
            if host is None:
                return LocalProcesses(None if processes is None else int(processes))
            return RayActors(host if host == "auto" else f"ray://{host}", None if actors is None else int(actors))
    elif not isinstance(cluster, type) and callable(getattr(cluster, "add_up", None)):
        return cluster
    raise ValueError(
        f"cluster={shown(cluster)} is not understood. Possible are:\n"
        '"local" or "local:4" (processes of this machine), '
        '"ray://auto" or "ray://auto?workers=4" (the Ray cluster that this machine belongs to), '
        '"ray://host:10001" or "ray://host:10001?workers=4" (a Ray cluster elsewhere),\n'
        "or an object with the methods of maxmargin.distributed.Transport."
    )

"""Training over many workers: the transports that carry calls to processes of this machine or to a Ray cluster."""

from __future__ import annotations

from maxmargin.distributed import choose as choose  # enters its solvers in their table
from maxmargin.distributed.address import transport_of
from maxmargin.distributed.processes import LocalProcesses
from maxmargin.distributed.ray_actors import RayActors
from maxmargin.distributed.transport import Answer, Ticket, Transport, WorkerDied

__all__ = ["Answer", "LocalProcesses", "RayActors", "Ticket", "Transport", "WorkerDied", "transport_of"]

"""What a run has cost."""

from __future__ import annotations

import sys


def peak_memory() -> int | None:
    """The most memory this process has held so far, in bytes; None where the system does not say."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

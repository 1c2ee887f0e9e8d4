"""How much memory this process has had at most."""

import ctypes
import gc
import resource
import sys
from pathlib import Path


def resident_peak(reset: bool = False) -> int:
    """High-water mark of resident memory in bytes.

    Linux lets a process reset it, so that the peak of loading the data is forgotten. `getrusage` alone
    would not do there: its mark is inherited from the parent through fork and exec.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    if reset:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024

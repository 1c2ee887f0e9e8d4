"""Compiled inner loops: they know arrays and scalars, nothing of labels, data sets or progress.

Every kernel releases the GIL, is cached on disk, and also runs as plain Python through ``.py_func``.
Sums are kept in float64 whatever the storage type. ``fastmath`` is given only to contiguous reductions
and without the flags that would change the meaning of NaN or infinity.

Helpers that run once per row are ``inlined``: a call that is not costs more than a short row, because every array it
is handed has its references counted, by an atomic operation each. Inlined helpers do without Numba's runtime, which
counts: they must neither make nor return an array.
"""

import warnings

import numba

from . import first_time


def _kept_on_disk() -> bool:
    """Whether Numba has a folder for what it compiled; where the package's and the user's are read-only it raises."""
    try:
        numba.njit(cache=True)(_kept_on_disk)
    except RuntimeError:
        warnings.warn(
            "maxmargin finds no folder to keep compiled code in, so every process compiles anew, for seconds. Set the "
            "environment variable NUMBA_CACHE_DIR to a folder that can be written to.",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True


_OPTIONS = {"nogil": True, "cache": _kept_on_disk(), "error_model": "numpy"}

compiled = numba.njit(**_OPTIONS)
compiled_sum = numba.njit(**_OPTIONS, fastmath={"reassoc", "contract", "arcp", "nsz"})
inlined = numba.njit(**_OPTIONS, forceinline=True, _nrt=False)

first_time.register()

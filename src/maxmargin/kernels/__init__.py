"""Compiled inner loops: they know arrays and scalars, nothing of labels, data sets or progress.

Every kernel releases the GIL, is cached on disk, and also runs as plain Python through ``.py_func``.
Sums are kept in float64 whatever the storage type. ``fastmath`` is given only to contiguous reductions
and without the flags that would change the meaning of NaN or infinity.

Helpers that run once per row are ``inlined``: a call that is not costs more than a short row, because every
array it is handed has its references counted.
"""

import numba

from . import first_time

_OPTIONS = {"nogil": True, "cache": True, "error_model": "numpy"}

compiled = numba.njit(**_OPTIONS)
compiled_sum = numba.njit(**_OPTIONS, fastmath={"reassoc", "contract", "arcp", "nsz"})
inlined = numba.njit(**_OPTIONS, forceinline=True)

first_time.register()

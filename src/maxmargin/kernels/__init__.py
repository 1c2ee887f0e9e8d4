"""Compiled inner loops: they know arrays and scalars, nothing of labels, data sets or progress.

Every kernel releases the GIL, is cached on disk, and also runs as plain Python through ``.py_func``.
Sums are kept in float64 whatever the storage type. ``fastmath`` is given only to contiguous reductions
and without the flags that would change the meaning of NaN or infinity.

Helpers that run once per row are ``inlined``: a call that is not costs more than a short row, because every array it
is handed has its references counted, by an atomic operation each. Inlined helpers do without Numba's runtime, which
counts: they must neither make nor return an array.

Numba is imported when the first kernel is called: whoever predicts, or solves a small problem, does without.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable
from typing import Any

_making = threading.RLock()
_registrations: list[Callable[[], None]] = []


@functools.cache
def _options() -> dict[str, Any]:
    """Those of all kernels, once Numba is there and knows what else is compiled into them."""
    from . import compiling, first_time

    first_time.register()
    compiling.register()
    for register in _registrations:
        register()
    return {"nogil": True, "cache": _kept_on_disk(), "error_model": "numpy", "no_cfunc_wrapper": True}


def _kept_on_disk() -> bool:
    """Whether Numba has a folder for what it compiled; where the package's and the user's are read-only it raises."""
    import numba

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


class Kernel:
    """A function that Numba compiles when it is first called, or asked for anything that only Numba knows."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._options = options
        self._made: Any = None

    def __call__(self, *arguments: Any) -> Any:
        return (self._made or self._dispatcher())(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._dispatcher(), name)

    def __reduce__(self) -> str:
        """Pickled by name, as functions are."""
        return self.__qualname__

    @property
    def _numba_type_(self) -> Any:
        """What Numba takes this function for where another one calls it."""
        return self._dispatcher()._type

    def _dispatcher(self) -> Any:
        with _making:
            if self._made is None:
                import numba

                self._made = numba.njit(**_options(), **self._options)(self.py_func)
        return self._made


def _decorator(**options: Any) -> Callable[[Callable[..., Any]], Kernel]:
    return functools.partial(Kernel, options=options)


compiled = _decorator()
compiled_sum = _decorator(fastmath={"reassoc", "contract", "arcp", "nsz"})
inlined = _decorator(forceinline=True, _nrt=False)


def when_compiling(register: Callable[[], None]) -> None:
    """Decorator: this is called once, before anything is compiled that needs it."""
    with _making:
        _registrations.append(register)
        if _options.cache_info().currsize:
            register()

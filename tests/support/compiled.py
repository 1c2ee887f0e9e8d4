"""Compiled kernels beside their own source, run as plain Python."""

import copy
import sys
from contextlib import contextmanager

import numpy as np
import pytest


@contextmanager
def nothing_compiled():
    """Every kernel of the package, and its helpers, as plain Python; yields what can patch further names.

    A compiled helper called from Python gives its generator state back as a Python int, which the next call
    would read as a signed number: a mixture of both runs through another random order.
    """
    with pytest.MonkeyPatch.context() as patch, np.errstate(over="ignore"):
        for module in [module for name, module in sys.modules.items() if name.startswith("maxmargin.")]:
            for name, value in list(vars(module).items()):
                if hasattr(value, "py_func"):
                    patch.setattr(module, name, value.py_func)
        yield patch


def equals_its_source(kernel, *arguments, rtol=1e-12, atol=None):
    """Run a kernel compiled and as plain Python, on copies: its result and all changed arrays must agree.

    Returns the result and the arguments of the compiled run. Sums may be taken in another order by the compiler.
    """
    compiled, plain = copy.deepcopy(arguments), copy.deepcopy(arguments)
    result = kernel(*compiled)
    with nothing_compiled():
        expected = kernel.py_func(*plain)
    _agree((result, compiled), (expected, plain), rtol, 0.1 * rtol if atol is None else atol)
    return result, compiled


def _agree(found, expected, rtol, atol):
    if isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            _agree(a, b, rtol, atol)
    elif expected is not None:
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=rtol, atol=atol)

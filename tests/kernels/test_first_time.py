"""The word on compiling: to people only, once, and only if something is compiled."""

import os
import subprocess
import sys

PROGRAM = """
import sys
from maxmargin.kernels import first_time
sys.stderr.isatty = lambda: {looked_on}
first_time.register()
import numba

@numba.njit
def theirs(x):
    return x + 1

theirs(1)
@numba.njit
def kernel(x):
    return x + 2

kernel.py_func.__module__ = "maxmargin.kernels.some"
kernel(1)
kernel(1.0)
"""


def said(looked_on):
    program = PROGRAM.format(looked_on=looked_on)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)
    return done.stderr


def test_somebody_who_looks_on_is_told_once():
    assert said(True).count("maxmargin: compiling") == 1


def test_nothing_is_written_into_files_and_pipes():
    assert said(False) == ""

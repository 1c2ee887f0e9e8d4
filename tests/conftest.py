import os
import signal
import sys

import numpy as np
import pytest

# A shell in the background hands on that Ctrl-C is ignored, also to the programs that tests of interrupts start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["MPLBACKEND"] = "agg"  # no picture needs a window


def pytest_collection_modifyitems(config, items):
    """Real data is not on every machine: without its folder these tests are deselected, not skipped."""
    if os.environ.get("MAXMARGIN_DATA"):
        return
    absent = [item for item in items if item.get_closest_marker("realdata")]
    if absent:
        config.hook.pytest_deselected(items=absent)
        items[:] = [item for item in items if not item.get_closest_marker("realdata")]


@pytest.fixture
def rng():
    return np.random.default_rng(20240)


@pytest.fixture(autouse=True)
def _no_earlier_interrupt(monkeypatch):
    """A second Ctrl-C within two seconds ends the program; those of other tests do not count."""
    if "maxmargin.solvers.solve" in sys.modules:
        monkeypatch.setattr(sys.modules["maxmargin.solvers.solve"], "_interrupted_at", -np.inf)


@pytest.fixture(autouse=True)
def _figures_are_closed():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")

import os

import numpy as np
import pytest


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

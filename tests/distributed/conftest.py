"""A Ray for the tests that need one."""

import pytest


@pytest.fixture(scope="module")
def ray_here():
    """Ray, begun once; transports of the tests find it running, use it, and leave it so."""
    ray = pytest.importorskip("ray")
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield ray
    ray.shutdown()

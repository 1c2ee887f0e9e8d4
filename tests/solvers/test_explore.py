"""The loop of exploring and optimizing by itself, and who leaves a pool that is full."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from maxmargin.solvers.explore import Explore, Explored, leaving


@dataclass(kw_only=True)
class Told(Explored):
    told: list = field(default_factory=list)


@dataclass(frozen=True)
class Teller(Explore[Told]):
    """Says what it is asked for; every view has met a gap of one."""

    n_views: int

    def _views(self, problem, state):
        for view in range(self.n_views):
            state.told.append(f"view {view}")
            yield view

    def _look(self, problem, state, view):
        state.told.append(f"look {view}")
        state.met += 1.0

    def _pays(self, state):
        return state.met >= 2.0

    def _optimize_briefly(self, problem, state):
        state.told.append("optimize")
        state.met = 0.0

    def _conclude(self, problem, state):
        state.told.append("conclude")
        return state


def test_views_are_looked_at_in_turn_and_optimizing_comes_between_two_of_them():
    state = Told()
    state.beat = lambda: state.told.append("beat")
    told = Teller(3).step(None, state).told
    assert told == [
        "view 0", "look 0", "view 1", "beat", "look 1", "view 2", "optimize", "beat", "look 2", "conclude",
    ]  # fmt: skip
    assert Teller(0).step(None, Told()).told == ["conclude"]


@pytest.mark.parametrize("shape", [(8,), (8, 3)])
def test_those_at_rest_leave_first_and_of_these_the_ones_without_a_share(shape):
    at_rest = np.array([0, 1, 0, 1, 1, 0, 0, 1], bool)
    alpha = np.zeros(shape)
    alpha[[0, 1, 4]] = 0.5
    order = []
    for most in range(7, -1, -1):
        mask = leaving(at_rest, alpha, most)
        assert np.count_nonzero(mask) == 8 - most
        order += [i for i in np.flatnonzero(mask).tolist() if i not in order]
    assert order == [3, 7, 1, 4, 2, 5, 6, 0]
    # Where nothing is lost with those that leave, only their age counts.
    assert np.flatnonzero(leaving(at_rest, None, 3)).tolist() == [0, 1, 3, 4, 7]

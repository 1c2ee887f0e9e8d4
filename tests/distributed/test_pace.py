"""How much of a pass a round has, by what rounds took; and the centre, where calls take longer than the work."""

import numpy as np
import pytest
from generators import two_classes
from inline_transport import Inline

import maxmargin as mm
from maxmargin.distributed.ascent import ShardAscent
from maxmargin.distributed.pace import Pace
from maxmargin.distributed.work import Report


def _report(swept, visited):
    return Report(0.0, 0.0, visited, visited, visited, 0, swept=swept)


def _pace(wait, swept=1.0, visited=1000):
    pace = Pace()
    pace.note(wait + swept, [_report(swept, visited // 2), _report(0.5 * swept, visited // 2)])
    return pace


def test_nothing_is_known_before_the_first_round():
    assert Pace().rounds(1000) == (1, 1)


@pytest.mark.parametrize("wait", [1e-4, 0.01, 0.1, 0.4, 0.6, 1.0, 3.0, 100.0])
def test_rounds_work_longer_than_they_wait_where_that_is_possible(wait):
    parts, sweeps = _pace(wait).rounds(1000)
    assert 1 <= parts <= 16
    assert 1 <= sweeps <= 8
    assert parts == 1 or sweeps == 1
    assert parts == 1 or 1.0 / parts >= 2.0 * wait * parts  # of a pass no more than half is waiting
    assert sweeps == 1 or sweeps <= wait


def test_rounds_are_fewer_where_less_moves():
    pace = _pace(0.001)
    assert [pace.rounds(n)[0] for n in (1000, 250, 50, 1)] == [16, 11, 5, 1]
    assert _pace(0.01).rounds(1)[1] == 8


def test_what_others_do_on_the_machine_is_no_wait():
    pace = _pace(0.01)
    pace.note(60.0, [_report(1.0, 1000)])  # somebody else had the processor
    assert pace.rounds(1000) == (7, 1)
    pace.note(1.0, [_report(0.0, 0)])  # nothing moved
    assert pace.rounds(1000) == (7, 1)


def test_the_centre_is_for_examples_that_are_not_worth_several_calls():
    pace = _pace(0.01)
    assert [pace.centre_pays(n) for n in (1, 50, 500, 1000)] == [True, True, False, False]


def test_one_worker_waits_for_nobody():
    """A pass has several rounds so that workers hear of one another."""
    X, y = two_classes(np.random.default_rng(0), n=200, d=6)
    rounds = []
    for sweeps in (0.1, 1.0):
        transport = Inline(1, lambda *_: False)
        svm = mm.LinearSVC(solver=ShardAscent(random_state=0, sweeps=sweeps), random_state=0)
        svm.fit(X, y, cluster=transport)
        rounds.append([method for _, method in transport.calls].count("improve"))
    assert rounds[0] == rounds[1]


@pytest.mark.parametrize("sweeps", [0.1, 0.5, 1.0, 3.0])
def test_any_share_of_a_pass_leads_to_the_optimum_and_can_be_repeated(sweeps):
    X, y = two_classes(np.random.default_rng(0), n=200, d=6)
    fits = [
        mm.LinearSVC(solver=ShardAscent(random_state=0, sweeps=sweeps), random_state=0, tol=1e-6).fit(
            X, y, cluster=Inline(3, lambda *_: False)
        )
        for _ in range(2)
    ]
    best = mm.LinearSVC(tol=1e-8).fit(X, y).certificate_
    assert fits[0].certificate_.relative_gap <= 1e-6
    assert fits[0].certificate_.upper >= best.lower
    assert fits[0].certificate_.lower <= best.upper
    assert fits[0].n_passes_ == fits[1].n_passes_
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)


def test_steps_that_are_too_long_for_shards_that_agree_get_shorter():
    """All shards have the same examples: σ below K overshoots whatever each of them settles by itself."""
    X, y = two_classes(np.random.default_rng(0), n=64, d=30)
    X, y = np.tile(X, (8, 1)), np.tile(y, 8)
    solver = ShardAscent(random_state=0, sweeps=0.25, centre=0)
    svm = mm.LinearSVC(solver=solver, C=10.0, random_state=0, tol=1e-5, max_passes=500)
    svm.fit(X, y, cluster=Inline(8, lambda *_: False))
    assert svm.certificate_.relative_gap <= 1e-5

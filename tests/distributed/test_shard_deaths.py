"""Workers that die at any call, or are late: the optimum is reached, and no bound on the way is false."""

import warnings

import numpy as np
import pytest
from generators import many_classes, two_classes
from inline_transport import Inline, binary_bounds

import maxmargin as mm
from maxmargin.distributed import worker_group
from maxmargin.distributed.ascent import ShardAscent

SVC = mm.LinearSVC
BINARY = two_classes(np.random.default_rng(0), n=40, d=4)
SEVERAL = many_classes(np.random.default_rng(1), n=40, d=4, k=3)
SETTINGS = {"C": 0.5, "random_state": 0, "tol": 1e-3}
ASCENT = ShardAscent(random_state=0, sweeps=1)  # the same calls in every run, whatever the time they take
CASES = {
    "ascent": (SVC(solver=ASCENT, **SETTINGS), BINARY),
    "no-centre": (SVC(solver=ShardAscent(centre=0, random_state=0, sweeps=1), **SETTINGS), BINARY),
    "interior": (SVC(solver="interior_point", **SETTINGS), BINARY),
    "crammer-singer": (SVC(solver=ASCENT, **SETTINGS), SEVERAL),
    "ovr": (SVC(solver=ASCENT, multi_class="ovr", **SETTINGS), SEVERAL),
    "squared": (SVC(solver=ASCENT, loss="squared_hinge", **SETTINGS), BINARY),
}


def _again(estimator, **settings):
    return type(estimator)(**{**estimator.get_params(deep=False), **settings})


def _optimum(estimator, data):
    return _again(estimator, tol=1e-6, solver="auto").fit(*data).certificate_


def _survives(name, dies, optimum, transport=Inline):
    """Fit under these deaths; what comes out is certified, and every bound on the way was a bound."""
    estimator, data = CASES[name]
    transport, bounds = transport(3, dies), []
    svm = _again(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svm.fit(*data, cluster=transport, callbacks=[bounds.append])
    limit = optimum.upper * (1 + 1e-9) + 1e-9
    if name != "ovr":  # where records are those of one class
        assert max(record.lower for record in bounds) <= limit
        assert min(record.upper for record in bounds) >= optimum.lower * (1 - 1e-9)
    assert svm.certificate_.lower <= limit
    assert svm.certificate_.upper >= optimum.lower * (1 - 1e-9)
    assert svm.certificate_.relative_gap <= svm.tol
    again = svm.certify(*data)
    assert again.lower == pytest.approx(svm.certificate_.lower, rel=1e-6)
    if name in ("ascent", "no-centre", "interior"):
        lower, upper = binary_bounds(svm, *data)
        assert lower == pytest.approx(svm.certificate_.lower, rel=1e-6)
        assert upper == pytest.approx(svm.certificate_.upper, rel=1e-6)
    return transport


@pytest.mark.parametrize("name", CASES)
def test_a_death_at_any_call(name):
    estimator, data = CASES[name]
    optimum = _optimum(estimator, data)
    calls = _survives(name, lambda *_: False, optimum).calls
    step = max(1, len(calls) // (8 if name == "ovr" else 20))  # of many calls, not every one of them
    ends = {method: n for n, (_, method) in enumerate(calls, 1) if method != "end"}  # the last of each kind, too
    for number in sorted({*range(1, len(calls) + 1, step), *ends.values()}):
        transport = _survives(name, lambda worker, method, count, n=number: count == n, optimum)
        assert transport.kills == 1


@pytest.mark.parametrize("name", ["ascent", "no-centre", "interior", "crammer-singer"])
def test_deaths_again_and_again(name):
    estimator, data = CASES[name]
    optimum = _optimum(estimator, data)
    rng = np.random.default_rng(2)
    transport = _survives(name, lambda worker, method, count: count < 400 and rng.random() < 0.06, optimum)
    assert transport.kills >= 3


def test_a_worker_that_always_dies_is_given_up(monkeypatch):
    monkeypatch.setattr(worker_group, "_DEATHS_IN_A_ROW", 4)
    X, y = BINARY
    with pytest.raises(mm.distributed.WorkerDied, match=r"worker 1 died: [45] times in a row"):
        SVC(**SETTINGS).fit(X, y, cluster=Inline(3, lambda worker, method, count: worker == 1))


class _Unfetched(Inline):
    """The first answers that bring examples for the driver cannot be summed: one of the workers has just died."""

    lost = 0

    def add_up(self, tickets):
        if not self.lost and any(getattr(ticket.result(), "parcel", None) is not None for ticket in tickets):
            self.lost += 1
            self._kill(2)
            raise mm.distributed.WorkerDied(2, "after it had answered")
        return super().add_up(tickets)


@pytest.mark.parametrize("name", ["ascent", "crammer-singer"])
def test_examples_in_an_answer_that_nobody_hears_come_home(name):
    assert _survives(name, lambda *_: False, _optimum(*CASES[name]), _Unfetched).lost


class _Long(Inline):
    """All calls take three seconds of a clock that stands still for those who wait for less."""

    def wait(self, tickets, timeout):
        return list(tickets) if timeout > 3.0 else []


class _Echo:
    def say(self, *_):
        return "here"

    ask = say

    def _close(self):
        """As shards have it."""


def test_work_that_takes_long_is_not_begun_anew_for_ever(monkeypatch):
    clock = iter(range(10**6))
    monkeypatch.setattr(worker_group.time, "monotonic", lambda: 0.5 * next(clock))
    some = worker_group.WorkerGroup(_Long(2), [_Echo, _Echo], give_up=1.0)
    assert some.ask("say") == ["here", "here"]
    assert some.deaths == 2  # the first has not answered within 1 or 2 seconds; then all have more
    third = worker_group.WorkerGroup(_Long(2), [_Echo, _Echo], give_up=1.0)
    assert worker_group.Call(third, 1, "ask", lambda k: ("anything",)).result() == "here"

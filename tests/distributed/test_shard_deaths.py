"""Workers that die at any call, or are late: the optimum is reached, and no bound on the way is false."""

import time
import warnings
from typing import ClassVar

import numpy as np
import pytest
from generators import chains, many_classes, two_classes
from inline_transport import Inline, binary_bounds

import maxmargin as mm
from maxmargin.distributed import worker_group
from maxmargin.distributed.ascent import ShardAscent
from maxmargin.models import Chain

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
    "chain": (
        mm.StructuralSVM(Chain(), C=0.5, random_state=0, tol=5e-3, solver=ASCENT),
        chains(np.random.default_rng(9), n=6),
    ),
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
    step = max(1, len(calls) // (8 if name in ("chain", "ovr") else 20))  # of many calls, not every one of them
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


class _Late(Inline):
    """Answers of worker 2 to ``improve`` come one round late, every other time."""

    def __init__(self, n_workers, dies):
        super().__init__(n_workers, dies)
        self.held = None
        self.delays = 0

    def send(self, worker, method, *args):
        ticket = super().send(worker, method, *args)
        if worker == 2 and method == "improve" and self.delays < 30 and len(self.calls) % 2:
            self.held, self.delays = ticket, self.delays + 1
        elif (worker == 0 and method == "improve") or method != "improve":
            self.held = None
        return ticket

    def wait(self, tickets, timeout):
        done = [ticket for ticket in tickets if ticket is not self.held]
        if not done:
            time.sleep(0.0 if timeout is None else min(timeout, 0.01))
        return done


@pytest.mark.parametrize("name", ["no-centre", "crammer-singer", "chain"])
def test_answers_that_come_late(name, monkeypatch):
    """They count in the round in which they come, or are made good; what they carry is not lost."""
    monkeypatch.setattr(worker_group, "_AT_LEAST", 0.0)
    monkeypatch.setattr(worker_group, "_SLOW", 0.0)
    transport = _survives(name, lambda *_: False, _optimum(*CASES[name]), _Late)
    assert transport.delays >= 2


class _Unheard(Inline):
    """The first answers that bring examples for the driver are held back until nobody waits for them any more."""

    def __init__(self, n_workers, dies):
        super().__init__(n_workers, dies)
        self.held = []

    def send(self, worker, method, *args):
        ticket = super().send(worker, method, *args)
        if method == "improve" and worker == 2 and not self.held and ticket.result().parcel is not None:
            self.held.append(ticket)
        return ticket

    def wait(self, tickets, timeout):
        return [ticket for ticket in tickets if ticket not in self.held]


@pytest.mark.parametrize("name", ["ascent", "crammer-singer"])
def test_examples_in_an_answer_that_nobody_hears_come_home(name, monkeypatch):
    monkeypatch.setattr(worker_group, "_AT_LEAST", 0.0)
    monkeypatch.setattr(worker_group, "_SLOW", 0.0)
    transport = _survives(name, lambda *_: False, _optimum(*CASES[name]), _Unheard)
    assert transport.held


class _Watching(ShardAscent):
    """Has every round evaluated, and keeps what was made of it."""

    seen: ClassVar[list] = []

    def step(self, problem, state):
        state.goal, state.estimate = 10.0, 0.0
        state = super().step(problem, state)
        self.seen.append(state.evaluated)
        return state


def test_losses_that_come_late_belong_to_other_weights(monkeypatch):
    """What is offered as the loss at some weights is the loss at these, whoever was late with his part of another."""
    monkeypatch.setattr(worker_group, "_AT_LEAST", 0.0)
    monkeypatch.setattr(worker_group, "_SLOW", 0.0)
    monkeypatch.setattr(_Watching, "seen", [])
    X, y = BINARY
    transport = _Late(3, lambda *_: False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it does not converge
        solver = _Watching(centre=0, random_state=0, sweeps=1)
        SVC(solver=solver, max_passes=40, **{**SETTINGS, "tol": 1e-12}).fit(X, y, cluster=transport)
    offered = [found for found in _Watching.seen if found is not None]
    assert transport.delays >= 5
    assert 5 <= len(offered) < len(_Watching.seen)
    for w, loss in offered:
        hinges = np.maximum(0.0, 1.0 - y * (X @ w[:-1] + w[-1]))
        assert loss.total == pytest.approx(SETTINGS["C"] * hinges.sum(), rel=1e-9)


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
    again = worker_group.WorkerGroup(_Long(2), [_Echo, _Echo], give_up=1.0)
    rounds = [again.round("say", lambda k: ())[0] for _ in range(4)]
    assert rounds[0] == {}
    assert rounds[-1] == {0: "here", 1: "here"}
    third = worker_group.WorkerGroup(_Long(2), [_Echo, _Echo], give_up=1.0)
    assert worker_group.Call(third, 1, "ask", lambda k: ("anything",)).result() == "here"

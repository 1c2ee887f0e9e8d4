"""Parallel oracles: workers search and complete, the driver optimizes. The same optima as on one machine."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from generators import chains
from inline_transport import Inline
from latent_models import Table, UnlistedTable, tables
from sklearn.exceptions import ConvergenceWarning
from user_models import HalfBlindTags, Tags, tagged

import maxmargin as mm
from maxmargin import LatentStructuralSVM, LatentSVC, MultilabelSVM, SequenceSVM, StructuralSVM, certify
from maxmargin.constraints import Searched
from maxmargin.constraints.oracle import oracle_for, sized
from maxmargin.constraints.searched import violations
from maxmargin.data.errors import DataError
from maxmargin.distributed import LocalProcesses, WorkerDied
from maxmargin.distributed.evaluations import remote_objective
from maxmargin.distributed.oracles import RemoteOracle
from maxmargin.distributed.requests import Requests
from maxmargin.distributed.searching import LatentSearches, Searches
from maxmargin.distributed.shard import Shard
from maxmargin.distributed.worker_group import WorkerGroup
from maxmargin.latent import CCCP, MaximumEntropy, MultiFold, RandomSubset, RandomWalk
from maxmargin.latent.plain import latent_oracle_for
from maxmargin.latent.search_state import SearchState
from maxmargin.latent.structural import StructuralObjective
from maxmargin.models import Bags, Chain, MaxMin, Multiclass, Ramp
from maxmargin.problem import Planes
from maxmargin.protocols import OracleError
from maxmargin.regularizers import L2, GroupNorm
from maxmargin.solvers.searchers import search


def _labels(n=30):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 4))
    return X, (X @ rng.normal(size=(4, 3)) + rng.normal(size=(n, 3)) > 0).astype(int)


def _words(n=24):
    X, Y = chains(np.random.default_rng(6), n=n)
    return X, [[f"label {k}" for k in y] for y in Y]


CASES = {
    "python": lambda: (StructuralSVM(Tags(), C=0.5), *tagged(np.random.default_rng(5), n=26, noise=1.5)),
    "compiled": lambda: (StructuralSVM(Chain(), C=0.5), *chains(np.random.default_rng(1), n=30)),
    "sequence": lambda: (SequenceSVM(C=0.5), *_words()),
    "multilabel": lambda: (MultilabelSVM(C=0.5), *_labels()),
}


def _set(estimator, **settings):
    return estimator.set_params(tol=1e-5, random_state=0, **settings)


def _same_optimum(here, there):
    """Both brackets are narrow and true, so they overlap; then the objectives are alike too."""
    for a, b in ((here, there), (there, here)):
        assert a.certificate_.relative_gap <= 1.01 * a.tol
        assert a.certificate_.lower <= b.certificate_.upper + 1e-12 * abs(b.certificate_.upper)


class Answers(Searches):
    """A recipe around an oracle."""

    def __init__(self, oracle):
        self._oracle = oracle

    def oracle(self):
        return self._oracle


def _remote(model, X, Y, sizes, transport=None):
    """The oracle of the data with so many examples on each worker, and the one with all of them."""
    whole = oracle_for(sized(model, X, Y), X, Y)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    parts = [(X[a:b], Y[a:b]) for a, b in pairwise(ends.tolist())]
    recipes = [Answers(oracle_for(sized(model, X, Y), *part) if len(part[1]) else None) for part in parts]
    workers = WorkerGroup(transport or Inline(len(sizes)), [lambda recipe=recipe: Shard(recipe) for recipe in recipes])
    return RemoteOracle(Requests(workers, len(Y)), whole.n_weights), whole


@pytest.mark.parametrize(
    ("name", "n_workers"),
    [("python", 2), ("python", 40), ("compiled", 1), ("compiled", 7), ("sequence", 3), ("multilabel", 7)],
)
def test_a_fit_on_a_cluster_ends_where_a_fit_on_one_machine_does(name, n_workers):
    estimator, X, Y = CASES[name]()
    here = _set(estimator).fit(X, Y)
    there = _set(CASES[name]()[0]).fit(X, Y, cluster=Inline(n_workers))
    _same_optimum(here, there)
    # What the run proved at the driver is proved anew without any worker.
    again = there.certify(X, Y)
    assert again.lower == pytest.approx(there.certificate_.lower, rel=1e-9)
    assert again.upper == pytest.approx(there.certificate_.upper, rel=1e-9)


@pytest.mark.parametrize(("name", "n_workers"), [("python", 7), ("compiled", 2), ("sequence", 2), ("multilabel", 7)])
def test_workers_may_read_their_examples_from_a_source(name, n_workers):
    estimator, X, Y = CASES[name]()
    here = _set(estimator).fit(X, Y)
    if name == "multilabel":
        source = mm.data.open(X, labels=Y, chunk_rows=4)
    else:
        source = mm.data.open(list(zip(X, Y, strict=True)), chunk_rows=4)
    there = _set(CASES[name]()[0]).fit(source, cluster=Inline(n_workers))
    _same_optimum(here, there)


def test_weights_of_examples_stay_with_the_driver():
    X, Y = tagged(np.random.default_rng(5), n=26, noise=1.5)
    weight = np.random.default_rng(0).uniform(size=26)
    weight[3] = 0.0
    here = _set(StructuralSVM(Tags())).fit(X, Y, weight)
    _same_optimum(here, _set(StructuralSVM(Tags())).fit(X, Y, weight, cluster=Inline(3)))


def test_a_pure_group_norm_is_minimised_although_examples_are_elsewhere():
    X, Y = tagged(np.random.default_rng(5), n=26, noise=1.0)
    norm = GroupNorm([np.arange(3), np.arange(3, 6), np.arange(6, 9)])
    here = StructuralSVM(Tags(), regularizer=norm, tol=1e-4, random_state=0).fit(X, Y)
    _same_optimum(here, StructuralSVM(Tags(), regularizer=norm, tol=1e-4, random_state=0).fit(X, Y, cluster=Inline(3)))


def test_an_approximate_search_claims_no_upper_bound_here_either():
    X, Y = tagged(np.random.default_rng(5), n=12, noise=1.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        there = StructuralSVM(HalfBlindTags(), max_passes=20, random_state=0).fit(X, Y, cluster=Inline(3))
    assert not there.certificate_.exact


def test_memory_bounds_what_is_kept_here():
    X, Y = chains(np.random.default_rng(1), n=60, longest=6)
    whole = _set(StructuralSVM(Chain(), C=0.3)).fit(X, Y)
    records = []
    there = StructuralSVM(Chain(), C=0.3, tol=1e-3, random_state=0, memory=30_000)
    there.fit(X, Y, cluster=Inline(3), callbacks=[records.append])
    assert max(record.bytes for record in records) <= 30_000
    assert there.certificate_.lower <= whole.certificate_.upper
    assert whole.certificate_.lower <= there.certificate_.upper


def test_a_warm_start_goes_on_from_the_planes_of_the_last_fit():
    X, Y = chains(np.random.default_rng(1), n=30)
    svm = StructuralSVM(Chain(), tol=1e-4, random_state=0, warm_start=True).fit(X, Y, cluster=Inline(3))
    cold = svm.n_passes_
    svm.fit(X, Y, cluster=Inline(2))
    assert svm.n_passes_ < cold
    assert svm.n_passes_ <= 2


def test_a_run_that_was_broken_off_goes_on_with_another_number_of_workers(tmp_path):
    X, Y = chains(np.random.default_rng(1), n=30)
    settings = {"tol": 1e-5, "random_state": 0}
    with pytest.warns(ConvergenceWarning):
        first = StructuralSVM(Chain(), max_passes=4, **settings).fit(X, Y, cluster=Inline(3), checkpoint=tmp_path)
    second = StructuralSVM(Chain(), **settings).fit(X, Y, cluster=Inline(2), checkpoint=tmp_path)
    assert [r.lower for r in second.history_[:4]] == [r.lower for r in first.history_]
    _same_optimum(_set(StructuralSVM(Chain())).fit(X, Y), second)


# The oracle itself.


@pytest.mark.parametrize("sizes", [(14,), (3, 11), (0, 5, 9), (1, 0, 2, 0, 4, 7, 0)])
@pytest.mark.parametrize("name", ["python", "compiled"])
def test_answers_come_in_the_order_asked_for(name, sizes):
    estimator, X, Y = CASES[name]()
    X, Y = X[:14], Y[:14]
    remote, whole = _remote(estimator.model, X, Y, sizes)
    rng = np.random.default_rng(0)
    w = rng.normal(size=whole.n_weights)
    for ids in (rng.permutation(14), np.array([13, 0, 13]), np.array([5]), np.empty(0, np.int64)):
        theirs, ours = remote.rivals(ids, w), whole.rivals(ids, w)
        assert all(map(np.array_equal, theirs.labels, ours.labels))
        assert theirs.losses.tolist() == ours.losses.tolist()
        assert violations(theirs, w) == pytest.approx(violations(ours, w), abs=1e-12)
        again = remote.planes(ids, ours.labels)
        assert violations(again, w) == pytest.approx(violations(ours, w), abs=1e-12)


@pytest.mark.parametrize("sizes", [(14,), (0, 5, 9)])
def test_bounds_take_one_call_per_worker(sizes):
    X, Y = tagged(np.random.default_rng(5), n=14, noise=1.5)
    transport = Inline(len(sizes))
    remote, whole = _remote(Tags(), X, Y, sizes, transport)
    rng = np.random.default_rng(0)
    w, budget = rng.normal(size=whole.n_weights), rng.uniform(size=14)
    ids = rng.integers(0, 14, 40)
    alpha = Planes(ids, whole.rivals(ids, w).labels, rng.uniform(size=40))
    transport.calls.clear()
    found = Searched(remote, budget).evaluate(w)
    assert len(transport.calls) == sum(n > 0 for n in sizes)
    assert found.total == pytest.approx(Searched(whole, budget).evaluate(w).total)
    transport.calls.clear()
    linear, v, *_ = Searched(remote, budget).totals(alpha)
    assert len(transport.calls) == sum(n > 0 for n in sizes)
    ours = Searched(whole, budget).totals(alpha)
    assert linear == pytest.approx(ours[0])
    assert v == pytest.approx(ours[1])


@pytest.mark.parametrize("size", [1, 64])
def test_chunks_have_each_example_once_and_belong_to_one_worker_each(size):
    X, Y = tagged(np.random.default_rng(5), n=200, noise=1.5)
    remote, _ = _remote(Tags(), X, Y, (20, 0, 150, 30))
    ids = np.random.default_rng(0).permutation(200)[:180]
    for chunks in (remote.chunked(ids, size), remote.at_once(ids)):
        assert sorted(np.concatenate(chunks).tolist()) == sorted(ids.tolist())
        workers = [np.unique(np.searchsorted([20, 20, 170], chunk, side="right")) for chunk in chunks]
        assert all(worker.size == 1 for worker in workers)
    # All take turns: none is done before half of the work is.
    order = [int(np.searchsorted([20, 170], c[0], side="right")) for c in remote.chunked(ids, 1)]
    assert all(max(p for p, k in enumerate(order) if k == worker) > len(order) // 2 for worker in range(3))


def test_all_workers_have_work_while_answers_are_taken_in():
    X, Y = tagged(np.random.default_rng(5), n=40, noise=1.5)
    remote, _ = _remote(Tags(), X, Y, (10, 10, 20))
    under_way = []

    class Watched(RemoteOracle):
        def submit(self, ids, w):
            call = super().submit(ids, w)
            call.worker = int(np.searchsorted([10, 20], ids[0], side="right"))
            under_way.append(call)
            return call

    watched = Watched(remote._requests, remote.n_weights)
    chunks = watched.chunked(np.arange(40), 2)
    w = np.zeros(remote.n_weights)
    answered = 0
    for _ in search(watched, chunks, lambda: w, 1):
        if answered + watched.n_ahead <= len(chunks) - 2:
            assert {call.worker for call in under_way[answered:]} == {0, 1, 2}
        answered += 1
    assert answered == len(chunks)


def test_data_that_differs_between_machines_is_refused():
    X, Y = tagged(np.random.default_rng(5), n=6, noise=1.5)
    workers = WorkerGroup(Inline(1), [lambda: Shard(Answers(oracle_for(Tags(), X, Y)))])
    with pytest.raises(DataError, match="The workers have 6 examples, the driver has counted 7"):
        Requests(workers, 7)


# Workers that die, models that fail.


def test_workers_may_die_in_the_midst_of_searches():
    X, Y = tagged(np.random.default_rng(5), n=26, noise=1.5)
    here = _set(StructuralSVM(Tags())).fit(X, Y)
    transport = Inline(3, dies=lambda worker, method, count: method == "ask" and count % 11 == 0)
    there = _set(StructuralSVM(Tags())).fit(X, Y, cluster=transport)
    assert transport.kills >= 2
    _same_optimum(here, there)
    undisturbed = _set(StructuralSVM(Tags())).fit(X, Y, cluster=Inline(3))
    assert there.coef_.tolist() == undisturbed.coef_.tolist()  # nothing was lost, nothing is different


def test_a_question_that_kills_every_worker_is_given_up():
    X, Y = tagged(np.random.default_rng(5), n=9, noise=1.5)
    began = []

    def dies(worker, method, count):
        began.append(count)
        return worker == 1 and method == "ask" and len(began) > 12

    with pytest.raises(WorkerDied, match="times in a row while it was asked for"):
        StructuralSVM(Tags()).fit(X, Y, cluster=Inline(3, dies=dies))


class Choking(Tags):
    """Cannot be asked about one input."""

    def most_violated(self, x, y, w):
        if x[0] == 77.0:
            raise RuntimeError("this input is too much")
        return super().most_violated(x, y, w)


def test_errors_of_the_model_name_the_example_by_its_number_among_all():
    X, Y = tagged(np.random.default_rng(5), n=20, noise=1.5)
    X = [np.array(x, float) for x in X]
    X[13][0] = 77.0
    with pytest.raises(OracleError, match="this input is too much") as caught:
        StructuralSVM(Choking()).fit(X, Y, cluster=Inline(3))
    assert caught.value.example == 13


def test_solvers_are_chosen_by_name():
    X, Y = tagged(np.random.default_rng(5), n=12, noise=1.5)
    transport = Inline(2)
    StructuralSVM(Tags(), C=0.1, tol=0.05, solver="oracle_ascent", random_state=0).fit(X, Y, cluster=transport)
    assert {method for _, method in transport.calls} == {"ask", "end"}
    with pytest.raises(ValueError, match="solver must be"):
        StructuralSVM(Tags(), solver="dual_coordinate").fit(X, Y, cluster=Inline(2))


# Latent variables.


def _latent_case(name):
    rng = np.random.default_rng(2)
    if name in ("listed", "unlisted"):
        X, Y = tables(rng, n=15)
        return (Table() if name == "listed" else UnlistedTable()), X, Y
    X, y = rng.normal(size=(24, 3, 2)), np.arange(24) % 2
    X[np.arange(24), rng.integers(0, 3, 24), y] += 1.5
    return (Bags(), X, y) if name == "bags" else (Ramp(Multiclass()), X[:, 0], y)


def _objectives(name, n_workers, transport=None):
    """The objective on one machine, and with its examples on workers."""
    model, X, Y = _latent_case(name)
    model, n, budget = sized(model, X, Y), len(Y), np.random.default_rng(8).uniform(0.5, 1.5, len(Y))

    def made(a, b):
        return StructuralObjective(latent_oracle_for(model, X[a:b], Y[a:b]), budget[a:b], L2())

    ends = np.linspace(0, n, n_workers + 1).astype(int).tolist()
    workers = WorkerGroup(
        transport or Inline(n_workers),
        [lambda a=a, b=b: Shard(LatentSearches(lambda: made(a, b))) for a, b in pairwise(ends)],
    )
    return made(0, n), remote_objective(made(0, n), workers)


def _drawn(objective, rng):
    """Latent values that are best at some weights."""
    return objective.evaluate(rng.normal(size=objective.n_weights)).best


CHOOSERS = {
    "cccp": CCCP(),
    "gmm": RandomWalk(),
    "subset": RandomSubset(),
    "gmme": MaximumEntropy(),
    "fold": MultiFold(3),
}


@pytest.mark.parametrize("chooser", CHOOSERS)
@pytest.mark.parametrize(("name", "n_workers"), [("listed", 1), ("unlisted", 2), ("bags", 7), ("ramp", 3)])
def test_choosers_choose_the_bounds_of_one_machine(name, chooser, n_workers):
    here, there = _objectives(name, n_workers)
    if name == "unlisted" and chooser in ("gmme", "fold"):
        with pytest.raises(ValueError, match="this model does not list"):
            CHOOSERS[chooser].check(there)
        return
    rng = np.random.default_rng(0)
    latent, w = _drawn(here, rng), rng.normal(size=here.n_weights)
    chosen = []
    for objective in (here, there):
        evaluation = objective.evaluate(w)
        regret = evaluation.regrets(np.arange(objective.n_examples), latent)
        gap = float(regret.sum())
        search_state = SearchState(
            objective=objective,
            latent=latent,
            weights=w,
            evaluation=evaluation,
            regret=regret,
            gap=gap,
            budget=0.9 * gap,
            number=1,
            carries=np.ones(objective.n_examples, bool),
            train=lambda mask: mask.mean() * w + mask[: w.size].sum(),
        )
        chosen.append(CHOOSERS[chooser].choose(search_state, np.random.default_rng(3)))
    assert gap > 0.0
    assert type(chosen[1]) is type(chosen[0])
    assert all(map(np.array_equal, *chosen))


@pytest.mark.parametrize(("name", "n_workers"), [("listed", 3), ("unlisted", 7), ("bags", 2), ("ramp", 1)])
def test_bounds_do_not_get_mixed_up(name, n_workers):
    here, there = _objectives(name, n_workers)
    rng = np.random.default_rng(1)
    some, others, w = _drawn(here, rng), _drawn(here, rng), rng.normal(size=here.n_weights)
    first, second = there.problem(some), there.problem(others)
    for remote, latent in ((first, some), (second, others), (first, some)):
        local = here.problem(latent).constraints
        assert remote.constraints.evaluate(w).total == pytest.approx(local.evaluate(w).total)
    mask = rng.uniform(size=here.n_examples)
    masked = there.problem(some, mask).constraints.evaluate(w).total
    assert masked == pytest.approx(here.problem(some, mask).constraints.evaluate(w).total)
    assert [np.array(z).tolist() for z in there.initial(None)] == [np.array(z).tolist() for z in here.initial(None)]


@pytest.mark.parametrize(
    ("name", "bound", "n_workers"), [("listed", "cccp", 7), ("unlisted", "gmm", 2), ("bags", "gmme", 2)]
)
def test_a_search_ends_with_a_certificate_of_its_last_bound(name, bound, n_workers):
    model, X, Y = _latent_case(name)
    there = LatentStructuralSVM(model, bound=bound, tol=1e-4, random_state=0).fit(X, Y, cluster=Inline(n_workers))
    assert there.certificate_.relative_gap <= 1e-4
    assert there.objective_ == pytest.approx(there.objective(X, Y), rel=1e-9)
    # With these latent values nothing is better, as one machine finds too.
    problem = there._again(X, Y, None).problem(there.latent_)
    again = certify(problem, there.coef_, there._alpha)
    assert again.relative_gap <= 1.01e-4
    values = [record.bound for record in there.history_]
    assert bound == "gmme" or all(b <= a * (1 + 1e-9) for a, b in pairwise(values))


@pytest.mark.parametrize(
    ("kind", "n_workers"),
    [("two classes", 7), ("instances", 2), ("three classes", 7), ("the first is positive", 2)],
)
def test_bags_are_looked_at_by_workers(kind, n_workers):
    rng = np.random.default_rng(3)
    n_classes = 3 if kind == "three classes" else 2
    X, y = [rng.normal(size=(1 + i % 4, 3)) for i in range(24)], np.arange(24) % n_classes
    for x, k in zip(X, y, strict=True):
        x[rng.integers(len(x)), k] += 2.0
    settings = {"bound": "gmm", "random_state": 0, "negatives": "instances" if kind == "instances" else "bag"}
    settings["positive"] = 0 if kind == "the first is positive" else None
    settings |= {"class_weight": "balanced"} | ({"solver": "cutting_plane"} if n_classes == 3 else {})
    here = LatentSVC(**settings).fit(X, y)
    there = LatentSVC(**settings).fit(X, y, cluster=Inline(n_workers))
    assert there.latent_.tolist() == here.latent_.tolist()
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-3)


@pytest.mark.parametrize("largest", [2, 12])
def test_games_are_played_by_workers(largest):
    rng = np.random.default_rng(0)
    # With 12 moves on each side there are too many policies to list, on one worker only.
    X = [rng.normal(size=(2 + i % 2, 2, 3)) for i in range(9)] + [rng.normal(size=(largest, largest, 3))]
    y = np.arange(10) % 2
    settings = {"bound": "gmm", "random_state": 0}
    here = LatentStructuralSVM(MaxMin(), **settings).fit(X, y)
    there = LatentStructuralSVM(MaxMin(), **settings).fit(X, y, cluster=Inline(3))
    assert all(map(np.array_equal, there.latent_, here.latent_))
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-9)


def test_workers_that_die_learn_the_latent_values_again():
    model, X, Y = _latent_case("listed")
    settings = {"C": 2.0, "bound": "gmm", "random_state": 0}
    calm = LatentStructuralSVM(model, **settings).fit(X, Y, cluster=Inline(3))
    transport = Inline(3, dies=lambda worker, method, count: method == "ask" and count % 17 == 0)
    there = LatentStructuralSVM(model, **settings).fit(X, Y, cluster=transport)
    assert transport.kills > 2
    assert there.coef_.tolist() == calm.coef_.tolist()
    assert there.latent_.tolist() == calm.latent_.tolist()


# Processes.


def test_workers_may_be_processes():
    X, Y = chains(np.random.default_rng(1), n=20)
    here = _set(StructuralSVM(Chain())).fit(X, Y)
    with LocalProcesses(2) as transport:
        _same_optimum(here, _set(StructuralSVM(Chain())).fit(X, Y, cluster=transport))

"""LatentStructuralSVM as users meet it: models of theirs and ours, starts, files, interruptions and failures."""

from itertools import pairwise

import numpy as np
import pytest
import reference
from interruptions import interrupt_at
from latent_models import Regions, Table, UnlistedTable, bags, by_hand, objective_of, regions, tables
from quietly import quiet
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from user_models import Instances, every_rival

import maxmargin as mm
from maxmargin import LatentStructuralSVM, solve
from maxmargin.checkpoint import CheckpointError
from maxmargin.latent import (
    CCCP,
    Biased,
    Coherence,
    MaximumEntropy,
    MultiFold,
    RandomSubset,
    RandomWalk,
)
from maxmargin.latent.plain import Completed
from maxmargin.latent.warm_started import WarmStarted
from maxmargin.models import Bags, Chain
from maxmargin.protocols import OracleError
from maxmargin.regularizers import GaussianPrior, GroupNorm
from maxmargin.solvers import OracleAscent

CHOOSERS = [CCCP(), RandomWalk(3), RandomSubset(0.5), MultiFold(4), MultiFold(None), MaximumEntropy(0.99)]
# Functions of the user's: known when they fit, not in files.
WITH_FUNCTIONS = [Biased(lambda i, z, w: -float(z))]


def named(part):
    return part if isinstance(part, str) else type(part).__name__


@pytest.fixture
def easy():
    """Bags that are told apart by one instance each."""
    return bags(np.random.default_rng(7))


@pytest.fixture
def hard():
    """Tables of noise: many bounds, many minima."""
    return tables(np.random.default_rng(5), n=16)


def telling(X, y):
    """The instances that tell: a start from which small differences lead nowhere else."""
    return np.array([int(np.argmax(x[:, c])) for x, c in zip(X, y, strict=True)])


def bound_optimum(model, X, Y, latent, C):
    """The minimum of a convex bound, from the cone solver."""
    pairs = list(zip(Y, latent, strict=True))

    def answers(x):
        return model.answers(x) if hasattr(model, "answers") else [
            (k, z) for k in range(model.n_classes) for z in range(len(x))
        ]  # fmt: skip

    return reference.quadratic(*every_rival(Completed(model), X, pairs, answers, C))


# What is learned.


@pytest.mark.parametrize("bound", ["cccp", "gmm", "gmme", *CHOOSERS, *WITH_FUNCTIONS], ids=named)
def test_the_objective_and_its_certificate_are_true(bound, hard):
    X, Y = hard
    svm = LatentStructuralSVM(Table(), C=0.6, bound=bound, tol=1e-5, bound_tol=1e-5, random_state=0).fit(X, Y)
    assert svm.objective_ == pytest.approx(by_hand(Table(), X, Y, svm.coef_, 0.6), rel=1e-8)
    assert svm.objective_ == pytest.approx(svm.objective(X, Y), rel=1e-8)
    optimum = bound_optimum(Table(), X, Y, svm.latent_, 0.6)
    certificate = svm.certificate_
    assert certificate.lower <= optimum.value * (1.0 + 1e-7)
    assert certificate.upper >= optimum.value * (1.0 - 1e-7)
    assert certificate.relative_gap <= 1e-4
    assert svm.objective_ <= certificate.upper * (1.0 + 1e-9)
    assert svm.objective_ == pytest.approx(min(r.objective for r in svm.history_), rel=1e-9)
    assert svm.n_bounds_ == len(svm.history_)
    assert svm.n_passes_ == sum(r.passes for r in svm.history_)
    again = svm.certify(X, Y)
    assert again.lower == pytest.approx(certificate.lower, rel=1e-7)
    assert again.upper <= certificate.upper * (1.0 + 1e-9)


@pytest.mark.rounding
def test_bags_are_told_apart_and_explained(easy):
    X, y = easy
    svm = LatentStructuralSVM(Bags(), C=1.0, random_state=0).fit(X, y)
    assert svm.model_.n_classes == 2
    answers = [max(((k, z) for k in range(2) for z in range(3)), key=lambda a: svm.coef_ @ svm.model_.features(x, a))
               for x in X]  # fmt: skip
    assert svm.predict(X) == [k for k, _ in answers]
    assert svm.predict_latent(X) == [z for _, z in answers]
    assert svm.score(X, y) == pytest.approx(-np.mean([k != c for (k, _), c in zip(answers, y, strict=True)]))
    assert svm.score(X, y) > -0.1
    for x, c, z in zip(X, y, svm.complete(X, y), strict=True):
        scores = [svm.coef_ @ svm.model_.features(x, (c, k)) for k in range(3)]
        assert scores[z] == pytest.approx(max(scores))
    np.testing.assert_array_equal(svm.complete(X, svm.predict(X)), svm.predict_latent(X))
    assert svm.objective_ == pytest.approx(by_hand(svm.model_, X, y, svm.coef_), rel=1e-9)
    assert svm.selected_states_ == [(0, 0), (1, 0)]


def test_a_model_in_plain_python_learns_what_the_compiled_one_does(easy):
    X, y = easy
    Z = telling(X, y)
    settings = {"C": 0.5, "tol": 1e-6, "bound_tol": 1e-6, "random_state": 0}
    compiled = LatentStructuralSVM(Bags(2, 2), **settings).fit(X, y, Z=Z)
    plain = LatentStructuralSVM(Instances(2, 2), **settings).fit(list(X), y.tolist(), Z=Z.tolist())
    assert plain.objective_ == pytest.approx(compiled.objective_, rel=1e-5)
    np.testing.assert_allclose(plain.coef_, compiled.coef_, atol=0.01)
    assert plain.predict(list(X)) == compiled.predict(X)


@pytest.mark.rounding
@pytest.mark.parametrize("bound", ["gmm", Biased(Coherence([[0, 1], [1, 2]])), "cccp", RandomSubset()], ids=named)
def test_latent_structures_that_are_not_listed(bound):
    X, Y = regions(np.random.default_rng(1))
    svm = LatentStructuralSVM(Regions(), C=1.0, bound=bound, eta=0.3, random_state=0).fit(X, Y)
    model = Regions()
    assert svm.objective_ == pytest.approx(by_hand(model, X, Y, svm.coef_), rel=1e-8)
    optimum = bound_optimum(model, X, Y, svm.latent_, 1.0)
    assert svm.certificate_.lower <= optimum.value * (1.0 + 1e-7)
    assert svm.certificate_.upper >= optimum.value * (1.0 - 1e-7)
    assert svm.score(X, Y) > -0.3
    assert all(r.bound <= before.bound * (1.0 + 1e-9) for before, r in pairwise(svm.history_))
    for x, y, z in zip(X, Y, svm.complete(X, Y), strict=True):
        assert svm.coef_ @ model.features(x, (y, z)) >= max(
            svm.coef_ @ model.features(x, (y, other)) for other in model.latents(x)
        ) - 1e-9  # fmt: skip


def test_regularizers_are_obeyed(hard):
    X, Y = hard
    prior = GaussianPrior(np.array([1.0, 0.0, 0.0]), np.array([0.5, 1.0, 2.0]))
    svm = LatentStructuralSVM(Table(), regularizer=prior, random_state=0).fit(X, Y)
    assert svm.objective_ == pytest.approx(by_hand(Table(), X, Y, svm.coef_, omega=prior.value), rel=1e-9)


def test_states_that_are_not_needed_are_dropped():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 4, 3)) * 0.3
    X[np.arange(40), 2, y] += 3.0  # only one state ever tells
    sized = Bags(states="separate").sized(X, y)
    strong = GroupNorm(sized.groups, 2.0, l2=0.1)
    svm = LatentStructuralSVM(Bags(states="separate"), C=0.2, regularizer=strong, random_state=0).fit(X, y)
    assert {z for _, z in svm.selected_states_} == {2}
    dropped = [p for p, state in enumerate(sized.states) if state not in svm.selected_states_]
    assert dropped
    assert all((svm.coef_[sized.groups[p]] == 0.0).all() for p in dropped)
    garbage = X.copy()
    garbage[:, [0, 1, 3]] = 1e200
    assert svm.predict(garbage) == svm.predict(X)
    assert svm.score(X, y) > -0.1


@pytest.mark.parametrize("solver", ["oracle_ascent", "cutting_plane", "frank_wolfe", OracleAscent(chunk=3)], ids=named)
def test_every_solver_serves(solver, hard):
    X, Y = hard
    w0 = np.array([1.0, -1.0, 0.5])
    svm = LatentStructuralSVM(Table(), C=0.3, init=w0, solver=solver, random_state=0, max_passes=3000).fit(X, Y)
    assert svm.objective_ <= by_hand(Table(), X, Y, w0, 0.3)
    assert svm.certificate_.relative_gap <= 1e-3
    assert svm.certificate_.lower <= bound_optimum(Table(), X, Y, svm.latent_, 0.3).value * (1 + 1e-7)


# Starts.


def test_values_given_are_where_the_search_begins(hard):
    X, Y = hard
    rng = np.random.default_rng(2)
    Z = [int(rng.integers(len(x[y]))) for x, y in zip(X, Y, strict=True)]
    settings = {"C": 0.6, "random_state": 0}
    first = bound_optimum(Table(), X, Y, Z, 0.6).value
    for svm in (
        LatentStructuralSVM(Table(), **settings).fit(X, Y, Z=Z),
        LatentStructuralSVM(Table(), **settings).fit(X, Y, Z=np.array(Z)),
        LatentStructuralSVM(Table(), init=_looked_up(X, Z), **settings).fit(X, Y),
        LatentStructuralSVM(Table(), init="random", **settings).fit(X, Y, Z=Z),  # Z comes before init
    ):
        assert first * (1 - 1e-7) <= svm.history_[0].bound <= first * 1.035
        assert svm.objective_ <= first * 1.001


def _looked_up(X, Z):
    places = {id(x): z for x, z in zip(X, Z, strict=True)}
    return lambda x, y: places[id(x)]


def test_weights_given_are_where_the_search_begins(hard):
    X, Y = hard
    w0 = np.array([0.5, -0.2, 1.0])
    svm = LatentStructuralSVM(Table(), C=0.6, init=w0, random_state=0).fit(X, Y)
    best = [Table().complete(x, y, w0) for x, y in zip(X, Y, strict=True)]
    assert svm.history_[0].bound <= by_hand(Table(), X, Y, w0, 0.6)
    assert svm.history_[0].bound <= bound_optimum(Table(), X, Y, best, 0.6).value * 1.035


def test_random_starts_depend_on_the_seed_alone(hard):
    X, Y = hard
    one, same, other = (
        quiet(LatentStructuralSVM(Table(), init="random", bound="gmm", max_bounds=3, random_state=seed), X, Y)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one.coef_, same.coef_)
    assert one.history_[0].bound != other.history_[0].bound


def test_the_model_may_say_where_to_begin(hard):
    X, Y = hard

    class Last(Table):
        def initial(self, x, y):
            return len(x[y]) - 1

    first = bound_optimum(Table(), X, Y, [len(x[y]) - 1 for x, y in zip(X, Y, strict=True)], 1.0).value
    svm = LatentStructuralSVM(Last(), random_state=0).fit(X, Y)
    assert first * (1 - 1e-7) <= svm.history_[0].bound <= first * 1.035


def test_the_best_of_several_starts_counts(hard):
    X, Y = hard
    records = []
    several = LatentStructuralSVM(Table(), C=2.0, n_init=6, random_state=0).fit(X, Y, callbacks=[records.append])
    assert sum(r.number == 1 for r in records) == 6
    assert several.objective_ == min(r.objective for r in records)
    ends = [before.objective for before, after in pairwise([*records, records[0]]) if after.number == 1]
    assert several.objective_ < max(ends) * 0.999  # on this data
    assert several.objective_ == pytest.approx(by_hand(Table(), X, Y, several.coef_, 2.0), rel=1e-9)


def test_a_warm_start_goes_on_from_the_last_weights(hard):
    X, Y = hard
    svm = LatentStructuralSVM(Table(), C=0.6, bound="gmm", warm_start=True, random_state=0).fit(X, Y)
    before, passes = svm.objective_, svm.n_passes_
    svm.fit(X, Y)
    assert svm.objective_ <= before * (1 + 1e-9)
    assert svm.n_passes_ < passes
    svm.set_params(C=0.7).fit(X, Y)
    assert svm.objective_ == pytest.approx(by_hand(Table(), X, Y, svm.coef_, 0.7), rel=1e-8)
    assert svm.certificate_.lower <= bound_optimum(Table(), X, Y, svm.latent_, 0.7).value * (1 + 1e-7)


def test_a_warm_start_on_other_data_keeps_the_weights_alone(hard):
    X, Y = hard
    svm = LatentStructuralSVM(Table(), warm_start=True, random_state=0).fit(X, Y)
    others, labels = tables(np.random.default_rng(99), n=5)
    svm.fit(others, labels)
    assert svm.objective_ == pytest.approx(by_hand(Table(), others, labels, svm.coef_), rel=1e-8)
    bagged = LatentStructuralSVM(Bags(), warm_start=True, random_state=0)
    bagged.fit(np.random.default_rng(0).normal(size=(12, 5, 2)), np.arange(12) % 2)
    bagged.fit(np.random.default_rng(1).normal(size=(6, 2, 2)), np.arange(6) % 2)  # their instances are fewer, too
    assert len(bagged.latent_) == 6


def test_weights_are_repetitions(easy):
    X, y = easy
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    repeated = np.repeat(np.arange(len(y)), weight.astype(int))
    Z = telling(X, y)
    settings = {"C": 0.3, "tol": 1e-6, "bound_tol": 1e-6, "random_state": 0}
    weighted = LatentStructuralSVM(Bags(), **settings).fit(X, y, Z=Z, sample_weight=weight)
    copies = LatentStructuralSVM(Bags(), **settings).fit(X[repeated], y[repeated], Z=Z[repeated])
    assert weighted.objective_ == pytest.approx(copies.objective_, rel=1e-5)
    np.testing.assert_allclose(weighted.coef_, copies.coef_, atol=0.01)
    assert weighted.objective(X, y, sample_weight=weight) == pytest.approx(weighted.objective_, rel=1e-9)
    assert weighted.certify(X, y, sample_weight=weight).relative_gap <= 1e-5


# The cache goes from bound to bound.


def test_rounding_is_no_contradiction():
    # Cached planes are differences of long float32 rows, which are no longer exact once truths have changed.
    rng = np.random.default_rng(7)
    X = (300.0 * rng.normal(size=(15, 4, 2))).astype(np.float32)
    objective = objective_of(Bags(2, 2), X, rng.integers(0, 2, 15), 50.0)
    kept = WarmStarted(OracleAscent(random_state=0), objective)
    for _ in range(4):
        latent = objective.initial(rng)
        found = solve(objective.problem(latent), kept.turn_to(latent), tol=1e-4)
        cold = solve(objective.problem(latent), OracleAscent(random_state=0), tol=1e-4)
        assert found.certificate.upper == pytest.approx(cold.certificate.upper, rel=3e-4)


class Cold:
    """A solver that begins every bound with an empty cache."""

    def __init__(self, max_inner=300):
        self.solver = OracleAscent(random_state=0, max_inner=max_inner)

    def start(self, problem, warm=None):
        return self.solver.start(problem, None)

    def step(self, problem, state):
        return self.solver.step(problem, state)


@pytest.mark.parametrize("settings", [{"memory": 12_000}, {"memory": 60_000, "n_jobs": 2}], ids=str)
def test_means_do_not_change_what_is_learned(settings):
    X, y = bags(np.random.default_rng(3), n=60, size=3, d=3)
    common = {"C": 0.3, "tol": 1e-5, "bound_tol": 1e-5, "random_state": 0}
    Z = telling(X, y)
    expected = LatentStructuralSVM(Bags(), **common).fit(X, y, Z=Z)
    found = LatentStructuralSVM(Bags(), **common, **settings).fit(X, y, Z=Z)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-4)
    assert found.certificate_.relative_gap <= 1e-5


def test_too_little_memory_is_said(hard):
    with pytest.raises(MemoryError, match="too little"):
        LatentStructuralSVM(Table(), memory=200, random_state=0).fit(*hard)


# An approximate search.


class HalfBlind(Table):
    """Of the rivals it sees every other one, and says so."""

    exact = False

    def __init__(self):
        super().__init__(exact=False)

    def most_violated(self, x, y, w):
        every = [a for a in self.answers(x) if a[0] == y] + self.answers(x)[::2]
        return max(every, key=lambda a: self.loss(y, a) + w @ self.features(x, a))


@pytest.mark.parametrize("bound", ["cccp", "gmm"])
def test_an_approximate_search_claims_no_upper_bound(bound, hard):
    X, Y = hard
    svm = LatentStructuralSVM(HalfBlind(), C=0.6, bound=bound, random_state=0).fit(X, Y)
    assert not svm.certificate_.exact
    assert svm.certificate_.upper == np.inf
    assert not svm.history_[-1].exact
    assert np.isfinite(svm.objective_)
    assert svm.objective_ <= by_hand(Table(), X, Y, svm.coef_, 0.6) * (1 + 1e-9)  # as far as it could see
    assert svm.certificate_.lower <= bound_optimum(Table(), X, Y, svm.latent_, 0.6).value * (1 + 1e-7)


# Files.


@pytest.mark.parametrize("bound", ["gmm", RandomSubset(0.5), MultiFold(None), *WITH_FUNCTIONS], ids=named)
def test_files_keep_what_was_learned(bound, easy, tmp_path):
    X, y = easy
    svm = quiet(LatentStructuralSVM(Bags(), bound=bound, max_bounds=4, random_state=0), X, y)
    svm.save(tmp_path / "model.safetensors")
    again = mm.load(tmp_path / "model.safetensors")
    assert again.predict(X) == svm.predict(X)
    assert again.predict_latent(X) == svm.predict_latent(X)
    assert again.objective_ == svm.objective_
    assert again.certificate_ == svm.certificate_
    assert again.history_ == svm.history_
    assert again.selected_states_ == svm.selected_states_
    np.testing.assert_array_equal(again.latent_, svm.latent_)
    assert again.certify(X, y) == svm.certify(X, y)
    kept = bound not in WITH_FUNCTIONS  # functions are code, and stay out of files
    assert again.bound == (bound if kept else "cccp")
    quiet(again.set_params(warm_start=True), X, y)
    assert again.objective_ <= svm.objective_ * (1 + 1e-9)


@pytest.mark.parametrize(("model", "data"), [(Table(), tables), (Regions(), regions)])
def test_a_model_of_ones_own_is_handed_over(model, data, tmp_path):
    X, Y = data(np.random.default_rng(0), n=8)
    svm = quiet(LatentStructuralSVM(model, max_bounds=3, random_state=0), X, Y)
    svm.save(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="a model of your own"):
        mm.load(tmp_path / "model.safetensors")
    again = mm.load(tmp_path / "model.safetensors", model=model)
    assert again.predict(X) == svm.predict(X)
    assert list(again.latent_) == list(svm.latent_)
    assert again.certify(X, Y) == svm.certify(X, Y)  # answers are pairs, of structures too, and are in the file
    assert quiet(again, X, Y).objective_ == pytest.approx(svm.objective_, rel=1e-3)


# The tools of scikit-learn.


def test_nothing_works_before_fit(easy):
    svm = LatentStructuralSVM(Bags())
    for ask in (svm.predict, svm.predict_latent):
        with pytest.raises(NotFittedError):
            ask(easy[0])
    for ask in (svm.complete, svm.objective, svm.certify, svm.score):
        with pytest.raises(NotFittedError):
            ask(*easy)


def test_other_data_is_certified_where_its_own_values_are_best(hard):
    X, Y = hard
    svm = LatentStructuralSVM(Table(), C=0.6, random_state=0).fit(X, Y)
    others, labels = tables(np.random.default_rng(77), n=6)
    certificate = svm.certify(others, labels)
    assert certificate.upper == pytest.approx(by_hand(Table(), others, labels, svm.coef_, 0.6), rel=1e-9)
    assert certificate.lower <= certificate.upper


# Interruptions, failures, checkpoints.


def stop_after(n):
    return lambda record: record.number >= n


@pytest.mark.parametrize(("bound", "model"), [("gmm", Table()), ("cccp", Table()), ("gmm", UnlistedTable())])
def test_a_search_goes_on_from_where_it_was_stopped(bound, model, hard, tmp_path):
    X, Y = hard

    def svm(**more):
        return LatentStructuralSVM(model, C=2.0, bound=bound, eta=0.05, random_state=0, **more)  # fmt: skip

    Z = [0] * len(X)
    whole = svm().fit(X, Y, Z)
    assert whole.n_bounds_ > 2
    with pytest.warns(ConvergenceWarning, match="was told to stop"):
        stopped = svm().fit(X, Y, Z, checkpoint=tmp_path, checkpoint_every=0.0, callbacks=[stop_after(2)])
    assert stopped.n_bounds_ == 2
    resumed = svm().fit(X, Y, Z, checkpoint=tmp_path, checkpoint_every=0.0)
    assert resumed.n_bounds_ > 2
    assert resumed.history_[:2] == stopped.history_
    assert resumed.objective_ <= stopped.objective_ * (1 + 1e-9)
    assert resumed.history_[-1].gap <= 1e-3 * abs(resumed.history_[-1].objective)
    assert resumed.objective_ == pytest.approx(by_hand(model, X, Y, resumed.coef_, 2.0), rel=1e-8)
    assert resumed.certificate_.lower <= bound_optimum(model, X, Y, resumed.latent_, 2.0).value * (1 + 1e-7)
    bounds = [r.bound for r in resumed.history_]
    assert all(after <= before * (1 + 1e-9) for before, after in pairwise(bounds))
    # Once it has converged there is nothing left to do.
    again = svm().fit(X, Y, Z, checkpoint=tmp_path)
    assert again.history_ == resumed.history_
    assert again.objective_ == pytest.approx(resumed.objective_, rel=1e-12)
    np.testing.assert_array_equal(again.coef_, resumed.coef_)


class RegionArrays(Regions):
    """The same with arrays as latent values."""

    def latents(self, x):
        return [np.array(z) for z in super().latents(x)]

    def propose(self, x, y, z, w, rng):
        return np.array(super().propose(x, y, tuple(z.tolist()), w, rng))


@pytest.mark.parametrize("model", [Regions(), RegionArrays()], ids=named)
def test_structures_are_saved_between_bounds(model, tmp_path):
    X, Y = regions(np.random.default_rng(1))
    settings = {"C": 2.0, "bound": "gmm", "eta": 0.05, "random_state": 0}
    with pytest.warns(ConvergenceWarning, match="max_bounds=1"):
        short = LatentStructuralSVM(model, max_bounds=1, **settings).fit(X, Y, checkpoint=tmp_path)
    with pytest.warns(ConvergenceWarning, match="max_bounds=1"):  # there is no more to do, and no less to say
        again = LatentStructuralSVM(model, max_bounds=1, **settings).fit(X, Y, checkpoint=tmp_path)
    assert again.history_ == short.history_
    assert again.certificate_.lower == pytest.approx(short.certificate_.lower, rel=1e-9)
    more = LatentStructuralSVM(model, max_bounds=50, **settings).fit(X, Y, checkpoint=tmp_path)
    assert more.history_[:1] == short.history_
    assert more.objective_ <= short.objective_
    assert more.objective_ == pytest.approx(by_hand(model, X, Y, more.coef_, 2.0), rel=1e-8)
    more.save(tmp_path / "model.safetensors")
    loaded = mm.load(tmp_path / "model.safetensors", model=model)
    assert loaded.certify(X, Y) == more.certify(X, Y)
    assert loaded.certify(X, Y).relative_gap <= 1e-3 + 1e-9


def test_several_starts_are_saved_apart(hard, tmp_path):
    X, Y = hard
    svm = LatentStructuralSVM(Table(), C=2.0, n_init=3, random_state=0).fit(X, Y, checkpoint=tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_dir()) == ["start-0", "start-1", "start-2"]
    calls = []
    again = LatentStructuralSVM(Table(), C=2.0, n_init=3, random_state=0).fit(
        X, Y, checkpoint=tmp_path, callbacks=[calls.append]
    )
    assert not calls
    assert again.objective_ == pytest.approx(svm.objective_, rel=1e-12)


def test_a_checkpoint_belongs_to_one_run(hard, tmp_path):
    X, Y = hard
    LatentStructuralSVM(Table(), random_state=0).fit(X, Y, checkpoint=tmp_path)
    for changed, message in (({"C": 2.0}, "C was"), ({"eta": 0.2}, "eta was"), ({"bound": "gmm"}, "bound was")):
        with pytest.raises(CheckpointError, match=message):
            LatentStructuralSVM(Table(), random_state=0).set_params(**changed).fit(X, Y, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="data was"):
        LatentStructuralSVM(Table(), random_state=0).fit(X[:-1], Y[:-1], checkpoint=tmp_path)


def calls_of(method, data, **settings):
    """How often a method of the model is called in all."""
    with pytest.MonkeyPatch.context() as patch:
        calls = interrupt_at(patch, Table, method, -1)
        LatentStructuralSVM(Table(), C=2.0, random_state=0, **settings).fit(*data, [0] * len(data[0]))
    return len(calls)


@pytest.mark.parametrize(("method", "share"), [("most_violated", 0.8), ("complete", 0.5), ("latent_scores", 0.8)])
def test_ctrl_c_keeps_the_best(method, share, hard, monkeypatch):
    X, Y = hard
    settings = {"bound": "gmm", "eta": 0.05}
    interrupt_at(monkeypatch, Table, method, int(share * calls_of(method, hard, **settings)))
    svm = LatentStructuralSVM(Table(), C=2.0, random_state=0, **settings)
    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        svm.fit(X, Y, [0] * len(X))
    assert svm.n_bounds_ >= 1
    assert svm.objective_ == pytest.approx(by_hand(Table(), X, Y, svm.coef_, 2.0), rel=1e-8)
    assert svm.objective_ == pytest.approx(min(r.objective for r in svm.history_), rel=1e-9)


def test_ctrl_c_in_a_callback_keeps_the_best(hard, tmp_path):
    X, Y = hard

    def press(record):
        if record.number == 2:
            raise KeyboardInterrupt

    svm = LatentStructuralSVM(Table(), C=2.0, bound="gmm", eta=0.05, random_state=0)
    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        svm.fit(X, Y, [0] * len(X), callbacks=[press], checkpoint=tmp_path)
    assert svm.n_bounds_ == 2
    assert svm.objective_ == pytest.approx(by_hand(Table(), X, Y, svm.coef_, 2.0), rel=1e-8)
    resumed = LatentStructuralSVM(Table(), C=2.0, bound="gmm", eta=0.05, random_state=0)
    resumed.fit(X, Y, [0] * len(X), checkpoint=tmp_path)
    assert resumed.history_[:2] == svm.history_  # it was saved before it ended


def test_ctrl_c_while_folds_are_trained_ends_the_search(hard):
    X, Y = hard
    within = []

    class Folds(Table):
        def most_violated(self, x, y, w):
            if within and within[0] == 20:
                raise KeyboardInterrupt
            if within:
                within[0] += 1
            return super().most_violated(x, y, w)

    class Watch(MultiFold):
        def choose(self, search_state, rng):
            within.append(0)
            return super().choose(search_state, rng)

    svm = LatentStructuralSVM(Folds(), C=2.0, bound=Watch(3), eta=0.05, random_state=0)
    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        svm.fit(X, Y, [0] * len(X))
    assert len(within) == 1
    assert svm.n_bounds_ == 1
    assert svm.objective_ == pytest.approx(by_hand(Table(), X, Y, svm.coef_, 2.0), rel=1e-8)


def test_ctrl_c_before_anything_was_found_is_an_interrupt(hard, monkeypatch):
    interrupt_at(monkeypatch, Table, "complete", 1)  # while the start is looked for
    svm = LatentStructuralSVM(Table(), random_state=0)
    with pytest.raises(KeyboardInterrupt):
        svm.fit(*hard)
    assert not hasattr(svm, "coef_")


def test_ctrl_c_twice_ends_the_program_and_loses_nothing(hard):
    X, Y = hard
    pressed = []

    class Impatient(Table):
        def most_violated(self, x, y, w):
            if len(pressed) == 1:
                pressed.append("while a bound is minimised")
                raise KeyboardInterrupt
            return super().most_violated(x, y, w)

        def complete(self, x, y, w):
            if len(pressed) == 2:
                pressed.append("at once again")
                raise KeyboardInterrupt
            return super().complete(x, y, w)

    def after_two(record):
        if record.number == 2:
            pressed.append("soon")

    svm = LatentStructuralSVM(Impatient(), C=2.0, bound="gmm", eta=0.05, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        svm.fit(X, Y, [0] * len(X), callbacks=[after_two])
    assert len(pressed) == 3
    assert svm.n_bounds_ == 2
    assert svm.objective_ == pytest.approx(by_hand(Table(), X, Y, svm.coef_, 2.0), rel=1e-8)


def test_ctrl_c_in_a_later_start_keeps_the_best_and_warns(hard):
    X, Y = hard
    starts = []

    def press(record):
        starts.append(record.number == 1)
        if sum(starts) == 2:
            raise KeyboardInterrupt

    svm = LatentStructuralSVM(Table(), C=2.0, n_init=5, random_state=0)
    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        svm.fit(X, Y, callbacks=[press])
    assert sum(starts) == 2
    one = LatentStructuralSVM(Table(), C=2.0, random_state=0).fit(X, Y)
    assert svm.objective_ <= one.objective_
    assert svm.objective_ == pytest.approx(by_hand(Table(), X, Y, svm.coef_, 2.0), rel=1e-8)


@pytest.mark.parametrize("method", ["most_violated", "complete", "latent_scores"])
def test_a_model_that_fails_leaves_what_was_learned(method, hard, monkeypatch):
    X, Y = hard
    settings = {"bound": "gmm", "eta": 0.05}
    at = int(0.7 * calls_of(method, hard, **settings))
    interrupt_at(monkeypatch, Table, method, at, RuntimeError("out of sorts"))
    svm = LatentStructuralSVM(Table(), C=2.0, random_state=0, **settings)
    with pytest.raises(OracleError, match="out of sorts"):
        svm.fit(X, Y, [0] * len(X))
    assert svm.n_bounds_ >= 1
    assert svm.objective_ == pytest.approx(by_hand(Table(), X, Y, svm.coef_, 2.0), rel=1e-8)
    assert svm.predict(X) == [Table().predict(x, svm.coef_)[0] for x in X]


def test_a_model_that_fails_at_once_leaves_the_last_fit_alone(hard, monkeypatch):
    X, Y = hard
    svm = LatentStructuralSVM(Table(), random_state=0).fit(X, Y)
    weights = svm.coef_
    interrupt_at(monkeypatch, Table, "most_violated", 1, RuntimeError("out of sorts"))
    with pytest.raises(OracleError, match="out of sorts"):
        svm.fit(X, Y)
    assert svm.coef_ is weights


def test_too_few_bounds_are_said(hard):
    with pytest.warns(ConvergenceWarning, match=r"max_bounds=2 bounds.*raise max_bounds") as caught:
        LatentStructuralSVM(Table(), C=2.0, bound="gmm", eta=0.05, max_bounds=2, random_state=0).fit(*hard, [0] * 16)
    assert caught[0].filename == __file__


def test_a_bound_that_is_not_solved_is_said(hard):
    with pytest.warns(ConvergenceWarning, match=r"did not solve its last bound within max_passes=1 .*raise max_passes"):
        svm = LatentStructuralSVM(Table(), C=2.0, solver=Cold(max_inner=1), max_passes=1).fit(*hard)
    assert svm.certificate_.relative_gap > 1e-3


# What is refused.


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"solver": "newton"}, "solver"),
        ({"init": "somewhere"}, "init must be"),
        ({"init": np.ones(2)}, "3 finite numbers"),
        ({"init": np.full(3, np.nan)}, "3 finite numbers"),
        ({"group_norm": 1.0}, "declares groups"),
        ({"model": Table}, "give an object of it"),
        ({"model": object()}, "lacks"),
        ({"model": Chain()}, "StructuralSVM"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changed, message, hard):
    svm = LatentStructuralSVM(Table()).set_params(**changed)
    with pytest.raises(ValueError, match=message):
        svm.fit(*hard)
    assert not hasattr(svm, "coef_")


def test_data_that_makes_no_sense_is_refused(hard):
    X, Y = hard
    svm = LatentStructuralSVM(Table())
    with pytest.raises(ValueError, match="Z has 3 latent values, X has 16"):
        svm.fit(X, Y, Z=[0, 0, 0])
    with pytest.raises(ValueError, match=r"Z must be whole numbers from 0 on, below .* got \[17, 17"):
        svm.fit(X, Y, Z=[17] * 16)
    with pytest.raises(ValueError, match="negative"):
        svm.fit(X, Y, sample_weight=-np.ones(16))
    assert not hasattr(svm, "coef_")


def test_a_label_without_latent_values_is_named(hard):
    X, Y = [list(x) for x in hard[0]], hard[1]
    X[4][Y[4]] = np.empty((0, 3))
    with pytest.raises(OracleError, match="example 4"):
        LatentStructuralSVM(Table(), bound="gmm", init=np.zeros(3)).fit(X, Y)

    class Speechless(UnlistedTable):
        def __init__(self):
            super().__init__()
            self.complete = lambda x, y, w: None

    with pytest.raises(OracleError, match="Example 0 has no latent value"):
        LatentStructuralSVM(Speechless()).fit(*hard)


def test_random_bounds_need_a_list_or_small_changes(hard):
    class Bare(UnlistedTable):
        propose = None

    Bare.propose = property()  # hasattr says no
    svm = LatentStructuralSVM(Bare(), bound="gmm", random_state=0)
    with pytest.raises(ValueError, match="random bounds need one of the two"):
        svm.fit(*hard)
    assert svm.set_params(bound="cccp").fit(*hard).n_bounds_ >= 1
    with pytest.raises(ValueError, match="define latent_scores"):
        LatentStructuralSVM(UnlistedTable(), bound="gmme", random_state=0).fit(*hard)


def test_random_starts_by_small_changes():
    X, Y = regions(np.random.default_rng(4), n=8)
    svm = quiet(LatentStructuralSVM(Regions(), init="random", max_bounds=2, random_state=0), X, Y)
    assert svm.objective_ == pytest.approx(by_hand(Regions(), X, Y, svm.coef_), rel=1e-8)

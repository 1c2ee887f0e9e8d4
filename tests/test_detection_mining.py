"""Mined training against all windows and all placements listed; the cache of hard examples against a dictionary."""

import numpy as np
import pytest
from detection_by_hand import AGAINST, PARTS, enumerated, random_weights, tiny_objective
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from maxmargin.latent import CCCP, RandomWalk, Settings, minimise
from maxmargin.latent.loop import value
from maxmargin.regularizers import L2
from maxmargin.solvers import solve
from maxmargin.solvers.certificate import certify, lower_bound
from maxmargin.solvers.dual_coordinate import DualCoordinate
from maxmargin.vision.detection.hard_examples import HardExamples
from maxmargin.vision.detection.mining import Mining
from maxmargin.vision.detection.model import Component, Part, Prior, StarModel

ONE = StarModel((Component(3, 3, (Part(2, 2, 1, 1),)), Component(2, 3)))
FLEXIBLE = Prior(stiffness=0.02, firmness=1.0)
ROOM = 10**8


def bound_of(objective, seed=0, scale=0.1):
    return objective.standing(random_weights(np.random.default_rng(seed), objective.model, scale)).best


def mined(problem, tol=1e-4, **mining):
    mining.setdefault("memory", ROOM)
    return solve(problem, Mining(random_state=0, **mining), tol=tol, max_passes=300)


@pytest.mark.parametrize(
    "model, prior, C, mirrored",
    [
        (ONE, Prior(), 0.02, False),
        (ONE, FLEXIBLE, 0.5, False),
        (ONE, FLEXIBLE, 0.05, True),
        (AGAINST, Prior(), 0.02, False),
        (AGAINST, FLEXIBLE, 0.5, False),
        (AGAINST, FLEXIBLE, 0.05, True),
    ],
)
def test_mined_training_is_training_on_everything(model, prior, C, mirrored):
    model = StarModel(model.components, mirrored)
    objective = tiny_objective(np.random.default_rng(5), model, C=C, prior=prior)
    latent = bound_of(objective)
    every = solve(enumerated(objective, latent), DualCoordinate(random_state=0), tol=1e-6, max_passes=5000)
    assert every.converged
    found = mined(objective.problem(latent))
    assert found.converged
    exact = every.certificate
    assert found.certificate.lower <= exact.upper * (1 + 1e-6)
    assert found.certificate.upper >= exact.lower * (1 - 1e-6)
    assert found.certificate.upper == pytest.approx(exact.upper, rel=1e-4)
    assert found.certificate.lower == pytest.approx(exact.lower, rel=1e-4)
    # Ω is strongly convex, with at least 1/100 of ½‖·‖² (biases): close values are close weights.
    near = 2.0 * 100.0 * (exact.gap + found.certificate.gap)
    assert ((found.weights - every.weights) ** 2).sum() <= near + 1e-6
    again = certify(enumerated(objective, latent), found.weights, every.alpha)
    assert again.upper == pytest.approx(found.certificate.upper, rel=1e-4), "no window was overlooked"


def test_costs_that_would_fall_below_the_least_stay_there():
    """Objects with their part far from where it is expected: it shall cost less than anything to be there."""
    model = StarModel(ONE.components[:1])
    objective = tiny_objective(np.random.default_rng(5), model, C=0.5, prior=FLEXIBLE)
    latent = bound_of(objective)
    for place in latent:
        place[4] = 0  # nowhere near row 2·1 + 1 or further down
    at, every = model.cost_at(0, 0), enumerated(objective, latent)
    found = mined(objective.problem(latent))
    costs = found.weights[[at.start, at.start + 2]]
    least = 0.1 * FLEXIBLE.stiffness
    assert (costs >= least).all() and (costs == least).any()
    exact = solve(every, DualCoordinate(random_state=0), tol=1e-6, max_passes=5000)
    assert found.certificate.upper == pytest.approx(exact.certificate.upper, rel=1e-3)


def test_any_regularizer_will_do():
    model = StarModel((Component(3, 3),))
    objective = tiny_objective(np.random.default_rng(5), model, C=0.05, regularizer=L2())
    latent = bound_of(objective)
    every = solve(enumerated(objective, latent), DualCoordinate(random_state=0), tol=1e-6, max_passes=5000)
    found = mined(objective.problem(latent))
    assert found.certificate.upper == pytest.approx(every.certificate.upper, rel=1e-4)


@pytest.mark.parametrize("model", [ONE, AGAINST], ids=["parts", "against"])
def test_little_room_for_hard_examples_changes_nothing_in_the_result(model, monkeypatch):
    objective = tiny_objective(np.random.default_rng(5), model, C=0.02, n_background=3)
    problem = objective.problem(bound_of(objective))
    roomy = mined(problem)
    dropped = []
    original = HardExamples.forget_idle

    def forget(self, coming=0):
        before = len(self)
        original(self, coming)
        dropped.append(before - len(self))

    monkeypatch.setattr(HardExamples, "forget_idle", forget)
    active = int((roomy.alpha.alpha > 0).sum())
    assert active > 10
    small = mined(problem, memory=(active + 10) * (4 * model.n_weights + 64), most=5)
    assert sum(dropped) > 0
    assert small.converged
    assert small.certificate.upper == pytest.approx(roomy.certificate.upper, rel=1e-4)


@pytest.mark.parametrize("tol", [1e-3, 0.3])
def test_the_cache_keeps_to_its_room(monkeypatch, tol):
    """As long as the shares leave some: those cannot be dropped. With a modest goal there is less work between."""
    objective = tiny_objective(np.random.default_rng(5), ONE, C=0.0005, n_background=30)
    problem = objective.problem(bound_of(objective))
    sizes = []
    original = HardExamples.add

    def add(self, *arguments):
        original(self, *arguments)
        sizes.append(len(self))

    monkeypatch.setattr(HardExamples, "add", add)
    roomy, most = mined(problem, tol).certificate, max(sizes)
    assert most > 200
    sizes.clear()
    small = mined(problem, tol, memory=200 * (4 * ONE.n_weights + 64)).certificate
    assert max(sizes) <= 200
    assert small.relative_gap <= tol and small.lower <= roomy.upper and roomy.lower <= small.upper


def test_too_little_memory_is_an_error():
    objective = tiny_objective(np.random.default_rng(5), ONE)
    with pytest.raises(ValueError, match=r"memory is too little: 5000 bytes .* 4 positive examples need 16"):
        Mining(5000).start(objective.problem(bound_of(objective)))


def test_one_window_at_a_time_or_many():
    objective = tiny_objective(np.random.default_rng(5), AGAINST, C=0.02)
    problem = objective.problem(bound_of(objective))
    values = [mined(problem, most=most).certificate.upper for most in (2, 1000)]
    assert values[0] == pytest.approx(values[1], rel=1e-4)


def test_two_threads_reach_the_same_optimum():
    objective = tiny_objective(np.random.default_rng(5), AGAINST, C=0.02, n_background=6)
    problem = objective.problem(bound_of(objective))
    one, two = mined(problem), mined(problem, n_jobs=2)
    assert two.converged
    assert one.certificate.upper == pytest.approx(two.certificate.upper, rel=1e-4)


def test_the_same_seed_gives_the_same_bits():
    objective = tiny_objective(np.random.default_rng(5), AGAINST, C=0.02)
    problem = objective.problem(bound_of(objective))
    np.testing.assert_array_equal(mined(problem, 1e-3).weights, mined(problem, 1e-3).weights)


@pytest.mark.parametrize("model", [ONE, AGAINST], ids=["parts", "against"])
def test_shares_of_another_bound_are_a_start(model):
    """The lower bound of a warm start is that of its shares, recombined in the new bound."""
    objective = tiny_objective(np.random.default_rng(5), model, C=0.02)
    old = mined(objective.problem(bound_of(objective, 0)))
    problem = objective.problem(bound_of(objective, 1))
    state = Mining(ROOM, random_state=0).start(problem, old.alpha)
    assert state.lower == pytest.approx(lower_bound(problem, old.alpha), rel=1e-5, abs=1e-7)
    cold, warm = mined(problem), solve(problem, Mining(ROOM, random_state=0), tol=1e-5, warm=old.alpha, max_passes=300)
    assert warm.certificate.upper == pytest.approx(cold.certificate.upper, rel=1e-4)
    # And of the same bound there is next to nothing left to do.
    same = objective.problem(bound_of(objective, 0))
    start = Mining(ROOM, random_state=0).start(same, old.alpha)
    assert start.lower == pytest.approx(old.certificate.lower, rel=1e-6)
    np.testing.assert_allclose(start.weights(), old.weights, atol=1e-2)


# The search over bounds.


def searched(objective, chooser, seed=1, tol=1e-4, **settings):
    history, solver = [], Mining(ROOM, random_state=0)
    start = random_weights(np.random.default_rng(seed), objective.model, 0.4)
    settings = Settings(tol=tol, bound_tol=1e-5, max_bounds=12, max_passes=200, **settings)
    found = minimise(
        objective,
        chooser,
        lambda problem, weights: solver,
        weights=start,
        settings=settings,
        rng=np.random.default_rng(3),
        callbacks=[history.append],
    )
    return start, found, history


@pytest.mark.parametrize("model", [PARTS, AGAINST], ids=["parts", "against"])
def test_touching_bounds_never_raise_the_objective(model):
    objective = tiny_objective(np.random.default_rng(5), model, C=0.05, prior=FLEXIBLE)
    start, found, history = searched(objective, CCCP(), eta=1.0)
    assert len(history) > 1
    values = [value(objective, start), *(record.objective for record in history)]
    assert (np.diff(values) <= 1e-5 * values[0]).all()
    bounds = [record.bound for record in history]
    assert (np.diff(bounds) <= 1e-5 * values[0]).all()
    assert found.objective == pytest.approx(value(objective, found.weights), rel=1e-4)
    assert found.objective < 0.9 * values[0]


class Noted(RandomWalk):
    """A random walk that notes what it chose, and what that costs."""

    def choose(self, situation, rng):
        chosen = super().choose(situation, rng)
        regret = situation.standing.regrets(situation.everybody(), chosen).sum()
        object.__setattr__(self, "seen", [*getattr(self, "seen", []), (float(regret), situation.budget)])
        return chosen


@pytest.mark.parametrize("model", [PARTS, AGAINST], ids=["parts", "against"])
def test_random_bounds_stay_within_their_budget(model):
    objective = tiny_objective(np.random.default_rng(5), model, C=0.05, prior=FLEXIBLE)
    loose = 0
    for seed in range(4):
        chooser = Noted()
        start, _, history = searched(objective, chooser, seed, eta=0.3)
        first, seen = value(objective, start), getattr(chooser, "seen", [])
        assert all(regret <= max(budget, 0.0) + 1e-6 * first for regret, budget in seen)
        loose += sum(regret > 1e-6 * first for regret, _ in seen)
        bounds = [record.bound for record in history]
        assert (np.diff(bounds) <= 1e-5 * first).all() and bounds[0] <= first * (1 + 1e-5)
        assert all(record.objective <= first * (1 + 1e-5) for record in history)
        assert all(record.gap >= 0.0 for record in history)
        # η Σ d ≤ F(w₀) − the value of the last bound.
        assert 0.3 * sum(record.gap for record in history[:-1]) <= first - bounds[-1] + 1e-4 * first
    assert loose > 0, "some bound does not touch"


def test_the_certificate_of_a_search_is_that_of_its_last_bound():
    objective = tiny_objective(np.random.default_rng(5), AGAINST, C=0.05)
    _, found, _ = searched(objective, CCCP())
    every = solve(enumerated(objective, found.latent), DualCoordinate(random_state=0), tol=1e-6, max_passes=5000)
    assert found.certificate.lower <= every.certificate.upper * (1 + 1e-6)
    assert found.certificate.upper >= every.certificate.lower * (1 - 1e-6)
    again = certify(objective.problem(found.latent), found.weights, found.alpha)
    assert again.lower == pytest.approx(found.certificate.lower, rel=1e-5)
    assert again.upper == pytest.approx(found.certificate.upper, rel=1e-5)


# The cache.


class Cache(RuleBasedStateMachine):
    """Operations in any order: rows, shares and placements stay together, as in a dictionary."""

    ROOM, POSITIVES = 12, 3

    def __init__(self):
        super().__init__()
        self.cache = HardExamples(5, 4, self.POSITIVES, self.ROOM)
        self.expected: dict[tuple, dict] = {}
        self.rng = np.random.default_rng(0)

    @rule(
        wanted=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 4)), max_size=6, unique=True), share=st.booleans()
    )
    def add(self, wanted, share):
        example = np.array([i for i, _ in wanted], np.int64)
        placements = np.array([[p, 0, i, p] for i, p in wanted], np.int32).reshape(-1, 4)
        new = self.cache.unknown(example, placements)
        assert new.tolist() == [key not in self.expected for key in wanted]
        features = self.rng.normal(size=(int(new.sum()), 5)).astype(np.float32)
        alpha = self.rng.uniform(0.1, 1.0, len(features)) if share else 0.0
        self.cache.add(example[new], placements[new], features, alpha)
        fresh = [key for key, is_new in zip(wanted, new, strict=True) if is_new]
        for key, row, a in zip(fresh, features, np.broadcast_to(alpha, len(features)), strict=True):
            self.expected[key] = {"row": row, "alpha": float(a), "idle": 0}

    @rule()
    def sort(self):
        before = self.keys()
        self.cache.sort()
        assert self.keys() == sorted(before, key=lambda key: key[0]), "examples in order, and stable"

    @precondition(lambda self: len(self.expected))
    @rule(keep=st.integers(0, 3))
    def work(self, keep):
        """Some lose their share, as after work on the cache; all are a round older."""
        alpha = self.cache.alpha.copy()
        alpha[np.arange(alpha.size) % 4 > keep] = 0.0
        self.cache.alpha = alpha
        norms = np.array([float((self.expected[key]["row"] ** 2).sum()) for key in self.keys()], np.float32)
        self.cache.worked_on(norms)
        for key, a in zip(self.keys(), alpha, strict=True):
            one = self.expected[key]
            one["alpha"], one["idle"] = float(a), 0 if a > 0 else one["idle"] + 1

    @rule(coming=st.integers(0, 6))
    def forget(self, coming):
        self.cache.forget_idle(coming)
        for patience in (4, 2, 1):
            stay = {
                key
                for key, one in self.expected.items()
                if one["alpha"] > 0 or one["idle"] < patience or key[0] < self.POSITIVES
            }
            if len(stay) + coming <= self.ROOM:
                break
        self.expected = {key: one for key, one in self.expected.items() if key in stay}

    def keys(self):
        return [(int(i), int(place[0])) for i, place in zip(self.cache.example, self.cache.placement, strict=True)]

    @invariant()
    def all_is_together(self):
        cache, keys = self.cache, self.keys()
        assert len(cache) == len(keys) == len(set(keys)) and set(keys) == set(self.expected)
        assert len(cache.known) == len(keys)
        assert len(set(cache.slot.tolist())) == len(keys), "no two share a place in the store"
        for at, key in enumerate(keys):
            one = self.expected[key]
            np.testing.assert_array_equal(cache._store[cache.slot[at]], one["row"])
            assert (cache.alpha[at], cache.idle[at]) == (one["alpha"], one["idle"])
            assert cache.placement[at].tolist() == [key[1], 0, key[0], key[1]]
            assert cache.norms[at] in (-1.0, np.float32((one["row"] ** 2).sum())) or np.isclose(
                cache.norms[at], (one["row"] ** 2).sum()
            )

    @invariant()
    def shares_are_planes(self):
        planes = self.cache.planes()
        found = {
            (int(i), int(place[0])): a for i, place, a in zip(planes.example, planes.labels, planes.alpha, strict=True)
        }
        assert found == {key: one["alpha"] for key, one in self.expected.items() if one["alpha"] > 0}

    @precondition(lambda self: len(self.expected))
    @rule()
    def combine(self):
        """The cached problem adds up the rows of positive examples, and subtracts the others."""
        self.cache.sort()
        closed = self.cache.constraints(np.full(len(self.cache), 100.0))
        v = closed.combine(self.cache.alpha)
        signs = {key: 1.0 if key[0] < self.POSITIVES else -1.0 for key in self.expected}
        expected = sum(signs[key] * one["alpha"] * one["row"].astype(float) for key, one in self.expected.items())
        np.testing.assert_allclose(v, expected, atol=1e-6)
        assert closed.n_examples == len({key[0] for key in self.expected})


TestCache = Cache.TestCase
TestCache.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)

"""Mined training against all windows and all placements listed, whatever room there is for hard examples."""

import numpy as np
import pytest
from detection_by_hand import AGAINST, PARTS, enumerated, random_weights, tiny_objective

from maxmargin.latent import CCCP, RandomWalk, Settings, minimise
from maxmargin.latent.loop import value
from maxmargin.solvers import solve
from maxmargin.solvers.certificate import certify, lower_bound
from maxmargin.solvers.dual_coordinate import DualCoordinate
from maxmargin.vision.detection.mining import HardExamples, Mining
from maxmargin.vision.detection.model import Component, Part, Prior, StarModel

ONE = StarModel((Component(3, 3, (Part(2, 2, 1, 1),)), Component(2, 3)))
FLEXIBLE = Prior(stiffness=0.02, firmness=1.0)
ROOM = 10**8


def bound_of(objective, seed=0, scale=0.1):
    return objective.evaluate(random_weights(np.random.default_rng(seed), objective.model, scale)).best


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

    def choose(self, search_state, rng):
        chosen = super().choose(search_state, rng)
        regret = search_state.evaluation.regrets(search_state.everybody(), chosen).sum()
        object.__setattr__(self, "seen", [*getattr(self, "seen", []), (float(regret), search_state.budget)])
        return chosen


@pytest.mark.filterwarnings("error::RuntimeWarning")  # of weights at which a part has no best place
@pytest.mark.parametrize("model", [PARTS, AGAINST], ids=["parts", "against"])
def test_random_bounds_stay_within_their_budget(model):
    objective = tiny_objective(np.random.default_rng(5), model, C=0.05, prior=FLEXIBLE)
    loose = 0
    for seed in range(2):
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


def test_losses_that_a_pass_hands_over_are_those_of_its_weights():
    """Weights move between two images of a pass: then what it met is the loss of no weights at all."""
    objective = tiny_objective(np.random.default_rng(5), ONE, C=0.02, n_background=30)
    problem = objective.problem(bound_of(objective))
    solver = Mining(memory=ROOM, random_state=0)
    state = solver.start(problem)
    state.goal = 0.05
    handed = []
    for _ in range(12):
        state = solver.step(problem, state)
        handed.append(state.evaluated is not None)
        if handed[-1]:
            w, loss = state.evaluated
            assert loss.total == pytest.approx(problem.constraints.evaluate(w).total, rel=1e-6)
    assert any(handed) and not all(handed)


def test_windows_at_hand_hide_no_others():
    objective = tiny_objective(np.random.default_rng(5), ONE, C=0.5, prior=FLEXIBLE)
    latent = bound_of(objective)
    found = mined(objective.problem(latent), most=1)
    assert found.converged
    everything = certify(enumerated(objective, latent), found.weights, None)
    assert everything.upper == pytest.approx(found.certificate.upper, rel=1e-4)

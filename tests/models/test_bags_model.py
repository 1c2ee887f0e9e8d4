"""Bags of instances: the compiled search against plain methods and against trying every answer."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from compiled import equals_its_source
from latent_models import bags, objective_of

from maxmargin import solve
from maxmargin.checks import check_model
from maxmargin.data.arrays import as_rows
from maxmargin.data.bags import as_bags
from maxmargin.kernels import bags as kernels
from maxmargin.latent.bags import look
from maxmargin.latent.plain import Completed
from maxmargin.latent.warm_started import WarmStarted
from maxmargin.models import Bags
from maxmargin.solvers import OracleAscent

STORAGES = {
    "dense": lambda X: X,
    "float32": lambda X: [x.astype(np.float32) for x in X],
    "sparse": lambda X: [sp.csr_matrix(x) for x in X],
    "sparse float32": lambda X: [sp.csr_matrix(x.astype(np.float32)) for x in X],
    "columns first": lambda X: [np.asfortranarray(x) for x in X],
    "mixed": lambda X: [sp.csc_matrix(x) if i % 2 else x for i, x in enumerate(X)],
    "lists": lambda X: [x.tolist() for x in X],
}


def class_scores(model, X, w):
    """The score of the best instance of every bag, for every class."""
    labels = range(model.n_classes)
    return np.stack([model.latent_oracle(X, np.full(len(X), k)).complete(w)[1] for k in labels], axis=1)


def ragged(rng, n=6, d=3, most=4):
    """Bags of different sizes with some zeros in them, and one bag with a single instance."""
    X = [rng.normal(size=(size, d)) * (rng.random((size, d)) < 0.7) for size in [1, *rng.integers(1, most + 1, n - 1)]]
    return X, rng.integers(0, 3, n)


def phi(model, x, k, z):
    """φ(x, k, z) from its definition."""
    S = model.n_states if model.state_kind == "separate" else 1
    D = x.shape[1] + (model.bias != 0.0)
    out = np.zeros((model.n_classes, S, D))
    out[k, z if S > 1 else 0] = [*x[z], model.bias] if model.bias else x[z]
    return out.ravel()


def models():
    cost = np.array([[0.0, 1.0, 3.0], [0.5, 0.0, 1.0], [2.0, 2.0, 0.0]])
    return [
        Bags(3, 3, states=states, n_states=4 if states == "separate" else None, bias=bias, cost=table)
        for states, bias, table in product(("shared", "separate"), (0.0, 1.0, -0.5), (None, cost))
    ]


@pytest.mark.parametrize(("model", "storage"), [(m, list(STORAGES)[i % 7]) for i, m in enumerate(models() * 2)])
def test_the_search_finds_what_trying_everything_finds(model, storage):
    rng = np.random.default_rng(3)
    X, Y = ragged(rng)
    stored = STORAGES[storage](X)
    single = "float32" in storage
    rel, n = (1e-5 if single else 1e-12), len(X)
    cost = 1.0 - np.eye(3) if model.cost is None else model.cost
    data = model.latent_oracle(stored, Y)
    assert model.n_weights == phi(model, X[0], 0, 0).size == data.n_weights
    latent = np.array([rng.integers(len(x)) for x in X])
    oracle = data.bound(latent)
    for size in (0.0, 0.3, 3.0):
        w = size * rng.normal(size=model.n_weights)
        found = oracle.rivals(np.arange(n), w)
        best, top = data.complete(w)
        listed, first = data.listed(w)
        predicted = model.predict_all(stored, w)
        by_class = class_scores(model, stored, w)
        table = found.rows
        planes = sp.csr_matrix((table.data, table.indices, table.indptr), shape=(n, model.n_weights)).toarray()
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            scores = np.array([[w @ phi(model, x, k, z) for z in range(len(x))] for k in range(3)])
            k, z = found.labels[i]
            assert (scores + cost[y][:, None]).max() == pytest.approx(scores[k, z] + cost[y, k], rel=rel, abs=rel)
            assert found.losses[i] == cost[y, k] == model.loss(y, (k, z))
            difference = phi(model, x, y, latent[i]) - phi(model, x, k, z)
            np.testing.assert_allclose(planes[i], difference, rtol=rel, atol=rel)
            np.testing.assert_allclose(listed[first[i] : first[i + 1]], scores[y], rtol=rel, atol=rel)
            np.testing.assert_allclose(by_class[i], scores.max(axis=1), rtol=rel, atol=rel)
            assert top[i] == pytest.approx(scores[y].max(), rel=rel, abs=rel)
            assert scores[y, best[i]] == pytest.approx(scores[y].max(), rel=rel, abs=rel)
            assert scores[predicted[i]] == pytest.approx(scores.max(), rel=rel, abs=rel)
            # Plain methods agree with the search over all.
            assert model.predict(stored[i], w) == predicted[i]
            assert model.most_violated(stored[i], y, w) == (k, z)
            assert model.complete(stored[i], y, w) == best[i]
            np.testing.assert_allclose(model.latent_scores(stored[i], y, w), scores[y], rtol=rel, atol=rel)
            np.testing.assert_allclose(model.features(stored[i], (k, z)), phi(model, x, k, z), rtol=rel, atol=rel)


def test_ties_go_to_the_first_class_and_in_it_to_the_first_instance():
    X, y = np.ones((3, 4, 2)), np.array([0, 1, 2])
    model = Bags(3, 2)
    w = np.ones(model.n_weights)
    assert model.predict_all(X, w) == [(0, 0)] * 3
    assert [model.most_violated(X[i], y[i], w) for i in range(3)] == [(1, 0), (0, 0), (0, 0)]
    assert model.latent_oracle(X, y).complete(w)[0].tolist() == [0, 0, 0]
    bags_of_one_matrix = as_rows(X.reshape(12, 2)), np.array([0, 4, 8, 12])
    assert look(*bags_of_one_matrix, np.array([0, 2]), np.ones(2))[2].tolist() == [0, 0]


@pytest.mark.parametrize("restored", [False, True])
def test_a_solver_that_goes_on_with_other_instances_has_their_weights_and_their_bound(restored, rng):
    X, y = bags(rng, n=12)
    objective = objective_of(Bags(2, 2), X, y)
    kept = WarmStarted(OracleAscent(random_state=0), objective)
    first, then = np.zeros(12, np.int64), np.arange(12) % 3
    solution = solve(objective.problem(first), kept.turn_to(first), tol=1e-6)
    if restored:
        saved, kept = kept.save(kept._state, True), WarmStarted(OracleAscent(random_state=0), objective)
        kept.turn_to(first).restore(objective.problem(first), saved)
    problem = objective.problem(then)
    state = kept.turn_to(then).start(problem, solution.alpha)
    linear, v, *_ = problem.constraints.totals(state.alpha)
    assert not np.allclose(v, solution.weights, atol=1e-3), "nothing is tested here"
    assert np.allclose(state.weights(), v, rtol=1e-9, atol=1e-9)
    assert state.lower == pytest.approx(linear - 0.5 * v @ v, rel=1e-9, abs=1e-9)


def test_dropped_states_are_not_looked_at(rng):
    X = rng.normal(size=(10, 5, 3))
    y = rng.integers(0, 2, 10)
    model = Bags(2, 3, states="separate", n_states=5)
    w = rng.normal(size=(2, 5, 4))
    w[:, [1, 3]] = 0.0
    w = w.ravel()
    garbage = X.copy()
    garbage[:, [1, 3]] = 1e300 * rng.choice([-1.0, 1.0], (10, 2, 3))
    assert model.predict_all(garbage, w) == model.predict_all(X, w)
    np.testing.assert_array_equal(class_scores(model, garbage, w), class_scores(model, X, w))
    before, after = model.latent_oracle(X, y), model.latent_oracle(garbage, y)
    np.testing.assert_array_equal(before.listed(w)[0], after.listed(w)[0])
    np.testing.assert_array_equal(before.complete(w)[0], after.complete(w)[0])
    assert before.alive(w).tolist() == [z not in (1, 3) for _ in range(2) for z in range(5)]
    for i in range(10):  # a dropped state has score 0, and is an answer like others
        scores = np.array([w @ phi(model, X[i], k, z) for k in range(2) for z in range(5)])
        assert model.predict_all(X, w)[i] == divmod(int(np.argmax(scores)), 5)


def test_a_state_dropped_in_one_class_only_still_counts_in_the_other(rng):
    X = rng.normal(size=(8, 3, 2))
    model = Bags(2, 2, states="separate", n_states=3, bias=0.0)
    w = rng.normal(size=(2, 3, 2))
    w[0, 1] = 0.0
    answers = model.predict_all(X, w.ravel())
    for i in range(8):
        scores = np.einsum("ksd,sd->ks", w, X[i])
        assert answers[i] == divmod(int(np.argmax(scores)), 3)


def test_blocks_of_weights_and_their_names():
    model = Bags(2, 3, states="separate", n_states=2)
    assert model.states == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert model.n_weights == 16
    np.testing.assert_array_equal(np.concatenate(model.groups), np.arange(16))
    x = np.arange(6.0).reshape(2, 3) + 1.0
    for (k, z), group in zip(model.states, model.groups, strict=True):
        np.testing.assert_array_equal(np.flatnonzero(model.features(x, (k, z))), group)
    shared = Bags(2, 3, bias=0.0)
    assert shared.states == [(0, 0), (1, 0)]
    assert shared.n_weights == 6
    assert [g.tolist() for g in shared.groups] == [[0, 1, 2], [3, 4, 5]]


def test_sizes_come_from_the_data(rng):
    X, _ = ragged(rng)
    model = Bags(states="separate")
    with pytest.raises(ValueError, match="does not know its sizes"):
        _ = model.n_weights
    sized = model.sized(X, [0, 4, 0, 0, 1, 0])
    assert (sized.n_classes, sized.n_features, sized.n_states) == (5, 3, max(len(x) for x in X))
    assert model.n_classes is None  # the original stays as it was
    given = Bags(7, 3, states="separate", n_states=9).sized(X, [0] * 6)
    assert (given.n_classes, given.n_states) == (7, 9)
    assert Bags(cost=1.0 - np.eye(4)).sized(X, [0] * 6).n_classes == 4
    assert Bags().sized(X, [0] * 6).n_states is None
    assert "separate" in repr(sized)


def test_models_sized_on_parts_of_the_data_are_joined():
    parts = [Bags(2, 3, states="separate", n_states=2), Bags(4, 3, states="separate", n_states=1)]
    whole = parts[0].joined(parts[1:])
    assert (whole.n_classes, whole.n_features, whole.n_states) == (4, 3, 2)
    assert Bags(2, 3).joined([Bags(3, 3)]).n_classes == 3
    with pytest.raises(ValueError, match="n_features must be the same"):
        Bags(2, 3).joined([Bags(2, 4)])


def test_one_class_and_one_instance_are_allowed(rng):
    X = [rng.normal(size=(1, 2)) for _ in range(3)]
    model = Bags().sized(X, [0, 0, 0])
    assert model.n_classes == 1
    w = rng.normal(size=model.n_weights)
    assert model.predict_all(X, w) == [(0, 0)] * 3
    oracle = model.latent_oracle(X, [0, 0, 0])
    assert oracle.initial().tolist() == [0, 0, 0]
    assert oracle.propose(0, 0, w, rng) == 0
    assert oracle.bound(np.zeros(3, int)).rivals(np.arange(3), w).losses.tolist() == [0.0] * 3


@pytest.mark.parametrize(("storage", "states"), [("dense", "separate"), ("sparse float32", "shared")])
def test_the_start_looks_at_what_sets_classes_apart(storage, states):
    rng = np.random.default_rng(2)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 3, 4)) * 0.1
    tell = rng.integers(0, 3, 40)
    X[np.arange(40), tell, y] += 5.0
    data = Bags(2, 4, states=states, n_states=3).latent_oracle(STORAGES[storage](list(X)), y)
    assert (data.initial() == tell).mean() > 0.9


@pytest.mark.parametrize("seed", range(2))
def test_the_start_is_not_drawn_to_states_that_are_far_off(seed):
    rng = np.random.default_rng(seed)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 3, 4)) * 0.1
    tell = rng.integers(1, 3, 40)
    X[np.arange(40), tell, y] += 5.0
    X[:, 0] += 1000.0  # in all classes alike
    data = Bags(2, 4, states="separate", n_states=3).latent_oracle(X, y)
    assert (data.initial() == tell).mean() > 0.9


def test_proposals_are_other_instances_all_equally_likely(rng):
    data = Bags(2, 2).latent_oracle([np.ones((4, 2))], [0])
    proposed = np.bincount([data.propose(0, 2, np.zeros(6), rng) for _ in range(600)], minlength=4)
    assert proposed[2] == 0
    assert (proposed[[0, 1, 3]] > 150).all()


@pytest.mark.parametrize("model", models()[::3])
def test_the_conformance_check_passes(model, rng):
    X, Y = ragged(rng)
    latent = [int(rng.integers(len(x))) for x in X]
    check_model(Completed(model), X, list(zip(Y.tolist(), latent, strict=True)))


# Input that makes no sense.


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([], "There are no bags"),
        (np.ones((2, 0, 3)), "must have an instance"),
        (sp.csr_matrix(np.ones((4, 3))), "list of matrices"),
        ([np.ones((2, 3)), np.array([["a", "b", "c"]])], "Bag 1 must be a matrix of numbers"),
        ([np.ones((2, 3)), np.array([[1.0, 2.0, 3.0], [1.0, np.nan, 3.0]])], "Bag 1 .*instance 1, feature 1"),
        ([np.ones((2, 3)), sp.csr_matrix(np.array([[0.0, np.inf, 3.0]]))], "Bag 1 .*instance 0, feature 1"),
        (np.full((2, 2, 3), np.inf), "not finite"),
    ],
)  # fmt: skip
def test_bags_that_are_none_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        as_bags(X)


def test_wide_sparse_bags_are_not_written_out():
    wide = sp.csr_matrix(([1.0], ([7], [999_999_999])), shape=(50, 10**9))
    assert as_bags([wide, wide]).matrix.shape == (100, 10**9)
    wide.data[0] = np.nan
    with pytest.raises(ValueError, match=r"Bag 1 .*instance 7, feature 999999999"):
        as_bags([sp.csr_matrix((1, 10**9)), wide])


def test_bags_and_model_must_fit_together():
    X = [np.ones((2, 3)), np.ones((3, 3))]
    with pytest.raises(ValueError, match="4 are needed"):
        Bags(2, 4).latent_oracle(X, [0, 1])
    with pytest.raises(ValueError, match="4 are needed"):
        Bags(2, 4).predict(np.ones((2, 3)), np.zeros(10))
    with pytest.raises(ValueError, match="2 bags, Y has 3"):
        Bags(2, 3).latent_oracle(X, [0, 1, 1])
    with pytest.raises(ValueError, match="Y"):
        Bags(2, 3).latent_oracle(X, [0, 2])
    with pytest.raises(ValueError, match="Y"):
        Bags(2, 3).latent_oracle(X, [0, -1])
    with pytest.raises(ValueError, match="Bag 1 has 3 instances, the model has weights for 2"):
        Bags(2, 3, states="separate", n_states=2).latent_oracle(X, [0, 1])
    data = Bags(2, 3).latent_oracle(X, [0, 1])
    with pytest.raises(ValueError, match="Instance 2 of bag 0 does not exist: it has 2"):
        data.bound([2, 0])
    with pytest.raises(ValueError, match="one instance for each of 2 bags, a whole number"):
        data.bound([0.5, 0.0])
    with pytest.raises(ValueError, match="one instance for each of 2 bags, a whole number"):
        data.bound([0])
    with pytest.raises(ValueError, match="An answer"):
        data.bound([0, 0]).planes(np.array([0]), [(5, 0)])
    with pytest.raises(ValueError, match="Instance 2 of bag 0 does not exist"):
        data.bound([0, 0]).planes(np.array([0]), [(0, 2)])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"states": "one"}, "'shared', 'separate'"),
        ({"bias": np.nan}, "bias must be a finite number"),
        ({"cost": np.ones((2, 2))}, "zeros on the diagonal"),
        ({"cost": np.zeros((2, 3))}, "square"),
        ({"n_classes": 3, "cost": 1.0 - np.eye(2)}, "3 × 3"),
    ],
)
def test_models_that_make_no_sense_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        Bags(**wrong)


# Kernels.


@pytest.mark.parametrize(
    ("sparse", "n_states", "bias"), [(False, 1, 1.5), (True, 4, 0.0), (True, 1, 0.0), (False, 4, 1.5)]
)
def test_kernels_equal_their_source(sparse, n_states, bias):
    rng = np.random.default_rng(6)
    X, y = ragged(rng)
    data = as_bags([sp.csr_matrix(x) for x in X] if sparse else X)
    rows = as_rows(data.matrix, bias).arrays
    n, size = len(X), 3 + (bias != 0.0)
    w = rng.normal(size=(3 * n_states, size))
    w[1] = 0.0
    w = w.ravel()
    ids = rng.permutation(n)[:4]
    z_true, z_other = (np.array([rng.integers(len(X[i])) for i in ids]) for _ in range(2))
    alive = w.reshape(-1, size).any(axis=1)
    assert not alive[1]
    found = np.zeros(4, np.int64), np.zeros(4, np.int64), np.zeros(4)
    equals_its_source(kernels.search, rows, data.first, ids, y, 1.0 - np.eye(3), w, alive, 3, n_states, *found)
    out = np.zeros(data.first[-1]), np.zeros(4, int)
    equals_its_source(kernels.look, rows, data.first, ids, y, w, alive, n_states, data.first[ids], *out)
    table = np.zeros(5, np.int64), np.zeros(40, np.int32), np.zeros(40)
    answers = y[ids], z_true, rng.integers(0, 3, 4), z_other
    equals_its_source(kernels.differences, rows, data.first, ids, *answers, n_states, *table)


def test_numbers_that_are_not_finite_are_named_unless_nobody_looks_at_them(rng):
    X = rng.normal(size=(4, 3, 2))
    model = Bags(2, 2, states="separate", n_states=3)
    w = rng.normal(size=(2, 3, 3))
    w[:, 1] = 0.0
    hidden = X.copy()
    hidden[:, 1] = np.nan
    assert model.predict_all(hidden, w.ravel()) == model.predict_all(X, w.ravel())
    for value in (np.nan, np.inf, -np.inf):
        seen = X.copy()
        seen[2, 0, 1] = value
        with pytest.raises(ValueError, match=r"Bag 2 .* instance 0, feature 1"):
            model.predict_all(seen, w.ravel())


@pytest.mark.parametrize("size", [2, 10])
def test_weights_of_another_length_are_refused(size):
    model, x, w = Bags(3, 2), np.ones((4, 2)), np.zeros(size)
    for ask in (lambda: model.predict(x, w), lambda: model.most_violated(x, 1, w), lambda: model.complete(x, 1, w)):
        with pytest.raises(ValueError, match=rf"has 9 weights, got an array of shape \({size},\)"):
            ask()

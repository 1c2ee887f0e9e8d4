"""Vectors of labels: every kind of search against trying all of them, and optima against a cone solver."""

import itertools

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from labellings import best_on_forest
from user_models import every_rival

import maxmargin as mm
from maxmargin.constraints.searched import Searched
from maxmargin.models.multilabel import Multilabel, tree_of
from maxmargin.solvers.oracle_ascent import OracleAscent

RING = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])


def solved(model, X, Y, C=1.0, tol=1e-6):
    problem = mm.Problem(Searched(model.oracle(X, Y), np.array([C])), mm.regularizers.L2())
    return mm.solve(problem, OracleAscent(random_state=0), tol=tol, max_passes=2000)


def rows_of(rivals):
    r = rivals.rows
    return sp.csr_matrix((r.data, r.indices, r.indptr), shape=(r.n_rows, r.width)).toarray()


def every(n_labels):
    return [np.array(z) for z in itertools.product(range(2), repeat=n_labels)]


def data(rng, n=10, d=3, n_labels=4):
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    Y = X @ rng.normal(size=(d, n_labels)) + rng.normal(size=(n, n_labels)) > 0
    return X, Y.astype(int)


@pytest.mark.parametrize(
    ("edges", "sparse", "bias"),
    [("none", False, True), ("tree", True, False), ("tree", False, True), ("full", True, True), (RING, False, False)],
)
def test_the_oracle_agrees_with_features_loss_and_trying_everything(rng, edges, sparse, bias):
    X, Y = data(rng)
    loss = np.array([1.0, 0.5, 0.0, 2.0]) if bias else "normalized_hamming"
    model = Multilabel(edges=edges, bias=bias, loss=loss).sized(X, Y)
    assert model.exact
    given = sp.csr_matrix(X) if sparse else X
    oracle = model.oracle(given, Y)
    assert oracle.releases_gil
    w = rng.normal(size=model.n_weights)
    ids = rng.permutation(len(X))[:7]
    rivals = oracle.rivals(ids, w)
    assert rivals.excess is None
    for p, i in enumerate(ids):
        x, y, z = given[[i]] if sparse else X[i], Y[i], rivals.labels[p]
        assert np.allclose(rows_of(rivals)[p], (model.features(x, y) - model.features(x, z)).toarray()[0])
        assert np.isclose(rivals.losses[p], model.loss(y, z))
        assert np.array_equal(z, model.most_violated(x, y, w))
        score = {tuple(v): (model.features(x, v) @ w)[0] for v in every(4)}
        assert np.isclose(rivals.losses[p] + score[tuple(z)], max(model.loss(y, v) + s for v, s in score.items()))
        assert np.isclose(score[tuple(model.predict(x, w))], max(score.values()))
    together = model.predict_all(given, w)
    assert all(np.array_equal(together[i], model.predict(X[i], w)) for i in range(len(X)))
    listed = oracle.planes(ids, list(1 - Y[ids]))
    assert np.allclose(listed.losses, model.costs.sum())
    assert oracle.planes(ids[:0], []).losses.size == 0


def test_scores_are_what_the_formula_says():
    model = Multilabel(2, 2, edges="full")
    w = np.array([1.0, 10.0, 2.0, 20.0, 0.5, 0.25, *[7.0, 11.0, 13.0, 17.0]])
    x = np.array([3.0, 4.0])
    score = {y: (model.features(x, np.array(y)) @ w)[0] for y in itertools.product((0, 1), repeat=2)}
    one, two = 3.0 + 8.0 + 0.5, 30.0 + 80.0 + 0.25
    assert score == {(0, 0): 7.0, (0, 1): two + 11.0, (1, 0): one + 13.0, (1, 1): one + two + 17.0}


@pytest.mark.parametrize("edges", ["none", "tree", "full"])
def test_optima_are_those_of_a_cone_solver(rng, edges):
    X, Y = data(rng, n_labels=3)
    model = Multilabel(edges=edges).sized(X, Y)
    solution = solved(model, X, Y)
    optimum = reference.quadratic(*every_rival(model, X, Y, lambda x: every(3), 1.0)).value
    assert solution.converged and solution.certificate.exact
    assert np.isclose(solution.certificate.upper, optimum, rtol=1e-5)


def test_more_than_sixteen_labels_in_a_cycle_are_cut(rng):
    size = 18
    X, Y = rng.normal(size=(3, 2)), rng.integers(2, size=(3, size))
    ring = np.stack([np.arange(size), (np.arange(size) + 1) % size], axis=1)
    model = Multilabel(edges=ring).sized(X, Y)
    assert not model.exact
    oracle = model.oracle(X, Y)
    assert not oracle.releases_gil
    w = rng.normal(size=model.n_weights)
    agree = w.copy()
    agree[model.pair_at :] = np.tile([0.5, 0.0, 0.0, 0.5], size)
    rivals = oracle.rivals(np.arange(3), agree)
    assert (rivals.excess < 1e-6).all()
    # Of a ring, a tree is left once one label is settled: its two best labellings together are the best of all.
    for p, z in enumerate(rivals.labels):
        highest = max(_best_of_ring(model, X[p], Y[p], agree, settled) for settled in (0, 1))
        assert np.isclose(model.loss(Y[p], z) + (model.features(X[p], z) @ agree)[0], highest, atol=1e-6)
    differ = w.copy()
    differ[model.pair_at :] = np.tile([0.0, 0.5, 0.5, 0.0], size)
    rivals = oracle.rivals(np.arange(3), differ)  # of an even ring, message passing finds the best
    assert (rivals.excess < 1e-9).all()
    for p, z in enumerate(rivals.labels):
        highest = max(_best_of_ring(model, X[p], Y[p], differ, settled) for settled in (0, 1))
        assert np.isclose(model.loss(Y[p], z) + (model.features(X[p], z) @ differ)[0], highest, atol=1e-6)
    solution = solved(Multilabel(edges="full").sized(X, Y), X, Y, tol=1e-2)
    assert solution.certificate.exact and solution.certificate.relative_gap - solution.certificate.loose <= 1e-2


def _best_of_ring(model, x, y, w, settled):
    """Label 0 is settled by a gain that nothing outweighs."""
    size, tables = y.size, w[model.pair_at :].reshape(-1, 2, 2)
    gain = w[: 2 * size].reshape(2, size).T @ x + w[2 * size : 3 * size] + np.where(y, -1.0, 1.0)
    unary = np.stack([np.zeros(size), gain], axis=1)
    unary[-1] += tables[-1][:, settled]
    unary[0, 1 - settled] -= 1e6
    return best_on_forest(unary, model.pairs[:-1], tables[:-1])[1] + y.sum()


def test_the_tree_joins_labels_that_tell_most_of_each_other(rng):
    n = 4000
    chain = [rng.integers(2, size=n)]
    for flip in (0.1, 0.2, 0.1):
        chain.append(np.where(rng.random(n) < flip, 1 - chain[-1], chain[-1]))
    shuffled = [2, 0, 3, 1]
    Y = np.stack(chain, axis=1)[:, np.argsort(shuffled)]
    expected = {tuple(sorted((shuffled[t], shuffled[t + 1]))) for t in range(3)}
    assert set(map(tuple, tree_of(n, Y.T @ Y).tolist())) == expected
    assert tree_of(5, np.zeros((4, 4))).shape == (3, 2)
    model = Multilabel(edges="tree").sized(np.ones((n, 1)), Y)
    assert np.array_equal(model.pairs, tree_of(n, Y.T @ Y))
    assert np.array_equal(model.sized(np.ones((4, 1)), np.eye(4)).pairs, model.pairs)
    assert tree_of(3, np.full((1, 1), 3)).shape == (0, 2)


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        (np.ones((2, 4)), [[0, 1], [1, 0]], "X has 4 features, 3 are needed"),
        (np.ones((2, 3)), [[0, 1], [1, 0, 1]], "Example 1 has labels of shape"),
        (np.ones((2, 3)), [[0, 1], [1, 2]], "Example 1 has 2 for label 1"),
        (np.ones((2, 3)), [[0, 1], [-1, 1]], "Example 1 has -1 for label 0"),
        (np.ones((2, 3)), [[0, 1]], "2 examples, but labels for 1"),
        (np.full((2, 3), np.inf), [[0, 1], [1, 0]], "not finite"),
    ],
)
def test_bad_examples_are_named(X, Y, message):
    with pytest.raises(ValueError, match=message):
        Multilabel(2, 3).oracle(X, Y)


def test_bad_settings_are_named():
    with pytest.raises(ValueError, match="loss must be"):
        Multilabel(loss="f1")
    with pytest.raises(ValueError, match="two different labels"):
        _ = Multilabel(2, 3, edges=[[0, 2]]).n_weights
    with pytest.raises(ValueError, match="two different labels"):
        _ = Multilabel(2, 3, edges=[[1, 1]]).n_weights
    with pytest.raises(ValueError, match="sized"):
        _ = Multilabel(2, 3, edges="tree").n_weights
    with pytest.raises(ValueError, match="sizes"):
        _ = Multilabel().n_weights
    with pytest.raises(ValueError, match="2 finite numbers"):
        _ = Multilabel(2, 3, loss=[1.0, -1.0]).costs
    with pytest.raises(ValueError, match="has 8 weights"):
        Multilabel(2, 3).predict(np.ones(3), np.zeros(7))

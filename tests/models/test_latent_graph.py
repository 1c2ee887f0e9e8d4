"""Graphs with states behind labels and with hidden nodes: searches against trying every answer, and a fit."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.checks import check_model
from maxmargin.latent.structural import StructuralObjective
from maxmargin.models import Graph, LatentGraph
from maxmargin.models.graph import grid
from maxmargin.problem import Planes
from maxmargin.regularizers import L2

PATH = [[0, 1], [1, 2]]
LOOP = [[0, 1], [1, 2], [2, 0]]
WITH_HIDDEN = [[0, 1], [3, 0], [3, 1], [3, 2]]


def examples(rng, edges, n=5, d=2, k=2):
    X = [(rng.normal(size=(3, d)), np.array(edges)) for _ in range(n)]
    return X, [rng.integers(k, size=3) for _ in range(n)]


def every_answer(model, x):
    """Whatever states the nodes may have, with their labels."""
    hidden = np.flatnonzero(model.label_of == -1)
    visible = np.flatnonzero(model.label_of >= 0)
    n, extra = len(x[0]), int(np.max(x[1])) + 1 - len(x[0])
    for states in product(*[visible] * n, *[hidden] * extra):
        z = np.array(states)
        yield model.label_of[z[:n]], z


CASES = {
    "states": (PATH, {"n_states": [1, 2], "bias": True}),
    "states on a loop": (LOOP, {"n_states": 2, "inference": "branch"}),
    "hidden nodes": (WITH_HIDDEN, {"n_states": 1, "n_hidden_states": 2, "symmetric": True}),
    "both, with costs": (WITH_HIDDEN, {"n_states": [2, 1], "n_hidden_states": 3, "loss": [[0, 3], [1, 0]]}),
    "shares": ([[0, 1], [1, 3]], {"n_states": [1, 2], "n_hidden_states": 2, "loss": "normalized_hamming"}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("scale", [0.0, 0.3, 30.0])
def test_searches_find_what_trying_everything_finds(rng, case, scale):
    edges, settings = CASES[case]
    X, Y = examples(rng, edges)
    model = LatentGraph(**settings).sized(X, Y)
    w = scale * rng.normal(size=model.n_weights)
    data = model.latent_oracle(X, Y)
    completed, scores = data.complete(w)
    found = data.bound(completed).rivals(np.arange(len(X)), w)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        value = {(*a, *z): (model.features(x, (a, z)) @ w).item() for a, z in every_answer(model, x)}
        loss = {key: model.loss(y, (np.array(key[:3]), None)) for key in value}
        right = max(v for key, v in value.items() if np.array_equal(key[:3], y))
        assert scores[i] == pytest.approx(right, abs=1e-9)
        assert value[(*y, *completed[i])] == pytest.approx(right, abs=1e-9)
        labels, states = model.predict(x, w)
        assert value[(*labels, *states)] == pytest.approx(max(value.values()), abs=1e-9)
        labels, states = found.labels[i]
        worst = max(loss[key] + value[key] for key in value)
        assert loss[(*labels, *states)] + value[(*labels, *states)] == pytest.approx(worst, abs=1e-9)
        assert found.losses[i] == pytest.approx(loss[(*labels, *states)])


@pytest.mark.parametrize("case", CASES)
def test_it_passes_the_checks_of_latent_models(rng, case):
    edges, settings = CASES[case]
    check_model(LatentGraph(**settings), *examples(rng, edges))


def test_with_one_state_for_each_label_it_is_the_graph_model(rng):
    X, Y = examples(rng, LOOP, n=8, k=3)
    latent = mm.LatentStructuralSVM(LatentGraph(n_states=1), tol=1e-4, random_state=0).fit(X, Y)
    plain = mm.StructuralSVM(Graph(), tol=1e-4, random_state=0).fit(X, Y)
    assert latent.certificate_.lower <= plain.certificate_.upper and plain.certificate_.lower <= latent.objective_
    assert all(np.array_equal(z, y) for z, y in zip(latent.latent_, Y, strict=True))


def crosses(rng, n):
    X, Y = [], []
    for _ in range(n):
        y = np.zeros((6, 6), int)
        r, c = rng.integers(1, 5, 2)
        y[r, c - 1 : c + 2] = y[r - 1 : r + 2, c] = 1
        seen = np.where(rng.random(y.shape) < 0.05, 1 - y, y)
        X.append(grid(np.eye(2)[seen]))
        Y.append(y.ravel())
    return X, Y


def test_crosses_have_a_middle_that_nobody_labelled(rng, tmp_path):
    X, Y = crosses(rng, 12)
    svm = mm.LatentStructuralSVM(LatentGraph(n_states=[1, 2]), C=1.0, tol=1e-2, n_init=2, random_state=0).fit(X, Y)
    plain = mm.StructuralSVM(Graph(), C=1.0, tol=1e-2, random_state=0).fit(X, Y)
    assert svm.objective_ < 0.95 * plain.certificate_.lower
    svm.save(tmp_path / "crosses")
    again = mm.load(tmp_path / "crosses")
    assert all(np.array_equal(a, b) for a, b in zip(svm.predict(X), again.predict(X), strict=True))
    assert again.model_.label_of.tolist() == [0, 1, 1]


@pytest.mark.parametrize("bound", ["gmm", "cccp"])
def test_bounds_lie_above_the_objective_and_touch_it(rng, bound):
    X, Y = examples(rng, WITH_HIDDEN)
    model = LatentGraph(n_states=2, n_hidden_states=2).sized(X, Y)
    objective = StructuralObjective(model.latent_oracle(X, Y), np.ones(1), L2())
    for _ in range(5):
        w = rng.normal(size=model.n_weights)
        evaluation = objective.evaluate(w)
        others = [evaluation.propose(i, z, rng) for i, z in enumerate(evaluation.best)]
        assert (evaluation.regrets(np.arange(len(X)), evaluation.best) == 0.0).all()
        assert (evaluation.regrets(np.arange(len(X)), others) >= 0.0).all()
    svm = mm.LatentStructuralSVM(model, bound=bound, tol=1e-2, random_state=0).fit(X, Y)
    assert svm.objective_ <= svm.certificate_.upper * (1 + 1e-9)


def test_sparse_features_and_shares_of_planes(rng):
    X, Y = examples(rng, WITH_HIDDEN)
    model = LatentGraph(n_states=2, n_hidden_states=2).sized(X, Y)
    w = rng.normal(size=model.n_weights)
    for x in X:
        ours, theirs = model.predict(x, w), model.predict((sp.csr_matrix(x[0]), x[1]), w)
        assert np.array_equal(ours[1], theirs[1])
    data = model.latent_oracle(X, Y)
    bound = data.bound(data.complete(w)[0])
    found = bound.rivals(np.arange(len(X)), w)
    again = bound.planes(np.arange(len(X)), Planes(np.arange(len(X)), found.labels, np.ones(len(X))).labels)
    assert np.array_equal(again.losses, found.losses)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda X, Y: LatentGraph(n_states=0), "n_states must be"),
        (lambda X, Y: LatentGraph(n_states=[]), "n_states must be"),
        (lambda X, Y: LatentGraph(3, n_states=[1, 2]), "2 numbers for 3 labels"),
        (lambda X, Y: LatentGraph(n_hidden_states=-1), "n_hidden_states must be"),
        (lambda X, Y: LatentGraph(inference="lp"), "inference must be"),
        (lambda X, Y: LatentGraph().n_weights, "does not know its sizes"),
        (lambda X, Y: LatentGraph(2, 2, 0).latent_oracle(X, Y), "has an edge to node 3"),
        (
            lambda X, Y: LatentGraph(2, 2, 0, n_hidden_states=2).latent_oracle([(X[0][0], [[0, 10**12]])], Y[:1]),
            "has an edge to node 1000000000000",
        ),
        (
            lambda X, Y: LatentGraph(2, 2, 0, n_hidden_states=2).latent_oracle([(X[0][0], "ab")], Y[:1]),
            "edges of graph 0 must be pairs",
        ),
        (lambda X, Y: LatentGraph(2, 2, 0, n_hidden_states=2).latent_oracle(X, [[0, 1]] * 5), "3 positions, but 2"),
        (
            lambda X, Y: LatentGraph(2, 2, 0, n_hidden_states=2).latent_oracle(X, Y).bound([[0, 0, 0, 0]] * 5),
            "needs a state for each of its 4 nodes",
        ),
        (
            lambda X, Y: (
                LatentGraph(2, 2, 0, n_hidden_states=2)
                .latent_oracle(X[:1], Y[:1])
                .bound([[2 * k for k in Y[0]] + [4]])
                .planes(np.zeros(1, np.int64), [(Y[0], np.zeros(4, int))])
            ),
            "states that its nodes may not have",
        ),
        (lambda X, Y: mm.StructuralSVM(LatentGraph(n_hidden_states=2)).fit(X, Y), "belongs to LatentStructuralSVM"),
    ],
)
def test_what_cannot_be_is_said(rng, wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong(*examples(rng, WITH_HIDDEN))

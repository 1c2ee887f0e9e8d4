"""Training on the relaxation: its bounds beside a cone solver's optimum of the relaxed problem, and what is kept."""

from itertools import product

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from inline_transport import Inline

import maxmargin as mm
from maxmargin.checks import check_model
from maxmargin.models import Graph, LatentGraph
from maxmargin.models.fractional import WHOLE

TRIANGLE = np.array([[0, 1], [1, 2], [2, 0]])


def frustrated(seed, n=6):
    """Triangles whose labels are all different."""
    rng = np.random.default_rng(seed)
    return [(rng.normal(size=(3, 2)), TRIANGLE) for _ in range(n)], [rng.permutation(3) for _ in range(n)]


def random_graphs(seed):
    rng = np.random.default_rng(seed)
    K, d, f = int(rng.integers(2, 4)), int(rng.integers(1, 3)), int(rng.integers(0, 3))
    X, Y = [], []
    for _ in range(int(rng.integers(2, 4))):
        n = int(rng.integers(3, 5))
        edges = np.array([(a, b) for a in range(n) for b in range(a) if rng.random() < 0.9] + [(0, n - 1)])
        features = rng.normal(size=(len(edges), f))
        X.append((rng.normal(size=(n, d)), edges, features) if f else (rng.normal(size=(n, d)), edges))
        Y.append(rng.integers(K, size=n))
    options = {"bias": bool(rng.integers(2)), "symmetric": bool(rng.integers(2))}
    loss = str(rng.choice(["hamming", "normalized_hamming"]))
    return Graph(K, d, f, loss=loss, inference="relaxed", **options), X, Y, float(10.0 ** rng.uniform(-1, 1))


def basis(model, x, y):
    """(features, loss) of each share of a label at a node and of a pair at an edge: both are linear in shares."""
    K, n, m = model.n_labels, len(x[0]), len(x[1])
    blocks = model.n_edge_features or 1
    at_edges = x[2] if model.n_edge_features else np.ones((m, 1))
    pairs = model.pairs
    n_pairs = pairs.max() + 1
    features = np.zeros((n * K + m * K * K, model.n_weights))
    loss = np.zeros(len(features))
    scale = 1.0 / n if model.cost == "normalized_hamming" else 1.0
    for v, k in product(range(n), range(K)):
        for j, value in enumerate(x[0][v]):
            features[v * K + k, j * K + k] = value
        if model.bias:
            features[v * K + k, x[0].shape[1] * K + k] = 1.0
        loss[v * K + k] = scale * (k != y[v])
    for e, a, b in product(range(m), range(K), range(K)):
        for q in range(blocks):
            features[n * K + e * K * K + a * K + b, model.pair_at + q * n_pairs + pairs[a, b]] = at_edges[e, q]
    return features, loss


def polytope(n, edges, K):
    """A, b: shares x ≥ 0 agree where A x = b."""
    rows, b = [], []
    width = n * K + len(edges) * K * K
    for v in range(n):
        row = np.zeros(width)
        row[v * K : (v + 1) * K] = 1.0
        rows.append(row)
        b.append(1.0)
    for e, ends in enumerate(edges):
        for side, k in product((0, 1), range(K)):
            row = np.zeros((K, K))
            row[(k, slice(None)) if side == 0 else (slice(None), k)] = 1.0
            whole = np.zeros(width)
            whole[n * K + e * K * K : n * K + (e + 1) * K * K] = row.ravel()
            whole[ends[side] * K + k] -= 1.0
            rows.append(whole)
            b.append(0.0)
    return np.array(rows), np.array(b)


def relaxed_optimum(model, X, Y, C):
    """min ½‖w‖² + C Σ_i b_i·λ_i − truth_i(w) where A_i'λ_i ≥ loss + features·w: the maximum over shares, by duality."""
    d = model.n_weights
    parts = [(basis(model, x, y), polytope(len(x[0]), x[1], model.n_labels)) for x, y in zip(X, Y, strict=True)]
    sizes = [len(b) for _, (_, b) in parts]
    total = d + sum(sizes)
    q = np.zeros(total)
    G, h = [], []
    at = d
    for ((features, loss), (A, b)), x, y in zip(parts, X, Y, strict=True):
        q[at : at + len(b)] = C * b
        q[:d] -= C * model.features(x, y).toarray()[0]
        block = np.zeros((len(loss), total))
        block[:, :d] = features
        block[:, at : at + len(b)] = -A.T
        G.append(block)
        h.append(-loss)
        at += len(b)
    P = sp.csc_matrix((np.ones(d), (np.arange(d), np.arange(d))), shape=(total, total))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cone = [clarabel.NonnegativeConeT(sum(map(len, h)))]
    found = clarabel.DefaultSolver(P, q, sp.csc_matrix(np.concatenate(G)), np.concatenate(h), cone, settings).solve()
    assert str(found.status) == "Solved"
    return found.obj_val


def objective(model, X, Y, C, w):
    """Of the problem that is not relaxed, by brute force."""
    total = 0.5 * w @ w
    for x, y in zip(X, Y, strict=True):
        every = product(range(model.n_labels), repeat=len(y))
        truth = (model.features(x, y) @ w)[0]
        total += C * max(model.loss(y, np.array(z)) + (model.features(x, z) @ w)[0] - truth for z in every)
    return total


@pytest.mark.parametrize("first", range(0, 120, 12))
def test_the_bounds_hold_for_the_relaxed_problem_and_the_upper_one_for_the_other_too(first):
    n_fractional = 0
    for seed in range(first, first + 12):
        model, X, Y, C = random_graphs(seed)
        svm = mm.StructuralSVM(model, C=C, tol=1e-3, random_state=seed).fit(X, Y)
        found = svm.certificate_
        optimum = relaxed_optimum(model, X, Y, C)
        slack = 1e-6 * (1.0 + abs(optimum))
        assert found.relaxed
        assert found.lower <= optimum + slack
        assert found.upper >= optimum - slack
        assert found.upper >= objective(model, X, Y, C, svm.coef_) * (1 - 1e-12)
        n_fractional += any(answer.max() > 3 for answer in svm.active_constraints_["answer"])
    assert n_fractional > 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_it_closes_the_gap_that_relaxation_leaves():
    closed = 0
    for seed in range(6):
        X, Y = frustrated(seed)
        relaxed, plain = (
            mm.StructuralSVM(Graph(symmetric=True, inference=how), C=10.0, tol=1e-4, max_passes=100, random_state=0)
            .fit(X, Y)
            .certificate_
            for how in ("relaxed", "trws")
        )
        if plain.loose > 1e-3:
            closed += 1
            assert relaxed.relative_gap <= 0.1 * plain.relative_gap
    assert closed >= 2


def test_a_fractional_answer_is_known_by_its_marginals():
    X, Y = frustrated(1)
    svm = mm.StructuralSVM(Graph(symmetric=True, inference="relaxed"), C=10.0, random_state=0).fit(X, Y)
    active, model = svm.active_constraints_, svm.model_
    fractional = [p for p, answer in enumerate(active["answer"]) if answer.size > 3]
    assert fractional
    for p in fractional:
        i, answer = active["example"][p], active["answer"][p]
        nodes, pairs = model.marginals(X[i], answer)
        assert (nodes >= 0).all() and (pairs >= 0).all() and (nodes.sum(axis=1) == 1.0).all()
        assert (pairs.sum(axis=2) == nodes[TRIANGLE[:, 0]]).all() and (pairs.sum(axis=1) == nodes[TRIANGLE[:, 1]]).all()
        assert active["loss"][p] == pytest.approx(1.0 * sum(1.0 - nodes[v, k] for v, k in enumerate(Y[i])))
        assert model.loss(Y[i], answer) == pytest.approx(active["loss"][p])
        difference = (model.features(X[i], Y[i]) - model.features(X[i], answer)) @ svm.coef_
        assert active["slack"][p] == pytest.approx(active["loss"][p] - difference[0], abs=1e-9)
    weights = sum(
        share * (model.features(X[i], Y[i]) - model.features(X[i], answer)).toarray()[0]
        for i, answer, share in zip(active["example"], active["answer"], active["share"], strict=True)
    )
    assert weights == pytest.approx(svm.coef_, abs=1e-2 * np.abs(svm.coef_).max())
    whole = model.marginals(X[0], Y[0])
    assert np.array_equal(whole[0].argmax(axis=1), Y[0]) and set(np.unique(whole[1])) == {0.0, 1.0}


def test_it_is_kept_in_files_and_goes_on_from_there(tmp_path):
    X, Y = frustrated(1)
    svm = mm.StructuralSVM(Graph(symmetric=True, inference="relaxed"), C=10.0, random_state=0).fit(X, Y)
    svm.save(tmp_path / "svm")
    loaded = mm.load(tmp_path / "svm")
    assert loaded.certificate_ == svm.certificate_ and loaded.certificate_.relaxed
    again = loaded.certify(X, Y)
    assert again.relaxed and again.lower == pytest.approx(svm.certificate_.lower)
    assert "optimum of the relaxation" in repr(again)
    assert "on the relaxed problem" in again._repr_html_()
    with pytest.raises(ValueError, match="exact_seconds is for fits on labellings"):
        loaded.certify(X, Y, exact_seconds=1.0)


def test_wherever_examples_are_the_certificate_says_what_it_is_of():
    X, Y = frustrated(1)
    optimum = relaxed_optimum(Graph(3, 2, 0, symmetric=True, inference="relaxed"), X, Y, 10.0)
    made = mm.StructuralSVM(Graph(3, 2, 0, symmetric=True, inference="relaxed"), C=10.0, random_state=0, n_jobs=2)
    source = mm.data.open(list(zip(X, Y, strict=True)), chunk_rows=3)
    for found in (
        made.fit(X, Y).certificate_,
        made.fit(source).certificate_,
        made.fit(source, cluster=Inline(2)).certificate_,
        made.set_params(solver="cutting_plane").fit(X, Y).certificate_,
    ):
        assert found.relaxed and found.relative_gap <= 1e-3
        assert found.lower <= optimum * (1 + 1e-6) and optimum * (1 - 1e-6) <= found.upper
    stream = mm.StructuralSVM(Graph(3, 2, 0, symmetric=True, inference="relaxed"), C=10.0, random_state=0)
    stream.partial_fit(X[:3], Y[:3]).partial_fit(X[3:], Y[3:])
    assert stream.certificate_.relaxed and stream.certificate_.lower <= optimum * (1 + 1e-6)


def test_without_cycles_nothing_is_relaxed():
    rng = np.random.default_rng(0)
    X = [(rng.normal(size=(3, 2)), TRIANGLE[:2]) for _ in range(4)]
    svm = mm.StructuralSVM(Graph(inference="relaxed"), random_state=0).fit(X, [rng.integers(3, size=3) for _ in X])
    assert svm.certificate_.exact and not svm.certificate_.relaxed


def test_shares_that_do_not_agree_are_no_answer():
    X, Y = frustrated(1)
    model = Graph(symmetric=True, inference="relaxed").sized(X, Y)
    oracle = model.oracle(X, Y)
    third = np.full(36, 0, np.int32)
    third[:9:3] = WHOLE
    third[9::9] = WHOLE
    assert oracle.planes(np.zeros(1, int), [third]).losses == pytest.approx(model.loss(Y[0], [0, 0, 0]))
    for at, value in ((0, 0), (9, WHOLE - 1), (10, -1)):
        wrong = third.copy()
        wrong[at] = value
        with pytest.raises(ValueError, match="that agree"):
            oracle.planes(np.zeros(1, int), [wrong])
    with pytest.raises(ValueError, match="that agree"):
        oracle.planes(np.zeros(1, int), [third[:-1]])
    with pytest.raises(ValueError, match="lengths differ"):
        Graph(symmetric=True).sized(X, Y).oracle(X, Y).planes(np.zeros(1, int), [third])


def test_it_is_a_model_as_others_are():
    X, Y = frustrated(2)
    check_model(Graph(inference="relaxed"), X, Y)
    with pytest.raises(ValueError, match='every inference but "relaxed"'):
        LatentGraph(inference="relaxed")

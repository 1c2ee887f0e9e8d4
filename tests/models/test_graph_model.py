"""Labelled graphs: features, losses and searches belong together, chains are a special case, optima are optimal."""

import itertools

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from compiled import equals_its_source
from user_models import InChunks, every_rival

import maxmargin as mm
from maxmargin.checks import check_model
from maxmargin.constraints.searched import Searched
from maxmargin.inference.trees import visiting_order
from maxmargin.kernels import graph_slack
from maxmargin.models.chain import Chain
from maxmargin.models.graph import Graph, grid
from maxmargin.problem import Planes
from maxmargin.protocols import OracleError
from maxmargin.solvers.oracle_ascent import OracleAscent

TRIANGLE = np.array([[0, 1], [1, 2], [2, 0]])


def solved(model, X, Y, C=1.0, tol=1e-6, max_passes=2000):
    problem = mm.Problem(Searched(model.oracle(X, Y), np.array([C])), mm.regularizers.L2())
    return mm.solve(problem, OracleAscent(random_state=0), tol=tol, max_passes=max_passes)


def rows_of(rivals):
    r = rivals.rows
    return sp.csr_matrix((r.data, r.indices, r.indptr), shape=(r.n_rows, r.width)).toarray()


def labellings(y, n_labels):
    return [np.array(z) for z in itertools.product(range(n_labels), repeat=len(y))]


def by_listing(model, X, Y, C=1.0):
    """The optimum with every rival of every example written down."""
    return reference.quadratic(*every_rival(model, X, Y, lambda x: labellings(x[0], model.n_labels), C))


def chains(rng, n=12, d=4, k=3, longest=6):
    lengths = rng.integers(1, longest + 1, n)
    X = [rng.normal(size=(t, d)) for t in lengths]
    return X, [rng.integers(k, size=t) for t in lengths]


def as_paths(X):
    return [(x, np.stack([np.arange(len(x) - 1), np.arange(1, len(x))], axis=1)) for x in X]


def trees(rng, n=8, d=2, k=3, e=0):
    X, Y = [], []
    for _ in range(n):
        size = rng.integers(1, 5)
        edges = np.array([(v, rng.integers(v)) for v in range(1, size)], dtype=int).reshape(-1, 2)
        x = (rng.normal(size=(size, d)), rng.permuted(edges, axis=1))
        X.append((*x, rng.normal(size=(len(edges), e))) if e else x)
        Y.append(rng.integers(k, size=size))
    return X, Y


def smooth_cycles(rng, n=6):
    """Rings of four whose neighbours agree, features that say so only roughly."""
    Y = [np.repeat(rng.permutation(2), 2) if i % 2 else np.full(4, i // 2 % 2) for i in range(n)]
    ring = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    return [((y - 0.5)[:, None] + rng.normal(size=(4, 1)), ring) for y in Y], Y


@pytest.mark.parametrize(
    ("bias", "loss"),
    [(False, "hamming"), (True, "normalized_hamming"), (True, [[0, 1, 2], [3, 0, 1], [1, 2, 0]])],
)
def test_on_paths_it_is_the_chain_model(rng, bias, loss):
    X, Y = chains(rng)
    X[0] = sp.csr_matrix(X[0])
    chain = Chain(3, 4, loss=loss, bias=bias).oracle(X, Y)
    paths = [(x, np.stack([np.arange(x.shape[0] - 1), np.arange(1, x.shape[0])], axis=1)) for x in X]
    graph = Graph(3, 4, loss=loss, bias=bias).oracle(paths, Y)
    assert graph.n_weights == chain.n_weights
    assert graph.releases_gil
    ids = rng.permutation(len(X))[:9]
    for w in (np.zeros(chain.n_weights), rng.normal(size=chain.n_weights)):
        a, b = chain.rivals(ids, w), graph.rivals(ids, w)
        assert b.excess is None
        assert all(np.array_equal(p, q) for p, q in zip(a.labels, b.labels, strict=True))
        assert np.array_equal(a.losses, b.losses)
        assert np.allclose(rows_of(a), rows_of(b), rtol=1e-6, atol=1e-6)  # chains round their rows to float32


@pytest.mark.parametrize(
    ("symmetric", "e", "loss"),
    [(False, 0, "hamming"), (True, 2, "hamming"), (True, 0, "normalized_hamming"), (False, 2, "normalized_hamming")],
)
def test_the_oracle_agrees_with_features_loss_and_trying_everything(rng, symmetric, e, loss):
    X, Y = trees(rng, e=e)
    # A triangle among the trees: this one is searched by message passing.
    X.append((rng.normal(size=(3, 2)), TRIANGLE, *([rng.normal(size=(3, e))] if e else [])))
    Y.append(rng.integers(3, size=3))
    model = Graph(loss=loss, bias=True, symmetric=symmetric).sized(X, Y)
    assert not model.exact
    oracle = model.oracle(X, Y)
    assert oracle.releases_gil
    w = rng.normal(size=model.n_weights)
    ids = rng.permutation(len(X))
    rivals = oracle.rivals(ids, w)
    rows = rows_of(rivals)
    for p, i in enumerate(ids):
        x, y, z = X[i], Y[i], rivals.labels[p]
        truth = model.features(x, y)
        assert np.allclose(rows[p], (truth - model.features(x, z)).toarray()[0])
        assert np.isclose(rivals.losses[p], model.loss(y, z))
        assert np.array_equal(z, model.most_violated(x, y, w))
        value = model.loss(y, z) + (model.features(x, z) @ w)[0]
        highest = max(model.loss(y, v) + (model.features(x, v) @ w)[0] for v in labellings(y, 3))
        scores = [(model.features(x, v) @ w)[0] for v in labellings(y, 3)]
        if len(y) == 3 and i == len(X) - 1:
            assert value <= highest + 1e-12 <= value + rivals.excess[p] + 2e-12
        else:
            assert rivals.excess[p] == 0.0 and np.isclose(value, highest)
            assert np.isclose((model.features(x, model.predict(x, w)) @ w)[0], max(scores))
    listed = oracle.planes(ids, [Y[i][::-1] for i in ids])
    for p, i in enumerate(ids):
        expected = model.features(X[i], Y[i]) - model.features(X[i], Y[i][::-1])
        assert np.allclose(rows_of(listed)[p], expected.toarray()[0])


def test_rows_are_the_same_summed_by_sorting_or_by_weight(rng):
    """Two features: more entries than weights. Many features: fewer."""
    for d in (2, 200):
        x = (rng.normal(size=(40, d)), np.stack([np.arange(39), np.arange(1, 40)], axis=1))
        y, z = rng.integers(2, size=40), rng.integers(2, size=40)
        y[:20] = z[:20] if d == 200 else y[:20]
        model = Graph(2, d)
        rows = rows_of(model.oracle([x], [y]).planes(np.zeros(1, int), [z]))
        assert np.allclose(rows, (model.features(x, y) - model.features(x, z)).toarray())


@pytest.mark.parametrize(
    ("options", "e"), [({}, 0), ({"symmetric": True, "bias": True}, 2), ({"loss": "normalized_hamming"}, 2)]
)
def test_optima_on_trees_are_those_of_a_cone_solver(rng, options, e):
    X, Y = trees(rng, e=e)
    model = Graph(**options).sized(X, Y)
    assert model.exact
    solution = solved(model, X, Y)
    optimum = by_listing(model, X, Y).value
    assert solution.converged and solution.certificate.exact
    assert np.isclose(solution.certificate.upper, optimum, rtol=1e-5)
    assert solution.certificate.lower <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("inference", ["auto", "cut"])
def test_optima_with_cuts_are_those_of_a_cone_solver(rng, inference):
    X, Y = smooth_cycles(rng)
    model = Graph(symmetric=True, inference=inference).sized(X, Y)
    assert model.exact == (inference == "cut")
    solution = solved(model, X, Y)
    assert solution.converged and solution.certificate.exact
    assert np.isclose(solution.certificate.upper, by_listing(model, X, Y).value, rtol=1e-5)


def test_a_cut_says_how_much_rounding_may_have_hidden(rng):
    X, Y = smooth_cycles(rng)
    model = Graph(symmetric=True).sized(X, Y)
    w = np.array([-1.0, 1.0, np.pi, np.e, np.pi]) / 3.0
    excess = model.oracle(X, Y).rivals(np.arange(len(X)), w).excess
    assert excess.shape == (len(X),) and (excess < 1e-7).all() and excess.any()


@pytest.mark.parametrize("inference", ["swap", "expansion"])
def test_approximate_inference_claims_no_upper_bound(rng, inference):
    X = [(rng.normal(size=(3, 2)), TRIANGLE) for _ in range(5)]
    Y = [rng.permutation(3) for _ in range(5)]
    model = Graph(inference=inference).sized(X, Y)
    assert not model.exact
    solution = solved(model, X, Y, tol=1e-3)
    assert not solution.certificate.exact
    assert solution.certificate.upper == np.inf
    assert solution.certificate.lower <= by_listing(model, X, Y).value * (1 + 1e-9)


@pytest.mark.parametrize("inference", ["auto", "trws"])
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_message_passing_brackets_the_optimum(rng, inference, C):
    """Triangles whose labels are all different: frustrated, so that the relaxation is not tight."""
    X = [(rng.normal(size=(3, 2)), TRIANGLE) for _ in range(5)]
    Y = [rng.permutation(3) for _ in range(5)]
    model = Graph(inference=inference).sized(X, Y)
    solution = solved(model, X, Y, C=C, tol=1e-3, max_passes=300)
    found, optimum = solution.certificate, by_listing(model, X, Y, C).value
    assert solution.converged and found.exact
    assert found.lower <= optimum * (1 + 1e-9) and optimum <= found.upper * (1 + 1e-9)
    assert found.relative_gap - found.loose <= 1e-3


def frustrated(rng, n=5):
    """Triangles whose labels are all different."""
    return [(rng.normal(size=(3, 2)), TRIANGLE) for _ in range(n)], [rng.permutation(3) for _ in range(n)]


def test_branch_and_bound_reaches_the_optimum(rng):
    X, Y = frustrated(rng)
    model = Graph(inference="branch").sized(X, Y)
    assert not model.exact  # of large graphs it may leave something open, and says how much
    solution = solved(model, X, Y)
    assert solution.certificate.relative_gap <= 1e-6
    assert np.isclose(solution.certificate.upper, by_listing(model, X, Y).value, rtol=1e-5)


@pytest.mark.parametrize("inference", ["auto", "expansion"])
def test_exact_searches_lower_the_upper_bound(rng, inference, tmp_path):
    X, Y = frustrated(rng)
    svm = mm.StructuralSVM(Graph(inference=inference), C=1.0, tol=1e-6, random_state=0, max_passes=300).fit(X, Y)
    before, found = svm.certify(X, Y), svm.certify(X, Y, exact_seconds=30.0)
    optimum = by_listing(svm.model_, X, Y).value
    assert optimum <= found.upper * (1 + 1e-9)
    assert found.upper <= before.upper * (1 + 1e-9)
    assert found.lower == before.lower
    assert found.loose == 0.0 and found.exact
    svm.save(tmp_path / "graphs")
    assert mm.load(tmp_path / "graphs").certify(X, Y, exact_seconds=30.0).upper == pytest.approx(found.upper)


def test_exact_searches_read_sources_too(rng):
    X, Y = frustrated(rng)
    svm = mm.StructuralSVM(Graph(), C=1.0, random_state=0).fit(X, Y)
    found = svm.certify(InChunks(X, Y), exact_seconds=30.0)
    assert found.upper == pytest.approx(svm.certify(X, Y, exact_seconds=30.0).upper)


def test_exact_searches_are_refused_where_there_are_none(rng):
    X, Y = chains(rng)
    svm = mm.StructuralSVM(Chain(), random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"exact_seconds is for models\.Graph"):
        svm.certify(X, Y, exact_seconds=1.0)
    with pytest.raises(ValueError, match="exact_seconds must be at least 0"):
        svm.certify(X, Y, exact_seconds=-1.0)


@pytest.mark.parametrize("loss", ["hamming", "normalized_hamming"])
@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("e", [0, 2])
def test_with_slack_rescaling_the_worst_of_all_labellings_is_found(rng, loss, scale, e):
    X, Y = trees(rng, n=12, e=e)
    X.append((rng.normal(size=(5, 2)), np.array([[3, 1], [0, 4]]), rng.normal(size=(2, e)))[: 3 if e else 2])
    Y.append(rng.integers(3, size=5))  # several trees
    model = Graph(3, 2, e, loss=loss, rescaling="slack", bias=True)
    w = scale * rng.normal(size=model.n_weights)
    for x, y in zip(X, Y, strict=True):

        def product(z, x=x, y=y):
            return model.loss(y, z) * (1.0 - ((model.features(x, y) - model.features(x, z)) @ w).item())

        found = model.most_violated(x, y, w)
        assert product(found) == pytest.approx(max(map(product, labellings(y, 3))), abs=1e-9)
    rivals = model.oracle(X, Y).rivals(np.arange(len(X)), w)
    for x, y, z, row in zip(X, Y, rivals.labels, rows_of(rivals), strict=True):
        wanted = model.loss(y, z) * (model.features(x, y) - model.features(x, z)).toarray().ravel()
        assert np.allclose(row, wanted)


def test_slack_rescaling_on_paths_is_that_of_chains(rng):
    X, Y = chains(rng)
    ours = mm.StructuralSVM(Graph(rescaling="slack"), C=0.3, tol=1e-4, random_state=0).fit(as_paths(X), Y)
    theirs = mm.StructuralSVM(Chain(rescaling="slack"), C=0.3, tol=1e-4, random_state=0).fit(X, Y)
    assert ours.certificate_.exact and ours.certificate_.relative_gap <= 1e-4
    assert ours.certificate_.upper == pytest.approx(theirs.certificate_.upper, rel=2e-4)
    check_model(Graph(rescaling="slack"), as_paths(X), Y)


def test_the_kernel_of_slack_rescaling_is_its_source(rng):
    unary, tables, y = rng.normal(size=(4, 3)), rng.normal(size=(3, 3, 3)), rng.integers(3, size=4).astype(np.int32)
    edges = np.array([[0, 1], [2, 1], [1, 3]], dtype=np.int32)
    visit = visiting_order(4, edges)
    labels = np.zeros(4, np.int32)
    equals_its_source(graph_slack.best_product, unary, y, 0.5, edges, tables, *visit, labels, rtol=1e-9)


def test_slack_rescaling_is_refused_where_it_cannot_be():
    x = (np.ones((3, 1)), TRIANGLE)
    with pytest.raises(ValueError, match=r"cycle: rescaling=.slack. is for forests"):
        Graph(2, 1, rescaling="slack").oracle([x], [np.array([0, 1, 0])])
    for wrong in ({"inference": "trws"}, {"loss": 1.0 - np.eye(2)}):
        with pytest.raises(ValueError, match="Hamming loss and graphs without cycles"):
            Graph(rescaling="slack", **wrong)


def test_edges_that_would_rather_differ_are_learned_and_proved(rng):
    """A checkerboard under noise: moves see a tenth of this objective, and learn nothing from the edges."""
    board = np.indices((6, 6)).sum(axis=0) % 2
    Y = [(board ^ flip).ravel() for flip in rng.integers(2, size=12)]
    X = [grid((y + 0.8 * rng.normal(size=36)).reshape(6, 6, 1)) for y in Y]
    svm = mm.StructuralSVM(Graph(bias=True), C=0.1, tol=1e-2, random_state=0).fit(X, Y)
    assert svm.certificate_.relative_gap <= 1e-2
    assert np.mean([np.mean(p != y) for p, y in zip(svm.predict(X), Y, strict=True)]) < 0.05


def test_exact_methods_refuse_where_they_are_not():
    x = (np.ones((3, 1)), TRIANGLE)
    with pytest.raises(ValueError, match="Graph 0 has a cycle"):
        Graph(2, 1, inference="tree").predict(x, np.zeros(6))
    with pytest.raises(ValueError, match="two labels"):
        Graph(3, 1, inference="cut").predict(x, np.zeros(12))
    with pytest.raises(OracleError, match="rather differ") as error:
        Graph(2, 1, inference="cut").predict(x, np.array([0, 0, 0, 1.0, 1.0, 0]))
    assert error.value.example == 0
    with pytest.raises(ValueError, match="inference must be"):
        Graph(inference="lp")


def test_features_may_all_be_zero():
    x, y = np.zeros((3, 1)), np.array([0, 1, 2])
    triangle = np.array([[0, 1], [1, 2], [2, 0]])
    for model, example in ((Graph(), (x, triangle)), (Graph(), (x, triangle[:2])), (Chain(), x)):
        svm = mm.StructuralSVM(model, random_state=0).fit([example] * 3, [y] * 3)
        assert svm.certificate_.relative_gap <= 1e-3


def test_grids_join_neighbours_and_tell_directions():
    features = np.arange(24.0).reshape(3, 4, 2)
    nodes, edges, kinds = grid(features)
    assert np.array_equal(nodes.reshape(features.shape), features)
    assert len(edges) == 3 * 3 + 2 * 4
    step = edges[:, 1] - edges[:, 0]
    assert np.array_equal(kinds, np.stack([step == 1, step == 4], axis=1))
    assert len(grid(features, directions=False)) == 2
    with pytest.raises(ValueError, match="height, width"):
        grid(np.zeros((3, 4)))


def test_sizes_come_from_the_data(rng):
    X, Y = trees(rng, n=20, e=3)
    model = Graph().sized(X, Y)
    assert (model.n_labels, model.n_features, model.n_edge_features) == (3, 2, 3)
    assert model.n_weights == 3 * 2 + 3 * 9
    with pytest.raises(ValueError, match="sizes"):
        _ = Graph().n_weights


GOOD = (np.ones((2, 3)), np.array([[0, 1]]))


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (GOOD, [0, 2], r"Y\[1\] has labels from 0 to 2, allowed are 0 to 1"),
        (GOOD, [0.0, 0.5], r"Y\[1\] must be a list of whole numbers"),
        ((np.ones((2, 3)), [[-1, 0]]), [0, 1], "Graph 1 has an edge to node -1"),
        ((np.ones((2, 3)), [[0.0, 1.0]]), [0, 1], "edges of graph 1 must be pairs of whole numbers"),
        ((np.ones((2, 4)), [[0, 1]]), [0, 1], "Graph 1 has 4 features per node, 3 are needed"),
        ((np.ones((0, 3)), []), [], "Graph 1 is empty"),
        ((np.ones(3), []), [0], "nodes of graph 1 must be a matrix"),
        ((*GOOD, np.ones((1, 2))), [0, 1], "Graph 1 has 2 features per edge, 0 are needed"),
        ((*GOOD, np.ones((2, 2))), [0, 1], "Graph 1 has 1 edges, but edge features of shape"),
        ((np.full((2, 3), np.nan), [[0, 1]]), [0, 1], "finite"),
    ],
)
def test_bad_examples_are_named(x, y, message):
    with pytest.raises(ValueError, match=message):
        Graph(2, 3).oracle([GOOD, x], [np.array([0, 1]), np.array(y)])


def test_bad_settings_are_named():
    with pytest.raises(ValueError, match="lengths differ"):
        Graph(2, 3).oracle([GOOD], [[0, 1]]).planes(np.zeros(1, int), [np.zeros(3, int)])
    with pytest.raises(ValueError, match="There are no graphs"):
        Graph(2, 3).oracle([], [])
    with pytest.raises(ValueError, match="X has 1 examples, Y has 2"):
        Graph(2, 3).oracle([GOOD], [[0, 1], [0, 1]])
    with pytest.raises(ValueError, match="has 10 weights"):
        Graph(2, 3).predict(GOOD, np.zeros(9))
    with pytest.raises(ValueError, match="loss must be"):
        Graph(2, 3, loss="f1")


def test_tables_of_weights_say_what_each_weight_is_for():
    for symmetric in (False, True):
        model = Graph(3, 2, 2, bias=True, symmetric=symmetric)
        w = np.random.default_rng(0).normal(size=model.n_weights)
        nodes, edges, features = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0, 1]]), np.array([[0.5, -1.0]])
        node, pair = model.node_table(w), model.pair_tables(w)
        assert (node.shape, pair.shape) == ((3, 3), (2, 3, 3))
        by_hand = sum(node[:2, k] @ x + node[2, k] for x, k in zip(nodes, (2, 0), strict=True))
        by_hand += features[0] @ pair[:, 2, 0]
        assert float((model.features((nodes, edges, features), [2, 0]) @ w)[0]) == pytest.approx(by_hand)


def test_rows_of_all_graphs_are_formed_together(rng):
    """An oracle with ``offsets`` says where parts of a source begin; where nodes begin is something else."""
    X, Y = trees(rng, n=20)
    model = Graph(n_labels=3).sized(X, Y)
    oracle, everybody, asked = model.oracle(X, Y), np.arange(20), []
    found = oracle.rivals(everybody, rng.normal(size=model.n_weights))

    class Counted:
        def __getattr__(self, name):
            return getattr(oracle, name)

        def planes(self, ids, labels):
            asked.append(ids.size)
            return oracle.planes(ids, labels)

    v = Searched(Counted(), np.ones(1)).totals(Planes(everybody, found.labels, np.full(20, 0.5))).v
    np.testing.assert_allclose(v, 0.5 * rows_of(found).sum(axis=0), atol=1e-12)
    assert asked == [20]

"""Searches over graphs against trying everything: trees, cuts, moves and the Gray code."""

import numpy as np
import pytest
from compiled import equals_its_source
from hypothesis import given, settings, strategies as st
from labellings import best_of_all, best_on_forest

from maxmargin.inference import cuts, trees
from maxmargin.kernels import graphs as kernels, multilabel

few = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def random_forest(rng, n):
    """Every node but the first may hang on an earlier one, under shuffled names and in either direction."""
    edges = [(v, rng.integers(v)) for v in range(1, n) if rng.random() < 0.8]
    edges = rng.permutation(n)[np.array(edges, dtype=int).reshape(-1, 2)]
    return rng.permuted(edges, axis=1)


def random_graph(rng, n, m):
    """m edges between different nodes; some may join the same two."""
    return np.array([rng.choice(n, 2, replace=False) for _ in range(m if n > 1 else 0)], dtype=int).reshape(-1, 2)


def score_of(unary, edges, tables, y):
    """Written again, slowly: nothing here is shared with the searches."""
    total = sum(unary[v, k] for v, k in enumerate(y))
    for e, (a, b) in enumerate(edges):
        total += tables[e if len(tables) > 1 else 0][y[a], y[b]]
    return total


def by_trying(unary, edges, tables):
    return best_of_all(lambda y: score_of(unary, edges, tables, y), *unary.shape)


def best_binary(unary, edges, tables):
    return cuts.best_binary(unary, tables, cuts.Network(len(unary), np.array(edges, int)))


def submodular_tables(rng, m):
    tables = rng.normal(size=(m, 2, 2))
    wrong = tables[:, 0, 0] + tables[:, 1, 1] < tables[:, 0, 1] + tables[:, 1, 0]
    tables[wrong] = tables[wrong][:, :, ::-1]
    return tables


@few
@given(seed=seeds, n=st.integers(1, 6), k=st.integers(1, 3), shared=st.booleans())
def test_trees_find_the_best_labelling(seed, n, k, shared):
    rng = np.random.default_rng(seed)
    edges, unary = random_forest(rng, n), rng.normal(size=(n, k))
    tables = rng.normal(size=(1 if shared else len(edges), k, k))
    labels, score = best_on_forest(unary, edges, tables)
    best, highest = by_trying(unary, edges, tables)
    assert np.isclose(score, highest)
    assert np.array_equal(labels, best)


@few
@given(seed=seeds, n=st.integers(1, 12), extra=st.integers(0, 2))
def test_a_visit_meets_parents_first_and_cycles_are_found(seed, n, extra):
    rng = np.random.default_rng(seed)
    edges = random_forest(rng, n)
    visit = trees.visiting_order(n, edges)
    assert sorted(visit.order) == list(range(n))
    place = np.argsort(visit.order)
    for v in range(n):
        if visit.parent_edge[v] >= 0:
            assert place[edges[visit.parent_edge[v]].sum() - v] < place[v]
    assert (visit.parent_edge == -1).sum() == n - len(edges)
    if extra and len(edges):
        doubled = np.concatenate([edges, edges[:extra, ::-1]])
        assert trees.visiting_order(n, doubled) is None


@few
@given(seed=seeds, n=st.integers(1, 7), m=st.integers(0, 10), scale=st.sampled_from([1e-6, 1.0, 1e6]))
def test_a_cut_is_the_best_of_two_labels(seed, n, m, scale):
    rng = np.random.default_rng(seed)
    edges = random_graph(rng, n, m)
    unary, tables = scale * rng.normal(size=(n, 2)), scale * submodular_tables(rng, len(edges))
    labels, score, excess = best_binary(unary, edges, tables)
    _, highest = by_trying(unary, edges, tables)
    assert np.isclose(score, score_of(unary, edges, tables, labels))
    assert score >= highest - 1e-7 * scale
    assert 0.0 <= excess <= 1e-6 * scale
    assert highest <= score + excess + 1e-13 * scale


@few
@given(seed=seeds, n=st.integers(2, 6), m=st.integers(1, 8), bits=st.integers(1, 4))
def test_the_bound_of_a_cut_holds_however_coarse_the_rounding(seed, n, m, bits):
    """With few bits per capacity the cut is often wrong, never by more than the bound."""
    rng = np.random.default_rng(seed)
    edges = random_graph(rng, n, m)
    unary, tables = rng.normal(size=(n, 2)), submodular_tables(rng, len(edges))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuts, "_LARGEST", bits)
        _, score, excess = best_binary(unary, edges, tables)
    _, highest = by_trying(unary, edges, tables)
    assert score <= highest + 1e-12
    assert highest <= score + excess + 1e-12


def test_large_capacities_do_not_overflow():
    """Thousands of full capacities at the source: a star, for which the tree search knows the answer."""
    rng = np.random.default_rng(0)
    n = 3000
    unary = np.stack([np.zeros(n), np.where(rng.random(n) < 0.5, 1.0, -1.0)], axis=1)
    edges = np.array([(0, v) for v in range(1, n)])
    _, score, excess = best_binary(unary, edges, 0.9 * np.eye(2))
    _, highest = best_on_forest(unary, edges, 0.9 * np.eye(2))
    assert np.isclose(score, highest, rtol=1e-12)
    assert excess <= 1e-5


def test_tables_that_miss_by_a_rounding_error_count_as_submodular():
    table = np.array([[[0.3, 0.1 + 0.2], [0.0, 0.0]]])
    assert cuts.submodular(table)
    labels, _, excess = best_binary(np.zeros((2, 2)), [[0, 1]], table)
    assert labels[0] == 0
    assert 0.0 < excess < 1e-15


def test_a_cut_refuses_what_it_cannot_do():
    with pytest.raises(ValueError, match="submodular"):
        best_binary(np.zeros((2, 2)), [[0, 1]], -np.eye(2))
    with pytest.raises(ValueError, match="2 labels"):
        best_binary(np.zeros((2, 3)), [[0, 1]], np.eye(3))
    with pytest.raises(ValueError, match="finite"):
        best_binary(np.array([[0.0, np.inf]]), [], np.eye(2))
    with pytest.raises(ValueError, match="itself"):
        cuts.Network(2, np.array([[1, 1]]))
    with pytest.raises(ValueError, match="node 2"):
        cuts.Network(2, np.array([[0, 2]]))


@few
@given(seed=seeds, n=st.integers(1, 6), m=st.integers(0, 9), k=st.integers(2, 3), bits=st.sampled_from([1, 29]))
def test_moves_never_lose_and_end_where_no_move_helps(seed, n, m, k, bits):
    """Also where capacities of one bit propose moves that would lose."""
    rng = np.random.default_rng(seed)
    edges, unary, start = random_graph(rng, n, m), rng.normal(size=(n, k)), rng.integers(k, size=n)
    tables = rng.normal(size=(len(edges) if rng.random() < 0.5 else 1, k, k))
    before, network = score_of(unary, edges, tables, start), cuts.Network(n, edges)
    _, highest = by_trying(unary, edges, tables)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuts, "_LARGEST", bits)
        for moves in (cuts.expansion, cuts.swap):
            labels, score = moves(unary, tables, network, start)
            assert np.isclose(score, score_of(unary, edges, tables, labels))
            assert before - 1e-12 <= score <= highest + 1e-12
            again, same = moves(unary, tables, network, labels)
            assert same == score and np.array_equal(again, labels)


@few
@given(seed=seeds)
def test_tables_of_a_move_are_lowered_but_not_where_things_stand(seed):
    rng = np.random.default_rng(seed)
    tables, a, b = rng.normal(size=(8, 2, 2)), rng.integers(2, size=8), rng.integers(2, size=8)
    lowered = cuts._lowered(tables, a, b)
    assert cuts.submodular(lowered)
    assert (lowered <= tables).all()
    assert np.array_equal(lowered[np.arange(8), a, b], tables[np.arange(8), a, b])


@few
@given(seed=seeds, n=st.integers(1, 6), m=st.integers(0, 9), k=st.integers(2, 3))
def test_moves_are_as_good_as_they_must_be(seed, n, m, k):
    """Two submodular labels: both are exact. Potts tables: expansion is locally best among all expansions."""
    rng = np.random.default_rng(seed)
    edges, unary = random_graph(rng, n, m), rng.normal(size=(n, k))
    tables = rng.uniform(size=(len(edges), 1, 1)) * np.eye(k)
    labels, score = cuts.expansion(unary, tables, cuts.Network(len(unary), edges))
    for alpha in range(k):
        mine = np.stack([labels, np.full(n, alpha)], axis=1)
        for chosen in np.ndindex(*[2] * n):
            other = mine[np.arange(n), np.array(chosen)]
            assert score_of(unary, edges, tables, other) <= score + 1e-7
    if k == 2:
        _, highest = by_trying(unary, edges, tables)
        assert np.isclose(score, highest, atol=1e-7)
        assert np.isclose(cuts.swap(unary, tables, cuts.Network(len(unary), edges))[1], highest, atol=1e-7)


@pytest.mark.parametrize("size", [1, 5, 8])
def test_the_gray_code_visits_every_subset_for_many_examples_at_once(size, rng):
    gains, joint = rng.normal(size=(size, 70)), np.triu(rng.normal(size=(size, size)), 1)
    out = np.empty((70, size), np.int8)
    multilabel.best_subsets(gains, joint + joint.T, out)
    for gain, found in zip(gains.T, out, strict=True):
        best, _ = best_of_all(lambda y, gain=gain: gain @ y + y @ joint @ y, size, 2)
        assert np.array_equal(found, best)


def test_kernels_agree_with_plain_python():
    rng = np.random.default_rng(5)
    n, k = 7, 3
    edges = random_forest(rng, n).astype(np.int32)
    unary, tables = rng.normal(size=(n, k)), rng.normal(size=(len(edges), k, k))
    order, parent, labels = np.zeros((3, n), np.int32)
    _, (_, _, order, parent) = equals_its_source(kernels.visit, n, edges, order, parent)
    equals_its_source(kernels.max_sum, unary, n, edges, tables, order, parent, labels)
    gains, joint = rng.normal(size=(4, 3)), np.triu(rng.normal(size=(4, 4)), 1)
    equals_its_source(multilabel.best_subsets, gains, joint + joint.T, np.zeros((3, 4), np.int8))

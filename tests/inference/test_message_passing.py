"""Message passing on graphs with cycles: no labelling exceeds its bound, in exact arithmetic and of the relaxation."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from compiled import equals_its_source
from graph_problems import exact_score, random_problem
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

from maxmargin.inference import cuts, trws
from maxmargin.kernels import relaxation, trws as kernels

few = settings(max_examples=100, deadline=None)
seeds = st.integers(0, 2**32 - 1)
SQUARE = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])


def relaxed_optimum(unary, edges, tables):
    """The largest score of marginals of nodes and edges that agree, by a linear program."""
    n, k = unary.shape
    tables = np.broadcast_to(tables, (len(edges), k, k))
    rows, columns, values = [], [], []
    row = n
    for v in range(n):
        rows += [v] * k
        columns += range(v * k, (v + 1) * k)
        values += [1.0] * k
    for e, ends in enumerate(edges):
        place = n * k + e * k * k + np.arange(k * k).reshape(k, k)
        for end, pairs in zip(ends, (place, place.T), strict=True):
            for label in range(k):
                rows += [row] * (k + 1)
                columns += [*pairs[label], end * k + label]
                values += [1.0] * k + [-1.0]
                row += 1
    A = sp.csr_matrix((values, (rows, columns)), shape=(row, n * k + len(edges) * k * k))
    b = np.concatenate([np.ones(n), np.zeros(row - n)])
    found = linprog(-np.concatenate([unary.ravel(), tables.ravel()]), A_eq=A, b_eq=b, bounds=(0, 1))
    return -found.fun


@few
@given(seeds, st.integers(2, 5), st.integers(1, 3), st.integers(1, 8), st.booleans())
def test_no_labelling_exceeds_the_bound(seed, n, k, m, shared):
    rng = np.random.default_rng(seed)
    unary, edges, tables = random_problem(rng, n, k, m, shared, scales=(-9, 0, 0, 6))
    labels, score, excess = trws.best(unary, edges, tables)
    found = exact_score(unary, edges, tables, labels)
    assert score == pytest.approx(float(found), rel=1e-9, abs=1e-9 * np.abs(tables).max())
    assert max(exact_score(unary, edges, tables, y) for y in product(range(k), repeat=n)) <= found + Fraction(excess)


@few
@given(seeds, st.integers(3, 5), st.integers(2, 3), st.integers(3, 8))
def test_messages_of_anything_else_cannot_make_the_bound_false(seed, n, k, m):
    rng = np.random.default_rng(seed)
    unary, edges, tables = random_problem(rng, n, k, m)
    both_ways = np.ascontiguousarray(np.stack([tables, tables.transpose(0, 2, 1)]))
    messages = rng.normal(size=(m, 2, k)) * 10.0 ** rng.integers(-3, 9)
    labels = rng.integers(k, size=n).astype(np.int32)
    excess = kernels.missed(unary, edges.astype(np.int32), both_ways, messages, labels)
    highest = max(exact_score(unary, edges, tables, y) for y in product(range(k), repeat=n))
    assert highest <= exact_score(unary, edges, tables, labels) + Fraction(excess)


@pytest.mark.parametrize("seed", range(30))
def test_the_bound_is_never_below_the_relaxation_and_comes_near(seed):
    rng = np.random.default_rng(seed)
    unary, edges, tables = random_problem(rng, 8, 3, 14)
    _, score, excess = trws.best(unary, edges, tables)
    relaxed = relaxed_optimum(unary, edges, tables)
    assert relaxed <= score + excess + 1e-7
    assert score + excess <= relaxed + 0.1 * np.abs(tables).sum(axis=(1, 2)).mean()


@pytest.mark.parametrize("seed", range(5))
def test_where_labels_like_to_agree_or_there_are_no_cycles_nothing_is_missed(seed):
    rng = np.random.default_rng(seed)
    unary = rng.normal(size=(4, 2))
    agree = rng.random((4, 1, 1)) * np.eye(2)
    _, score, excess = trws.best(unary, SQUARE, agree)
    assert excess < 1e-6
    assert score == pytest.approx(cuts.best_binary(unary, agree, cuts.Network(4, SQUARE))[1], abs=1e-6)
    unary, tables = rng.normal(size=(4, 3)), rng.normal(size=(3, 3, 3))
    _, score, excess = trws.best(unary, SQUARE[:3], tables)
    highest = max(exact_score(unary, SQUARE[:3], tables, y) for y in product(range(3), repeat=4))
    assert excess < 1e-9
    assert score == pytest.approx(float(highest))


@pytest.mark.parametrize("k", [2, 3])
def test_marginals_come_near_the_relaxation(k):
    n_better = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        unary, edges, tables = random_problem(rng, 7, k, 14)
        edges, both_ways = edges.astype(np.int32), np.ascontiguousarray(np.stack([tables, tables.transpose(0, 2, 1)]))
        labels, messages = np.zeros(7, np.int32), np.zeros((14, 2, k))
        known = kernels.search(unary, edges, both_ways, messages, labels)
        nodes, pairs = np.zeros((7, k), np.int32), np.zeros((14, k, k), np.int32)
        gain, excess = relaxation.search(unary, edges, both_ways, messages, labels, known, nodes, pairs)
        optimum = relaxed_optimum(unary, edges, tables) - float(exact_score(unary, edges, tables, labels))
        assert gain <= optimum + 1e-9 and optimum <= gain + excess + 1e-9
        if gain > 0.0:
            n_better += 1
            assert excess <= 0.05 * known
            assert (nodes.sum(axis=1) == relaxation.WHOLE).all() and (pairs >= 0).all()
            assert all((pairs.sum(axis=2 - end) == nodes[edges[:, end]]).all() for end in (0, 1))
            shares = np.concatenate([nodes.ravel(), pairs.ravel()]) / relaxation.WHOLE
            score = np.concatenate([unary.ravel(), tables.ravel()]) @ shares
            assert score == pytest.approx(gain + float(exact_score(unary, edges, tables, labels)))
    assert n_better > 2


def test_the_kernel_is_its_source(rng):
    unary, edges, tables = random_problem(rng, 6, 3, 9)
    both_ways = np.ascontiguousarray(np.stack([tables, tables.transpose(0, 2, 1)]))
    for n_edges in (9, 0):
        labels, messages = np.zeros(6, np.int32), np.zeros((n_edges, 2, 3))
        equals_its_source(
            kernels.search, unary, edges[:n_edges].astype(np.int32), both_ways[:, :n_edges], messages, labels, rtol=1e-9
        )


def test_the_kernel_of_marginals_is_its_source(rng):
    triangle, both_ways = np.array([[0, 1], [1, 2], [2, 0]], np.int32), np.tile(-np.eye(2), (2, 3, 1, 1))
    unary, messages = 0.1 * rng.normal(size=(3, 2)), np.zeros((3, 2, 2))
    labels, shares = np.zeros(3, np.int32), (np.zeros((3, 2), np.int32), np.zeros((3, 2, 2), np.int32))
    known = kernels.search(unary, triangle, both_ways, messages, labels)
    assert known > 0.1
    equals_its_source(relaxation.search, unary, triangle, both_ways, messages, labels, known, *shares, rtol=1e-6)


def test_what_cannot_be_searched_is_said():
    with pytest.raises(ValueError, match="joins a node to itself"):
        trws.best(np.zeros((2, 2)), np.array([[1, 1]]), np.eye(2))
    with pytest.raises(ValueError, match="finite"):
        trws.best(np.full((2, 2), np.inf), np.array([[0, 1]]), np.eye(2))

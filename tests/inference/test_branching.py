"""Branch and bound on graphs with cycles: what it proves holds in exact arithmetic, and given time it is exact."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from graph_problems import exact_score, random_problem
from hypothesis import given, settings, strategies as st

from maxmargin.inference import branching, trws

few = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def highest(unary, edges, tables):
    k = unary.shape[1]
    return max(exact_score(unary, edges, tables, y) for y in product(range(k), repeat=len(unary)))


@few
@given(seeds, st.integers(2, 6), st.integers(1, 3), st.integers(1, 12), st.booleans())
def test_it_finds_the_best_labelling_and_proves_it(seed, n, k, m, shared):
    rng = np.random.default_rng(seed)
    unary, edges, tables = random_problem(rng, n, k, m, shared)
    start = rng.integers(k, size=n).astype(np.int32)
    labels, excess = branching.improved(unary, edges.astype(np.int32), tables, start)
    best, found = highest(unary, edges, tables), exact_score(unary, edges, tables, labels)
    assert best <= found + Fraction(excess)
    assert excess < 1e-8
    assert float(found) == pytest.approx(float(best), abs=1e-9)


@few
@given(seeds, st.integers(1, 6), st.floats(0.0, 3.0))
def test_what_it_proves_is_true_wherever_it_ends(seed, most, enough):
    rng = np.random.default_rng(seed)
    unary, edges, tables = random_problem(rng, 6, 3, 12, scales=(-9, 0, 0, 6))
    start = rng.integers(3, size=6).astype(np.int32)
    labels, excess = branching.improved(unary, edges.astype(np.int32), tables, start, most=most, enough=enough)
    found = exact_score(unary, edges, tables, labels)
    assert found >= exact_score(unary, edges, tables, start) - Fraction(1e-9)
    assert highest(unary, edges, tables) <= found + Fraction(excess)


def test_more_parts_prove_more(rng):
    unary, edges, tables = random_problem(rng, 12, 3, 30)
    start = trws.best(unary, edges, tables)[0]
    found = [branching.improved(unary, edges.astype(np.int32), tables, start, most=most) for most in (1, 50, 10_000)]
    above = [float(exact_score(unary, edges, tables, labels)) + excess for labels, excess in found]
    assert above[0] + 1e-9 >= above[1]
    assert above[1] + 1e-9 >= above[2]
    assert found[2][1] < 1e-8 < found[0][1]


def test_no_time_is_no_search(rng):
    unary, edges, tables = random_problem(rng, 12, 3, 30)
    start = trws.best(unary, edges, tables)[0]
    at_once = branching.improved(unary, edges.astype(np.int32), tables, start, seconds=0.0)
    assert at_once[1] == branching.improved(unary, edges.astype(np.int32), tables, start, most=1)[1]

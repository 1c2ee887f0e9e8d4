"""Certificates against a referee that computes in fractions: no bound may be false, by however little."""

from contextlib import nullcontext
from fractions import Fraction

import exact
import exact_case
import exact_cases
import exact_structured
import exact_taggers
import numpy as np
import pytest
import reference

from maxmargin.constraints import small

BATCH = 10


# Pairs of a stream, whose differences were rounded to float32; a user's search that rounding led to the second best.
FOUND = [34415, 60821]


@pytest.mark.parametrize("seeds", [range(first, first + BATCH) for first in range(0, 200, BATCH)] + [FOUND])
def test_no_certificate_is_false(seeds):
    wrong = []
    by_kernels = seeds[0] % (2 * BATCH)  # every other batch, as if problems were large
    with small.none_is_small() if by_kernels else nullcontext():
        for seed in seeds:
            case = exact_cases.case(seed)
            wrong += [f"case({seed}): {finding}; {case}" for finding in exact_case.check(case)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("seeds", [range(first, first + BATCH) for first in range(0, 30, BATCH)])
def test_no_certificate_of_a_tagger_is_false(seeds):
    """Chains and segmentations with rules. At scales from 1e-12 to 1e12 bounds may be weak, but never false."""
    wrong = []
    with small.none_is_small() if seeds[0] % (2 * BATCH) else nullcontext():
        for seed in seeds:
            case = exact_taggers.tagging(np.random.default_rng([77, seed]))
            found = [finding for finding in exact_case.check(case) if not finding.is_weak]
            wrong += [f"tagging({seed}): {finding}; {case}" for finding in found]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("seeds", [range(first, first + BATCH) for first in range(0, 20, BATCH)])
def test_no_certificate_of_message_passing_is_false(seeds):
    """Its bounds may be as weak as the relaxation is, but never false."""
    wrong = []
    for seed in seeds:
        case = exact_structured.loopy_graphs(np.random.default_rng([78, seed]))
        wrong += [f"loopy({seed}): {finding}; {case}" for finding in exact_case.check(case) if not finding.is_weak]
    assert not wrong, "\n".join(wrong)


def test_the_referee_agrees_with_the_cone_solver(rng):
    X, loss = rng.normal(size=(12, 4)), rng.uniform(0.5, 2.0, size=12)
    example, budget = np.repeat(np.arange(4), 3), rng.uniform(0.5, 2.0, size=4)
    groups = [[0, 2], [1, 3]]
    for ours, theirs in [
        (exact.Quadratic(4), reference.quadratic(X, loss, example, budget)),
        (
            exact.Groups(groups, 0.3, 0.1),
            reference.group_norm(X, loss, example, budget, groups=groups, strength=0.3, l2=0.1),
        ),
    ]:
        rows = [exact.fractions(row) for row in X]
        problem = exact.Rows(rows, exact.fractions(loss), example.tolist(), exact.fractions(budget), ours)
        below, above = problem.value(exact.fractions(theirs.weights))
        assert below <= above and abs(float(below) - theirs.value) < 1e-12 * theirs.value
        for _ in range(20):
            assert problem.dual(exact.fractions(rng.uniform(0, 2, size=12)))[1] <= below + Fraction(1, 10**9)


def test_square_roots_are_enclosed():
    for x in (Fraction(2), Fraction(1, 3**400), Fraction(10**50 + 1), Fraction(0)):
        below, above = exact.square_root(x)
        assert below**2 <= x <= above**2 and above - below <= Fraction(1, 2**190) * max(above, 1)

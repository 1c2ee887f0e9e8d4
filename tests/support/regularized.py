"""Random regularizers beside what the independent cone solver has to know of them.

Each function takes a generator and a number of weights; it returns the regularizer, the function of ``reference`` that
minimises it, and that function's further arguments.
"""

import numpy as np
import reference
from generators import covariance, partition

from maxmargin.regularizers import L2, Blocks, Bounded, GaussianPrior, GroupNorm


def _l2(rng, d):
    return L2(), reference.quadratic, {}


def _diagonal(rng, d):
    mean, variance = rng.normal(size=d), 10.0 ** rng.uniform(-1, 1, size=d)
    return GaussianPrior(mean, variance), reference.quadratic, {"mean": mean, "covariance": variance}


def _full(rng, d):
    mean, full = rng.normal(size=d), covariance(rng, d)
    return GaussianPrior(mean, full), reference.quadratic, {"mean": mean, "covariance": full}


def _bounds(rng, d):
    index = np.flatnonzero(rng.random(d) < 0.6)
    lower = 0.3 * rng.normal(size=index.size)
    floor = np.full(d, -np.inf)
    floor[index] = lower
    return Bounded(lower, index), reference.quadratic, {"lower": floor}


def _bounds_and_prior(rng, d):
    prior, solver, prior_terms = _diagonal(rng, d)
    bounded, _, bound_terms = _bounds(rng, d)
    return Bounded(bounded.lower, bounded.indices, base=prior), solver, prior_terms | bound_terms


def _group(rng, d):
    groups = partition(rng, d)
    strength = 10.0 ** rng.uniform(-1, 0.3, size=len(groups))
    return GroupNorm(groups, strength), reference.group_norm, {"groups": groups, "strength": strength}


def _group_and_l2(rng, d):
    pure, solver, terms = _group(rng, d)
    return GroupNorm(pure.groups, pure.strength, l2=0.5), solver, terms | {"l2": 0.5}


def _full_beside_l2(rng, d):
    first, rest = np.arange(d // 2), np.arange(d // 2, d)
    whole = np.eye(d)
    whole[: d // 2, : d // 2] = covariance(rng, d // 2)
    prior = GaussianPrior(0.0, whole[: d // 2, : d // 2])
    return Blocks([(rest, L2()), (first, prior)]), reference.quadratic, {"covariance": whole}


def _group_beside_l2(rng, d):
    """What an estimator with an intercept solves: the last weight has its own l2 term."""
    groups = [np.arange(d // 2), np.arange(d // 2, d - 1)]
    blocks = Blocks([(np.arange(d - 1), GroupNorm(groups, 0.7)), (np.array([d - 1]), L2())])
    return blocks, reference.group_norm_and_l2, {"groups": groups, "strength": 0.7, "free": [d - 1]}


REGULARIZED = {
    "l2": _l2,
    "diagonal": _diagonal,
    "full": _full,
    "bounds": _bounds,
    "bounds+prior": _bounds_and_prior,
    "group+l2": _group_and_l2,
    "full beside l2": _full_beside_l2,
}
PURE = {"group": _group, "group beside l2": _group_beside_l2}  # without an l2 term everywhere: for proximal steps

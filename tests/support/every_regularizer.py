"""Every regularizer, under a name, over the same few weights."""

import numpy as np
from generators import covariance

from maxmargin.regularizers import L2, Blocks, Bounded, GaussianPrior, GroupNorm

N = 6
GROUPS = [[0, 3], [1, 2, 5], [4]]


def _every_regularizer():
    rng = np.random.default_rng(7)
    mean, variance = rng.normal(size=N), rng.uniform(0.2, 4.0, size=N)
    prior = GaussianPrior(mean, variance)
    features, last = np.arange(N - 1), np.array([N - 1])
    return {
        "l2": L2(),
        "prior-scalar": GaussianPrior(0.5, 2.0),
        "prior-diagonal": prior,
        "prior-full": GaussianPrior(mean, covariance(rng, N)),
        "prior-full-no-mean": GaussianPrior(0.0, covariance(rng, N)),
        "bounds": Bounded(0.0),
        "bounds-subset": Bounded([-0.5, 0.2], [1, 4]),
        "bounds-minus-infinity": Bounded(-np.inf),
        "bounds-none": Bounded(0.0, []),
        "bounds-prior": Bounded(0.1, [0, 2, 5], base=prior),
        "bounds-both": Bounded(-0.3, upper=0.4),
        "bounds-above": Bounded(-np.inf, [1, 3], upper=[0.2, np.inf]),
        "bounds-fixed": Bounded([0.5, -1.0], [0, 2], base=prior, upper=[0.5, 1.0]),
        "group-l2": GroupNorm(GROUPS, [0.5, 1.0, 2.0], l2=0.7),
        "group-free-group": GroupNorm(GROUPS, [0.0, 1.0, 2.0], l2=1.0),
        "group-centre": GroupNorm(GROUPS, 1.0, l2=2.0, centre=mean),
        "blocks-prior": Blocks([(features, GaussianPrior(1.0, 3.0)), (last, L2())]),
        "blocks-full": Blocks(
            [(features, GaussianPrior(0.0, covariance(rng, N - 1))), (last, GaussianPrior(1.0, 0.3))]
        ),
        "blocks-bounds": Blocks([(features, Bounded(0.0)), (last, L2())]),
        "blocks-both-bounds": Blocks([(features, Bounded(0.0, upper=0.5)), (last, L2())]),
        "blocks-group": Blocks([(features, GroupNorm([[0, 1], [2, 3, 4]], l2=1.0)), (last, L2())]),
        "blocks-two-groups": Blocks(
            [
                (np.arange(3), GroupNorm([[0, 2], [1]], [0.5, 2.0], l2=1.0)),
                (np.arange(3, N), GroupNorm([[0, 1, 2]], l2=0.5)),
            ]
        ),
    }


REGULARIZERS = _every_regularizer()

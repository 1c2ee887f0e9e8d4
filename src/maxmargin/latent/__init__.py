"""Latent variables: choose a convex bound of the objective, minimise it, choose the next.

The choosers (how the next bound is found) are public: give one as ``bound=`` to an estimator.
"""

from .biased import Biased, Coherence
from .gmm import CCCP, RandomSubset, RandomWalk
from .gmme import MaximumEntropy
from .loop import Settings, minimise, value
from .multi_fold import MultiFold
from .search_state import SearchState

__all__ = [
    "CCCP",
    "Biased",
    "Coherence",
    "MaximumEntropy",
    "MultiFold",
    "RandomSubset",
    "RandomWalk",
    "SearchState",
    "Settings",
    "minimise",
    "value",
]

"""One random problem for every seed, of any estimator, with all that is awkward (see ``exact_case.py``)."""

import numpy as np
from exact_case import Case
from exact_linear import bags, linear
from exact_structured import long_chains, structured


def case(seed: int) -> Case:
    """The problem of this number."""
    rng = np.random.default_rng(seed)
    made = rng.choice(np.array([linear, structured, bags, long_chains], dtype=object), p=[0.6, 0.3, 0.07, 0.03])
    return made(rng)

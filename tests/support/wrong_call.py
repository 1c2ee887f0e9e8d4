"""What a new user may get wrong: a call, the error it must end in, and what its message must say."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

import maxmargin as mm

HUGE = 10**400
"""A whole number that no float can hold."""

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3))
Y2 = np.arange(20) % 2
Y3 = np.arange(20) % 3
GROUPS = np.arange(20) // 5
SEQUENCES = [[{"w": "a"}, {"w": "b"}], [{"w": "b"}]]
TAGS = [["A", "B"], ["B"]]
BAGS = [rng.normal(size=(3, 2)) for _ in range(6)]
BAG_LABELS = [0, 1] * 3


class Wrong(NamedTuple):
    """``argument`` is the word by which the message names what was wrong; ``call`` is given an empty folder."""

    name: str
    argument: str
    call: Callable
    error: type
    given: str
    needed: str


@cache
def svc():
    return mm.LinearSVC(random_state=0).fit(X, Y2)


@cache
def named_svc():
    import pandas as pd

    return mm.LinearSVC(random_state=0).fit(pd.DataFrame(X, columns=list("abc")), Y2)


@cache
def tagger():
    return mm.SequenceSVM(random_state=0).fit(SEQUENCES, TAGS)


@cache
def calibrated():
    return mm.SequenceSVM(random_state=0).fit(SEQUENCES, TAGS).calibrate(SEQUENCES, TAGS)


@cache
def structural():
    return mm.StructuralSVM(mm.models.Multiclass(), random_state=0).fit(list(X), Y2.tolist())


@cache
def latent():
    return mm.LatentSVC(random_state=0).fit(BAGS, BAG_LABELS)


def sparse(dtype, kind=sp.csr_matrix):
    """X with values of a type that SciPy's constructors refuse."""
    matrix = kind(X)
    matrix.data = matrix.data.astype(dtype)
    return matrix


def frame(**columns):
    import pandas as pd

    return pd.DataFrame(X, columns=list("abc")).assign(**columns)

"""A chain whose searches are as costly as those of harder models: each burns a millisecond of processor time more.

The answers, and so the problem and its certificate, are those of the plain chain.
"""

import time
from typing import Any

import numpy as np

from maxmargin.models import Chain
from maxmargin.problem import Rivals


class CostlyChain(Chain):
    """Parameters are those of Chain. ``SECONDS`` of this thread's processor time go into every search."""

    SECONDS = 1e-3

    def oracle(self, X: Any, Y: Any) -> "CostlyOracle":  # type: ignore[override]
        return CostlyOracle(super().oracle(X, Y), self.SECONDS)


class CostlyOracle:
    releases_gil = False

    def __init__(self, inner: Any, seconds: float) -> None:
        self._inner, self._seconds = inner, seconds
        self.n_examples, self.n_weights = inner.n_examples, inner.n_weights

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        until = time.thread_time() + self._seconds * len(ids)
        while time.thread_time() < until:
            pass
        return self._inner.rivals(ids, w)

    def planes(self, ids: np.ndarray, labels: Any) -> Rivals:
        return self._inner.planes(ids, labels)

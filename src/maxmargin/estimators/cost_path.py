from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from sklearn.base import clone

from .certified import CertifiedEstimator

E = TypeVar("E", bound=CertifiedEstimator)


def path(estimator: E, X: Any, y: Any, *, C: Iterable[float], **fit_params: Any) -> list[E]:
    """Fit the estimator for every C, each fit hot-started from the dual variables of the one before.

    Ascending values of C are the fast direction. Every step carries its own certificate.

    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import LinearSVC, path
    >>> X, y = load_iris(return_X_y=True)
    >>> steps = path(LinearSVC(random_state=0), X, y, C=[0.01, 0.1, 1.0])
    >>> [s.C for s in steps], all(s.certificate_.relative_gap <= 1e-3 for s in steps)
    ([0.01, 0.1, 1.0], True)
    """
    steps: list[E] = []
    for value in C:
        step = clone(estimator).set_params(C=value, warm_start=True)
        if steps:
            step._alpha, step._fitted_C = steps[-1]._alpha, steps[-1]._fitted_C
        steps.append(step.fit(X, y, **fit_params))
    return [step.set_params(warm_start=estimator.warm_start) for step in steps]

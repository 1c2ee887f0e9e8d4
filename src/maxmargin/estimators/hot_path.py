from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from sklearn.base import clone

from ..wording import check_object, shown
from .certified import CertifiedEstimator
from .inputs import check_positive

E = TypeVar("E", bound=CertifiedEstimator)


def path(
    estimator: E,
    X: Any,
    y: Any,
    *,
    C: Iterable[float] | None = None,
    group_norm: Iterable[float] | None = None,
    **fit_params: Any,
) -> list[E]:
    """Fit the estimator for every C, or for every strength of the group norm, each fit hot-started from the one before.

    Ascending values are the fast direction; with a group norm they are the only one: weights that are all zero would
    have nothing to choose latent values by. Every step carries its own certificate. With latent variables a path
    is one way among many: a fit of its own may end lower, or higher.

    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import LinearSVC, path
    >>> X, y = load_iris(return_X_y=True)
    >>> steps = path(LinearSVC(random_state=0), X, y, C=[0.01, 0.1, 1.0])
    >>> [s.C for s in steps], all(s.certificate_.relative_gap <= 1e-3 for s in steps)
    ([0.01, 0.1, 1.0], True)
    """
    check_object("estimator", estimator)
    given = {name: values for name, values in (("C", C), ("group_norm", group_norm)) if values is not None}
    if len(given) != 1:
        raise ValueError("path needs the values of one parameter: C=[...] or group_norm=[...].")
    ((name, values),) = given.items()
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"{name} must be a list of values, got {shown(values)}.")
    if not hasattr(estimator, "_begin_like"):
        raise ValueError(
            f"estimator must be one of maxmargin's that starts from an earlier fit, such as LinearSVC() or "
            f"SequenceSVM(), got {shown(estimator)}."
        )
    if name not in estimator.get_params(deep=False):
        raise ValueError(f"{type(estimator).__name__} has no parameter {name}; LatentStructuralSVM has. Use C=[...].")
    values = list(values)
    if not values:
        raise ValueError(f"{name} is an empty list. Give the values to fit for, such as {name}=[0.1, 1.0].")
    for value in values if name == "C" else ():
        check_positive(name, value)  # the last one too, before the first is fitted
    steps: list[E] = []
    for value in values:
        step = clone(estimator).set_params(**{name: value}, warm_start=True)
        if steps:
            step._begin_like(steps[-1])
        steps.append(step.fit(X, y, **fit_params))
    return [step.set_params(warm_start=estimator.warm_start) for step in steps]

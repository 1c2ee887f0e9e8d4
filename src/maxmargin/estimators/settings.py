"""Settings that many estimators have, checked in one place, before any work: each name means the same everywhere."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator

from ..validation import check_object, lacking, meant, shown, switch, whole
from . import inputs

T = TypeVar("T")

_ELSEWHERE = {
    "kernel": "Models are linear in the features; sklearn.kernel_approximation makes features that stand for a kernel.",
    "gamma": "It belongs to a kernel; sklearn.kernel_approximation makes features that stand for one.",
    "max_iter": "The most passes over the data are max_passes.",
    "penalty": "What keeps weights small is the regularizer, an object from maxmargin.regularizers.",
    "dual": "Primal and dual are solved together; solver chooses how.",
    "n_threads": "The number of threads is n_jobs.",
    "seed": "The seed is random_state.",
}  # what settings are called in other libraries


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def with_parameters(cls: type[T]) -> type[T]:
    """Class decorator of estimators: the annotated attributes are their parameters, as in a dataclass.

    ``__init__`` is made of them, and only stores. What ``fit`` learns is annotated with ``field(init=False)``.
    """
    made = dataclass(eq=False, repr=False, match_args=False)(cls)
    made.__init__ = with_known_settings(made.__init__)  # type: ignore[method-assign]
    return made


def with_known_settings(init: Callable[..., None]) -> Callable[..., None]:
    """The ``__init__`` of an estimator, which answers a setting that it does not have with the closest that it has."""
    parameters = inspect.signature(init).parameters
    known = [name for name in parameters if name != "self"]
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return init

    @functools.wraps(init)  # scikit-learn reads the signature of what is wrapped
    def wrapped(self: BaseEstimator, *args: Any, **kwargs: Any) -> None:
        unknown = next((name for name in kwargs if name not in known), None)
        if unknown is not None:
            hint = _ELSEWHERE.get(unknown) or meant(unknown, known).strip() or f"It has {', '.join(known)}."
            raise TypeError(f"{type(self).__name__} has no setting {unknown!r}. {hint}")
        init(self, *args, **kwargs)

    return wrapped


def check_settings(estimator: BaseEstimator) -> None:
    """Complain of the first setting that no estimator could use; switches are those whose default is a truth value."""
    given = estimator.get_params(deep=False)
    for name, parameter in inspect.signature(type(estimator).__init__).parameters.items():
        if name in _CHECKS:
            _CHECKS[name](name, given[name])
        elif isinstance(parameter.default, bool):
            switch(name, given[name])


def _verbose(name: str, value: object) -> None:
    if not isinstance(value, bool | int | np.integer) or value < 0:
        raise ValueError(f"{name} must be a whole number of at least 0, got {shown(value)}: 0 is silent.")


def _folder(name: str, value: object) -> None:
    if not isinstance(value, str | os.PathLike | None):
        raise ValueError(f"{name} must be the path of a folder, or None; got {shown(value)}.")


def regularizer(name: str, value: object) -> None:
    """An object with the methods of a regularizer, or None."""
    check_object(name, value)
    missing = lacking(value, "value", "conjugate", "weights", "shape")
    if value is not None and missing:
        raise ValueError(
            f"{name} must have the methods of maxmargin.protocols.Regularizer; {shown(value)} lacks "
            f"{', '.join(missing)}. Ready-made ones are in maxmargin.regularizers."
        )


_CHECKS: dict[str, Callable[[str, object], object]] = {
    "C": inputs.check_positive,
    "bound": check_object,
    "cache": _folder,
    "features": check_object,
    "max_bounds": whole,
    "max_iter": whole,
    "max_passes": whole,
    "max_rounds": whole,
    "n_clusters": whole,
    "memory": lambda name, value: inputs.check_memory(value),
    "n_init": lambda name, value: whole(name, value, most=10**6),
    "n_jobs": lambda name, value: inputs.check_threads(value),
    "random_state": lambda name, value: inputs.check_seed(value),
    "regularizer": regularizer,
    "solver": check_object,
    "verbose": _verbose,
}

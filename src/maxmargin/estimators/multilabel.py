"""MultilabelSVM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..constraints.sourced import Sizes
from ..data.arrays import checked_sparse
from ..models.multilabel import Multilabel
from ..persistence import storable
from ..problem import Certificate
from ..protocols import Source
from . import inputs, training
from .certified import Folder, Run, Workers
from .fit_callbacks import Callback
from .holders import InMemory
from .inputs import Column, Matrix
from .settings import with_parameters
from .structured import ModelFacts, StructuredEstimator, read_once
from .workers import bare

if TYPE_CHECKING:
    from ..report.content import Data, ReportContent


@storable(model_="Multilabel", coef_="float[w]", _alpha="Planes", _fitted_C="float")
@with_parameters
class MultilabelSVM(ClassifierMixin, StructuredEstimator):
    """Several labels per example, each present or not, that may attract or exclude each other.

    One joint structural SVM over all labels: weights for features per label and, where ``edges`` asks for them, for
    every combination of two labels.

    Parameters
    ----------
    C : float
        Regularization parameter: weight of the loss.
    edges : {"none", "tree", "full"} or array (n_edges, 2)
        Pairs of labels with weights of their own. "none" makes labels independent, "tree" takes those of the tree of
        most mutual information, "full" all. Up to 16 labels, and for trees of any size, searches are exact and fast;
        "full" over more labels is searched by cuts and message passing, slower and mostly approximate.
    loss : {"hamming", "normalized_hamming"} or array (n_labels,)
        Wrong labels counted, their share, or the sum of their costs.
    fit_intercept : bool
        Whether each label has a weight of its own.
    tol, regularizer, solver, max_passes, memory, n_jobs, random_state, warm_start, verbose
        As for :class:`StructuralSVM`.

    Attributes
    ----------
    classes_ : array (n_labels,)
        Numbers of the labels, the columns of y.
    edges_ : array (n_edges, 2)
        The pairs that have weights.
    certificate_, history_, active_constraints_, n_passes_ : as for StructuralSVM
    coef_ : array (n_weights,)
        All weights; ``label_coef_`` and ``pair_coef_`` are views of it.
    certificate_, history_, n_passes_ : as for StructuralSVM

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=60, n_labels=2, random_state=0)
    >>> svm = MultilabelSVM(C=0.01, edges="tree", random_state=0).fit(X, Y)
    >>> svm.predict(X).shape, svm.edges_.shape
    ((60, 5), (4, 2))
    """

    C: float = 1.0
    _: KW_ONLY
    edges: str | Matrix = "tree"
    loss: str | Matrix = "hamming"
    fit_intercept: bool = True
    max_passes: int = 1000

    model_: Multilabel = field(init=False)

    def fit(
        self,
        X: Matrix | Source,
        y: Matrix | None = None,
        sample_weight: Column = None,
        *,
        cluster: Workers = None,
        checkpoint: Folder = None,
        checkpoint_every: float = 30.0,
        callbacks: Sequence[Callback] = (),
    ) -> MultilabelSVM:
        """Train on a matrix (dense or sparse) and a matrix of zeros and ones, one column per label.

        X may be a source of both that need not fit into memory. The last four parameters are those of
        :meth:`LinearSVC.fit`.
        """
        run = Run(checkpoint, checkpoint_every, callbacks, cluster)
        return training.fit(self, X, run, y=y, sample_weight=sample_weight)

    def partial_fit(self, X: Matrix, y: Matrix) -> MultilabelSVM:
        """Learn from one more chunk of a stream, of which nothing but constraints is kept.

        ``edges="tree"`` takes the tree from the first chunk. More in :meth:`StructuralSVM.partial_fit`.
        """
        return training.partial_fit(self, X, y=y)

    def _arrays(self, X: object, *, reset: bool, y: object = None, sample_weight: Column = None) -> InMemory:  # type: ignore[override]
        return self._in_memory(*self._checked(X, y, reset=reset), sample_weight)

    def _survey(self, source: Source) -> tuple[Source, ModelFacts]:
        sizes = Sizes(Multilabel(edges=self.edges, loss=self.loss, bias=self.fit_intercept))
        layout = read_once(source, sizes.add, lambda x, y: self._checked(x, y, reset=not sizes.parts))
        return source, ModelFacts(sizes.result(), layout, bare(self)._prepared)

    def _prepared(self, X: Any, Y: Any) -> tuple[Any, np.ndarray]:
        return self._checked(X, Y, reset=False)

    def _checked(self, X: object, Y: object, *, reset: bool) -> tuple[Any, np.ndarray]:
        inputs.check_there(self, Y)
        Y = checked_sparse(Y, "y").toarray() if sp.issparse(Y) else Y
        try:
            table = np.asarray(Y)
        except ValueError:
            table = np.empty(0)  # rows of different lengths
        if table.ndim != 2:
            raise ValueError(
                f"y must have one column per label, with zeros and ones; got shape {table.shape}. "
                "sklearn.preprocessing.MultiLabelBinarizer makes such a matrix from lists of labels."
            )
        X, table = inputs.check_matrix(self, X, table, reset=reset, multi_output=True)
        wrong = np.argwhere((table != 0) & (table != 1))
        if len(wrong):
            i, l = wrong[0]
            raise ValueError(
                f"y must hold zeros and ones; row {i}, column {l} is {table[i, l]}. MultiLabelBinarizer makes them."
            )
        return X, table.astype(np.int8)

    def _check_fitted_sizes(self) -> None:
        if self.model_.n_features != self.n_features_in_:
            raise ValueError(f"its model is of {self.model_.n_features} features, not of {self.n_features_in_}")

    def predict(self, X: Matrix) -> np.ndarray:
        """Zeros and ones, one column per label: the best combination for every row."""
        check_is_fitted(self)
        X = inputs.check_matrix(self, X, reset=False)
        return np.asarray(self.model_.predict_all(X, self.coef_), dtype=np.int64)

    def score(self, X: Matrix, y: Matrix, sample_weight: Column = None) -> float:
        """Share of the rows whose labels are all found."""
        inputs.check_scored(self, X, y, sample_weight)
        return super().score(X, y, sample_weight)

    def certify(self, X: Matrix | Source, y: Matrix | None = None, sample_weight: Column = None) -> Certificate:
        """Bounds on the optimum of the training problem, recomputed from weights and dual variables alone.

        X may be a source of matrix and labels.
        """
        return training.certify(self, X, y=y, sample_weight=sample_weight)

    def _report_content(self, data: Data) -> ReportContent:
        from ..report.multilabel import content

        if data.given and not data.is_source:
            data = replace(data, y=self._checked(data.X, data.y, reset=False)[1])
        return content(self, data)

    @property
    def classes_(self) -> np.ndarray:
        """Numbers of the labels, the columns of y."""
        check_is_fitted(self, "model_")
        return np.arange(self.model_.n_labels or 0)

    @property
    def edges_(self) -> np.ndarray:
        check_is_fitted(self)
        return self.model_.pairs

    @property
    def label_coef_(self) -> np.ndarray:
        """Weights of features by label, (n_labels, n_features), the intercept last if there is one."""
        check_is_fitted(self)
        return self.coef_[: self.model_.pair_at].reshape(-1, self.classes_.size).T

    @property
    def pair_coef_(self) -> np.ndarray:
        """Weights of combinations of labels, (n_edges, 2, 2): ``pair_coef_[e, 1, 0]`` for the first label alone."""
        check_is_fitted(self)
        return self.coef_[self.model_.pair_at :].reshape(-1, 2, 2)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.two_d_labels = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        return tags

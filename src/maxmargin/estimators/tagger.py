"""What a fitted tagger answers: labels, segments, scores of labellings, how good they are; its weights by name."""

from __future__ import annotations

import warnings
from itertools import islice, pairwise
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..data.attributes import Attributes, names_of
from ..data.sequences import Sequences
from ..metrics import SegmentScores, segment_scores, segments
from ..models.chain import Chain
from ..validation import shown, whole
from . import inputs
from .fit_callbacks import users_line
from .inputs import Column
from .sequence_data import as_pairs, as_sequences, check_lengths, is_known, is_numeric, label_numbers, matrices, plain
from .structured import Examples, StructuredEstimator, check_inputs, either_name

_SHOWN = 3  # names of features in a message


class Tagger(StructuredEstimator):
    """A chain with names for labels and features, once ``SequenceSVM`` has trained it."""

    model_: Chain
    classes_: np.ndarray
    segments: str | None
    features: Any
    _names: list[Any] | None
    _attributes: Attributes | None

    def prepare(self, X: Examples | Sequences) -> Sequences:
        """Sequences in the form the model reads, for those who predict on the same data again and again.

        Features that the training data did not have carry no weight and are left out; where that leaves none at all, a
        warning says so.
        """
        check_is_fitted(self)
        X = check_inputs(as_sequences(X, self.features))
        if isinstance(X, Sequences):
            if X.n_features != self.model_.n_features:
                raise ValueError(f"X has sequences of {X.n_features} features, the model has {self.model_.n_features}.")
            return X
        if self._names is None:
            return matrices(X, self.model_.n_features)
        if is_numeric(X):
            raise ValueError(
                "The model was trained on named features, X holds matrices. Give lists of dicts, of names or of words."
            )
        if self._attributes is None:
            self._attributes = Attributes(self._names)
        encoded = self._attributes.encode(X)
        if encoded.indices.size == 0:
            self._warn_of_strangers(X)
        return encoded

    def _pairs(self, X: Examples | Sequences, Y: Examples | None) -> tuple[Sequences, Examples]:
        """Sequences in that form, and their labels, one for each token."""
        X, Y = as_pairs(X, Y)
        prepared = self.prepare(X)
        check_lengths(prepared, Y)
        return prepared, Y

    def _warn_of_strangers(self, X: Examples) -> None:
        """Of sequences that were described in other words than those of ``fit``."""
        met = list(islice(dict.fromkeys(islice(names_of(X), 100)), _SHOWN))
        if met:
            warnings.warn(
                f"None of the features of X was met in training; the first are {shown(met)}, fit had features such as "
                f"{shown((self._names or [])[:_SHOWN])}. The answers do not depend on these tokens: describe them as "
                "they were described for fit.",
                UserWarning,
                stacklevel=users_line(),
            )

    def predict(self, X: Examples | Sequences) -> np.ndarray:
        """The best labels of every sequence: an array of lists, as ``cross_val_predict`` needs it.

        ``predict(X).tolist()`` is a list of lists.
        """
        classes = np.fromiter(self._class_list(), object)
        prepared = self.prepare(X)
        labels = classes[np.concatenate(self.model_.predict_all(prepared, self.coef_))].tolist()
        found = np.empty(len(prepared), object)
        for i, (first, end) in enumerate(pairwise(prepared.offsets.tolist())):
            found[i] = labels[first:end]
        return found

    def predict_segments(self, X: Examples | Sequences) -> list[list[tuple[int, int, str]]]:
        """The segments of every sequence as (start, end, type), where ``end`` is the first token behind the segment.

        The tokens of a segment are ``x[start:end]``; its type is ``"_"`` where labels are B and I without a type.
        Without ``segments=`` labels may spell what no scheme allows; they are read as
        :func:`maxmargin.metrics.segments` reads them.
        """
        return segments(self.predict(X).tolist())

    def predict_single(self, x: object) -> list[Any]:
        """The best labels of one sequence."""
        return list(self.predict([x])[0])

    def k_best(self, x: object, k: int = 5) -> list[tuple[list[Any], float]]:
        """The k best labellings of one sequence with their scores, best first."""
        classes, k = self._class_list(), whole("k", k)
        prepared = self.prepare([x])
        if not prepared.n_tokens:
            return [([], 0.0)]
        found = self.model_.k_best(prepared[0], self.coef_, k)
        return [([classes[j] for j in path.tolist()], score) for path, score in found]

    def margins(self, X: Examples) -> list[np.ndarray]:
        """How sure each predicted label is: its score minus that of the best labelling with another label there.

        The smallest margin of a sequence is what separates its best labelling from the second best.
        """
        prepared = self.prepare(X)
        return self.model_.margins(prepared, self.coef_, self.model_.predict_all(prepared, self.coef_))

    def score(
        self,
        X: Examples,
        Y: Examples | None = None,
        sample_weight: Column = None,
        *,
        y: Examples | None = None,
    ) -> float:
        """Share of the tokens that get the right label, or with ``segments=`` the F1 of all segments (``micro``).

        ``segment_scores`` has both. ``sample_weight`` has one weight per sequence.
        """
        Y = either_name(Y, y)
        if self.segments is not None:
            return self.segment_scores(X, Y, sample_weight).micro.f1
        prepared, Y = self._pairs(X, Y)
        if not prepared.n_tokens:
            raise ValueError("None of the sequences has tokens: there is nothing to score.")
        found = self.predict(prepared)
        right = [a == b for true, z in zip(Y, found, strict=True) for a, b in zip(plain(true), z, strict=True)]
        weights = inputs.check_weights(sample_weight, Y)
        shares = None if weights is None else np.repeat(weights, [len(z) for z in found])
        if shares is not None and not shares.any():
            raise ValueError("sample_weight is zero for all sequences that have tokens: there is nothing to score.")
        return float(np.average(right, weights=shares))

    def segment_scores(self, X: Examples, Y: Examples | None, sample_weight: Column = None) -> SegmentScores:
        """Precision, recall and F1 of the predicted segments, by type and on average, and the accuracy of tokens.

        True labels are read as the script of CoNLL-2000 reads them, also where they break the scheme: see
        :func:`maxmargin.metrics.segment_scores`, which counts.
        """
        prepared, Y = self._pairs(X, Y)
        weights = inputs.check_weights(sample_weight, Y)
        return segment_scores([plain(y) for y in Y], self.predict(prepared).tolist(), sample_weight=weights)

    @property
    def transitions_(self) -> np.ndarray:
        check_is_fitted(self)
        return self.model_.transition_table(self.coef_)

    @property
    def transitions2_(self) -> np.ndarray:
        check_is_fitted(self)
        if self.model_.order != 2:
            raise AttributeError("This SequenceSVM has no weights for three labels in a row: fit it with order=2.")
        return self.model_.triple_table(self.coef_)

    @property
    def emissions_(self) -> np.ndarray:
        """Weights of features by label, (n_features, n_classes)."""
        check_is_fitted(self)
        return self.model_.emissions(self.coef_)

    @property
    def feature_names_(self) -> list[Any]:
        """Names of the features in the order of their weights; numbers if the training data had matrices."""
        check_is_fitted(self)
        return list(range(self.model_.n_features or 0)) if self._names is None else self._names

    def top_features(self, label: object, n: int = 10) -> list[tuple[Any, float]]:
        """The n features that speak most for a label (for negative n: against it), with their weights."""
        check_is_fitted(self)
        number = label_numbers(self.classes_)
        if not is_known(label, number):
            raise ValueError(f"label={shown(label)} is not among the labels {self.classes_.tolist()}.")
        weights, names = self.emissions_[:, number[label]], self.feature_names_
        return [(names[f], float(weights[f])) for f in _largest(weights, n)]

    def top_transitions(self, n: int = 10) -> list[tuple[Any, Any, float]]:
        """The n likeliest steps from one label to the next (for negative n: the unlikeliest), with their weights."""
        table, classes = self.transitions_, self._class_list()
        allowed = np.ones(table.shape, bool) if self.model_.forbidden is None else ~self.model_.forbidden
        pairs, weights = np.argwhere(allowed).tolist(), table[allowed]
        return [(*(classes[k] for k in pairs[p]), float(weights[p])) for p in _largest(weights, n)]

    @property
    def state_features_(self) -> dict[tuple[Any, Any], float]:
        """Weights that are not zero, by (feature, label)."""
        return _by_name(self.emissions_, self.feature_names_, self._class_list())

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """Weights of neighbouring labels that are not zero, by (label, next label), without those ruled out."""
        classes, forbidden = self._class_list(), self.model_.forbidden
        return _by_name(np.where(False if forbidden is None else forbidden, 0.0, self.transitions_), classes, classes)

    def _class_list(self) -> list[Any]:
        check_is_fitted(self)
        return self.classes_.tolist()


def _largest(weights: np.ndarray, n: int) -> list[int]:
    """Where the n largest weights stand, or for negative n the smallest."""
    return np.argsort(-weights if n > 0 else weights, kind="stable")[: abs(n)].tolist()


def _by_name(table: np.ndarray, rows: list[Any], columns: list[Any]) -> dict[tuple[Any, Any], float]:
    row, column = np.nonzero(table)
    found = zip(row.tolist(), column.tolist(), table[row, column].tolist(), strict=True)
    return {(rows[j], columns[k]): weight for j, k, weight in found}

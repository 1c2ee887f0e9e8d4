"""SequenceSVM."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import KW_ONLY, field, replace
from functools import partial
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..constraints.sourced import SourceLayout
from ..data.attributes import Attributes, names_of
from ..data.sequences import Sequences
from ..models.chain import Chain
from ..persistence import storable
from ..protocols import Source
from ..validation import shown, whole
from . import inputs, training
from .allowed import Allowed, Tables
from .fit_callbacks import users_line
from .holders import InMemory, is_in_memory
from .inputs import Column, Matrix
from .segmenting import Segmenting
from .sequence_confidence import WithProbabilities
from .sequence_data import (
    SequenceSurvey,
    as_pairs,
    as_sequences,
    check_lengths,
    encoded_pairs,
    is_known,
    is_numeric,
    label_numbers,
    label_set,
    learned_names,
    matrices,
    numbered,
    plain,
    refuse_empty,
    refuse_new_labels,
    sorted_classes,
    trained_on,
    without_empty,
)
from .sequence_explanation import WithExplanations
from .settings import with_parameters
from .structured import Examples, ModelFacts, check_inputs, either_name, paired, read_once

if TYPE_CHECKING:
    from ..report.content import Data, ReportContent

_SHOWN = 3  # names of features in a message


@storable(
    model_="Chain", coef_="float[w]", classes_="labels[k]", _names="list|none", _alpha="Planes", _fitted_C="float"
)
@with_parameters
class SequenceSVM(Segmenting, WithExplanations, WithProbabilities):
    """Labels for sequences: tagging, chunking, segmentation, with a certificate of optimality.

    A linear-chain model trained with the margin of a structural SVM: weights for (feature, label) and for pairs of
    neighbouring labels. Features are sparse from end to end.

    Parameters
    ----------
    C : float
        Regularization parameter: weight of the loss.
    loss : {"hamming", "normalized_hamming"} or array (n_classes, n_classes)
        Wrong labels counted, their share of the sequence, or the sum of ``loss[true, answer]`` with labels in
        sorted order.
    rescaling : {"margin", "slack"}
        How the loss enters: as the margin asked for, or as the price of a missing margin of one.
    bias, start, end : bool
        Whether each label has a weight of its own at every, the first, the last position.
    order : int, 1 or 2
        How many labels before it a label depends on: with 2 there are weights for three labels in a row besides those
        of pairs. Margin rescaling only.
    features : transformer, optional
        What makes features of tokens, such as :class:`maxmargin.features.TokenFeatures`; it is given the sequences of
        ``fit`` and ``predict``, and saved with the model. By default tokens are taken as they are.
    segments : {"iob1", "iob2", "iobes", "bilou", "bmewo"} or None
        How labels spell segments, such as the names in a text: predicted labels then always follow the scheme, from the
        first token of a sequence to the last, and ``score`` is the F1 of segments. Labels are "O", or a prefix and a
        type ("B-PER", "I-PER"); ``"iob2"`` is what is mostly called BIO.
    allowed_transitions : None, "observed" or iterable of (label, label)
        Pairs of neighbouring labels that an answer may contain: all, those of the training data, or those listed.
        Listed pairs ``(None, label)`` and ``(label, None)`` say which labels may begin and end a sequence; all may if
        there is no such pair. With ``segments``, both must allow a pair.
    tol : float
        Relative duality gap (upper − lower)/upper at which to stop.
    regularizer, solver, max_passes, memory, n_jobs, random_state, warm_start, verbose
        As for :class:`StructuralSVM`.

    Attributes
    ----------
    classes_ : array (n_classes,)
        The labels, sorted.
    transitions_ : array (n_classes, n_classes)
        Weights of neighbouring labels, from × to.
    transitions2_ : array (n_classes, n_classes, n_classes)
        With ``order=2``, weights of three labels in a row, in their order.
    coef_ : array (n_weights,)
        All weights: emissions by feature and label, then bias, transitions, start, end and triples where present.
    certificate_, history_, n_passes_ : as for StructuralSVM

    Notes
    -----
    X is a list of sequences. Each is a matrix of tokens by features (dense or sparse), or a list of tokens, each a
    word (text, its one feature), a dict of features, or a list of the names of those that are present. In dicts,
    numbers count as they are, ``True`` as 1, ``False`` and ``None`` not at all; text makes a feature of its own with
    the name ("word=the"), and so does each item of a list. A data frame is a sequence, too: its rows are tokens, dicts
    of its columns. Y is a list of lists of labels: text, numbers or anything that can be sorted. Both may be iterators.
    A sequence without tokens teaches nothing, and gets no labels.

    Examples
    --------
    >>> X = [[{"word": "the"}, {"word": "dog"}, {"word": "barks"}], [{"word": "dog"}, {"word": "barks"}]]
    >>> Y = [["DET", "NOUN", "VERB"], ["NOUN", "VERB"]]
    >>> svm = SequenceSVM(C=1.0, random_state=0).fit(X, Y)
    >>> svm.predict([[{"word": "the"}, {"word": "dog"}, {"word": "sleeps"}]])
    array([list(['DET', 'NOUN', 'VERB'])], dtype=object)

    Words that need no other features can be given as they are:

    >>> words = [["the", "dog", "barks"], ["dog", "barks"]]
    >>> SequenceSVM(random_state=0).fit(words, Y).predict_single(["the", "dog", "sleeps"])
    ['DET', 'NOUN', 'VERB']
    """

    C: float = 1.0
    _: KW_ONLY
    loss: str | Matrix = "hamming"
    rescaling: str = "margin"
    bias: bool = False
    start: bool = False
    end: bool = False
    segments: str | None = None
    allowed_transitions: str | Iterable[tuple[Any, Any]] | None = None
    order: int = 1
    max_passes: int = 1000
    features: Any = None

    model_: Chain = field(init=False)
    classes_: np.ndarray = field(init=False)
    _names: list[Any] | None = field(init=False)
    _attributes: Attributes | None = field(default=None, init=False)

    def partial_fit(
        self,
        X: Examples,
        Y: Examples | None = None,
        classes: Iterable[object] | None = None,
        *,
        y: Examples | None = None,
    ) -> SequenceSVM:
        """Learn from one more chunk of a stream, of which nothing but constraints is kept.

        More in :meth:`StructuralSVM.partial_fit`.

        Parameters
        ----------
        X, Y : as for ``fit``
            New named features are learned as they come; matrices must keep their width.
        classes : iterable of labels or None
            All labels that may ever come. Needed with the first chunk unless it shows all of them.
        """
        return training.partial_fit(self, X, {"classes": classes}, Y=either_name(Y, y))

    def _arrays(self, X: Examples, *, reset: bool, Y: Examples | None = None, sample_weight: Column = None) -> InMemory:
        return self._in_memory(*as_pairs(X, Y, self.features), sample_weight)

    def _survey(self, source: Source) -> tuple[Source, ModelFacts]:
        in_chunks = not is_in_memory(source)
        seen = SequenceSurvey(pairs=self._allowed.observed and in_chunks, empty=not in_chunks)
        layout = read_once(source, partial(self._add, seen), partial(as_pairs, features=self.features))
        classes = sorted_classes(seen.labels)
        # Pairs that are not allowed are found when the model is bound to their chunk, which knows where they are.
        labels = numbered(list(seen.pairs), classes)
        if is_in_memory(source):
            labels = numbered(source.chunk().y, classes)
            source = trained_on(source, cast(Sequences, seen.encoded), labels)
            layout = SourceLayout(source.offsets, source.chunk().weight)
        model = self._model(seen.n_features or 0, self._allowed.tables(labels, classes), classes)
        prepare = partial(encoded_pairs, seen.attributes, seen.n_features, classes, self.features)
        return source, ModelFacts(model, layout, prepare, {"classes_": classes, **learned_names(seen.attributes)})

    def _next_chunk(self, source: InMemory, classes: Iterable[object] | None = None) -> tuple[InMemory, ModelFacts]:
        begun = "model_" in vars(self)
        # Names are learned anew: a chunk that is refused must not leave its own behind.
        seen = SequenceSurvey(self._names, self.model_.n_features) if begun else SequenceSurvey()
        self._add(seen, source.chunk().x, source.chunk().y)
        if not begun and not cast(Sequences, seen.encoded).n_tokens:
            raise ValueError("None of the sequences has tokens. A stream must begin with one that has.")
        named = set() if classes is None else label_set([list(classes)])
        known = self.classes_ if begun else sorted_classes(seen.labels | named)
        if begun:
            refuse_new_labels(seen.labels | named, known)
        labels = numbered(source.chunk().y, known)
        model = self._model(seen.n_features or 0, self._allowed.tables(labels, known), known)
        if begun and self._allowed.observed and model.forbidden is not None:
            model.forbidden = model.forbidden & self.model_.forbidden  # what was observed once stays allowed
        places = self.model_.places_in(model) if begun else None
        learned = {"classes_": known, **learned_names(seen.attributes)}
        source = trained_on(source, cast(Sequences, seen.encoded), labels)
        return source, ModelFacts(model, SourceLayout(source.offsets), None, learned, places)

    def _known(self, source: Source) -> tuple[Source, ModelFacts]:
        source, facts = super()._known(source)
        if is_in_memory(source):
            return trained_on(source, source.chunk().x, source.chunk().y), facts
        return source, replace(facts, prepare=self._prepared_chunk)

    def _prepared_chunk(self, X: Examples, Y: Examples) -> tuple[Sequences, list[np.ndarray]]:
        prepared, labels = self._prepared(X, Y)
        refuse_empty(prepared)
        return prepared, labels

    def _add(self, seen: SequenceSurvey, X: Examples, Y: Examples) -> None:
        seen.add(X, Y)
        self._allowed.check_labels(Y)

    def _model(self, n_features: int, forbidden: Tables, classes: np.ndarray) -> Chain:
        return Chain(
            len(classes),
            n_features,
            loss=self.loss,
            bias=self.bias,
            start=self.start,
            end=self.end,
            rescaling=self.rescaling,
            order=self.order,
            **forbidden,
        )

    @property
    def _allowed(self) -> Allowed:
        return Allowed(self.allowed_transitions, self.segments)

    def _check_settings(self) -> None:
        super()._check_settings()
        self._allowed.check()

    def _check_fitted_sizes(self) -> None:
        names = range(self._n_features()) if self._names is None else self._names
        fit = self.classes_.size == self.model_.n_labels and len(set(names)) == len(names) == self.model_.n_features
        if not fit:
            raise ValueError("labels, names of features and model do not fit together")
        self._check_calibration()

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
        encoded = cast(Attributes, self._attributes).encode(X)
        if encoded.indices.size == 0:
            self._warn_of_strangers(X)
        return encoded

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
        full, place = without_empty(prepared)
        paths = self.model_.predict_all(full, self.coef_) if place.size else [np.empty(0, np.int32)]
        labels = classes[np.concatenate(paths)].tolist()
        found = np.empty(len(prepared), object)
        for i, (first, end) in enumerate(pairwise(prepared.offsets.tolist())):
            found[i] = labels[first:end]
        return found

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
        self._class_list()
        prepared = self.prepare(X)
        full, place = without_empty(prepared)
        found = [np.empty(0) for _ in range(len(prepared))]
        margins = self.model_.margins(full, self.coef_, self.model_.predict_all(full, self.coef_)) if place.size else []
        for i, margin in zip(place.tolist(), margins, strict=True):
            found[i] = margin
        return found

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
        X, Y = as_pairs(X, Y, self.features)
        prepared = self.prepare(X)
        check_lengths(prepared, Y)
        if not prepared.n_tokens:
            raise ValueError("None of the sequences has tokens: there is nothing to score.")
        found = self.predict(prepared)
        right = [a == b for true, z in zip(Y, found, strict=True) for a, b in zip(plain(true), z, strict=True)]
        weights = inputs.check_weights(sample_weight, Y)
        return float(
            np.average(right, weights=None if weights is None else np.repeat(weights, [len(z) for z in found]))
        )

    def _prepared(self, X: Examples, Y: Examples) -> tuple[Sequences, list[np.ndarray]]:
        X, Y = as_pairs(X, Y, self.features)
        prepared = self.prepare(X)
        check_lengths(prepared, Y)
        labels = numbered(Y, self.classes_)
        self._allowed.check_labels(Y)
        return prepared, labels

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
        return list(range(self._n_features())) if self._names is None else self._names

    def top_features(self, label: object, n: int = 10) -> list[tuple[Any, float]]:
        """The n features that speak most for a label (for negative n: against it), with their weights."""
        check_is_fitted(self)
        number = label_numbers(self.classes_)
        if not is_known(label, number):
            raise ValueError(f"label={shown(label)} is not among the labels {self.classes_.tolist()}.")
        weights = self.emissions_[:, number[label]]
        order = np.argsort(-weights if n > 0 else weights, kind="stable")[: abs(n)]
        names = self.feature_names_
        return [(names[f], float(weights[f])) for f in order]

    def top_transitions(self, n: int = 10) -> list[tuple[Any, Any, float]]:
        """The n likeliest steps from one label to the next (for negative n: the unlikeliest), with their weights."""
        table, classes = self.transitions_, self._class_list()
        allowed = np.ones(table.shape, bool) if self.model_.forbidden is None else ~self.model_.forbidden
        pairs = np.argwhere(allowed)
        weights = table[allowed]
        order = np.argsort(-weights if n > 0 else weights, kind="stable")[: abs(n)]
        return [(classes[pairs[p, 0]], classes[pairs[p, 1]], float(weights[p])) for p in order]

    def _report_content(self, data: Data) -> ReportContent:
        from ..report.sequences import content

        data = paired(data if data.is_source else replace(data, X=as_sequences(data.X, self.features)))
        if data.given and not data.is_source:
            check_lengths(self.prepare(data.X), data.y)
        return content(self, data)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags

    def _n_features(self) -> int:
        return int(self.model_.n_features or 0)

    def _class_list(self) -> list[Any]:
        check_is_fitted(self)
        return self.classes_.tolist()

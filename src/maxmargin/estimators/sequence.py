"""SequenceSVM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..constraints.sourced import SourceLayout
from ..data.attributes import Attributes
from ..data.sequences import Sequences
from ..models.chain import Chain
from ..persistence import storable
from ..protocols import Source
from ..schema import is_label
from ..validation import lacking, shown, whole
from . import training
from .allowed import Allowed, Tables
from .holders import InMemory, is_in_memory
from .inputs import Column, Matrix
from .sequence_data import (
    SequenceSurvey,
    as_pairs,
    as_sequences,
    check_lengths,
    encoded_pairs,
    learned_names,
    named_labels,
    numbered,
    refuse_empty,
    refuse_new_labels,
    sorted_classes,
    trained_on,
)
from .sequence_explanation import WithExplanations
from .sequence_probabilities import WithProbabilities
from .settings import with_parameters
from .structured import Examples, ModelFacts, either_name, paired, read_once

if TYPE_CHECKING:
    from ..report.content import Data, ReportContent


@storable(
    model_="Chain", coef_="float[w]", classes_="labels[k]", _names="list|none", _alpha="Planes", _fitted_C="float"
)
@with_parameters
class SequenceSVM(WithExplanations, WithProbabilities):
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
    min_count : int
        Named features that fewer tokens of the training data have are left out.
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
    certificate_, history_, active_constraints_, n_passes_ : as for StructuralSVM

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
    min_count: int = 1
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
        return self._in_memory(*as_pairs(X, Y), sample_weight)

    def _survey(self, source: Source) -> tuple[Source, ModelFacts]:
        in_chunks, least = not is_in_memory(source), whole("min_count", self.min_count)
        seen = SequenceSurvey(pairs=self._allowed.observed and in_chunks, empty=not in_chunks, counts=least > 1)
        layout = read_once(source, partial(self._add, seen), as_pairs)
        if least > 1:
            seen.leave_out_rare(least)
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
        if self.min_count != 1:
            raise ValueError(
                f"min_count={self.min_count} counts all training data, and partial_fit sees a chunk of it. Use fit, "
                "which reads data larger than memory, too."
            )
        # Names are learned anew: a chunk that is refused must not leave its own behind.
        seen = SequenceSurvey(self._names, self.model_.n_features) if begun else SequenceSurvey()
        self._add(seen, source.chunk().x, source.chunk().y)
        if not begun and not cast(Sequences, seen.encoded).n_tokens:
            raise ValueError("None of the sequences has tokens. A stream must begin with one that has.")
        named = set() if classes is None else named_labels(classes)
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
        seen.add(as_sequences(X, self.features), Y)
        self._allowed.check_labels(Y)

    def _model(self, n_features: int, forbidden: Tables, classes: np.ndarray) -> Chain:
        if not n_features:
            raise ValueError(
                "No token of X has a feature: they are empty, or all that they have is None or False. Labels are "
                "learned from words, names of features, or numbers."
            )
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
        if self.features is not None and lacking(self.features, "transform"):
            raise ValueError(
                "features must be a transformer of sequences, with a method transform, such as "
                f"maxmargin.features.TokenFeatures(); got {shown(self.features)}."
            )

    def _check_fitted_sizes(self) -> None:
        names = self.feature_names_
        fit = self.classes_.size == self.model_.n_labels and len(set(names)) == len(names) == self.model_.n_features
        if not fit:
            raise ValueError("labels, names of features and model do not fit together")
        odd = next((name for name in names if name is not None and not is_label(name)), None)
        if odd is not None:
            raise ValueError(f"names of features must be text, numbers or tuples of them, one is {shown(odd)}")
        self._check_calibration()

    def _prepared(self, X: Examples, Y: Examples) -> tuple[Sequences, list[np.ndarray]]:
        prepared, Y = self._pairs(X, Y)
        labels = numbered(Y, self.classes_)
        self._allowed.check_labels(Y)
        return prepared, labels

    def _named_answers(self, answers: Sequence[Any]) -> list[Any]:
        return [self.classes_[answer] for answer in answers]

    def _report_content(self, data: Data) -> ReportContent:
        from ..report.sequences import content

        if data.given and not data.is_source:
            data = paired(replace(data, X=as_sequences(data.X)))
            check_lengths(self.prepare(data.X), data.y)
        return content(self, data)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags

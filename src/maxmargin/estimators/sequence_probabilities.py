"""What a SequenceSVM says about how sure it is: probabilities of labels, labellings and segments, once calibrated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ..data.segments import continuations
from ..data.sequences import Sequences
from ..models.distribution import ChainDistribution, ChainScores, calibrated, check_possible
from ..validation import one_of, shown, switch
from .sequence_data import is_known, numbered
from .structured import Examples, ModelFacts, check_inputs, either_name, listed
from .tagger import Tagger

Segment = tuple[int, int, Any]
"""First token, token behind the last, type."""


class WithProbabilities(Tagger):
    """Probabilities of a chain, as ``SequenceSVM`` has them."""

    temperature_: float
    label_offsets_: np.ndarray

    def calibrate(
        self,
        X: Examples | Sequences,
        Y: Examples | None = None,
        *,
        y: Examples | None = None,
        by: str = "token",
        offsets: bool = False,
    ) -> Self:
        """Learn how scores become probabilities, from labelled sequences that were not trained on.

        A labelling y of x has the probability exp(w·φ(x, y) / T + Σ_t b[y_t]) / Z(x). The temperature T, and the
        offsets b of labels if asked for, are those under which Y is likeliest. The likelihood is a proper score, best
        where probabilities are right, and its logarithm is concave in 1/T and b. As in Platt's method for binary SVMs,
        one token's worth of Y counts as labelled at random, which matters only where sequences are few or without
        mistakes.

        Predictions stay as they are. ``fit`` and ``partial_fit`` drop the calibration.

        Parameters
        ----------
        X, Y : as for ``fit``
            Held-out sequences: on its training data a model is surer than it should be.
        by : {"token", "sequence"}
            Whose likelihood counts. A margin is no likelihood, so that one temperature may not fit both: "token" is for
            the marginals of tokens, "sequence" for the probabilities of whole labellings.
        offsets : bool
            Whether each label has an offset of its own, for data where its frequency differs from what scores say.

        Returns
        -------
        self
            With ``temperature_``, and ``label_offsets_``, array (n_classes,), if they were asked for.

        Examples
        --------
        >>> from maxmargin import SequenceSVM
        >>> X = [["the", "dog", "barks"], ["the", "cat"], ["dog", "sleeps"], ["cat", "barks"]]
        >>> Y = [["DET", "NOUN", "VERB"], ["DET", "NOUN"], ["NOUN", "VERB"], ["NOUN", "VERB"]]
        >>> svm = SequenceSVM(random_state=0).fit(X[:3], Y[:3]).calibrate(X[3:], Y[3:])
        >>> first, second = svm.predict_marginals_single(["the", "mouse"])
        >>> max(first, key=first.get), max(second, key=second.get)
        ('DET', 'NOUN')
        """
        check_is_fitted(self)
        one_of("by", by, ("token", "sequence"))
        switch("offsets", offsets)
        Y = listed(either_name(Y, y))
        prepared, labels = self._prepared(X, Y)
        scores = ChainScores(self.model_, prepared, self.coef_)
        check_possible(scores.of(labels)[0], Y)
        found = calibrated(scores, labels, by=by, offsets=bool(offsets))
        self._uncalibrate()
        self.temperature_ = found.temperature
        if found.label_offsets is not None:
            self.label_offsets_ = found.label_offsets
        return self

    def predict_proba(self, X: Examples | Sequences) -> list[np.ndarray]:
        """Probabilities of the labels of every token: for each sequence an array (n_tokens, n_classes).

        These are marginals: the sums of the probabilities of all labellings with that label there. Columns are in the
        order of ``classes_``. Needs ``calibrate``.
        """
        return self._distribution(X).marginals()

    def predict_marginals(self, X: Examples | Sequences) -> list[list[dict[Any, float]]]:
        """The same probabilities as :meth:`predict_proba`, as a dict from label to probability for each token."""
        classes = self._class_list()
        tables = self.predict_proba(X)
        return [[dict(zip(classes, row, strict=True)) for row in table.tolist()] for table in tables]

    def predict_marginals_single(self, x: object) -> list[dict[Any, float]]:
        """The probabilities of the labels of every token of one sequence."""
        return self.predict_marginals([x])[0]

    def sequence_proba(self, X: Examples | Sequences, Y: Examples | None = None, *, log: bool = False) -> np.ndarray:
        """The probability that all labels of a sequence are right, for each sequence. Needs ``calibrate``.

        Parameters
        ----------
        X : as for ``predict``
        Y : list of lists of labels or None
            The labels that are asked about, by default those of ``predict``. What the model never predicts, because a
            transition is ruled out, has probability 0.
        log : bool
            Logarithms, which long sequences need: the smallest number above 0 is about exp(−745).
        """
        switch("log", log)
        if Y is None:
            prepared = self.prepare(X)
            labels = self.model_.predict_all(prepared, self.coef_)
        else:
            prepared, Y = self._pairs(X, Y)
            labels = numbered(Y, self.classes_)
        found = self._distribution(prepared).log_probabilities(labels)
        return found if log else np.exp(found)

    def k_best_proba(self, x: object, k: int = 5) -> list[tuple[list[Any], float]]:
        """The k labellings of the highest scores of one sequence with their probabilities. Needs ``calibrate``.

        Those are the likeliest, too, unless calibration has given labels offsets of their own.
        """
        distribution = self._distribution([x])
        found = [labels for labels, _ in self.k_best(x, k)]
        logs = [distribution.log_probabilities([y])[0] for y in numbered(found, self.classes_)]
        return [(labels, float(np.exp(log))) for labels, log in zip(found, logs, strict=True)]

    def segment_proba(self, X: Examples | Sequences, segments: Sequence[Iterable[Segment]]) -> list[np.ndarray]:
        """The probability that a labelling has exactly this segment, for each segment. Needs ``calibrate``.

        It counts all labellings in which the segment begins, ends and has the type that is said, whatever the labels of
        other tokens are; so those of segments that overlap add up to 1 at most. Labels such as B-PER and I-PER are
        read as the script of CoNLL-2000 does, which covers all usual schemes (IOB1, IOB2, IOBES, BILOU); where labels
        have no such prefixes, a segment is a run of one label.

        Parameters
        ----------
        X : as for ``predict``
        segments : list with a list of (start, end, type) for each sequence
            ``end`` is the token behind the last.

        Returns
        -------
        list of arrays (n_segments,)

        Examples
        --------
        >>> from maxmargin import SequenceSVM
        >>> X, Y = [["to", "New", "York"], ["in", "York"]], [["O", "B-LOC", "I-LOC"], ["O", "B-LOC"]]
        >>> svm = SequenceSVM(random_state=0).fit(X, Y).calibrate(X, Y)
        >>> whole, part = svm.segment_proba([["to", "New", "York"]], [[(1, 3, "LOC"), (1, 2, "LOC")]])[0]
        >>> bool(whole > part)
        True
        """
        prepared = self.prepare(X)
        asked = [_listed(i, each) for i, each in enumerate(check_inputs(segments, "segments"))]
        if len(asked) != len(prepared):
            raise ValueError(f"X has {len(prepared)} sequences, segments has {len(asked)} lists. Give one for each.")
        types, goes_on = continuations(self._class_list())
        number = {kind: k for k, kind in enumerate(dict.fromkeys(types)) if kind is not None}
        length = np.diff(prepared.offsets).tolist()
        rows = [(i, *_numbered(i, length[i], one, number)) for i, each in enumerate(asked) for one in each]
        type_of = np.array([number.get(kind, -1) for kind in types])
        log = self._distribution(prepared).log_segments(np.array(rows, np.int64).reshape(-1, 4), goes_on, type_of)
        return np.split(np.exp(log), np.cumsum([len(each) for each in asked])[:-1])

    def _distribution(self, X: Examples | Sequences) -> ChainDistribution:
        check_is_fitted(self)
        if "temperature_" not in vars(self):
            raise NotFittedError(
                f"This {type(self).__name__} has scores, but no probabilities yet: call calibrate(X_val, Y_val) with "
                "labelled sequences that it was not trained on."
            )
        offsets = vars(self).get("label_offsets_")
        return ChainDistribution(self.model_, self.prepare(X), self.coef_, self.temperature_, offsets)

    def _learned(self, facts: ModelFacts, weights: list[np.ndarray]) -> None:
        super()._learned(facts, weights)
        self._uncalibrate()

    def _uncalibrate(self) -> None:
        """Forget the probabilities of other weights."""
        for name in ("temperature_", "label_offsets_"):
            self.__dict__.pop(name, None)

    def _check_calibration(self) -> None:
        """Complain of what ``calibrate`` could not have left."""
        if vars(self).get("temperature_", 0.0 if "label_offsets_" in vars(self) else 1.0) <= 0.0:
            raise ValueError("its temperature must be above 0")


def _listed(sequence: int, segments: Any) -> list[Any]:
    """The segments of one sequence."""
    if not isinstance(segments, Iterable) or isinstance(segments, str):
        raise ValueError(
            f"segments[{sequence}] must be a list of (start, end, type), one for each segment of that sequence; got "
            f"{shown(segments)}."
        )
    return list(segments)


def _numbered(sequence: int, n_tokens: int, segment: Any, number: dict[Any, int]) -> tuple[int, int, int]:
    """A segment, checked, with the number of its type."""
    triple = isinstance(segment, list | tuple) and len(segment) == 3
    if not triple or not all(isinstance(place, int | np.integer) for place in segment[:2]):
        raise ValueError(
            f"segments[{sequence}] has {shown(segment)}. A segment is (start, end, type): its first token, the token "
            "behind its last, and its type."
        )
    start, end, kind = segment
    if not 0 <= start < end <= n_tokens:
        raise ValueError(
            f"segments[{sequence}] has {shown(segment)}, but the sequence has {n_tokens} tokens: 0 <= start < end "
            f"<= {n_tokens} is needed."
        )
    if not is_known(kind, number):
        raise ValueError(
            f"segments[{sequence}] has {shown(segment)}, of a type that no label has. Types are {shown([*number])}."
        )
    return int(start), int(end), number[kind]

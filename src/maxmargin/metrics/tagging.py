"""How many predicted segments are right, such as named entities or chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..data.segments import Alphabet, Marks, found_segments


class Score(NamedTuple):
    """Precision, recall, F1, and the number of true segments.

    What would be a division by zero is 0.
    """

    precision: float
    recall: float
    f1: float
    support: float


@dataclass(frozen=True)
class SegmentScores:
    """How many predicted segments are right, and how many of the true ones were found.

    Printed, it is a table.

    Parameters
    ----------
    by_type : dict of str to Score
        Of each type of segment; ``"_"`` where labels are B and I without a type.
    micro, macro, weighted : Score
        Of all segments together; the mean over types; the mean over types weighted by their support.
    accuracy : float
        Share of the tokens with the right label.
    """

    by_type: dict[str, Score]
    micro: Score
    macro: Score
    weighted: Score
    accuracy: float

    def rows(self) -> list[tuple[str, Score]]:
        """Types and averages in the order of the table."""
        averages = ("micro", self.micro), ("macro", self.macro), ("weighted", self.weighted)
        return [*self.by_type.items(), *((f"{name} average", score) for name, score in averages)]

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        lines = [" " * width + "  precision  recall      F1  support"]
        for name, (precision, recall, f1, support) in rows:
            lines.append(f"{name:{width}}  {precision:9.4f}  {recall:6.4f}  {f1:6.4f}  {support:7g}")
        return "\n".join([*lines, f"{'accuracy of tokens':{width}}  {self.accuracy:.4f}"])


def segments(Y: Sequence[Sequence[str]], scheme: str | None = None) -> list[list[tuple[int, int, str]]]:
    """The segments of each sequence as (start, end, type); ``end`` is the first token behind the segment.

    Parameters
    ----------
    Y : list of lists of str
        Labels such as "B-PER", "I-PER" and "O"; without a type ("B", "I") the type is ``"_"``.
    scheme : {"iob1", "iob2", "iobes", "bilou", "bmewo"} or None
        None reads labels as the script of CoNLL-2000 does (and seqeval by default): every token that is not outside
        belongs to a segment, which ends where the type changes or a prefix says so; the prefixes of all schemes are
        understood. With a scheme, what is not spelled as it says is no segment (seqeval's strict mode).

    Examples
    --------
    >>> segments([["B-PER", "I-PER", "O", "I-LOC"]])
    [[(0, 2, 'PER'), (3, 4, 'LOC')]]
    >>> segments([["B-PER", "I-PER", "O", "I-LOC"]], scheme="iob2")
    [[(0, 2, 'PER')]]
    """
    return found_segments(Y, scheme)


def segment_scores(
    Y_true: Sequence[Sequence[str]],
    Y_pred: Sequence[Sequence[str]],
    scheme: str | None = None,
    sample_weight: Any = None,
) -> SegmentScores:
    """Precision, recall and F1 of segments: one is right if its start, end and type are.

    Figures are those of seqeval: in its default mode without ``scheme``, in its strict mode with one.

    Parameters
    ----------
    Y_true, Y_pred : lists of lists of str
        Labels of each sequence.
    scheme : {"iob1", "iob2", "iobes", "bilou", "bmewo"} or None
        How labels are read, see :func:`segments`.
    sample_weight : array (n_sequences,), optional
        How much the segments and tokens of each sequence count.

    Examples
    --------
    >>> true = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "O"]]
    >>> answer = [["B-PER", "O", "O", "B-LOC"], ["B-LOC", "O"]]
    >>> scores = segment_scores(true, answer)
    >>> print(scores)
                      precision  recall      F1  support
    LOC                  1.0000  1.0000  1.0000        2
    PER                  0.0000  0.0000  0.0000        1
    micro average        0.6667  0.6667  0.6667        3
    macro average        0.5000  0.5000  0.5000        3
    weighted average     0.6667  0.6667  0.6667        3
    accuracy of tokens  0.8333
    >>> scores.by_type["LOC"].f1, round(scores.micro.f1, 4)
    (1.0, 0.6667)
    """
    counts = SegmentCounts(scheme)
    counts.add(Y_true, Y_pred, sample_weight)
    return counts.scores()


class SegmentCounts:
    """Segments of answers beside the true ones, added up a chunk at a time: only counts are kept."""

    def __init__(self, scheme: str | None = None) -> None:
        self._alphabet = Alphabet(scheme)
        self._counts = np.zeros((3, 0))  # true, answered and right, by type
        self._tokens = np.zeros(2)  # right and all

    def add(self, Y_true: Sequence[Any], Y_pred: Sequence[Any], sample_weight: Any = None) -> None:
        numbers = self._alphabet.numbered(Y_true, "Y_true"), self._alphabet.numbered(Y_pred, "Y_pred")
        _check_lengths(*numbers)
        true, answered = (Marks(labels, self._alphabet) for labels in numbers)
        weight = _weights(sample_weight, true.length)
        kind, end = np.full((2, true.label.size), -1), np.full((2, true.label.size), -1)
        for side, marks in enumerate((true, answered)):
            start, stop = marks.segments()
            kind[side, start], end[side, start] = marks.type[start], stop
        found = kind >= 0
        right = found[0] & (kind[0] == kind[1]) & (end[0] == end[1])
        more = len(self._alphabet.types) - self._counts.shape[1]
        self._counts = np.pad(self._counts, ((0, 0), (0, more)))
        for row, side, here in zip(range(3), (0, 1, 0), (*found, right), strict=True):
            self._counts[row] += np.bincount(kind[side, here], weight[here], self._counts.shape[1])
        inner = true.label >= 0
        self._tokens += weight[inner] @ (true.label == answered.label)[inner], weight[inner].sum()

    def scores(self) -> SegmentScores:
        counts = {name: self._counts[:, k] for name, k in sorted(self._alphabet.types.items())}
        by_type = {name: _score(*count) for name, count in counts.items() if count[:2].any()}
        listed = list(by_type.values())
        micro = _score(*self._counts.sum(axis=1))
        return SegmentScores(
            by_type,
            micro,
            macro=_mean(listed, None, micro.support),
            weighted=_mean(listed, [score.support for score in listed], micro.support),
            accuracy=_ratio(*self._tokens),
        )


def _check_lengths(true: Sequence[Any], answered: Sequence[Any]) -> None:
    if len(true) != len(answered):
        raise ValueError(f"Y_true has {len(true)} sequences, Y_pred has {len(answered)}. Give one answer for each.")
    i = next((i for i, (y, z) in enumerate(zip(true, answered, strict=True)) if len(y) != len(z)), None)
    if i is not None:
        raise ValueError(
            f"Y_true[{i}] has {len(true[i])} labels, Y_pred[{i}] has {len(answered[i])}. Give one for each token."
        )


def _weights(given: Any, length: np.ndarray) -> np.ndarray:
    """The weight of each label, of those that part sequences too."""
    weight = np.ones(length.size) if given is None else np.asarray(given, dtype=np.float64)
    if weight.shape != length.shape:
        raise ValueError(
            f"sample_weight has shape {weight.shape}, there are {length.size} sequences. Give one for each."
        )
    return np.concatenate([[0.0], np.repeat(weight, length + 1)])


def _score(true: float, answered: float, right: float) -> Score:
    support = int(true) if true == int(true) else float(true)
    return Score(_ratio(right, answered), _ratio(right, true), _ratio(2.0 * right, true + answered), support)


def _mean(scores: list[Score], weights: list[float] | None, support: float) -> Score:
    total = len(scores) if weights is None else sum(weights)
    parts = np.array([score[:3] for score in scores]).reshape(-1, 3)
    means = parts.T @ (np.ones(len(scores)) if weights is None else np.array(weights, dtype=np.float64))
    precision, recall, f1 = (_ratio(part, total) for part in means.tolist())
    return Score(precision, recall, f1, support)


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0

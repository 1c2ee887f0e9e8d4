"""What a tagger says of segments: where those of its answers are, and how many of them are right."""

from __future__ import annotations

from typing import Any

from ..data.sequences import Sequences
from ..metrics import SegmentScores, segment_scores, segments
from . import inputs
from .inputs import Column
from .sequence_data import as_pairs, check_lengths, plain
from .structured import Examples


class Segmenting:
    """Of taggers whose labels spell segments."""

    features: Any
    segments: str | None

    def predict_segments(self, X: Examples | Sequences) -> list[list[tuple[int, int, str]]]:
        """The segments of every sequence as (start, end, type), where ``end`` is the first token behind the segment.

        The tokens of a segment are ``x[start:end]``; its type is ``"_"`` where labels are B and I without a type.
        Without ``segments=`` labels may spell what no scheme allows; they are read as
        :func:`maxmargin.metrics.segments` reads them.
        """
        return segments(self.predict(X))  # type: ignore[attr-defined]

    def segment_scores(self, X: Examples, Y: Examples | None, sample_weight: Column = None) -> SegmentScores:
        """Precision, recall and F1 of the predicted segments, by type and on average, and the accuracy of tokens.

        True labels are read as the script of CoNLL-2000 reads them, also where they break the scheme: see
        :func:`maxmargin.metrics.segment_scores`, which counts.
        """
        X, Y = as_pairs(X, Y, self.features)
        prepared = self.prepare(X)  # type: ignore[attr-defined]
        check_lengths(prepared, Y)
        weights = inputs.check_weights(sample_weight, Y)
        return segment_scores([plain(y) for y in Y], self.predict(prepared), sample_weight=weights)  # type: ignore[attr-defined]

"""Which labels tokens in and around a segment have, so that a labelling has exactly that segment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..models.distribution import Span
from ..validation import shown


class SegmentLabels:
    """Segments (start, end, type) as masks of labels: a segment is there in one of a few cases that exclude each other.

    Labels such as B-PER and I-PER are read as the CoNLL tasks read them: an I without a segment of its type before it
    begins one. If labels with E- or S- occur, they are read as IOBES; without such prefixes a segment is a run of one
    label.

    >>> reader = SegmentLabels(["B-X", "I-X", "O"])
    >>> [(span.first, span.allowed.astype(int).tolist()) for span in reader.cases(0, 3, (0, 2, "X"))]
    [(0, [[1, 0, 0], [0, 1, 0], [1, 0, 1]]), (0, [[0, 1, 0], [0, 1, 0], [1, 0, 1]])]
    """

    def __init__(self, classes: Sequence[Any]) -> None:
        self._classes = classes
        parts = [_parts(label) for label in classes]
        self._prefixed = any(part is not None for part in parts) and all(
            part is not None or label == "O" for part, label in zip(parts, classes, strict=True)
        )
        self._iobes = self._prefixed and any(part is not None and part[0] in "ES" for part in parts)
        known = [part[1] for part in parts if part is not None] if self._prefixed else classes
        self.types = list(dict.fromkeys(known))

    def cases(self, sequence: int, n_tokens: int, segment: Any) -> list[Span]:
        """What to ask of labels; the probability of the segment is the sum over the cases."""
        start, end, kind = self._checked(sequence, n_tokens, segment)
        size = end - start
        if self._iobes:
            inner = [self._mask("S", kind)] if size == 1 else [self._mask("B", kind)]
            inner += [self._mask("I", kind)] * (size - 2) + [self._mask("E", kind)] * (size > 1)
            return [Span(sequence, start, np.array(inner))]
        begin, inside = (self._mask("B", kind), self._mask("I", kind)) if self._prefixed else (None, self._run(kind))
        behind = [inside] * (size - 1) + [~inside] * (end < n_tokens)
        cases = [] if begin is None else [Span(sequence, start, np.array([begin, *behind]))]
        before = [~(inside if begin is None else inside | begin)] * (start > 0)
        return [*cases, Span(sequence, start - len(before), np.array([*before, inside, *behind]))]

    def _run(self, kind: Any) -> np.ndarray:
        return np.array([label == kind for label in self._classes])

    def _mask(self, prefix: str, kind: str) -> np.ndarray:
        return np.array([_parts(label) == (prefix, kind) for label in self._classes])

    def _checked(self, sequence: int, n_tokens: int, segment: Any) -> tuple[int, int, Any]:
        whole = isinstance(segment, list | tuple) and len(segment) == 3
        if not whole or not all(isinstance(place, int | np.integer) for place in segment[:2]):
            raise ValueError(
                f"segments[{sequence}] has {shown(segment)}. A segment is (start, end, type): its first token, the "
                "token behind its last, and its type."
            )
        start, end, kind = segment
        if not 0 <= start < end <= n_tokens:
            raise ValueError(
                f"segments[{sequence}] has {shown(segment)}, but the sequence has {n_tokens} tokens: 0 <= start < end "
                f"<= {n_tokens} is needed."
            )
        kind = "" if kind is None and self._prefixed else kind
        if kind not in self.types:
            raise ValueError(
                f"segments[{sequence}] has {shown(segment)}, of a type that no label has. Types are "
                f"{shown(self.types)}."
            )
        return int(start), int(end), kind


def _parts(label: Any) -> tuple[str, str] | None:
    """The prefix and the type of a label such as B-PER, or B alone; None of others."""
    if not isinstance(label, str) or label[:1] not in ("B", "I", "E", "S") or label[1:2] not in ("", "-"):
        return None
    return label[0], label[2:]

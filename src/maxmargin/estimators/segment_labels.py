"""Which labels tokens in and around a segment have, so that a labelling has exactly that segment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np

from ..models.distribution import Span
from ..validation import shown

_LABEL = re.compile(r"(?:O|([BIMELSUW])(?:-(.+))?)", re.DOTALL)
_ROLES = {"B": "B", "I": "I", "M": "I", "E": "E", "L": "E", "S": "S", "U": "S", "W": "S"}


def listed(sequence: int, segments: Any) -> list[Any]:
    """The segments of one sequence."""
    if not isinstance(segments, Iterable) or isinstance(segments, str):
        raise ValueError(
            f"segments[{sequence}] must be a list of (start, end, type), one for each segment of that sequence; got "
            f"{shown(segments)}."
        )
    return list(segments)


class SegmentLabels:
    """Segments (start, end, type) as masks of labels: a segment is there in one of a few cases that exclude each other.

    Labels such as B-PER are read as the script of CoNLL-2000 does: what is not outside belongs to a segment, which goes
    on from B or I to I or E of its type. Labels without such prefixes spell segments as runs of one label.

    >>> reader = SegmentLabels(["B-X", "I-X", "O"])
    >>> [(span.first, span.allowed.astype(int).tolist()) for span in reader.cases(0, 3, (0, 2, "X"))]
    [(0, [[1, 0, 0], [0, 1, 0], [1, 0, 1]]), (0, [[0, 1, 0], [0, 1, 0], [1, 0, 1]])]
    """

    def __init__(self, classes: Sequence[Any]) -> None:
        found = [_LABEL.fullmatch(label) if isinstance(label, str) else None for label in classes]
        if all(found):
            self._roles = [_ROLES.get(match[1] or "") for match in found if match]
            self._types: list[Any] = [(match[2] or "_") if match[1] else None for match in found if match]
        else:
            self._roles, self._types = ["I"] * len(classes), list(classes)
        self.types = [kind for kind in dict.fromkeys(self._types) if kind is not None]

    def cases(self, sequence: int, n_tokens: int, segment: Any) -> list[Span]:
        """What to ask of labels; the probability of the segment is the sum over the cases."""
        start, end, kind = self._checked(sequence, n_tokens, segment)
        begins = [(None, self._mask("BS", kind)), (~self._mask("BI", kind), self._mask("IE", kind))]
        ends = [(self._mask("ES", kind), None), (self._mask("BI", kind), ~self._mask("IE", kind))]
        cases = []
        for (before, first), (last, behind) in product(begins, ends):
            inner = [self._mask("I", kind)] * (end - start)
            if len(inner) == 1:
                inner[0] = first & last
            else:
                inner[0], inner[-1] = first & self._mask("BI", kind), last & self._mask("IE", kind)
            left = [before] if before is not None and start > 0 else []
            right = [behind] if behind is not None and end < n_tokens else []
            masks = np.array([*left, *inner, *right])
            if masks.any(axis=1).all():
                cases.append(Span(sequence, start - len(left), masks))
        return cases

    def _mask(self, roles: str, kind: Any) -> np.ndarray:
        return np.array(
            [
                of == kind and role is not None and role in roles
                for role, of in zip(self._roles, self._types, strict=True)
            ]
        )

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
        if kind not in self.types:
            raise ValueError(
                f"segments[{sequence}] has {shown(segment)}, of a type that no label has. Types are "
                f"{shown(self.types)}."
            )
        return int(start), int(end), kind

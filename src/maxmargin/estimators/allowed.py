"""Which labels may begin a sequence, follow each other and end it: what the settings of a tagger say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.segments import check_scheme, forbidden, scheme_of
from ..data.transitions import first_fault
from ..validation import shown
from .sequence_data import is_known, label_numbers, plain
from .structured import Examples

Tables = dict[str, Any]
"""What is forbidden, as arguments of ``Chain``: pairs, and labels at the start and the end."""

_SPELLING = (
    "pairs of labels such as [('A', 'B')], with None for the start and the end of a sequence: (None, 'A'), ('B', None)"
)


@dataclass(frozen=True)
class Allowed:
    """The settings ``allowed_transitions`` and ``segments`` of a SequenceSVM."""

    transitions: Any
    segments: str | None

    @property
    def observed(self) -> bool:
        return isinstance(self.transitions, str) and self.transitions == "observed"

    def check(self) -> None:
        """Complain of settings that make no sense, before any data is seen."""
        self._listed()
        scheme_of(self.segments, "segments")

    def check_labels(self, Y: Examples) -> None:
        """Refuse true labels that are not spelled as ``segments`` says."""
        if self.segments is not None:
            check_scheme([plain(y) for y in Y], self.segments)

    def tables(self, labels: list[np.ndarray], classes: np.ndarray) -> Tables:
        """What is forbidden; ``labels`` are the true ones, as numbers."""
        tables: Tables = {"forbidden": None, "forbidden_start": None, "forbidden_end": None}
        if self.observed:
            pairs = np.ones((len(classes), len(classes)), bool)
            for y in labels:
                pairs[y[:-1], y[1:]] = False
            tables["forbidden"] = pairs
        elif self.transitions is not None:
            tables = self._of_list(classes)
            _check_listed(labels, classes.tolist(), tables)
        if self.segments is None:
            return tables
        by_scheme = forbidden(classes.tolist(), self.segments)
        return {k: by_scheme[k] if table is None else by_scheme[k] | table for k, table in tables.items()}

    def _of_list(self, classes: np.ndarray) -> Tables:
        """Where None is never the first of a pair, any label may begin a sequence; likewise at the end."""
        K = len(classes)
        number = {**label_numbers(classes), None: K}
        table = np.ones((K + 1, K + 1), bool)
        for a, b in self._listed():
            if not (is_known(a, number) and is_known(b, number)):
                raise ValueError(
                    f"allowed_transitions names {(a, b)!r}; the labels are {shown(classes.tolist())}, and None stands "
                    "for the start or the end of a sequence."
                )
            table[number[a], number[b]] = False
        starts, ends = table[K, :K], table[:K, K]
        return {
            "forbidden": table[:K, :K].copy(),
            "forbidden_start": None if starts.all() else starts.copy(),
            "forbidden_end": None if ends.all() else ends.copy(),
        }

    def _listed(self) -> list[Any]:
        """The pairs of ``allowed_transitions``, where they are listed."""
        if self.transitions is None or self.observed:
            return []
        given = self.transitions
        if isinstance(given, Iterator):
            raise ValueError(
                f"allowed_transitions is a {type(given).__name__}, which can be gone through only once, and every fit "
                f"does. Give a list of {_SPELLING}."
            )
        pairs = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
        wrong = next((pair for pair in pairs if not _is_pair(pair)), None)
        if wrong is not None:
            raise ValueError(f"allowed_transitions must be None, 'observed' or {_SPELLING}; got {shown(wrong)}.")
        return pairs


def _is_pair(pair: object) -> bool:
    return isinstance(pair, list | tuple) and len(pair) == 2 and any(label is not None for label in pair)


def _check_listed(labels: list[np.ndarray], names: list[Any], tables: Tables) -> None:
    """Refuse true labels of which the list has a pair, start or end not."""
    first, flat = np.cumsum([0, *map(len, labels)]), np.concatenate([np.empty(0, np.int32), *labels])
    fault = first_fault(first, flat, len(names), *tables.values())
    if fault is None:
        return
    i, t, *pair = fault
    a, b = (None if k is None else names[k] for k in pair)
    if pair[0] is None:
        said = f"{b!r} as its first label"
    else:
        said = f"{a!r} as its last label" if pair[1] is None else f"{a!r} followed by {b!r} at token {t}"
    raise ValueError(
        f"Sequence {i} has {said}, which allowed_transitions does not allow. Add the pair {(a, b)!r}, or mend the "
        "labels."
    )

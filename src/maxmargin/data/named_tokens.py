"""Tokens with named features from templates, and the table that numbers these features without forming their names."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from ..kernels import templates as kernels
from .sequences import Sequences
from .templates import Column


class Template(NamedTuple):
    """Features "name=value" of the values of a column: at the token alone, or around it in a window."""

    name: str
    window: int | None = None
    pairs: bool = False
    """Whether neighbouring values in the window make features, too."""

    def singles(self) -> list[tuple[str, int]]:
        """What values are called, and how many tokens further on they stand."""
        if self.window is None:
            return [(self.name, 0)]
        return [(f"{self.name}[{by}]", by) for by in range(-self.window, self.window + 1)]

    def doubles(self) -> list[tuple[str, int]]:
        """The same of pairs; the place is that of the first value."""
        near = self.singles() if self.pairs else []
        return [(f"{near[k][0]}|{near[k + 1][0]}", near[k][1]) for k in range(len(near) - 1)]


class Slot(NamedTuple):
    """Where the features of one template at one place are found: in the table, from the numbers of a row."""

    row: int
    by: int
    """How many tokens further on to look in the row."""
    start: int
    """The feature of number k is in the table at start + stride·k."""
    stride: int = 1


@dataclass(frozen=True)
class NamedTokens:
    """Sequences of tokens that have named features of value 1, from templates.

    >>> words = Column(np.array([2, 0, 1, 3]), ["the", "old", "<s>", "</s>"])
    >>> x = NamedTokens((Template("word", window=1),), [words], np.array([1, 2]), np.array([0, 2]))
    >>> len(x), x[0][1]
    (1, ['word[-1]=the', 'word[0]=old', 'word[1]=</s>'])
    """

    templates: tuple[Template, ...]
    columns: list[Column]
    """The values of each template: of all tokens, and of what stands around sequences."""
    at: np.ndarray
    """The places of the tokens in the columns."""
    offsets: np.ndarray
    """Where sequences begin, and the last one ends."""

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, i: int) -> list[list[str]]:
        i = range(len(self))[i]
        return [list(self._names_at(at)) for at in self.at[self.offsets[i] : self.offsets[i + 1]].tolist()]

    def _names_at(self, at: int) -> Iterator[str]:
        for template, (number, values) in zip(self.templates, self.columns, strict=True):
            for head, by in template.singles():
                value = values[number[at + by]]
                if value is not None:
                    yield f"{head}={value}"
            for head, by in template.doubles():
                yield f"{head}={values[number[at + by]]}|{values[number[at + by + 1]]}"

    def learned(self, number: dict[str, int]) -> Sequences:
        """The features by their numbers; names that have none yet get the next ones."""
        rows: list[np.ndarray] = []
        slots, tables, size = [], [], 0
        for row, n_values, by, names in self._features():
            if not rows or row is not rows[-1]:
                rows.append(row)
            table = np.full(n_values, -1, np.int32)
            table[list(names)] = [number.setdefault(name, len(number)) for name in names.values()]
            tables.append(table)
            slots.append(Slot(len(rows) - 1, by, size))
            size += n_values
        return self.numbered(rows, slots, np.concatenate(tables), len(number))

    def _features(self) -> Iterator[tuple[np.ndarray, int, int, dict[int, str]]]:
        """What there is of every template at every place: numbers of values or pairs, how many of them there are, how
        many tokens further on to look, and the names of the features that occur."""
        for template, (number, values) in zip(self.templates, self.columns, strict=True):
            n = len(values)
            for head, by in template.singles():
                met = np.unique(number[self.at + by]).tolist()
                yield number, n, by, {k: f"{head}={values[k]}" for k in met if values[k] is not None}
            if not template.doubles():
                continue
            pairs, place = np.unique(number[:-1] * n + number[1:], return_inverse=True)
            place = np.append(place, 0)  # no pair begins at the end
            for head, by in template.doubles():
                met = np.unique(place[self.at + by])
                parts = (part.tolist() for part in (met, *np.divmod(pairs[met], n)))
                found = {k: f"{head}={values[a]}|{values[b]}" for k, a, b in zip(*parts, strict=True)}
                yield place, pairs.size, by, found

    def numbered(self, rows: list[np.ndarray], slots: list[Slot], table: np.ndarray, n_features: int) -> Sequences:
        """The features that slots have in a table, by the numbers in rows."""
        indptr = np.zeros(self.at.size + 1, np.int64)
        indices = np.empty(self.at.size * len(slots) + 1, np.int32)
        n = kernels.number_features(
            self.at, np.array(rows, np.int32), np.array(slots, np.int64), table, indptr, indices
        )
        return Sequences(indptr, indices[:n], np.ones(n, np.float32), self.offsets, n_features)


class TemplateTable:
    """Numbers of features by numbers of values: names are read once, and none is formed again.

    >>> table = TemplateTable((Template("word", 1),), ["word[0]=old", "word[-1]=the"])
    >>> words = Column(np.array([2, 0, 1, 3]), ["the", "old", "<s>", "</s>"])
    >>> table.encode(NamedTokens(table.templates, [words], np.array([1, 2]), np.array([0, 2])))[0].toarray().tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """

    def __init__(self, templates: tuple[Template, ...], names: Collection[Any]) -> None:
        self.templates = templates
        self._n_features = len(names)
        self._known: list[_Known] = []
        self._slots: list[Slot] = []
        tables: list[np.ndarray] = []
        places = [(template.singles(), template.doubles()) for template in templates]
        named = _by_head(names, [head for pair in places for of in pair for head, _ in of])
        row = size = 0
        for pair in places:
            known = _Known(*([named[head] for head, _ in of] for of in pair))
            self._known.append(known)
            for of, table in zip(pair, (known.table, known.table_of_pairs), strict=True):
                self._slots += [Slot(row, by, size + s, len(of)) for s, (_, by) in enumerate(of)]
                tables.append(table.ravel())
                row += len(of) > 0
                size += table.size
        self._table = np.concatenate(tables)

    def encode(self, X: NamedTokens) -> Sequences:
        """The features of tokens; those that no name speaks of are left out."""
        rows = []
        for template, (number, values), known in zip(self.templates, X.columns, self._known, strict=True):
            rows.append(known.numbers(values)[number])
            if template.doubles():
                rows.append(kernels.find_pairs(rows[-1], known.first, known.second))
        return X.numbered(rows, self._slots, self._table, self._n_features)


_Named = tuple[list[str], list[int]]


def _by_head(names: Collection[Any], heads: list[str]) -> dict[str, _Named]:
    """What stands behind "head=" in the names that begin so, and the numbers of these names."""
    found: dict[str, _Named] = {head: ([], []) for head in heads}
    texts = [(feature, name) for feature, name in enumerate(names) if isinstance(name, str)]
    for feature, name in texts:
        head, _, value = name.partition("=")
        if head in found:
            values, features = found[head]
            values.append(value)
            features.append(feature)
    for head in (head for head in found if "=" in head):
        named = [(name[len(head) + 1 :], feature) for feature, name in texts if name.startswith(f"{head}=")]
        found[head] = [value for value, _ in named], [feature for _, feature in named]
    return found


class _Known:
    """Numbers for the values that names of one template speak of, and for pairs of them; their features by slot."""

    def __init__(self, singles: list[_Named], doubles: list[_Named]) -> None:
        number: dict[str | None, int] = {}
        keys: list[int] = []
        for values, _ in singles:
            keys += [number.setdefault(value, len(number)) for value in values]
        halves = [_halves(*named) for named in doubles]
        pairs: list[int] = []
        for firsts, seconds, _ in halves:
            for a, b in zip(firsts, seconds, strict=True):
                pairs.append(number.setdefault(a, len(number)) << 32 | number.setdefault(b, len(number)))
        known, place = np.unique(np.array(pairs, np.int64), return_inverse=True)
        self._number = number
        self.table = _table(len(number), np.array(keys, np.int64), [features for _, features in singles])
        self.table_of_pairs = _table(known.size, place, [features for _, _, features in halves])
        self.first = np.searchsorted(known >> 32, np.arange(len(number) + 2))
        self.second = known & 0xFFFFFFFF

    def numbers(self, values: list[str | None]) -> np.ndarray:
        """The number of each value, one more than all of them for those that are not known."""
        return np.fromiter(map(self._number.get, values, repeat(len(self._number))), np.int32, len(values))


def _halves(texts: list[str], features: list[int]) -> tuple[list[str], list[str], list[int]]:
    """First and second values of pairs, and their features; text that is of several pairs ("a|b|c") is of each."""
    firsts, seconds, found = [], [], []
    for text, feature in zip(texts, features, strict=True):
        at = text.find("|")
        while at >= 0:
            firsts.append(text[:at])
            seconds.append(text[at + 1 :])
            found.append(feature)
            at = text.find("|", at + 1)
    return firsts, seconds, found


def _table(n: int, keys: np.ndarray, features: list[list[int]]) -> np.ndarray:
    """Features by key and slot, given slot by slot; the last row is for what is not known."""
    table = np.full((n + 1, len(features)), -1, np.int32)
    slot = np.repeat(np.arange(len(features)), [len(each) for each in features])
    table[keys, slot] = [feature for each in features for feature in each]
    return table

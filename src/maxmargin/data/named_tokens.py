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
    lengths: tuple[int, ...] = (1,)
    """1 for the values themselves, 2 and 3 for pairs and triples of neighbours, one of which is the token."""
    affix: int = 0
    """How many first characters of the values of the first template count, or for negative numbers last ones."""

    def places(self, length: int) -> list[tuple[str, int]]:
        """What values, or runs of so many, are called, and how many tokens further on they begin."""
        if length not in self.lengths:
            return []
        if self.window is None:
            return [(self.name, 0)]
        inside = range(-self.window, self.window + 2 - length)
        begins = [by for by in inside if length == 1 or by <= 0 < by + length]
        return [("|".join(f"{self.name}[{k}]" for k in range(by, by + length)), by) for by in begins]

    def of(self, values: list[Any]) -> list[Any]:
        """What counts of values: all, or their affixes, which values may be too short to have."""
        k = self.affix
        if k > 0:
            return [value[:k] if len(value) >= k else None for value in values]
        return [value[k:] if len(value) >= -k else None for value in values] if k else values


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
            for length in template.lengths:
                for head, by in template.places(length):
                    run = template.of([values[k] for k in number[at + by : at + by + length].tolist()])
                    if None not in run:
                        yield f"{head}={'|'.join(run)}"

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
        """What there is of every template at every place: numbers of values or of runs, how many of them there are, how
        many tokens further on to look, and the names of the features that occur."""
        for template, (number, values) in zip(self.templates, self.columns, strict=True):
            row, texts, last = number, template.of(values), values  # numbers of runs, their texts and last values
            for length in range(1, max(template.lengths) + 1):
                if length > 1:
                    keys, row = np.unique(row[:-1] * len(texts) + row[1:], return_inverse=True)
                    row = np.append(row, 0)  # nothing begins at the end
                    begin, end = (part.tolist() for part in np.divmod(keys, len(texts)))
                    texts = [f"{texts[a]}|{last[b]}" for a, b in zip(begin, end, strict=True)]
                    last = [last[b] for b in end]
                for head, by in template.places(length):
                    met = np.unique(row[self.at + by]).tolist()
                    yield row, len(texts), by, {k: f"{head}={texts[k]}" for k in met if texts[k] is not None}

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
        named = _by_head(
            names, [head for template in templates for n in template.lengths for head, _ in template.places(n)]
        )
        row = size = 0
        for template in templates:
            places = [template.places(length) for length in range(1, max(template.lengths) + 1)]
            self._known.append(_Known([[named[head] for head, _ in each] for each in places]))
            for each, table in zip(places, self._known[-1].tables, strict=True):
                self._slots += [Slot(row, by, size + s, len(each)) for s, (_, by) in enumerate(each)]
                tables.append(table.ravel())
                row += 1
                size += table.size
        words = [*self._known[0].values(), ""]  # the last one stands for all that is not known
        self._affixes = [
            known.numbers(template.of(words)) for template, known in zip(templates, self._known, strict=True)
        ]
        self._table = np.concatenate(tables)

    def encode(self, X: NamedTokens) -> Sequences:
        """The features of tokens; those that no name speaks of are left out."""
        rows = []
        words = self._known[0].numbers(X.columns[0].values)
        new = np.flatnonzero(words == len(self._known[0].values()))
        new_words = [X.columns[0].values[k] for k in new.tolist()]
        for template, (number, values), known, affixes in zip(
            self.templates, X.columns, self._known, self._affixes, strict=True
        ):
            if template.affix:
                numbers = affixes[words]
                numbers[new] = known.numbers(template.of(new_words))
            else:
                numbers = known.numbers(values)
            rows.append(numbers[number])
            for first, second in known.runs:
                rows.append(kernels.find_pairs(rows[-1], first, second))
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
    """Numbers for the values of a template that names speak of, and for runs of them; their features by slot.

    A run of two values has the number of a pair of numbers, one of three that of a pair of runs of two.
    """

    def __init__(self, named: list[list[_Named]]) -> None:
        """``named`` has what stands in names: for each length of runs, by slot."""
        self._number: dict[str | None, int] = {}
        for texts, _ in named[0]:
            for text in texts:
                self._number.setdefault(text, len(self._number))
        read = [self._read(slots, length) for length, slots in enumerate(named, 1)]
        numbers = [np.array(values, np.int64).reshape(-1, length) for length, (values, _, _) in enumerate(read, 1)]
        n = len(self._number)
        self.runs: list[tuple[np.ndarray, np.ndarray]] = []
        self.tables: list[np.ndarray] = []
        for length, (slots, (_, slot, features)) in enumerate(zip(named, read, strict=True), 1):
            if length > 1:
                pairs = [values[:, :-1] << 32 | values[:, 1:] for values in numbers]
                known = np.unique(np.concatenate([each.ravel() for each in pairs]))
                numbers = [np.searchsorted(known, each) for each in pairs]
                self.runs.append((np.searchsorted(known >> 32, np.arange(n + 2)), known & 0xFFFFFFFF))
                n = known.size
            table = np.full((n + 1, len(slots)), -1, np.int32)  # the last row is for what is not known
            table[numbers.pop(0)[:, 0], slot] = features
            self.tables.append(table)

    def _read(self, slots: list[_Named], length: int) -> tuple[list[int], list[int], list[int]]:
        """Runs of so many values, one after another, and their slots and features."""
        numbers: list[int] = []
        slot: list[int] = []
        features: list[int] = []
        for s, (texts, numbered) in enumerate(slots):
            for text, feature in zip(texts, numbered, strict=True):
                for run in self._cuts(text, length):
                    numbers += run
                    slot.append(s)
                    features.append(feature)
        return numbers, slot, features

    def _cuts(self, text: str, length: int) -> list[list[int]]:
        """All ways to read text as a run of values that have names of their own: "a|b|c" may be two pairs."""
        if length == 1:
            return [[self._number[text]]] if text in self._number else []
        found = []
        at = text.find("|")
        while at >= 0:
            if text[:at] in self._number:
                found += [[self._number[text[:at]], *rest] for rest in self._cuts(text[at + 1 :], length - 1)]
            at = text.find("|", at + 1)
        return found

    def values(self) -> Collection[Any]:
        """All that have numbers, in their order."""
        return self._number.keys()

    def numbers(self, values: list[str | None]) -> np.ndarray:
        """The number of each value, one more than all of them for those that are not known."""
        return np.fromiter(map(self._number.get, values, repeat(len(self._number))), np.int32, len(values))

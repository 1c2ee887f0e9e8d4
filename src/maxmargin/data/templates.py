"""Features of tokens from templates: words around it, affixes, shapes, tags. Each distinct value counts once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any

import numpy as np

from ..validation import shown
from .attributes import NamedTokens

_BEFORE, _AFTER = "<s>", "</s>"  # what stands around a sentence


@dataclass(frozen=True)
class Column:
    """Values of all tokens, as numbers of the distinct ones; −1 where a token has none."""

    number: np.ndarray
    values: list[str]

    @classmethod
    def of(cls, values: Iterable[Any], count: int) -> Column:
        numbers: defaultdict[Any, int] = defaultdict(None)
        numbers.default_factory = numbers.__len__
        return cls(np.fromiter(map(numbers.__getitem__, values), np.int64, count), list(numbers))

    def map(self, function: Callable[[str], str | None]) -> Column:
        """The values of a function of each value, which has none where the function returns none."""
        numbers: dict[str, int] = {}
        found = [-1 if (v := function(value)) is None else numbers.setdefault(v, len(numbers)) for value in self.values]
        return Column(np.array([*found, -1])[self.number], list(numbers))

    def shifted(self, by: int, place: np.ndarray, size: np.ndarray) -> Column:
        """The values ``by`` tokens further on in the sentence; ``place`` and ``size`` are those of each token in it."""
        if by == 0:
            return self
        other = place + by
        inside = (other >= 0) & (other < size)
        outside = len(self.values) + (by > 0)
        at = np.clip(np.arange(place.size) + by, 0, place.size - 1)
        return Column(np.where(inside, self.number[at], outside), [*self.values, _BEFORE, _AFTER])

    def joined(self, other: Column) -> Column:
        """Pairs of the values of both, where both have one."""
        both = (self.number >= 0) & (other.number >= 0)
        keys, found = np.unique((self.number * len(other.values) + other.number)[both], return_inverse=True)
        number = np.full(self.number.size, -1)
        number[both] = found
        pairs = zip(*np.divmod(keys, len(other.values)), strict=True)
        return Column(number, [f"{self.values[a]}|{other.values[b]}" for a, b in pairs])


def word_shape(word: str) -> str:
    """Capitals, small letters and digits as X, x and d, runs collapsed.

    >>> word_shape("McDonald's-1984")
    "XxXx'x-d"
    """
    return "".join(symbol for symbol, _ in groupby(map(_symbol, word)))


def _symbol(letter: str) -> str:
    return "X" if letter.isupper() else "x" if letter.islower() else "d" if letter.isdigit() else letter


def encoded(columns: Iterable[tuple[str, Column]], offsets: np.ndarray) -> NamedTokens:
    """The features "name=value" of all tokens, from named columns."""
    names: list[str] = []
    table = []
    for name, column in columns:
        used = np.flatnonzero(np.bincount(column.number[column.number >= 0], minlength=1))
        place = np.full(len(column.values) + 1, -1)
        place[used] = len(names) + np.arange(used.size)
        table.append(place[column.number])
        names += [f"{name}={column.values[k]}" for k in used.tolist()] if column.values else []
    numbers = np.stack(table, axis=1) if table else np.empty((int(offsets[-1]), 0), np.int64)
    present = numbers >= 0
    return NamedTokens(names, numbers[present], present.sum(axis=1), offsets)


def columns_of(X: Sequence[Any], names: Sequence[str] | None) -> tuple[dict[str, Column], np.ndarray]:
    """The columns of tokens that are words, tuples or dicts, by name, and the offsets of the sentences."""
    stranger = next((i for i, x in enumerate(X) if isinstance(x, str) or not isinstance(x, Sized)), None)
    if stranger is not None:
        raise ValueError(
            f"Sequence {stranger} must be a list of tokens, got {shown(X[stranger])}. Split it into words."
        )
    offsets = np.concatenate([[0], np.cumsum([len(x) for x in X])]).astype(np.int64)
    tokens = list(chain.from_iterable(X))
    known = list(names or _names(tokens[0] if tokens else ""))
    rows = tokens if tokens and isinstance(tokens[0], tuple) else [_row(token, known) for token in tokens]
    try:
        table = list(zip(*rows, strict=True)) or [()] * len(known)
        columns = [Column.of(values, len(rows)) for values in table]
    except (TypeError, ValueError):  # rows of other lengths, or of what is not hashable
        columns = []
    if len(columns) != len(known) or not all(isinstance(v, str) for column in columns for v in column.values):
        bad = next(
            t for t, row in enumerate(rows) if len(row) != len(known) or not all(isinstance(v, str) for v in row)
        )
        i = int(np.searchsorted(offsets, bad, side="right")) - 1
        raise ValueError(
            f"Sequence {i}, token {bad - offsets[i]}: got {shown(tokens[bad])}. Every token needs text for "
            f"{' and '.join(known)}: a word, a tuple of columns, or a dict of them; columns= names them."
        )
    return dict(zip(known, columns, strict=True)), offsets


def _names(token: Any) -> Iterable[str]:
    """What columns are called if nothing is said."""
    if isinstance(token, str):
        return ["word"]
    return token if isinstance(token, dict) else ["word", *(f"column{k}" for k in range(1, len(token)))]


def _row(token: Any, names: list[str]) -> tuple[Any, ...]:
    if isinstance(token, dict):
        return tuple(map(token.get, names))
    return tuple(token) if isinstance(token, list | tuple) else (token,)


def phrases(words: Column, listed: Iterable[str], lowercase: bool, place: np.ndarray, size: np.ndarray) -> Column:
    """B and I where words begin and continue one of the phrases, the longest one; none elsewhere."""
    longest: defaultdict[str, list[list[str]]] = defaultdict(list)
    for phrase in listed:
        parts = (phrase.lower() if lowercase else phrase).split()
        if parts:
            longest[parts[0]].append(parts)
    values = [value.lower() for value in words.values] if lowercase else words.values
    begins = np.array([value in longest for value in values], bool)[words.number]
    found = np.full(words.number.size, -1)
    end = 0  # of the last phrase
    for t in np.flatnonzero(begins).tolist():
        for parts in sorted(longest[values[words.number[t]]], key=len, reverse=True) if t >= end else ():
            last = t + len(parts)
            if place[t] + len(parts) <= size[t] and [values[k] for k in words.number[t:last].tolist()] == parts:
                found[t], found[t + 1 : last], end = 0, 1, last
                break
    return Column(found, ["B", "I"])

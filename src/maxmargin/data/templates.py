"""Columns of tokens that templates are made of: words, affixes, shapes, tags. Each distinct value is looked at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence, Sized
from itertools import chain, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..validation import shown

_BEFORE, _AFTER = "<s>", "</s>"  # what stands around a sentence


class Column(NamedTuple):
    """Values of tokens, by numbers in a list; None where a token has none."""

    number: np.ndarray
    values: list[Any]

    @classmethod
    def of(cls, values: Iterable[Any], count: int) -> Column:
        numbers: defaultdict[Any, int] = defaultdict(None)
        numbers.default_factory = numbers.__len__
        return cls(np.fromiter(map(numbers.__getitem__, values), np.int64, count), list(numbers))


class Margins:
    """Room for some tokens before and after each sentence, where columns have values of their own."""

    def __init__(self, offsets: np.ndarray, width: int) -> None:
        self._size = int(offsets[-1]) + 2 * width * (offsets.size - 1)
        around = 2 * width * np.arange(offsets.size - 1)
        self._before = np.add.outer(offsets[:-1] + around, np.arange(width))
        self.at = np.arange(offsets[-1]) + np.repeat(around + width, np.diff(offsets))
        """The places of tokens."""

    def around(self, column: Column) -> Column:
        number = np.full(self._size, len(column.values) + 1)
        number[self._before] = len(column.values)
        number[self.at] = column.number
        return Column(number, [*column.values, _BEFORE, _AFTER])


def word_shapes(words: list[str]) -> list[str]:
    """Capitals, small letters and digits as X, x and d, runs collapsed.

    >>> word_shapes(["McDonald's-1984", "NASA"])
    ["XxXx'x-d", 'X']
    """
    letters = np.frombuffer("".join(words).encode("utf-32-le", "surrogatepass"), np.uint32)
    symbol = np.zeros(int(letters.max(initial=0)) + 1, np.uint32)
    for letter in np.unique(letters).tolist():
        symbol[letter] = ord(_symbol(chr(letter)))
    symbols = symbol[letters]
    ends = np.cumsum([0, *map(len, words)])
    kept = np.append(True, symbols[1:] != symbols[:-1])[: symbols.size]
    kept[ends[ends < symbols.size]] = True
    ends = np.append(0, np.cumsum(kept))[ends]
    text = symbols[kept].tobytes().decode("utf-32-le", "surrogatepass")
    return [text[a:b] for a, b in pairwise(ends.tolist())]


def _symbol(letter: str) -> str:
    return "X" if letter.isupper() else "x" if letter.islower() else "d" if letter.isdigit() else letter


def columns_of(X: Any, names: Sequence[str] | None) -> tuple[dict[str, Column], np.ndarray]:
    """The columns of tokens that are words, tuples or dicts, by name, and the offsets of the sentences."""
    if sp.issparse(X) or getattr(getattr(X, "dtype", None), "kind", "O") in "biufc":
        raise ValueError(f"X must be a list of sequences of tokens with text, got a matrix of shape {X.shape}.")
    stranger = next((i for i, x in enumerate(X) if not _is_list(x)), None)
    if stranger is not None:
        raise ValueError(
            f"Sequence {stranger} must be a list of tokens, got {shown(X[stranger])}. Split it into words."
        )
    offsets = np.concatenate([[0], np.cumsum([len(x) for x in X])]).astype(np.int64)
    tokens = list(chain.from_iterable(X))
    known = list(names or _names(tokens[0] if tokens else ""))
    try:
        columns = [Column.of(values, len(tokens)) for values in _table(tokens, known)]
    except (TypeError, ValueError):  # rows of other lengths, or of what is not hashable
        columns = []
    if len(columns) != len(known) or not all(isinstance(v, str) for column in columns for v in column.values):
        rows = [_row(token, known) for token in tokens]
        bad = next(
            t for t, row in enumerate(rows) if len(row) != len(known) or not all(isinstance(v, str) for v in row)
        )
        i = int(np.searchsorted(offsets, bad, side="right")) - 1
        raise ValueError(
            f"Sequence {i}, token {bad - offsets[i]}: got {shown(tokens[bad])}. Every token needs text for "
            f"{' and '.join(known)}: a word, a tuple of columns, or a dict of them; columns= names them."
        )
    return dict(zip(known, columns, strict=True)), offsets


def _is_list(x: object) -> bool:
    return isinstance(x, Sized) and not isinstance(x, str | dict) and not sp.issparse(x)


def _names(token: Any) -> Iterable[str]:
    """What columns are called if nothing is said."""
    if isinstance(token, str):
        return ["word"]
    if isinstance(token, dict):
        return token
    return ["word", *(f"column{k}" for k in range(1, len(token) if isinstance(token, Sized) else 1))]


def _table(tokens: list[Any], names: list[str]) -> Sequence[Sequence[Any]]:
    """The columns of tokens."""
    kinds = set(map(type, tokens))
    if kinds == {str}:
        return [tokens]
    rows = tokens if kinds == {tuple} else [_row(token, names) for token in tokens]
    if set(map(len, rows)) - {len(names)}:
        raise ValueError
    return [list(map(itemgetter(k), rows)) for k in range(len(names))]


def _row(token: Any, names: list[str]) -> tuple[Any, ...]:
    if isinstance(token, dict):
        return tuple(map(token.get, names))
    return tuple(token) if isinstance(token, list | tuple) else (token,)


def phrases(words: Column, listed: Iterable[str], lowercase: bool, offsets: np.ndarray) -> Column:
    """B and I where words begin and continue one of the phrases, the longest one; none elsewhere."""
    longest: defaultdict[str, list[list[str]]] = defaultdict(list)
    for phrase in listed:
        parts = (phrase.lower() if lowercase else phrase).split()
        if parts:
            longest[parts[0]].append(parts)
    values = [value.lower() for value in words.values] if lowercase else words.values
    begins = np.array([value in longest for value in values], bool)[words.number]
    found = np.full(words.number.size, 2)
    end = 0  # of the last phrase
    stop = np.repeat(offsets[1:], np.diff(offsets))  # of the sentence
    for t in np.flatnonzero(begins).tolist():
        for parts in sorted(longest[values[words.number[t]]], key=len, reverse=True) if t >= end else ():
            last = t + len(parts)
            if last <= stop[t] and [values[k] for k in words.number[t:last].tolist()] == parts:
                found[t], found[t + 1 : last], end = 0, 1, last
                break
    return Column(found, ["B", "I", None])

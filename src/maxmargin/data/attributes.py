"""Named features of tokens, as taggers use them: from dicts, lists of strings or words to numbered sparse features."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from numbers import Real
from typing import Any

import numpy as np

from ..validation import as_float, shown
from .named_tokens import NamedTokens, TemplateTable
from .sequences import LARGEST, Sequences

_WORDS = ("word", "token", "form", "text", "w")  # what people call the feature that is the token itself


class Attributes:
    """Numbers for the names of features, given in the order in which they are first met.

    A token is a word, which is its one feature; or a list (or set) of names, each with the value 1; or a dict of names
    and values: numbers count as they are, ``True`` as 1, ``False`` and ``None`` not at all, text joins the name
    ("word=the"), and of a list each item does.

    >>> known = Attributes()
    >>> tokens = known.learn([[{"word": "the", "length": 3}, ["word=the", "last"]]])
    >>> list(known.names), tokens[0].toarray().tolist()
    (['word=the', 'length', 'last'], [[1.0, 3.0, 0.0], [1.0, 0.0, 1.0]])
    >>> Attributes().learn([["the", "old", "man"]])[0].toarray().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: dict[str, int] = {name: i for i, name in enumerate(names)}
        self._table: TemplateTable | None = None  # of these names, for the templates that were last encoded

    def __len__(self) -> int:
        return len(self.names)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_table": None}  # names say it all

    def learn(self, X: Sequence[Any] | NamedTokens) -> Sequences:
        """Encode sequences; names not met before get new numbers."""
        if isinstance(X, NamedTokens):
            self._table = None
            return X.learned(self.names)
        numbers: defaultdict[str, int] = defaultdict(None, self.names)
        numbers.default_factory = numbers.__len__
        encoded = _encode(X, numbers.__getitem__)
        self.names, self._table = dict(numbers), None
        return _finish(*encoded, len(self))

    def encode(self, X: Sequence[Any] | NamedTokens) -> Sequences:
        """Encode sequences; names never met have no weights and are left out."""
        names = self.names
        if isinstance(X, NamedTokens):
            if self._table is None or self._table.templates != X.templates:
                self._table = TemplateTable(X.templates, names)
            return self._table.encode(X)
        return _finish(
            *_encode(X, lambda name: names.get(name, -1), lambda flat: map(names.get, flat, repeat(-1))), len(self)
        )


def word_of(token: object) -> str:
    """The token itself where its features name it, the first text among them otherwise; nothing if there is none."""
    if isinstance(token, dict):
        token = [*(token.get(key) for key in _WORDS), *token.values()]
    texts = token if isinstance(token, list | tuple) else [token]
    return next((text for text in texts if isinstance(text, str)), "")


def names_of(X: Sequence[Any]) -> Iterator[Any]:
    """The names of features of sequences, token by token."""
    for token in chain.from_iterable(X):
        yield from (name for name, _ in _pairs((token,) if isinstance(token, str) else token))


def _encode(X: Sequence[Any], number: Any, numbers: Any = None) -> tuple[np.ndarray, Any, np.ndarray, np.ndarray]:
    """(numbers of all attributes, their values or None for ones, attributes per token, offsets of sequences)."""
    offsets = np.zeros(len(X) + 1, np.int64)
    tokens: list[Any] = []
    first: Any = None
    plain, words = True, False
    for i, sequence in enumerate(X):
        if isinstance(sequence, str):
            raise ValueError(
                f"Sequence {i} must be a list of tokens, got str: {shown(sequence, 60)}. Split it: "
                f"{shown(sequence, 60)}.split(). X is a list of sequences; one alone goes in as [x]."
            )
        if isinstance(sequence, dict) or not isinstance(sequence, Iterable):
            raise ValueError(
                f"Sequence {i} must be a list of tokens, got {type(sequence).__name__}: {str(sequence)[:60]!r}. X is "
                "a list of sequences; one alone goes in as [x]."
            )
        before = len(tokens)
        tokens.extend(sequence)
        offsets[i + 1] = len(tokens)
        if before == 0 and tokens:
            first, words = tokens[0], isinstance(tokens[0], str)
        for t in range(before, len(tokens)):
            token = tokens[t]
            if type(token) is list and not words:
                continue
            if not isinstance(token, _TOKENS) or isinstance(token, str) != words:
                raise ValueError(_stranger(i, t - before, token, first if t else None))
            if words:
                tokens[t] = (token,)
            elif isinstance(token, dict):
                plain = False
    if plain:
        sizes = np.fromiter(map(len, tokens), np.int64, len(tokens))
        flat = chain.from_iterable(tokens)
        found = map(number, flat) if numbers is None else numbers(flat)
        try:
            return np.fromiter(found, np.int64, int(sizes.sum())), None, sizes, offsets
        except TypeError as error:
            raise ValueError(
                f"Features in lists must be text or other hashable names ({error}). A token is one list or dict, "
                "a sequence a list of tokens; predict_single, k_best and explain take one sequence, predict a list."
            ) from None
    names: list[int] = []
    values: list[float] = []
    sizes = np.zeros(len(tokens), np.int64)
    for t, token in enumerate(tokens):
        before = len(names)
        try:
            for name, value in _pairs(token):
                names.append(number(name))
                values.append(value)
        except (TypeError, ValueError) as error:
            i = int(np.searchsorted(offsets, t, side="right")) - 1
            raise ValueError(f"Sequence {i}, token {t - offsets[i]}: {error}") from None
        sizes[t] = len(names) - before
    return np.array(names, np.int64), np.array(values), sizes, offsets


_TOKENS = (str, dict, list, tuple, set, frozenset)


def _stranger(i: int, t: int, token: object, first: object) -> str:
    """What to say of a token that is none, or not of the kind of the first one."""
    message = f"Sequence {i}, token {t}: got {type(token).__name__}: {shown(token, 60)}. "
    if first is None:
        return message + "A token is text, a dict or a list of features; or make each sequence a matrix of numbers."
    kind = "text" if isinstance(first, str) else "a dict" if isinstance(first, dict) else "a list of features"
    return message + f"Sequence 0 begins with {kind}, {shown(first, 60)}: all tokens must be of one kind."


def _pairs(token: Any) -> Iterator[tuple[Any, float]]:
    if not isinstance(token, dict):
        yield from zip(token, repeat(1.0), strict=False)
        return
    for name, value in token.items():
        if isinstance(value, str):
            yield f"{name}={value}", 1.0
        elif value is None or value is False:
            continue
        elif value is True:
            yield name, 1.0
        elif isinstance(value, Real):
            number = as_float(value)
            if not abs(number) <= LARGEST:  # nor is NaN
                raise ValueError(
                    f"feature {shown(name)} has the value {shown(value)}; values must be finite, and {LARGEST:g} at "
                    "most. Leave out what is missing, or give None; scale the rest."
                )
            yield name, number
        elif isinstance(value, list | tuple | set | frozenset):
            for item in value:
                yield f"{name}={item}", 1.0
        elif isinstance(value, np.bool_):
            if value:
                yield name, 1.0
        else:
            raise ValueError(
                f"feature {shown(name)} has a value of type {type(value).__name__}; use a number, text, a bool or a "
                "list."
            )


def _finish(numbers: np.ndarray, values: Any, sizes: np.ndarray, offsets: np.ndarray, n_features: int) -> Sequences:
    """Unknown attributes (−1) leave; the rest becomes one sparse matrix."""
    known = numbers >= 0
    if not known.all():
        token = np.repeat(np.arange(sizes.size), sizes)
        sizes = np.bincount(token[known], minlength=sizes.size)
        numbers = numbers[known]
        values = None if values is None else values[known]
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    stored = np.ones(numbers.size, np.float32) if values is None else values
    return Sequences(indptr, numbers.astype(np.int32), stored, offsets, n_features)

"""Sentences as columns of hashed values, and their dependency trees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from ..validation import shown
from .conll import Conll, Paths
from .errors import DataError
from .templates import columns_of

COLUMNS = ("word", "tag", "fine")
"""What tokens consist of: a word, a tag, and a finer one; at least the word."""
_SUFFIX = 3  # letters that stand for the tag where there is none
_AROUND = ("\0before", "\0root", "\0after")  # no token has such values


@dataclass(frozen=True)
class HashedSentences:
    """Sentences whose values are 64 bits: word p of sentence i is the column ``root[i] + p`` of ``keys``, p from 1 on.

    There is a row of keys for words, one for tags, and one for finer tags if there are any.
    """

    keys: np.ndarray
    root: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return self.root.size

    @classmethod
    def of(cls, X: Any, n_columns: int) -> HashedSentences:
        """Lists of tokens: words, or tuples of a word and its tags."""
        columns, offsets = columns_of(X, COLUMNS[:n_columns])
        root = offsets[:-1] + 3 * np.arange(len(X)) + 1
        places = np.arange(offsets[-1]) + np.repeat(3 * np.arange(len(X)) + 2, np.diff(offsets))
        words, *tags = columns.values()
        lower = [word.lower() for word in words.values]
        values = [(words.number, lower), *tags]
        if not tags:
            values.append((words.number, [word[-_SUFFIX:] for word in lower]))
        keys = np.empty((len(values), int(offsets[-1]) + 3 * len(X)), np.uint64)
        for row, (number, texts) in zip(keys, values, strict=True):
            before, at_root, after = map(_hashed, _AROUND)
            row[root - 1], row[root], row[root + np.diff(offsets) + 1] = before, at_root, after
            row[places] = np.array([_hashed(text) for text in texts], np.uint64)[number]
        return cls(keys, root, offsets)


def _hashed(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def n_columns(X: Sequence[Any]) -> int:
    """How many columns the first token has."""
    first: Any = next((x[0] for x in X if isinstance(x, Sized) and len(x)), "")  # type: ignore[index]
    n = 1 if isinstance(first, str) or not isinstance(first, Sized) else len(first)
    if not 1 <= n <= len(COLUMNS):
        raise ValueError(
            f"Tokens are words, or tuples of a word, its tag and a finer tag if there is one; got {shown(first)}."
        )
    return n


def relations_of(Y: Sequence[Any]) -> list[str]:
    """The names of all relations of some trees; none where these are heads alone."""
    found: set[str] = set()
    for i, y in enumerate(Y):
        for pair in y if isinstance(y, Iterable) else ():
            if isinstance(pair, tuple | list):
                if len(pair) != 2 or not isinstance(pair[1], str):
                    raise ValueError(f"Y[{i}] has {shown(pair)}. A token needs its head and the name of its relation.")
                found.add(pair[1])
    return sorted(found)


def read_trees(
    path: Paths, columns: Sequence[int | str] = ("FORM", "UPOS"), *, tree: Sequence[int | str] = ("HEAD", "DEPREL")
) -> tuple[list[list[Any]], list[list[tuple[int, str]]]]:
    """Sentences and their dependency trees from CoNLL-U files, or others with such columns.

    Parameters
    ----------
    path : path or list of paths
        Plain text or compressed (``.gz``, ``.zst``).
    columns : list of int or str
        Those of tokens, the word first, by number from 0 on or, in CoNLL-U, by name.
    tree : list of two int or str
        The columns with the number of a token's head, 0 for the root, and with the name of its relation.

    Returns
    -------
    X : list of sentences
        Lists of tokens: text, or tuples of text if there are several columns.
    Y : list of trees
        For each token its head and its relation.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "train.conllu")
    >>> with open(path, "w") as file:
    ...     for line in ("1 Rome _ PROPN _ _ 2 nsubj _ _", "2 fell _ VERB _ _ 0 root _ _"):
    ...         print(line.replace(" ", "\\t"), file=file)
    >>> read_trees(path)
    ([[('Rome', 'PROPN'), ('fell', 'VERB')]], [[(2, 'nsubj'), (0, 'root')]])
    >>> folder.cleanup()
    """
    if isinstance(columns, str) or not columns or len(tree) != 2:
        raise DataError(f"columns must be a list, and tree one of two columns; got {shown(columns)} and {shown(tree)}.")
    X, Y = [], []
    for found in Conll(path, [*columns, *tree], labels=False).located():
        words, heads = [], []
        for line, token in zip(found.lines, found.tokens, strict=True):
            *values, head, relation = token
            if not head.isdecimal() or int(head) > len(found.tokens):
                raise DataError(
                    f"{found.path}, line {line} has {head!r} for the number of a head, of a sentence of "
                    f"{len(found.tokens)} tokens. A head is the number of a token, or 0 for the root.",
                    path=found.path,
                    row=line,
                )
            words.append(values[0] if len(values) == 1 else tuple(values))
            heads.append((int(head), relation))
        X.append(words)
        Y.append(heads)
    return X, Y

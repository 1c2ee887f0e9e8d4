"""CoNLL files: one token per line, its columns beside each other, a blank line behind each sentence."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import Any, NamedTuple

import numpy as np

from ..files import check_writable, replacing
from ..validation import shown, switch
from .conll_errors import LONGEST, bad_line, check_alike, counted, empty_column, no_tokens
from .encoded_text import checked_encoding, decoded
from .errors import DataError
from .examples import Pairs
from .pieces import pieces
from .stores import DISK, Disk

UNIVERSAL = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
"""The columns of CoNLL-U."""
_DOCUMENT = "-DOCSTART-"
_UNIVERSAL_FILE = re.compile(r"\.conllup?(\.gz|\.zst)?$", re.IGNORECASE)
_UNREADABLE = re.compile(r"[\n\r\0\ud800-\udfff]")
_MISSING = object()
_NO_WORD = re.compile(r"\d+[-.]\d+")  # numbers of contracted words ("3-4") and of empty nodes ("3.1")


Columns = Sequence[int | str] | None
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def read_conll(
    path: Paths,
    columns: Columns = None,
    *,
    labels: bool = True,
    separator: str | None = None,
    comments: bool | None = None,
    encoding: str = "utf-8",
) -> Any:
    """Sentences and their labels from CoNLL files: CoNLL-2000, -2002, -2003, CoNLL-U and their like.

    Plain text or compressed (``.gz``, ``.zst``). Lines that begin with ``-DOCSTART-`` only part documents. For files
    larger than memory, ``maxmargin.data.open(path)`` reads the same lazily.

    Parameters
    ----------
    path : path or list of paths
    columns : list of int or str, optional
        The columns to read, the last of which is the label: numbers from 0 on (negative ones from the end), in
        CoNLL-U also names, such as ``["FORM", "XPOS", "UPOS"]``. All columns if not given; of CoNLL-U FORM and UPOS.
    labels : bool
        False: there are no labels, all columns are of the tokens.
    separator : str, optional
        What stands between columns: tabs if the first line with a token has one, else spaces.
    comments : bool, optional
        Whether lines that begin with ``#`` are comments. By default they are in CoNLL-U, where columns are parted by
        tabs if they have none, and where a file has no other lines: elsewhere ``#`` may be a token.
    encoding : str
        Of the text, such as "latin-1" for the Spanish files of CoNLL-2002.

    Returns
    -------
    X, Y : lists of sentences and of their labels
        A token is text if one column is left beside the label, else a tuple of text. X alone without ``labels``.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "train.conll")
    >>> write_conll(path, [[("Rome", "NNP"), ("fell", "VBD")]], [["B-LOC", "O"]])
    >>> read_conll(path)
    ([[('Rome', 'NNP'), ('fell', 'VBD')]], [['B-LOC', 'O']])
    >>> read_conll(path, columns=[0, -1])
    ([['Rome', 'fell']], [['B-LOC', 'O']])
    >>> folder.cleanup()
    """
    files = Conll(path, columns, labels=labels, separator=separator, comments=comments, encoding=encoding)
    X, Y = [], []
    for x, y in files.sentences():
        X.append(x)
        Y.append(y)
    return (X, Y) if labels else X


def write_conll(
    path: str | os.PathLike[str], X: Iterable[Any], Y: Iterable[Any] | None = None, *, separator: str = "\t"
) -> None:
    """Write sentences, with a last column of labels if there are any: a line per token, a blank one per sentence.

    Parameters
    ----------
    path : path
    X : iterable of sentences
        Lists of tokens: text, or tuples of the columns.
    Y : iterable of lists of labels, optional
    separator : str
        What stands between columns; no column may contain it.
    """
    check_writable(path)
    with replacing(path) as new, open(new, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(conll_lines(X, Y, separator))


def conll_lines(X: Iterable[Any], Y: Iterable[Any] | None = None, separator: str = "\t") -> Iterator[str]:
    """The lines of a CoNLL file."""
    _check_separator(separator)
    both = zip_longest(_each(X, "X"), () if Y is None else _each(Y, "Y"), fillvalue=_MISSING)
    for i, (x, y) in enumerate(both):
        if x is _MISSING or (y is _MISSING and Y is not None):
            few, many = ("X", "Y") if x is _MISSING else ("Y", "X")
            raise ValueError(f"{few} has {i} sequences, and {many} has more. Give labels for each of them.")
        tokens = [_of_token(i, t, token) for t, token in enumerate(_each(x, f"Sequence {i}"))]
        if Y is not None:
            labels = list(_each(y, f"Y[{i}]"))
            if len(labels) != len(tokens):
                raise ValueError(f"Sequence {i} has {len(tokens)} tokens, but {len(labels)} labels. Give one for each.")
            tokens = [(*token, label) for token, label in zip(tokens, labels, strict=True)]
        for t, token in enumerate(tokens):
            line = separator.join(columns := list(map(str, token)))
            if not _can_be_read(line, columns, separator):
                raise ValueError(
                    f"Sequence {i}, token {t} has the columns {shown(columns)}: columns of a CoNLL file must not be "
                    "empty or blank, nor contain line ends, zero bytes, lone surrogates or the separator "
                    f"{separator!r}. Replace these."
                )
            yield line + "\n"
        yield "\n"


def _each(given: Any, name: str) -> Iterable[Any]:
    """The entries of a list, or of what can be gone through like one."""
    if isinstance(given, str | bytes | dict) or not isinstance(given, Iterable):
        raise ValueError(f"{name} must be a list, got {shown(given)}. X has lists of tokens, Y lists of labels.")
    return given


def _of_token(i: int, t: int, token: Any) -> tuple[Any, ...]:
    """The columns of a token."""
    if isinstance(token, str):
        return (token,)
    if not isinstance(token, list | tuple | np.ndarray) or not len(token):
        raise ValueError(f"Sequence {i}, token {t}: got {shown(token)}. A token is text, or a tuple of its columns.")
    return tuple(token)


def _can_be_read(line: str, columns: list[str], separator: str) -> bool:
    """Whether a line gives its columns when it is read."""
    return (
        all(columns)
        and not any(separator in column for column in columns)
        and not _UNREADABLE.search(line)
        and not line.isspace()
    )


def _check_separator(separator: object) -> None:
    if not isinstance(separator, str) or not separator or _UNREADABLE.search(separator):
        raise DataError(f"separator must be what stands between columns, such as '\\t' or ' ', got {shown(separator)}.")


class Located(NamedTuple):
    """A sentence with its labels, and where it is: the file, and the line of each token."""

    tokens: list[Any]
    labels: list[str]
    path: str
    lines: list[int]


class Conll:
    """CoNLL files that are read from beginning to end, in bounded memory."""

    def __init__(
        self,
        paths: Paths,
        columns: Columns = None,
        *,
        labels: bool = True,
        separator: str | None = None,
        comments: bool | None = None,
        encoding: str = "utf-8",
        like: Conll | None = None,
        store: Disk = DISK,
    ) -> None:
        self.paths = [found for path in _named(paths) for found in store.found(path)]
        switch("labels", labels)
        if comments is not None:
            switch("comments", comments)
        universal = all(_UNIVERSAL_FILE.search(path) for path in self.paths)
        if columns is None and universal:
            columns = ("FORM", "UPOS")[: 1 + labels]
        self._columns = None if columns is None else [_number(column) for column in _in_order(columns)]
        if self._columns is not None and len(self._columns) < 1 + labels:
            wanted = (
                "the columns of the tokens and, as the last, that of the label" if labels else "at least one column"
            )
            raise DataError(f"columns must name {wanted}; got {shown(list(columns or ()))}.")
        if separator is not None:
            _check_separator(separator)
        self.labels, self.universal = labels, universal
        self._separator, self._comments, self._store = separator, comments, store
        self._encoding = checked_encoding(encoding)
        self._like = like

    def sentences(self) -> Iterator[tuple[list[Any], list[str]]]:
        """Tokens and labels of each sentence; without labels the second list is empty."""
        return ((found.tokens, found.labels) for found in self.located())

    def columns(self) -> list[int]:
        """The numbers of the columns that are read: the first line with a token says how many there are."""
        for path in self.paths:
            for number, columns in self._rows(path):
                if columns:
                    return self._chosen(path, number, len(columns))
        raise no_tokens(self.paths[0])

    def located(self) -> Iterator[Located]:
        """The same, and where they are."""
        first = None if self._like is None else (self._like.paths[0], len(self._like.columns()))
        for path in self.paths:
            tokens: list[Any] = []
            tags: list[str] = []
            lines: list[int] = []
            chosen: list[int] = []
            for number, columns in self._rows(path):
                if not columns:
                    if tokens:
                        yield Located(tokens, tags, path, lines)
                        tokens, tags, lines = [], [], []
                    continue
                if not chosen:
                    chosen = self._chosen(path, number, len(columns))
                    first = first or (path, len(chosen))
                    check_alike(path, number, len(chosen), *first)
                picked = [columns[k] for k in chosen]
                if "" in picked:
                    raise empty_column(path, number, chosen[picked.index("")])
                if self.labels:
                    tags.append(picked.pop())
                tokens.append(picked[0] if len(picked) == 1 else tuple(picked))
                lines.append(number)
            if not chosen:
                raise no_tokens(path)
            if tokens:
                yield Located(tokens, tags, path, lines)

    def width(self) -> int:
        """How many columns the first token has."""
        first = next((columns for _, columns in self._rows(self.paths[0]) if columns), [])
        return len(first)

    def _rows(self, path: str) -> Iterator[tuple[int, list[str]]]:
        """The number of each line and its columns; none where a sentence ends."""
        number, width = 0, 0
        separator = self._separator
        for buffer, end in pieces(path, self._store.stamp(path), self._store):
            lines = decoded(path, buffer, end, number, self._encoding).split("\n")
            separator = separator or _separator(lines)
            for number, line in enumerate(lines[:-1], number + 1):  # noqa: B020
                line = line.rstrip("\r")  # noqa: PLW2901
                if not line or line.isspace() or line.startswith(_DOCUMENT):
                    yield number, []
                    continue
                if line[0] == "#" and self._is_comment(line, separator):
                    continue
                columns = line.split(separator)
                if separator == " ":
                    columns = [column for column in columns if column]
                width = width or len(columns)
                if len(columns) != width or len(line) > LONGEST or "\r" in line:
                    raise bad_line(path, number, line, len(columns), width, separator)
                if not self.universal or not _NO_WORD.fullmatch(columns[0]):
                    yield number, columns

    def _is_comment(self, line: str, separator: str | None) -> bool:
        if self._comments is not None:
            return self._comments
        return self.universal or separator is None or (separator == "\t" and "\t" not in line)

    def _chosen(self, path: str, line: int, width: int) -> list[int]:
        columns = list(range(width)) if self._columns is None else self._columns
        wrong = next((k for k in columns if not -width <= k < width), None)
        places = [k % width for k in columns]
        if wrong is not None:
            what = f"and column {wrong} was asked for. columns must name columns that are there, counted from 0"
        elif len(columns) < 1 + self.labels:
            what = "a token and its label are needed. Without labels there is only read_conll(…, labels=False), or "
            what += "maxmargin predict"
        elif self.labels and places[-1] in places[:-1]:
            what = (
                f"and column {columns[-1]}, the label, is to be a column of the tokens, too: either the file lacks "
                "labels, or columns must name it once"
            )
        else:
            return places
        raise DataError(f"{path}, line {line} has {counted(width)}, {what}.", path=path, row=line)


class ConllSource(Pairs):
    """Sentences and their labels, read anew in every pass, and where each is."""

    def __init__(self, files: Conll, chunk_rows: int | None = None) -> None:
        super().__init__(files.sentences, chunk_rows=chunk_rows)
        self._files = files

    def place(self, i: int, t: int) -> str | None:
        """The file and the line of token t of sentence i, found by reading up to it; only errors ask for it."""
        found = next(islice(self._files.located(), i, None), None)
        return None if found is None else f"{found.path}, line {found.lines[min(t, len(found.lines) - 1)]}"


def open_conll(
    paths: list[str],
    *,
    chunk_rows: int | None = None,
    columns: Columns = None,
    encoding: str | None = None,
    comments: bool | None = None,
) -> ConllSource:
    """Sentences and their labels as a source, read anew in every pass."""
    return ConllSource(Conll(paths, columns, encoding=encoding or "utf-8", comments=comments), chunk_rows)


def _named(paths: Any) -> list[str]:
    """One path, or several, by name."""
    several = list(paths) if isinstance(paths, list | tuple) else [paths]
    if not several or not all(isinstance(path, str | os.PathLike) and os.fspath(path) for path in several):
        raise DataError(f"path must be the name of a file, or a list of such names; got {shown(paths)}.")
    return [os.fspath(path) for path in several]


def _in_order(columns: Any) -> list[Any]:
    if isinstance(columns, str | dict | set | frozenset) or not isinstance(columns, Iterable):
        raise DataError(
            f"columns must be a list of numbers or names, the label last, such as [0, -1]; got {shown(columns)}."
        )
    return list(columns)


def _number(column: Any) -> int:
    if isinstance(column, str) and column.upper() in UNIVERSAL:
        return UNIVERSAL.index(column.upper())
    if isinstance(column, bool) or not hasattr(column, "__index__"):
        raise DataError(
            f"columns must be whole numbers, or in CoNLL-U of {', '.join(UNIVERSAL)}; got {shown(column)}. The label "
            "is the last of them."
        )
    return int(column)


def _separator(lines: list[str]) -> str | None:
    """Tabs or spaces, as in the first line that has a token and may be no comment; None if there is none yet."""
    first = next((line for line in lines if line[:1] != "#" and not line.isspace() and line), "")
    return "\t" if "\t" in first else " " if first else None

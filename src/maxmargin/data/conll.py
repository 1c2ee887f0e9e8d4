"""CoNLL files: one token per line, its columns beside each other, a blank line behind each sentence."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..files import replacing
from ..validation import shown
from .errors import DataError
from .examples import Pairs
from .pieces import pieces
from .stores import DISK, Disk

UNIVERSAL = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
"""The columns of CoNLL-U."""
_DOCUMENT = "-DOCSTART-"
_UNIVERSAL_FILE = re.compile(r"\.conllup?(\.gz|\.zst)?$", re.IGNORECASE)
_LONGEST = 1 << 20  # characters of a line
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
        Whether lines that begin with ``#`` are comments. By default they are in CoNLL-U, and where columns are parted
        by tabs if they have none: elsewhere ``#`` may be a token.

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
    files = Conll(path, columns, labels=labels, separator=separator, comments=comments)
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
    with replacing(path) as new, open(new, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(conll_lines(X, Y, separator))


def conll_lines(X: Iterable[Any], Y: Iterable[Any] | None = None, separator: str = "\t") -> Iterator[str]:
    """The lines of a CoNLL file."""
    rows = ((x, None) for x in X) if Y is None else zip(X, Y, strict=True)
    for i, (x, y) in enumerate(rows):
        tokens = [(token,) if isinstance(token, str) else tuple(token) for token in x]
        if y is not None:
            if len(y) != len(tokens):
                raise ValueError(f"Sequence {i} has {len(tokens)} tokens, but {len(y)} labels. Give one for each.")
            tokens = [(*token, label) for token, label in zip(tokens, y, strict=True)]
        for t, token in enumerate(tokens):
            columns = [str(column) for column in token]
            bad = next((c for c in columns if not c or separator in c or "\n" in c or "\r" in c), None)
            if bad is not None or not columns:
                raise ValueError(
                    f"Sequence {i}, token {t} has the column {shown(bad)}: columns of a CoNLL file must not be empty, "
                    f"nor contain line ends or the separator {separator!r}. Replace these characters."
                )
            yield separator.join(columns) + "\n"
        yield "\n"


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
        store: Disk = DISK,
    ) -> None:
        named = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        self.paths = [found for path in named for found in store.found(os.fspath(path))]
        universal = all(_UNIVERSAL_FILE.search(path) for path in self.paths)
        if columns is None and universal:
            columns = ("FORM", "UPOS")[: 1 + labels]
        self._columns = None if columns is None else [_number(column) for column in columns]
        if self._columns is not None and len(self._columns) < 1 + labels:
            raise DataError(
                f"columns names {len(self._columns)} of the columns, {1 + labels} are needed: those of the tokens"
                + (", and the label as the last." if labels else ".")
            )
        if separator == "":
            raise DataError("separator is empty. Give what stands between columns, or None.")
        self.labels, self.universal = labels, universal
        self._separator, self._comments, self._store = separator, comments, store

    def sentences(self) -> Iterator[tuple[list[Any], list[str]]]:
        """Tokens and labels of each sentence; without labels the second list is empty."""
        for path in self.paths:
            tokens: list[Any] = []
            tags: list[str] = []
            chosen: list[int] = []
            for number, columns in self._rows(path):
                if not columns:
                    if tokens:
                        yield tokens, tags
                        tokens, tags = [], []
                    continue
                chosen = chosen or self._chosen(path, number, len(columns))
                picked = [columns[k] for k in chosen]
                if self.labels:
                    tags.append(picked.pop())
                tokens.append(picked[0] if len(picked) == 1 else tuple(picked))
            if not chosen:
                raise DataError(
                    f"{path} has no tokens. A CoNLL file has one token per line and blank lines between sentences.",
                    path=path,
                )
            if tokens:
                yield tokens, tags

    def _rows(self, path: str) -> Iterator[tuple[int, list[str]]]:
        """The number of each line and its columns; none where a sentence ends."""
        number, width, separator = 0, 0, self._separator
        for buffer, end in pieces(path, self._store.stamp(path), self._store):
            lines = _text(path, buffer, end, number).split("\n")
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
                if len(columns) != width or len(line) > _LONGEST or not columns[0]:
                    raise _bad_line(path, number, line, len(columns), width, separator)
                if not self.universal or not _NO_WORD.fullmatch(columns[0]):
                    yield number, columns

    def _is_comment(self, line: str, separator: str) -> bool:
        if self._comments is not None:
            return self._comments
        return self.universal or (separator == "\t" and "\t" not in line)

    def _chosen(self, path: str, line: int, width: int) -> list[int]:
        columns = list(range(width)) if self._columns is None else self._columns
        wrong = next((k for k in columns if not -width <= k < width), None)
        if wrong is not None or len(columns) < 1 + self.labels:
            wanted = f"column {wrong} was asked for" if wrong is not None else "a token and its label are needed"
            raise DataError(
                f"{path}, line {line} has {width} column{'s' * (width != 1)}, and {wanted}. Name the columns in "
                "columns=, the label last; or give labels=False if there are none.",
                path=path,
                row=line,
            )
        return columns


def open_conll(paths: list[str], *, chunk_rows: int | None = None, columns: Columns = None) -> Pairs:
    """Sentences and their labels as a source, read anew in every pass."""
    return Pairs(Conll(paths, columns).sentences, chunk_rows=chunk_rows)


def _number(column: Any) -> int:
    if isinstance(column, str) and column.upper() in UNIVERSAL:
        return UNIVERSAL.index(column.upper())
    if isinstance(column, bool) or not hasattr(column, "__index__"):
        raise DataError(
            f"columns has {shown(column)}: a column is a whole number, or in CoNLL-U one of {', '.join(UNIVERSAL)}."
        )
    return int(column)


def _separator(lines: list[str]) -> str:
    """Tabs or spaces, as in the first line that has a token and may be no comment."""
    first = next((line for line in lines if line and line[0] != "#"), "")
    return "\t" if "\t" in first else " "


def _bad_line(path: str, number: int, line: str, found: int, width: int, separator: str) -> DataError:
    what = f"has {found} columns, the lines before have {width}" if found != width else "begins with an empty column"
    if len(line) > _LONGEST:
        what = f"has {len(line)} characters, more than {_LONGEST}"
    return DataError(
        f"{path}, line {number} {what}: {shown(line[:200])}. A line has one token with all its columns, parted by "
        f"{separator!r}; blank lines part sentences. If the line is a comment, give comments=True.",
        path=path,
        row=number,
    )


def _text(path: str, buffer: bytearray, end: int, before: int) -> str:
    try:
        return buffer[:end].decode("utf-8-sig" if before == 0 else "utf-8")
    except UnicodeDecodeError as error:
        line = before + buffer.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}, line {line} is not UTF-8 text: {bytes(buffer[error.start : error.start + 12])!r}. Convert the "
            "file first, such as by: iconv -f latin1 -t utf-8.",
            path=path,
            row=line,
        ) from None

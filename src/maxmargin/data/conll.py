"""CoNLL files: one token per line, its columns beside each other, a blank line behind each sentence."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from ..files import replacing
from ..validation import shown
from .conll_errors import LONGEST, bad_line, check_alike, counted, empty_column, no_tokens
from .errors import DataError
from .examples import Pairs
from .pieces import pieces
from .stores import DISK, Disk

UNIVERSAL = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
"""The columns of CoNLL-U."""
_DOCUMENT = "-DOCSTART-"
_UNIVERSAL_FILE = re.compile(r"\.conllup?(\.gz|\.zst)?$", re.IGNORECASE)
_NO_WORD = re.compile(r"\d+[-.]\d+")  # numbers of contracted words ("3-4") and of empty nodes ("3.1")

_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}  # the first that fits: the mark of UTF-32 begins with that of UTF-16

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
        named = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        self.paths = [found for path in named for found in store.found(os.fspath(path))]
        universal = all(_UNIVERSAL_FILE.search(path) for path in self.paths)
        if columns is None and universal:
            columns = ("FORM", "UPOS")[: 1 + labels]
        self._columns = None if columns is None else [_number(column) for column in columns]
        if self._columns is not None and len(self._columns) < 1 + labels:
            wanted = (
                "the columns of the tokens and, as the last, that of the label" if labels else "at least one column"
            )
            raise DataError(f"columns must name {wanted}; got {shown(list(columns or ()))}.")
        if separator == "":
            raise DataError("separator is empty. Give what stands between columns, or None.")
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
            lines = _text(path, buffer, end, number, self._encoding).split("\n")
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
                f"and column {columns[-1]}, the label, is to be a column of the tokens, too. columns must name it once"
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


def read_lines(path: str, encoding: str = "utf-8", store: Disk = DISK) -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers, without their ends, in bounded memory."""
    number = 0
    for buffer, end in pieces(path, store.stamp(path), store):
        for number, line in enumerate(_text(path, buffer, end, number, encoding).split("\n")[:-1], number + 1):  # noqa: B020
            if len(line) > LONGEST:
                raise DataError(
                    f"{path}, line {number} has {len(line)} characters, more than {LONGEST}. A line is one sentence: "
                    "break longer ones.",
                    path=path,
                    row=number,
                )
            yield number, line.rstrip("\r")


def checked_encoding(encoding: object) -> str:
    """The name of an encoding in which lines end as in ASCII."""
    try:
        ends = isinstance(encoding, str) and "\n".encode(encoding) == b"\n"
    except LookupError:
        ends = False
    if not ends:
        raise DataError(
            f"encoding must be one that keeps ASCII, such as 'utf-8', 'latin-1' or 'cp1252', got {shown(encoding)}. "
            "Convert other files first, such as by: iconv -f utf-16 -t utf-8."
        )
    return str(encoding)


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


def _text(path: str, buffer: bytearray, end: int, before: int, encoding: str) -> str:
    mark = next((mark for mark in _MARKS if buffer.startswith(mark)), None) if before == 0 else None
    if mark is not None:
        raise DataError(
            f"{path}, line 1 is {_MARKS[mark]} text: it begins with {bytes(mark)!r}. Convert the file first, such as "
            f"by: iconv -f {_MARKS[mark].lower()} -t utf-8.",
            path=path,
            row=1,
        )
    first_of_utf8 = before == 0 and codecs.lookup(encoding).name == "utf-8"
    try:
        text = buffer[:end].decode("utf-8-sig" if first_of_utf8 else encoding)
    except UnicodeDecodeError as error:
        line = before + buffer.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}, line {line} is not {encoding.upper()} text: {bytes(buffer[error.start : end][:12])!r}. "
            "If it is in another encoding, name it, such as encoding='latin-1'; or convert the file first, such as by: "
            "iconv -f latin1 -t utf-8.",
            path=path,
            row=line,
        ) from None
    if "\0" in text:
        line = before + text.count("\n", 0, text.index("\0")) + 1
        raise DataError(
            f"{path}, line {line} has a byte that is zero: it is no text, or text in another encoding such as UTF-16. "
            "Convert the file first, such as by: iconv -f utf-16le -t utf-8.",
            path=path,
            row=line,
        )
    return text

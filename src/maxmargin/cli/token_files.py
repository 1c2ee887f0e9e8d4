"""Files of tokens in the shell: what they look like, and where in them an error is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ..data.conll import Located
from ..data.encoded_text import read_lines
from ..data.errors import DataError, named_sequence
from ..data.opening import kind_of
from .files import where
from .grouped import Collected

_ROWS = {".svm", ".svmlight", ".libsvm"}
_ROW = re.compile(r"\S+(\s+qid:\S+)?(\s+\d+:\S+)+\s*(#.*)?")


@dataclass(frozen=True)
class Tokens(Collected):
    """Sentences with the lines of files that their tokens are in."""

    located: Sequence[Located] = ()

    def place(self, i: int, t: int = 0) -> str:
        found = self.located[i]
        return f"{found.path}, line {found.lines[min(t, len(found.lines) - 1)]}"


def has_token_lines(paths: list[str]) -> bool:
    """Whether a text file whose name says nothing has columns of tokens, and blank lines between sentences."""
    if "*" in paths[0] or not (is_table(paths) or kind_of(where(paths)) == "svmlight"):
        return False
    lines = [line.strip() for _, line in islice(read_lines(paths[0], "latin-1"), 1000)]
    filled = [line for line in lines if line and line[0] != "#"]
    widths = {len(line.split()) for line in filled}
    return "" in lines and len(widths) == 1 and widths != {1} and _ROW.fullmatch(filled[0]) is None


def is_table(paths: list[str]) -> bool:
    """Whether the first file has columns between tabs: of tokens, as no other table in text is read."""
    return ".tsv" in {suffix.lower() for suffix in Path(paths[0]).suffixes}


def has_rows(paths: list[str]) -> bool:
    """Whether files hold rows of numbers, in groups, rather than tokens."""
    if is_table(paths):
        return False
    kind = kind_of(where(paths))
    if kind != "svmlight":
        return kind != "conll"
    if _is_named_as_rows(paths[0]) or "*" in paths[0]:
        return True
    try:
        lines: Iterable[str] = (line for _, line in read_lines(paths[0]) if line.strip() and line[0] != "#")
        return _ROW.fullmatch(next(iter(lines), "")) is not None
    except DataError:
        return False  # it will be said by whoever reads all of it


def _is_named_as_rows(path: str) -> bool:
    return bool(_ROWS & {suffix.lower() for suffix in Path(path).suffixes})


def refuse_rows(paths: list[str]) -> None:
    wrong = next((path for path in paths if _is_named_as_rows(path)), None)
    if wrong is not None:
        raise DataError(
            f"{wrong} has rows of numbers by its name, and a model of words reads CoNLL files and text. Name another "
            "file, or give this one the name of what it is.",
            path=wrong,
        )


def split_lines(paths: list[str], encoding: str) -> Iterator[Located]:
    """Sentences, one per line, split at blanks."""
    for path in paths:
        for number, line in read_lines(path, encoding):
            words = line.split()
            yield Located(words, [], path, [number] * max(1, len(words)))


def column_of(name: str) -> int | str:
    try:
        return int(name)
    except ValueError:
        return name.strip()


@contextmanager
def located(data: Any) -> Iterator[None]:
    """Errors about a sequence say in which line of which file it is."""
    try:
        yield
    except DataError:
        raise
    except ValueError as error:
        found = named_sequence(str(error))
        if found is None or not isinstance(data, Tokens) or found[0] >= len(data.located):
            raise
        i, t, _ = found
        raise DataError(f"{data.place(i, t)}: {error}", path=data.located[i].path) from error

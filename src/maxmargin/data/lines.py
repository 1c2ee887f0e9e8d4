"""A piece of svmlight text as arrays, and what is wrong with lines that cannot be read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..kernels import text as kernels
from .in_order import MESSAGES

GRAMMAR = "label [qid:n] index:value index:value … [# comment]"
LAST_INDEX = 2**31 - 1

_TOO_LARGE = 0  # shows only when a number is looked at closely; the other faults are numbered by the kernel
_END = re.compile(rb"[ \t\r\n#]")


class Fault(NamedTuple):
    """A malformed line: its number in the piece and the column of what is wrong, from 1 on, and that token."""

    kind: int
    line: int
    column: int
    token: bytes


@dataclass
class Rows:
    labels: np.ndarray
    groups: np.ndarray | None
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return self.labels.size


@dataclass
class Parsed:
    """Rows of a piece, their least and greatest index if there is any, and whether they have groups (−1: no rows)."""

    rows: Rows
    least: int
    greatest: int
    grouped: int
    n_lines: int
    n_faults: int
    faults: list[Fault]


def parsed(text: bytearray, end: int, allowed: tuple[int, int], grouped: int, dtype: np.dtype) -> Parsed:
    """The rows of ``text[:end]``, which ends with a line end; malformed lines are left out.

    ``allowed`` are the least and the greatest index that may occur; ``grouped`` says whether rows must have a group
    (1), must not (0), or must do as the first one does (−1).

    >>> text = bytearray(b"1 1:2 3:4\\n-1 x:1\\n")
    >>> parsed(text, len(text), (0, 3), -1, np.dtype("f4")).faults
    [Fault(kind=5, line=2, column=4, token=b'x:1')]
    """
    characters = np.frombuffer(text, np.uint8)
    lines, colons = text.count(b"\n", 0, end), text.count(b":", 0, end)  # no more rows and entries can be there
    indptr = np.empty(lines + 1, np.int32)
    indices, values = np.empty(colons, np.int32), np.empty(colons, dtype)
    labels, groups = np.empty(lines), np.empty(lines, np.int64)
    found = np.empty((MESSAGES, 2), np.int64)
    limit = float(np.finfo(dtype).max)
    asked = grouped
    n, entries, least, greatest, grouped, n_faults, left = kernels.parse(
        characters, end, *allowed, grouped, limit, indptr, indices, values, labels, groups, found
    )
    rows = Rows(labels[:n], groups[:n] if grouped == 1 else None, indptr[: n + 1], indices[:entries], values[:entries])
    faults = [_fault(text, kind, place) for kind, place in found[:n_faults].tolist()]
    result = Parsed(rows, least, greatest, grouped, lines, n_faults, faults)
    spoilt = _settle(text, left, rows)
    return _without(text, end, allowed, asked, dtype, spoilt) if spoilt else result


def explain(fault: Fault, *, last: int, dtype: np.dtype) -> str:
    """What is wrong, what is needed and what to do. ``last`` is the greatest index that is allowed."""
    text = fault.token.decode("utf-8", "replace")
    shown = repr(text if len(text) <= 40 else text[:40] + "…")
    if "\ufffd" in text[:40] or not text[:40].isprintable():
        return f"{fault.token[:20]!r} is not text. Needed: {GRAMMAR}, plain or compressed by gzip or Zstandard."
    if text.rpartition(":")[2].lstrip("+-").lower() in ("nan", "inf", "infinity"):
        return f"{shown} is not finite. Fill in or drop missing values first."
    return {
        _TOO_LARGE: f"{shown} is too large for {dtype}. Give dtype=float64 for what is below 1.8e308.",
        kernels.BAD_LABEL: f"the label {shown} is not a number. Needed: {GRAMMAR}.",
        kernels.BAD_GROUP: f"{shown} must be qid: and a whole number of at most 18 digits.",
        kernels.NO_GROUP: "the row has no qid, but earlier rows have one. Give one to all rows or to none.",
        kernels.NEW_GROUP: f"the row has {shown}, but earlier rows have no qid. Give one to all rows or to none.",
        kernels.BAD_PAIR: f"{shown} is not index:value with a whole number as index. Needed: {GRAMMAR}.",
        kernels.BAD_VALUE: f"the value of {shown} is not a number. Needed: {GRAMMAR}.",
        kernels.REPEATED: f"the index of {shown} is in this row before. Each may stand there only once.",
        kernels.LOW_INDEX: f"{shown} has the index 0, but features are counted from 1. If not, give zero_based=True.",
        kernels.HIGH_INDEX: f"the index of {shown} is beyond {last}, the largest that may be. Declare more n_features.",
    }[fault.kind]


def _settle(text: bytearray, left: np.ndarray, rows: Rows) -> list[int]:
    """Read the numbers that the kernel left over. Returns where in each row the first one stands that is too large."""
    spoilt: dict[int, int] = {}
    for row, index, place in left.tolist():
        value = float(_token(text, place).rpartition(b":")[2])
        if index < 0:
            rows.labels[row] = value
        else:
            begin, end = rows.indptr[row], rows.indptr[row + 1]
            at = begin + np.searchsorted(rows.indices[begin:end], index)  # the row may have been sorted since
            with np.errstate(over="ignore"):
                rows.values[at] = value
            value = rows.values[at]
        if not np.isfinite(value):
            spoilt.setdefault(row, place)
    return list(spoilt.values())


def _without(
    text: bytearray, end: int, allowed: tuple[int, int], grouped: int, dtype: np.dtype, spoilt: list[int]
) -> Parsed:
    """The piece as if the lines of these places were comments, except that they are counted and described."""
    rest = text.copy()
    for place in spoilt:
        rest[text.rfind(b"\n", 0, place) + 1] = ord("#")
    result = parsed(rest, end, allowed, grouped, dtype)
    faults = result.faults + [_fault(text, _TOO_LARGE, place) for place in spoilt[:MESSAGES]]
    result.faults = sorted(faults, key=lambda fault: fault.line)[:MESSAGES]
    result.n_faults += len(spoilt)
    return result


def _token(text: bytearray, place: int) -> bytes:
    end = _END.search(text, place)
    assert end is not None  # there is a line end behind everything
    return bytes(text[place : end.start()])


def _fault(text: bytearray, kind: int, place: int) -> Fault:
    start = text.rfind(b"\n", 0, place) + 1
    return Fault(kind, text.count(b"\n", 0, place) + 1, place - start + 1, _token(text, place)[:400])

"""Thousands of damaged files: each is refused by a DataError, or read as a slow and obvious parser reads it."""

import random
import re

import numpy as np
import pytest

from maxmargin.data import pieces
from maxmargin.data.errors import DataError
from maxmargin.data.svmlight import SvmlightSource

_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SEEDS = [
    b"1 1:0.5 3:2 10:1e-3\n-1 2:1 4:.25\n+1 1:-0\n",
    b"# head\n3 qid:1 1:1 2:2 # note\n1 qid:1 2:0.333333333333333314829616256247\n2 qid:22 5:1.5e+2\r\n",
    b"-1.5\t7:1  8:2\t9:3 \n\n0\n1e1 12:123456789.123456789 13:17976931348623157e292\n",
    b"0 0:1 1:1 2:1\n1 0:3.14159265358979 7:2.718281828459045235\n0 5:1 3:1 4:1",
]
_TOKENS = [b"1:1", b" 3:2", b"nan", b"inf", b"1e999", b"1e39", b"-", b"+", b".", b":", b"e5", b"#", b"qid:3", b"0:1"]
_TOKENS += [
    b",",
    b"\n",
    b"\r",
    b"\t",
    b"\0",
    b"\xff",
    b" ",
    b"99999999999",
    b"1 2:",
    b"0x1",
    b"_",
    b"00",
    b"\xef\xbb\xbf",
]


class _Malformed(Exception):
    pass


def _number(token: bytes, dtype: type) -> float:
    if not _NUMBER.fullmatch(token):
        raise _Malformed
    with np.errstate(over="ignore"):
        value = float(dtype(float(token)))
    if not np.isfinite(value):
        raise _Malformed
    return value


def _row(line: bytes, dtype: type):
    """(label, group, {index: value}) of a line, or None if there is nothing on it."""
    tokens = [t for t in re.split(rb"[ \t\r]", line.split(b"#")[0]) if t]
    if not tokens:
        return None
    label, *rest = tokens
    group = None
    if rest and rest[0].startswith(b"qid:"):
        number = rest.pop(0)[4:]
        if not re.fullmatch(rb"[0-9]+", number) or int(number) >= 10**18:
            raise _Malformed
        group = int(number)
    row: dict[int, float] = {}
    for pair in rest:
        index, colon, value = pair.partition(b":")
        if not colon or not re.fullmatch(rb"[0-9]+", index) or int(index) > 2**31 - 1 or int(index) in row:
            raise _Malformed
        row[int(index)] = _number(value, dtype)
    return _number(label, np.float64), group, row


def _obvious(data: bytes, zero_based: bool | str, skip: bool, dtype: type):
    if data[:3] == b"\xef\xbb\xbf":
        data = data[3:]
    rows, bad = [], 0
    for line in data.split(b"\n"):
        try:
            row = _row(line, dtype)
            if row is None:
                continue
            if rows and (row[1] is None) != (rows[0][1] is None):
                raise _Malformed
            if zero_based is False and 0 in row[2]:
                raise _Malformed
            rows.append(row)
        except _Malformed:
            if not skip:
                raise
            bad += 1
    if not rows:
        raise _Malformed
    base = int(not zero_based)
    if zero_based == "auto":
        base = int(not any(0 in row for _, _, row in rows))
    return [(y, group, {j - base: v for j, v in sorted(row.items())}) for y, group, row in rows], bad


def _read(path, **options):
    source = SvmlightSource(path, **options)
    rows = []
    for chunk in source.chunks():
        assert chunk.x.shape == (len(chunk), chunk.x.shape[1]) and chunk.x.indptr[-1] == chunk.x.data.size
        for i in range(len(chunk)):
            a, b = chunk.x.indptr[i : i + 2]
            row = dict(zip(chunk.x.indices[a:b].tolist(), chunk.x.data[a:b].astype(float).tolist(), strict=True))
            rows.append((float(chunk.y[i]), None if chunk.group is None else int(chunk.group[i]), row))
    return rows, source.n_skipped


def _damaged(data: bytes, choose: random.Random) -> bytes:
    text = bytearray(data)
    for _ in range(choose.choice([1, 1, 1, 2, 3, 8])):
        at = choose.randrange(len(text) + 1)
        what = choose.randrange(7)
        if what == 0 and at < len(text):
            text[at] ^= 1 << choose.randrange(8)
        elif what == 1:
            text.insert(at, choose.randrange(256))
        elif what == 2:
            del text[at : at + choose.choice([1, 1, 2, 5])]
        elif what == 3 and choose.random() < 0.3:
            del text[at:]
        elif what == 4:
            token = choose.choice(re.split(rb"(?<=[ \n])", bytes(text)) or [b""])
            text[at:at] = token
        elif what == 5:
            text[at:at] = choose.choice(_TOKENS)
        elif at < len(text):
            text[at] = choose.choice(b"0123456789:.e-+# \n")
    return bytes(text)


@pytest.mark.parametrize("part", range(3))
def test_damaged_text(tmp_path, monkeypatch, part):
    choose = random.Random(part)
    path = tmp_path / "damaged.svm"
    outcomes = {True: 0, False: 0}
    for _ in range(1000):
        data = _damaged(choose.choice(_SEEDS), choose)
        if data[:2] in (b"\x1f\x8b", b"\x28\xb5", b"\xff\xfe", b"\xfe\xff") or not data:
            continue  # taken for compressed data or UTF-16
        path.write_bytes(data)
        # What "auto" decides depends on the first piece: only one piece makes it as obvious as the reference.
        zero_based = choose.choice([True, False, "auto"])
        monkeypatch.setattr(pieces, "PIECE", 1 << 20 if zero_based == "auto" else choose.choice([1, 16, 50, 1 << 20]))
        skip, dtype = choose.random() < 0.5, choose.choice([np.float32, np.float64])
        try:
            wanted = _obvious(data, zero_based, skip, dtype)
        except _Malformed:
            wanted = None
        options = {"zero_based": zero_based, "on_error": "skip" if skip else "raise", "dtype": dtype}
        try:
            found = _read(path, n_jobs=choose.choice([1, 2]), chunk_rows=choose.choice([None, 1, 2]), **options)
        except DataError as error:
            assert str(path) in str(error)
            found = None
        assert repr(found) == repr(wanted), (data, options)  # as text: −0 is not 0
        outcomes[found is None] += 1
    assert min(outcomes.values()) > 100  # both kinds are tried

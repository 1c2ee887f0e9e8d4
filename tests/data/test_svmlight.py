"""Svmlight text: exact numbers, the grammar, errors with their places, and the same data however it is cut."""

import gzip
import os
import struct
import threading
from decimal import Context, Decimal
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from svmlight_text import write_svmlight

import maxmargin as mm
from maxmargin.data import pieces
from maxmargin.data.errors import DataError
from maxmargin.data.svmlight import SvmlightSource
from maxmargin.kernels import decimals, text as text_kernels

_LINES = b"1 1:0.5 3:2\n-1 2:1e-3\n\n# a comment\n2.5 1:.5 4:-0 # more\n"


@pytest.fixture
def small_pieces(monkeypatch):
    """Pieces of a few lines, so that small files have many."""
    monkeypatch.setattr(pieces, "PIECE", 64)


def _file(folder: Path, content: bytes | str, name: str = "data.svm") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def _whole(source):
    """All chunks in one: (x of full width, y, group)."""
    chunks = list(source.chunks())
    assert np.array_equal(np.concatenate([c.ids for c in chunks]), np.arange(len(source)))
    for chunk in chunks:
        chunk.x.resize(len(chunk), source.n_features)
    groups = None if chunks[0].group is None else np.concatenate([c.group for c in chunks])
    return sp.vstack([c.x for c in chunks], format="csr"), np.concatenate([c.y for c in chunks]), groups


def _rows(folder, content, **options):
    x, y, groups = _whole(SvmlightSource(_file(folder, content), dtype=np.float64, **options))
    return x.toarray().tolist(), y.tolist(), None if groups is None else groups.tolist()


def _same(a, b):
    assert np.array_equal(a[0].indptr, b[0].indptr) and np.array_equal(a[0].indices, b[0].indices)
    assert a[0].shape == b[0].shape and a[0].data.tobytes() == b[0].data.tobytes()
    assert a[1].tobytes() == b[1].tobytes()
    assert (a[2] is None and b[2] is None) or np.array_equal(a[2], b[2])


def _some_data(rng, n=300, width=50, dtype=np.float64):
    x = sp.random(n, width, 0.1, format="csr", rng=rng, dtype=np.float64).astype(dtype)
    return x, rng.integers(-1, 3, n).astype(float)


# Numbers


@numba.njit  # not cached: a copy on disk would not notice changes of the kernel
def _read(text):
    return decimals.read(text, 0)


def _number(token: str) -> float | None:
    """What the kernel makes of a number, None where it asks for Python's help."""
    kind, value, end = _read(np.frombuffer(token.encode() + b"\n", np.uint8))
    assert end == len(token) and kind != decimals.NOT_A_NUMBER
    return None if kind == decimals.UNSETTLED else value


def _exactly(token: str) -> None:
    value = _number(token)
    assert value is None or struct.pack("d", value) == struct.pack("d", float(token))


_EXACTLY = Context(prec=200)
_DIGITS = st.text("0123456789", min_size=1, max_size=30)


@settings(max_examples=600, deadline=None)
@given(
    st.sampled_from(["", "-", "+"]),
    _DIGITS,
    st.one_of(st.just(""), _DIGITS.map(".{}".format), st.just(".")),
    st.one_of(st.just(""), st.integers(-330, 330).map("e{}".format), st.integers(0, 40).map("E+{:03}".format)),
)
def test_numbers_as_text_are_read_as_python_reads_them(sign, whole, fraction, exponent):
    _exactly(sign + whole + fraction + exponent)


@settings(max_examples=600, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([repr, "{:.17g}".format, "{:.25e}".format]))
def test_floats_are_read_as_they_were_written(number, written):
    _exactly(written(number))


@settings(max_examples=400, deadline=None)
@given(st.integers(2**52, 2**53 - 1), st.integers(-60, 60), st.sampled_from([-1, 0, 1]))
def test_ties_between_two_floats_go_to_even(mantissa, exponent, off):
    halfway = 2 * mantissa + 1
    tie = Decimal(halfway * 2**exponent if exponent >= 0 else halfway * 5**-exponent).scaleb(min(0, exponent), _EXACTLY)
    digits = format(tie, "f")
    if off > 0:
        digits += "1" if "." in digits else ".1"
    elif off < 0:
        digits = digits[:-1] + str(max(0, int(digits[-1]) - 1))
    _exactly(digits)


def test_usual_numbers_need_no_help(rng):
    numbers = np.concatenate([rng.standard_normal(3000), rng.random(3000) * 10.0 ** rng.integers(-30, 12, 3000)])
    for written in (repr, "{:.6f}".format, "{:.17g}".format):
        assert None not in [_number(written(float(number))) for number in numbers]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_numbers_come_back_from_a_file(tmp_path, rng, dtype):
    whole = np.uint32 if dtype == np.float32 else np.uint64
    values = rng.integers(0, np.iinfo(whole).max, 20000, dtype=whole, endpoint=True).view(dtype)
    values = np.concatenate([values[np.isfinite(values)], rng.standard_normal(3000), rng.random(3000).round(3)])
    values = np.concatenate([values.astype(dtype), [0, -0.0, 1e-300, 2.0**53, 0.1, 123456789, 1e22, 1e23]]).astype(
        dtype
    )
    x = sp.csr_matrix(
        (values, np.arange(len(values)) % 100, np.arange(0, len(values) + 100, 100).clip(max=len(values)))
    )
    y = rng.standard_normal(x.shape[0])
    y[:3] = [1e300, -1e-310, 3]
    write_svmlight(tmp_path / "all.svm", x, y)
    _same(_whole(SvmlightSource(tmp_path / "all.svm", dtype=dtype, n_features=100)), (x, y, None))


def test_compiled_kernels_and_their_python_agree():
    data = np.frombuffer(
        b"1 qid:3 5:1e-3 2:12345678901234567e-19 7:0.30000000000000004\nx\n-2.5 qid:4 1:1 1:2\n", np.uint8
    )
    results = []
    for parse in (text_kernels.parse, text_kernels.parse.py_func):
        arrays = np.zeros(4, np.int32), np.zeros(7, np.int32), np.zeros(7), np.zeros(3), np.zeros(3, np.int64)
        faults = np.zeros((5, 2), np.int64)
        numbers = parse(data, len(data), 0, 100, -1, 1e300, *arrays, faults)
        results.append([np.asarray(a).tolist() for a in (*numbers, *arrays, faults)])
    assert results[0] == results[1]
    with np.errstate(over="ignore"):
        for m, q in [(12345678901234567, -19), (2**53 + 1, 0), (10**17 + 1, 30), (3, -180)]:
            assert decimals.nearest.py_func(m, q) == decimals.nearest(m, q) == float(f"{m}e{q}")


# Grammar


def test_grammar(tmp_path):
    assert _rows(tmp_path, _LINES) == ([[0.5, 0, 2, 0], [0, 1e-3, 0, 0], [0.5, 0, 0, 0]], [1, -1, 2.5], None)


@pytest.mark.parametrize(
    ("content", "x", "y"),
    [
        ("+1 1:+2\n", [[2]], [1]),
        ("1 1:2", [[2]], [1]),
        ("1\t1:2 \t 2:3  \r\n-1 1:1\r\n", [[2, 3], [1, 0]], [1, -1]),
        ("  1 1:2#3:4\n", [[2]], [1]),
        ("1#\n2 1:1\n", [[0], [1]], [1, 2]),
        ("1 3:3 1:1 2:2\n", [[1, 2, 3]], [1]),
        ("1 0:5 2:1\n", [[5, 0, 1]], [1]),
        ("1 0000000000000000000001:5\n", [[5]], [1]),
        ("\ufeff1 1:1\n", [[1]], [1]),
        ("1\n2\n", [[], []], [1, 2]),
        ("1e2 1:1.e1 2:5E-1\n", [[10, 0.5]], [100]),
    ],
)
def test_what_is_allowed(tmp_path, content, x, y):
    assert _rows(tmp_path, content) == (x, y, None)


def test_rows_out_of_order_are_sorted_with_their_values(tmp_path, rng):
    x, y = _some_data(rng, 40, 400)
    lines = []
    for i in range(40):
        entries = list(zip(x[i].indices, x[i].data, strict=True))
        rng.shuffle(entries)
        lines.append(f"{y[i]} " + " ".join(f"{int(j) + 1}:{float(v)!r}" for j, v in entries))
    x.sort_indices()
    source = SvmlightSource(_file(tmp_path, "\n".join(lines)), dtype=np.float64, n_features=400)
    _same(_whole(source), (x, y, None))


def test_groups(tmp_path, rng):
    assert _rows(tmp_path, "1 qid:7 1:1\n2 qid:7\n0 qid:9 2:1\n") == ([[1, 0], [0, 0], [0, 1]], [1, 2, 0], [7, 7, 9])
    x, y = _some_data(rng)
    groups = np.arange(300) // 7
    write_svmlight(tmp_path / "grouped.svm", x, y, group=groups)
    _same(_whole(SvmlightSource(tmp_path / "grouped.svm", dtype=np.float64, n_features=50)), (x, y, groups))


# Errors


@pytest.mark.parametrize(
    ("content", "line", "column", "words"),
    [
        ("1 1:1\n1,3 5:1\n", 2, 1, "the label '1,3' is not a number"),
        ("1 1:1\n\n#\nyes 5:1\n", 4, 1, "the label 'yes' is not a number"),
        ("2:1 5:1\n", 1, 1, "the label '2:1' is not a number"),
        ("1 1:1 5\n", 1, 7, "'5' is not index:value"),
        ("1 1:1 -5:2\n", 1, 7, "'-5:2' is not index:value"),
        ("1 1:1 x:2\n", 1, 7, "'x:2' is not index:value"),
        ("1 1:1 qid:2\n", 1, 7, "'qid:2' is not index:value"),
        ("1 1:1  5:\n", 1, 8, "the value of '5:' is not a number"),
        ("1 1:1\t5:1.2.3\n", 1, 7, "the value of '5:1.2.3' is not a number"),
        ("1 1:1_0\n", 1, 3, "'1:1_0' is not a number"),
        ("1 1:1e\n", 1, 3, "'1:1e' is not a number"),
        ("1 1:.\n", 1, 3, "'1:.' is not a number"),
        ("1 1:1\n1 2:nan\n", 2, 3, "'2:nan' is not finite"),
        ("1 1:1\n1 2:-inf\n", 2, 3, "'2:-inf' is not finite"),
        ("NaN 2:1\n", 1, 1, "'NaN' is not finite"),
        ("1 1:1\n1 2:1 3:1e999\n", 2, 7, "'3:1e999' is too large"),
        ("1e999 1:1\n", 1, 1, "'1e999' is too large"),
        ("1 2:1 2:2\n", 1, 7, "the index of '2:2' is in this row before"),
        ("1 3:1 1:1 3:2\n", 1, 11, "the index of '3:2' is in this row before"),
        ("1 1:1 99999999999999999999:2\n", 1, 7, "beyond 2147483647"),
        ("1 qid:a 1:1\n", 1, 3, "'qid:a' must be qid: and a whole number"),
        ("1 qid:133333333333333314829616256247 1:1\n", 1, 3, "must be qid: and a whole number"),
        ("1 qid:1 1:1\n2 1:1\n", 2, 3, "no qid, but earlier rows have one"),
        ("1 1:1\n2 qid:2 1:1\n", 2, 3, "'qid:2', but earlier rows have no qid"),
        (b"\x00\x01\x02\xff\n", 1, 1, "is not text"),
    ],
)
def test_errors_name_the_place(tmp_path, content, line, column, words):
    path = _file(tmp_path, content)
    with pytest.raises(DataError) as caught:
        _whole(SvmlightSource(path, dtype=np.float64))
    error = caught.value
    assert (error.path, error.row, error.column) == (str(path), line, column)
    assert str(error).startswith(f"{path}, line {line}, column {column}: ") and words in str(error)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_lines_are_counted_over_pieces_and_files(tmp_path, n_jobs):
    good = _file(tmp_path, "1 1:1 2:2\n" * 100, "good.svm")
    bad = _file(tmp_path, "1 1:1 2:2\n" * 77 + "1 1:1 2:x\n" + "1 1:1\n" * 50, "bad.svm")
    with pytest.raises(DataError, match=r"bad.svm, line 78, column 7: the value of '2:x'"):
        _whole(SvmlightSource([good, bad], n_jobs=n_jobs))


@pytest.mark.parametrize("zero_based", [False, "auto"])
def test_features_beyond_those_declared(tmp_path, zero_based):
    path = _file(tmp_path, "1 3:1\n1 1:1 4:1\n")
    assert SvmlightSource(path, n_features=4, zero_based=zero_based).n_features == 4
    with pytest.raises(DataError, match=r"line 2, column 7: the index of '4:1' is beyond 3, .* n_features"):
        _whole(SvmlightSource(path, n_features=3, zero_based=zero_based))
    with pytest.raises(DataError, match="line 2, column 7: the index of '4:1' is beyond 3"):
        _whole(SvmlightSource(path, n_features=4, zero_based=True))


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_one_decision_where_features_start(tmp_path, n_jobs):
    late = _file(tmp_path, "1 1:1 2:1\n" * 50 + "1 0:1\n")
    with pytest.raises(DataError, match=r"line 51, column 3: '0:1' has the index 0.* zero_based=True"):
        _whole(SvmlightSource(late, n_jobs=n_jobs))
    assert SvmlightSource(late, zero_based=True).n_features == 3
    early = _file(tmp_path, "1 0:1 2:1\n" * 10, "early.svm")
    assert _whole(SvmlightSource([early, late], n_jobs=n_jobs))[0].shape == (61, 3)
    with pytest.raises(DataError, match=r"early.svm, line 1, column 3: .*counted from 1"):
        _whole(SvmlightSource(early, zero_based=False))


def test_values_beyond_float32(tmp_path):
    path = _file(tmp_path, "1 1:3.4028235e38 2:3.402823567e38\n1 1:1e39\n")
    with pytest.raises(DataError, match=r"line 2, column 3: '1:1e39' is too large for float32. Give dtype=float64"):
        _whole(SvmlightSource(path, dtype=np.float32))
    assert _whole(SvmlightSource(path, dtype=np.float64))[0][1, 0] == 1e39
    largest = _whole(SvmlightSource(path, dtype=np.float32, on_error="skip"))[0]
    assert (largest.toarray() == np.finfo(np.float32).max).all()


@pytest.mark.usefixtures("small_pieces")
def test_malformed_lines_are_left_out_on_demand(tmp_path):
    good = [f"{i} qid:1 1:{i} 2:1\n" for i in range(60)]
    bad = ["x\n", "1 qid:1 1:1 1:1\n", "1 1:1\n", "1 qid:1 2:1e999\n", "1 qid:1 5:1\n"] * 4
    lines = [line for pair in zip(good, bad, strict=False) for line in pair] + good[len(bad) :]
    source = SvmlightSource(_file(tmp_path, "".join(lines)), on_error="skip", n_features=2)
    x, y, groups = _whole(source)
    assert y.tolist() == list(range(60)) == x[:, 0].toarray().ravel().tolist() and (groups == 1).all()
    assert source.n_skipped == 20 and len(source.skipped) == 10
    assert [", line 2, column 1: " in source.skipped[0], "line 8, column 9: '2:1e999'" in source.skipped[3]] == [
        True
    ] * 2


def test_the_first_row_that_counts_says_whether_there_are_groups(tmp_path):
    path = _file(tmp_path, "1 qid:1 2:1e999\n2 2:1\n3 qid:2 1:1e999\n4 2:1\n")
    source = SvmlightSource(path, on_error="skip")
    assert _whole(source)[1].tolist() == [2, 4] and source.n_skipped == 2


@pytest.mark.parametrize("content", ["", "\n\n", "# nothing\n"])
def test_files_without_examples(tmp_path, content):
    path, good = _file(tmp_path, content), _file(tmp_path, "1 1:1\n", "good.svm")
    for paths in ([path], [good, path], [path, good]):
        with pytest.raises(DataError, match=f"{path.name} has no examples"):
            len(SvmlightSource(paths))


def test_files_in_which_everything_is_malformed(tmp_path):
    path = _file(tmp_path, "a,b\n1;2\n")
    with pytest.raises(DataError, match="has no examples; every line must read"):
        len(SvmlightSource(path, on_error="skip"))


def test_what_cannot_be_opened(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"none.svm does not exist"):
        SvmlightSource(tmp_path / "none.svm")
    with pytest.raises(DataError, match="is a folder"):
        SvmlightSource(tmp_path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(DataError, match=r"data.svm may not be read by you"):
        SvmlightSource(_file(tmp_path, _LINES))


def test_a_line_of_many_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 1 << 10)
    path = _file(tmp_path, "1 " + " ".join(f"{i}:1" for i in range(1, 2000)) + "\n" + _LINES.decode())
    assert SvmlightSource(path).n_features == 1999


def test_utf16(tmp_path):
    with pytest.raises(DataError, match="is not text"):
        len(SvmlightSource(_file(tmp_path, _LINES.decode().encode("utf-16"))))


@pytest.mark.parametrize(
    "wrong",
    [
        {"chunk_rows": 0},
        {"n_features": 0},
        {"n_jobs": 0},
        {"zero_based": "no"},
        {"on_error": "ignore"},
        {"dtype": np.int32},
    ],
)
def test_options_are_checked(tmp_path, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        mm.data.open(_file(tmp_path, _LINES), **wrong)


def test_text_has_no_random_access(tmp_path):
    with pytest.raises(ValueError, match="Convert it first"):
        next(SvmlightSource(_file(tmp_path, _LINES)).chunks(order=np.arange(1)))


# Pieces, chunks, threads, compression


@pytest.mark.parametrize(("piece", "n_jobs"), [(16, 3), (100, 1), (1000, 3), (1 << 20, 1)])
def test_the_same_data_however_it_is_cut(tmp_path, monkeypatch, rng, piece, n_jobs):
    x, y = _some_data(rng)
    for a, b in ((0, 100), (100, 101), (101, 300)):
        write_svmlight(tmp_path / f"{a:03}.svm", x[a:b], y[a:b], group=np.arange(a, b))
    monkeypatch.setattr(pieces, "PIECE", piece)
    for chunk_rows in (None, 1, 7, 150, 1000):
        source = SvmlightSource(sorted(tmp_path.iterdir()), chunk_rows=chunk_rows, n_jobs=n_jobs, dtype=np.float64)
        _same(_whole(source), (x, y, np.arange(300)))
        if chunk_rows:
            sizes = [len(chunk) for chunk in source.chunks()]
            assert max(sizes) <= chunk_rows and sum(sizes) == 300


@pytest.mark.usefixtures("small_pieces")
def test_width_is_learnt_on_the_way(tmp_path):
    source = SvmlightSource(_file(tmp_path, "".join(f"1 {i}:1\n" for i in range(1, 101))))
    assert [c.x.shape[1] for c in source.chunks()] == sorted({c.x.indices.max() + 1 for c in source.chunks()})
    assert {c.x.shape[1] for c in source.chunks()} == {source.n_features} == {100}
    assert {c.x.indices.dtype for c in source.chunks()} == {np.dtype(np.int32)}
    assert next(SvmlightSource(source.paths, n_features=200).chunks()).x.shape[1] == 200


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("name", ["data.svm.gz", "data.svm.zst", "data"])
def test_compressed_files(tmp_path, rng, name):
    x, y = _some_data(rng)
    write_svmlight(tmp_path / "plain.svm", x, y)
    compression = {".gz": "gzip", ".zst": "zstd"}.get(Path(name).suffix)
    if compression:
        write_svmlight(tmp_path / name, x, y)
    else:  # told by its first bytes
        (tmp_path / name).write_bytes(gzip.compress((tmp_path / "plain.svm").read_bytes()))
    read = _whole(SvmlightSource(tmp_path / name, dtype=np.float64, n_features=50, n_jobs=2))
    _same(read, (x, y, None))
    packed = (tmp_path / name).read_bytes()
    assert len(packed) < (tmp_path / "plain.svm").stat().st_size
    twice = _file(tmp_path, packed + packed, f"twice-{name}")  # members one after another
    assert len(SvmlightSource(twice)) == 2 * len(y)


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_broken_compressed_files(tmp_path, rng, kind):
    x, y = _some_data(rng)
    write_svmlight(tmp_path / f"good.{kind}", x, y)
    good = (tmp_path / f"good.{kind}").read_bytes()
    for i, broken in enumerate([good[:-1], good[: len(good) // 2], good[:5], good + b"junk", good + good[:20]]):
        path = _file(tmp_path, broken, f"broken{i}.svm.{kind}")
        with pytest.raises(DataError, match=rf"broken{i}.* is broken (gzip|Zstandard) data") as caught:
            len(SvmlightSource(path))
        assert caught.value.path == str(path)
    with pytest.raises(DataError, match="though its name says so"):
        len(SvmlightSource(_file(tmp_path, b"1 1:1\n", f"plain.svm.{kind}")))


def test_gzip_that_is_spoilt(tmp_path):
    good = gzip.compress(_LINES)
    with pytest.raises(DataError, match="broken gzip data"):
        len(SvmlightSource(_file(tmp_path, good[:-8] + bytes(4) + good[-4:], "checksum.gz")))
    with pytest.raises(DataError, match="has no examples"):
        len(SvmlightSource(_file(tmp_path, gzip.compress(b""), "empty.gz")))


def test_zstandard_by_another_writer(tmp_path):
    packed = pa.compress(_LINES, codec="zstd", asbytes=True)
    assert len(SvmlightSource(_file(tmp_path, packed, "data.zst"))) == 3


def test_files_that_change(tmp_path):
    path = _file(tmp_path, _LINES)
    source = SvmlightSource(path)
    before = source.fingerprint
    assert before == SvmlightSource(path).fingerprint and len(source) == 3
    with path.open("ab") as file:
        file.write(b"1 1:1\n")
    with pytest.raises(DataError, match="changed since it was opened"):
        list(source.chunks())
    assert SvmlightSource(path).fingerprint != before
    source = SvmlightSource(path)
    path.unlink()
    with pytest.raises(DataError, match="does not exist"):
        list(source.chunks())


@pytest.mark.usefixtures("small_pieces")
def test_files_that_grow_while_they_are_read(tmp_path):
    path = _file(tmp_path, "1 1:1\n" * 100)
    chunks = SvmlightSource(path).chunks()
    next(chunks)
    with path.open("ab") as file:
        file.write(b"1 1:1\n")
    with pytest.raises(DataError, match="changed since it was opened: it had 600 bytes"):
        list(chunks)


@pytest.mark.usefixtures("small_pieces")
def test_a_pass_that_is_given_up_leaves_nothing_behind(tmp_path):
    source = SvmlightSource(_file(tmp_path, "1 1:1\n" * 1000), n_jobs=3)
    chunks = source.chunks()
    next(chunks)
    chunks.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("maxmargin-read")]
    assert len(source) == 1000


# Real data


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["a9a", "w8a", "lgbm_rank.train"])
def test_real_files_are_read_as_by_scikit_learn(name):
    from sklearn.datasets import load_svmlight_file

    path = Path(os.environ["MAXMARGIN_DATA"]) / f"{name}.libsvm.gz"
    with gzip.open(path) as file:
        x, y = load_svmlight_file(file)
    _same(_whole(SvmlightSource(path, dtype=np.float64, chunk_rows=5000, n_jobs=2)), (x, y, None))

"""Every kind of source gives the same data back; what cannot be read is refused in words that help."""

import gc
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from source_kinds import (
    GROUP,
    KINDS,
    SEEKABLE,
    WEIGHT,
    D,
    N,
    X,
    Y,
    arrays,
    csr,
    dense,
    npy,
    npy_by_columns,
    resident,
    text,
    together,
)
from thinned import rotating

import maxmargin as mm
from maxmargin.data import DataError
from maxmargin.data.prefetch import prefetched


@pytest.mark.parametrize(("kind", "rows"), rotating(KINDS, [1, 10, None], times=2))
def test_same_data_in_same_data_out(kind, rows, tmp_path):
    source = kind(tmp_path, rows)
    assert source.n_features == D
    assert len(source) == N
    for _ in range(2):
        ids, x, y, group, weight = together(source.chunks())
        assert np.array_equal(ids, np.arange(N))
        assert np.array_equal(x, X)
        assert np.array_equal(y, Y)
        assert np.array_equal(group, GROUP)
        if kind is not text:  # which has no weights
            assert np.array_equal(weight, WEIGHT)


@pytest.mark.parametrize("kind", SEEKABLE)
def test_chunks_in_any_order(kind, tmp_path, rng):
    source = kind(tmp_path, 10)
    (tmp_path / "again").mkdir()
    again = kind(tmp_path / "again", 10)
    assert source.fingerprint == again.fingerprint or kind in (npy, npy_by_columns)  # files differ by their time
    assert source.offsets[0] == 0
    assert source.offsets[-1] == N
    assert not np.setdiff1d(source.offsets[1:-1], np.flatnonzero(np.diff(GROUP)) + 1).size  # groups stay whole
    order = rng.permutation(source.offsets.size - 1)
    for i, chunk in zip(order, source.chunks(order), strict=True):
        a, b = source.offsets[i], source.offsets[i + 1]
        assert np.array_equal(chunk.ids, np.arange(a, b))
        assert np.array_equal(dense(chunk.x), X[a:b])
        assert np.array_equal(chunk.y, Y[a:b])
        alone = source.labels(i)
        assert alone.x is None
        assert np.array_equal(alone.y, Y[a:b])
        assert np.array_equal(alone.group, GROUP[a:b])
        assert np.array_equal(alone.weight, WEIGHT[a:b])
        assert source.nbytes(i) >= 8 * (b - a)
        source.release(i)
        assert np.array_equal(dense(source.chunk(i).x), X[a:b])


def test_chunks_of_arrays_are_views():
    x = sp.csr_matrix(X)
    assert np.shares_memory(mm.data.open(X).chunk(0).x, X)
    chunk = mm.data.open(x, chunk_rows=10).chunk(3).x
    assert np.shares_memory(chunk.data, x.data)
    assert np.shares_memory(chunk.indices, x.indices)


def test_fingerprint_changes_with_the_data():
    source = mm.data.open(X, labels=Y)
    other = X.copy()
    other[50, 2] += 1
    labels = Y.copy()
    labels[7] = 9
    seen = {source.fingerprint, mm.data.open(other, labels=Y).fingerprint, mm.data.open(X, labels=labels).fingerprint}
    assert len(seen) == 3


def test_precision_can_be_chosen(tmp_path):
    for kind in (arrays, csr):
        source = kind(tmp_path, 10)
        assert mm.data.open(source) is source
    assert mm.data.open(X, dtype="float64").chunk(0).x.dtype == np.float64
    assert mm.data.open(X.astype(int)).chunk(0).x.dtype == np.float64
    with pytest.raises(DataError, match=r"1e\+300 in row 1, column 0 is too large for float32"):
        list(mm.data.open(np.array([[1.0], [1e300]]), dtype="float32").chunks())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mm.data.open(X, groups=np.arange(N) % 2), r"group 0 begins again in row 2\..*convert gather"),
        (lambda: mm.data.open(X[0]), "one row per example"),
        (lambda: mm.data.open("/nowhere/x.npz"), "does not exist"),
        (lambda: mm.data.open(X, n_features=3), "x has 7 columns, n_features=3"),
        (lambda: mm.data.open("/nowhere/x.npy"), r"does not exist\. There is no folder"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(DataError, match=message):
        make()


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_values_that_are_not_finite_are_named(make):
    x = X.astype(float)
    x[70, 3] = np.nan
    source = mm.data.open(make(x), chunk_rows=20)
    with pytest.raises(DataError, match="nan in row 70, column 3") as caught:
        list(source.chunks())
    assert (caught.value.row, caught.value.column) == (70, 3)


def test_mixed_kinds_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", X)
    pq.write_table(pa.table({"a": X[:, 0], "target": Y}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"a.npy is .npy arrays, .*b.parquet is Parquet"):
        mm.data.open([tmp_path / "a.npy", tmp_path / "b.parquet"])


def test_kind_is_told_by_the_first_bytes(tmp_path):
    pq.write_table(pa.table({"a": X[:, 0], "target": Y}), tmp_path / "no_suffix")
    assert len(mm.data.open(tmp_path / "no_suffix")) == N
    with open(tmp_path / "array", "wb") as file:
        np.save(file, X)
    assert mm.data.open(tmp_path / "array").n_features == D
    (tmp_path / "strange").write_bytes(b"\x00\x01\x02" * 50)
    with pytest.raises(DataError, match="of no kind that can be read"):
        mm.data.open(tmp_path / "strange")


def test_damaged_arrays_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", X)
    whole = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(whole[:-10])
    (tmp_path / "head.npy").write_bytes(whole[:20])
    np.save(tmp_path / "objects.npy", np.array([[{}]]), allow_pickle=True)
    for name, message in (
        ("cut.npy", "is not a whole .npy file"),
        ("head.npy", "is not a whole .npy file"),
        ("objects.npy", "Python objects"),
    ):
        with pytest.raises(DataError, match=message):
            mm.data.open(tmp_path / name)


def test_npy_that_changes_meanwhile_is_noticed(tmp_path):
    np.save(tmp_path / "x.npy", X)
    source = mm.data.open(tmp_path / "x.npy", chunk_rows=10)
    source.chunk(0)
    np.save(tmp_path / "x.npy", X[:50])
    with pytest.raises(DataError, match="changed since it was opened"):
        source.chunk(9)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how much of a file is resident")
def test_memory_of_a_mapped_file_is_given_back(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((1 << 14, 512)))  # 64 MiB
    source = mm.data.open(tmp_path / "x.npy")
    assert 1 < max(resident(tmp_path / "x.npy") for _ in source.chunks()) < 32
    assert resident(tmp_path / "x.npy") < 1


# Pairs ---------------------------------------------------------------------------------------------------------------

PAIRS = [(f"word{i}", i % 3) for i in range(25)]


def _made():
    yield from PAIRS


class _Again:
    def __iter__(self):
        return iter(PAIRS)


@pytest.mark.parametrize("pairs", [PAIRS, _made, _Again()], ids=["list", "function", "iterable"])
@pytest.mark.parametrize("rows", [1, 4, 1000, None])
def test_pairs_come_back(pairs, rows):
    source = mm.data.open(pairs, chunk_rows=rows)
    assert source.n_features is None
    for _ in range(2):
        chunks = list(source.chunks())
        assert [pair for c in chunks for pair in zip(c.x, c.y, strict=True)] == PAIRS
        assert np.array_equal(np.concatenate([c.ids for c in chunks]), np.arange(25))
    assert len(source) == 25


def test_list_of_pairs_in_any_order():
    source = mm.data.open(PAIRS, chunk_rows=4)
    order = np.array([6, 0, 3])
    assert [c.ids[0] for c in source.chunks(order)] == [24, 0, 12]
    assert source.labels(1).y == [1, 2, 0, 1]
    assert source.nbytes(0) > source.nbytes(6) > 0
    assert source.fingerprint == mm.data.open(list(PAIRS)).fingerprint
    assert source.fingerprint != mm.data.open([*PAIRS[:-1], ("word24", 2)]).fingerprint


def test_generator_is_refused_with_advice():
    with pytest.raises(DataError, match=r"only once.*Give the function that makes it"):
        mm.data.open(_made())


def test_function_that_gives_less_the_second_time_is_noticed():
    left = iter(PAIRS)
    source = mm.data.open(lambda: left)
    assert len(list(source.chunks())) == 1
    with pytest.raises(DataError, match="were 25 on an earlier pass and 0 on this one"):
        list(source.chunks())


def test_things_that_are_no_pairs_are_named():
    with pytest.raises(DataError, match=r"Example 1 is int, a pair \(x, y\) is needed"):
        list(mm.data.open([(1, 2), 3]).chunks())
    for thing in ({"a": 1}, {1, 2}, 5, None, b"bytes"):
        with pytest.raises(DataError, match=f"{type(thing).__name__} is nothing that can be opened"):
            mm.data.open(thing)
    with pytest.raises(DataError, match="one order only"):
        mm.data.open(_made).chunks(np.array([0]))


# Parquet -------------------------------------------------------------------------------------------------------------


def test_text_labels_and_text_groups_of_parquet(tmp_path):
    table = pa.table({"a": [1, 2, 3], "y": ["cat", "dog", "cat"], "g": ["p", "p", "q"], "flag": [True, False, True]})
    pq.write_table(table, tmp_path / "x.parquet")
    source = mm.data.open(tmp_path / "x.parquet", group="g", chunk_rows=2)
    ids, x, y, group, _ = together(source.chunks())
    assert ids.tolist() == [0, 1, 2]
    assert x.tolist() == [[1, 1], [2, 0], [3, 1]]
    assert y.tolist() == ["cat", "dog", "cat"]
    assert group.tolist() == [0, 0, 1]


@pytest.mark.parametrize(("value", "word"), [(None, "None"), (float("nan"), "nan"), (float("inf"), "inf")], ids=str)
@pytest.mark.parametrize("column", ["f1", "label"])
def test_bad_values_of_parquet_are_named_or_skipped(column, value, word, tmp_path):
    columns = {"f0": [1.0, 2.0, 3.0, 4.0], "f1": [1.0, 2.0, 3.0, 4.0], "label": [0.0, 1.0, 0.0, 1.0]}
    columns[column][2] = value
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    with pytest.raises(DataError, match=rf"x.parquet, row 2, column '{column}': {word}"):
        list(mm.data.open(tmp_path / "x.parquet", chunk_rows=2).chunks())
    source = mm.data.open(tmp_path / "x.parquet", chunk_rows=2, on_error="skip")
    assert len(source) == 3
    ids, x, y, _, _ = together(source.chunks())
    assert ids.tolist() == [0, 1, 2]
    assert x[:, 0].tolist() == [1, 2, 4]
    assert y.tolist() == [0, 1, 1]
    assert source.skipped == [f"{tmp_path / 'x.parquet'}, row 2, column {column!r}: {word}"]


def test_bad_values_of_sparse_parquet(tmp_path):
    table = pa.table({"indices": [[0, 2], [1], [0]], "values": [[1.0, 2.0], [float("nan")], [3.0]], "y": [0, 1, 0]})
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"row 1, column 'values': \[nan\]"):
        list(mm.data.open(tmp_path / "x.parquet").chunks())
    source = mm.data.open(tmp_path / "x.parquet", on_error="skip")
    assert (len(source), source.n_features) == (2, 3)
    assert together(source.chunks())[1].tolist() == [[1, 0, 2], [3, 0, 0]]
    with pytest.raises(DataError, match="row 0 is no row of a matrix with 2 columns"):
        list(mm.data.open(tmp_path / "x.parquet", n_features=2, on_error="skip").chunks())


def test_only_the_first_skipped_rows_of_parquet_are_described(tmp_path):
    """What was left out may be most of a large file: it is counted, and not kept in memory."""
    pq.write_table(pa.table({"a": [1.0, *[None] * 500], "y": [0] * 501}), tmp_path / "x.parquet")
    source = mm.data.open(tmp_path / "x.parquet", chunk_rows=20, on_error="skip")
    assert (len(source), source.n_skipped, len(source.skipped)) == (1, 500, 10)


def test_columns_of_parquet_that_do_not_fit_are_named(tmp_path):
    pq.write_table(pa.table({"a": [1.0], "name": ["x"], "label": [0]}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"these columns are not: name \(string\)\. Drop or encode"):
        mm.data.open(tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"has no column 'lable' for label=. It has: a, name, label"):
        mm.data.open(tmp_path / "x.parquet", label="lable")
    pq.write_table(pa.table([[1.0], [2.0]], names=["a", "a"]), tmp_path / "twice.parquet")
    with pytest.raises(DataError, match=r"two columns of one name: a, a"):
        mm.data.open(tmp_path / "twice.parquet")
    pq.write_table(pa.table({"a": [1.0], "b": [2.0]}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"a": [1], "b": [2.0]}), tmp_path / "c.parquet")
    pq.write_table(pa.table({"a": [1.0]}), tmp_path / "d.parquet")
    with pytest.raises(DataError, match=r"b.parquet and .*c.parquet differ in the columns a \(double\), a \(int64\)"):
        mm.data.open([tmp_path / "b.parquet", tmp_path / "c.parquet"])
    with pytest.raises(DataError, match=r"d.parquet differ in the columns b \(double\)"):
        mm.data.open([tmp_path / "b.parquet", tmp_path / "d.parquet"])


def test_damaged_parquet_is_named(tmp_path):
    pq.write_table(pa.table({"a": X[:, 0], "target": Y}), tmp_path / "x.parquet")
    whole = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"x.parquet is no Parquet file, or damaged"):
        mm.data.open(tmp_path / "x.parquet")


# Items made in the background ----------------------------------------------------------------------------------------


def _threads():
    return [t for t in threading.enumerate() if t.name == "maxmargin-prefetch"]


def test_prefetched_items_keep_their_order_and_errors_their_place():
    made = []

    def items():
        for i in range(10):
            made.append(i)
            yield i
        raise KeyError("bad")

    ahead = prefetched(items(), depth=2)
    assert next(ahead) == 0
    time.sleep(0.05)
    assert len(made) <= 3  # only so many are made ahead
    assert [next(ahead) for _ in range(9)] == list(range(1, 10))
    with pytest.raises(KeyError, match="bad"):
        next(ahead)
    assert not _threads()


@pytest.mark.parametrize("how", ["close", "drop", "error"])
def test_no_thread_is_left_behind(how):
    closed = []

    def items():
        try:
            yield from range(1000)
        finally:
            closed.append(True)

    ahead = prefetched(items())
    assert next(ahead) == 0
    assert len(_threads()) == 1
    if how == "close":
        ahead.close()
    elif how == "drop":
        del ahead
        gc.collect()
    else:
        with pytest.raises(KeyboardInterrupt):
            ahead.throw(KeyboardInterrupt)
    assert not _threads()
    assert closed == [True]

"""Conversion: every row arrives once, in an order that only data and seed decide, and nothing is left behind."""

import errno
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from compiled import equals_its_source
from source_kinds import together

import maxmargin as mm
from maxmargin.data import DataError, conversion
from maxmargin.kernels.batches import gather_entries, scrambled

N, D = 500, 12
SMALL = {"batch_bytes": 2000, "shard_bytes": 9000}


def _data(dense=False, seed=2):
    x = sp.random(N, D, 0.4, format="csr", random_state=seed, dtype=np.float32)
    return (x.toarray() if dense else x), np.arange(N)


def _bytes(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def _all(source):
    """Inputs (dense), labels, groups and weights of all chunks."""
    return together(source.chunks())[1:]


@pytest.mark.parametrize("dense", [True, False])
def test_every_row_arrives_once_with_what_belongs_to_it(dense, tmp_path):
    x, y = _data(dense)
    weight = y / 3
    source = mm.data.convert(x, tmp_path / "set", labels=y, weights=weight, **SMALL)
    got, labels, group, weights = _all(source)
    assert sorted(labels) == list(range(N))
    assert not np.array_equal(labels, y)
    assert np.array_equal(got, (x if dense else x.toarray())[labels])
    assert np.array_equal(weights, weight[labels])
    assert group is None
    assert len(list((tmp_path / "set").glob("*.arrow"))) > 2
    assert os.listdir(tmp_path) == ["set"]


def test_order_is_a_fair_shuffle(tmp_path):
    """Of many positions and rows each pair is as likely as any other: χ² of a table of eighths."""
    n = 8000
    counts = np.zeros((8, 8))
    for seed in range(4):
        x = np.zeros((n, 1), np.float32)
        source = mm.data.convert(x, tmp_path / str(seed), labels=np.arange(n), seed=seed)
        labels = _all(source)[1]
        np.add.at(counts, (np.arange(n) * 8 // n, labels * 8 // n), 1)
        assert abs(np.corrcoef(labels[1:], labels[:-1])[0, 1]) < 0.06
    expected = 4 * n / 64
    assert ((counts - expected) ** 2 / expected).sum() < 49 + 6 * np.sqrt(2 * 49)


@pytest.mark.parametrize(("dense", "grouped"), [(True, False), (False, True)])
def test_bytes_depend_on_data_and_seed_alone(dense, grouped, tmp_path, monkeypatch):
    depths = set()
    deal = conversion.Buckets.deal
    monkeypatch.setattr(conversion.Buckets, "deal", lambda self, hand: (depths.add(self.depth), deal(self, hand)))
    x, y = _data(dense)
    names = np.array(["a", "bc", "déf"])[y % 3]
    columns = {"labels": names, "weights": y / 7, **({"groups": y // 6} if grouped else {})}
    first = mm.data.convert(x, tmp_path / "first", **columns, **SMALL)
    settings = [
        ({"chunk_rows": 3}, set()),
        ({"memory": 30_000, "chunk_rows": 20}, {0}),  # dealt to files once
        ({"memory": 1500, "chunk_rows": 2}, {0, 1}),  # and again
    ]
    for k, (setting, dealt) in enumerate(settings):
        depths.clear()
        mm.data.convert(x, tmp_path / str(k), **columns, **SMALL, **setting)
        assert dealt <= depths and (len(dealt) > 1 or dealt == depths)
        assert _bytes(tmp_path / str(k)) == _bytes(tmp_path / "first"), setting
    assert len(os.listdir(tmp_path)) == 4
    other = mm.data.convert(x, tmp_path / "other", **columns, **SMALL, seed=1)
    assert other.fingerprint != first.fingerprint


def test_without_shuffle_rows_stay_in_order(tmp_path):
    x, y = _data()
    for k, memory in enumerate((10**8, 5000)):
        source = mm.data.convert(x, tmp_path / str(k), labels=y, shuffle=False, memory=memory, chunk_rows=7, **SMALL)
        got, labels, _, _ = _all(source)
        assert np.array_equal(labels, y)
        assert np.array_equal(got, x.toarray())
    assert np.array_equal(source.offsets, mm.data.open(tmp_path / "0").offsets)


def test_chunks_are_of_the_size_that_was_asked_for(tmp_path):
    x = np.ones((5000, 10), np.float32)
    source = mm.data.convert(x, tmp_path / "set", batch_bytes=4000, shard_bytes=40_000)
    sizes = [source.nbytes(i) for i in range(source.offsets.size - 1)]
    assert min(sizes[:-1]) >= 4000
    assert max(sizes) <= 4000 + 40
    shards = [os.path.getsize(path) for path in source.paths]
    assert min(shards[:-1]) >= 40_000
    assert max(shards) < 50_000


# Groups --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("memory", "scattered"), [(10**8, True), (4000, False), (4000, True)])
def test_groups_are_kept_together(memory, scattered, tmp_path, rng):
    x, y = _data()
    group = np.sort(rng.integers(0, 80, N) * 3 - 50)
    if scattered:
        mixed = rng.permutation(N)
        x, y, group = x[mixed], y[mixed], group[mixed]
    source = mm.data.convert(x, tmp_path / "set", labels=y, groups=group, memory=memory, chunk_rows=5, **SMALL)
    got, labels, groups, _ = _all(source)
    where = np.argsort(y)[labels]
    assert sorted(labels) == list(range(N))
    assert np.array_equal(groups, group[where])
    assert np.array_equal(got, x.toarray()[where])
    starts = np.flatnonzero(np.diff(groups)) + 1
    assert starts.size == np.unique(group).size - 1  # each group in one place
    assert not np.setdiff1d(source.offsets[1:-1], starts).size  # and in one chunk
    assert source.offsets.size > 4
    for name in np.unique(group):
        inside = where[groups == name]
        assert np.array_equal(inside, np.sort(inside))  # rows of a group keep their order
    assert not np.array_equal(groups, np.sort(groups))


def test_group_that_comes_back_without_shuffle(tmp_path):
    x, y = _data()
    group = np.arange(N) // 50
    group[430] = 3
    with pytest.raises(DataError, match="group 3 begins again in row 430"):
        mm.data.convert(x, tmp_path / "set", labels=y, groups=group, shuffle=False, chunk_rows=50)
    source = mm.data.convert(x, tmp_path / "set", labels=y, groups=np.arange(N) // 50, shuffle=False, **SMALL)
    assert np.array_equal(_all(source)[1], y)


@pytest.mark.parametrize("shuffle", [True, False])
def test_group_that_is_larger_than_memory(shuffle, tmp_path):
    x, y = _data()
    group = np.where((y >= 100) & (y < 450), 7, y)
    with pytest.raises(DataError, match=r"does not fit in memory at once.*give more memory than 5000 bytes"):
        mm.data.convert(x, tmp_path / "set", groups=group, memory=5000, shuffle=shuffle, chunk_rows=5)
    assert os.listdir(tmp_path) == []


# Kinds of input ------------------------------------------------------------------------------------------------------


def test_parquet_and_text_become_the_same_shards(tmp_path):
    x, y = _data()
    dense = x.toarray()
    rows = [
        f"{label} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row.tolist()) if v) + "\n"
        for label, row in zip(y, dense, strict=True)
    ]
    (tmp_path / "x.svm").write_text("".join(rows))
    lists = {n: np.split(a, x.indptr[1:-1]) for n, a in (("indices", x.indices), ("values", x.data))}
    pq.write_table(pa.table({**lists, "label": y.astype(float)}), tmp_path / "x.parquet")
    mm.data.convert(x, tmp_path / "a", labels=y.astype(float), **SMALL)
    mm.data.convert(tmp_path / "x.svm", tmp_path / "b", **SMALL)
    mm.data.convert(tmp_path / "x.svm", tmp_path / "c", n_jobs=2, chunk_rows=7, memory=20_000, **SMALL)
    mm.data.convert(tmp_path / "x.parquet", tmp_path / "d", chunk_rows=11, **SMALL)
    for name in "bcd":
        found, wanted = _bytes(tmp_path / name), _bytes(tmp_path / "a")
        if name != "d":  # text also says from which number it counts
            assert mm.data.open(tmp_path / name).origin == {"zero_based": False}
            assert found.pop("dataset.json") != wanted.pop("dataset.json")
        assert found == wanted, name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_text_keeps_the_digits_that_are_asked_for(dtype, tmp_path):
    (tmp_path / "x.svm").write_text("1 1:0.1\n")
    value = mm.data.convert(tmp_path / "x.svm", tmp_path / "set", dtype=dtype).chunk(0).x.data[0]
    assert value == np.dtype(dtype).type("0.1")
    assert value.dtype == dtype


def test_unsorted_and_double_entries_are_mended(tmp_path):
    x = sp.csr_matrix((np.array([1.0, 2, 3]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))

    class Foreign:
        """Somebody's own source, which gives what it likes."""

        n_features = 3

        def chunks(self, order=None):
            yield mm.protocols.Chunk(np.arange(1), x, np.array([1.0]))

        def __len__(self):
            return 1

    assert mm.data.convert(Foreign(), tmp_path / "set").chunk(0).x.toarray().tolist() == [[2, 0, 4]]


class _Failing:
    """A source that breaks off."""

    n_features = 2

    def __init__(self, **last):
        self._last = last

    def chunks(self, order=None):
        yield mm.protocols.Chunk(np.arange(2), np.ones((2, 2)), np.zeros(2), weight=np.ones(2))
        if not self._last:
            raise OSError(errno.EIO, "Input/output error")
        columns = {"x": np.ones((2, 2)), "y": np.zeros(2), "weight": np.ones(2), **self._last}
        yield mm.protocols.Chunk(np.arange(2, 4), **columns)

    def __len__(self):
        return 4


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (_Failing(x=np.array([[1, 1e300], [0, 0]])), r"1e\+300 in row 2, column 1 is too large for float32"),
        (_Failing(), "The data cannot be read on after 2 rows: Input/output error"),
        (_Failing(y=np.array([1, np.nan])), "The label of row 3 is nan; it must be finite"),
        (_Failing(weight=np.array([-1.0, 0])), "The weight of row 2 is -1.0; it must be not negative"),
        (_Failing(weight=np.array([0.0, np.nan])), "The weight of row 3 is nan"),
        (_Failing(weight=None), r"changes its kind at row 2: .* labels, weights before, .* labels now"),
        (_Failing(y=np.array(["a", "b"])), "float64 labels, weights before, dense rows of 2, utf8 labels"),
    ],
)
def test_source_that_breaks_off(source, message, tmp_path):
    with pytest.raises(DataError, match=message):
        mm.data.convert(source, tmp_path / "set")
    assert os.listdir(tmp_path) == []


def test_what_was_skipped_is_told(tmp_path):
    pq.write_table(pa.table({"a": [1.0, None, 3.0], "label": [0, 1, 0]}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match="row 1, column 'a'"):
        mm.data.convert(tmp_path / "x.parquet", tmp_path / "set")
    source = mm.data.convert(tmp_path / "x.parquet", tmp_path / "set", on_error="skip")
    assert len(source) == 2
    assert "row 1, column 'a'" in source.skipped[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory": "lots"}, "memory must be a number of bytes"),
        ({"memory": 0}, "memory must be a number of bytes"),
        ({"dtype": "int8"}, "dtype must be float32 or float64"),
        ({"batch_bytes": "2GB"}, "at most 1 GiB"),
        ({"labels": np.zeros((N, 2))}, "one label per row"),
        ({"labels": np.zeros(3)}, "labels has 3 entries"),
    ],
)
def test_bad_arguments(options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        mm.data.convert(_data()[0], tmp_path / "set", **options)
    assert os.listdir(tmp_path) == []


def test_bad_data(tmp_path):
    with pytest.raises(DataError, match="Only matrices become shards"):
        mm.data.convert([("a", 1)], tmp_path / "set")
    with pytest.raises(DataError, match="There are no examples"):
        mm.data.convert(np.empty((0, 3)), tmp_path / "set")
    with pytest.raises(DataError, match=r"1e\+300 in row 1, column 0 is too large for float32. Use dtype='float64'"):
        mm.data.convert(np.array([[1.0], [1e300]]), tmp_path / "set")
    mm.data.convert(np.array([[1.0], [1e300]]), tmp_path / "set", dtype="float64")
    with pytest.raises(DataError, match=r"nan in row 0"):
        mm.data.convert(np.array([[np.nan]]), tmp_path / "other")


# What is there already -----------------------------------------------------------------------------------------------


def test_existing_data_set_stays_unless_overwritten(tmp_path):
    x, y = _data()
    mm.data.convert(x, tmp_path / "set", labels=y)
    before = _bytes(tmp_path / "set")
    with pytest.raises(DataError, match=r"holds a data set already.*overwrite=True"):
        mm.data.convert(x, tmp_path / "set", labels=y, seed=3)
    broken = x.copy()
    broken.data[-1] = np.inf
    with pytest.raises(DataError, match="inf in row"):
        mm.data.convert(broken, tmp_path / "set", labels=y, overwrite=True)
    assert _bytes(tmp_path / "set") == before
    mm.data.convert(x, tmp_path / "set", labels=y, seed=3, overwrite=True)
    assert _bytes(tmp_path / "set") != before
    assert os.listdir(tmp_path) == ["set"]


def test_other_files_are_never_removed(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    (tmp_path / "file").write_text("x")
    for overwrite in (True, False):
        with pytest.raises(DataError, match="has other files in it"):
            mm.data.convert(_data()[0], tmp_path / "mine", overwrite=overwrite)
        with pytest.raises(DataError, match="is a file"):
            mm.data.convert(_data()[0], tmp_path / "file", overwrite=overwrite)
    mm.data.convert(_data()[0], tmp_path / "set")
    (tmp_path / "set" / "notes.txt").write_text("mine too")
    with pytest.raises(DataError, match=r"has other files in it, such as notes\.txt"):
        mm.data.convert(_data()[0], tmp_path / "set", overwrite=True)
    assert (tmp_path / "mine" / "thesis.txt").exists()


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("memory", "when", "error"),
    [
        (10**8, "reading", KeyboardInterrupt),
        (20_000, "reading", FULL),
        (20_000, "writing", KeyboardInterrupt),
        (10**8, "writing", FULL),
    ],
)
def test_nothing_is_left_of_what_was_begun(memory, when, error, tmp_path, monkeypatch):
    x, y = _data()
    mm.data.convert(x, tmp_path / "set", labels=y)
    before = _bytes(tmp_path / "set")

    def fail(*args, **options):
        raise error

    def tick(rows, done, total):
        if when == "reading" and rows > N // 2:
            raise error

    if when == "writing":
        monkeypatch.setattr(conversion, "write_contents", fail)
    expected = DataError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as caught:
        mm.data.convert(x, tmp_path / "set", labels=y, overwrite=True, memory=memory, chunk_rows=9, progress=tick)
    if isinstance(error, OSError):
        assert "set cannot be written: No space left on device. What was begun is removed" in str(caught.value)
    assert os.listdir(tmp_path) == ["set"]
    assert _bytes(tmp_path / "set") == before


@pytest.mark.skipif(sys.platform == "win32", reason="limits are set by other means there")
def test_file_that_cannot_grow(tmp_path):
    """A real write that fails half way, in a process of its own."""
    code = f"""
import resource, numpy as np, maxmargin as mm
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    mm.data.convert(np.ones((50_000, 8)), {str(tmp_path / "set")!r}, memory={{memory}}, batch_bytes=20_000)
except mm.data.DataError as error:
    print(error)
"""
    for memory in ("10**8", "500_000"):
        run = subprocess.run(
            [sys.executable, "-c", code.format(memory=memory)], capture_output=True, text=True, timeout=120, check=True
        )
        assert "cannot be written: File too large. What was begun is removed" in run.stdout
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent by other means there")
def test_interrupt_leaves_nothing_behind(tmp_path):
    code = f"""
import time, numpy as np, maxmargin as mm
def tick(rows, done, total):
    print("going", flush=True)
    time.sleep(0.01)
mm.data.convert(np.ones((50_000, 8)), {str(tmp_path / "set")!r}, memory=10**6, chunk_rows=100, progress=tick)
"""
    run = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "going\n"
    time.sleep(0.1)
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    assert os.listdir(tmp_path) == []


def test_progress_counts_rows_and_bytes(tmp_path):
    x, y = _data()
    calls = []
    mm.data.convert(x, tmp_path / "set", labels=y, chunk_rows=100, progress=lambda *state: calls.append(state))
    assert [rows for rows, _, _ in calls] == [100, 200, 300, 400, 500]
    assert calls[-1][1] == calls[-1][2] > 0
    pq.write_table(pa.table({"a": np.arange(100.0)}), tmp_path / "x.parquet")
    calls.clear()
    mm.data.convert(tmp_path / "x.parquet", tmp_path / "p", chunk_rows=50, progress=lambda *state: calls.append(state))
    assert calls == [(50, None, None), (100, None, None)]


# Kernels -------------------------------------------------------------------------------------------------------------


def test_kernels_equal_their_source_and_gather_rows(rng):
    x, order = _data()[0][:20], rng.permutation(20)
    out = np.empty(21, np.int32), np.empty(x.nnz, np.int32), np.empty(x.nnz, np.float32)
    rows = order, x.indptr.astype(np.int64), np.diff(x.indptr), x.indices, x.data
    _, (*_, indptr, indices, values) = equals_its_source(gather_entries, *rows, *out)
    assert (sp.csr_matrix((values, indices, indptr), shape=x.shape) != x[order]).nnz == 0
    assert np.unique(scrambled(np.arange(-500, 500), np.uint64(17))).size == 1000

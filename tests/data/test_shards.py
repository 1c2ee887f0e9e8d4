"""Shards: what is written is read, by us and by Arrow; what is damaged is found and named."""

import json
import os
import shutil
import sys

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from source_kinds import resident, together

import maxmargin as mm
from maxmargin.data import DataError
from maxmargin.data.shard_format import ShardWriter, read_contents, write_contents
from maxmargin.kernels import batches
from maxmargin.kernels.batches import check_rows

N, D = 60, 9


def _data(seed=1):
    x = sp.random(N, D, 0.4, format="csr", random_state=seed, dtype=np.float32)
    return x, np.random.default_rng(seed).integers(0, 4, N)


@pytest.fixture
def folder(tmp_path):
    """Sparse, in three shards of two batches each."""
    x, y = _data()
    mm.data.convert(x, tmp_path / "set", labels=y, shuffle=False, batch_bytes=450, shard_bytes=1500)
    assert len(list((tmp_path / "set").glob("*.arrow"))) == 3
    return tmp_path / "set"


def _rewrite(folder, change):
    """Change the table of contents as somebody would who knows how to compute its checksum."""
    from maxmargin.data import shard_format

    path = folder / "dataset.json"
    table = json.loads(path.read_text())
    del table["crc"]
    change(table)
    table["crc"] = shard_format._sum_of(table)
    path.write_text(json.dumps(table))


def _all(source):
    return together(source.chunks())[1:3]


def test_arrow_reads_the_files_too(folder):
    x, y = _data()
    tables = [pa.ipc.open_file(str(path)).read_all() for path in sorted(folder.glob("*.arrow"))]
    table = pa.concat_tables(tables)
    table.validate(full=True)
    assert table.column("label").to_pylist() == y.tolist()
    assert [index for row in table.column("indices").to_pylist() for index in row] == x.indices.tolist()
    assert np.array_equal([value for row in table.column("values").to_pylist() for value in row], x.data)


def test_chunks_are_views_of_the_file_that_kernels_take_like_arrays(folder):
    source = mm.data.open(folder)
    chunk = source.chunk(1)
    for part in (chunk.x.data, chunk.x.indices, chunk.x.indptr, chunk.y):
        assert not part.flags.owndata
        assert part.flags.writeable  # else compiled code would be compiled once more
        assert part.flags.aligned
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    chunk.x.data[:] = 7.0  # a private copy of the page
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    source.release(1)
    assert not (source.chunk(1).x.data == 7.0).all()


@pytest.mark.parametrize(
    "labels",
    [
        np.arange(N) * 0.5,
        np.arange(N) % 3,
        (np.arange(N) % 2).astype(bool),
        np.array(["déjà", "vu", ""])[np.arange(N) % 3],
        np.array(["a", "b"], object)[np.arange(N) % 2],
        None,
    ],
    ids=["float", "int", "bool", "text", "objects", "none"],
)
@pytest.mark.parametrize("dense", [True, False])
def test_labels_stay_as_they_are(labels, dense, tmp_path):
    x, _ = _data()
    source = mm.data.convert(
        x.toarray() if dense else x, tmp_path / "set", labels=labels, shuffle=False, batch_bytes=500
    )
    found = [c.y for c in source.chunks()]
    if labels is None:
        assert found == [None] * len(found)
    else:
        assert np.array_equal(np.concatenate(found), labels)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("dense", [True, False])
def test_precision(dtype, dense, tmp_path):
    x = _data()[0].astype(np.float64) / 3
    x = x.toarray() if dense else x
    source = mm.data.convert(x, tmp_path / "set", dtype=dtype, shuffle=False)
    got = source.chunk(0).x
    assert got.dtype == dtype
    expected = x.astype(dtype)
    assert (got == expected).all() if dense else (got != expected).nnz == 0
    other = {"float32": "float64", "float64": "float32"}[dtype]
    assert mm.data.open(tmp_path / "set", dtype=other).chunk(0).x.dtype == other


def test_rows_without_entries(tmp_path):
    x = sp.csr_matrix((5, 4), dtype=np.float32)
    source = mm.data.convert(x, tmp_path / "set", labels=np.arange(5), shuffle=False)
    assert source.n_features == 4
    assert source.chunk(0).x.nnz == 0


def test_n_features_can_be_larger_but_not_smaller(folder):
    assert mm.data.open(folder, n_features=20).chunk(0).x.shape[1] == 20
    with pytest.raises(DataError, match="have 9 features, n_features=5 was asked for"):
        mm.data.open(folder, n_features=5)


def test_fingerprint_is_of_the_contents_not_the_place(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    assert mm.data.open(folder).fingerprint == mm.data.open(tmp_path / "copy").fingerprint
    x, y = _data()
    y[3] += 1
    other = mm.data.convert(x, tmp_path / "other", labels=y, shuffle=False, batch_bytes=450, shard_bytes=1500)
    assert other.fingerprint != mm.data.open(folder).fingerprint


def test_two_data_sets_as_one(folder, tmp_path):
    wide = sp.random(5, 12, 0.5, format="csr", random_state=3, dtype=np.float32)
    mm.data.convert(wide, tmp_path / "more", labels=np.zeros(5, int), shuffle=False)
    both = mm.data.open([folder, tmp_path / "more"])
    x, y = _all(both)
    assert (len(both), both.n_features, x.shape) == (N + 5, 12, (N + 5, 12))
    assert np.array_equal(x[N:], wide.toarray())
    assert np.array_equal(y[:N], _data()[1])
    assert both.fingerprint != mm.data.open(folder).fingerprint


# Damage --------------------------------------------------------------------------------------------------------------


def _flip(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(bytes(data))


def _place(folder, shard, batch, column):
    return read_contents(folder).shards[shard].batches[batch].starts[column]


def test_flipped_value_names_file_and_batch(folder):
    _flip(folder / "00001.arrow", _place(folder, 1, 1, 3))
    source = mm.data.open(folder)
    source.chunk(2)
    with pytest.raises(DataError, match=r"00001.arrow is damaged in batch 1: the checksum of its inputs") as caught:
        source.chunk(3)
    assert caught.value.path == str(folder / "00001.arrow")
    assert source.labels(3).y is not None  # labels have a checksum of their own
    with pytest.raises(DataError, match="is damaged in batch 1"):
        list(source.chunks())


def test_flipped_label_is_found(folder):
    _flip(folder / "00000.arrow", _place(folder, 0, 0, 4))
    source = mm.data.open(folder)
    for read in (source.labels, source.chunk):
        with pytest.raises(DataError, match=r"00000.arrow is damaged in batch 0: the checksum of its labels"):
            read(0)


@pytest.mark.parametrize(("cut", "message"), [(None, "00002.arrow does not exist"), (1, "it is cut short")])
def test_shard_that_is_missing_or_cut_short(folder, cut, message):
    path = folder / "00002.arrow"
    whole = path.read_bytes()
    path.unlink()
    if cut:
        path.write_bytes(whole[:-cut])
    with pytest.raises(DataError, match=message):
        mm.data.open(folder)


def test_shard_without_read_permission(folder, monkeypatch):
    """Tests may run as a user who may read everything."""
    monkeypatch.setattr("maxmargin.data.shards.os.access", lambda path, mode: "00001" not in path)
    with pytest.raises(DataError, match=r"00001.arrow may not be read by you"):
        mm.data.open(folder)


@pytest.mark.parametrize("how", ["write", "replace", "remove", "cut"])
def test_file_that_changes_meanwhile(folder, how):
    source = mm.data.open(folder)
    source.chunk(0)
    path = folder / "00000.arrow"
    if how == "write":
        _flip(path, 500)
        os.utime(path, ns=(1, 1))
    elif how == "replace":
        shutil.copy(path, folder / "new")
        os.replace(folder / "new", path)
    elif how == "remove":
        path.unlink()
    else:
        os.truncate(path, 100)
    with pytest.raises(DataError, match="changed since it was opened" if how != "remove" else "does not exist"):
        source.chunk(1)
    source.chunk(2)


def test_folder_that_is_no_data_set(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"empty is no data set.* no dataset.json"):
        mm.data.open(tmp_path / "empty")
    (folder / "dataset.json").unlink()
    with pytest.raises(DataError, match=r"or not a whole one: it has no dataset\.json"):
        mm.data.open(folder)


def test_newer_format(folder):
    _rewrite(folder, lambda table: table.update(version=7))
    with pytest.raises(DataError, match="format version 7, this release reads up to 1"):
        mm.data.open(folder)


def test_flipped_digit_in_the_table_of_contents(folder):
    path = folder / "dataset.json"
    path.write_text(path.read_text().replace('"rows":60', '"rows":61', 1))
    with pytest.raises(DataError, match=r"dataset.json is damaged \(its checksum is wrong\)"):
        mm.data.open(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table["shards"][0].update(name="../other.arrow"),
        lambda table: table["shards"][0]["batches"][0].__setitem__(0, 10**9),
        lambda table: table["shards"][0]["batches"][0].__setitem__(1, -1),
        lambda table: table["shards"][0]["batches"][0][5].__setitem__(3, 10**9),
        lambda table: table["shards"][0]["batches"][0][5].__setitem__(3, -8),
        lambda table: table["shards"][0]["batches"][0][5].__setitem__(3, 3),
        lambda table: table["shards"][0]["batches"][0][5].__setitem__(3, "8"),
        lambda table: table["shards"][0]["batches"][0][5].pop(),
        lambda table: table["columns"].update(dtype="object"),
        lambda table: table["columns"].update(label="float16"),
        lambda table: table["columns"].pop("group"),
        lambda table: table.update(rows=1),
        lambda table: table.update(n_features="9"),
        lambda table: table.update(shards=None),
        lambda table: table.pop("columns"),
    ],
)
def test_table_of_contents_is_not_trusted(folder, change):
    """Its checksum is right, what it says is not: no place outside of the files may ever be read."""
    _rewrite(folder, change)
    with pytest.raises(DataError, match=r"dataset.json is damaged"):
        mm.data.open(folder)


def _forged(path, offsets, indices, values, again=None):
    """A shard with right checksums and wrong structure."""
    columns = read_contents(path.parent).columns
    writer = ShardWriter(path.parent / "forged.arrow", columns)
    arrays = [
        np.array(offsets, np.int32),
        np.array(indices, np.int32),
        np.array(offsets if again is None else again, np.int32),
        np.array(values, np.float32),
        np.zeros(len(offsets) - 1, np.int64),
    ]
    writer.write(arrays, (len(offsets) - 1, len(indices), 0))
    return writer


@pytest.mark.parametrize(
    "rows",
    [
        ([0, 2, 1], [0, 1], [1, 1]),
        ([0, 5, 2], [0, 1], [1, 1]),
        ([1, 2, 2], [0, 1], [1, 1]),
        ([0, 1, 1], [0, 1], [1, 1]),
        ([0, 1, 2], [0, 9], [1, 1]),
        ([0, 1, 2], [0, -1], [1, 1]),
        ([0, 2, 2], [4, 4], [1, 1]),
        ([0, 2, 2], [4, 3], [1, 1]),
        ([0, 1, 2], [0, 1], [1, np.inf]),
        ([0, 1, 2], [0, 1], [1, 1], [0, 2, 2]),
    ],
)
def test_structure_is_checked_even_if_the_checksum_is_right(folder, rows):
    shard = _forged(folder / "00000.arrow", *rows).close()
    write_contents(folder, read_contents(folder)._replace(shards=[shard]))
    with pytest.raises(DataError, match="is damaged in batch 0"):
        mm.data.open(folder).chunk(0)


@pytest.mark.parametrize("run", [check_rows, check_rows.py_func], ids=["compiled", "python"])
@pytest.mark.parametrize(
    ("indptr", "indices", "values", "verdict"),
    [
        ([0, 2, 3], [0, 3, 1], [1, 2, 3], (batches.GOOD, 0, 0)),
        ([0], [], [], (batches.GOOD, 0, 0)),
        ([], [], [], (batches.BAD_OFFSETS, 0, 0)),
        ([0, 3, 2, 3], [0, 3, 1], [1, 2, 3], (batches.BAD_OFFSETS, 1, 0)),
        ([0, 9, 3], [0, 3, 1], [1, 2, 3], (batches.BAD_OFFSETS, 0, 0)),
        ([1, 2, 3], [0, 3, 1], [1, 2, 3], (batches.BAD_OFFSETS, 0, 0)),
        ([0, 2, 3], [0, 3, 1], [1, 2], (batches.BAD_OFFSETS, 0, 0)),
        ([0, 2, 3], [0, 4, 1], [1, 2, 3], (batches.BAD_INDEX, 0, 1)),
        ([0, 2, 3], [0, 3, -1], [1, 2, 3], (batches.BAD_INDEX, 1, 2)),
        ([0, 2, 3], [3, 3, 1], [1, 2, 3], (batches.UNSORTED, 0, 1)),
        ([0, 2, 3], [3, 1, 1], [1, 2, np.nan], (batches.NOT_FINITE, 1, 2)),
    ],
)
def test_first_thing_that_is_wrong_with_rows(run, indptr, indices, values, verdict):
    found = run(np.array(indptr, np.int32), np.array(indices, np.int32), np.array(values, np.float32), 4)
    assert tuple(int(n) for n in found) == verdict


def test_folders_that_do_not_go_together(folder, tmp_path):
    x, y = _data()
    mm.data.convert(x, tmp_path / "text", labels=y.astype(str))
    with pytest.raises(DataError, match=r"set and .*text hold unlike data: .*label='int64'.*label='utf8'"):
        mm.data.open([folder, tmp_path / "text"])
    for name in "ab":
        mm.data.convert(x, tmp_path / name, labels=y, groups=np.arange(N) // 6, shuffle=False)
    with pytest.raises(DataError, match=r"group 0 begins again in row 60\..*convert gather"):
        mm.data.open([tmp_path / "a", tmp_path / "b"])
    both = mm.data.convert([tmp_path / "a", tmp_path / "b"], tmp_path / "both")
    assert len(both) == 2 * N


def test_single_arrow_files_are_refused(folder):
    with pytest.raises(DataError, match=r"00000.arrow is one Arrow file.*by the name of their folder"):
        mm.data.open(str(folder / "*.arrow"))


def test_options_that_mean_nothing_are_refused(folder):
    with pytest.raises(DataError, match=r"chunk_rows= means nothing for folders of shards\. It is for"):
        mm.data.open(folder, chunk_rows=5)


def test_many_files_are_not_all_open_at_once(tmp_path, monkeypatch):
    from maxmargin.data import shards as module

    monkeypatch.setattr(module, "_OPEN_FILES", 2)
    x, y = _data()
    source = mm.data.convert(x, tmp_path / "set", labels=y, shuffle=False, batch_bytes=100, shard_bytes=100)
    assert len(source.paths) > 5
    assert np.array_equal(_all(source)[0], x.toarray())
    assert len(source._files) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how much of a file is resident")
def test_memory_is_given_back(tmp_path):
    mm.data.convert(np.ones((1 << 13, 1024), np.float32), tmp_path / "set", shuffle=False, batch_bytes="1MB")
    source, path = mm.data.open(tmp_path / "set"), tmp_path / "set" / "00000.arrow"
    for _ in range(2):
        assert 0.5 < max(resident(path) for _ in source.chunks()) < 12  # of 32 MiB
    for i in range(source.offsets.size - 1):
        source.release(i)
    assert resident(path) < 2

"""Data on other file systems is the same data: found, read, checked, cut into pieces and sent to other processes."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from pyarrow._fs import _MockFileSystem
from source_kinds import together
from svmlight_text import write_svmlight

import maxmargin as mm
from maxmargin.data import DataError
from maxmargin.data.selections import split
from maxmargin.data.stores import Store

N, D = 90, 12
RNG = np.random.default_rng(3)
X = sp.random(N, D, 0.4, format="csr", random_state=1, dtype=np.float32)
Y = RNG.integers(0, 3, N)


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """Shards, Parquet and text on a local disk."""
    place = tmp_path_factory.mktemp("data")
    names = np.array(["no", "yes", "maybe"])[Y]
    mm.data.convert(X, place / "set", labels=names, shuffle=False, batch_bytes=500, shard_bytes=2000)
    mm.data.convert(X.toarray(), place / "dense", labels=Y, weights=np.ones(N), shuffle=False, batch_bytes=500)
    (place / "in" / "deep").mkdir(parents=True)
    table = pa.table({**{f"f{j}": X.toarray()[:, j] for j in range(D)}, "label": Y})
    pq.write_table(table[:40], place / "in" / "1.parquet", row_group_size=11)
    pq.write_table(table[40:], place / "in" / "2.parquet", row_group_size=11)
    pq.write_table(table[:5], place / "in" / "deep" / "3.parquet")
    for name in ("text.svm", "packed.svm.gz", "packed.svm.zst"):
        write_svmlight(place / name, X, Y)
    for k, rows in enumerate(np.array_split(np.arange(N), 4)):
        write_svmlight(place / f"part-{k}.txt", X[rows], Y[rows])
    return place


def _copied(local, target):
    """All files, in another file system."""
    for path in sorted(local.rglob("*")):
        name = f"top/{path.relative_to(local).as_posix()}"
        if path.is_dir():
            target.create_dir(name, recursive=True)
        else:
            target.create_dir(name.rpartition("/")[0], recursive=True)
            with target.open_output_stream(name, compression=None) as file:
                file.write(path.read_bytes())
    return target


def _subtree(local):
    return fs.SubTreeFileSystem(str(local.parent), fs.LocalFileSystem()), local.name


def _mock(local):
    return _copied(local, _MockFileSystem()), "top"


def _fsspec(local):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    _copied(local, fs.PyFileSystem(fs.FSSpecHandler(memory)))
    return memory, "top"


NAMES = ["set", "dense", "in/1.parquet", "in/*.parquet", "in/[12].parquet"]
NAMES += ["text.svm", "packed.svm.gz", "packed.svm.zst", "part-*.txt"]
SYSTEMS = [_subtree, _mock, _fsspec]


def _all(source):
    return together(source.chunks())[:3]


def _same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(_all(one), _all(other), strict=True))


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", NAMES)
def test_the_same_data_as_on_a_local_disk(system, name, local):
    filesystem, top = system(local)
    source = mm.data.open(f"{top}/{name}", filesystem=filesystem)
    wanted = mm.data.open(str(local / name))
    assert (len(source), source.n_features) == (len(wanted), D)
    assert source.origin == wanted.origin
    assert _same(source, wanted)


@pytest.mark.parametrize("given", [fs.LocalFileSystem(), None])
def test_local_files_are_mapped_however_they_are_named(given, local):
    what = str(local / "dense") if given is not None else f"file://{local.as_posix()}/dense"
    chunk = mm.data.open(what, filesystem=given).chunk(0)
    assert not chunk.x.flags.owndata
    assert len(mm.data.open(str(local / "text.svm"), filesystem=fs.LocalFileSystem())) == N


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", ["set", "dense"])
def test_chunks_of_shards_in_any_order(system, name, local):
    filesystem, top = system(local)
    source, wanted = mm.data.open(f"{top}/{name}", filesystem=filesystem), mm.data.open(local / name)
    assert source.fingerprint == wanted.fingerprint
    assert np.array_equal(source.offsets, wanted.offsets)
    order = RNG.permutation(len(source.offsets) - 1)
    for i, chunk in zip(order, source.chunks(order), strict=True):
        other = wanted.chunk(int(i))
        assert np.array_equal(chunk.ids, other.ids)
        assert np.array_equal(chunk.y, other.y)
        held = chunk.x.data if name == "set" else chunk.x
        assert held.flags.writeable  # as kernels want them
        assert held.flags.aligned
        assert np.array_equal(np.asarray(held), other.x.data if name == "set" else other.x)
        assert np.array_equal(source.labels(int(i)).y, other.y)
        assert source.nbytes(int(i)) == wanted.nbytes(int(i))


def test_labels_alone_do_not_read_the_inputs(local):
    filesystem, top = _mock(local)
    source = mm.data.open(f"{top}/set", filesystem=filesystem)
    file = source._file(source.paths[0])
    spans = []
    file.region = lambda a, b, region=file.region: (spans.append(b - a), region(a, b))[1]
    source.labels(0)
    source.chunk(0)
    assert len(spans) == 2  # a single read for each
    assert spans[0] < spans[1] / 3


@pytest.mark.parametrize("system", [_subtree, _fsspec])  # the mock has files in one object only
@pytest.mark.parametrize("name", ["set", "dense"])
def test_pieces_take_their_file_system_along(system, name, local):
    filesystem, top = system(local)
    source = mm.data.open(f"{top}/{name}", filesystem=filesystem)
    pieces = split(source, 3)
    assert sum(len(piece) for piece in pieces) == len(source)
    stored = [pickle.dumps(one) for one in (source, *pieces)]
    assert max(map(len, stored)) < 6000
    for one, held in zip((source, *pieces), stored, strict=True):
        again = pickle.loads(held)
        assert again.fingerprint == one.fingerprint
        assert _same(again, one)


def test_shards_made_of_data_elsewhere(local, tmp_path):
    filesystem, top = _mock(local)
    made = mm.data.convert(f"{top}/in/*.parquet", tmp_path / "set", shuffle=False, filesystem=filesystem)
    assert np.array_equal(_all(made)[1], X.toarray())


# What goes wrong ------------------------------------------------------------------------------------------------------


def _damage(filesystem, path, place, byte=b"\xff\xff\xff\xff"):
    with filesystem.open_input_file(path) as file:
        content = bytearray(file.read())
    content[place : place + len(byte)] = byte
    with filesystem.open_output_stream(path) as file:
        file.write(bytes(content))


def test_damage_is_found_whenever_a_chunk_is_read(local):
    filesystem, top = _mock(local)
    source = mm.data.open(f"{top}/set", filesystem=filesystem)
    path, batch = source._batches[1]
    source.chunk(1)
    _damage(filesystem, path, batch.starts[3])
    source._files.clear()
    # Size and time are the same in this file system: only the checksum can tell.
    with pytest.raises(DataError, match=r"damaged in batch 1: the checksum of its inputs|changed since it was opened"):
        source.chunk(1)


def test_files_that_are_missing_or_cut_short(local):
    filesystem, top = _mock(local)
    with filesystem.open_output_stream(f"{top}/set/00001.arrow") as file:
        file.write(b"short")
    with pytest.raises(DataError, match=r"00001\.arrow has 5 bytes, .* were written"):
        mm.data.open(f"{top}/set", filesystem=filesystem)
    filesystem.delete_file(f"{top}/set/00001.arrow")
    with pytest.raises(DataError, match=r"00001\.arrow does not exist"):
        mm.data.open(f"{top}/set", filesystem=filesystem)
    filesystem.delete_file(f"{top}/set/dataset.json")
    with pytest.raises(DataError, match=r"top/set is no data set.* no dataset\.json"):
        mm.data.open(f"{top}/set", filesystem=filesystem)


def test_text_that_changes_or_is_broken(local):
    filesystem, top = _mock(local)
    source = mm.data.open(f"{top}/text.svm", filesystem=filesystem)
    with filesystem.open_output_stream(f"{top}/text.svm") as file:
        file.write(b"1 1:1\n")
    with pytest.raises(DataError, match=r"text\.svm changed since it was opened: it had .* has 6 now"):
        len(source)
    filesystem.delete_file(f"{top}/text.svm")
    with pytest.raises(DataError, match=r"text\.svm does not exist in this file system \(mock\)"):
        len(source)
    with filesystem.open_output_stream(f"{top}/packed.svm.gz", compression=None) as file:
        file.write((local / "packed.svm.gz").read_bytes()[:-20])
    with pytest.raises(DataError, match="broken gzip data"):
        len(mm.data.open(f"{top}/packed.svm.gz", filesystem=filesystem))


def test_names_that_mean_nothing(local):
    filesystem, top = _mock(local)
    with pytest.raises(DataError, match=r"top/nothing does not exist in this file system \(mock\)"):
        mm.data.open(f"{top}/nothing", filesystem=filesystem)
    with pytest.raises(DataError, match=r"No file in this file system \(mock\) fits the pattern 'top/in/\*\.pq'"):
        mm.data.open(f"{top}/in/*.pq", filesystem=filesystem)
    with pytest.raises(DataError, match=r"nosuch://a/b is in no file system that can be reached.*filesystem="):
        mm.data.open("nosuch://a/b")
    with pytest.raises(DataError, match="does not exist"):
        mm.data.open(f"file://{local.as_posix()}/nothing")


def test_what_is_read_from_local_disks_only(local):
    filesystem, top = _mock(local)
    with filesystem.open_output_stream(f"{top}/x.npy") as file:
        file.write(b"\x93NUMPY")
    for name, word in (("x.npy", r"\.npy arrays"),):
        with pytest.raises(
            DataError, match=rf"is {word}, which is read from local disks only.*\(mock\) come svmlight text, Parquet"
        ):
            mm.data.open(f"{top}/{name}", filesystem=filesystem)


def test_options_that_contradict_each_other(local):
    with pytest.raises(DataError, match="filesystem= is int; needed is a file system of pyarrow"):
        mm.data.open("a.parquet", filesystem=3)
    with pytest.raises(DataError, match="names a file system already"):
        mm.data.open("file:///a.parquet", filesystem=fs.LocalFileSystem())
    with pytest.raises(DataError, match="filesystem= means nothing for arrays"):
        mm.data.open(np.eye(3), filesystem=fs.LocalFileSystem())


def test_file_systems_are_equal_by_what_they_are(tmp_path):
    one, two = (Store(fs.SubTreeFileSystem(str(tmp_path / name), fs.LocalFileSystem())) for name in "ab")
    assert one == Store(fs.SubTreeFileSystem(str(tmp_path / "a"), fs.LocalFileSystem()))
    assert one != two


def test_patterns_in_uris_are_kept(tmp_path):
    (tmp_path / "a b").mkdir()
    for name in ("x 1.parquet", "x 2.parquet", "x 3.parquet"):
        pq.write_table(pa.table({"f": [float(name[2])]}), tmp_path / "a b" / name)
    source = mm.data.open(f"file://{tmp_path.as_posix()}/a%20b/x%20[13]*.parquet")
    assert [chunk.x.item() for chunk in source.chunks()] == [1.0, 3.0]

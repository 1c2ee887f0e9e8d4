"""Pieces of a source are the source, in its order and about equally large; to other processes they travel light."""

import os
import pickle
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from source_kinds import (
    GROUP,
    MAPPED,
    SEEKABLE,
    SHARDS,
    D,
    N,
    X,
    Y,
    arrays,
    by_columns,
    csr,
    dense,
    memmap,
    npy,
    parquet,
    sparse_shards,
    text,
    together,
)

import maxmargin as mm
from maxmargin.data import DataError
from maxmargin.data.selections import Selection, balanced, split

BY_NAME = [*MAPPED, *SHARDS]  # what other processes open for themselves


def _all(source, order=None):
    """Ids, inputs, labels and weights of all chunks, one after another."""
    chunks = list(source.chunks(*(() if order is None else (order,))))
    if not chunks:
        return [np.empty(0)] * 4
    ids, x, y, _, weight = together(chunks)
    return [ids, x, y, y if weight is None else weight]


def _same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(_all(one), _all(other), strict=True))


# Where cuts are -------------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 20), max_size=30), st.integers(1, 12))
def test_runs_are_about_equally_heavy_and_none_is_empty_without_need(weights, n):
    cuts = balanced(weights, n)
    assert (len(cuts), cuts[0], cuts[-1]) == (n + 1, 0, len(weights))
    counts = [b - a for a, b in pairwise(cuts)]
    assert min(counts) >= (1 if len(weights) >= n else 0)
    assert min(counts) >= 1 or max(counts, default=0) <= 1
    heaviest = max(sum(weights[a:b]) for a, b in pairwise(cuts))
    assert heaviest <= sum(weights) / n + max(weights, default=0) + 1e-9


# Pieces of every kind -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SEEKABLE)
def test_pieces_together_are_the_source(kind, tmp_path):
    source, n = kind(tmp_path, 7), 3
    pieces = split(source, n)
    assert len(pieces) == n
    assert [piece.n_features for piece in pieces] == [D] * n
    assert sum(len(piece) for piece in pieces) == N
    _, x, y, weight = _all(source)
    done = 0
    for piece in pieces:
        found = _all(piece)
        own = slice(done, done + len(piece))
        assert np.array_equal(found[0], np.arange(len(piece)))
        assert np.array_equal(found[1], x[own])
        assert np.array_equal(found[2], y[own])
        assert np.array_equal(found[3], weight[own])
        assert getattr(piece, "origin", None) == getattr(source, "origin", None)
        done += len(piece)
    assert len({piece.fingerprint for piece in pieces}) == n


@pytest.mark.parametrize("kind", SEEKABLE)
def test_a_piece_is_seekable(kind, tmp_path):
    source = kind(tmp_path, 7)
    pieces = split(source, 3)
    largest = max(source.nbytes(i) for i in range(len(source.offsets) - 1))
    total = sum(source.nbytes(i) for i in range(len(source.offsets) - 1))
    begin = 0
    for piece in pieces:
        count = len(piece.offsets) - 1
        assert piece.first == source.offsets[begin]
        assert np.array_equal(piece.offsets + piece.first, source.offsets[begin : begin + count + 1])
        assert sum(piece.nbytes(i) for i in range(count)) <= total / 3 + largest
        for i in range(count):
            chunk, labels, whole = piece.chunk(i), piece.labels(i), source.chunk(begin + i)
            assert labels.x is None
            assert np.array_equal(labels.y, whole.y)
            assert np.array_equal(labels.ids, chunk.ids)
            assert np.array_equal(chunk.ids + piece.first, whole.ids)
            assert np.array_equal(dense(chunk.x), dense(whole.x))
            assert piece.nbytes(i) == source.nbytes(begin + i)
            piece.release(i)
        order = np.random.default_rng(begin).permutation(count)
        wanted = np.concatenate([np.arange(piece.offsets[i], piece.offsets[i + 1]) for i in order])
        assert np.array_equal(_all(piece, order)[0], wanted)
        assert np.array_equal(_all(piece, order)[2], Y[piece.first + wanted])
        begin += count
    with pytest.raises(IndexError, match="no chunk"):
        pieces[0].chunk(len(pieces[0].offsets) - 1)


def test_more_pieces_than_chunks_are_empty():
    source = mm.data.open(X, labels=Y, chunk_rows=70)
    pieces = split(source, 4)
    assert [len(piece) for piece in pieces] == [70, 33, 0, 0]
    for piece in (pieces[3], pickle.loads(pickle.dumps(pieces[3]))):
        assert (piece.offsets.tolist(), list(piece.chunks()), piece.n_features) == ([0], [], D)


def test_pieces_of_pieces():
    source = mm.data.open(X, labels=Y, chunk_rows=7)
    middle = split(source, 3)[1]
    inner = split(middle, 2)[1]
    again = pickle.loads(pickle.dumps(inner))
    begin = middle.first + inner.first
    for piece in (inner, again):
        assert np.array_equal(_all(piece)[2], Y[begin : begin + len(piece)])
        assert (piece.first, piece.fingerprint) == (inner.first, inner.fingerprint)


def test_a_selection_reads_ahead_as_its_source_does(tmp_path):
    source = sparse_shards(tmp_path, 7)
    made = []
    source._touched = lambda i, touched=source._touched: (made.append(i), touched(i))[1]
    chunks = Selection(source, 2, 6).chunks()
    next(chunks)
    for _ in range(500):
        if made == [2, 3]:
            break
        time.sleep(0.01)
    assert made == [2, 3]  # the second one is there before it is asked for
    chunks.close()


def test_no_pieces_are_refused():
    with pytest.raises(ValueError, match="n must be at least 1, not 0"):
        split(mm.data.open(X), 0)


# Pairs ---------------------------------------------------------------------------------------------------------------

PAIRS = [(np.full(50, i, float), f"label {i}") for i in range(90)]


class _Lazy:
    """Pairs that are made when asked for, and so travel as a rule."""

    def __len__(self):
        return 90

    def __getitem__(self, i):
        return PAIRS[i]


@pytest.mark.parametrize("pairs", [PAIRS, tuple(PAIRS), _Lazy()])
def test_pairs_in_pieces(pairs):
    pieces = split(mm.data.open(pairs, chunk_rows=4), 3)
    for piece in [*pieces, *pickle.loads(pickle.dumps(pieces))]:
        found = [y for chunk in piece.chunks() for y in chunk.y]
        assert found == [f"label {i}" for i in range(piece.first, piece.first + len(piece))]
    assert sum(map(len, pieces)) == 90
    own = 0 if isinstance(pairs, _Lazy) else 400 * len(pieces[0])
    assert own <= len(pickle.dumps(pieces[0])) < 1.5 * own + 2000


@pytest.mark.parametrize("make", [text, parquet, lambda *_: mm.data.open(lambda: iter(PAIRS))])
def test_what_can_only_be_read_in_order_says_what_to_do(make, tmp_path):
    with pytest.raises(DataError, match=r"is read from its beginning.*Put pairs into a list.*data\.convert"):
        split(make(tmp_path, 7), 2)


# Pickles --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", BY_NAME)
def test_files_travel_by_name(kind, tmp_path):
    source = kind(tmp_path, 7)
    for one in (source, *split(source, 3)):
        next(iter(one.chunks()))  # also when it is in use
        stored = pickle.dumps(one)
        assert len(stored) < 4000
        again = pickle.loads(stored)
        assert (len(again), again.n_features, again.fingerprint) == (len(one), one.n_features, one.fingerprint)
        assert getattr(again, "first", None) == getattr(one, "first", None)
        assert _same(again, one)
        assert len(pickle.dumps(again)) < 4000  # and on from there


@pytest.mark.parametrize("kind", [arrays, by_columns, csr])
def test_arrays_travel_with_their_own_rows(kind, tmp_path):
    source = kind(tmp_path, 7)
    for piece in split(source, 4):
        own = sum(piece.nbytes(i) for i in range(len(piece.offsets) - 1))
        stored = pickle.dumps(piece)
        assert len(stored) < own + 4000
        again = pickle.loads(stored)
        assert (again.first, again.fingerprint, again.n_features) == (piece.first, piece.fingerprint, D)
        assert _same(again, piece)
        assert len(pickle.dumps(again)) < own + 4000
    assert _same(pickle.loads(pickle.dumps(source)), source)


def test_groups_and_checks_of_values_travel_too():
    piece = split(mm.data.open(X, groups=GROUP, chunk_rows=10), 2)[1]
    again = pickle.loads(pickle.dumps(piece))
    assert np.array_equal(together(again.chunks())[3], GROUP[piece.first :])
    spoilt = X.copy()
    spoilt[90, 3] = np.nan
    with pytest.raises(DataError, match="nan in row"):
        _all(pickle.loads(pickle.dumps(split(mm.data.open(spoilt, chunk_rows=10), 2)[1])))


def test_a_map_with_changes_of_its_own_travels_as_it_is(tmp_path):
    np.save(tmp_path / "x.npy", X)
    x = np.load(tmp_path / "x.npy", mmap_mode="c")
    x[3, 3] = 77.0
    assert _all(pickle.loads(pickle.dumps(mm.data.open(x, labels=Y))))[1][3, 3] == 77.0


@pytest.mark.parametrize("kind", [npy, memmap])
def test_files_that_are_others_where_they_arrive_are_refused(kind, tmp_path):
    stored = pickle.dumps(split(kind(tmp_path, 7), 3)[0])
    held = [path for path in tmp_path.iterdir() if path.suffix == ".npy"]
    for path in held:
        os.utime(path, ns=(0, 5))
    with pytest.raises(DataError, match=r"is not here what it was where the data was opened.*rsync -t"):
        pickle.loads(stored)
    for path in held:
        path.unlink()
    with pytest.raises(DataError, match="does not exist"):
        pickle.loads(stored)


def test_shards_are_known_by_their_checksums(tmp_path):
    stored = pickle.dumps(split(sparse_shards(tmp_path, 7), 2)[1])
    for path in (tmp_path / "set").iterdir():  # as a copy on another machine
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content)
    assert len(pickle.loads(stored))
    mm.data.convert(X, tmp_path / "set", labels=Y + 1, shuffle=False, batch_bytes=1000, overwrite=True)
    with pytest.raises(DataError, match="is not here what it was where the data was opened: size, time or checksums"):
        pickle.loads(stored)


@pytest.mark.parametrize("dumps", ["pickle", "cloudpickle"])
def test_pieces_in_a_fresh_process_with_another_working_directory(dumps, tmp_path, monkeypatch):
    pickler = pytest.importorskip(dumps)
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    for place in (here, elsewhere, *(here / kind.__name__ for kind in SEEKABLE)):
        place.mkdir()
    monkeypatch.chdir(here)
    pieces = [split(kind(here / kind.__name__, 7), 3)[1] for kind in SEEKABLE]
    relative = mm.data.open("shards/set")
    pieces += [relative, split(mm.data.open("npy/x.npy", labels="npy/y.npy", chunk_rows=7), 2)[1]]
    (elsewhere / "pieces").write_bytes(pickler.dumps(pieces))
    code = (
        "import pickle\n"
        "for piece in pickle.load(open('pieces', 'rb')):\n"
        "    print(len(piece), sum(float(c.x.sum(dtype='f8')) for c in piece.chunks()), piece.fingerprint)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=elsewhere, capture_output=True, text=True, timeout=120, check=False
    )
    assert told.returncode == 0, told.stderr
    for line, piece in zip(told.stdout.splitlines(), pieces, strict=True):
        length, total, fingerprint = line.split()
        assert (int(length), fingerprint) == (len(piece), piece.fingerprint)
        assert float(total) == pytest.approx(sum(float(c.x.sum(dtype="f8")) for c in piece.chunks()), rel=1e-12)

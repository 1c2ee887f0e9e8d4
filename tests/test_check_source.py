"""The conformance check of sources: what it accepts, and what it says of those that contradict themselves."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.checks import check_source
from maxmargin.protocols import Chunk

X, Y = np.arange(20.0).reshape(10, 2), np.arange(10) % 2


class Plain:
    """A source that can only be read from its beginning."""

    n_features = 2

    def __len__(self):
        return 10

    def chunks(self, order=None):
        for a in range(0, 10, 4):
            yield self.chunk_at(a)

    def chunk_at(self, a):
        ids = np.arange(a, min(a + 4, 10))
        return Chunk(ids, X[ids], Y[ids])


class Short(Plain):
    def __len__(self):
        return 9


class Wide(Plain):
    n_features = 3


class Shifted(Plain):
    def chunk_at(self, a):
        chunk = super().chunk_at(a)
        return replace(chunk, ids=chunk.ids + 1)


class Once(Plain):
    def __init__(self):
        self._left = list(Plain().chunks())

    def chunks(self, order=None):
        while self._left:
            yield self._left.pop(0)


class Tuples(Plain):
    def chunk_at(self, a):
        return X[a : a + 4], Y[a : a + 4]


class Unlabelled(Plain):
    def chunk_at(self, a):
        chunk = super().chunk_at(a)
        return replace(chunk, y=chunk.y[1:])


class Early(Plain):
    """Seekable, but its last chunk begins too soon."""

    offsets = np.array([0, 4, 7, 10])

    def chunk(self, i):
        return self.chunk_at(4 * i)

    labels = chunk
    fingerprint = ""

    def nbytes(self, i):
        return 100

    def release(self, i):
        pass

    def chunks(self, order=None):
        for i in range(len(self.offsets) - 1) if order is None else order:
            yield self.chunk(int(i))


class Halfway(Plain):
    offsets = np.array([0, 4, 8, 10])

    def chunk(self, i):
        return self.chunk_at(4 * i)

    labels = chunk


class NotBegun(Early):
    offsets = np.array([4, 8, 10])


class NoChunks(Plain):
    def chunks(self, order=None):
        return None


class OtherLabels(Early):
    offsets = np.array([0, 4, 8, 10])

    def labels(self, i):
        return replace(self.chunk(i), y=1 - self.chunk(i).y)


@pytest.mark.parametrize(
    "source",
    [
        Plain(),
        mm.data.open(X, labels=Y, chunk_rows=3),
        mm.data.open(sp.csr_matrix(X), labels=Y, chunk_rows=3),
        mm.data.open([([[1.0], [2.0]], [0, 1]), ([[3.0]], [1])]),
    ],
)
def test_sources_that_are_right(source):
    check_source(source)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (Halfway(), "lacks fingerprint, nbytes, release: see maxmargin.protocols.Seekable"),
        (NotBegun(), "must be whole numbers that begin at 0"),
        (NoChunks(), "must be a generator"),
        (object(), "lacks n_features, __len__, chunks"),
        (Short(), "have 10 examples"),
        (Wide(), "n_features is 3, chunk 0 has 2 columns"),
        (Shifted(), "ids of chunk 0"),
        (Once(), "begins? anew"),
        (Tuples(), r"must yield maxmargin\.protocols\.Chunk"),
        (Unlabelled(), "4 ids and 3 labels"),
        (Early(), "which is not what offsets say"),
        (OtherLabels(), r"labels\(0\) are not those"),
    ],
)
def test_sources_that_contradict_themselves(source, message):
    with pytest.raises(AssertionError, match=message):
        check_source(source)


@pytest.mark.parametrize(
    "source",
    [Shifted(), Tuples(), Unlabelled(), Early(), Halfway(), NotBegun(), NoChunks()],
    ids=lambda s: type(s).__name__,
)
@pytest.mark.parametrize("solver", ["interior_point", "dual_coordinate"])
def test_sources_that_contradict_themselves_are_not_trained_on(source, solver):
    """No compiled loop may see offsets that lie, and no certificate be of a part of the examples."""
    with pytest.raises(mm.data.DataError, match=r"must|lacks|ids|offsets"):
        mm.LinearSVC(solver=solver).fit(source)


def test_a_source_that_is_read_only_once_is_refused():
    with pytest.raises(mm.data.DataError):
        mm.LinearSVC().fit(Once())


def test_an_iterator_of_chunks_is_enough(rng):
    class Iterated(Plain):
        def chunks(self, order=None):
            return iter(list(Plain.chunks(self)))

    assert mm.LinearSVC(random_state=0).fit(Iterated()).certificate_.relative_gap <= 1e-3

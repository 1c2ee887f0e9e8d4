"""Thousands of damaged data sets: each is refused by a ``DataError`` or gives exactly the original data."""

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.data import DataError

ROUNDS = 300
N, D = 40, 6


def _flip(data, rng):
    for _ in range(rng.integers(1, 4)):
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)


def _set_byte(data, rng):
    data[rng.integers(len(data))] = rng.integers(256)


def _cut(data, rng):
    del data[rng.integers(len(data)) :]


def _extend(data, rng):
    data += rng.bytes(int(rng.integers(1, 200)))


def _zero(data, rng):
    a = int(rng.integers(len(data)))
    b = min(len(data), a + int(rng.integers(1, 64)))
    data[a:b] = bytes(b - a)


def _swap(data, rng):
    size = int(rng.integers(1, 40))
    a, b = (int(k) for k in rng.integers(0, len(data) - size, 2))
    data[a : a + size], data[b : b + size] = data[b : b + size], data[a : a + size]


def _repeat(data, rng):
    a = int(rng.integers(len(data)))
    data[a:a] = data[a : a + int(rng.integers(1, 64))]


def _remove(data, rng):
    a = int(rng.integers(len(data)))
    del data[a : a + int(rng.integers(1, 64))]


def _large_number(data, rng):
    """Counts and places are little-endian numbers somewhere in the metadata: make one of them absurd."""
    a = int(rng.integers(len(data) // 4)) * 4
    number = int(rng.choice([2**31 - 1, -1, 2**30, -(2**31), 2**24]))
    data[a : a + 4] = number.to_bytes(4, "little", signed=True)


DAMAGE = [_flip, _flip, _set_byte, _cut, _extend, _zero, _swap, _repeat, _remove, _large_number]


def _written(folder, kind):
    x = sp.random(N, D, 0.5, format="csr", random_state=4, dtype=np.float32)
    columns = {"labels": np.arange(N) % 3}
    if kind == "dense":
        x = x.toarray()
    if kind == "all columns":
        names = np.array(["one", "zwei", "trois"])
        columns = {"labels": names[np.arange(N) % 3], "groups": np.arange(N) // 4, "weights": np.arange(N) / 7}
    mm.data.convert(x, folder, **columns, batch_bytes=300, shard_bytes=1500)
    assert len(list(folder.glob("*.arrow"))) > 1


def _contents(source):
    found = []
    for c in source.chunks():
        x = (c.x.indptr, c.x.indices, c.x.data) if sp.issparse(c.x) else (c.x,)
        columns = [column for column in (*x, c.y, c.group, c.weight) if column is not None]
        found.append([(column.dtype.str, column.shape, column.tobytes()) for column in columns])
    return source.n_features, len(source), found


@pytest.mark.parametrize("target", ["shard", "contents"])
@pytest.mark.parametrize("kind", ["sparse", "dense", "all columns"])
def test_damage_is_found_or_does_no_harm(kind, target, tmp_path):
    folder = tmp_path / "set"
    _written(folder, kind)
    expected = _contents(mm.data.open(folder))
    path = folder / ("dataset.json" if target == "contents" else "00001.arrow")
    whole = path.read_bytes()
    rng = np.random.default_rng(11)
    refused = 0
    for round_ in range(ROUNDS):
        data = bytearray(whole)
        DAMAGE[round_ % len(DAMAGE)](data, rng)
        path.write_bytes(bytes(data))
        try:
            found = _contents(mm.data.open(folder))
        except DataError as error:
            assert str(path) in str(error)
            refused += 1
        else:
            assert found == expected
    assert refused > ROUNDS // 5  # the rest is padding, or metadata that is not needed

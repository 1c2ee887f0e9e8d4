"""The same rows as every kind of source: matrices, maps, files and shards; and all that a source gives, put together.

Each kind is a function of a folder for its files and of the number of rows in a chunk.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from svmlight_text import write_svmlight

import maxmargin as mm

N, D = 103, 7


def _rows():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(N, D)).astype(np.float32)
    x[rng.random((N, D)) < 0.5] = 0.0
    x[0, D - 1] = 1.0
    y = rng.integers(0, 3, N).astype(float)
    group = 40 + np.arange(N) // 6
    weight = rng.random(N)
    return x, y, group, weight


X, Y, GROUP, WEIGHT = _rows()


def arrays(folder, rows):
    return mm.data.open(X, labels=Y, groups=GROUP, weights=WEIGHT, chunk_rows=rows)


def csr(folder, rows):
    return mm.data.open(sp.csr_matrix(X), labels=Y, groups=GROUP, weights=WEIGHT, chunk_rows=rows)


def unsorted_csr(folder, rows):
    x = sp.csr_matrix(X)
    for i in range(N):
        part = slice(x.indptr[i], x.indptr[i + 1])
        x.indices[part], x.data[part] = x.indices[part][::-1].copy(), x.data[part][::-1].copy()
    x.has_sorted_indices = False
    return mm.data.open(x, labels=Y, groups=GROUP, weights=WEIGHT, chunk_rows=rows)


def _columns(folder):
    for name, column in (("y", Y), ("g", GROUP), ("w", WEIGHT)):
        np.save(folder / f"{name}.npy", column)
    return {"labels": folder / "y.npy", "groups": str(folder / "g.npy"), "weights": folder / "w.npy"}


def npy(folder, rows):
    np.save(folder / "x.npy", X)
    return mm.data.open(folder / "x.npy", **_columns(folder), chunk_rows=rows)


def by_columns(folder, rows):
    return mm.data.open(np.asfortranarray(X), labels=Y, groups=GROUP, weights=WEIGHT, chunk_rows=rows)


def npy_by_columns(folder, rows):
    np.save(folder / "x.npy", np.asfortranarray(X))
    return mm.data.open(folder / "x.npy", **_columns(folder), chunk_rows=rows)


def memmap(folder, rows):
    npy(folder, rows)
    x, y, g, w = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in "xygw")
    return mm.data.open(x, labels=y, groups=g, weights=w, chunk_rows=rows)


def mapped_csr(folder, rows):
    npy(folder, rows)
    parts = []
    for name in ("data", "indices", "indptr"):
        np.save(folder / f"{name}.npy", getattr(sp.csr_matrix(X), name))
        parts.append(np.load(folder / f"{name}.npy", mmap_mode="r"))
    x = sp.csr_matrix(tuple(parts), shape=X.shape, copy=False)
    y, g, w = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in "ygw")
    return mm.data.open(x, labels=y, groups=g, weights=w, chunk_rows=rows)


def columns_memmap(folder, rows):
    npy_by_columns(folder, rows)
    x, y, g, w = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in "xygw")
    return mm.data.open(x, labels=y, groups=g, weights=w, chunk_rows=rows)


def frame(folder, rows):
    pd = pytest.importorskip("pandas")
    return mm.data.open(pd.DataFrame(X), labels=pd.Series(Y), groups=GROUP, weights=WEIGHT, chunk_rows=rows)


def shards(folder, rows):
    small = (rows or N) * 40
    mm.data.convert(arrays(folder, rows), folder / "set", shuffle=False, batch_bytes=small, shard_bytes=3 * small)
    return mm.data.open(folder / "set")


def sparse_shards(folder, rows):
    mm.data.convert(csr(folder, rows), folder / "set", shuffle=False, batch_bytes=(rows or N) * 40)
    return mm.data.open(folder / "set")


def two_folders(folder, rows):
    for k, part in enumerate((slice(0, 36), slice(36, N))):  # where a group begins
        given = mm.data.open(X[part], labels=Y[part], groups=GROUP[part], weights=WEIGHT[part], chunk_rows=rows)
        mm.data.convert(given, folder / f"set-{k}", shuffle=False, batch_bytes=(rows or N) * 40)
    return mm.data.open([folder / "set-0", folder / "set-1"])


def _table(**columns):
    return pa.table({**columns, "target": Y, "query": GROUP, "w": WEIGHT})


_NAMES = {"group": "query", "weight": "w"}


def parquet(folder, rows):
    pq.write_table(_table(**{f"f{j}": X[:, j] for j in range(D)}), folder / "x.parquet", row_group_size=18)
    return mm.data.open(folder / "x.parquet", **_NAMES, chunk_rows=rows)


def parquet_files(folder, rows):
    table = _table(**{f"f{j}": X[:, j] for j in range(D)})
    pq.write_table(table[:54], folder / "a.parquet", row_group_size=18)
    pq.write_table(table[54:], folder / "b.parquet", row_group_size=30)
    return mm.data.open([folder / "a.parquet", folder / "b.parquet"], **_NAMES, chunk_rows=rows)


def sparse_parquet(folder, rows):
    x = sp.csr_matrix(X)
    lists = {name: np.split(getattr(x, name), x.indptr[1:-1]) for name in ("indices", "data")}
    pq.write_table(_table(indices=lists["indices"], values=lists["data"]), folder / "x.parquet", row_group_size=24)
    return mm.data.open(folder / "x.parquet", **_NAMES, chunk_rows=rows, n_features=D)


def text(folder, rows):
    for k, part in enumerate(np.split(np.arange(N), range(12, N, 12))):
        write_svmlight(folder / f"{k}.svm", X[part], Y[part], group=GROUP[part])
    return mm.data.open(str(folder / "*.svm"), zero_based=False, n_features=D, chunk_rows=rows)


IN_MEMORY = [arrays, by_columns, csr, unsorted_csr, frame]
MAPPED = [npy, npy_by_columns, memmap, columns_memmap, mapped_csr]
SHARDS = [shards, sparse_shards, two_folders]
SEEKABLE = [*IN_MEMORY, *MAPPED, *SHARDS]
IN_ORDER = [parquet, parquet_files, sparse_parquet, text]
KINDS = [*SEEKABLE, *IN_ORDER]


def dense(x):
    return x.toarray() if sp.issparse(x) else x


def together(chunks):
    """All columns of all chunks; copied, as a chunk's memory is given back when the next one is taken."""
    parts = [
        [np.array(column) if column is not None else None for column in (c.ids, dense(c.x), c.y, c.group, c.weight)]
        for c in chunks
    ]
    return [np.concatenate(column) if column[0] is not None else None for column in zip(*parts, strict=True)]


def resident(path):
    """How many MiB of a mapped file are in memory, as Linux tells it."""
    parts = Path("/proc/self/smaps").read_text().split(str(path))[1:]
    return sum(int(part.split("Rss:")[1].split()[0]) for part in parts) / 1024

"""Generated rows for benchmarks of any size: sparse, of unit norm, with few common features and many rare ones.

Feature `(d + 1)^u - 1` with u uniform is log-uniform, much as words are. Labels come from a sparse weight vector, with
noise.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.protocols import Chunk

WIDTH = 300_000
_DRAWN = 60  # entries drawn for a row; some meet, and about 54 different ones are left at the full width
_ROWS = 50_000  # of a chunk; each has a seed of its own, so that a smaller data set is the beginning of a larger one


class Skewed:
    """A source of so many rows, the same ones whenever it is read."""

    def __init__(self, rows: int, n_features: int = WIDTH, seed: int = 0) -> None:
        self.rows, self.n_features, self.seed = rows, n_features, seed

    def __len__(self) -> int:
        return self.rows

    def chunks(self, order: Any = None) -> Iterator[Chunk]:
        rng = np.random.default_rng(self.seed)
        w = rng.normal(size=self.n_features) * (rng.random(self.n_features) < 0.3)
        for first in range(0, self.rows, _ROWS):
            rng = np.random.default_rng([self.seed, first])
            x = self._inputs(rng)[: self.rows - first]
            noisy = (x @ w) + 0.5 * rng.normal(size=_ROWS)[: x.shape[0]]
            yield Chunk(np.arange(first, first + x.shape[0]), x, np.where(noisy > 0, 1.0, -1.0))

    def _inputs(self, rng: np.random.Generator) -> sp.csr_matrix:
        d, shape = self.n_features, (_ROWS, _DRAWN)
        indices = np.minimum((d + 1.0) ** rng.random(shape) - 1, d - 1).astype(np.int32)
        values = (0.2 + rng.exponential(size=shape)).astype(np.float32)
        indices.sort(axis=1)
        kept = np.ones(shape, bool)
        kept[:, 1:] = indices[:, 1:] != indices[:, :-1]
        values[~kept] = 0
        values /= np.sqrt((values**2).sum(axis=1, keepdims=True))
        indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int32)
        return sp.csr_matrix((values[kept], indices[kept], indptr), shape=(_ROWS, d))


@contextmanager
def shards(rows: int, n_features: int, batch_bytes: str, folder: str | None = None) -> Iterator[str]:
    """The rows on disk: in this folder, where they stay and are found again, or in a temporary one."""
    if folder is None:
        with (
            tempfile.TemporaryDirectory(prefix="skewed-") as place,
            shards(rows, n_features, batch_bytes, f"{place}/{rows}") as written,
        ):
            yield written
        return
    if (Path(folder) / "dataset.json").exists():
        found: Any = mm.data.open(folder)
        if (len(found), found.n_features) != (rows, n_features):
            raise SystemExit(
                f"{folder} holds {len(found)} rows of {found.n_features} features; {rows} rows of {n_features} are "
                f"wanted. Give --rows {len(found)}, or another folder."
            )
    else:
        source = Skewed(rows, n_features)
        mm.data.convert(source, folder, shuffle=False, memory="1GB", batch_bytes=batch_bytes)
    yield folder

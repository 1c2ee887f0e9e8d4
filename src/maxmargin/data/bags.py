from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..problem import Rows
from .arrays import as_rows


@dataclass(frozen=True)
class Bags:
    """Many bags of instances in one matrix: bag i is the rows ``offsets[i]:offsets[i+1]``.

    Estimators make this from a list of matrices or a 3-d array; who has one matrix already saves a copy with it.

    Parameters
    ----------
    instances : matrix (n_instances, n_features), dense or CSR
    offsets : int array (n_bags + 1,)

    Examples
    --------
    >>> bags = Bags(np.arange(6.0).reshape(3, 2), np.array([0, 1, 3]))
    >>> len(bags), bags[1]
    (2, array([[2., 3.],
           [4., 5.]]))
    """

    instances: Any
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> Any:
        if not 0 <= i < len(self):
            raise IndexError(f"bag {i} of {len(self)}")
        return self.instances[self.offsets[i] : self.offsets[i + 1]]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    @property
    def n_features(self) -> int:
        return self.instances.shape[1]

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.offsets)

    def rows(self, bias: float = 0.0) -> Rows:
        return as_rows(self.instances, bias)

    def means(self) -> Any:
        """The mean of every bag, as a matrix of the same kind."""
        if sp.issparse(self.instances):
            sizes = self.sizes
            share = np.repeat(1.0 / sizes, sizes).astype(self.instances.dtype)
            each = np.arange(self.offsets[-1])
            table = sp.csr_matrix((share, each, self.offsets), shape=(len(self), self.offsets[-1])) @ self.instances
            table.sort_indices()
            return table
        sums = np.add.reduceat(self.instances, self.offsets[:-1], axis=0, dtype=np.float64)
        return (sums / self.sizes[:, None]).astype(self.instances.dtype)

    @classmethod
    def of(cls, X: Any, n_features: int | None = None) -> Bags:
        """A list of matrices, a 3-d array or ``Bags``, checked: finite numbers, no empty bag, all of one width.

        float32 and float64 stay as they are.
        """
        X = X.to_list() if hasattr(X, "to_list") else X
        if hasattr(X, "instances") and hasattr(X, "offsets"):
            bags = cls._of_matrix(X.instances, X.offsets)
        elif getattr(X, "ndim", 1) == 3:
            bags = cls._of_array(np.asarray(X))
        else:
            bags = cls._of_list(X, n_features)
        if n_features is not None and bags.n_features != n_features:
            raise ValueError(f"Bags have {bags.n_features} features per instance, {n_features} are needed.")
        bags._check_finite()
        return bags

    @classmethod
    def _of_matrix(cls, instances: Any, offsets: Any) -> Bags:
        table = _numbers(instances, "The matrix of instances")
        offsets = np.asarray(offsets)
        if offsets.ndim != 1 or offsets.size < 2 or offsets.dtype.kind not in "iu":
            raise ValueError("offsets must be whole numbers, one more than there are bags, and there must be a bag.")
        if offsets[0] != 0 or offsets[-1] != table.shape[0]:
            raise ValueError(
                f"offsets must begin at 0 and end at the number of instances, {table.shape[0]}; they go from "
                f"{offsets[0]} to {offsets[-1]}."
            )
        sizes = np.diff(offsets.astype(np.int64))
        if (sizes <= 0).any():
            i = int(np.argmax(sizes <= 0))
            raise ValueError(f"Bag {i} is empty: offsets[{i}] is {offsets[i]}, offsets[{i + 1}] is {offsets[i + 1]}.")
        return cls(table, offsets.astype(np.int64))

    @classmethod
    def _of_array(cls, X: np.ndarray) -> Bags:
        n, size, width = X.shape
        if n == 0 or size == 0:
            raise ValueError(f"An array of bags must have bags and instances; got shape {X.shape}.")
        table = _numbers(X.reshape(n * size, width), "The array of bags")
        return cls(table, np.arange(n + 1, dtype=np.int64) * size)

    @classmethod
    def _of_list(cls, X: Any, n_features: int | None) -> Bags:
        if hasattr(X, "shape") and len(X.shape) != 1 or isinstance(X, str | dict) or not hasattr(X, "__len__"):
            what = f"an array of shape {tuple(X.shape)}" if hasattr(X, "shape") else f"a {type(X).__name__}"
            raise ValueError(
                f"Expected a list of bags, each a matrix of instances by features; got {what}. Put a single bag into "
                "a list: [x]."
            )
        parts: list[Any] = []
        for i, x in enumerate(X):
            part = _numbers(x, f"Bag {i}")
            width = n_features if n_features is not None else parts[0].shape[1] if parts else part.shape[1]
            if part.shape[0] == 0:
                raise ValueError(f"Bag {i} is empty. Drop bags without instances.")
            if part.shape[1] != width:
                raise ValueError(f"Bag {i} has {part.shape[1]} features per instance, {width} are needed.")
            parts.append(part)
        if not parts:
            raise ValueError("There are no bags.")
        precision = np.result_type(*{part.dtype for part in parts})
        if any(sp.issparse(part) for part in parts):
            table = sp.vstack([sp.csr_matrix(part, dtype=precision) for part in parts], format="csr")
            table.sum_duplicates()
        else:
            table = np.concatenate(parts, dtype=precision)
        return cls(table, np.concatenate([[0], np.cumsum([part.shape[0] for part in parts], dtype=np.int64)]))

    def _check_finite(self) -> None:
        table = self.instances
        values = table.data if sp.issparse(table) else table.reshape(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum(dtype=np.float64)):
                return
        bad = np.flatnonzero(~np.isfinite(values))
        if not bad.size:
            return
        at = int(bad[0])
        if sp.issparse(table):
            row, column = int(np.searchsorted(table.indptr, at, side="right")) - 1, int(table.indices[at])
        else:
            row, column = divmod(at, self.n_features)
        i = int(np.searchsorted(self.offsets, row, side="right")) - 1
        raise ValueError(
            f"Bag {i} has {values[at]} in row {row - self.offsets[i]}, column {column} ({bad.size} such values in "
            "all). Fill in or drop missing values first."
        )


def _numbers(x: Any, name: str) -> Any:
    """A matrix, dense in C order or CSR; float32 for what it holds exactly, float64 for the rest."""
    try:
        table = x.tocsr() if sp.issparse(x) else np.asarray(x)
    except ValueError:
        raise ValueError(f"{name} has instances of different lengths; it must be a matrix.") from None
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must be a matrix of numbers, instances by features; got shape {table.shape} of {table.dtype}."
        )
    if table.shape[1] == 0:
        raise ValueError(f"{name} has no features.")
    small = table.dtype.kind in "bui" and table.dtype.itemsize <= 2
    precision = np.float32 if small or table.dtype == np.float32 else np.float64
    if sp.issparse(table):
        return table.astype(precision, copy=False)
    return np.ascontiguousarray(table, dtype=precision)

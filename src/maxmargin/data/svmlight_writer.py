"""Rows written as svmlight text."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..files import replacing
from ..kernels import text as kernels
from ..validation import shown
from .arrays import as_table, canonical, check_unmasked


def write_svmlight(path: Any, X: Any, y: Any, *, group: Any = None, zero_based: bool = False) -> None:
    """Write rows and labels as svmlight text that reads back to the same bits; ``.gz`` and ``.zst`` are compressed.

    Parameters
    ----------
    path : path
    X : matrix, dense or sparse
        Zeros are left out.
    y : array of numbers
    group : array of whole numbers, optional
        Written as ``qid:``.
    zero_based : bool
        Count features from 0 rather than from 1.
    """
    import pyarrow as pa

    if os.path.isdir(path):
        raise IsADirectoryError(f"{os.fspath(path)} is a folder. Give the name of a file in it.")
    for name, given in (("y", y), ("group", group)):
        check_unmasked(name, given)
    try:
        y = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"y must be numbers, one for each row: svmlight text has no other labels; got {shown(y)}."
        ) from None
    X = as_table(X, "X")
    X = canonical(X) if sp.issparse(X) else X
    groups = np.empty(0, np.int64) if group is None else np.asarray(group, dtype=np.int64)
    if y.shape != (X.shape[0],) or (group is not None and groups.shape != y.shape):
        raise ValueError(
            f"X has {X.shape[0]} rows, y is of shape {y.shape}, group of shape {groups.shape}. Give one for each row."
        )
    if groups.size and (groups.min() < 0 or groups.max() >= 10**18):
        raise ValueError("group must be whole numbers from 0 to 10^18 − 1.")
    compression = {".gz": "gzip", ".zst": "zstd"}.get(os.path.splitext(os.fspath(path))[1].lower())
    with replacing(path) as new, pa.output_stream(str(new), compression=compression) as file:
        begin = 0
        while begin < len(y):
            end = _block_end(X, begin)
            block = sp.csr_matrix(X[begin:end])
            file.write(_composed(block, y[begin:end], groups[begin:end], int(not zero_based)))
            begin = end


def _block_end(X: Any, begin: int) -> int:
    """Rows with some hundred thousand entries in all, at least one."""
    room = 1 << 18
    if not sp.issparse(X):
        return min(len(X), begin + max(1, room // max(1, X.shape[1])))
    end = int(np.searchsorted(X.indptr, X.indptr[begin] + room, side="right")) - 1
    return min(X.shape[0], max(begin + 1, min(end, begin + room)))


def _composed(X: sp.csr_matrix, y: np.ndarray, groups: np.ndarray, base: int) -> memoryview:
    values = X.data if X.dtype in (np.float32, np.float64) else X.data.astype(np.float64)
    if not (np.isfinite(values).all() and np.isfinite(y).all()):
        raise ValueError("X or y has entries that are not finite. Fill in or drop missing values first.")
    parts, texts = [], []
    for numbers in (y, values):
        wholes, places = np.empty(numbers.size, np.int64), np.empty(numbers.size, np.int8)
        kernels.shortest_of_all(numbers, wholes, places, np.empty(2, numbers.dtype))
        parts.append((np.signbit(numbers), wholes, places))
        texts.append([repr(float(v)) for v in numbers[places < 0]])
    rare = _interleaved(X.indptr, parts[0][2] < 0, parts[1][2] < 0, *texts)
    out = np.empty(y.size * 60 + values.size * 40 + 1, np.uint8)
    characters = np.frombuffer("".join(text + " " for text in rare).encode() + b" ", np.uint8)
    size = kernels.compose(out, *parts[0], groups, X.indptr, X.indices, *parts[1], base, characters)
    return out[:size].data


def _interleaved(
    indptr: np.ndarray, rare_labels: np.ndarray, rare_values: np.ndarray, labels: list[str], values: list[str]
) -> list[str]:
    """Texts of labels and values in the order in which they are written: each label before the values of its row."""
    at = np.concatenate([indptr[np.flatnonzero(rare_labels)] * 2, np.flatnonzero(rare_values) * 2 + 1])
    texts = labels + values
    return [texts[i] for i in np.argsort(at, kind="stable")]

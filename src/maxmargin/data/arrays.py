"""User matrices as ``Rows``: no copy of float32 or float64 data, dense (C order) or CSR.

Compiled code, SciPy's and ours, goes where the offsets and indices of a sparse matrix lead. So what users give is
looked at first: ``checked_sparse`` costs one scan, and nothing is copied that is as it should be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from ..problem import Rows
from ..validation import check_unmasked
from .errors import DataError

_EMPTY = np.empty(0, np.int32)
_SOME = 1 << 20  # values looked at together
_UNSIGNED = {4: np.uint32, 8: np.uint64}  # by the bytes of an index
_MEND = (
    "Build the matrix again from rows, columns and values: scipy.sparse.coo_matrix((values, (rows, columns)), shape)."
)


def checked_sparse(X: Any, name: str = "X", *, entries: bool = True) -> Any:
    """A sparse matrix of numbers, of any format, as CSR, none of whose rows leads out of it.

    Without ``entries`` the column indices of a CSR matrix are left to whoever reads them chunk by chunk. Rows may be
    unsorted and have duplicates.

    >>> checked_sparse(sp.coo_array(([1.0], ([0], [2])), shape=(1, 3))).indices.tolist()
    [2]
    """
    if len(X.shape) != 2:
        raise ValueError(f"{name} must be a matrix, one row per example; got a sparse array of shape {X.shape}.")
    if X.dtype.kind not in "fiub":  # of which SciPy converts some, drops a part of others, and fails at the rest
        raise DataError(
            f"{name} must be a matrix of numbers, got a sparse one of {X.dtype}. Turn its values into real numbers "
            "first."
        )
    return _checked_csr(X if X.format == "csr" else _rebuilt(X, name), name, entries)


def _rebuilt(X: Any, name: str) -> Any:
    """A matrix of another format as CSR, made anew from its parts: SciPy looks at them then, and not later."""
    check_unmasked(f"{name}.data", getattr(X, "data", None))
    try:
        # SciPy adds up the duplicates of these two: small integers beyond what they hold; and float16 not at all.
        if X.dtype.kind != "b" and X.dtype.itemsize <= 2 and (X.dtype.kind == "f" or X.format in ("coo", "dia")):
            X = X.astype(np.float32)
        if X.format in ("csc", "bsr"):
            X = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
            X.check_format(full_check=True)
        elif X.format == "coo":
            X = type(X)((X.data, (X.row, X.col)), shape=X.shape)
        elif X.format == "dia":
            X = type(X)((X.data, X.offsets), shape=X.shape)
        elif X.format == "lil" and list(map(len, X.rows)) != list(map(len, X.data)):
            raise ValueError("it needs a value for each index")
        return X.tocsr()
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise _broken(name, str(error).rstrip(".")) from None


def _checked_csr(X: Any, name: str, entries: bool) -> Any:
    check_unmasked(f"{name}.data", X.data)
    if X.data.ndim != 1:
        raise _broken(name, f"its values have the shape {X.data.shape}")
    offsets, indices = _whole(X.indptr, f"{name}.indptr"), _whole(X.indices, f"{name}.indices")
    rows, columns = X.shape
    if offsets.size != rows + 1:
        raise _broken(name, f"{offsets.size} offsets (indptr) are for {offsets.size - 1} rows, not {rows}")
    n, held = int(offsets[-1]), min(indices.size, len(X.data))
    if offsets[0] != 0 or n > held or (offsets[1:] < offsets[:-1]).any():
        raise _broken(name, f"its offsets (indptr) must rise from 0 to at most {held}, the number of stored values")
    if len(X.data) != indices.size:
        raise _broken(name, f"it has {len(X.data)} values and {indices.size} indices")
    if entries and n:
        used = indices[:n]
        # Seen without a sign, an index below zero is a huge one: one scan finds both.
        if used.view(_UNSIGNED[used.itemsize]).max() >= columns:
            raise _broken(name, f"it has column indices from {used.min()} to {used.max()}, but {columns} columns")
    values = X.data if X.data.flags.c_contiguous else np.ascontiguousarray(X.data)  # as kernels are compiled for
    if offsets is X.indptr and indices is X.indices and values is X.data and n == indices.size:
        return X
    plain = type(X)(X.shape, dtype=X.dtype)
    plain.indptr, plain.indices, plain.data = offsets, indices[:n], values[:n]
    return plain


def _whole(array: Any, name: str) -> np.ndarray:
    """Offsets or indices as kernels read them, the same array if it is so already."""
    check_unmasked(name, array)
    dtype = array.dtype if isinstance(array, np.ndarray) and array.ndim == 1 else None
    if dtype is None or dtype.kind not in "iu":
        kind = getattr(array, "dtype", type(array).__name__)
        raise ValueError(f"{name} must be a list of whole numbers, got {kind} of shape {np.shape(array)}. {_MEND}")
    if dtype.kind == "i" and dtype.itemsize >= 4 and dtype.isnative and array.flags.c_contiguous:
        return array
    small = dtype.itemsize < 4 or dtype.newbyteorder("=") == np.int32
    return np.ascontiguousarray(array, np.int32 if small else np.int64)


def _broken(name: str, what: str) -> ValueError:
    return ValueError(f"{name} is a broken sparse matrix: {what}. {_MEND}")


def as_table(x: object, name: str, rows: str = "one row per example", *, hint: str = "", vector: bool = False) -> Any:
    """What was given as a matrix of numbers, dense or CSR, that can be relied on; a ``vector`` may be its one row.

    ``rows`` is what the message says of them, and ``hint`` what else is said of what is no matrix.
    """
    check_unmasked(name, x)
    try:
        table = checked_sparse(x, name) if sp.issparse(x) else np.asarray(x)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError(f"{name} has rows of different lengths. Give all as many numbers.{hint}") from None
    if vector and not sp.issparse(table):
        table = np.atleast_2d(table)
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be a matrix of numbers, {rows}; got {table.dtype} of shape {table.shape}.{hint}")
    return table


def as_matrix(X: object, width: int | None = None) -> Any:
    """A matrix of finite numbers, dense or CSR, one row per example; a single vector is one row.

    float32 and float64 stay as they are, other numbers become float64.

    >>> as_matrix([1, 2]).shape
    (1, 2)
    """
    table = as_table(X, "X", vector=True)
    if width is not None and table.shape[1] != width:
        raise ValueError(f"X has {table.shape[1]} features, {width} are needed, as in training.")
    table = table.astype(table.dtype if table.dtype in (np.float32, np.float64) else np.float64, copy=False)
    if first_not_finite(table) is not None:
        raise ValueError("X has entries that are not finite. Fill in or drop missing values first.")
    return table


def as_tables(
    X: Iterable[object], name: str, row: str, width: int | None = None, *, part: str = "", hint: str = ""
) -> list[Any]:
    """Matrices of numbers, all of one width and none of them empty.

    ``name`` is what messages call one of them, or what it is a ``part`` of; ``row`` is what they call one of its rows.

    >>> as_tables([[[1, 2]], [[1]]], "Bag", "instance")
    Traceback (most recent call last):
    ValueError: Bag 1 has 1 features per instance, 2 are needed.
    """
    tables: list[Any] = []
    for i, x in enumerate(X):
        alike = f", as {name.lower()} 0 is" if tables and not part else ""
        called = f"{part} of {name.lower()} {i}" if part else f"{name} {i}"
        table = as_table(x, called, f"{row}s by features{alike}", hint=hint)
        if table.shape[0] == 0:
            raise ValueError(f"{name} {i} is empty. Drop {name.lower()}s without {row}s, and their labels.")
        width = table.shape[1] if width is None else width
        if table.shape[1] != width:
            raise ValueError(f"{name} {i} has {table.shape[1]} features per {row}, {width} are needed.")
        tables.append(table)
    return tables


def stacked(tables: Sequence[Any], dtype: DTypeLike) -> tuple[Any, np.ndarray]:
    """Matrices end to end, CSR if one of them is sparse, and where each begins."""
    first = np.concatenate([[0], np.cumsum([table.shape[0] for table in tables])])
    if any(sp.issparse(table) for table in tables):
        return sp.vstack([sp.csr_matrix(table, dtype=dtype) for table in tables], format="csr"), first
    return np.concatenate(tables, dtype=dtype), first


def check_finite(table: Any, first: np.ndarray, name: str, row: str) -> None:
    """Complain of the first value that is not finite in matrices end to end, which begin in the rows ``first``."""
    bad = first_not_finite(table)
    if bad is None:
        return
    at, column, value = bad
    i = int(np.searchsorted(first, at, side="right")) - 1
    raise ValueError(
        f"{name} {i} has a value that is not finite ({value}), at {row} {at - first[i]}, feature {column}. "
        "Fill in or drop missing values first."
    )


def first_not_finite(table: Any) -> tuple[int, int, Any] | None:
    """Row, column and value of the first entry of a matrix that is not finite; None if all are.

    >>> first_not_finite(np.array([[1.0, 2.0], [np.inf, 3.0]]))[:2]
    (1, 0)
    """
    values = table.data if sp.issparse(table) else table
    # One sum finds out in a fraction of the time of a test per element; overflow alone is no error.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return None
    bad = np.flatnonzero(~np.isfinite(values))
    if not bad.size:
        return None
    at = int(bad[0])
    if sp.issparse(table):
        return int(np.searchsorted(table.indptr, at, side="right")) - 1, int(table.indices[at]), values[at]
    row, column = divmod(at, table.shape[-1])
    return row, column, values.reshape(-1)[at]


def as_rows(X: Any, bias: float = 0.0) -> Rows:
    """View a matrix of finite numbers as rows.

    Sparse matrices become CSR; entries are brought into canonical form (sorted, no duplicates) on a copy
    of their own if they are not: norms and inner products of rows rely on it.

    >>> len(as_rows(np.eye(3)))
    3
    """
    if not sp.issparse(X):
        return rows_of(np.ascontiguousarray(X), bias)
    if X.shape[1] >= 2**32:
        raise ValueError(f"At most {2**32 - 1} columns can be addressed, X has {X.shape[1]}.")
    return rows_of(canonical(checked_sparse(X)), bias)


def rows_of(X: Any, bias: float) -> Rows:
    """The same of a matrix in canonical form, which was checked before: nothing is looked at again, nothing copied."""
    if not sp.issparse(X):
        return Rows(_EMPTY, _EMPTY, X.reshape(-1), X.shape[0], X.shape[1], bias)
    if X.nnz == 0:
        # Empty ``indices`` would mean "dense": one entry that no row points at keeps it sparse.
        return Rows(X.indptr, np.zeros(1, np.int32), np.zeros(1, X.dtype), X.shape[0], X.shape[1], bias)
    return Rows(X.indptr, X.indices, X.data, X.shape[0], X.shape[1], bias)


def canonical(X: Any) -> Any:
    """A checked CSR matrix with the indices of every row sorted and without duplicates, itself if they are so.

    Duplicates are added up in float32 or float64: a sum of small integers may be too large for their type.
    """
    falls = X.indices[1:] <= X.indices[:-1]  # SciPy remembers what it found once, even if the indices have changed
    starts = X.indptr[1:-1]
    falls[starts[(starts > 0) & (starts < X.indices.size)] - 1] = False
    if not falls.any():
        return X
    values = X.data.astype(X.dtype if X.dtype in (np.float32, np.float64) else np.float64, copy=False)
    X = sp.csr_matrix((values, X.indices, X.indptr), shape=X.shape, copy=True)
    X.sum_duplicates()
    return X


def csr_view(
    indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, width: int, canonical: bool = True
) -> sp.csr_matrix:
    """CSR on these arrays without a copy; entries that are not in order, or double, are mended on a copy."""
    x = sp.csr_matrix((indptr.size - 1, width), dtype=values.dtype)
    x.indptr, x.indices, x.data = indptr, indices, values  # the constructor would copy views of large arrays
    if canonical:
        x.has_sorted_indices = x.has_canonical_format = True  # known: scipy need not look again
        return x
    x = x.copy()
    x.has_sorted_indices = x.has_canonical_format = False
    x.sum_duplicates()
    return x


def usable_rows(
    x: Any, dtype: DTypeLike, width: int, first: int, *, path: str | None = None, checked: bool = False
) -> tuple[Any, bool]:
    """Rows of a chunk in this precision and canonical form, finite and within bounds; and whether they were in it.

    ``first`` is the number of the first row and ``path`` its file, for messages. Rows that were ``checked`` before are
    not looked at again.
    """
    from ..kernels import batches

    if x.dtype.kind not in "fiub":
        raise DataError(
            f"Rows from {first} on must be a matrix of numbers, one row per example; got {x.dtype} of shape {x.shape}.",
            path=path,
            row=first,
        )
    with np.errstate(over="ignore"):  # what is too large is found below
        if not sp.issparse(x):
            values = np.ascontiguousarray(x, dtype)
            bad = None if checked else first_not_finite(values)
            if bad is None:
                return values, True
            row, column, _ = bad
            value = x[row, column]
        else:
            values = x.data.astype(dtype, copy=False)
            verdict, row, entry = (
                (batches.GOOD, 0, 0) if checked else batches.check_rows(x.indptr, x.indices, values, width)
            )
            if verdict in (batches.GOOD, batches.UNSORTED):
                good = verdict == batches.GOOD
                return csr_view(x.indptr, x.indices, values, x.shape[1], good), good
            if verdict != batches.NOT_FINITE:
                raise DataError(
                    f"{path or 'x'}: row {first + row} is no row of a matrix with {width} columns: its offsets or "
                    "column indices lead out of it. Build the matrix again.",
                    path=path,
                    row=int(first + row),
                )
            column, value = int(x.indices[entry]), x.data[entry]
    where = f"{'' if path is None else f'{path}: '}{value} in row {first + row}, column {column}"
    if np.isfinite(value):
        message = f"{where} is too large for {np.dtype(dtype)}. Use dtype='float64'."
    else:
        message = f"{where}. Fill in or drop values that are not finite first."
    raise DataError(message, path=path, row=int(first + row), column=column)


def without_zeros(rows: Rows, most: float) -> Rows:
    """Dense rows as sparse ones, a copy, where at most this share of the values is not zero; else the same rows.

    >>> without_zeros(as_rows(np.array([[0.0, 3.0, 0.0, 0.0]])), most=0.3).indices.tolist()
    [1]
    """
    if not rows.dense or rows.data.size == 0 or _share_of_nonzeros(rows.data[:_SOME]) > most:
        return rows
    table = rows.data.reshape(rows.n_rows, rows.width)
    indptr = np.zeros(rows.n_rows + 1, np.int64)
    size = max(_SOME // rows.width, 1)
    blocks = [table[at : at + size] for at in range(0, rows.n_rows, size)]
    for n, block in enumerate(blocks):
        indptr[n * size + 1 : (n + 1) * size + 1] = np.count_nonzero(block, axis=1)
    np.cumsum(indptr, out=indptr)
    if not 0 < indptr[-1] <= most * rows.data.size:  # without any index they would count as dense
        return rows
    indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], rows.data.dtype)
    for n, block in enumerate(blocks):
        where = np.flatnonzero(block)
        part = slice(indptr[n * size], indptr[n * size] + where.size)
        indices[part], data[part] = where % rows.width, block.reshape(-1)[where]
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    return replace(rows, indptr=indptr, indices=indices, data=data)


def _share_of_nonzeros(values: np.ndarray) -> float:
    return float(np.count_nonzero(values)) / values.size

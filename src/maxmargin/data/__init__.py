"""Data on its way in: user arrays become ``Rows`` without a copy, files become sources that are read chunk by chunk."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import DataError as DataError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from ..protocols import Source
    from . import synthetic as synthetic
    from .bags import Bags as Bags
    from .shards import Shards

__all__ = ["Bags", "DataError", "convert", "open", "synthetic", "write_svmlight"]


def open(
    what: Any,
    *,
    labels: Any = None,
    groups: Any = None,
    weights: Any = None,
    chunk_rows: int | None = None,
    n_features: int | None = None,
    label: str | None = None,
    group: str | None = None,
    weight: str | None = None,
    zero_based: bool | str = "auto",
    on_error: str = "raise",
    n_jobs: int = 1,
    dtype: Any = None,
    filesystem: Any = None,
) -> Source:
    """Data as a source, read chunk by chunk: nothing is loaded before it is needed.

    Parameters
    ----------
    what : path, pattern, list of paths, arrays, pairs or source
        - svmlight text (``.svm``, ``.svmlight``, ``.libsvm``, ``.txt``, also with ``.gz`` or ``.zst``),
        - Parquet (``.parquet``): numeric columns are features, others are named,
        - a folder written by ``convert``, or Arrow files out of one,
        - ``.npy`` and ``.npz`` files, matrices (NumPy, SciPy, data frames): ``open(X, labels=y)``,
        - structured examples: a list of pairs (x, y), or a function that returns a fresh iterator of them,
        - a source, which is returned as it is.

        Several files must be of one kind. Where a name says nothing, the first bytes of the file do.

        Text, Parquet and folders written by ``convert`` may also be on another file system: ``s3://bucket/folder``,
        ``gs://bucket/part-*.parquet``, ``hdfs://host/folder``. They are read from there, nothing is copied to a local
        disk. Everything may be named as ``file:///folder/name``.
    labels, groups, weights : arrays or paths of ``.npy`` files
        Columns that belong to a matrix; for a list of files, lists of them.
    label, group, weight : str
        Names of columns of Parquet files. The label is "label", "y" or "target" unless said otherwise.
    chunk_rows : int
        Rows per chunk; about 4 MB of them unless said otherwise.
    n_features : int
        Number of columns, where the data may not show all of them.
    zero_based : bool or "auto"
        Whether the first feature of svmlight text is number 0 or 1.
    on_error : "raise" or "skip"
        Whether to leave out what cannot be read; the source's ``skipped`` then says what that was.
    n_jobs : int
        Threads that read text.
    dtype : float32 or float64
        Inputs in this precision; as they are stored unless said otherwise.
    filesystem : file system of pyarrow or fsspec
        Where the paths are, for file systems that need credentials or have no URI.

    An option that means nothing for the data at hand is refused.

    Examples
    --------
    >>> import numpy as np, maxmargin as mm
    >>> source = mm.data.open(np.eye(4), labels=[0, 1, 0, 1], chunk_rows=3)
    >>> len(source), source.n_features
    (4, 4)
    >>> for chunk in source.chunks():
    ...     print(chunk.ids, chunk.y)
    [0 1 2] [0 1 0]
    [3] [1]
    >>> mm.data.open([("to be", "V"), ("or", "C")]).chunk(0).y
    ['V', 'C']
    """
    from .opening import open_source

    return open_source(
        what,
        labels=labels,
        groups=groups,
        weights=weights,
        chunk_rows=chunk_rows,
        n_features=n_features,
        label=label,
        group=group,
        weight=weight,
        zero_based=zero_based,
        on_error=on_error,
        n_jobs=n_jobs,
        dtype=dtype,
        filesystem=filesystem,
    )


def convert(
    what: Any,
    folder: str | os.PathLike[str],
    *,
    shuffle: bool = True,
    seed: int = 0,
    memory: int | str = "512MB",
    shard_bytes: int | str = "256MB",
    batch_bytes: int | str = "4MB",
    dtype: Any = "float32",
    overwrite: bool = False,
    progress: Callable[[int, int | None, int | None], Any] | None = None,
    **options: Any,
) -> Shards:
    """Write data of any kind as shards, shuffled: the form in which data larger than memory is trained on.

    Parameters
    ----------
    what : anything that ``open`` takes
    folder : path
        Where the shards go; it must not exist yet, or be empty.
    shuffle : bool, default True
        Rows (with groups: whole groups) in an order that depends on the seed and the data alone. Without, rows stay
        in their order.
    seed : int, default 0
    memory : int or text, default "512MB"
        How much may be held at a time. What does not fit goes to temporary files beside the folder.
    shard_bytes, batch_bytes : int or text, default "256MB" and "4MB"
        Size of a file, and of a chunk in it.
    dtype : default "float32"
        Precision in which inputs are stored.
    overwrite : bool, default False
        Whether to replace a data set that is there. It stays until the new one is complete.
    progress : callable, optional
        Called as ``progress(rows, bytes_done, bytes_total)``; bytes are None where they are not known.
    **options
        As for ``open``: ``labels``, ``label``, ``on_error`` …

    Examples
    --------
    >>> import tempfile, numpy as np, maxmargin as mm
    >>> with tempfile.TemporaryDirectory() as place:
    ...     shards = mm.data.convert(np.eye(4), place + "/four", labels=[0, 1, 2, 3])
    ...     sorted(shards.labels(0).y.tolist())
    [0, 1, 2, 3]
    """
    from .conversion import convert_source

    return convert_source(
        what,
        folder,
        shuffle=shuffle,
        seed=seed,
        memory=memory,
        shard_bytes=shard_bytes,
        batch_bytes=batch_bytes,
        dtype=dtype,
        overwrite=overwrite,
        progress=progress,
        **options,
    )


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
    from .svmlight_writer import write_svmlight as write

    write(path, X, y, group=group, zero_based=zero_based)


def __getattr__(name: str) -> Any:
    if name == "Bags":  # imported when first used, like all that needs SciPy
        from .bags import Bags

        return Bags
    if name == "synthetic":
        return import_module(".synthetic", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""``open``: one door for every kind of data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from ..validation import shown
from .errors import DataError
from .stores import Disk, located

if TYPE_CHECKING:
    from ..protocols import Source


class _Kind(NamedTuple):
    """What messages call it, the options that mean something to it, and the function that opens it."""

    words: str
    takes: tuple[str, ...]
    opener: tuple[str, str]


_ROWS = ("chunk_rows", "n_features", "dtype")
_COLUMNS = ("labels", "groups", "weights")
_KINDS = {
    "svmlight": _Kind(
        "svmlight text",
        (*_ROWS, "zero_based", "on_error", "n_jobs", "filesystem"),
        ("svmlight", "SvmlightSource"),
    ),
    "parquet": _Kind(
        "Parquet",
        (*_ROWS, "on_error", "label", "group", "weight", "filesystem"),
        ("parquet", "ParquetSource"),
    ),
    "folder": _Kind("folders of shards", ("n_features", "dtype", "filesystem"), ("shards", "Shards")),
    "conll": _Kind("CoNLL files", ("chunk_rows", "columns", "encoding", "comments"), ("conll", "open_conll")),
    "npy": _Kind(".npy arrays", (*_ROWS, *_COLUMNS), ("array_source", "open_npy")),
    "arrays": _Kind("arrays", (*_ROWS, *_COLUMNS), ("array_source", "open_arrays")),
    "pairs": _Kind("pairs", ("chunk_rows",), ("examples", "pairs_of")),
    "source": _Kind("source", (), ("", "")),  # it is open already
}
_SUFFIXES = {
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".txt": "svmlight",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npy": "npy",
    ".conll": "conll",
    ".conllu": "conll",
    ".iob": "conll",
    ".iob2": "conll",
    ".bio": "conll",
}
_BEGINNINGS = {
    b"PAR1": "parquet",
    b"\x93NUMPY": "npy",
    b"\x1f\x8b": "svmlight",
    b"\x28\xb5\x2f\xfd": "svmlight",
}
_COMPRESSED = (".gz", ".zst")
_AS_TABLE = "Read it with NumPy, pandas or the like and open the table: maxmargin.data.open(X, labels=y)."
_AS_PARQUET = "Turn it into Parquet first: pyarrow.parquet.write_table(pyarrow.csv.read_csv(name), 'table.parquet')."
_OTHERS = {
    ".arff": ("an ARFF table", _AS_TABLE),
    ".arrow": ("one Arrow file", "Shards are opened by the name of their folder; other tables are read as Parquet."),
    ".csv": ("a table in text", _AS_PARQUET),
    ".json": ("JSON", _AS_TABLE),
    ".npz": ("an archive of arrays", _AS_TABLE),
    ".pickle": ("a pickle, whose loading would run code", _AS_TABLE),
    ".pkl": ("a pickle, whose loading would run code", _AS_TABLE),
    ".tsv": ("a table in text", _AS_PARQUET),
    ".xls": ("an Excel table", _AS_TABLE),
    ".xlsx": ("an Excel table", _AS_TABLE),
}
# For those who gather groups anyway (``convert``), rows of a group may be anywhere.
_WITH_GROUPS = ("arrays", "npy", "folder")


def open(
    what: object,
    *,
    labels: object = None,
    groups: object = None,
    weights: object = None,
    chunk_rows: int | None = None,
    n_features: int | None = None,
    label: str | None = None,
    group: str | None = None,
    weight: str | None = None,
    columns: Sequence[int | str] | None = None,
    encoding: str | None = None,
    comments: bool | None = None,
    zero_based: bool | str = "auto",
    on_error: str = "raise",
    n_jobs: int = 1,
    dtype: DTypeLike | None = None,
    filesystem: object = None,
) -> Source:
    """Data as a source, read chunk by chunk: nothing is loaded before it is needed.

    Parameters
    ----------
    what : path, pattern, list of paths, arrays, pairs or source
        - svmlight text (``.svm``, ``.svmlight``, ``.libsvm``, ``.txt``, also with ``.gz`` or ``.zst``),
        - Parquet (``.parquet``): numeric columns are features, others are named,
        - CoNLL files (``.conll``, ``.conllu``, ``.iob``, ``.iob2``, ``.bio``, also with ``.gz`` or ``.zst``): sentences
          and their labels, see ``read_conll``,
        - a folder written by ``convert``,
        - a ``.npy`` file, matrices (NumPy, SciPy, data frames): ``open(X, labels=y)``,
        - structured examples: a list of pairs (x, y), or a function that returns a fresh iterator of them,
        - a source, which is returned as it is.

        Several files must be of one kind. Where a name says nothing, the first bytes of the file do.

        Text, Parquet and folders written by ``convert`` may also be on another file system: ``s3://bucket/folder``,
        ``gs://bucket/part-*.parquet``, ``hdfs://host/folder``. They are read from there, nothing is copied to a local
        disk. Everything may be named as ``file:///folder/name``.
    labels, groups, weights : arrays or paths of ``.npy`` files
        Columns that belong to a matrix.
    label, group, weight : str
        Names of columns of Parquet files. The label is "label", "y" or "target" unless said otherwise.
    chunk_rows : int
        Rows per chunk; about 4 MB of them unless said otherwise.
    n_features : int
        Number of columns, where the data may not show all of them.
    columns : list of int or str
        The columns of CoNLL files that are read, the label last; see ``read_conll``.
    encoding : str
        Of the text of CoNLL files, UTF-8 unless said otherwise.
    comments : bool
        Whether lines of CoNLL files that begin with ``#`` are comments; see ``read_conll``.
    zero_based : bool or "auto"
        Whether the first feature of svmlight text is number 0 or 1.
    on_error : "raise" or "skip"
        Whether to leave out lines of text and rows of Parquet that cannot be read; the source's ``skipped`` then says
        what they were.
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
    given = locals()
    return open_source(given.pop("what"), **given)


_DEFAULTS: dict[str, Any] = dict(open.__kwdefaults__ or {})


def open_source(what: object, *, whole_groups: bool = True, **given: Any) -> Source:
    """``open``; without ``whole_groups`` rows of a group may be anywhere."""
    unknown = sorted(set(given) - set(_DEFAULTS))
    if unknown:
        raise TypeError(f"open() has no option {', '.join(unknown)}; it has {', '.join(sorted(_DEFAULTS))}.")
    given = {**_DEFAULTS, **given}
    if given["on_error"] not in ("raise", "skip"):
        raise DataError(f"on_error must be 'raise' or 'skip', not {shown(given['on_error'])}.")
    if given["dtype"] is not None:
        precision(given["dtype"])
    for name in ("chunk_rows", "n_features", "n_jobs"):
        number = given[name]
        if number is not None and (isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1):
            raise DataError(f"{name} must be a whole number of at least 1, not {shown(number)}.")
    kind, thing, store = _kind(what, given["labels"] is not None, given["filesystem"])
    if store is not None:
        given["filesystem"] = store if "filesystem" in _KINDS[kind].takes else None
    options = _options(kind, given)
    if kind == "source":
        return cast("Source", thing)
    if kind in _WITH_GROUPS:
        options["whole_groups"] = whole_groups
    module, function = _KINDS[kind].opener
    source: Source = getattr(import_module(f".{module}", __package__), function)(thing, **options)
    return source


def precision(dtype: DTypeLike) -> str:
    """The name of a type that inputs are kept in."""
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = ""
    if name not in ("float32", "float64"):
        raise DataError(f"dtype must be float32 or float64, not {name or shown(dtype)}.")
    return name


def kind_of(what: object) -> str:
    """The kind of data at hand, as ``open`` would read it: "svmlight", "conll", "parquet", …"""
    return _kind(what, False, None)[0]


def takes(what: object, option: str, options: dict[str, Any]) -> bool:
    """Whether an option means something for what is to be opened with these others."""
    return option in _KINDS[_kind(what, options.get("labels") is not None, options.get("filesystem"))[0]].takes


def _kind(what: object, labelled: bool, filesystem: object) -> tuple[str, Any, Disk | None]:
    """What was given: its kind, the thing itself (paths as a list), and where paths are."""
    if hasattr(what, "chunks") and callable(what.chunks) and hasattr(what, "n_features"):
        return "source", what, None
    if isinstance(what, str | os.PathLike):
        return _paths_kind([os.fspath(what)], filesystem)
    if isinstance(what, list | tuple) and what and all(isinstance(item, str | os.PathLike) for item in what):
        return _paths_kind([os.fspath(item) for item in what], filesystem)
    if sp.issparse(what) or isinstance(what, np.ndarray):
        return "arrays", what, None
    if hasattr(what, "to_numpy") and hasattr(what, "columns"):
        return "arrays", what.to_numpy(), None
    if isinstance(what, list | tuple) and labelled:
        try:
            return "arrays", np.asarray(what), None
        except ValueError:
            raise DataError(
                "labels= is for rows of one matrix, and the items of this list are not alike. Give sequences and other "
                "structured examples as pairs: maxmargin.data.open(list(zip(X, Y)))."
            ) from None
    return "pairs", what, None


def _paths_kind(names: list[str], filesystem: object) -> tuple[str, list[str], Disk]:
    store, names = located(names, filesystem)
    paths = [path for name in names for path in store.found(name)]
    kinds = [_kind_of_file(path, store) for path in paths]
    words = [_KINDS[kind].words for kind in kinds]
    for path, word in zip(paths, words, strict=True):
        if word != words[0]:
            raise DataError(
                f"All files must be of one kind: {paths[0]} is {words[0]}, {path} is {word}. Open them one by one, or "
                "convert each.",
                path=path,
            )
    if not store.local and "filesystem" not in _KINDS[kinds[0]].takes:
        raise DataError(
            f"{paths[0]} is {words[0]}, which is read from local disks only. From other file systems ({store.name}) "
            "come svmlight text, Parquet and folders written by maxmargin.data.convert. Copy it to a disk.",
            path=paths[0],
        )
    return kinds[0], paths, store


def _kind_of_file(name: str, store: Disk) -> str:
    """By its name or, where that says nothing, by its first bytes."""
    if store.is_folder(name):
        return "folder"
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    if last in _SUFFIXES:
        return _SUFFIXES[last]
    if last in _OTHERS:
        what, advice = _OTHERS[last]
        raise DataError(f"{name} is {what}, which is not read. {advice}", path=name)
    head = store.read(name, 512)
    kind = next((kind for magic, kind in _BEGINNINGS.items() if head.startswith(magic)), None)
    if kind is None and b"\x00" in head:
        known = ", ".join([*_SUFFIXES, "with .gz or .zst for text"])
        raise DataError(
            f"{name} is of no kind that can be read: its name has none of {known}, and it does not begin like one.",
            path=name,
        )
    return kind or "svmlight"


def _options(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    for name, value in given.items():
        if name == "n_jobs":
            continue  # a wish, not a property of the data
        default = _DEFAULTS[name]
        if name not in _KINDS[kind].takes and value is not None and (default is None or value != default):
            takers = " and ".join(other.words for _, other in sorted(_KINDS.items()) if name in other.takes)
            raise DataError(f"{name}= means nothing for {_KINDS[kind].words}. It is for {takers}.")
    return {name: value for name, value in given.items() if name in _KINDS[kind].takes}

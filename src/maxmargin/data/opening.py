"""``open``: one door for every kind of data."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..wording import shown
from .errors import DataError
from .mapped import unreadable
from .stores import Store, is_uri, located, store_of

if TYPE_CHECKING:
    from ..protocols import Source

_KINDS = {
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".txt": "svmlight",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".npy": "npy",
    ".npz": "npz",
}
_COMPRESSED = (".gz", ".zst")
_WORDS = {
    "svmlight": "svmlight text",
    "parquet": "Parquet",
    "arrow": "Arrow shards",
    "npy": ".npy arrays",
    "npz": ".npz arrays",
    "folder": "folders of shards",
}
_OTHERS = {
    ".arff": "an ARFF table",
    ".json": "JSON",
    ".pickle": "a pickle, whose loading would run code",
    ".pkl": "a pickle, whose loading would run code",
    ".xls": "an Excel table",
    ".xlsx": "an Excel table",
}
# Which options mean something to which kind; others are refused rather than ignored.
_TAKES = {
    "svmlight": {"chunk_rows", "n_features", "zero_based", "on_error", "n_jobs", "dtype", "filesystem"},
    "parquet": {"chunk_rows", "n_features", "on_error", "dtype", "label", "group", "weight", "filesystem"},
    "arrow": {"n_features", "on_error", "dtype"},
    "folder": {"n_features", "on_error", "dtype", "filesystem"},
    "npy": {"chunk_rows", "n_features", "dtype", "labels", "groups", "weights"},
    "npz": {"chunk_rows", "n_features", "dtype", "labels", "groups", "weights"},
    "arrays": {"chunk_rows", "n_features", "dtype", "labels", "groups", "weights"},
    "pairs": {"chunk_rows"},
    "source": set(),
}
_DEFAULTS = {"zero_based": "auto", "on_error": "raise", "n_jobs": 1}


def open_source(what: Any, *, whole_groups: bool = True, **given: Any) -> Source:
    """``maxmargin.data.open``, described there; without ``whole_groups`` rows of a group may be anywhere."""
    names = set().union(*_TAKES.values())
    unknown = sorted(set(given) - names)
    if unknown:
        raise TypeError(f"open() has no option {', '.join(unknown)}; it has {', '.join(sorted(names))}.")
    given = {**dict.fromkeys(names), **_DEFAULTS, **given}
    if given["on_error"] not in ("raise", "skip"):
        raise DataError(f"on_error must be 'raise' or 'skip', not {shown(given['on_error'])}.")
    if given["dtype"] is not None:
        precision(given["dtype"])
    rows = given["chunk_rows"]
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 1):
        raise DataError(f"chunk_rows must be a whole number of at least 1, not {shown(rows)}.")
    kind, thing, store = _kind(what, given["labels"] is not None, given["filesystem"])
    if kind in _WORDS:
        given["filesystem"] = store
    options = _options(kind, given)
    if kind in ("arrays", "npy", "npz", "folder"):
        options["whole_groups"] = whole_groups
    return _OPENERS[kind](thing, options)


def precision(dtype: Any) -> str:
    """The name of a type that inputs are kept in."""
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = ""
    if name not in ("float32", "float64"):
        raise DataError(f"dtype must be float32 or float64, not {name or shown(dtype)}.")
    return name


def takes(what: Any, option: str, options: dict[str, Any]) -> bool:
    """Whether an option means something for what is to be opened with these others."""
    return option in _TAKES[_kind(what, options.get("labels") is not None, options.get("filesystem"))[0]]


def _kind(what: Any, labelled: bool, filesystem: Any) -> tuple[str, Any, Store | None]:
    """What was given: its kind, the thing itself (paths as a list), and where paths are if not on a local disk."""
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
        return "arrays", np.asarray(what), None
    return "pairs", what, None


def _located(names: list[str], filesystem: Any) -> tuple[Store | None, list[str]]:
    """Where paths are, None for a local disk, and the paths there; URIs say it themselves."""
    uris = [name for name in names if is_uri(name)]
    if filesystem is not None:
        if uris:
            raise DataError(
                f"{uris[0]} names a file system already. Give filesystem= with paths in it, or only the URI."
            )
        return store_of(filesystem), names
    if not uris:
        return None, names
    places = [located(name) if is_uri(name) else (None, name) for name in names]
    for name, (store, _) in zip(names, places, strict=True):
        if store != places[0][0]:
            raise DataError(f"{names[0]} and {name} are in different file systems. Copy them to one.", path=name)
    return places[0][0], [path for _, path in places]


def _found(name: str, store: Store | None) -> list[str]:
    """The files that a path or pattern means, in the order of their names."""
    if store is not None:
        return store.found(name)
    if os.path.exists(name):
        return [name]
    if not glob.has_magic(name):
        raise unreadable(name, FileNotFoundError())
    found = sorted(glob.glob(name, recursive=True))
    if not found:
        raise DataError(f"No file fits the pattern {name!r}. Relative paths start at {os.getcwd()}.", path=name)
    return found


def _paths_kind(names: list[str], filesystem: Any) -> tuple[str, list[str], Store | None]:
    store, names = _located(names, filesystem)
    paths = [path for name in names for path in _found(name, store)]
    kinds = [_kind_of_file(path, store) for path in paths]
    for path, kind in zip(paths, kinds, strict=True):
        if kind != kinds[0]:
            raise DataError(
                f"All files must be of one kind: {paths[0]} is {_WORDS[kinds[0]]}, {path} is {_WORDS[kind]}. Open "
                "them one by one, or convert each.",
                path=path,
            )
    if store is not None and "filesystem" not in _TAKES[kinds[0]]:
        raise DataError(
            f"{paths[0]} is {_WORDS[kinds[0]]}, which is read from local disks only. From other file systems "
            f"({store.name}) come text, Parquet and folders written by maxmargin.data.convert. Copy it to a disk.",
            path=paths[0],
        )
    return kinds[0], paths, store


def _kind_of_file(name: str, store: Store | None) -> str:
    path = Path(name)
    if path.is_dir() if store is None else store.is_folder(name):
        return "folder"
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    if suffixes and suffixes[-1] in _KINDS:
        return _KINDS[suffixes[-1]]
    if suffixes and suffixes[-1] in _OTHERS:
        raise DataError(
            f"{name} is {_OTHERS[suffixes[-1]]}, which is not read. Read it with another library, such as pandas, and "
            "open the table: maxmargin.data.open(X, labels=y).",
            path=name,
        )
    if suffixes and suffixes[-1] in (".csv", ".tsv"):
        raise DataError(
            f"{name} is a table in text, which is not read. Turn it into Parquet first: pyarrow.parquet.write_table("
            f"pyarrow.csv.read_csv({path.name!r}), '{path.stem}.parquet').",
            path=name,
        )
    return _kind_of_bytes(name, store)


def _kind_of_bytes(name: str, store: Store | None) -> str:
    """Where the suffix says nothing the first bytes do."""
    try:
        if store is not None:
            head = store.read(name, 512)
        else:
            with open(name, "rb") as file:
                head = file.read(512)
    except OSError as error:
        raise (unreadable(name, error) if store is None else store.unreadable(name, error)) from error
    for magic, kind in (
        (b"PAR1", "parquet"),
        (b"ARROW1", "arrow"),
        (b"\x93NUMPY", "npy"),
        (b"PK\x03\x04", "npz"),
        (b"\x1f\x8b", "svmlight"),
        (b"\x28\xb5\x2f\xfd", "svmlight"),
    ):
        if head.startswith(magic):
            return kind
    if b"\x00" in head:
        known = ", ".join([*_KINDS, "with .gz or .zst for text"])
        raise DataError(
            f"{name} is of no kind that can be read: its name has none of {known}, and it does not begin like one.",
            path=name,
        )
    return "svmlight"


def _options(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    for name, value in given.items():
        if name == "n_jobs":
            continue  # a wish, not a property of the data
        if name not in _TAKES[kind] and value is not None and not (name in _DEFAULTS and value == _DEFAULTS[name]):
            fitting = sorted(other for other, takes in _TAKES.items() if name in takes)
            words = " and ".join(_WORDS.get(other, other) for other in fitting)
            hint = (
                "The chunks of shards are fixed when they are written: convert(batch_bytes=...)."
                if name == "chunk_rows"
                else f"It is for {words}."
            )
            raise DataError(f"{name}= means nothing for {_WORDS.get(kind, kind)}. {hint}")
    return {name: value for name, value in given.items() if name in _TAKES[kind]}


def _open_svmlight(paths: Any, options: dict[str, Any]) -> Any:
    from .svmlight import SvmlightSource

    return SvmlightSource(paths, **{name: value for name, value in options.items() if value is not None})


def _open_parquet(paths: Any, options: dict[str, Any]) -> Any:
    from .parquet import ParquetSource

    return ParquetSource(paths, **options)


def _open_arrow(paths: Any, options: dict[str, Any]) -> Any:
    from .shards import Shards

    return Shards(paths, **options)


def _open_folders(paths: Any, options: dict[str, Any]) -> Any:
    from .shards import Shards

    whole_groups = options.pop("whole_groups")
    return _joined([Shards(path, **options) for path in paths], whole_groups)


def _open_files(opener: Callable[..., Any], paths: list[str], options: dict[str, Any]) -> Any:
    from .memory import load_column, numbered

    columns = {"y": options.pop("labels"), "group": options.pop("groups"), "weight": options.pop("weights")}
    if len(paths) == 1:
        return opener(paths[0], **{name: load_column(c) for name, c in columns.items()}, **options)
    parts: list[Any] = []
    names: dict[Any, int] = {}
    for k, path in enumerate(paths):
        own = {}
        for name, column in columns.items():
            if column is not None and (not isinstance(column, list | tuple) or len(column) != len(paths)):
                raise DataError(f"{len(paths)} files need labels, groups and weights as lists of {len(paths)}.")
            own[name] = load_column(column[k]) if column is not None else None
        own["group"] = numbered(own["group"], names)
        parts.append(opener(path, **own, **options))
    return _joined(parts, options["whole_groups"])


def _open_npy(paths: Any, options: dict[str, Any]) -> Any:
    from .memory import open_npy

    return _open_files(open_npy, paths, options)


def _open_npz(paths: Any, options: dict[str, Any]) -> Any:
    from .memory import open_npz

    return _open_files(open_npz, paths, options)


def _open_arrays(x: Any, options: dict[str, Any]) -> Any:
    from .memory import Arrays, load_column

    y, group, weight = (load_column(options.pop(name)) for name in ("labels", "groups", "weights"))
    return Arrays(x, y, group, weight, **options)


def _open_pairs(pairs: Any, options: dict[str, Any]) -> Any:
    from .examples import pairs_of

    return pairs_of(pairs, **options)


def _joined(parts: list[Any], whole_groups: bool) -> Any:
    from .joined import Joined

    return parts[0] if len(parts) == 1 else Joined(parts, whole_groups)


_OPENERS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "svmlight": _open_svmlight,
    "parquet": _open_parquet,
    "arrow": _open_arrow,
    "folder": _open_folders,
    "npy": _open_npy,
    "npz": _open_npz,
    "arrays": _open_arrays,
    "pairs": _open_pairs,
    "source": lambda source, options: source,
}

"""Models in one file: arrays as safetensors, everything else as JSON in its header. Loading never runs code.

The header names the format, its version and the kind of estimator, and has a checksum over all bytes of the file. A
reader refuses what it does not know: another format, another version, an unknown estimator, parameter or regularizer;
and what no ``fit`` could have left: every estimator says what its attributes look like (``schema``). Nothing is
allocated because a number in the file says so.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import os
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from . import extensions, latent, losses, models, regularizers, schema
from .files import check_writable, replacing
from .packed_answers import packed, unpacked
from .problem import Certificate, Planes, Record
from .validation import shown

FORMAT = "maxmargin"
VERSION = 2
_CHECKSUM = re.compile(rb'"checksum":"([0-9a-f]{32})"')
_NO_CHECKSUM = "0" * 32  # stands in its place while it is computed
_BLOCK = 1 << 20

# Arguments that are kept as an attribute of another name.
_KEPT_AS = {("GroupNorm", "weights"): "strength", ("Bags", "states"): "state_kind"}
_WITH_COST = (
    "Assignment",
    "Chain",
    "DependencyTree",
    "Graph",
    "LatentGraph",
    "Multilabel",
    "Segmentation2D",
    "SemiMarkov",
)
_KEPT_AS |= {(model, "loss"): "cost" for model in _WITH_COST}


class ModelFileError(ValueError):
    """A file that is no model of this release: damaged, of another program, or of another version."""


class _Kind(NamedTuple):
    """Estimators that may stand in a file: what they consist of besides their parameters, and what they end with."""

    cls: type
    fitted: dict[str, str]
    record: type | None
    certified: bool


class _Part(NamedTuple):
    """Other objects that estimators consist of: what they are made with, what they have learned since, and the keys of
    a file that have the name of their class and what they consist of."""

    cls: type
    arguments: dict[str, str]
    learned: dict[str, str]
    key: str
    inside: str


_KNOWN: dict[str, _Kind] = {}
_PARTS: dict[str, _Part] = {}
_ALWAYS = {"n_passes_": "int"}
_IF_PRESENT = {
    "n_features_in_": "d", "feature_names_in_": "names[d]", "origin_": "dict", "_positive_at": "int<2",
    "temperature_": "float", "label_offsets_": "float[k]",
    "_margins": "float[2, z]", "_frozen": "dict",
}  # fmt: skip

_FOR_FITTING = ("solver", "bound", "init")
_THEIRS = "a model of the user's"

T = TypeVar("T", bound=type)


def storable(*, record: type | None = Record, certified: bool = True, **fitted: str) -> Callable[[T], T]:
    """Class decorator: estimators of this class can be saved; ``fitted`` are the attributes that ``fit`` sets, each
    with what it looks like (see ``schema``).

    Their history consists of ``record`` objects, unless that is None, and they end with a certificate unless they are
    not ``certified``. Attributes may be estimators themselves.
    """

    def register(cls: T) -> T:
        _KNOWN[cls.__name__] = _Kind(cls, fitted | (_ALWAYS if certified else {}), record, certified)
        return cls

    return register


def storable_part(*arguments: str, key: str = "part", **specified: str) -> Callable[[T], T]:
    """Class decorator: objects of this class can stand in a file as a part of an estimator.

    They are made from ``arguments``, which are attributes of the same names too; all that the class takes, if none are
    named. Those that the class itself does not check are ``specified`` (see ``schema``); so is what is no argument, but
    learned: it is set as far as they had it.
    """

    def register(cls: T) -> T:
        taken = inspect.signature(cls).parameters
        named = arguments or (() if specified else taken)
        made_from = dict.fromkeys(named, "any") | {k: v for k, v in specified.items() if k in taken}
        learned = {k: v for k, v in specified.items() if k not in taken}
        _PARTS[cls.__name__] = _Part(cls, made_from, learned, key, "content" if key == "part" else "arguments")
        return cls

    return register


# A model of any other class is the user's: the file says so, and ``load`` must be given it. Choosers with a function of
# the user's cannot be kept.
_CORE: dict[str, tuple[type, ...]] = {
    "regularizer": (regularizers.L2, regularizers.GaussianPrior, regularizers.Bounded, regularizers.GroupNorm),
    "loss": (*losses.MARGIN.values(), *losses.DISTANCE.values()),
    "model": (
        models.Grammar,
        models.Multiclass, models.Assignment, models.Chain, models.DependencyTree, models.SemiMarkov, models.Graph,
        models.Segmentation2D, models.LatentGraph, models.Multilabel, models.AveragePrecision, models.NDCG,
        models.SetMeasure,
        models.Bags, models.MaxMin, models.Ramp,
    ),
    "chooser": (
        latent.CCCP, latent.RandomWalk, latent.RandomSubset, latent.MaximumEntropy, latent.MultiFold, latent.Biased,
        latent.Coherence,
    ),
}  # fmt: skip
for _key, _classes in _CORE.items():
    for _cls in _classes:
        storable_part(key=_key)(_cls)


def save(estimator: Any, path: str | Path) -> None:
    """Write a fitted estimator to ``path``."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    name = type(estimator).__name__
    if name not in _KNOWN:
        raise ValueError(f"Do not know how to save a {name}. Known: {sorted(_KNOWN)}.")
    _check_path(path)
    check_writable(path)
    arrays: dict[str, np.ndarray] = {}
    header = json.dumps(_content(estimator, "", arrays))
    json.loads(header, parse_int=_whole)  # complains
    metadata = {
        "format": FORMAT, "version": str(VERSION), "estimator": name, "header": header, "checksum": _NO_CHECKSUM,
    }  # fmt: skip
    with replacing(path) as new:
        try:
            save_file(arrays, str(new), metadata=metadata)
        except SafetensorError as error:
            raise OSError(f"Cannot write {path}: {error}. Check that there is room and permission.") from None
        _, at, found = _checksum(new)
        with open(new, "r+b") as file:
            file.seek(at)  # zeros stand in its place
            file.write(found.encode())


def _checksum(path: str | Path) -> tuple[str, int, str]:
    """The checksum that a file names, where it stands, and what it should be: over all other bytes of the file."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")  # of the header; safetensors has looked at it before
        head = file.read(length)
        named = list(_CHECKSUM.finditer(head))
        if len(named) != 1:
            raise ValueError("it has no checksum")
        begin, end = named[0].span(1)
        found = hashlib.blake2b(length.to_bytes(8, "little"), digest_size=16)
        found.update(head[:begin] + _NO_CHECKSUM.encode() + head[end:])
        while block := file.read(_BLOCK):
            found.update(block)
    return head[begin:end].decode(), 8 + begin, found.hexdigest()


def _content(estimator: Any, where: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """All of a fitted estimator, as JSON and arrays."""
    kind = _KNOWN[type(estimator).__name__]
    params = {k: _storable(estimator, k, v) for k, v in estimator.get_params(deep=False).items()}
    content = {
        "params": encode(params, f"{where}params", arrays),
        "fitted": encode(_fitted(estimator), f"{where}fitted", arrays),
    }
    if kind.record is not None:
        content["history"] = [list(vars(record).values()) for record in estimator.history_]
    if kind.certified:
        certificate = estimator.certificate_
        content["certificate"] = list(vars(certificate).values())
    try:
        _check(estimator)
    except (TypeError, ValueError) as error:
        name = type(estimator).__name__
        raise ValueError(f"This {name} is not saved, because no load would take it: {error}") from error
    return content


def _fitted(estimator: object) -> dict[str, Any]:
    """What ``fit`` has set."""
    present = [k for k in _IF_PRESENT if hasattr(estimator, k)]
    return {k: getattr(estimator, k) for k in [*_KNOWN[type(estimator).__name__].fitted, *present]}


def _storable(estimator: object, name: str, value: object) -> Any:
    """A parameter as the file can hold it. Objects that are needed for fitting only are left at their defaults."""
    if name == "random_state":  # a generator's position is no part of the model
        return value if isinstance(value, int | np.integer) and value < 2**63 else None
    if name == "cache":  # a folder on this machine is nobody else's
        return None
    if name not in _FOR_FITTING:
        return value
    try:
        encode(value, "", {})
    except ValueError:
        default = inspect.signature(type(estimator)).parameters[name].default
        if name != "solver":  # which decides how long a fit takes, not where it ends
            warnings.warn(
                f"{name}={value!r} cannot be kept in a file; the saved model predicts as this one does, but another "
                f"fit of it would use {name}={default!r}.",
                stacklevel=4,
            )
        return default
    return value


def load(path: str | Path, *, model: object = None) -> Any:
    """Read an estimator that ``save`` wrote; ``ModelFileError`` if the file is no such file, or a damaged one.

    Nothing in the file is executed: it holds numbers and text, and names only what this version knows. A model of
    your own is code and is therefore not in the file: hand it over as ``model`` (with its sizes set, where it
    has any).
    """
    metadata, arrays = _read(path)
    name = metadata.get("estimator", "")
    if not _is_known(name, _KNOWN):
        raise ModelFileError(f"{path} holds a {name!r}, which this release does not know. Known: {sorted(_KNOWN)}.")
    try:
        estimator = _from_content(name, json.loads(metadata["header"], parse_int=_whole), arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{path} {error}") from None
    except Exception as error:  # whatever a parameter, model or regularizer has to say of what it was made with
        raise ModelFileError(
            f"{path} is damaged: its header cannot be read ({type(error).__name__}: {error})."
        ) from error
    if "model_" in _KNOWN[name].fitted:
        _hand_over(estimator, model, path)
    elif model is not None:
        raise ValueError(f"{path} holds a {name}, which takes no model.")
    return estimator


def _is_known(name: Any, registry: dict[str, Any]) -> bool:
    """Whether objects of this name may stand in a file. Extensions register theirs when they are imported."""
    if name not in registry:
        extensions.find(name)
    return name in registry


def _whole(digits: str) -> int:
    """A whole number that compiled code can read."""
    if not -(2**63) <= int(digits) < 2**63:
        raise ValueError(f"Whole numbers in model files have 64 bits at most, got {digits[:80]}.")
    return int(digits)


def _from_content(name: str, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """What ``_content`` was given."""
    kind = _KNOWN[name]
    params, fitted = dict(decode(content["params"], arrays)), dict(decode(content["fitted"], arrays))
    needed = set(kind.fitted)
    if needed - set(fitted):
        raise ModelFileError(f"is damaged: it lacks {', '.join(sorted(needed - set(fitted)))}.")
    known = kind.cls._get_param_names()  # type: ignore[attr-defined]
    unknown = sorted((set(params) - set(known)) | (set(fitted) - needed - set(_IF_PRESENT)))
    if unknown:
        raise ModelFileError(f"has entries that this release's {name} does not know: {unknown}.")
    estimator = kind.cls(**params)
    for key, value in fitted.items():
        setattr(estimator, key, value)
    if kind.record is not None:
        estimator.history_ = [_record(kind.record, values) for values in content["history"]]
    if kind.certified:
        estimator.certificate_ = _record(Certificate, content["certificate"])
    _check(estimator)
    return estimator


def _check(estimator: Any) -> None:
    """Complain of an estimator that no ``fit`` could have left."""
    name, values = type(estimator).__name__, _fitted(estimator)
    schema.check(name, values, {**_IF_PRESENT, **_KNOWN[name].fitted})
    estimator._check_settings()
    model = values.get("model_")
    if model == _THEIRS:  # who hands it over is asked for its sizes
        return
    if model is not None and int(model.n_weights) != estimator.coef_.size:
        raise ValueError(f"its model has {model.n_weights} weights, the file {estimator.coef_.size}")
    if hasattr(estimator, "_check_fitted_sizes"):
        estimator._check_fitted_sizes()


def _record(cls: type, values: list[Any]) -> Any:
    """One line of the history, or the certificate, of the types that it declares."""
    types = {"int": int | float, "float": int | float, "bool": bool, "str": str}
    fields = dataclasses.fields(cls)
    if not sum(field.default is dataclasses.MISSING for field in fields) <= len(values) <= len(fields):
        raise ValueError(f"{len(values)} values are no {cls.__name__}")
    for field, value in zip(fields, values, strict=False):
        if not isinstance(value, types[field.type]) or (isinstance(value, bool) and field.type != "bool"):  # type: ignore[index]
            raise TypeError(f"{field.name} of a {cls.__name__} is {shown(value)}")
    return cls(*values)


def _hand_over(estimator: Any, model: Any, path: str | Path) -> None:
    """The user's model in the place that the file left open for it."""
    if estimator.model_ != _THEIRS:
        if model is not None:
            raise ValueError(f"{path} brings its own model, a {type(estimator.model_).__name__}; give none.")
        return
    if model is None:
        raise ValueError(f"{path} was trained with a model of your own: load it with mm.load(path, model=...).")
    if int(model.n_weights) != estimator.coef_.size:
        raise ValueError(f"{path} has {estimator.coef_.size} weights, the model given has {model.n_weights}.")
    estimator.model_ = model
    if estimator.model == _THEIRS:
        estimator.model = model


def _check_path(path: Any) -> None:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the name of a file, got {shown(path)}.")


def _read(path: str | Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """The header and the arrays of a file of this format and version."""
    from safetensors import safe_open

    _check_path(path)
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder. Give a model file, which an estimator's save writes.")
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} does not exist. Relative paths start at {os.getcwd()}.")
    try:
        with safe_open(str(path), framework="numpy") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise ModelFileError(
                    f"{path} was not written by maxmargin. Give a model file, which an estimator's save writes."
                )
            if metadata.get("version") != str(VERSION):
                raise ModelFileError(
                    f"{path} has format version {metadata.get('version', '')}, this release of maxmargin reads version "
                    f"{VERSION}. Load it with the release that wrote it, or train again."
                )
            named, _, found = _checksum(path)
            if named != found:
                raise ValueError("its checksum is wrong")
            return metadata, {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (ModelFileError, OSError):
        raise
    except Exception as error:
        raise ModelFileError(
            f"{path} is not a model file, or it is damaged or cut short: {error}. Give a model file, which "
            "an estimator's save writes, or copy it anew."
        ) from None


def encode(value: object, where: str, arrays: dict[str, np.ndarray]) -> Any:
    """JSON for ``value``; numeric arrays go to ``arrays``, not copied, and leave their name behind."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "fiub":
            arrays[where] = np.asarray(value, value.dtype.newbyteorder("="), order="C")  # keeps 0-d arrays as they are
            return {"array": where}
        items = [encode(v, where, arrays) for v in value.ravel().tolist()]
        _text(items, value.dtype.kind, value.shape)  # complains
        return {"text": items, "dtype": value.dtype.kind, "shape": list(value.shape)}
    if isinstance(value, set | frozenset):
        value = sorted(value, key=repr)
    if isinstance(value, list | tuple):
        items = [encode(v, f"{where}.{i}", arrays) for i, v in enumerate(value)]
        return {"tuple": items} if isinstance(value, tuple) else items
    if isinstance(value, dict):
        return {"pairs": [[encode(k, where, arrays), encode(v, f"{where}.{k}", arrays)] for k, v in value.items()]}
    if isinstance(value, Planes):
        return _encode_planes(value, where, arrays)
    kind = type(value).__name__
    if kind in _KNOWN and type(value) is _KNOWN[kind].cls:
        return {"estimator": kind, "content": _content(value, f"{where}.", arrays)}
    if kind in _PARTS and type(value) is _PARTS[kind].cls:
        return _encode_part(_PARTS[kind], value, where, arrays)
    if hasattr(value, "most_violated"):
        return _THEIRS
    raise ValueError(
        f"Cannot save {where}: a {kind} is neither a number, text, array nor a loss or regularizer of maxmargin. "
        "Only these go into files."
    )


def decode(value: object, arrays: dict[str, np.ndarray]) -> Any:
    """What ``encode`` was given."""
    if isinstance(value, list):
        return [decode(v, arrays) for v in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "text" in value:
        return _text([decode(v, arrays) for v in value["text"]], value["dtype"], value["shape"])
    if "tuple" in value:
        return tuple(decode(v, arrays) for v in value["tuple"])
    if "pairs" in value:
        return {decode(k, arrays): decode(v, arrays) for k, v in value["pairs"]}
    if "planes" in value:
        return _decode_planes(decode(value["planes"], arrays))
    if _is_known(value.get("estimator"), _KNOWN):
        estimator = _from_content(value["estimator"], value["content"], arrays)
        if vars(estimator).get("model_") == _THEIRS:  # nobody can hand over the model of one inside of another
            raise ModelFileError(f"is damaged: its {value['estimator']} has no model.")
        return estimator
    key = next((key for key in ("part", *_CORE) if key in value), "")
    if _is_known(value.get(key), _PARTS) and _PARTS[value[key]].key == key:
        part = _PARTS[value[key]]
        return _part(part, {k: decode(v, arrays) for k, v in value[part.inside].items()})
    raise TypeError(f"unknown entry {next((v for v in value.values() if isinstance(v, str)), value)!r}")


def _text(items: list[Any], kind: str, shape: Any) -> np.ndarray:
    """An array of text, or of other objects. Text has as much room for each entry as the longest one takes."""
    longest = max((len(text) for text in items if isinstance(text, str)), default=0)
    known = kind == "O" or (kind == "U" and all(isinstance(text, str) for text in items))
    if not known or (kind == "U" and len(items) * longest > _BLOCK + 64 * sum(map(len, items))):
        raise ValueError(f"Arrays in files are of numbers or of text of not too different lengths, got {shown(items)}.")
    array = np.empty(len(items), f"U{max(longest, 1)}" if kind == "U" else object)
    array[:] = items  # one by one: tuples stay tuples
    return array.reshape(shape)


def _encode_part(kind: _Part, value: Any, where: str, arrays: dict[str, np.ndarray]) -> Any:
    name = kind.cls.__name__
    held = {k: getattr(value, _KEPT_AS.get((name, k), k)) for k in kind.arguments}
    held |= {k: getattr(value, k) for k in kind.learned if hasattr(value, k)}
    content = {k: encode(v, f"{where}.{k}", arrays) for k, v in held.items()}
    if _THEIRS in content.values():  # what is built around a model of the user's cannot be stored without it
        return _THEIRS
    schema.check(name, held, kind.arguments | kind.learned)
    return {kind.key: name, kind.inside: content}


def _part(kind: _Part, content: dict[str, Any]) -> Any:
    name = kind.cls.__name__
    schema.check(name, content, kind.arguments | kind.learned)
    missing = set(kind.arguments) - set(content) if kind.key == "part" else set()
    wrong = missing | (set(content) - set(kind.arguments) - set(kind.learned))
    if wrong:
        raise TypeError(f"entries of {name} are missing or not known: {sorted(wrong)}")
    made = kind.cls(**{k: v for k, v in content.items() if k in kind.arguments})
    for k in set(content) & set(kind.learned):
        setattr(made, k, content[k])
    return made


def _encode_planes(planes: Planes, where: str, arrays: dict[str, np.ndarray]) -> Any:
    """Answers that are whole numbers, or arrays, tuples or lists of them, are kept in one array; pairs of such, the
    answers of models with latent variables, in two; others one by one, if they are made of numbers, text and arrays.

    Without its answers an estimator still predicts and still has its certificate, but cannot prove it again.
    """
    parts: dict[str, Any] = {"example": planes.example, "alpha": planes.alpha}
    if len(planes):
        labels = packed(list(planes.labels))
        if labels is None:
            try:
                encode(list(planes.labels), "", {})
            except ValueError:
                warnings.warn(
                    f"The answers behind {where} are objects of your own, a {type(planes.labels[0]).__name__} for one, "
                    "and are left out: what is written predicts, but its certificate cannot be proved again, nor "
                    "training go on from it.",
                    stacklevel=2,
                )
                parts = {"example": planes.example[:0], "alpha": planes.alpha[:0]}
            labels = {"each": list(planes.labels)[: parts["alpha"].size]}
        parts |= {"labels": labels}
    return {"planes": encode(parts, where, arrays)}


def _decode_planes(parts: dict[str, Any]) -> Planes:
    schema.check("Planes", parts, {"example": "int[n]", "alpha": "float[n]"})
    labels = unpacked(parts["labels"]) if "labels" in parts else []
    if len(labels) != parts["alpha"].size or (labels and int(parts["example"].min()) < 0):
        raise ValueError(f"{len(labels)} answers have {parts['alpha'].size} dual variables")
    return Planes(parts["example"], labels, parts["alpha"])

"""Models in one file: arrays as safetensors, everything else as JSON in its header. Loading never runs code.

The header names the format, its version and the kind of estimator. A reader refuses what it does not know:
another format, a newer version, an unknown estimator, parameter or regularizer.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from . import regularizers
from .problem import Certificate, Record

FORMAT = "maxmargin"
VERSION = 1

# Constructor arguments of every regularizer that may stand in a file, and the attribute each is read from.
_REGULARIZERS: dict[str, dict[str, str]] = {
    "L2": {},
    "GaussianPrior": {"mean": "mean", "covariance": "covariance"},
    "Bounded": {"lower": "lower", "indices": "indices", "base": "base"},
    "GroupNorm": {"groups": "groups", "weights": "strength", "l2": "l2", "centre": "centre"},
}

# Estimators that may stand in a file: their class, and what they consist of besides their parameters.
_KNOWN: dict[str, tuple[type, tuple[str, ...]]] = {}
_ALWAYS = ("n_features_in_", "n_passes_")

T = TypeVar("T", bound=type)


def storable(*fitted: str) -> Callable[[T], T]:
    """Class decorator: estimators of this class can be saved; ``fitted`` names the attributes that ``fit`` sets."""

    def register(cls: T) -> T:
        _KNOWN[cls.__name__] = (cls, fitted)
        return cls

    return register


def save(estimator: Any, path: str | Path) -> None:
    """Write a fitted estimator to ``path``."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    name = type(estimator).__name__
    if name not in _KNOWN:
        raise ValueError(f"Do not know how to save a {name}. Known: {sorted(_KNOWN)}.")
    arrays: dict[str, np.ndarray] = {}
    params = dict(estimator.get_params(deep=False))
    if not (params.get("random_state") is None or isinstance(params["random_state"], int | np.integer)):
        params["random_state"] = None  # a generator's position is no part of the model
    if not isinstance(params["solver"], str):
        params["solver"] = "auto"  # likewise a solver object: it is needed for fitting only
    fitted = {k: getattr(estimator, k) for k in (*_KNOWN[name][1], *_ALWAYS)}
    if hasattr(estimator, "feature_names_in_"):
        fitted["feature_names_in_"] = estimator.feature_names_in_
    certificate = estimator.certificate_
    header = {
        "params": _encode(params, "params", arrays),
        "fitted": _encode(fitted, "fitted", arrays),
        "certificate": [certificate.lower, certificate.upper, certificate.exact],
        "history": [list(vars(record).values()) for record in estimator.history_],
    }
    metadata = {"format": FORMAT, "version": str(VERSION), "estimator": name, "header": json.dumps(header)}
    try:
        save_file(arrays, str(path), metadata=metadata)
    except SafetensorError as error:
        raise OSError(f"Cannot write {path}: {error}. Check that the folder exists and may be written to.") from None


def load(path: str | Path) -> Any:
    """Read an estimator that ``save`` wrote.

    Nothing in the file is executed: it holds numbers and text, and names only what this version knows.
    """
    metadata, arrays = _read(path)
    name = metadata.get("estimator", "")
    if name not in _KNOWN:
        raise ValueError(f"{path} holds a {name!r}, which this release does not know. Known: {sorted(_KNOWN)}.")
    cls, attributes = _KNOWN[name]
    try:
        header = json.loads(metadata["header"])
        params, fitted = dict(_decode(header["params"], arrays)), dict(_decode(header["fitted"], arrays))
        certificate = Certificate(*header["certificate"])
        history = [Record(*values) for values in header["history"]]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: its header cannot be read ({error}).") from None
    needed = {*attributes, *_ALWAYS}
    if needed - set(fitted):
        raise ValueError(f"{path} is damaged: it lacks {', '.join(sorted(needed - set(fitted)))}.")
    known = cls._get_param_names()  # type: ignore[attr-defined]
    unknown = sorted((set(params) - set(known)) | (set(fitted) - needed - {"feature_names_in_"}))
    if unknown:
        raise ValueError(f"{path} has entries that this release's {name} does not know: {unknown}.")
    estimator = cls(**params)
    for key, value in fitted.items():
        setattr(estimator, key, value)
    estimator.certificate_, estimator.history_ = certificate, history
    return estimator


def _read(path: str | Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """The header and the arrays of a file of this format and version."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path} is not a model file, or it is damaged ({error}).") from None
    if metadata.get("format") != FORMAT:
        raise ValueError(f"{path} was not written by maxmargin.")
    version = metadata.get("version", "")
    if version != str(VERSION):
        raise ValueError(
            f"{path} has format version {version}, this release of maxmargin reads version {VERSION}. "
            "Load it with the release that wrote it, or train again."
        )
    return metadata, arrays


def _encode(value: Any, where: str, arrays: dict[str, np.ndarray]) -> Any:
    """JSON for ``value``; numeric arrays go to ``arrays`` and leave their name behind."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "fiub":
            arrays[where] = np.array(value, order="C")  # keeps 0-d arrays as they are
            return {"array": where}
        return {"text": [_encode(v, where, arrays) for v in value.tolist()], "dtype": value.dtype.str}
    if isinstance(value, list | tuple):
        return [_encode(v, f"{where}.{i}", arrays) for i, v in enumerate(value)]
    if isinstance(value, dict):
        return {"pairs": [[_encode(k, where, arrays), _encode(v, f"{where}.{k}", arrays)] for k, v in value.items()]}
    kind = type(value).__name__
    if kind in _REGULARIZERS and type(value) is getattr(regularizers, kind):
        parts = {k: _encode(getattr(value, a), f"{where}.{k}", arrays) for k, a in _REGULARIZERS[kind].items()}
        return {"regularizer": kind, "arguments": parts}
    raise ValueError(f"Cannot save {where}: a {kind} is neither a number, text, array nor a regularizer of maxmargin.")


def _decode(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, list):
        return [_decode(v, arrays) for v in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "text" in value:
        dtype = np.dtype(value["dtype"])
        if dtype.kind not in "OU":
            raise TypeError(f"text of type {dtype}")
        return np.array(value["text"], dtype=dtype)
    if "pairs" in value:
        return {_decode(k, arrays): _decode(v, arrays) for k, v in value["pairs"]}
    kind = value.get("regularizer")
    if kind not in _REGULARIZERS:
        raise TypeError(f"unknown entry {kind!r}")
    if set(value["arguments"]) != set(_REGULARIZERS[kind]):
        raise TypeError(f"unknown arguments of {kind}")
    return getattr(regularizers, kind)(**{k: _decode(v, arrays) for k, v in value["arguments"].items()})

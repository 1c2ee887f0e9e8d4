"""Sequences and their labels, from what users give to what a chain model reads: a survey, encoding, checks.

Data frames, columns and arrays of words become lists of tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from dataclasses import replace
from itertools import pairwise
from numbers import Real
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from ..data.attributes import Attributes
from ..data.named_tokens import NamedTokens
from ..data.sequences import Sequences
from ..validation import shown
from . import inputs
from .holders import InMemory
from .structured import Examples, check_inputs, check_pairs, count, listed
from .tables import Listed, is_frame, records


class SequenceSurvey:
    """What a model must know of sequences that are shown a chunk at a time: labels, features, pairs if asked for."""

    def __init__(
        self,
        names: Sequence[Any] | None = None,
        n_features: int | None = None,
        *,
        pairs: bool = False,
        empty: bool = True,
        counts: bool = False,
    ) -> None:
        self.labels: set[Any] = set()
        self.pairs: set[tuple[Any, Any]] = set()
        self.attributes = None if names is None else Attributes(names)
        self.n_features = n_features
        self.encoded: Sequences | None = None
        """The last that were looked at, in the form the model reads."""
        self._count_pairs, self._may_be_empty = pairs, empty
        self._counts = np.zeros(0, np.int64) if counts else None  # of the tokens that have each feature

    def add(self, X: Examples, Y: Examples) -> None:
        numeric = is_numeric(X) if first_tokens(X) is not None else self.attributes is None and bool(self.n_features)
        if self.n_features is not None and numeric != (self.attributes is None):
            raise ValueError("These sequences have the other kind of features than those before: names, or matrices.")
        if not numeric and self.attributes is None:
            self.attributes = Attributes()
        self.encoded = matrices(X, self.n_features) if self.attributes is None else self.attributes.learn(X)
        self.n_features = self.encoded.n_features
        if self._counts is not None:
            more = np.bincount(self.encoded.indices, minlength=self.n_features)
            more[: self._counts.size] += self._counts
            self._counts = more
        if not self._may_be_empty:
            refuse_empty(self.encoded)
        check_lengths(self.encoded, Y)
        self.labels |= label_set(Y)
        if self._count_pairs:
            self.pairs.update(pair for y in Y for pair in pairwise(plain(y)))

    def leave_out_rare(self, least: int) -> None:
        """Keep the named features that at least so many tokens have."""
        if self.attributes is None:
            raise ValueError(f"min_count={least} is for named features, and these are matrices: leave columns out.")
        kept = np.flatnonzero(cast(np.ndarray, self._counts) >= least)
        if not kept.size:
            raise ValueError(f"None of the {self.n_features} features is in {least} tokens. Lower min_count={least}.")
        names = list(self.attributes.names)
        self.attributes, self.n_features = Attributes(names[j] for j in kept.tolist()), kept.size
        self.encoded = cast(Sequences, self.encoded).only(kept)


def as_pairs(X: Examples | Sequences, Y: Examples | None) -> tuple[Examples, Examples]:
    X, Y = check_pairs(as_sequences(X), Y)
    return X, [listed(y) for y in Y] if isinstance(Y, list | tuple) else Y


def encoded_pairs(
    attributes: Attributes | None, n_features: int | None, classes: np.ndarray, features: Any, X: Examples, Y: Examples
) -> tuple[Sequences, list[np.ndarray]]:
    """Sequences and labels in the form the model reads, once all names and labels are known."""
    X = as_sequences(X, features)
    encoded = matrices(X, n_features) if attributes is None else attributes.encode(X)
    refuse_empty(encoded)
    check_lengths(encoded, Y)
    return encoded, numbered(Y, classes)


def learned_names(attributes: Attributes | None) -> dict[str, Any]:
    """The attributes of the estimator that remember named features."""
    return {"_attributes": attributes, "_names": None if attributes is None else list(attributes.names)}


def label_numbers(classes: np.ndarray) -> dict[Any, int]:
    return {label: k for k, label in enumerate(classes.tolist())}


def numbered(Y: Examples, classes: np.ndarray) -> list[np.ndarray]:
    """Labels as numbers."""
    number = label_numbers(classes)
    numbered = []
    for i, y in enumerate(Y):
        try:
            numbered.append(np.fromiter((number[label] for label in plain(y)), np.int32, len(y)))
        except (KeyError, TypeError):
            t = next(t for t, label in enumerate(plain(y)) if not is_known(label, number))
            raise ValueError(
                f"Sequence {i} has the label {shown(plain(y)[t])} at token {t}, which is not among the labels "
                f"{classes.tolist()[:20]}. Leave the sequence out, or train with that label, too."
            ) from None
    return numbered


def is_numeric(X: Examples) -> bool:
    """Whether sequences are matrices of numbers rather than lists of tokens with named features."""
    if isinstance(X, Sequences | NamedTokens):
        return isinstance(X, Sequences)
    if hasattr(X, "dtype") and X.dtype != object:
        return True
    first = first_tokens(X)
    if sp.issparse(first) or hasattr(first, "dtype"):
        return True
    if not isinstance(first, list | tuple) or not first:
        return False
    token = first[0]
    if hasattr(token, "dtype") and not isinstance(token, str):
        return True
    return isinstance(token, list | tuple) and len(token) > 0 and all(isinstance(v, Real) for v in token)


def first_tokens(X: Examples) -> Any:
    """The first sequence that has tokens; None if there is none."""
    return next((x for x in X if not _is_empty(x)), None)


def _is_empty(x: Any) -> bool:
    if hasattr(x, "shape"):
        return len(x.shape) > 0 and x.shape[0] == 0
    return isinstance(x, Sized) and not isinstance(x, str) and len(x) == 0


def matrices(X: Examples, n_features: int | None = None) -> Sequences:
    """Matrices of tokens by features as sequences; some may have no tokens, but not all if the width is not known."""
    if isinstance(X, Sequences) or not isinstance(X, list | tuple):
        return Sequences.of(X, n_features)
    place = np.array([i for i, x in enumerate(X) if not _is_empty(x)], np.int64)
    if place.size == len(X):
        return Sequences.of(X, n_features)
    if not place.size and n_features is not None:
        nothing = np.zeros(1, np.int64)
        return Sequences(nothing, np.empty(0, np.int32), np.empty(0), np.zeros(len(X) + 1, np.int64), n_features)
    found = Sequences.of([X[i] for i in place.tolist()], n_features)
    length = np.zeros(len(X), np.int64)
    length[place] = np.diff(found.offsets)
    return replace(found, offsets=np.concatenate([[0], np.cumsum(length)]))


def without_empty(X: Sequences) -> tuple[Sequences, np.ndarray]:
    """The sequences that have tokens, which is what models read, and their places among all."""
    place = np.flatnonzero(np.diff(X.offsets))
    return (X if place.size == len(X) else replace(X, offsets=np.unique(X.offsets))), place


def refuse_empty(X: Sequences) -> None:
    """Models do not read empty sequences, and a source is read as it is."""
    empty = np.flatnonzero(np.diff(X.offsets) == 0)
    if empty.size:
        raise ValueError(f"Sequence {empty[0]} is empty. A source must leave out sequences without tokens.")


def trained_on(source: InMemory, X: Sequences, labels: list[np.ndarray]) -> InMemory:
    """Examples in memory in the form that a model reads; empty sequences, which teach nothing, are left out."""
    X, place = without_empty(X)
    if place.size == len(labels):
        return source.replaced(X, labels)
    return source.replaced(X, [labels[i] for i in place.tolist()], place)


def plain(y: object) -> Any:
    """Labels as Python objects."""
    return y.tolist() if hasattr(y, "tolist") else y


def is_known(label: object, numbers: dict[Any, int]) -> bool:
    try:
        return label in numbers
    except TypeError:
        return False


def check_lengths(X: Sequences, Y: Examples) -> None:
    for i, y in enumerate(Y):
        if not isinstance(y, Sized) or isinstance(y, str | dict) or not getattr(y, "ndim", 1):
            raise ValueError(f"Y[{i}] must be a list of labels, one per token, got {type(y).__name__}: {shown(y)}.")
    length = np.fromiter(map(len, Y), np.int64, len(Y))
    wrong = np.flatnonzero(length != np.diff(X.offsets))
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(f"Sequence {i} has {np.diff(X.offsets)[i]} tokens, but {length[i]} labels. Give one for each.")


def label_set(Y: Examples) -> set[Any]:
    found: set[Any] = set()
    for i, y in enumerate(Y):
        try:
            found.update(plain(y))
        except TypeError:
            t = next(t for t, label in enumerate(plain(y)) if not _is_hashable(label))
            raise ValueError(
                f"Y[{i}] has {shown(plain(y)[t])} at token {t}, which is no label: it is not hashable. Give one text "
                "or number for each token."
            ) from None
    if None in found:
        i = next(i for i, y in enumerate(Y) if None in plain(y))
        raise ValueError(
            f"Y[{i}] has a label that is None at token {plain(Y[i]).index(None)}. Every token needs a label."
        )
    return found


def named_labels(classes: Any) -> set[Any]:
    """The labels that ``partial_fit`` is told of."""
    if not isinstance(classes, Iterable) or isinstance(classes, str):
        raise ValueError(f"classes must be a list of all labels that may come, got {shown(classes)}.")
    found = list(plain(classes))
    if None in found:
        raise ValueError("classes has None, and every token needs a label. Leave it out.")
    return label_set([found])


def _is_hashable(label: object) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True


def refuse_new_labels(found: set[Any], classes: np.ndarray) -> None:
    """Weights are for the labels that a stream began with."""
    new = found - set(classes.tolist())
    if new:
        raise ValueError(
            f"The label {shown(min(new, key=str))} was neither named nor met in the first call of partial_fit. Give "
            f"that call classes=, all labels that may come; it had {classes.tolist()[:20]}."
        )


def sorted_classes(found: set[Any]) -> np.ndarray:
    inputs.check_nameable(found)
    if len({isinstance(label, str) for label in found}) > 1:
        raise ValueError(
            f"Labels mix text and other kinds: {sorted(map(repr, found))[:10]}. Make them all strings or all numbers."
        )
    if len(found) < 2:
        raise ValueError(f"SequenceSVM needs at least 2 different labels, Y has {sorted(found)!r}.")
    ordered = sorted(found)
    classes = np.array(ordered) if not isinstance(ordered[0], tuple) else np.empty(len(ordered), object)
    classes[:] = ordered  # tuples stay tuples
    return classes


def as_sequences(X: Any, features: Any = None) -> Examples:
    """X with a list of tokens, or a matrix, for each sequence; what is one already is not copied.

    The rows of a frame are tokens: dicts of its columns, as ``Attributes`` reads them. What is not encoded yet passes
    the transformer ``features``, if there is one.
    """
    if features is not None and not isinstance(X, Sequences | NamedTokens):
        sequences = check_inputs(as_sequences(X))
        return _of_transformer(features.transform(sequences), count(sequences), features)
    if is_frame(X) or hasattr(X, "get_group"):
        raise ValueError(
            f"X is one {type(X).__name__}; SequenceSVM needs a list with one frame per sequence, such as "
            '[g[["word", "ending"]] for _, g in df.groupby("sentence")], with the columns of features only; the labels '
            "of each go into Y."
        )
    X = listed(X)
    if isinstance(X, np.ndarray):
        X = X if X.dtype.kind in "biufc" else X.tolist()
    elif isinstance(X, Listed):
        X = X.to_list()
    if not isinstance(X, list | tuple) or all(type(x) is list for x in X):
        return X
    return [_as_tokens(x) for x in X]


def _of_transformer(found: Any, n: int, features: object) -> Examples:
    """What a transformer has made of n sequences."""
    found = listed(found)
    n_found = len(found) if isinstance(found, Sized) and not isinstance(found, str | dict) else None
    if n_found != n:
        made = shown(found) if n_found is None else f"{n_found} sequences"
        raise ValueError(
            f"features must make one sequence of each, with as many tokens: {shown(features)} has made {made} of {n}."
        )
    return cast(Examples, found)


def _as_tokens(x: object) -> Any:
    if is_frame(x):
        return records(x)
    if isinstance(x, np.ndarray):
        return x.tolist() if x.ndim == 1 and x.dtype.kind not in "biufc" else x
    if not isinstance(x, np.ndarray | list) and isinstance(x, Listed):  # a column, of words or of numbers
        values = x.to_list()
        return values if any(isinstance(value, str | dict | list) for value in values) else x
    return listed(x)

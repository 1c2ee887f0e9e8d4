"""Oracles over data that does not fit into memory: one chunk of a source is in view at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from ..data.arrays import as_rows
from ..data.errors import DataError, named_sequence
from ..data.source_checks import chunks_of
from ..problem import Rivals, RowErrors, Rows
from ..protocols import Chunk, Model, Oracle, OracleError, Seekable, Source
from ..validation import is_seekable
from .matrices import as_sparse, stored
from .oracle import check_methods, is_relaxed, oracle_for, refining, sized

Prepare = Callable[[Any, Any], tuple[Any, Any]]


@dataclass(frozen=True)
class SourceLayout:
    """What is known of a source after it has been read once.

    Parameters
    ----------
    offsets : int array (n_chunks + 1,)
        Where each chunk begins, and the number of examples.
    weight : float array (n_examples,) or None
        How much each example counts.
    """

    offsets: np.ndarray
    weight: np.ndarray | None = None

    @property
    def n_examples(self) -> int:
        return int(self.offsets[-1])


def survey(source: Source, add: Callable[[Any, Any], object] | None = None) -> SourceLayout:
    """Read a source once; ``add`` is shown the inputs and answers of every chunk.

    Without ``add`` a source that can be read in any order is only asked for its weights.
    """
    if add is None and is_seekable(source):
        return _asked(cast("Seekable", source))
    sizes: list[int] = []
    weights: list[np.ndarray | None] = []
    for chunk in chunks_of(source):
        with _placed(source, chunk, sum(sizes)):
            if add is not None:
                add(chunk.x, chunk.y)
        sizes.append(len(chunk))
        weights.append(None if chunk.weight is None else np.array(chunk.weight, dtype=np.float64))
    if not sum(sizes):
        raise DataError("The source has no examples.")
    return SourceLayout(np.concatenate([[0], np.cumsum(sizes)]), _joined_weights(weights))


def _asked(source: Seekable) -> SourceLayout:
    offsets = np.asarray(source.offsets)
    if offsets[-1] == 0:
        raise DataError("The source has no examples.")
    first = source.labels(0).weight
    n_chunks = offsets.size - 1
    weights = None if first is None else [np.array(source.labels(i).weight, np.float64) for i in range(n_chunks)]
    return SourceLayout(offsets, None if weights is None else np.concatenate(weights))


def _joined_weights(weights: list[np.ndarray | None]) -> np.ndarray | None:
    known = [w for w in weights if w is not None]
    if not known:
        return None
    if len(known) < len(weights):
        raise DataError(f"{len(known)} of the {len(weights)} chunks of the source have weights; all or none must.")
    return np.concatenate(known)


@contextmanager
def _placed(source: Any, chunk: Chunk, first: int) -> Iterator[None]:
    """Errors about a chunk say where in the source it stands: in which file and line, where the source knows that."""
    where = f"In examples {first} to {first + len(chunk) - 1} of the source, counted from the first of them"
    try:
        yield
    except OracleError as error:
        raise OracleError(f"{where}: {error}", first + error.example if error.example >= 0 else -1) from error
    except ValueError as error:
        found = named_sequence(str(error), first)
        place = source.place(*found[:2]) if found is not None and hasattr(source, "place") else None
        message = f"{where}: {error}" if found is None or place is None else f"{place}: {found[2]}"
        raise DataError(message, row=first) from error


class Sizes:
    """The sizes of a model, from data that is shown to it a chunk at a time.

    A model that takes sizes from data (``sized``) does so from every chunk; where these differ it must say which
    model knows them all (``joined``).
    """

    def __init__(self, model: object) -> None:
        check_methods(model)
        self.model = model
        self.parts: list[Any] = []

    def add(self, X: object, Y: object) -> None:
        part = sized(self.model, X, Y)
        if self.parts and hasattr(part, "joined"):
            part = self.parts.pop().joined([part])
        elif self.parts and part.n_weights != self.parts[0].n_weights:
            raise ValueError(
                f"the model {self.model!r} has {part.n_weights} weights by these examples and "
                f"{self.parts[0].n_weights} by those before. Give it its sizes, or a method joined(models) that says "
                "which model knows them all."
            )
        self.parts = [part]

    def result(self) -> Model:
        return self.parts[0]


class SourcedOracle:
    """A model bound to a source. Only the chunk in view, and what the source makes ready, is in memory.

    Parameters
    ----------
    model : Model
        With its sizes.
    source : Source
    layout : SourceLayout
        As ``survey`` found it.
    prepare : function or None
        Turns inputs and answers of a chunk into what the model reads.
    """

    def __init__(self, model: Model, source: Source, layout: SourceLayout, prepare: Prepare | None = None) -> None:
        self.model = model
        self.source = source
        self.offsets = layout.offsets
        self.n_examples = layout.n_examples
        self.n_weights = int(model.n_weights)
        self.relaxed = is_relaxed(model)
        self._prepare = prepare
        self._seekable = is_seekable(source)
        self._order = np.empty(0, np.int64)
        self._at = 0
        self._pass: Iterator[Chunk] = iter(())
        self._data: tuple[Any, Any] = ((), ())
        self._in_view = -1
        self._bound: Any = None
        self._bring(0)
        self.releases_gil: bool = cast(Oracle, self._bound).releases_gil

    def visits(self, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """All examples, those of one chunk after the other, each chunk in view when it comes.

        Chunks come in random order where the source can do that, and examples within a chunk always do.
        """
        n_chunks = self.offsets.size - 1
        self._begin(rng.permutation(n_chunks) if self._seekable else np.arange(n_chunks))
        for i in self._order.tolist():
            self._bring(i)
            yield rng.permutation(np.arange(self.offsets[i], self.offsets[i + 1]))

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        return self._chunkwise(ids, lambda at: self._ask(lambda local: self._bound.rivals(local, w), ids[at]))

    def refined(self, ids: np.ndarray, w: np.ndarray, seconds: float) -> Rivals:
        share = seconds / max(ids.size, 1)

        def ask(local: np.ndarray) -> Rivals:
            return refining(self._bound).refined(local, w, share * local.size)

        return self._chunkwise(ids, lambda at: self._ask(ask, ids[at]))

    def planes(self, ids: np.ndarray, labels: Sequence[object]) -> Rivals:
        return self._chunkwise(
            ids,
            lambda at: self._ask(lambda local: self._bound.planes(local, [labels[p] for p in at.tolist()]), ids[at]),
        )

    def in_view(self, ids: np.ndarray) -> bool:
        """Whether all these examples can be asked about without reading; only then may several ask at once."""
        i = self._in_view
        return i >= 0 and bool(((self.offsets[i] <= ids) & (ids < self.offsets[i + 1])).all())

    def part(self, ids: np.ndarray) -> Part:
        """Some examples of the chunk in view, to be searched elsewhere."""
        local = ids - self.offsets[self._chunk_of(ids)]
        X, Y = self._data
        return Part(self.model, chosen(X, local), chosen(Y, local), ids)

    def _chunk_of(self, ids: np.ndarray) -> int:
        return int(np.searchsorted(self.offsets, ids[0], side="right")) - 1

    def _chunkwise(self, ids: np.ndarray, ask: Callable[[np.ndarray], Rivals]) -> Rivals:
        """Answers about any examples, in the order in which they were asked for."""
        if not ids.size:
            return ask(np.arange(0))
        chunk = np.searchsorted(self.offsets, ids, side="right") - 1
        if (chunk == chunk[0]).all():
            self._bring(int(chunk[0]))
            return ask(np.arange(ids.size))
        parts, order = [], np.argsort(chunk, kind="stable")
        for at in np.split(order, np.flatnonzero(np.diff(chunk[order])) + 1):
            self._bring(int(chunk[at[0]]))
            parts.append(ask(at))
        return joined(parts, order)

    def _ask(self, question: Callable[[np.ndarray], Rivals], ids: np.ndarray) -> Rivals:
        """Put a question about examples in view to the model, and say of an error where in the source it arose."""
        first = int(self.offsets[self._in_view])
        try:
            return question(ids - first)
        except OracleError as error:
            at = first + error.example if error.example >= 0 else -1
            raise OracleError(
                f"{error} (Counted from example {first} of the source, where its chunk begins.)", at
            ) from (error)

    def _begin(self, order: np.ndarray) -> None:
        """Let the source begin a pass over its chunks in this order."""
        self._order, self._at = order, 0
        self._pass = iter(self.source.chunks(order) if self._seekable else self.source.chunks())

    def _bring(self, i: int) -> None:
        """Have chunk i in view: the next one of the pass in progress, if it is that one."""
        if i == self._in_view:
            return
        if not (self._at < self._order.size and self._order[self._at] == i):
            n_chunks = self.offsets.size - 1
            if self._seekable:
                self._begin(np.arange(i, n_chunks))
            elif i < self._at or not self._order.size:
                self._begin(np.arange(n_chunks))
        # A source may take back the memory of a chunk when the next one is asked for.
        self._in_view = -1
        self._bound, self._data = None, ((), ())
        try:
            self._advance(i)
        except BaseException:
            self._order = np.empty(0, np.int64)  # this pass cannot be relied on any more
            raise

    def _advance(self, i: int) -> None:
        while True:
            number = int(self._order[self._at])
            try:
                chunk = next(self._pass, None)
            except (DataError, OSError) as error:
                raise OracleError(f"The source cannot be read any further: {error}", -1) from error
            self._at += 1
            self._check(number, chunk)
            if number == i:
                self._bind(i, chunk)  # type: ignore[arg-type]
                return

    def _check(self, i: int, chunk: Chunk | None) -> None:
        first, n = int(self.offsets[i]), int(self.offsets[i + 1] - self.offsets[i])
        if chunk is None or len(chunk) != n or int(chunk.ids[0]) != first:
            found = "no chunk" if chunk is None else f"{len(chunk)} examples from {chunk.ids[0]} on"
            raise OracleError(
                f"The source has changed since it was first read: there were {n} examples from {first} on, now there "
                f"is {found}. A source must give the same examples each time it is read.",
                first,
            )

    def _bind(self, i: int, chunk: Chunk) -> None:
        try:
            with _placed(self.source, chunk, int(self.offsets[i])):
                self._data = (chunk.x, chunk.y) if self._prepare is None else self._prepare(chunk.x, chunk.y)
                self._bound = oracle_for(self.model, *self._data)
        except DataError as error:
            raise OracleError(str(error), int(self.offsets[i])) from error  # what was learned so far is kept
        self._in_view = i


@dataclass(frozen=True)
class Part:
    """Some examples with their model, to be sent to whoever searches."""

    model: Model
    X: Any
    Y: Any
    ids: np.ndarray

    def rivals(self, w: np.ndarray) -> Rivals:
        try:
            return oracle_for(self.model, self.X, self.Y).rivals(np.arange(self.ids.size), w).evaluated()
        except OracleError as error:
            at = int(self.ids[error.example]) if error.example >= 0 else -1
            raise OracleError(f"Example {at} of the source: {error}", at) from error


def chosen(data: Any, ids: np.ndarray) -> Any:
    return data[ids] if hasattr(data, "shape") else [data[i] for i in ids.tolist()]


def joined(parts: list[Rivals], order: np.ndarray) -> Rivals:
    """Parts as one: answer p of all parts belongs to place ``order[p]``."""
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    labels = [label for part in parts for label in part.labels]
    rows = _joined_rows([part.rows for part in parts], place)
    losses = np.concatenate([part.losses for part in parts])[place]
    return Rivals(
        [labels[p] for p in place.tolist()],
        rows,
        losses,
        _joined_bounds([part.excess for part in parts], parts, place),
        _joined_bounds([part.search_rounding() for part in parts], parts, place),
        RowErrors.joined([(part.losses.size, part.errors) for part in parts], place),
    )


def _joined_bounds(bounds: list[np.ndarray | None], parts: list[Rivals], place: np.ndarray) -> np.ndarray | None:
    """One number for each answer, where any part has such."""
    if all(bound is None for bound in bounds):
        return None
    each = [np.zeros(p.losses.size) if bound is None else bound for bound, p in zip(bounds, parts, strict=True)]
    return np.concatenate(each)[place]


def _joined_rows(parts: list[Rows], place: np.ndarray) -> Rows:
    """Rows one part after the other, in another order; sparse unless all of them are dense."""
    if all(part.dense for part in parts):
        return as_rows(np.concatenate([stored(part) for part in parts])[place])
    return as_rows(sp.vstack([as_sparse(part) for part in parts], format="csr")[place])

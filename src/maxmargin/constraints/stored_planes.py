"""Planes of many examples with their answers: where they stand, how they come, stay and leave."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..kernels import planes as kernels
from ..kernels.maps import Dense, WeightMap
from ..problem import Rivals, RowErrors, Rows
from .answers import bytes_of
from .matrices import as_sparse
from .small import is_few
from .store import RowStore, placed, row_sizes


class Slots(NamedTuple):
    """Where the planes of each example are; see ``kernels.planes``."""

    row: np.ndarray
    shift: np.ndarray
    loss: np.ndarray
    first: np.ndarray
    count: np.ndarray  # type: ignore[assignment]
    gram_first: np.ndarray
    gram: np.ndarray
    hot: np.ndarray

    @classmethod
    def of_sizes(cls, size: np.ndarray, shift: np.ndarray) -> Slots:
        """Empty slots: ``size[i]`` of them for example i."""
        first = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
        gram_first = np.concatenate([[0], np.cumsum(size.astype(np.int64) ** 2)])
        return cls(
            row=np.zeros(first[-1], np.int64),
            shift=shift,
            loss=np.zeros(first[-1]),
            first=first,
            count=np.zeros(size.size, np.int32),
            gram_first=gram_first,
            gram=np.empty(gram_first[-1]),
            hot=np.zeros(first[-1], bool),
        )


def moved(values: np.ndarray, source: np.ndarray) -> np.ndarray:
    """What belongs to slots, after the slots were laid out anew: nothing to those that are spare (−1)."""
    out = np.full(source.size, None, object) if values.dtype == object else np.zeros(source.size, values.dtype)
    here = source >= 0
    out[here] = values[source[here]]
    return out


def _relay(slots: Slots, keep: np.ndarray, examples: np.ndarray, new: Slots, source: np.ndarray) -> None:
    """As ``kernels.relay`` does, in array code."""
    number = np.full(slots.count.size, -1)
    number[examples[examples >= 0]] = np.flatnonzero(examples >= 0)
    owner = np.repeat(np.arange(slots.count.size), np.diff(slots.first))
    kept = np.flatnonzero(keep & (number[owner] >= 0))
    owner = owner[kept]
    begin = np.searchsorted(owner, owner)
    here, rank = number[owner], np.arange(kept.size) - begin
    target = new.first[here] + rank
    source[target] = kept
    new.row[target], new.loss[target], new.hot[target] = slots.row[kept], slots.loss[kept], slots.hot[kept]
    new.count[:] = np.bincount(here, minlength=new.count.size)
    mates = new.count[here]
    a = np.repeat(np.arange(kept.size), mates)
    b = begin[a] + np.arange(a.size) - np.repeat(np.cumsum(mates) - mates, mates)
    old_place, size = kept - slots.first[owner], np.diff(slots.first)[owner]
    new_size = np.diff(new.first)[here]
    new.gram[new.gram_first[here[a]] + rank[a] * new_size[a] + rank[b]] = slots.gram[
        slots.gram_first[owner[a]] + old_place[a] * size[a] + old_place[b]
    ]


class StoredPlanes:
    """Planes by example. Each example has as many slots as planes and some to spare.

    Planes are stored as differences to the truth of the day they were found, as precisely as they came. When an
    example's truth changes (``relabel``), one more row for the example says how, and every plane stays what it
    was. With one slot to spare everywhere an epoch can add one plane to each example without moving anything. Between
    epochs ``tidy`` lays out anew the planes that are to stay.

    Parameters
    ----------
    n_examples, n_weights : int
    """

    def __init__(self, n_examples: int, n_weights: int) -> None:
        self.n_examples = n_examples
        self.n_weights = n_weights
        self.store = RowStore(n_weights)
        self._zeros = np.empty(0)
        self._clear(np.full(n_examples, -1, np.int64))
        self.errors: RowErrors | None = None
        """What rounding may have changed in rows when they were formed."""

    def _clear(self, shift: np.ndarray) -> None:
        """One slot for each example, and nothing in it."""
        self.slots = Slots.of_sizes(np.ones(shift.size, np.int64), shift)
        self.labels = np.full(shift.size, None, object)
        self.answer_bytes = np.zeros(shift.size, np.int32)
        self.idle = np.zeros(shift.size, np.int32)

    def _note(self, errors: RowErrors | None) -> None:
        """Rows that are taken in may be off by so much; of all of them the largest error counts."""
        if errors is None:
            return
        worst, known = errors.factor.max(initial=0.0), self.errors or RowErrors(np.zeros(()), errors.scale, errors.loss)
        scale = np.maximum(known.scale, errors.scale) if errors.scale is not known.scale else known.scale
        self.errors = RowErrors(max(worst, known.factor), scale, max(errors.loss, known.loss))

    def lengths(self, ids: np.ndarray) -> np.ndarray:
        """How long the longest row of some examples is, and the one that says how the truth has changed: rounding in
        what these rows are worth is measured by it."""
        table = as_sparse(self.store.rows)
        norms = np.sqrt(np.asarray(table.multiply(table).sum(axis=1), dtype=np.float64).ravel())
        row, shift, first, count = self.slots.row, self.slots.shift, self.slots.first, self.slots.count
        longest = [norms[row[first[i] : first[i] + count[i]]].max(initial=0.0) for i in ids.tolist()]
        return np.array(longest) + np.where(shift[ids] >= 0, norms[shift[ids]] if norms.size else 0.0, 0.0)

    def add(self, ids: np.ndarray, rivals: Rivals, wanted: np.ndarray, weights: WeightMap) -> None:
        """Take in the wanted ones of some planes, one for each example of ``ids``, into the spare slots."""
        chosen = np.flatnonzero(wanted)
        if not chosen.size:
            return
        self._note(rivals.errors)
        at = self.store.append(*self._unshifted(rivals.rows, ids, chosen))
        taken = self._spare(ids[chosen])
        slots = self.slots
        slots.row[taken], slots.loss[taken] = np.arange(at, at + taken.size), rivals.losses[chosen]
        slots.hot[taken] = True
        slots.count[ids[chosen]] += 1
        self.idle[taken] = 0
        sizes = []
        for slot, p in zip(taken.tolist(), chosen.tolist(), strict=True):
            label = rivals.labels[p]
            if type(label) is np.ndarray and label.base is not None:
                label = label.copy()  # a view would keep alive all answers that were found together
            self.labels[slot] = label
            sizes.append(bytes_of(label))
        self.answer_bytes[taken] = sizes
        self._fill_gram(ids[chosen], weights)

    def is_full(self, ids: np.ndarray) -> bool:
        """Whether any of these examples has no spare slot."""
        first = self.slots.first
        return bool((self.slots.count[ids] >= first[ids + 1] - first[ids]).any())

    def age(self, alpha: np.ndarray) -> None:
        """An epoch has passed: planes without a share grow older."""
        self.idle += 1
        self.idle[alpha > 0.0] = 0

    def tidy(self, keep: np.ndarray, room: np.ndarray | int = 1, squeeze: bool = False) -> np.ndarray:
        """Keep these slots only; returns for each new slot the old one (−1: spare).

        ``room`` is the number of spare slots of each example. Rows that nobody needs are removed once they are many,
        or at once to ``squeeze``.
        """
        source = self._lay_out(np.arange(self.n_examples), keep, room)
        new, n = self.slots, np.count_nonzero(source >= 0)
        alive = np.concatenate([new.row[source >= 0], new.shift[new.shift >= 0]])
        if alive.size <= (1.0 if squeeze else 0.8) * self.store.n_rows:
            self.store.keep(alive)
            new.row[source >= 0] = np.arange(n)
            new.shift[new.shift >= 0] = np.arange(n, alive.size)
        return source

    def recount(self, examples: np.ndarray) -> np.ndarray:
        """These are the examples from now on, by their old numbers (−1: one that has come, without planes so far).

        Returns for each new slot the old one (−1: spare).
        """
        old = self.slots
        here = examples >= 0
        spare = np.ones(examples.size, np.int64)
        spare[here] = (np.diff(old.first) - old.count)[examples[here]]
        source = self._lay_out(examples, self.used(), spare)
        self.n_examples = examples.size
        return source

    def _lay_out(self, examples: np.ndarray, keep: np.ndarray, room: np.ndarray | int) -> np.ndarray:
        """Slots for these examples, with the planes that are kept of them; returns for each new slot the old one."""
        old, here = self.slots, examples >= 0
        kept = np.diff(np.concatenate([[0], np.cumsum(keep)])[old.first])
        size, shift = np.zeros(examples.size, np.int64), np.full(examples.size, -1, np.int64)
        size[here], shift[here] = kept[examples[here]], old.shift[examples[here]]
        new = Slots.of_sizes(size + room, shift)
        source = np.full(new.row.size, -1, np.int64)
        if is_few(new.gram.size):
            _relay(old, keep & self.used(), examples, new, source)
        else:
            kernels.relay(old, keep, examples, new, source)
        self.slots = new
        self.labels, self.answer_bytes = moved(self.labels, source), moved(self.answer_bytes, source)
        self.idle = moved(self.idle, source)
        return source

    def rename(self, place: np.ndarray, n_weights: int) -> None:
        """Weight j is weight ``place[j]`` of ``n_weights`` from now on."""
        self.store.rename(place, n_weights)
        if self.errors is not None:
            self.errors = replace(self.errors, scale=placed(self.errors.scale, place, n_weights))
        self.n_weights = n_weights

    def explicit(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(slots, their examples, their planes as a dense matrix) of all planes at hand."""
        used = np.flatnonzero(self.used())
        example = self._example_of(used)
        table = as_sparse(self.store.rows)
        planes = table[self.slots.row[used]].toarray().astype(np.float64)
        shift = self.slots.shift[example]
        moved = shift >= 0
        planes[moved] -= table[shift[moved]].toarray()
        return used, example, planes

    def relabel(self, ids: np.ndarray, rows: Rows, weights: WeightMap) -> None:
        """The truth of some examples is another one now: ``rows`` are (truth when the planes were found − new truth).

        Shares stay feasible; v is another one and has to be combined anew.
        """
        at = self.store.append(rows, np.arange(ids.size))
        self.slots.shift[ids] = np.arange(at, at + ids.size)
        self._fill_gram(ids, weights, all_planes=True)

    def measure(self, weights: WeightMap) -> None:
        """The Gram blocks of all examples, from nothing: the regularizer measures planes by another metric now."""
        self._fill_gram(np.arange(self.n_examples), weights, all_planes=True)

    def used(self) -> np.ndarray:
        """Which slots hold a plane."""
        used = np.zeros(self.slots.row.size + 1, np.int32)
        used[self.slots.first[:-1]] += 1
        np.subtract.at(used, self.slots.first[:-1] + self.slots.count, 1)
        return np.cumsum(used[:-1]) > 0

    @property
    def nbytes(self) -> int:
        """Bytes of stored planes, slots, Gram blocks and answers, as far as these can be sized."""
        arrays = (*self.slots, self.idle, self._zeros, self.labels, self.answer_bytes)
        return self.store.nbytes + sum(a.nbytes for a in arrays) + int(self.answer_bytes.sum(dtype=np.int64))

    def bytes_by_example(self) -> np.ndarray:
        """Bytes that the planes of each example take, with their answers."""
        used = np.flatnonzero(self.used())
        rows = self.store.arrays
        size = rows.data.itemsize + (rows.indices.itemsize if rows.indices.size else 0)
        n = np.full(used.size, rows.width) if not rows.indices.size else np.diff(rows.indptr)[self.slots.row[used]]
        return np.bincount(self._example_of(used), size * n + self.answer_bytes[used], minlength=self.n_examples)

    def bytes_with(self, rivals: Rivals | None) -> int:
        """Bytes that the cache would take with these planes added, at most."""
        if rivals is None:
            return self.nbytes
        answers = sum(map(bytes_of, rivals.labels))
        return self.nbytes - self.store.nbytes + self.store.nbytes_with(rivals.rows) + answers

    def _fill_gram(self, ids: np.ndarray, weights: WeightMap, all_planes: bool = False) -> None:
        """Inner products of the last plane of some examples with all of theirs, or of every plane."""
        if self._zeros.size != self.n_weights:
            self._zeros = np.zeros(self.n_weights)  # to write one plane into
        spreads = isinstance(weights, Dense)  # a plane over all of them
        kernels.fill_gram(self.store.arrays, self.slots, ids, weights, spreads, self._zeros, all_planes)

    def _unshifted(self, rows: Rows, ids: np.ndarray, chosen: np.ndarray) -> tuple[Rows, np.ndarray]:
        """New planes know the truth of today; they are stored relative to the truth of the first day, as all are."""
        shift = self.slots.shift[ids[chosen]]
        if not (shift >= 0).any():
            return rows, chosen
        store = self.store.rows
        room = 1 + int(row_sizes(rows, chosen).sum() + row_sizes(store, shift[shift >= 0]).sum())
        indptr, indices = np.empty(chosen.size + 1, np.int64), np.zeros(room, np.int32)
        data = np.zeros(room, np.promote_types(rows.data.dtype, store.data.dtype))
        n = kernels.add_rows(rows.arrays, chosen, store.arrays, shift, indptr, indices, data)
        n = max(n, 1)  # rows without any indices are taken for dense ones
        return Rows(indptr, indices[:n], data[:n], chosen.size, rows.width), np.arange(chosen.size)

    def _spare(self, ids: np.ndarray) -> np.ndarray:
        return self.slots.first[ids] + self.slots.count[ids]

    def _example_of(self, slots: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.slots.first, slots, side="right") - 1

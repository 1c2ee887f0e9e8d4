from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..data.arrays import as_rows
from ..kernels import planes as kernels, rows as row_kernels
from ..kernels.maps import Dense, WeightMap
from ..kernels.sums import dot as bounded_dot
from ..problem import Loss, Planes, Rivals, RowErrors, Rows, Totals
from ..regularizers.vectors import dot
from ..rounding import UNIT, gamma
from .answers import Joined, Spilled, bytes_of
from .store import RowStore, row_sizes
from .sums import DualSums


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


@dataclass(frozen=True)
class Mixture:
    """The answers behind a merged plane, and what part of its share each one has."""

    answers: list[tuple[Any, float]]

    @property
    def nbytes(self) -> int:
        return sum(64 + bytes_of(answer) for answer, _ in self.answers)

    @classmethod
    def of(cls, answers: list[tuple[Any, float]]) -> Mixture:
        """Equal answers are counted together and the faintest forgotten: a lower bound formed from what is left is
        true, and lower by less than rounding makes it."""
        parts: dict[Any, tuple[Any, float]] = {}
        for answer, part in answers:
            key = _key(answer)
            parts[key] = (answer, part + parts[key][1] if key in parts else part)
        return cls([pair for pair in parts.values() if pair[1] > 1e-10])


def moved(values: np.ndarray, source: np.ndarray) -> np.ndarray:
    """What belongs to slots, after the slots were laid out anew: nothing to those that are spare (−1)."""
    out = np.full(source.size, None, object) if values.dtype == object else np.zeros(source.size, values.dtype)
    here = source >= 0
    out[here] = values[source[here]]
    return out


def _key(answer: Any) -> Any:
    """The same for equal answers, as far as that can be told."""
    if hasattr(answer, "tobytes"):
        return answer.dtype.str, answer.shape, answer.tobytes()
    try:
        hash(answer)
    except TypeError:
        return id(answer)
    return answer


def _answers(label: Any) -> list[tuple[Any, float]]:
    return label.answers if isinstance(label, Mixture) else [(label, 1.0)]


class Cache:
    """The constraints met so far, as a closed problem that the dual coordinate solver can work on.

    Planes are stored as differences to the truth of the day they were found, as precisely as they came. When an
    example's truth changes (``relabel``), one more row for the example says how, and every plane stays what it
    was. Each example has as many slots as planes and one to spare, so that an epoch can add one plane everywhere
    without moving anything. Between epochs ``tidy`` lays out anew the planes that are to stay.

    Where memory is short, planes of some examples are *spilled*: their rows are forgotten, their answers and shares
    are kept, and what they contribute to v and to Σ l α is remembered as one sum, so that bounds stay what they are.
    They move again once ``recall`` has been given their rows.

    Parameters
    ----------
    n_examples, n_weights : int
    budget : float array (n_examples,) or (1,)
        C_i.
    """

    n_examples: int
    n_weights: int
    budget: np.ndarray
    store: RowStore
    slots: Slots
    labels: np.ndarray
    answer_bytes: np.ndarray
    idle: np.ndarray
    spilled: Spilled
    away_linear: float

    closed = True
    by_example = False

    def __init__(self, n_examples: int, n_weights: int, budget: np.ndarray) -> None:
        self.n_examples = n_examples
        self.n_weights = n_weights
        self.budget = budget
        self.store = RowStore(n_weights)
        self._zeros = np.empty(0)
        self.slots = Slots.of_sizes(np.ones(n_examples, np.int64), np.full(n_examples, -1, np.int64))
        self.labels = np.full(n_examples, None, object)
        self.answer_bytes = np.zeros(n_examples, np.int32)
        self.idle = np.zeros(n_examples, np.int32)
        self.spilled = Spilled(n_examples)
        self.away: np.ndarray | None = None
        """Σ α (plane) over all planes that were spilled, and ``away_linear`` the Σ l α that goes with it."""
        self.away_linear = 0.0
        self.away_error = np.zeros(0)
        """By how much rounding may have changed the sums, as long as nothing was recalled."""
        self._errors: RowErrors | None = None
        self._coarse = 4.0 * UNIT
        """What rounding may have changed in rows when they were formed, and which share of them since."""

    # What the solver sees: the Constraints protocol.

    @property
    def dual_shape(self) -> tuple[int, ...]:
        return (self.slots.row.size,)

    @property
    def n_constraints(self) -> int:
        return int(self.slots.count.sum())

    @property
    def rows(self) -> Rows:
        return self.store.rows

    def supports(self, kind: type) -> bool:
        return True

    def sweep(
        self,
        alpha: np.ndarray,
        weights: WeightMap,
        norms: np.ndarray,
        order: np.ndarray,
        active: int,
        block: int,
        seed: int,
    ) -> tuple[int, float, float]:
        full = active == self.n_examples
        return kernels.sweep(
            self.store.arrays, self.slots, self.budget, alpha, weights, order, active, block, seed, full
        )

    def extrapolate(
        self,
        alpha: np.ndarray,
        previous: np.ndarray,
        momentum: float,
        weights: WeightMap,
        order: np.ndarray,
        active: int,
        visited: int,
    ) -> float:
        return kernels.extrapolate(
            self.store.arrays, self.slots, self.budget, alpha, previous, momentum, weights, order, active, visited
        )

    def no_shares(self) -> np.ndarray:
        return np.zeros(self.dual_shape)

    def combine(self, alpha: np.ndarray) -> np.ndarray:
        v = np.zeros(self.n_weights) if self.away is None else self.away.copy()
        kernels.combine(self.store.arrays, self.slots, alpha, v)
        return v

    def linear(self, alpha: np.ndarray) -> float:
        used = self.used()
        return dot(self.slots.loss[used], alpha[used]) + self.away_linear

    def feasible(self, alpha: np.ndarray) -> np.ndarray:
        alpha = np.where(self.used(), alpha, 0.0)
        kernels.project_slots(self.slots, self.budget, alpha)
        return alpha

    def totals(self, alpha: np.ndarray) -> Totals:
        """What is certified of a stream, whose examples are gone: all that is known of them is here."""
        sums = DualSums(self.n_weights)
        if self.away is not None:
            sums.add(Totals(self.away_linear, self.away, 0.0, self.away_error))
        sums.add(self._totals(self.feasible(alpha)))
        return sums.totals()

    def _totals(self, alpha: np.ndarray) -> Totals:
        """Of planes at hand, with what rounding may have changed in their rows."""
        slots, used = self.slots, np.flatnonzero(self.used())
        coefficient = np.zeros(self.store.n_rows)
        np.add.at(coefficient, slots.row[used], alpha[used])
        shift = slots.shift[self._example_of(used)]
        np.add.at(coefficient, shift[shift >= 0], -alpha[used][shift >= 0])
        sums = DualSums(self.n_weights)
        sums.add_rows(self.store.rows, coefficient)
        sums.add_linear(*bounded_dot(slots.loss[used], alpha[used]))
        found = sums.totals()
        linear_error, v_error = self._coarse * abs(found.linear), self._coarse * sums.size
        if self._errors is not None:
            linear_error += self._errors.loss * abs(found.linear)
            v_error += float(self._errors.factor * alpha.sum()) * self._errors.scale
        return Totals(found.linear, found.v, found.linear_error + linear_error, found.v_error + v_error)

    def _note(self, errors: RowErrors | None) -> None:
        """Rows that are taken in may be off by so much; of all of them the largest error counts."""
        if errors is None:
            return
        worst = errors.factor.max(initial=0.0)
        if self._errors is None:
            self._errors = RowErrors(worst, errors.scale, errors.loss)
        elif errors.scale is not self._errors.scale or worst > self._errors.factor:
            known = self._errors
            scale = np.maximum(known.scale, errors.scale) if errors.scale is not known.scale else known.scale
            self._errors = RowErrors(max(worst, known.factor), scale, max(errors.loss, known.loss))

    def evaluate(self, w: np.ndarray) -> Loss:
        return Loss(float((self.budget * self.worst(np.arange(self.n_examples), w)).sum()))

    # What the solver for open problems does with it.

    def worst(self, ids: np.ndarray, w: np.ndarray) -> np.ndarray:
        """max(0, max_j (l_ij − w·x_ij)) over what is cached, for some examples."""
        out = np.empty(ids.size)
        kernels.worst_cached(self.store.arrays, self.slots, ids, w, out)
        return out

    def lengths(self, ids: np.ndarray) -> np.ndarray:
        """How long the longest row of some examples is, and the one that says how the truth has changed: rounding in
        what these rows are worth is measured by it."""
        table = self.store.table()
        norms = np.sqrt(np.asarray(table.multiply(table).sum(axis=1), dtype=np.float64).ravel())
        row, shift, first, count = self.slots.row, self.slots.shift, self.slots.first, self.slots.count
        longest = [norms[row[first[i] : first[i] + count[i]]].max(initial=0.0) for i in ids.tolist()]
        return np.array(longest) + np.where(shift[ids] >= 0, norms[shift[ids]] if norms.size else 0.0, 0.0)

    def add(self, ids: np.ndarray, rivals: Rivals, wanted: np.ndarray, weights: WeightMap) -> None:
        """Take in the wanted ones of some planes, one for each example of ``ids``, into the spare slots."""
        chosen = np.flatnonzero(wanted)
        if chosen.size:
            self._note(rivals.errors)
            at = self.store.append(*self._unshifted(rivals.rows, ids, chosen))
            self._name(ids, rivals, wanted, at, weights)

    def _name(self, ids: np.ndarray, rivals: Rivals, wanted: np.ndarray, at: int, weights: WeightMap) -> None:
        """Give the planes stored from row ``at`` on their slots, labels, losses and Gram blocks."""
        chosen = np.flatnonzero(wanted)
        taken = self._spare(ids[chosen])
        kernels.add_planes(self.slots, ids, wanted, at, rivals.losses)
        self.idle[taken] = 0
        sizes = []
        for slot, p in zip(taken.tolist(), chosen.tolist(), strict=True):
            label = rivals.labels[p]
            if type(label) is np.ndarray and label.base is not None:
                label = label.copy()  # a view would keep alive all answers that were found together
            self.labels[slot] = label
            sizes.append(bytes_of(label))
        self.answer_bytes[taken] = sizes
        kernels.fill_gram(self.store.arrays, self.slots, ids[chosen], weights, *self._scratch(weights))

    def fill(self, shares: Planes, weights: WeightMap) -> np.ndarray:
        """Take in planes with their shares, as ``Searched.feasible`` gives them; returns α for the slots."""
        rivals = shares.rivals
        if rivals is None:
            raise ValueError("These planes lack their rows.")
        return self._fill(shares, rivals, self.no_shares(), weights)

    def _fill(self, shares: Planes, rivals: Rivals, alpha: np.ndarray, weights: WeightMap) -> np.ndarray:
        count = np.bincount(shares.example, minlength=self.n_examples)
        source = self.tidy(self.used(), 1 + count)
        alpha = moved(alpha, source)
        turn = np.arange(len(shares)) - np.searchsorted(shares.example, shares.example)
        for n in range(int(turn.max(initial=-1)) + 1):
            wanted = turn == n
            alpha[self._spare(shares.example[wanted])] = shares.alpha[wanted]
            self.add(shares.example, rivals, wanted, weights)
        return alpha

    def spill(self, chosen: np.ndarray, alpha: np.ndarray, *, for_ever: bool = False) -> np.ndarray:
        """Forget the planes of the chosen examples (a mask); returns α for the slots that are left.

        v and Σ l α keep what these planes contribute. Answers and shares are kept for ``recall``; where the data is
        gone ``for_ever`` nobody could, and the sums are all that is left of them.
        """
        gone = self.used() & np.repeat(chosen, np.diff(self.slots.first))
        if self.away is None:
            self.away, self.away_error = np.zeros((2, self.n_weights))
        share = np.where(gone, alpha, 0.0)
        found = self._totals(share)
        self.away += found.v
        self.away_linear += found.linear
        self.away_error += found.v_error + gamma(2) * np.abs(self.away)
        if not for_ever:
            self.spilled.put(self._shares(share))
        source = self.tidy(self.used() & ~gone, squeeze=True)
        return moved(alpha, source)

    def leave(self, shares: Planes, v: np.ndarray, linear: float) -> None:
        """Take in shares whose planes are not at hand, with what they contribute to v and to Σ l α."""
        self.spilled.put(shares)
        self.away, self.away_linear, self.away_error = v.copy(), linear, np.zeros(v.size)

    def recall(self, shares: Planes, rivals: Rivals, alpha: np.ndarray, weights: WeightMap) -> np.ndarray:
        """Spilled shares, as ``spilled.take`` gave them out, come back with their rows; returns α for the slots."""
        if self.away is None:
            raise ValueError("Nothing was spilled.")
        row_kernels.combine(rivals.rows.arrays, -shares.alpha, self.away)
        self.away_linear -= dot(rivals.losses, shares.alpha)
        return self._fill(shares, rivals, alpha, weights)

    def all_here(self) -> None:
        """Nothing is spilled any more: what rounding has left of the sums is forgotten too."""
        self.away, self.away_linear = None, 0.0

    def age(self, alpha: np.ndarray) -> None:
        """An epoch has passed: planes without a share grow older."""
        kernels.tick(self.slots, alpha, self.idle)

    def tidy(self, keep: np.ndarray, room: np.ndarray | int = 1, squeeze: bool = False) -> np.ndarray:
        """Keep these slots only; returns for each new slot the old one (−1: spare).

        ``room`` is the number of spare slots of each example. Rows that nobody needs are removed once they are many,
        or at once to ``squeeze``.
        """
        old = self.slots
        kept = np.diff(np.concatenate([[0], np.cumsum(keep)])[old.first])
        new = Slots.of_sizes(kept + room, old.shift)
        source = np.full(new.row.size, -1, np.int64)
        kernels.relay(old, keep, new, source)
        self.slots = new
        self.labels, self.answer_bytes = moved(self.labels, source), moved(self.answer_bytes, source)
        self.idle = moved(self.idle, source)
        alive = np.concatenate([new.row[source >= 0], new.shift[new.shift >= 0]])
        if alive.size <= (1.0 if squeeze else 0.8) * self.store.n_rows:
            self.store.keep(alive)
            new.row[source >= 0] = np.arange(kept.sum())
            new.shift[new.shift >= 0] = np.arange(kept.sum(), alive.size)
        return source

    def merge(self, alpha: np.ndarray, weights: WeightMap) -> np.ndarray:
        """One plane per example, the average of its planes by share: v and Σ l α stay what they are.

        Planes without a share are lost. Returns α for the new slots.
        """
        used = np.flatnonzero(self.used() & (alpha > 0.0))
        example = self._example_of(used)
        held, place = np.unique(example, return_inverse=True)
        total = np.bincount(place, alpha[used])
        part = alpha[used] / total[place]
        mixed: list[list[tuple[Any, float]]] = [[] for _ in held]
        for p, slot, share in zip(place.tolist(), used.tolist(), part.tolist(), strict=True):
            mixed[p].extend((answer, share * x) for answer, x in _answers(self.labels[slot]))
        labels = [Mixture.of(answers) for answers in mixed]
        pick = sp.csr_matrix((part, (place, self.slots.row[used])), shape=(held.size, self.store.n_rows))
        table = self.store.table()
        self._coarse += 2.0 * float(np.finfo(self.store.rows.data.dtype).eps)
        averages = as_rows((pick @ table).astype(table.dtype))
        losses = np.bincount(place, part * self.slots.loss[used])
        shift = self.slots.shift
        shifted = np.flatnonzero(shift >= 0)
        self.store.keep(shift[shifted])
        shift[shifted] = np.arange(shifted.size)
        self.slots = Slots.of_sizes(np.ones(self.n_examples, np.int64), shift)
        self.labels = np.full(self.n_examples, None, object)
        self.answer_bytes = np.zeros(self.n_examples, np.int32)
        self.idle = np.zeros(self.n_examples, np.int32)
        merged = self.no_shares()
        merged[held] = total
        if held.size:
            at = self.store.append(averages, np.arange(held.size))
            self._name(held, Rivals(labels, averages, losses), np.ones(held.size, bool), at, weights)
        source = self.tidy(self.used())
        return moved(merged, source)

    def grow(self, n_examples: int, budget: np.ndarray) -> np.ndarray:
        """There are more examples now, without planes so far; returns for each new slot the old one (−1: spare)."""
        added = n_examples - self.n_examples
        old = self.slots
        shift = np.concatenate([old.shift, np.full(added, -1)])
        sizes = np.concatenate([np.diff(old.first), np.ones(added, np.int64)])
        new = Slots.of_sizes(sizes, shift)
        for name in ("row", "loss", "count", "gram", "hot"):
            source = getattr(old, name)
            getattr(new, name)[: source.size] = source
        self.slots, self.n_examples, self.budget = new, n_examples, budget
        self.labels = np.concatenate([self.labels, np.full(added, None, object)])
        self.answer_bytes = np.concatenate([self.answer_bytes, np.zeros(added, np.int32)])
        self.idle = np.concatenate([self.idle, np.zeros(added, np.int32)])
        self.spilled = Spilled(n_examples)  # examples of a stream never come back: none are in it
        return np.concatenate([np.arange(old.row.size), np.full(added, -1)])

    def shrink(self, n_examples: int) -> np.ndarray:
        """Only the first so many examples are left; returns for each new slot the old one (−1: spare)."""
        cut = int(self.slots.first[n_examples])
        keep = self.used()
        keep[cut:] = False
        source = self.tidy(keep)
        last, last_gram = int(self.slots.first[n_examples]), int(self.slots.gram_first[n_examples])
        s = self.slots
        self.slots = Slots(
            row=s.row[:last],
            shift=s.shift[:n_examples],
            loss=s.loss[:last],
            first=s.first[: n_examples + 1],
            count=s.count[:n_examples],
            gram_first=s.gram_first[: n_examples + 1],
            gram=s.gram[:last_gram],
            hot=s.hot[:last],
        )
        self.labels, self.idle, self.n_examples = self.labels[:last], self.idle[:last], n_examples
        self.answer_bytes = self.answer_bytes[:last]
        self.budget = self.budget[:n_examples]
        self.spilled = Spilled(n_examples)
        return source[:last]

    def dismiss(self, chosen: np.ndarray) -> np.ndarray:
        """The chosen examples (a mask), all without planes, are counted no more; returns the slots that are left."""
        old = self.slots
        size, stay = np.diff(old.first), ~chosen
        kept = np.flatnonzero(np.repeat(stay, size))
        new = Slots.of_sizes(size[stay], old.shift[stay])
        new.gram[:] = old.gram[np.repeat(stay, size**2)]
        self.slots = new._replace(row=old.row[kept], loss=old.loss[kept], count=old.count[stay], hot=old.hot[kept])
        self.labels, self.idle, self.answer_bytes = self.labels[kept], self.idle[kept], self.answer_bytes[kept]
        self.budget = self.budget[stay] if self.budget.size > 1 else self.budget
        self.n_examples = int(np.count_nonzero(stay))
        self.spilled = Spilled(self.n_examples)
        return kept

    def rename(self, place: np.ndarray, n_weights: int) -> None:
        """Weight j is weight ``place[j]`` of ``n_weights`` from now on."""
        self.store.rename(place, n_weights)
        if self.away is not None:
            away, error = self.away, self.away_error
            self.away, self.away_error = np.zeros((2, n_weights))
            self.away[place], self.away_error[place] = away, error
        if self._errors is not None:
            scale = np.zeros(n_weights)
            scale[place] = self._errors.scale
            self._errors = replace(self._errors, scale=scale)
        self.n_weights = n_weights

    def explicit(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(slots, their examples, their planes as a dense matrix) of all planes at hand."""
        used = np.flatnonzero(self.used())
        example = self._example_of(used)
        table = self.store.table()
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
        kernels.refill_gram(self.store.arrays, self.slots, ids, weights, *self._scratch(weights))

    def measure(self, weights: WeightMap) -> None:
        """The Gram blocks of all examples, from nothing: the regularizer measures planes by another metric now."""
        ids = np.arange(self.n_examples)
        kernels.refill_gram(self.store.arrays, self.slots, ids, weights, *self._scratch(weights))

    def used(self) -> np.ndarray:
        """Which slots hold a plane."""
        used = np.zeros(self.slots.row.size + 1, np.int32)
        used[self.slots.first[:-1]] += 1
        np.subtract.at(used, self.slots.first[:-1] + self.slots.count, 1)
        return np.cumsum(used[:-1]) > 0

    def planes(self, alpha: np.ndarray) -> Planes:
        """The planes that carry a share, spilled ones too, as dual variables that stand by themselves."""
        here = self._shares(alpha)
        if not len(self.spilled):
            return here
        parts = [here, *self.spilled.all()]
        return Planes(
            np.concatenate([part.example for part in parts]),
            Joined([part.labels for part in parts]),
            np.concatenate([part.alpha for part in parts]),
        )

    def _shares(self, alpha: np.ndarray) -> Planes:
        support = np.flatnonzero(self.used() & (alpha > 0.0))
        example, labels, shares = [], [], []
        for i, slot, share in zip(
            self._example_of(support).tolist(), support.tolist(), alpha[support].tolist(), strict=True
        ):
            for answer, part in _answers(self.labels[slot]):
                example.append(i)
                labels.append(answer)
                shares.append(share * part)
        return Planes(np.array(example, np.int64), labels, np.array(shares))

    @property
    def nbytes(self) -> int:
        """Bytes of stored planes, slots, Gram blocks and answers, as far as these can be sized."""
        arrays = (*self.slots, self.idle, self._zeros, self.labels, self.answer_bytes)
        away = 0 if self.away is None else self.away.nbytes
        return (
            self.store.nbytes
            + sum(a.nbytes for a in arrays)
            + int(self.answer_bytes.sum(dtype=np.int64))
            + away
            + self.spilled.nbytes
        )

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

    def _scratch(self, weights: WeightMap) -> tuple[bool, np.ndarray]:
        """Zeros to write one plane into, and whether the regularizer spreads a plane over all of them."""
        if self._zeros.size != self.n_weights:
            self._zeros = np.zeros(self.n_weights)
        return isinstance(weights, Dense), self._zeros

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

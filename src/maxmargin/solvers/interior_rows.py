"""The rows of an interior-point method, and the point of their examples: questions go in, sums over examples come out.

``InteriorPoint`` never sees a row. Rows may be in memory, come in blocks, or be spread over machines, each of which has
an ``InteriorRows`` of its own: what their answers add up to is the answer about all rows.

Many examples with one dual variable each are stepped over by compiled kernels. All others are by array code
(``interior_slots``), which stores slacks where kernels form them anew: rounding sets in later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from ..constraints.description import Description
from ..kernels import normal_equations as kernels
from ..kernels.normal_equations import Point
from ..kernels.rows import RowArrays
from . import threads
from .interior_slots import SlotPoint, SlotValues

T = TypeVar("T")
Look = tuple[np.ndarray, np.ndarray]
Advance = tuple[np.ndarray, np.ndarray, np.ndarray]

COMPILED_FROM = 2_000  # slots: with fewer of them a step of array code takes about a millisecond
_BLOCK = 2048  # rows whose weighted copies are multiplied at once: they fit the second-level cache
_SPARSE = 0.15  # rows with more stored values than this share are multiplied by BLAS, written out


class InteriorRows:
    """Some examples of a problem: their constraints, their point, and the threads that share them.

    What stands for several of these (workers, say) has the same methods: it hands every question on to each of them,
    and joins what they say with ``added_looks`` and ``added_advances``.

    Memory beyond the constraints: 20 to 24 bytes per example with one dual variable, else 40 per constraint. There may
    be no examples at all; sums are zero then.

    Parameters
    ----------
    constraints : closed constraints in memory, or Blocked with blocks of them
    n_threads : int
        For a given number answers are the same to the bit.
    description : Description or None
        That of the whole problem, where these are only some of its examples: so that points of all parts have the same
        arrays, which can be put one after the other.

    Examples
    --------
    >>> from maxmargin.data.arrays import as_rows
    >>> from maxmargin.models import binary
    >>> rows = InteriorRows(binary(as_rows(np.eye(2)), np.array([1, -1], np.int8), np.ones(1)))
    >>> rows.centre(np.zeros(2), 1.0)
    >>> gram, vectors, sums = rows.advance(np.zeros(2), np.zeros((0, 2)), 0.0, 0.0, precise=False)
    >>> gram.shape, vectors.shape, float(sums[0])  # the last is the loss
    ((2, 2), (3, 2), 2.0)
    """

    def __init__(self, constraints: Any, n_threads: int = 1, description: Description | None = None) -> None:
        self.constraints = constraints
        self.n_threads = n_threads
        self.n_examples = n = int(constraints.n_examples)
        self.n_weights = int(constraints.n_weights)
        self.description = what = constraints.describe() if description is None else description
        if n and not what.slots_per_example:
            raise ValueError(
                f"Newton steps know nothing of {what.kind} constraints. Use DualCoordinate, or BlockAscent where rows "
                "come in blocks."
            )
        self._point: Point | SlotValues
        self._whole: SlotPoint | None = None
        self._compiled = what.scalar and what.n_examples * what.slots_per_example > COMPILED_FROM
        self._in_blocks = constraints.held_in == "blocks"
        self._slots = constraints.as_slots(what) if n and not self._compiled and not self._in_blocks else None
        if self._compiled:
            excess = np.zeros(n if what.loss.bounded else 0, np.float32)
            common = np.zeros(n if what.two_sided else 0, np.float32)
            self._alpha = np.zeros(n)
            self._point = Point(self._alpha, excess, common)
        else:
            shape = (n, 2 + what.two_sided if what.scalar else what.columns)
            shape = shape if self._slots is None else self._slots.shape
            self._point = values = SlotValues(np.zeros(shape), np.ones(shape), np.zeros(n))
            self._alpha = np.zeros(constraints.dual_shape)
            if self._slots is not None:
                self._whole = SlotPoint(self._slots, values, self._alpha)  # it remembers what it was asked last
        self._kept = np.zeros_like(self._alpha)

    @property
    def alpha(self) -> np.ndarray:
        """The dual variables, not a copy."""
        return self._alpha

    @property
    def kept(self) -> np.ndarray:
        """The dual variables that were to be kept, zero if none were; not a copy."""
        return self._kept

    def saved(self) -> Point | SlotValues:
        """The point, not a copy: all that ``load`` needs."""
        return self._point

    def load(self, point: Sequence[np.ndarray], kept: np.ndarray | None = None) -> None:
        """Take over a copy of a point that was saved, and of dual variables that were kept."""
        given = [np.shape(values) for values in point]
        needed = [values.shape for values in self._point]
        if given != needed:
            raise ValueError(
                f"The point of these {self.n_examples} examples has arrays of shapes {needed}, got {given}. Load what "
                "was saved of the same examples."
            )
        for old, new in zip(self._point, point, strict=True):
            old[...] = new
        self._kept[...] = 0.0 if kept is None else kept
        for part in self._parts():
            part.share()

    def centre(self, w: np.ndarray, mu: float) -> None:
        """The point at which the products of each example are mu, times its budget over the mean, at these weights."""
        w, _ = self._asked(w, np.zeros((0, self.n_weights)))
        per_budget = mu / (self.description.budget or 1.0)
        for _ in self._each(lambda part: part.centre(w, per_budget)):
            pass

    def look(self, w: np.ndarray, directions: np.ndarray, mu: float) -> Look:
        """What the next direction has to correct, and (rate, slope, curvature) along the last one."""
        w, directions = self._asked(w, directions)
        return added_looks(self.n_weights, self._each(lambda part: part.look(w, directions, mu)))

    def advance(
        self, w: np.ndarray, directions: np.ndarray, mu: float, length: float, precise: bool, keep: bool = False
    ) -> Advance:
        """Take a step of this length from w along the last direction, and gather the normal equations there.

        XᵀDX in full, in the coordinates of ``interior_system``; Xᵀβ and the right-hand sides of the next directions,
        one per row; loss, linear part of the dual, products, their number, and the examples between their bounds.
        ``precise``: products of rows in float64 whatever they are stored in. Without a direction the point stays where
        it is. ``keep``: of all points so far the one left behind has the best dual variables, which are to be kept.
        """
        w, directions = self._asked(w, directions)
        if keep:
            self._kept[...] = self._alpha
        with threads.one_blas_thread():
            answers = self._each(lambda part: part.advance(w, directions, mu, length, precise))
            gram, vectors, sums = added_advances(self.n_weights, answers)
        if self._compiled and self._sparse:
            gram = np.triu(gram) + np.triu(gram, 1).T
        return gram, vectors, sums

    def _asked(self, w: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights and directions as kernels may read them, which look at no length.

        From another process they may come read-only, a type that kernels would be compiled for once more.
        """
        d = self.n_weights
        if np.shape(w) != (d,) or np.ndim(directions) != 2 or np.shape(directions)[1] != d:
            raise ValueError(
                f"These rows have {d} weights: w must have shape ({d},) and directions (k, {d}), got {np.shape(w)} and "
                f"{np.shape(directions)}."
            )
        return np.require(w, np.float64, ["C", "W"]), np.require(directions, np.float64, ["C", "W"])

    @property
    def _sparse(self) -> bool:
        what = self.description
        return not what.dense and not what.paired and what.stored <= _SPARSE * what.width

    def _each(self, work: Callable[[_Compiled | SlotPoint], T]) -> Iterator[T]:
        """work(part) for all parts, those of compiled kernels in as many pieces as there are threads."""
        for part in self._parts():
            yield from threads.run(work, part.pieces(self.n_threads))

    def _parts(self) -> Iterator[_Compiled | SlotPoint]:
        if not self.n_examples:
            return
        if not self._in_blocks:
            yield self._whole or self._part(self.constraints, self._point, self._alpha)
            return
        first = self.constraints.first
        for b, block in self.constraints.blocks():
            span = slice(first[b], first[b + 1])
            yield self._part(block, type(self._point)(*(values[span] for values in self._point)), self._alpha[span])

    def _part(self, c: Any, point: Any, alpha: np.ndarray) -> _Compiled | SlotPoint:
        if not self._compiled:
            return SlotPoint(c.as_slots(self.description), point, alpha)
        # Kernels would write past the arrays of a point that was made for other losses; blocks were only sampled.
        if not point.excess.size and c.loss_shape.bounded:
            raise ValueError("This loss is bounded, but the description of the problem says that none is.")
        if not point.common.size and not c.side.all():
            raise ValueError(
                "Some of these examples cost on both sides of their target, but the description of the problem says "
                "that none does. Give one with two_sided=True."
            )
        rows, *terms = c.kernel_arguments()
        return _Compiled(rows, tuple(terms), point, 0, c.n_examples, self._sparse)


@dataclass(frozen=True)
class _Compiled:
    """Some of the examples as the kernels read them: rows start … stop of all, or of a block."""

    rows: RowArrays
    terms: tuple
    point: Point
    start: int
    stop: int
    sparse: bool

    def pieces(self, n: int) -> list[_Compiled]:
        bounds = np.linspace(self.start, self.stop, n + 1).astype(int).tolist()
        return [replace(self, start=a, stop=b) for a, b in pairwise(bounds)]

    def share(self) -> None:
        """Dual variables are those of the point."""

    def centre(self, w: np.ndarray, per_budget: float) -> None:
        kernels.centre(self.rows, *self.terms, w, per_budget, self.start, self.stop, self.point)

    def look(self, w: np.ndarray, directions: np.ndarray, mu: float) -> Look:
        vector, sums = np.zeros(w.size), np.zeros(3)
        kernels.look(self.rows, *self.terms, w, directions, mu, self.start, self.stop, self.point, vector, sums)
        return vector, sums

    def advance(self, w: np.ndarray, directions: np.ndarray, mu: float, length: float, precise: bool) -> Advance:
        """The step for these rows; of XᵀDX only the upper triangle where rows are sparse."""
        d = w.size
        gram, vectors, sums = np.zeros((d, d)), np.zeros((3, d)), np.zeros(5)
        weight = np.empty(_BLOCK)
        kind = np.float64 if precise else self.rows.data.dtype
        written_out = np.empty((0 if self.sparse else _BLOCK, d), kind)
        product = np.empty((d, d), kind)
        for a in range(self.start, self.stop, _BLOCK):
            b = min(a + _BLOCK, self.stop)
            kernels.advance(self.rows, *self.terms, w, directions, mu, length, a, b, self.point, weight, vectors, sums)
            if self.sparse:
                kernels.add_outer(self.rows, weight, a, b, gram)
            else:
                kernels.scale_rows(self.rows, weight, a, b, written_out)
                scaled = written_out[: b - a]
                gram += np.matmul(scaled.T, scaled, out=product)
        return gram, vectors, sums


def added_looks(n_weights: int, answers: Iterable[Look]) -> Look:
    """Answers of ``look`` about parts, as one about all: the largest rate, the sums of everything else."""
    vector, sums = np.zeros(n_weights), np.zeros(3)
    for more, (rate, slope, curvature) in answers:
        vector += more
        sums += (max(rate - sums[0], 0.0), slope, curvature)
    return vector, sums


def added_advances(n_weights: int, answers: Iterable[Advance]) -> Advance:
    """Answers of ``advance`` about parts, as one about all."""
    gram, vectors, sums = np.zeros((n_weights, n_weights)), np.zeros((3, n_weights)), np.zeros(5)
    for more_gram, more_vectors, more_sums in answers:
        gram += more_gram
        vectors += more_vectors
        sums += more_sums
    return gram, vectors, sums

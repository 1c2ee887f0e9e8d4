"""Closed constraints in blocks that are read when they are needed: data larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from ..data.source_checks import chunks_of
from ..problem import TotalLoss, Totals
from ..protocols import Chunk, Seekable
from .base import Closed, own
from .description import Description
from .duals_on_disk import forget
from .sums import DualSums


class Blocked:
    """A closed problem in blocks, of which only a few are in memory at a time.

    Every chunk of a source is a block of constraints with dual variables of its own. All that certificates need are
    sums over blocks: one reading of the source gives each of them.

    Parameters
    ----------
    source : Seekable
    block : function of a Chunk
        The constraints of a chunk.
    n_weights : int
    columns : tuple
        Shape of the dual variables of one example: () for one number, (K,) for one per class.
    size : function of a Chunk without inputs
        How many examples (rows of dual variables) the chunk has; pairs, where pairs are ranked.
    """

    closed = True
    held_in = "blocks"
    _description: Description | None = None

    def __init__(
        self,
        source: Seekable,
        block: Callable[[Chunk], Closed],
        n_weights: int,
        *,
        columns: tuple[int, ...] = (),
        size: Callable[[Chunk], int] = len,
    ) -> None:
        self.source = source
        self.n_weights = n_weights
        self.columns = columns
        self._block = block
        n_blocks = len(source.offsets) - 1
        sizes = np.diff(source.offsets) if size is len else [size(source.labels(b)) for b in range(n_blocks)]
        self.first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        """Where the dual variables of each block begin, and their number."""
        self.n_examples = int(self.first[-1])
        self.n_constraints = self.n_examples * max([1, *(k - 1 for k in columns)])
        self.dual_shape = (self.n_examples, *columns)
        self.largest = max((source.nbytes(b) for b in range(n_blocks)), default=0)
        """Bytes of the largest block."""

    @property
    def filled(self) -> np.ndarray:
        """The blocks that have examples."""
        return np.flatnonzero(np.diff(self.first))

    def blocks(self, order: np.ndarray | None = None) -> Iterator[tuple[int, Closed]]:
        """Blocks one after another, the next one read in the background; each is gone when the next is taken."""
        order = self.filled if order is None else order
        for b, chunk in zip(order.tolist(), chunks_of(self.source, order), strict=True):
            yield b, self._block(chunk)

    def describe(self) -> Description:
        """What one block says of itself, for all of them."""
        if self._description is None:
            self._description = self._describe()
        return self._description

    def _describe(self) -> Description:
        if not self.n_examples:
            return Description(type(self).__name__, 0)
        _, block = next(self.blocks(self.filled[:1]))
        return replace(block.describe(), n_examples=self.n_examples)

    def share(self, alpha: np.ndarray, b: int) -> np.ndarray:
        """The dual variables of block b, not a copy."""
        return alpha[self.first[b] : self.first[b + 1]]

    def feasible(self, alpha: np.ndarray) -> np.ndarray:
        alpha = own(alpha, self.dual_shape)
        for b, block in self.blocks():
            self.share(alpha, b)[:] = block.feasible(self.share(alpha, b))
        return alpha

    def totals(self, alpha: np.ndarray) -> Totals:
        """Sums at the nearest feasible point, which is never formed as a whole."""
        sums = DualSums(self.n_weights)
        for b, block in self.blocks():
            share = block.feasible(self.share(alpha, b))
            if share.any():
                block.gather(sums, share)
            forget(alpha)
        return sums.totals()

    def evaluate(self, w: np.ndarray) -> TotalLoss:
        return TotalLoss.sum(block.evaluate(w) for _, block in self.blocks())

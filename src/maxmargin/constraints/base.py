"""What all closed constraints share: the way from a method to its kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import ModuleType
from typing import Any

import numpy as np

from ..data.arrays import without_zeros
from ..kernels.maps import WeightMap
from ..problem import Rows, TotalLoss, Totals
from ..validation import shown
from .description import Description
from .slots import InteriorSlots
from .small import add_rows, is_few, is_small
from .sums import DualSums


def check_entries(owner: object, n: int, **arrays: np.ndarray) -> None:
    """One finite entry per example, or one for all: kernels would read past anything shorter."""
    for name, array in arrays.items():
        fits = isinstance(array, np.ndarray) and array.ndim == 1 and array.size in (1, n)
        if not fits or not np.isfinite(array).all() or (name == "budget" and (array < 0).any()):
            kind = "finite numbers, none negative" if name == "budget" else "finite numbers"
            raise ValueError(f"{type(owner).__name__}: {name} must be an array of 1 or {n} {kind}; got {shown(array)}.")


def own(alpha: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A copy of dual variables that belong to a problem of this shape."""
    alpha = np.array(alpha, dtype=np.float64, order="C")
    if alpha.shape != shape:
        raise ValueError(f"Dual variables of this problem have shape {shape}, got {alpha.shape}.")
    return alpha


class Closed(ABC):
    """Rows, and what else a kernel module needs to step over their dual variables (``kernel_arguments``).

    All constraints are at hand, with compiled steps over their dual variables, an array of ``dual_shape``.
    """

    closed = True
    held_in = "memory"
    by_example = True
    """Whether the first axis of the dual variables counts examples."""
    n_examples: int
    n_constraints: int
    n_weights: int
    dual_shape: tuple[int, ...]
    budget: np.ndarray
    _few_nonzeros = 0.0
    """The largest share of non-zeros in dense rows at which kernels are faster on sparse ones."""
    _kernels: ModuleType
    _description: Description | None = None

    def __init__(self, rows: Rows) -> None:
        if not hasattr(rows, "arrays"):
            raise ValueError(
                f"rows must be Rows, got {type(rows).__name__}. Of a matrix: maxmargin.data.arrays.as_rows(X)."
            )
        self.rows = rows
        self._arrays = rows.arrays

    @abstractmethod
    def kernel_arguments(self) -> tuple[Any, ...]:
        """What all functions of the kernel module begin with: the rows, and the arrays that go with them."""

    def describe(self) -> Description:
        """What solvers are chosen by."""
        if self._description is None:
            self._description = self._describe()
        return self._description

    def _describe(self) -> Description:
        return Description(type(self).__name__, self.n_examples)

    def as_slots(self, of_all: Description) -> InteriorSlots:
        """The same as slots of an interior-point method, as the description of the whole problem says."""
        raise NotImplementedError(f"{type(self).__name__} constraints have no slots.")

    def supports(self, kind: type) -> bool:
        """Whether ``sweep`` can work under this type of weight map (see ``kernels.maps``)."""
        return True

    @abstractmethod
    def feasible(self, alpha: np.ndarray) -> np.ndarray: ...

    def linear(self, alpha: np.ndarray) -> float:
        return self._bounded_linear(alpha)[0]

    def no_shares(self) -> np.ndarray:
        return np.zeros(self.dual_shape)

    def combine(self, alpha: np.ndarray) -> np.ndarray:
        v = np.zeros(self.n_weights)
        self.add_to(v, alpha)
        return v

    def add_to(self, v: np.ndarray, alpha: np.ndarray) -> None:
        """v += Σ α (truth − rival)."""
        add_rows(self.rows, self._signed(alpha), v)

    def _signed(self, alpha: np.ndarray) -> np.ndarray:
        """Dual variables times the signs of their rows."""
        return alpha

    def totals(self, alpha: np.ndarray) -> Totals:
        sums = DualSums(self.n_weights)
        self.gather(sums, self.feasible(alpha))
        return sums.totals()

    def gather(self, into: DualSums, alpha: np.ndarray) -> None:
        """Add what these dual variables come to."""
        into.add_rows(self.rows, self._signed(alpha))
        into.add_linear(*self._bounded_linear(alpha))

    @abstractmethod
    def _bounded_linear(self, alpha: np.ndarray) -> tuple[float, float]:
        """``linear``, and by how much it may be off."""

    def pack(self) -> None:
        """Make the sparse copy of dense rows that sweeps are faster on."""
        if self._few_nonzeros:
            self._arrays = without_zeros(self.rows, self._few_nonzeros).arrays

    @property
    def n_read(self) -> int:
        """Values of rows that one sweep over all examples reads."""
        return self._arrays.data.size

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
        """One ascent step per example of ``order[:active]``: (still active, gap estimate, change of linear).

        ``norms`` (one float32 per row, negative at first) is the kernel's memory of squared norms.
        """
        m = self._for_kernel(weights)
        return self._kernels.sweep(*self.kernel_arguments(), alpha, m, norms, order, active, block, seed)

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
        """alpha ← Proj(alpha + momentum·(alpha − previous)) for ``order[:active]``, previous ← the old alpha.

        The caller has extrapolated v already; what is held back (by the projection, and all of
        ``order[active:visited]``) is corrected in it. Returns the change of linear.
        """
        m = self._for_kernel(weights)
        return self._kernels.extrapolate(*self.kernel_arguments(), alpha, previous, momentum, m, order, active, visited)

    def _for_kernel(self, weights: WeightMap) -> WeightMap:
        return weights

    def _small_loss(self, w: np.ndarray) -> tuple[float, float]:
        """The same in array code, for structures that have such."""
        return self._loss(w)

    def _loss(self, w: np.ndarray) -> tuple[float, float]:
        """What all examples pay, and by how much rounding may have lowered it."""
        return self._kernels.total_loss(*self.kernel_arguments(), w)

    def evaluate(self, w: np.ndarray) -> TotalLoss:
        w = np.ascontiguousarray(w, dtype=np.float64)
        if w.shape != (self.n_weights,):
            raise ValueError(f"The problem has {self.n_weights} weights, got an array of shape {w.shape}.")
        if is_small(self.rows) and is_few(self.n_constraints):
            with np.errstate(all="ignore"):
                total, rounding = self._small_loss(w)
        else:
            total, rounding = self._loss(w)
        return TotalLoss(total, rounding=rounding)

"""Constraints of the joint multiclass problem of Crammer and Singer: one simplex of dual variables per example."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.arrays import as_rows
from ..kernels import classes as kernels
from ..kernels.maps import Boxed, Clipped, Plain, WeightMap
from ..kernels.vectors import bounded_dot
from ..problem import Rows, is_pure
from ..protocols import Regularizer
from ..rounding import UNIT
from .base import Closed, check_entries, own
from .description import Description
from .matrices import as_sparse, mean_squared_norm
from .shared import SharedSlack
from .slots import ClassSlots, InteriorSlots, RivalSlots
from .small import bounded_combine, is_small, project, table, total_of
from .sums import DualSums

_MAPS = (Plain, Clipped, Boxed)  # what the kernels for classes know
_NOTHING = np.empty(0)


def has_class_steps(regularizer: Regularizer, n_weights: int) -> bool:
    """Whether there are compiled steps over classes; under others, such as a group norm, rows are written out."""
    return not is_pure(regularizer) and regularizer.shape(n_weights).kind in _MAPS


class Classes(Closed):
    """Crammer–Singer constraints: the score of the true class above every other by its cost.

    Weights are ``w[feature, class]``, flattened. Dual variables are an (n, K) array with zeros at the true class.

    Parameters
    ----------
    rows : Rows
    label : int32 array (n,)
        Classes as 0 … K−1.
    cost : float array (K, K)
        ``cost[y, k]``: the margin asked for between the true class y and k; zero on the diagonal.
    budget : float array (n,) or (1,)
    """

    _kernels = kernels
    _few_nonzeros = 1 / 3

    def __init__(self, rows: Rows, label: np.ndarray, cost: np.ndarray, budget: np.ndarray) -> None:
        super().__init__(rows)
        self.label = label
        self.cost = cost
        self.budget = budget
        self.n_classes = cost.shape[0]
        self.n_examples = len(rows)
        self.n_constraints = self.n_examples * (self.n_classes - 1)
        self.n_weights = rows.n_weights * self.n_classes
        self.dual_shape = (self.n_examples, self.n_classes)
        check_entries(self, self.n_examples, budget=budget)
        if label.shape != (self.n_examples,) or label.min() < 0 or label.max() >= self.n_classes:
            raise ValueError(
                f"Classes: {self.n_examples} labels between 0 and {self.n_classes - 1} are needed, got shape "
                f"{label.shape} with values from {label.min()} to {label.max()}."
            )

    def kernel_arguments(self) -> tuple[Any, ...]:
        return self._arrays, self.label, self.cost, self.budget

    def columns(self) -> dict[str, np.ndarray]:
        return {"label": self.label, "budget": self.budget}

    def settings(self) -> dict[str, Any]:
        return {"cost": self.cost}

    def _describe(self) -> Description:
        rows = self.rows
        return Description(
            kind=type(self).__name__,
            n_examples=self.n_examples,
            slots_per_example=float(self.n_classes),
            columns=self.n_classes,
            dense=rows.dense,
            width=rows.width,
            stored=rows.n_stored / max(rows.n_rows, 1),
            squared_norm=mean_squared_norm(rows),
            budget=float(self.budget.mean()) if self.n_examples else 0.0,
        )

    def as_slots(self, of_all: Description) -> InteriorSlots:
        return ClassSlots(self)

    def _small_loss(self, w: np.ndarray) -> tuple[float, float]:
        X, W, own_class = table(self.rows), w.reshape(-1, self.n_classes), self.label[:, None]
        scores, cost = X @ W, self.cost[self.label]
        missing = cost + scores - np.take_along_axis(scores, own_class, axis=1)
        lost = 2.02 * UNIT * (len(W) + 6) * (np.abs(X) @ np.abs(W).max(axis=1))[:, None]
        above = missing + np.where(lost > 0.0, lost + 4.04 * UNIT * np.abs(cost), 0.0)
        for each in (missing, above):
            np.put_along_axis(each, own_class, 0.0, axis=1)
        return total_of(missing.max(axis=1) * self.budget, above.max(axis=1) * self.budget)

    def feasible(self, alpha: np.ndarray) -> np.ndarray:
        alpha = own(alpha, self.dual_shape)
        alpha[np.arange(self.n_examples), self.label] = 0.0
        project(alpha.reshape(-1), np.arange(self.n_examples + 1) * self.n_classes, self.budget)
        return alpha

    def supports(self, kind: type) -> bool:
        return kind in _MAPS

    def _for_kernel(self, weights: WeightMap) -> Boxed:
        """Other maps as a Boxed one with nothing in it: here one code path serves all."""
        if isinstance(weights, Plain):
            v, scale = weights
            if scale == 1.0:
                return Boxed(v, v, *[_NOTHING] * 4)
            return Boxed(v, scale * v, np.zeros(v.size), np.full(v.size, scale), np.full(v.size, -np.inf), _NOTHING)
        if isinstance(weights, Clipped):
            return Boxed(*weights, _NOTHING)
        return weights  # type: ignore[return-value]

    def add_to(self, v: np.ndarray, alpha: np.ndarray) -> None:
        sums = DualSums(v.size)
        self._add_rows(sums, alpha)
        v += sums.v + sums.low

    def gather(self, into: DualSums, alpha: np.ndarray) -> None:
        self._add_rows(into, alpha)
        into.count(self.n_examples, self.n_classes)  # the true class has the sum of what all others have
        into.add_linear(*self._bounded_linear(alpha))

    def _add_rows(self, into: DualSums, alpha: np.ndarray) -> None:
        if is_small(self.rows, self.n_classes):
            signed = -alpha
            signed[np.arange(self.n_examples), self.label] = alpha.sum(axis=1)
            into.add_sums(*bounded_combine(self.rows, signed))
        else:
            kernels.bounded_combine(self._arrays, self.label, alpha, into.v, into.low, into.size)

    def _bounded_linear(self, alpha: np.ndarray) -> tuple[float, float]:
        i, k = np.nonzero(alpha)
        return bounded_dot(self.cost[self.label[i], k], alpha[i, k])

    def explicit(self) -> WrittenOut:
        """The same constraints with every row written out: slow and large, but any regularizer works on it."""
        return WrittenOut(self)

    def rivals(self) -> np.ndarray:
        """Which entries of α are those of rivals, as a mask: in this order, row by row, ``explicit`` has them."""
        return np.arange(self.n_classes) != self.label[:, None]


class WrittenOut(SharedSlack):
    """Rows of classes, which are still known to be that where it saves work."""

    def __init__(self, classes: Classes) -> None:
        super().__init__(*_written_out(classes), classes.budget)
        self._classes = classes

    def by_rival(self, alpha: np.ndarray) -> np.ndarray:
        """The dual variables of these rows, from those of all classes."""
        return alpha[self._classes.rivals()]

    def by_class(self, alpha: np.ndarray) -> np.ndarray:
        """The dual variables of all classes, from those of these rows."""
        of_classes = np.zeros(self._classes.dual_shape)
        of_classes[self._classes.rivals()] = alpha
        return of_classes

    def _describe(self) -> Description:
        return self._classes.describe()

    def as_slots(self, of_all: Description) -> InteriorSlots:
        return RivalSlots(self._classes)


def _written_out(c: Classes) -> tuple[Rows, np.ndarray, np.ndarray]:
    """Rows φ(x, y) − φ(x, k) for all k ≠ y, their costs, and where each example begins."""
    import scipy.sparse as sp

    k = c.n_classes
    r = c.rows
    x = as_sparse(r)
    if r.bias:
        x = sp.hstack([x, np.full((r.n_rows, 1), r.bias)], format="csr")
    example, rival = np.nonzero(c.rivals())
    chosen = x[example].tocoo()
    truth = c.label[example]
    row = np.concatenate([chosen.row, chosen.row])
    column = np.concatenate([chosen.col * k + truth[chosen.row], chosen.col * k + rival[chosen.row]])
    data = np.concatenate([chosen.data, -chosen.data])
    full = sp.csr_matrix((data, (row, column)), shape=(example.size, c.n_weights))
    full.sum_duplicates()
    rows = as_rows(full)
    first = np.arange(c.n_examples + 1, dtype=np.int64) * (k - 1)
    return rows, c.cost[truth, rival], first

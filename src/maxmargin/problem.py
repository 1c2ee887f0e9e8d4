"""What is solved and what comes out: small frozen dataclasses, no behaviour beyond their meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .rounding import bounded_sum, rounded_down, rounded_up

if TYPE_CHECKING:
    from .constraints.base import Closed
    from .constraints.blocked import Blocked
    from .constraints.searched import Searched
    from .kernels.rows import RowArrays
    from .protocols import Constraints, Regularizer


@dataclass(frozen=True)
class Rows:
    """A matrix by rows, sparse or dense, kept in the caller's own arrays.

    Parameters
    ----------
    indptr, indices : arrays
        CSR structure (32- or 64-bit); both empty when the matrix is dense.
    data : array, float32 or float64
        Stored values; all ``n_rows * width`` of them when the matrix is dense.
    n_rows, width : int
        Shape of the stored matrix.
    bias : float
        If not zero, every row has one more entry with this value, which is not stored.
    plus, minus : int arrays
        If not empty, row i means stored row ``plus[i]`` minus stored row ``minus[i]``; the former alone where
        ``minus[i]`` is negative.
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    n_rows: int
    width: int
    bias: float = 0.0
    plus: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))
    minus: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))

    @property
    def n_weights(self) -> int:
        return self.width + (self.bias != 0.0)

    @property
    def n_stored(self) -> int:
        """Stored values: what one pass over the rows has to read."""
        return self.data.size

    @property
    def dense(self) -> bool:
        return self.indices.size == 0

    @property
    def arrays(self) -> RowArrays:
        """The same as kernels read it."""
        from .kernels.rows import RowArrays

        return RowArrays(self.indptr, self.indices, self.data, self.width, float(self.bias), self.plus, self.minus)

    def __len__(self) -> int:
        return self.plus.size if self.minus.size else self.n_rows


@dataclass(frozen=True)
class RowErrors:
    """What rounding may have changed in rows and losses that are sums.

    Parameters
    ----------
    factor : float array (n,), or the largest for all rows
    scale : float array (n_weights,)
        Entry j of row i is off by at most factor_i·scale_j.
    loss : float
        A loss is off by at most this share of itself.
    """

    factor: np.ndarray
    scale: np.ndarray
    loss: float = 0.0

    def total(self, shares: np.ndarray) -> np.ndarray:
        """By how much each entry of Σ share·row may be off."""
        return float(np.abs(shares) @ self.factor) * self.scale

    @staticmethod
    def joined(parts: Sequence[tuple[int, RowErrors | None]], place: np.ndarray) -> RowErrors | None:
        """Those of several sets of rows, (number of rows, errors), as one in another order."""
        known = [errors for _, errors in parts if errors is not None]
        if not known:
            return None
        factor = np.concatenate([np.zeros(n) if errors is None else errors.factor for n, errors in parts])
        scale = np.maximum.reduce([errors.scale for errors in known])
        return RowErrors(factor[place], scale, max(errors.loss for errors in known))


@dataclass(frozen=True)
class Rivals:
    """Answers that compete with the truth, one for each example asked about.

    Parameters
    ----------
    labels : sequence
        The answers, in whatever form the model gives them.
    rows : Rows
        φ(x, y) − φ(x, ŷ), one row per answer.
    losses : float array (n,)
        The margin that each answer must be beaten by.
    excess : float array (n,) or None
        By how much an even worse offender may exceed this one: infinite where the search was only approximate.
        ``None`` says that every search was exact.
    rounding : float array (n,), function without arguments that gives it, or None
        By how much rounding in the search may have hidden an even worse offender. Only certificates need to know, so it
        may be left to be computed, while the weights are those of the search. ``None``: not at all.
    errors : RowErrors or None
        What rounding may have changed in rows and losses that are sums. ``None``: each entry was rounded once at most.
    """

    labels: Sequence[Any]
    rows: Rows
    losses: np.ndarray
    excess: np.ndarray | None = None
    rounding: np.ndarray | Callable[[], np.ndarray] | None = None
    errors: RowErrors | None = None

    def search_rounding(self) -> np.ndarray | None:
        """``rounding`` as numbers."""
        return self.rounding() if callable(self.rounding) else self.rounding

    def evaluated(self) -> Rivals:
        """The same with nothing left to be computed: it can be sent elsewhere without the data."""
        return replace(self, rounding=self.search_rounding())


@dataclass(frozen=True)
class Planes:
    """Dual variables of an open problem: a share α for some answers to some examples.

    Answers rather than feature vectors are kept, so that whoever has the data can form the vectors anew.
    """

    example: np.ndarray
    labels: Sequence[Any]
    alpha: np.ndarray

    def __len__(self) -> int:
        return self.alpha.size

    def __rmul__(self, factor: float) -> Planes:
        """So many times these shares."""
        return Planes(self.example, self.labels, factor * self.alpha)

    def chosen(self, which: np.ndarray) -> Planes:
        """Those that have these numbers, in this order."""
        return Planes(self.example[which], [self.labels[i] for i in which.tolist()], self.alpha[which])


class TotalLoss(NamedTuple):
    """Σ_i C_i·(loss of example i), and by how much it may have been underrated.

    ``excess`` is what approximate inference may have missed, ``rounding`` what rounding may have taken away.
    """

    total: float
    excess: float = 0.0
    rounding: float = 0.0

    @classmethod
    def sum(cls, losses: Iterable[TotalLoss]) -> TotalLoss:
        """The loss of several sets of examples."""
        losses = list(losses)
        total, off = bounded_sum(loss.total for loss in losses)
        return cls(
            total,
            rounded_up(*(loss.excess for loss in losses)),
            rounded_up(off, *(loss.rounding for loss in losses)),
        )


class Totals(NamedTuple):
    """Σ l α and v = Σ α (truth − rival) at a feasible point, and by how much rounding may have changed each of them."""

    linear: float
    v: np.ndarray
    linear_error: float
    v_error: np.ndarray


def is_pure(regularizer: Regularizer) -> bool:
    """Whether it is not strongly convex, so that dual variables alone do not tell the weights."""
    return getattr(regularizer, "pure", False)


@dataclass(frozen=True)
class Problem:
    """minimise  Ω(w) + Σ_i C_i·(loss of example i at w)."""

    constraints: Constraints
    regularizer: Regularizer

    @property
    def n_weights(self) -> int:
        return self.constraints.n_weights

    @property
    def pure(self) -> bool:
        """Whether the regularizer is not strongly convex."""
        return is_pure(self.regularizer)

    @property
    def in_memory(self) -> Closed:
        """The constraints, for solvers that need all in memory."""
        return self._held_in("memory")

    @property
    def in_blocks(self) -> Blocked:
        """The constraints, for solvers that read them block by block."""
        return self._held_in("blocks")

    @property
    def searched(self) -> Searched:
        """The constraints, for solvers that search for them."""
        return self._held_in("oracle")

    def _held_in(self, place: str) -> Any:
        if self.constraints.held_in != place:
            raise ValueError(
                f"This solver takes constraints that are held in {place!r}, here they are held in "
                f"{self.constraints.held_in!r}. maxmargin.solvers.choose(problem) finds one that fits."
            )
        return self.constraints


_VISIBLE = 0.01  # of the gap: less is hardly more than what the bound of a search allows for rounding


@dataclass(frozen=True)
class Certificate:
    """How good a solution is: the optimum lies between ``lower`` and ``upper``.

    ``upper`` is the objective at the weights, ``lower`` the dual objective at a feasible α. ``exact`` is
    False when inference was approximate and has no bound, and then ``upper`` claims nothing (it is infinite).
    ``relaxation`` is the part of ``upper`` that only a bound of approximate inference adds: no answers were found that
    are so bad. ``relaxed``: rivals that are no answers have made the optimum higher (``models.Graph`` says when).
    ``upper`` is then an upper bound without them, too, ``lower`` is one of the relaxed problem only.

    >>> Certificate(lower=9.99, upper=10.0)
    Certificate(9.99 <= optimum <= 10, relative gap 1e-03)
    >>> Certificate(lower=9.99, upper=10.0, relaxation=0.008)
    Certificate(9.99 <= optimum <= 10, relative gap 1e-03, of which relaxation 8e-04)
    >>> Certificate(lower=9.99, upper=10.0, relaxed=True)
    Certificate(9.99 <= optimum of the relaxation <= 10, relative gap 1e-03)
    """

    lower: float
    upper: float
    exact: bool = True
    relaxation: float = 0.0
    relaxed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", self.lower + 0.0)  # zero has no sign: "-0 <= optimum" would be a riddle
        object.__setattr__(self, "upper", self.upper + 0.0)

    @property
    def gap(self) -> float:
        return self.upper - self.lower

    @property
    def relative_gap(self) -> float:
        """(upper − lower) / upper: no weights at all could lower the objective by a larger share."""
        if not np.isfinite(self.upper):
            return float("inf")
        return self.gap / abs(self.upper) if self.upper != 0.0 else self.gap

    @property
    def loose(self) -> float:
        """The part of the relative gap that is relaxation, if it matters: no further training closes it."""
        return self.relaxation / abs(self.upper) if self.relaxation > _VISIBLE * self.gap else 0.0

    def shifted(self, constant: float, error: float = 0.0) -> Certificate:
        """Of the same problem with a constant in its objective, which rounding has changed by ``error`` at most."""
        lower = rounded_down(self.lower, constant, -error)
        return replace(self, lower=lower, upper=rounded_up(self.upper, constant, error))

    @property
    def optimum(self) -> str:
        """What is bounded, in words."""
        return "optimum of the relaxation" if self.relaxed else "optimum"

    def __repr__(self) -> str:
        note = "" if self.exact else ", inference approximate"
        if self.loose > 0.0:
            note = f", of which relaxation {self.loose:.0e}"
        bracket = f"{self.lower:.8g} <= {self.optimum} <= {self.upper:.8g}"
        return f"Certificate({bracket}, relative gap {self.relative_gap:.0e}{note})"

    def _repr_html_(self) -> str:
        from .notebook import as_html

        return as_html(self)


@dataclass(frozen=True)
class Record:
    """One pass: what callbacks receive and ``history_`` keeps.

    ``oracle_calls`` counts since the start how often an example was searched (open problems) or visited (closed
    ones), ``cache_size`` the constraints at hand, ``bytes`` the size of the dual variables and of the cache. Where
    ``exact`` is False the search was approximate, and ``upper`` only what it could see of the objective. Until the last
    pass ``lower`` and ``upper`` are as the run saw them, without the allowance for rounding that a certificate has.
    """

    number: int
    seconds: float
    lower: float
    upper: float
    estimate: float
    active: int
    oracle_calls: int
    cache_size: int
    bytes: int
    exact: bool = True


@dataclass(frozen=True)
class BoundRecord:
    """One convex bound of an objective that is not convex: what callbacks receive and ``history_`` keeps.

    ``bound`` is the value of the bound at its minimiser, ``lower`` a lower bound of that minimum, ``objective`` F at
    the same weights and ``gap`` d = bound − F. ``changed`` is the share of latent values that are others than in the
    bound before. ``passes`` and ``oracle_calls`` are what this bound took, to the relative gap ``tol``.
    """

    number: int
    seconds: float
    objective: float
    bound: float
    gap: float
    changed: float
    lower: float
    tol: float
    passes: int
    oracle_calls: int
    cache_size: int
    bytes: int
    exact: bool = True


class Ending(Enum):
    """Why a search over bounds has ended."""

    CONVERGED = "the gap between bound and objective is closed, and the last bound solved"
    UNSOLVED = "the gap is closed, but the last bound could not be solved as well as was asked for"
    MAX_BOUNDS = "as many bounds as were allowed"
    TOLD = "a callback said so"
    INTERRUPTED = "Ctrl-C, or an error"


@dataclass(frozen=True)
class LatentSolution:
    """The best weights of a search over bounds, the latent values that belong to them, and how they were reached.

    ``certificate`` is that of the last convex bound: with the latent values it fixes, no weights are better by more
    than its gap. Nothing is claimed about other latent values.
    """

    weights: np.ndarray
    latent: Any
    objective: float
    alpha: Any
    certificate: Certificate
    history: list[BoundRecord]
    ended: Ending

    @property
    def converged(self) -> bool:
        return self.ended is Ending.CONVERGED

    @property
    def interrupted(self) -> bool:
        return self.ended is Ending.INTERRUPTED

    def __repr__(self) -> str:
        return f"LatentSolution({self._summary()}, {self.certificate!r})"

    def _summary(self) -> str:
        bounds = f"{len(self.history)} bounds, ended by: {self.ended.value}"
        return f"objective {self.objective:.8g}, {self.weights.size} weights, {bounds}"

    def _repr_html_(self) -> str:
        from .notebook import as_html

        return as_html(self.certificate, self._summary())


@dataclass(frozen=True)
class Solution:
    """Weights, the dual variables that prove them good, and how they were reached.

    ``objective`` is the primal objective at the weights as it was computed, as far as an approximate search could see
    it. ``stuck``: the goal is beyond the limit of double precision on this data, and more passes would not help.
    """

    weights: np.ndarray
    alpha: Any
    certificate: Certificate
    history: list[Record]
    converged: bool
    interrupted: bool = False
    stuck: bool = False
    objective: float = np.inf

    def __repr__(self) -> str:
        return f"Solution({self._summary()}, {self.certificate!r})"

    def _summary(self) -> str:
        ended = "converged" if self.converged else "interrupted" if self.interrupted else "not converged"
        seconds = f" in {self.history[-1].seconds:.3g} s" if self.history else ""
        return f"{ended}, {self.weights.size} weights, {len(self.history)} passes{seconds}"

    def _repr_html_(self) -> str:
        from .notebook import as_html

        return as_html(self.certificate, self._summary())

"""Filters of parts and part weights, trained together (Naderi Parizi, Algorithms 3 and 4).

    O(u, w) = ½‖u‖² + ½ ρ ‖w‖² + Σ_i C_i max(0, max_{k ≠ y_i} 1 + f_k(x_i) − f_{y_i}(x_i)),   f_k(x) = b_k + u_k·r(x, w)

By turns u is the solution of a multiclass SVM on responses, and w goes down a convex bound of O that touches it at the
filters so far. Every step is weighed by O itself: it is taken if O falls, so O never rises.

A part whose filter is twice as long and whose weights are half as large is the same part: O is smallest where ρ‖w_j‖²
is ‖u_j‖² for every part. So ρ is chosen such that this holds for all parts together at the beginning, and filters
neither shrink nor grow before they learn.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...problem import Certificate, Problem, Record, Solution
from ...protocols import Checkpoint, Seed
from ...rounding import gamma
from ...solvers import solve
from ...solvers.solve import first_interrupt
from .ascent import PartAscent, row_bytes
from .filters import FilterBound, FilterShares, ImageShare, tied_to
from .responses import Placed, Responder, respond_all
from .weights import PartWeights, WeightProblem, squared_penalty

_TIE = 0.5  # see tied_to
_PASSES = 5  # over a bound, before the filters are tried
_WORTH = 0.25  # of the share that ends the training: a step that gains so much is taken at once
_PATIENCE = 6  # tries, each with twice as many passes, for a step that gains so much; then any gain will do
_MOST_TRIES = 9  # for any gain


@dataclass(frozen=True)
class JointRecord:
    """One step of joint training: what callbacks receive and ``history_`` keeps.

    ``step`` is "weights" or "filters", ``objective`` is O after it, ``lower`` and ``upper`` bracket the optimum of the
    convex problem of this step, ``passes`` is how many it took. ``taken`` is False if O would have risen. ``rivals``
    are the hard examples at hand, and ``bytes`` what they take.
    """

    round: int
    step: str
    seconds: float
    objective: float
    lower: float
    upper: float
    passes: int
    taken: bool
    rivals: int = 0
    bytes: int = 0

    def described(self) -> str:
        """The step in one line."""
        return f"round {self.round}, {self.step}, objective {self.objective:.6g}, {self.seconds:.0f} s"


@dataclass(frozen=True)
class JointSettings:
    """How joint training is run.

    Parameters
    ----------
    balance : float
        ρ, as a multiple of what makes the penalties of filters and of part weights equal at the beginning.
    tol : float
        Relative gap to which part weights are solved.
    bound_tol : float
        Training ends with a round that lowers O by no more than this share.
    max_rounds : int
    max_passes : int
        For part weights.
    memory : int or None
        Bytes for hard examples: see ``memory_for_rivals``.
    """

    balance: float = 1.0
    tol: float = 1e-2
    bound_tol: float = 1e-2
    max_rounds: int = 20
    max_passes: int = 1000
    memory: int | None = None
    n_jobs: int = 1
    random_state: Seed = None


@dataclass(frozen=True)
class Trained:
    """Filters (n_parts, n_features), part weights, and a certificate of the latter: O with these filters."""

    filters: np.ndarray
    weights: PartWeights
    certificate: Certificate
    history: list[JointRecord]
    converged: bool
    interrupted: bool = False
    shares: np.ndarray | None = None
    """Dual variables of the part weights."""
    penalty: float = 0.0
    """ρ."""


class _Interrupted(Exception):
    """Ctrl-C, or a callback that said so: what there is counts."""


@dataclass
class JointTraining:
    """Where joint training stands.

    Parameters
    ----------
    responder : Responder
    label : int array (n_images,)
    n_classes : int
    budget : float array (n_images,) or (1,)
        C_i.
    filters : float array (n_parts, n_features)
        To begin with.
    settings : JointSettings
    callbacks : sequence of functions
        Each is given one ``JointRecord`` per step; one that returns True ends the training.
    inner_callbacks : sequence of functions
        For ``solve``.
    checkpoint : Checkpoint or None
        Where training is saved between steps, and goes on from if something was saved there.
    """

    responder: Responder
    label: np.ndarray
    n_classes: int
    budget: np.ndarray
    filters: np.ndarray
    settings: JointSettings
    callbacks: Sequence[Callable[[JointRecord], object]] = ()
    inner_callbacks: Sequence[Callable[[Record], object]] = ()
    checkpoint: Checkpoint | None = None

    def __post_init__(self) -> None:
        self.clock = time.perf_counter()
        self.budget = np.broadcast_to(np.asarray(self.budget, dtype=np.float64), self.label.shape)
        self.filters = np.asarray(self.filters, dtype=np.float64)
        self.placed = self._respond(self.filters)
        self.centre = self.placed.responses.mean(axis=0)
        self.weights: Any = None  # until the first step
        self.penalty = 0.0
        self.weight_shares: np.ndarray | None = None
        self.filter_shares: FilterShares | None = None
        self.history: list[JointRecord] = []
        self._unsaved: dict[str, Any] | None = None

    def _respond(self, filters: np.ndarray) -> Placed:
        return respond_all(self.responder, filters, self.settings.n_jobs)

    # O, and its two kinds of steps.

    @property
    def objective(self) -> float:
        return self._objective(self.weights, self.filters, self.placed)

    def _objective(self, weights: Any, filters: np.ndarray, placed: Placed) -> float:
        hinge = weights.hinge(placed.responses, self.label)
        return weights.penalty + squared_penalty(self.penalty, filters)[0] + float((self.budget * hinge).sum())

    def _weight_problem(self) -> WeightProblem:
        return WeightProblem(self.placed.responses, self.label, self.n_classes, self.centre, self.budget)

    def learn_weights(self) -> None:
        """The best part weights for the filters of the moment."""
        settings = self.settings
        problem = self._weight_problem()
        found = problem.solve(
            tol=settings.tol,
            max_passes=settings.max_passes,
            warm=self.weight_shares,
            threads=settings.n_jobs,
            seed=settings.random_state,
            callbacks=self.inner_callbacks,
        )
        weights = problem.weights(found)
        if self.weights is None:
            length = float((self.filters**2).sum())
            balanced = 2.0 * weights.penalty / length if length > 0.0 else 0.0
            self.penalty = settings.balance * (balanced or 1.0)  # parts that tell nothing have no weights
        taken = self.weights is None or self._objective(weights, self.filters, self.placed) <= self.objective
        if taken:
            self.weights = weights
        self.weight_shares = found.alpha
        bracket = found.certificate.shifted(*squared_penalty(self.penalty, self.filters))
        self._record("weights", found, bracket, taken)

    def learn_filters(self) -> None:
        """Filters that are better for the part weights of the moment, down a bound that touches O."""
        bound = FilterBound(
            self.responder, self.weights, self.label, self.budget / self.penalty, self.placed.places,
            self.settings.n_jobs,
        )  # fmt: skip
        last = self.filters.ravel()
        solver = PartAscent(self.settings.random_state, self.settings.memory, self.settings.n_jobs)
        passes = 0
        placed: Placed | None = None
        for attempt in range(_MOST_TRIES):
            placed = None  # or there would be a third one in memory when the next filters are tried
            found = solve(
                Problem(bound, tied_to(last, _TIE)),
                solver,
                tol=self.settings.tol,
                max_passes=_PASSES * 2**attempt,
                warm=self.filter_shares,
                callbacks=self.inner_callbacks,
            )
            self.filter_shares, passes = found.alpha, passes + len(found.history)
            filters = found.weights.reshape(self.filters.shape)
            placed = self._respond(filters)
            gain = self.objective - self._objective(self.weights, filters, placed)
            bracket = self._bracket(found.certificate.shifted(*squared_penalty(_TIE / (1.0 + _TIE), last)))
            wanted = _WORTH * self.settings.bound_tol * self.objective if attempt + 1 < _PATIENCE else 0.0
            little = _little(self.objective, bracket.lower, self.settings.bound_tol)
            if gain > wanted or found.converged or found.interrupted or little:
                break
        assert placed is not None
        taken = gain > 0.0
        if taken:
            self.filters, self.placed = filters, placed
        self.filter_shares = found.alpha.without_features()
        self._record("filters", found, bracket, taken, passes)

    def _bracket(self, found: Certificate) -> Certificate:
        """Of O over filters, where ρ was divided out of the budgets: each of these is rounded."""
        share, weights = gamma(8), self.weights
        lower, upper = self.penalty * found.lower, self.penalty * found.upper
        scaled = Certificate(lower - share * abs(lower), upper + share * abs(upper), found.exact)
        return scaled.shifted(*squared_penalty(1.0, weights.table, weights.bias))

    def _record(self, step: str, found: Solution, bracket: Certificate, taken: bool, passes: int | None = None) -> None:
        last = found.history[-1] if found.history else None
        record = JointRecord(
            self.rounds + (step == "filters"), step, time.perf_counter() - self.clock, self.objective, bracket.lower,
            bracket.upper,
            len(found.history) if passes is None else passes, taken,
            last.cache_size if last and step == "filters" else 0, last.bytes if last and step == "filters" else 0,
        )  # fmt: skip
        self.history.append(record)
        if not found.interrupted:  # such a step is not whole, and will be taken anew
            self._save()
        stop = [callback(record) is True for callback in self.callbacks]
        if found.interrupted or any(stop):
            raise _Interrupted

    # The loop.

    def run(self) -> Trained:
        """Train until a round has little to add. What was saved is gone on from."""
        self._load()
        interrupted = True
        try:
            if not self.history or self.history[-1].step == "filters":
                self.learn_weights()
            while not (self.converged or self.stalled) and self.rounds < self.settings.max_rounds:
                self.learn_filters()
                self.learn_weights()
            interrupted = False
        except _Interrupted:
            pass
        except KeyboardInterrupt:
            # Between two solutions; inside of one ``solve`` takes care of it.
            if self.weights is None or not first_interrupt():
                raise
        except Exception as error:
            if self.weights is not None:
                with contextlib.suppress(AttributeError):  # errors of some kinds take nothing along
                    error.solution = self.result(False, True)  # type: ignore[attr-defined]
            raise
        finally:
            self._save(last=True)
        return self.result(self.converged and not interrupted, interrupted)

    @property
    def rounds(self) -> int:
        """Those begun."""
        return sum(record.step == "filters" for record in self.history)

    @property
    def converged(self) -> bool:
        """Whether the last round had little to add, and not for want of passes over its bound."""
        return at_rest(self.history, self.settings.tol, self.settings.bound_tol)

    @property
    def stalled(self) -> bool:
        """Whether the last round has changed nothing for all its tries: the next would begin the same bound anew.

        Part weights that ran out of passes may be better for more of them.
        """
        if not self.rounds:
            return False
        filters, weights = self.history[-2:]
        tried = filters.passes >= _PASSES * (2**_MOST_TRIES - 1)
        return tried and weights.passes < self.settings.max_passes and not (filters.taken or weights.taken)

    def result(self, converged: bool, interrupted: bool) -> Trained:
        """What there is, with a certificate of the part weights of the moment for the filters of the moment."""
        found = self._weight_problem().certify(self.weights, self.weight_shares)
        return Trained(
            self.filters, self.weights, found.shifted(*squared_penalty(self.penalty, self.filters)), self.history,
            converged, interrupted, self.weight_shares, self.penalty,
        )  # fmt: skip

    # What is saved between steps.

    def _save(self, last: bool = False) -> None:
        """Save the state after a step, if it is time to; or, ``last``, what was not saved since."""
        if self.checkpoint is None:
            return
        if not last:
            self._unsaved = self._state()
        if self._unsaved is not None and (last or self.checkpoint.due()):
            self.checkpoint.save(self._unsaved)
            self._unsaved = None

    def _state(self) -> dict[str, Any]:
        weights, shares = self.weights, self.filter_shares
        images = [] if shares is None else shares.images
        return {
            "filters": self.filters,
            "table": weights.table,
            "bias": weights.bias,
            "centre": self.centre,
            "penalty": self.penalty,
            "weight_shares": np.array(self.weight_shares),
            "sizes": np.array([len(image) for image in images], np.int64),
            "rivals": np.concatenate([image.rival for image in images]) if images else np.empty(0, np.int64),
            "shares": np.concatenate([image.share for image in images]) if images else np.empty(0),
            "places": np.empty(0, np.int32) if shares is None else shares.places,
            "history": [tuple(vars(record).values()) for record in self.history],
            "seconds": time.perf_counter() - self.clock,
        }

    def _load(self) -> None:
        saved = None if self.checkpoint is None else self.checkpoint.load()
        if saved is None:
            return
        self.filters, self.centre = np.array(saved["filters"]), np.array(saved["centre"])
        self.weights = PartWeights(np.array(saved["table"]), np.array(saved["bias"]), self.centre)
        self.placed = self._respond(self.filters)
        self.penalty = float(saved["penalty"])
        self.weight_shares = np.array(saved["weight_shares"])
        self.history = [JointRecord(*values) for values in saved["history"]]
        self.clock -= float(saved["seconds"])
        if saved["sizes"].size:
            ends = np.cumsum(saved["sizes"])[:-1]
            shares = np.split(np.array(saved["shares"]), ends)
            rivals = np.split(np.array(saved["rivals"]), ends)
            images = [ImageShare(*pair) for pair in zip(rivals, shares, strict=True)]
            self.filter_shares = FilterShares(images, np.array(saved["places"]))


def at_rest(history: Sequence[JointRecord], tol: float, bound_tol: float) -> bool:
    """Whether the last round had little to add, and not for want of passes over its bound."""
    if len(history) < 3 or history[-1].step != "weights":
        return False
    before, filters, after = history[-3:]
    solved = filters.upper - filters.lower <= tol * filters.upper
    tried = filters.taken or solved or _little(before.objective, filters.lower, bound_tol)
    return tried and _little(before.objective, after.objective, bound_tol)


def _little(before: float, after: float, share: float) -> bool:
    return before - after <= share * before


def memory_for_rivals(memory: int, responder: Responder, n_parts: int, n_rivals: int = 1) -> int:
    """What is left of so many bytes for hard examples, besides responses and places.

    There are responses at the filters of the moment and at those that are tried (or a copy, for part weights), and
    places likewise, and those where rivals were seen last. So many rivals of each image must find room.
    """
    patches = responder.patches
    numbers = len(patches) * n_parts * responder.pooling.n_regions
    taken = 2 * 8 * numbers + 3 * 4 * numbers * patches.n_views
    least = taken + n_rivals * len(patches) * row_bytes(n_parts * patches.n_features, responder.dtype)
    if memory < least:
        raise ValueError(
            f"memory={memory} bytes is too little: {n_parts} parts with {patches.n_features} features and "
            f"{responder.pooling.n_regions} regions, trained on {len(patches)} images, need at least {least} bytes. "
            "Use fewer parts, features of fewer dimensions, or more memory."
        )
    return memory - taken

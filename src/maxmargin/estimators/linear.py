"""What the linear estimators share: settings, one way from data to a certified solution, and save."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..checkpoint import CheckpointFolder
from ..constraints import Blocked
from ..constraints.base import Closed
from ..data.arrays import as_rows
from ..data.errors import DataError
from ..distributed.choose import choose_sharded
from ..distributed.sharded import Sharded
from ..problem import Certificate, Problem, Record, Rows, Solution
from ..protocols import Chunk, ClosedConstraints, Regularizer, Seekable
from ..regularizers import L2, Blocks
from ..rounding import rounded_down
from ..solvers import StreamAscent, best_start, certify, choose, choose_blocked, solve
from . import inputs, sourced
from .certified import CertifiedEstimator, Run
from .clustered import Cluster, as_source, seed_of, solve_on_shards

if TYPE_CHECKING:
    from ..report.story import Data, Story

_STREAM_MEMORY = 2**28  # bytes of rows that a stream keeps if nothing else is said


class LinearEstimator(CertifiedEstimator):
    """Base of the linear estimators. Subclasses turn (X, y) into constraints and weights into attributes."""

    n_features_in_: int
    _alpha: np.ndarray | None
    origin_: dict[str, Any]
    certificate_: Certificate
    history_: list[Record]
    n_passes_: int

    def _check_settings(self) -> None:
        super()._check_settings()
        self._bias()

    def _bias(self) -> float:
        if not self.fit_intercept:
            return 0.0
        return inputs.check_positive("intercept_scaling", self.intercept_scaling)

    def _rows(self, X: Any) -> Rows:
        return as_rows(X, bias=self._bias())

    def _budget(self, weights: np.ndarray | None) -> np.ndarray:
        """C_i for every example, or one C for all."""
        return inputs.check_budget(self.C, weights)

    def _regularizer(self, n_features: int, n_classes: int = 1) -> Regularizer:
        """The user's regularizer for the features, l2 for the intercept, the same for every class.

        Weights of several classes are stored feature by feature (see ``constraints.classes``).
        """
        features = self._own_regularizer()
        if self.regularizer is None:
            return features
        parts = []
        for k in range(n_classes):
            parts.append((np.arange(n_features) * n_classes + k, features))
            if self.fit_intercept:
                parts.append((np.array([n_features * n_classes + k]), L2()))
        return features if len(parts) == 1 else Blocks(parts)

    def _warm(self, shape: tuple[int, ...]) -> np.ndarray | None:
        """The last dual variables, if they belong to a problem of this shape and are wanted."""
        alpha = getattr(self, "_alpha", None)
        return alpha if self.warm_start and alpha is not None and alpha.shape == shape else None

    def _solve(
        self,
        problem: Problem,
        warm: np.ndarray | None,
        callbacks: Sequence[Callable[[Record], object]] = (),
        threads: int | None = None,
        checkpoint: CheckpointFolder | None = None,
    ) -> Solution:
        means: dict[str, Any] = {
            "tol": self.tol,
            "seed": self.random_state,
            "threads": inputs.check_threads(self.n_jobs) if threads is None else threads,
            "memory": inputs.check_memory(self.memory),
            "warm": warm is not None,
        }
        if isinstance(problem.constraints, Sharded):
            return self._solve_on_shards(problem, warm, callbacks, means["threads"], checkpoint)
        if isinstance(problem.constraints, Blocked):
            scratch = None if checkpoint is None else str(checkpoint.folder)
            solver = choose_blocked(problem, self.solver, scratch=scratch, **means)
        else:
            solver = choose(problem, self.solver, **means)
            if warm is not None:
                # Variables at their bound grow with C, those inside hardly do: which kind matters more is tried out.
                ratio = self.C / self._fitted_C
                warm = best_start(problem, [warm, warm * ratio]) if ratio != 1.0 else warm
        return solve(
            problem,
            solver,
            tol=self.tol,
            max_passes=int(self.max_passes),
            warm=warm,
            callbacks=callbacks,
            checkpoint=checkpoint,
        )

    def _solve_on_shards(
        self,
        problem: Problem,
        warm: np.ndarray | None,
        callbacks: Sequence[Callable[[Record], object]],
        threads: int,
        checkpoint: CheckpointFolder | None,
    ) -> Solution:
        """The same with examples on the workers of a cluster."""
        resumed = checkpoint is not None and checkpoint.holds_a_state  # then workers have saved what is better
        problem.constraints.begin(None if resumed else warm)  # type: ignore[attr-defined]
        solver = choose_sharded(
            problem, self.solver, tol=self.tol, seed=self.random_state, threads=threads, warm=warm is not None
        )
        return solve_on_shards(
            problem, solver, tol=self.tol, max_passes=int(self.max_passes), callbacks=callbacks, checkpoint=checkpoint
        )

    @contextlib.contextmanager
    def _on_cluster(
        self, source: Seekable, run: Run, fingerprint: Callable[[], str], problems: list[Problem], facts: Any = None
    ) -> Iterator[list[Problem]]:
        """The problems with their examples on the workers of a cluster, if the run is to have one.

        Worker k is asked ``_shard_problem(its piece, (q, facts))`` for problem q.
        """
        if run.cluster is None:
            yield problems
            return
        with Cluster(run, lambda: self._identity(fingerprint)) as cluster:
            memory = inputs.check_memory(self.memory)
            cluster.start_linear(self, source, memory)
            means = {"seed": seed_of(self.random_state), "memory": memory}
            parts = [""] if len(problems) == 1 else [f"class-{q}/" for q in range(len(problems))]
            yield [
                cluster.problem(problem, (q, facts), part, **means)
                for q, (problem, part) in enumerate(zip(problems, parts, strict=True))
            ]

    def _blocked(self, source: Seekable, block: Callable[[Chunk], Closed], n_classes: int = 1, **shape: Any) -> Problem:
        """The problem whose blocks are the chunks of a source."""
        width = int(source.n_features or 0)
        constraints = Blocked(source, block, (width + (self._bias() != 0.0)) * n_classes, **shape)
        return Problem(constraints, self._regularizer(width, n_classes))

    def _fit_one(self, problem: Problem, run: Run, fingerprint: Callable[[], str]) -> Solution:
        """Solve the one problem of an estimator, hot-started if that is wanted and possible."""
        warm = self._warm(problem.constraints.dual_shape)  # type: ignore[attr-defined]
        with self._progress() as shown, self._saving(run, fingerprint) as folder:
            return self._solve(problem, warm, (*shown, *run.callbacks), checkpoint=folder)

    @contextlib.contextmanager
    def _readable(self, source: Any, run: Run = Run()) -> Iterator[Seekable]:  # noqa: B008
        """The source in a form that can be read in any order."""
        folder = None if run.checkpoint is None else Path(run.checkpoint)
        with sourced.readable(source, inputs.check_memory(self.memory), folder, run.cluster is not None) as data:
            yield data

    def _take_shape(self, source: Seekable, given: Any) -> None:
        """The number of features, and how to read more of the same data as was given."""
        if source.n_features is None:
            raise DataError("This source holds structured examples; linear estimators need rows of a matrix.")
        self.n_features_in_ = int(source.n_features)
        self.origin_ = dict(getattr(given, "origin", {}))
        self.__dict__.pop("feature_names_in_", None)

    def _check_width(self, source: Seekable) -> None:
        if source.n_features != self.n_features_in_:
            raise ValueError(
                f"The source has {source.n_features} features, this {type(self).__name__} was trained with "
                f"{self.n_features_in_}. Give maxmargin.data.open n_features={self.n_features_in_} if it is the rest "
                "of the same data."
            )

    def _absorb(
        self,
        blocks: Sequence[ClosedConstraints],
        regularizer: Regularizer,
        n_weights: int,
        columns: tuple[int, ...] = (),
    ) -> list[np.ndarray]:
        """Learn from one more chunk of a stream, one block of constraints for each problem; returns the weights."""
        states = getattr(self, "_stream", None)
        if states is None:
            memory = inputs.check_memory(self.memory) or _STREAM_MEMORY
            solver = StreamAscent(
                memory // len(blocks), random_state=self.random_state, n_threads=inputs.check_threads(self.n_jobs)
            )
            states = [solver.start(regularizer, n_weights, columns) for _ in blocks]
            self._stream, self._stream_solver, self._stream_began = states, solver, self._settings()
        for state, block in zip(states, blocks, strict=True):
            self._stream_solver.absorb(state, block)
        self._alpha, self._fitted_C = None, float(self.C)
        self.__dict__.pop("certificate_", None)
        self.history_, self.n_passes_ = [], 1
        return [state.weights().copy() for state in states]

    def _stream_certificate(self) -> Certificate:
        """What the examples seen so far prove; found when somebody asks, because it takes a pass over the pool."""
        return Certificate(rounded_down(*(state.proved() for state in self._stream)), np.inf)

    def _check_stream(self) -> None:
        """A stream goes on only where its examples are still at hand, and still those of the same problem."""
        self._check_settings()
        if hasattr(self, "_stream"):
            changed = [k for k, v in self._settings().items() if self._stream_began[k] != v]
            if changed:
                told = ", ".join(f"{k} from {self._stream_began[k]} to {self._settings()[k]}" for k in changed)
                raise ValueError(f"Settings of a stream must not change between chunks: {told}. Use a new estimator.")
        elif hasattr(self, "coef_"):
            warnings.warn(
                f"This {type(self).__name__} was trained by fit, or loaded from a file: its examples are not at hand. "
                "So partial_fit begins anew and forgets it.",
                UserWarning,
                stacklevel=3,
            )

    def _forget_stream(self) -> None:
        for name in ("_stream", "_stream_solver", "_stream_began"):
            self.__dict__.pop(name, None)

    def _shares(self) -> np.ndarray | None:
        """Dual variables of the training data, as far as they are known."""
        if self._alpha is None and hasattr(self, "_stream"):
            shares = [state.shares() for state in self._stream]
            if any(alpha is None for alpha in shares):
                return None
            return shares[0] if len(shares) == 1 else np.stack(shares)
        return self._alpha

    def _flat_weights(self) -> np.ndarray:
        """coef_ and intercept_ as the solver's weight vector, one column per class."""
        coef = np.atleast_2d(self.coef_)
        if not self.fit_intercept:
            return coef.T.ravel()
        intercept = np.atleast_1d(self.intercept_) / self._bias()
        return np.vstack([coef.T, intercept]).ravel()

    def _split_weights(self, w: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
        """(coef, intercept) with shapes (n_classes, n_features) and (n_classes,)."""
        table = w.reshape(-1, n_classes)
        if not self.fit_intercept:
            return np.ascontiguousarray(table.T), np.zeros(n_classes)
        return np.ascontiguousarray(table[:-1].T), table[-1] * self._bias()

    def _certify(self, problem: Problem, w: np.ndarray, alpha: np.ndarray | None) -> Certificate:
        """Bounds from nothing; dual variables that do not fit the data are left out (a lower bound at zero)."""
        if alpha is not None and alpha.shape != problem.constraints.dual_shape:  # type: ignore[attr-defined]
            alpha = None
        return certify(problem, w, alpha)

    def _story(self, data: Data) -> Story:
        from ..report.linear import story

        return story(self, self._report_source(data), data.name)

    def _report_source(self, data: Data) -> Any:
        """The data of a report in chunks, however it was given."""
        if not data.given or data.is_source:
            return data.X
        X, y = inputs.check_matrix(self, data.X, data.y, reset=False)
        return as_source(X, y)

    @property
    def support_(self) -> np.ndarray:
        """Examples with a dual variable that counts (above 1e-6 of the largest): the rest could be dropped."""
        check_is_fitted(self)
        size = np.abs(self.dual_coef_).max(axis=0)
        return np.flatnonzero(size > 1e-6 * size.max())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def solve_side_by_side(tasks: list[Callable[[Callable[[Record], object]], Solution]], threads: int) -> list[Solution]:
    """Independent solves on several threads (kernels release the GIL). Ctrl-C ends all of them in good order.

    Each task is given a callback that asks it to stop once an interrupt has been seen.
    """
    stop = threading.Event()

    def asked_to_stop(_: Record) -> bool:
        return stop.is_set()

    def run(task: Callable[[Callable[[Record], object]], Solution]) -> Solution:
        solution = task(asked_to_stop)
        if solution.interrupted:
            stop.set()
        return solution

    if threads == 1:
        return [run(task) for task in tasks]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        futures = []
        try:
            futures = [pool.submit(run, task) for task in tasks]
            return [f.result() for f in futures]
        except KeyboardInterrupt:
            # Only this thread hears of Ctrl-C: the others are told, and finish with what they have.
            stop.set()
            if len(futures) < len(tasks):
                raise
            return [replace(f.result(), interrupted=True) for f in futures]

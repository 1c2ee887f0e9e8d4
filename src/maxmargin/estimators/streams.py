"""Training on a stream: what is kept between two chunks of it (``training.partial_fit``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import schema
from ..constraints import Searched
from ..constraints.oracle import Window
from ..problem import Planes, Problem, Solution, Totals
from ..rounding import rounded_down
from ..solvers import choose
from ..solvers.certificate import lower_bound
from ..solvers.searchers import dismiss
from ..solvers.stream_ascent import StreamAscent
from . import inputs

if TYPE_CHECKING:
    from .certified import Shares
    from .training import Task

_MEMORY = 2**28  # bytes of rows that a stream keeps if nothing else is said


class ClosedStream:
    """Rows that matter, of one problem or of several side by side."""

    n_passes = 1

    def __init__(self, task: Task[Any, Any], problems: list[Problem]) -> None:
        memory = inputs.check_memory(task.memory) or _MEMORY
        self._solver = StreamAscent(
            memory // len(problems), random_state=task.random_state, n_threads=inputs.check_threads(task.n_jobs)
        )
        self.states = [self._solver.start(problem) for problem in problems]
        self.begun = False
        self.began = task._stream_settings()

    def absorb(self, task: Task[Any, Any], problems: list[Problem], facts: object) -> None:
        """Learn from the constraints of one more chunk."""
        try:
            self._solver.absorb(problems, self.states)
        finally:
            self.begun |= any(state.n_seen > 0 for state in self.states)

    def weights(self) -> list[np.ndarray]:
        return [state.weights().copy() for state in self.states]

    def lower(self) -> float:
        """What the examples seen so far prove."""
        return rounded_down(*(state.proved() for state in self.states))

    @property
    def alpha(self) -> np.ndarray | None:
        """Dual variables of all examples, as far as they are known."""
        shares = [state.shares() for state in self.states]
        if any(alpha is None for alpha in shares):
            return None
        return shares[0] if len(shares) == 1 else np.stack(shares)  # type: ignore[arg-type]


class OpenStream:
    """The cache of what searches have found."""

    def __init__(self, task: Task[Any, Any], problems: list[Problem]) -> None:
        self.state: Any = None
        self._regularizer = problems[0].regularizer
        self.n_passes = 0
        self.began = task._stream_settings()

    @property
    def begun(self) -> bool:
        return self.n_passes > 0

    def absorb(self, task: Any, problems: list[Problem], facts: Any) -> None:
        """Search among the examples of one more chunk, and learn; weights may have moved to ``facts.places``."""
        state, chunk = self.state, problems[0]
        regularizer = chunk.regularizer
        regularizer.shape(chunk.n_weights)  # complains before anything has changed
        if state is not None:
            state.dismiss()
        window = Window(chunk.searched.oracle, 0 if state is None else state.cache.n_examples)
        problem = Problem(Searched(window, chunk.searched.budget), regularizer)
        solver: Any = choose(
            problem,
            task.solver,
            seed=task.random_state,
            threads=inputs.check_threads(task.n_jobs),
            memory=inputs.check_memory(task.memory),
        )
        if not hasattr(solver, "absorb"):
            raise ValueError(f"partial_fit needs solver='auto' or 'oracle_ascent', got {task.solver!r}.")
        if state is None:
            state = solver.start(problem)
            state.begin_stream()
            if task._frozen_before is not None:
                self._go_on(task, state, facts.places)
        else:
            if facts.places is not None:
                state.rename(facts.places, regularizer, chunk.n_weights)
            state.grow(window.n_examples, chunk.searched.budget)
        try:
            self.state = solver.absorb(problem, state, task.tol)
        except BaseException:
            state.shrink(window.first)  # as if the chunk had not come; features that it named may stay
            raise
        finally:
            dismiss(window)
            self._regularizer = regularizer
        self.n_passes += 1

    def _go_on(self, task: Any, state: Any, places: np.ndarray | None) -> None:
        """From sums that a file has kept. Shares were feasible under the C of then; a smaller one scales them down."""
        before, n = task._frozen_before, state.cache.n_weights
        places = np.arange(n) if places is None else places
        v, v_error = np.zeros((2, n))
        mean = self._regularizer.weights(v)
        v[places], v_error[places], mean[places] = before["v"], before["v_error"], task.coef_
        linear, linear_error = before["linear"], before["linear_error"]
        state.resume(Totals(linear, v, linear_error, v_error), before["n_seen"], mean)
        if task._fitted_C > task.C:
            state.cache.scale_away(float(task.C / task._fitted_C))
            state.recombine()

    def frozen(self) -> dict[str, Any]:
        """What all examples so far contribute, for a file from which the stream goes on."""
        linear, v, linear_error, v_error = self.state.cache.totals(self.state.inner.alpha)
        largest = float(v_error.max(initial=0.0))
        return {"n_seen": self.state.n_seen, "v": v, "v_error": largest, "linear": linear, "linear_error": linear_error}

    def weights(self) -> list[np.ndarray]:
        return [self.state.averaged]

    def lower(self) -> float:
        """Planes that were spilled are known by their sums alone: they were feasible when they were frozen."""
        return lower_bound(Problem(self.state.cache, self._regularizer), self.state.inner.alpha)

    @property
    def alpha(self) -> Planes:
        return self.state.alpha


class FrozenSums:
    """Part of the base of structured estimators: a stream that goes on after it was saved and loaded."""

    coef_: np.ndarray
    _stream: Any
    _stream_settings: Callable[[], dict[str, str]]
    _check_unchanged: Callable[[dict[str, str]], None]
    _frozen_before: Any = None
    """The sums of a stream that was loaded from a file."""
    _began: dict[str, str] = {}  # noqa: RUF012 replaced as a whole
    """Settings of that stream, but for a model of the user's, which is no part of the file."""

    @property
    def _frozen(self) -> dict[str, Any]:
        """What a file keeps of a stream: the sums of all its constraints, which never move again.

        Not if settings have changed meanwhile: another problem would go on from them.
        """
        began = self._began if self._stream is None else self._stream.began
        if not began or not began.items() <= self._stream_settings().items():
            raise AttributeError("There is no stream, or it is that of other settings.")
        return self._frozen_before if self._stream is None else self._stream.frozen()

    @_frozen.setter
    def _frozen(self, content: dict[str, Any]) -> None:
        looks = {"n_seen": "int", "v": "float[w]", "v_error": "float", "linear": "float", "linear_error": "float"}
        if set(content) != set(looks):
            raise ValueError(f"the sums of a stream are {', '.join(looks)}, got {', '.join(content)}")
        schema.check("the sums of a stream", content, looks)
        self._frozen_before = content
        self._began = self._stream_settings()
        if isinstance(getattr(self, "model", None), str):
            del self._began["model"]

    def _trained_before(self) -> None:
        if self._frozen_before is None:
            raise ValueError(
                f"This {type(self).__name__} was trained by fit: the constraints that partial_fit goes on from are "
                "not at hand, nor in a file. Start with partial_fit on a new estimator; that can be saved, loaded and "
                "gone on with."
            )
        self._check_unchanged(self._began)
        if self._frozen_before["v"].size != self.coef_.size:
            raise ValueError(f"The sums of the stream are of {self._frozen_before['v'].size} weights.")

    def _store(self, solutions: list[Solution], alpha: Shares) -> None:
        super()._store(solutions, alpha)  # type: ignore[misc]
        self._frozen_before, self._began = None, {}

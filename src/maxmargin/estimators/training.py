"""``fit``, ``partial_fit``, ``certify`` and ``path``, once for all estimators that end with a convex problem.

An estimator brings its parameters, their checks, and a task: what its data mean. Here is what is done with them::

    X, y ─▶ _opened ─▶ _survey ─▶ _problems ─▶ holder ─▶ _chosen_solver ─▶ solve ─▶ _learned ─▶ _store
            a source   facts      constraints  memory,   solver                     attributes  certificate_,
                                  of chunks    disk,                                            a warning
                                               workers

Estimators of rows have these methods in ``linear.py``, those of searched answers in ``structured.py``; ``_arrays``,
``_survey`` and ``_learned`` are in each estimator's own file; ``_chosen_solver`` and ``_store``, for all, are in
``certified.py``.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np
from sklearn.base import clone

from ..constraints.duals_on_disk import stacked
from ..data.source_checks import check_given
from ..problem import Certificate, Problem, Record, Solution
from ..protocols import Chunk, OracleError, Source
from ..solvers import certify as certify_problem
from ..validation import check_object, is_source, shown
from . import inputs
from .certified import CertifiedEstimator, Run, Shares, total
from .fingerprints import fingerprint_of
from .fit_callbacks import changing, keep_despite
from .holders import Holder, InMemory
from .streams import ClosedStream, OpenStream
from .workers import OnWorkers

F = TypeVar("F")
S = TypeVar("S", bound=Source)


class Task(CertifiedEstimator, Generic[F, S]):
    """Base of the estimators that end with a convex problem: what the functions below ask of them.

    Subclasses say what their data mean. ``F`` are their facts: what is to be known of all data beforehand.
    """

    coef_: np.ndarray
    _size: Callable[[Chunk], int] = staticmethod(len)
    """How many dual variables, or rows of them, a chunk has in each problem."""
    _arrays: Callable[..., InMemory]
    """Data in memory, checked: ``_arrays(X, reset=, y=, …)``. ``reset``: its width is not known yet."""
    _new_stream: Callable[..., ClosedStream | OpenStream]
    """What is kept between chunks of a stream: ``_new_stream(self, problems)``."""

    @contextmanager
    def _opened(self, X: Any, run: Run, *, reset: bool, **others: Any) -> Iterator[S]:
        """Data as users give it, checked: a source, or ``InMemory``."""
        if not is_source(X):
            yield self._arrays(X, reset=reset, **others)  # type: ignore[misc]
            return
        given = [name for name, value in others.items() if value is not None]
        if given:
            raise ValueError(
                f"A source holds inputs, answers and weights of its examples; {' and '.join(given)} must not be given "
                "beside it. Data in memory with answers becomes one source through maxmargin.data.open(X, labels=…)."
            )
        check_given(X)
        with self._read(X, run, reset) as source:
            yield source

    def _read(self, source: Source, run: Run, reset: bool) -> AbstractContextManager[S]:
        """A source in the form in which it is read again and again."""
        return nullcontext(source)  # type: ignore[arg-type]

    def _survey(self, source: S) -> tuple[S, F]:
        """A look at all of the data: the source, perhaps in another form, and what is to be known of it."""
        raise NotImplementedError

    def _known(self, source: S) -> tuple[S, F]:
        """The same for other data, where the estimator is fitted."""
        return self._survey(source)

    def _next_chunk(self, source: InMemory) -> tuple[InMemory, F]:
        """The same for a chunk of a stream."""
        return self._survey(source)  # type: ignore[arg-type, return-value]

    def _problems(self, source: S, facts: F, which: Sequence[int] | None = None) -> list[Problem]:
        """The problems to be solved, all of them or some: constraints of the source, and the regularizer."""
        raise NotImplementedError

    def _warm(self, holder: Holder) -> Sequence[Shares]:
        """Dual variables to start from, for each problem; None where there are none."""
        raise NotImplementedError

    def _solved(self, problem: Problem, warm: Shares, solve: Callable[[Problem, Shares], Solution]) -> Solution:
        """What ``solve`` makes of a problem, which may be brought into another form for it."""
        return solve(problem, warm)

    def _centre(self, problem: Problem, warm: Shares) -> np.ndarray | None:
        """Weights to start from, for regularizers that dual variables alone do not tell the weights of."""
        return None

    def _learned(self, facts: F, weights: list[np.ndarray]) -> None:
        """Keep what was learned: the weights of each problem become attributes."""
        raise NotImplementedError

    def _remember(self, source: S, facts: F) -> None:
        """Keep what else is to be known of the training data."""

    def _weights(self) -> list[np.ndarray]:
        """The weights of each problem, from the attributes."""
        return [self.coef_]

    def _shares_for(self, problems: list[Problem]) -> Sequence[Shares]:
        """The dual variables of the last fit, as far as they belong to these problems; else None."""
        raise NotImplementedError

    def _for_workers(self, source: S) -> S:
        """The data in a form in which it can be shared out among workers."""
        return source

    def _held(self, piece: S, memory: int | None) -> S:
        """A worker's piece of the data, in memory if there is room."""
        return piece

    def _stream_settings(self) -> dict[str, str]:
        """What must not change while a stream goes on."""
        return self._settings()

    def _trained_before(self) -> None:
        """A stream is to begin, but there was a fit before."""
        raise NotImplementedError

    def _check_stream(self) -> None:
        """A stream goes on only where what it has left is still at hand, and still of the same problem."""
        self._check_settings()
        if self._stream is not None:
            self._check_unchanged(self._stream.began)
        elif "coef_" in vars(self):
            self._trained_before()

    def _check_unchanged(self, began: dict[str, str]) -> None:
        """The settings that a stream began with are those of its next chunk."""
        now = self._stream_settings()
        changed = ", ".join(f"{k} from {v} to {now[k]}" for k, v in began.items() if now[k] != v)
        if changed:
            raise ValueError(f"Settings of a stream must not change between chunks: {changed}. Begin a new one.")


T = TypeVar("T", bound=Task)
E = TypeVar("E", bound=CertifiedEstimator)


def fit(task: T, X: object, run: Run, **others: Any) -> T:
    """Train on data in memory, from a source or on a cluster. If it fails, the estimator is what it was before.

    But where a search fails after something was learned, that is kept.
    """
    with changing(task, run.callbacks) as callbacks:
        run = replace(run, callbacks=callbacks)
        task._check_settings()
        with task._opened(X, run, reset=True, **others) as given:
            source, facts = task._survey(given)
            run = task._identified(run, lambda: fingerprint_of(given))
            kind = Holder if run.cluster is None else OnWorkers
            with closing(kind(task, source, facts, run)) as holder:
                try:
                    judged = replace(run, callbacks=_judges(task, facts, holder, callbacks))
                    solutions = _solutions(task, holder, judged)
                except (OracleError, MemoryError) as error:
                    so_far = getattr(error, "solution", None)
                    if so_far is not None and so_far.history and not holder.local[0].constraints.closed:
                        task._learned(facts, [so_far.weights])
                        task._store([so_far], so_far.alpha)
                        keep_despite(error, task)
                    raise
            task._learned(facts, [solution.weights for solution in solutions])
            alpha = [solution.alpha for solution in solutions]
            task._store(solutions, alpha[0] if len(alpha) == 1 else stacked(alpha))
            task._warn_unfinished(solutions)
            task._remember(source, facts)
    return task


class _Judge:
    """A callback that is given the estimator with the weights of each pass."""

    def __init__(self, judge: Callable[[Record, Callable[[], Any]], object], task: Task, facts: Any) -> None:
        self.judge, self.task, self.facts = judge, task, facts

    def weighed(self, record: Record, weights: Callable[[], np.ndarray]) -> object:
        return self.judge(record, lambda: self._fitted(weights().copy()))

    def _fitted(self, weights: np.ndarray) -> Task:
        found = copy.copy(self.task)
        found._learned(self.facts, [weights])
        return found


def _judges(task: Task, facts: Any, holder: Holder, callbacks: Iterable[Any]) -> tuple[Any, ...]:
    """The callbacks; those that judge are given the estimator, if there is one problem whose weights are its own."""
    if len(holder.problems) > 1:
        return tuple(callbacks)
    return tuple(_Judge(c.judge, task, facts) if hasattr(c, "judge") else c for c in callbacks)


def _solutions(task: Task, holder: Holder, run: Run) -> list[Solution]:
    """The solutions of all problems of a fit. Several of them share the threads, one for each."""
    several = len(holder.problems) > 1
    threads = 1 if several else inputs.check_threads(task.n_jobs)
    warm = task._warm(holder)
    with task._progress() as progress:
        callbacks = (*progress, *run.callbacks)

        def solve(k: int, stop: Callable[[Record], object]) -> Solution:
            with task._saving(run, f"class-{k}" if several else "") as folder:
                return holder.solve(k, warm[k], threads, (*callbacks, stop), folder)

        return _side_by_side(solve, len(holder.problems), holder.at_a_time() if several else 1)


def _side_by_side(solve: Callable[[int, Callable[[Record], object]], Solution], n: int, threads: int) -> list[Solution]:
    """Independent solves on several threads (kernels release the GIL). Ctrl-C ends all of them in good order.

    Each is given a callback that asks it to stop once an interrupt has been seen.
    """
    stop = threading.Event()

    def asked_to_stop(_: Record) -> bool:
        return stop.is_set()

    def one(k: int) -> Solution:
        solution = solve(k, asked_to_stop)
        if solution.interrupted:
            stop.set()
        return solution

    if threads == 1:
        return [one(k) for k in range(n)]
    with ThreadPoolExecutor(threads) as pool:
        futures = []
        try:
            futures = [pool.submit(one, k) for k in range(n)]
            return [f.result() for f in futures]
        except KeyboardInterrupt:
            # Only this thread hears of Ctrl-C: the others are told, and finish with what they have.
            stop.set()
            if len(futures) < n:
                raise
            return [replace(f.result(), interrupted=True) for f in futures]


def partial_fit(task: T, X: object, known: dict[str, Any] | None = None, **others: Any) -> T:
    """Learn from one more chunk of a stream. ``known`` is what is said of chunks to come."""
    task._check_stream()
    stream = task._stream
    with changing(task, ()):
        source, facts = task._next_chunk(task._arrays(X, reset=stream is None, **others), **(known or {}))
        if stream is not None and not task._size(source.labels()):
            return task  # nothing to learn from
        problems = task._problems(source, facts)
        stream = task._new_stream(task, problems) if stream is None else stream
    try:
        stream.absorb(task, problems, facts)
    finally:
        if stream.begun:  # what came before a chunk that failed is still there
            task._learned(facts, stream.weights())
            task._stream, task._alpha, task._fitted_C = stream, None, float(task.C)
            task.__dict__.pop("certificate_", None)  # found when somebody asks: it takes a pass over what is kept
            task.history_, task.n_passes_ = [], stream.n_passes
    return task


def certify(task: Task, X: Any, exact_seconds: float = 0.0, **others: Any) -> Certificate:
    """Bounds on the optimum of the training problem on some data, from weights and dual variables alone.

    Exact searches may take ``exact_seconds`` where those of training have left a gap. Says so where nothing was fitted,
    or other data was than is given now.
    """
    task._check_trained()
    exact_seconds = inputs.check_positive("exact_seconds", exact_seconds, zero=True)
    with task._opened(X, Run(), reset=False, **others) as given:
        problems = task._problems(*task._known(given))
        parts = zip(problems, task._weights(), task._shares_for(problems), strict=True)
        found = [certify_problem(problem, w, alpha, exact_seconds) for problem, w, alpha in parts]
    return task._compared(found[0] if len(found) == 1 else total(found))


def path(
    estimator: E,
    X: object,
    y: object,
    *,
    C: Iterable[float] | None = None,
    group_norm: Iterable[float] | None = None,
    **fit_params: Any,
) -> list[E]:
    """Fit the estimator for every C, or for every strength of the group norm, each fit hot-started from the one before.

    Ascending values are the fast direction; with a group norm they are the only one: weights that are all zero would
    have nothing to choose latent values by. Every step carries its own certificate. With latent variables a path
    is one way among many: a fit of its own may end lower, or higher.

    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import LinearSVC, path
    >>> X, y = load_iris(return_X_y=True)
    >>> steps = path(LinearSVC(random_state=0), X, y, C=[0.01, 0.1, 1.0])
    >>> [s.C for s in steps], all(s.certificate_.relative_gap <= 1e-3 for s in steps)
    ([0.01, 0.1, 1.0], True)
    """
    check_object("estimator", estimator)
    given = {name: values for name, values in (("C", C), ("group_norm", group_norm)) if values is not None}
    if len(given) != 1:
        raise ValueError("path needs the values of one parameter: C=[...] or group_norm=[...].")
    ((name, values),) = given.items()
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"{name} must be a list of values, got {shown(values)}.")
    if not isinstance(estimator, CertifiedEstimator):
        raise ValueError(
            f"estimator must be one of maxmargin's that starts from an earlier fit, such as LinearSVC() or "
            f"SequenceSVM(), got {shown(estimator)}."
        )
    if name not in estimator.get_params(deep=False):
        raise ValueError(f"{type(estimator).__name__} has no parameter {name}; LatentStructuralSVM has. Use C=[...].")
    values = list(values)
    if not values:
        raise ValueError(f"{name} is an empty list. Give the values to fit for, such as {name}=[0.1, 1.0].")
    for value in values if name == "C" else ():
        inputs.check_positive(name, value)  # the last one too, before the first is fitted
    return list(steps_of_path(estimator, X, y, name, values, fit_params))


def steps_of_path(
    estimator: E, X: object, y: object, name: str, values: Iterable[float], options: dict[str, Any]
) -> Iterator[E]:
    """The fits of ``path`` one by one, for those who may stop before the last."""
    before: E | None = None
    for value in values:
        step = clone(estimator).set_params(**{name: value}, warm_start=True)
        if before is not None:
            step._begin_like(before)
        before = step.fit(X, y, **options)
        yield before.set_params(warm_start=estimator.warm_start)

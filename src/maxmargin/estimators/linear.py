"""What the linear estimators share: settings, the way from rows to problems, and the way back to attributes."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from .. import losses
from ..constraints import Blocked
from ..constraints.base import Closed
from ..data.arrays import canonical
from ..data.chunked import origin_of
from ..data.errors import DataError
from ..data.source_checks import check_chunk
from ..problem import Certificate, Planes, Problem
from ..protocols import Chunk, Loss, Regularizer, Seekable, Source
from ..regularizers import L2, Blocks
from . import inputs, training
from .certified import Folder, Run, Shares, Workers
from .fit_callbacks import Callback, users_line
from .holders import Holder, InMemory, is_in_memory, readable
from .inputs import Column, Matrix
from .streams import ClosedStream
from .training import Task
from .workers import gathered

if TYPE_CHECKING:
    from ..report.content import Data, ReportContent

_MOST_COLUMNS = 2**32 - 1  # that kernels can address
_EMPTY = np.empty(0, np.int32)


@dataclass(frozen=True)
class RowFacts:
    """What is known of all rows before any of them becomes a constraint.

    Parameters
    ----------
    n_features : int
    n_problems : int
        Problems to be solved side by side.
    n_columns : int
        Vectors of weights in each.
    classes : array
        Empty where there are none.
    factors : array (n_classes,) or None
        Of C, by class.
    """

    n_features: int
    n_problems: int = 1
    n_columns: int = 1
    classes: np.ndarray = field(default_factory=lambda: _EMPTY)
    factors: np.ndarray | None = None

    def for_pieces(self) -> RowFacts:
        """What workers need to know."""
        return self


class WithIntercept:
    """Base of estimators with ``coef_`` and ``intercept_``. A table has a row for each vector of weights: those of the
    features, then that of the constant ``_bias()``, if there is one."""

    fit_intercept: bool
    intercept_scaling: float
    coef_: np.ndarray
    intercept_: np.ndarray | float

    def _bias(self) -> float:
        if not self.fit_intercept:
            return 0.0
        return inputs.check_positive("intercept_scaling", self.intercept_scaling)

    def _split(self, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(coef, intercept) of a table."""
        if not self.fit_intercept:
            return np.array(table, order="C"), np.zeros(len(table))
        return np.array(table[:, :-1], order="C"), table[:, -1] * self._bias()

    def _table(self) -> np.ndarray:
        """The table of ``coef_`` and ``intercept_``."""
        coef = np.atleast_2d(self.coef_)
        return np.column_stack([coef, np.atleast_1d(self.intercept_) / self._bias()]) if self.fit_intercept else coef


class LinearEstimator(WithIntercept, Task[RowFacts, Seekable]):
    """Base of the linear estimators. Subclasses say what a survey looks for (``_survey``), and turn chunks of rows into
    constraints (``_constraints_of``) and weights into attributes (``_learned``, ``_weights``)."""

    n_features_in_: int
    _alpha: Any = None
    origin_: dict[str, Any]
    _new_stream = ClosedStream

    def fit(
        self,
        X: Matrix | Source,
        y: Column = None,
        sample_weight: Column = None,
        *,
        cluster: Workers = None,
        checkpoint: Folder = None,
        checkpoint_every: float = 30.0,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Train on a matrix (dense or sparse, float32 or float64) and one label or number per row, or on a source of
        both.

        Parameters
        ----------
        X : matrix, or a source from ``maxmargin.data.open``
            A source need not fit into memory: ``memory`` then bounds all that training holds at a time.
        y : labels or numbers; None with a source, which brings them
        sample_weight : array or None
        cluster : str, Transport or None
            Where to train, if not in this process: ``"local:4"`` (processes of this machine) or
            ``"ray://host:10001"`` (see ``maxmargin.distributed.transport_of``). Each worker has a part of the examples,
            of which it opens its own files; ``memory`` is then that of one worker.
        checkpoint : path or None
            A folder to save the run in. The same call goes on from what is saved there.
        checkpoint_every : float
            Seconds between two savings.
        callbacks : functions
            Each is given a ``Record`` after every pass, and ends the run by returning True.
        """
        run = Run(checkpoint, checkpoint_every, callbacks, cluster)
        return training.fit(self, X, run, y=y, sample_weight=sample_weight)

    def certify(self, X: Matrix | Source, y: Column = None, sample_weight: Column = None) -> Certificate:
        """Bounds on the optimum of the training problem on (X, y), recomputed from weights and dual variables alone.

        X may be a source. Each row has dual variables of its own: on other rows, or in another order, they say little
        or nothing, the lower bound may be the trivial one, and a warning says so.
        """
        return training.certify(self, X, y=y, sample_weight=sample_weight)

    def _constraints_of(self, chunk: Chunk, facts: RowFacts, which: Sequence[int]) -> list[Closed]:
        """The constraints of a chunk in each of these problems."""
        raise NotImplementedError

    def _check_one_chunk(self, is_so: bool) -> None:
        """Losses of many rows together have their searches in memory only."""
        if not is_so:
            raise ValueError(
                f"loss={self.loss!r} takes rows in the memory of this process, all at once: no source, no cluster, no "
                "stream. Give fit a matrix, or use loss='hinge'."
            )

    def _check_settings(self) -> None:
        super()._check_settings()
        self._bias()
        losses.shape_of(self._loss())  # says what is wrong with it

    def _loss(self) -> Loss:
        return losses.named(self.loss, losses.MARGIN)

    def _n_weights(self, facts: RowFacts) -> int:
        """Of each problem."""
        return (facts.n_features + (self._bias() != 0.0)) * facts.n_columns

    def _regularizer(self, n_features: int, n_classes: int = 1) -> Regularizer:
        """The user's regularizer for the features, l2 for the intercept, the same for every class.

        Weights of several classes are stored feature by feature (see ``constraints.classes``).
        """
        places = np.arange(n_classes * (n_features + bool(self.fit_intercept))).reshape(-1, n_classes)
        return repeated(self.regularizer, places.T.copy(), n_features)

    @contextlib.contextmanager
    def _read(self, given: Source, run: Run, reset: bool) -> Iterator[Seekable]:
        folder = None if run.checkpoint is None else Path(run.checkpoint)
        with readable(given, inputs.check_memory(self.memory), folder, run.cluster is not None) as source:
            if reset:
                self._take_shape(source, given)
            elif source.n_features != self.n_features_in_:
                raise ValueError(
                    f"The source has {source.n_features} features, this {type(self).__name__} was trained with "
                    f"{self.n_features_in_}. Give maxmargin.data.open n_features={self.n_features_in_} if it is the "
                    "rest of the same data."
                )
            yield source

    def _in_memory(
        self, X: Any, y: Any, group: np.ndarray | None, weight: np.ndarray | None, fingerprint: Callable[[], str]
    ) -> InMemory:
        """Checked arrays as a source of one chunk. Kernels rely on sparse rows that are sorted, without duplicates."""
        if X.shape[1] > _MOST_COLUMNS:
            raise ValueError(f"At most {_MOST_COLUMNS} columns can be addressed, X has {X.shape[1]}.")
        return InMemory(canonical(X) if sp.issparse(X) else X, y, group, weight, fingerprint=fingerprint)

    def _take_shape(self, source: Seekable, given: Source) -> None:
        """The number of features, and how to read more of the same data as was given."""
        if source.n_features is None:
            raise DataError("This source holds structured examples; linear estimators need rows of a matrix.")
        if source.n_features == 0:
            raise DataError(
                f"X is empty. Found array with 0 feature(s) (shape=({len(source)}, 0)) while a minimum of 1 is "
                f"required by {type(self).__name__}."
            )
        self.n_features_in_ = int(source.n_features)
        self.origin_ = dict(origin_of(given))
        self.__dict__.pop("feature_names_in_", None)

    def _problems(self, source: Seekable, facts: RowFacts, which: Sequence[int] | None = None) -> list[Problem]:
        numbers = range(facts.n_problems) if which is None else which
        regularizer = self._regularizer(facts.n_features, facts.n_columns)
        if is_in_memory(source):
            return [Problem(block, regularizer) for block in self._constraints_of(source.chunk(), facts, numbers)]
        n_weights = self._n_weights(facts)
        columns = () if facts.n_columns == 1 else (facts.n_columns,)

        def blocked(k: int) -> Blocked:
            return Blocked(
                source,
                lambda chunk: self._constraints_of(chunk, facts, [k])[0],
                n_weights,
                columns=columns,
                size=self._size,
            )

        return [Problem(blocked(k), regularizer) for k in numbers]

    def _for_workers(self, source: Seekable) -> Seekable:
        """The same rows in chunks between which they can be cut."""
        return source.in_chunks() if is_in_memory(source) else source

    def _held(self, piece: Seekable, memory: int | None) -> Seekable:
        """A worker's piece of the rows, in memory if there is room."""
        size = sum(piece.nbytes(i) for i in range(len(piece.offsets) - 1))
        return gathered(piece) if memory is None or size <= memory else piece

    def _warm(self, holder: Holder) -> Sequence[Shares]:
        """The last dual variables, if they belong to problems of this shape and are wanted."""
        if not holder.local[0].constraints.closed:
            problem = holder.local[0]
            known = self.warm_start and isinstance(self._alpha, Planes)
            return [self._rescaled(problem, self._shares_of(problem)) if known else None]
        each = _alpha_of_each(self._alpha if self.warm_start else None, holder.local)
        if not holder.in_memory or each[0] is None:
            return each
        return [self._rescaled(problem, alpha) for problem, alpha in zip(holder.local, each, strict=True)]

    def _known_alpha(self) -> np.ndarray | None:
        """Dual variables of the training data, as far as they are known."""
        return self._stream.alpha if self._alpha is None and self._stream is not None else self._alpha

    def _shares_for(self, problems: list[Problem]) -> Sequence[Shares]:
        if not problems[0].constraints.closed:
            return [self._shares_of(problems[0]) if isinstance(self._alpha, Planes) else None]
        return _alpha_of_each(self._known_alpha(), problems)

    def _trained_before(self) -> None:
        warnings.warn(
            f"This {type(self).__name__} was trained by fit, or loaded from a file: its examples are not at hand. "
            "So partial_fit begins anew and forgets it.",
            UserWarning,
            stacklevel=users_line(),
        )

    def _weights(self) -> list[np.ndarray]:
        return [self._table().T.ravel()]

    def _report_content(self, data: Data) -> ReportContent:
        from ..report.linear import content

        return content(self, self._report_source(data), data.name)

    def _report_source(self, data: Data) -> Source | None:
        """The data of a report in chunks, however it was given."""
        if not data.given or data.is_source:
            return data.X
        others = {} if data.groups is None else {"groups": data.groups}
        return self._arrays(data.X, y=data.y, reset=False, **others).in_chunks()

    @property
    def support_(self) -> np.ndarray:
        """Examples with a dual variable that counts (above 1e-6 of the largest): the rest could be dropped."""
        check_is_fitted(self)
        size = np.abs(self.dual_coef_).max(axis=0)
        return np.flatnonzero(size > 1e-6 * size.max())

    @property
    def dual_coef_(self) -> np.ndarray:
        """How much of each example is in the weights."""
        check_is_fitted(self)
        coefficients = self._example_shares()
        if coefficients is None:
            raise AttributeError("dual_coef_ is not kept of streams.")
        return coefficients[None, :]

    def _example_shares(self) -> np.ndarray | None:
        return self._alpha

    def _scores(self, X: Matrix) -> np.ndarray:
        """w·x of every row, of each class where there are several; no intercept."""
        check_is_fitted(self)
        X = inputs.check_matrix(self, X, reset=False)
        return np.asarray(X @ self.coef_.T.astype(X.dtype))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _alpha_of_each(alpha: Shares, problems: list[Problem]) -> list[np.ndarray | None]:
    """The dual variables of each problem; None where they belong to other rows: the lower bound is that of zero."""
    n, shape = len(problems), problems[0].constraints.dual_shape  # type: ignore[attr-defined]
    if not isinstance(alpha, np.ndarray) or alpha.shape != (shape if n == 1 else (n, *shape)):
        return [None] * n
    return [alpha] if n == 1 else list(alpha)


def repeated(features: Regularizer | None, places: np.ndarray, n_features: int) -> Regularizer:
    """The same regularizer for the features of every vector of weights, l2 for the intercepts that may follow them.

    ``places`` has a row for each vector: which of all weights are its own.
    """
    if features is None:
        return L2()
    parts: list[tuple[np.ndarray, Regularizer]] = []
    for place in places:
        parts.append((place[:n_features], features))
        if place.size > n_features:
            parts.append((place[n_features:], L2()))
    return features if len(parts) == 1 else Blocks(parts)


def labels_of(source: Seekable) -> Iterator[Chunk]:
    """Everything but the inputs, chunk by chunk; weights of all chunks together must not be zero."""
    if len(source) == 0:
        raise DataError("The source has no examples.")
    weighs = False
    for i in range(len(source.offsets) - 1):
        chunk = source.labels(i)
        if not is_in_memory(source):
            check_chunk(source, i, chunk)
        if chunk.y is None:
            raise DataError("The source has no labels. Give them: maxmargin.data.open(…, labels=y) or label='column'.")
        weighs = weighs or chunk.weight is None or bool(np.any(chunk.weight))
        yield chunk
        source.release(i)  # labels of all chunks together may be more than memory allows
    if not weighs:
        raise DataError("All entries of sample_weight are zero: no example is left to learn from.")


def checked_weights(chunk: Chunk) -> np.ndarray | None:
    """The weights of a chunk, not negative."""
    return None if chunk.weight is None else inputs.not_negative(np.asarray(chunk.weight, np.float64), chunk.ids)

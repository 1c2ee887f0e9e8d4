"""The estimator of k-means by G-MM: its settings, chunks of data larger than memory, and what it has learned."""

from __future__ import annotations

import sys
import warnings
from dataclasses import KW_ONLY, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from .. import persistence
from ..estimators import inputs
from ..estimators.fit_callbacks import notified
from ..estimators.reporting import Reporting
from ..estimators.settings import check_settings, with_parameters
from ..persistence import storable
from ..validation import one_of
from .bounds import BOUNDS
from .kmeans import ClusterRecord, Settings, cluster
from .points import Measured, Past, Points
from .starts import STARTS

if TYPE_CHECKING:
    from ..report.content import Data, ReportContent


@storable(
    cluster_centers_="float[k, d]", labels_="int[n]<k", inertia_="float", n_iter_="int", _mass="float[k]",
    _means="float[k, d]", _least="float", record=ClusterRecord, certified=False,
)  # fmt: skip
@with_parameters
class GMMKMeans(Reporting, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """k-means by Generalized Majorization-Minimization: less at the mercy of its start than Lloyd's algorithm.

    Minimises Σ_i s_i ‖x_i − μ_{z_i}‖² over centres μ and labels z. Each step fixes labels, which bounds the objective
    from above, and moves the centres to the minimiser of that bound. Lloyd's algorithm fixes the labels of the nearest
    centres. Here any labels will do that keep a share ``eta`` of the progress: they give up clusters that are of more
    use elsewhere, or are drawn at random, and lead out of poor minima. Bounds stay below a ceiling that sinks, and no
    centres on the way are worse than those at the start (for "gmme" in expectation). Every run ends with Lloyd's steps,
    so that labels are nearest centres. From each start Lloyd's algorithm is run, too, and the better end is kept: a fit
    is never worse than one with ``bound="kmeans"`` and the same ``random_state``.

    Parameters
    ----------
    n_clusters : int
        Clusters, and centres.
    eta : float
        Progress that each bound must make at least, as a share of the most that is possible, in (0, 1]. Small values
        explore more and take longer; 1 is Lloyd's algorithm, whatever ``bound``. "merge" makes 0.3 at least.
    bound : {"merge", "random", "kmeans", "gmme"}
        How labels are chosen: clusters that cost little are merged with their neighbours, and their centres go where
        they gain more; by a random walk over all that are valid; as the nearest centres (Lloyd's algorithm); or drawn
        with the largest entropy under which progress is made in expectation. "merge" is by far the best and quickest of
        the four on all data we tried.
    init : {"k-means++", "forgy", "random_partition"}, array (n_clusters, n_features) or function
        Where to start: points far from each other; any points; means of points dealt out at random; or given. A
        function is called as ``init(X, n_clusters, random_state=…)``, with a ``RandomState``.
    n_init : int
        Starts, of which the best is kept. From an array, "kmeans" starts once.
    max_iter : int
        The most bounds of one run.
    tol : float
        The exploration ends when the ceiling is above the objective by at most this share of it.
    sweeps : float or None
        Steps of the random walk per point and bound. None: as many as there are clusters, about as costly as the
        distances are. From one step per point on, the ends are about equally good.
    n_jobs : int or None
        Threads; -1 for all cores. Several starts share them out; a single one shares out its points, except for the
        walk. The result does not depend on their number.
    random_state : int, Generator, RandomState or None
    warm_start : bool
        Start from the centres of the last fit.
    verbose : int
        1 tells about each start when it ends, by Lloyd's bounds and by the others, 2 about each bound, on standard
        error.

    Attributes
    ----------
    cluster_centers_ : array (n_clusters, n_features)
    labels_ : array (n_samples,)
    inertia_ : float
        The objective, a sum over all points.
    history_ : list of ClusterRecord
        One record per bound of the run that is kept: the best of all starts, by Lloyd's bounds or by those asked for.
    n_iter_ : int
        The number of its bounds.

    Notes
    -----
    A cluster that has lost all its points is moved to a point, drawn as k-means++ draws it; the bound does not depend
    on where it is, so nothing is lost. Rows of weight zero get labels, and have no influence.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0], [1.0, 4.0], [1.0, 0.0], [10.0, 2.0], [10.0, 4.0], [10.0, 0.0]])
    >>> km = GMMKMeans(n_clusters=2, random_state=0).fit(X)
    >>> km.inertia_
    16.0
    >>> km.predict([[0.0, 0.0], [12.0, 3.0]]) == km.labels_[[0, 3]]
    array([ True,  True])
    """

    n_clusters: int = 8
    _: KW_ONLY
    eta: float = 0.02
    bound: str = "merge"
    init: Any = "k-means++"
    n_init: int = 1
    max_iter: int = 1000
    tol: float = 1e-3
    sweeps: float | None = None
    n_jobs: int | None = None
    random_state: Any = None
    warm_start: bool = False
    verbose: int = 0

    cluster_centers_: np.ndarray = field(init=False)
    labels_: np.ndarray = field(init=False)
    inertia_: float = field(init=False)
    history_: list[ClusterRecord] = field(init=False)
    n_iter_: int = field(init=False)
    _compared_with_labels = False

    @notified
    def fit(self, X: Any, y: object = None, sample_weight: Any = None) -> GMMKMeans:
        """Find clusters.

        Parameters
        ----------
        X : array (n_samples, n_features)
        y : ignored
        sample_weight : array (n_samples,) or None
        """
        self._settings()
        warm = self.cluster_centers_ if self.warm_start and hasattr(self, "cluster_centers_") else None
        X = inputs.check_matrix(self, X, reset=True, accept_sparse=False)
        self._cluster(X, inputs.check_weights(sample_weight, X), warm)
        return self

    def _cluster(self, X: np.ndarray, weight: np.ndarray | None, warm: np.ndarray | None) -> None:
        settings = self._settings()
        k, n_init, threads = int(self.n_clusters), int(self.n_init), inputs.check_threads(self.n_jobs)
        weight = np.ones(X.shape[0]) if weight is None else weight
        heavy = weight > 0.0
        if np.count_nonzero(heavy) < k:
            kept = "" if heavy.all() else " of weight above zero"
            raise ValueError(
                f"n_samples={np.count_nonzero(heavy)} rows{kept} should be >= n_clusters={k}: lower n_clusters, "
                "or bring more rows."
            )
        start, chosen = self._start(X, warm)
        if chosen and settings.touching:
            n_init = 1
        inner = threads if n_init == 1 else 1  # starts side by side leave no thread for parts of the points
        points = Points(X, weight, k, inner) if heavy.all() else Points(X[heavy], weight[heavy], k, inner)
        found = cluster(
            points, start, settings, inputs.generator(self.random_state), n_init=n_init, threads=threads,
            report=partial(_tell, self.verbose, n_init) if self.verbose else None,
        )  # fmt: skip
        self.cluster_centers_ = found.centres.astype(X.dtype)
        at = self._measured(X, weight)
        self.labels_, self.inertia_ = at.near, at.objective
        self.history_, self.n_iter_ = found.history, len(found.history)
        past = Past.of(Points(X, weight, k), self.cluster_centers_.astype(np.float64), self.labels_)
        self._mass, self._means, self._least = past
        self._warn(found.converged, found.interrupted)

    def _warn(self, converged: bool, interrupted: bool) -> None:
        distinct = np.count_nonzero(self._mass)
        message = ""
        if not converged:
            reason = "was interrupted" if interrupted else f"stopped after max_iter={self.max_iter} bounds"
            advice = "." if interrupted else "; raise max_iter."
            message = f"GMMKMeans {reason}. The centres are the best found{advice}"
        elif distinct < self._mass.size:
            message = (
                f"Only {distinct} of n_clusters={self._mass.size} clusters have points: X has too few distinct rows. "
                "Lower n_clusters."
            )
        if message:
            warnings.warn(message, ConvergenceWarning, stacklevel=5)

    @notified
    def partial_fit(self, X: Any, y: object = None, sample_weight: Any = None) -> GMMKMeans:
        """Take in one more chunk of a stream; the first is clustered as ``fit`` would.

        Points of earlier chunks keep their labels, so their share of the bound is known from the weight and the mean
        of each cluster alone. The new chunk adds labels that touch at the centres, and the centres move to the
        minimiser of the sum of both, until these agree. ``inertia_`` is the value of that bound: the objective on all
        chunks is at most that. ``labels_`` are those of this chunk.
        """
        self._settings()
        first = not hasattr(self, "cluster_centers_")
        X = inputs.check_matrix(self, X, reset=first, accept_sparse=False)
        weight = inputs.check_weights(sample_weight, X)
        if first:
            self._cluster(X, weight, None)
            return self
        if self.cluster_centers_.shape[0] != self.n_clusters:
            raise ValueError(
                f"n_clusters={self.n_clusters}, but the chunks before left {self.cluster_centers_.shape[0]} clusters. "
                "It cannot change within a stream; call fit to begin anew."
            )
        weight = np.ones(X.shape[0]) if weight is None else weight
        points = Points(X, weight, self.n_clusters, inputs.check_threads(self.n_jobs))
        centres = self.cluster_centers_.astype(np.float64)
        past, self.labels_ = Past(self._mass, self._means, self._least).joined(points, centres, self.max_iter)
        self.cluster_centers_, self.inertia_ = past.means.astype(self.cluster_centers_.dtype), past.least
        self._mass, self._means, self._least = past
        return self

    def predict(self, X: object) -> np.ndarray:
        """The nearest centre of each row."""
        X = self._seen(X)
        return self._measured(X, np.ones(X.shape[0])).near

    def transform(self, X: object) -> np.ndarray:
        """Distances to all centres: array (n_samples, n_clusters)."""
        from sklearn.metrics.pairwise import euclidean_distances  # with all metrics, which no fit needs

        return euclidean_distances(self._seen(X), self.cluster_centers_)

    def score(self, X: Any, y: object = None, sample_weight: Any = None) -> float:
        """The objective on X, with a minus: the larger the better."""
        X = self._seen(X)
        weight = inputs.check_weights(sample_weight, X)
        return -self._measured(X, np.ones(X.shape[0]) if weight is None else weight).objective

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to one file (safetensors); ``maxmargin.load`` reads it back."""
        check_is_fitted(self)
        persistence.save(self, path)

    def _report_content(self, data: Data) -> ReportContent:
        from .report import content

        if data.given:
            if data.y is not None:
                inputs.check_labels(data.y)
            y = None if data.y is None else column_or_1d(data.y)
            check_consistent_length(self._seen(data.X), y)
            data = replace(data, y=y)
        return content(self, data)

    @property
    def _n_features_out(self) -> int:
        return self.cluster_centers_.shape[0]

    def _seen(self, X: object) -> np.ndarray:
        check_is_fitted(self)
        return inputs.check_matrix(self, X, reset=False, accept_sparse=False)

    def _measured(self, X: np.ndarray, weight: np.ndarray) -> Measured:
        centres = np.ascontiguousarray(self.cluster_centers_, dtype=np.float64)
        points = Points(X, weight, centres.shape[0], inputs.check_threads(self.n_jobs))
        return points.measure(centres, np.zeros(X.shape[0], np.int32))

    def _check_settings(self) -> None:
        self._settings()

    def _settings(self) -> Settings:
        check_settings(self)
        one_of("bound", self.bound, (*BOUNDS, "kmeans"))
        eta = inputs.check_positive("eta", self.eta)
        if eta > 1.0:
            raise ValueError(f"eta must be in (0, 1], got {self.eta!r}; 1 is Lloyd's algorithm.")
        return Settings(
            bound=self.bound,
            eta=eta,
            sweeps=None if self.sweeps is None else inputs.check_positive("sweeps", self.sweeps),
            tol=inputs.check_positive("tol", self.tol, zero=True),
            max_iter=int(self.max_iter),
            never_worse=True,
        )

    def _start(self, X: np.ndarray, warm: np.ndarray | None) -> tuple[Any, bool]:
        """How to find the first centres, and whether that is no matter of chance."""
        init = self.init if warm is None else warm
        if isinstance(init, str):
            return STARTS[one_of("init", init, tuple(STARTS))], False
        if not callable(init):
            centres = self._checked(init, X)
            return lambda points, rng: centres, True

        def start(points: Points, rng: np.random.Generator) -> np.ndarray:
            seed = np.random.RandomState(int(rng.integers(2**32)))
            return self._checked(init(points.X, points.n_clusters, random_state=seed), X)

        return start, False

    def _checked(self, init: object, X: np.ndarray) -> np.ndarray:
        shape = (self.n_clusters, X.shape[1])
        try:
            centres = np.array(init, dtype=np.float64, order="C")
        except (TypeError, ValueError):
            raise ValueError(
                f"init must be one of {list(STARTS)}, an array of shape {shape}, or a function that gives one; "
                f"got {init!r}."
            ) from None
        if centres.shape != shape:
            raise ValueError(
                f"init has the shape {centres.shape}; n_clusters={shape[0]} and {shape[1]} features need {shape}."
            )
        if not np.isfinite(centres).all():
            raise ValueError("init contains NaN or infinity. Every start centre must be finite.")
        return centres


def _tell(verbose: int, n_init: int, number: int, way: Settings, record: ClusterRecord, last: bool) -> None:
    """Lines on standard error: one per end of a start, or one per bound besides."""
    if last or verbose > 1:
        print(
            f"GMMKMeans: start {number + 1} of {n_init}, {way.bound} bound {record.number}, objective "
            f"{record.objective:.6g}, gap {record.gap:.1e}, {record.changed:.0%} of labels changed, "
            f"{record.seconds:.1f} s",
            file=sys.stderr,
        )

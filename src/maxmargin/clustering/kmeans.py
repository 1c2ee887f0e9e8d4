"""k-means by Generalized Majorization-Minimization: a sequence of bounds that need not touch the objective.

The labels z of all points make a bound b(μ) = Σ_i s_i ‖x_i − μ_{z_i}‖² on the objective F(μ), with the means as its
minimiser. Lloyd's algorithm takes the bound that touches F where it stands, and is drawn into the nearest minimum.
G-MM (Naderi Parizi, chapter 5) takes any bound that makes a share η of the progress possible: with d = b(μ) − F(μ) of
the last bound at its own minimiser, one whose regrets at that μ sum up to at most (1 − η)·d. Then

- bound values never rise, b_t(μ_t) ≤ b_t(μ_{t−1}) ≤ b_{t−1}(μ_{t−1}) − η d_{t−1},
- F(μ_t) ≤ F(μ_0) for every t, and η Σ_t d_t ≤ F(μ_0) − b_T(μ_T): the gaps go to zero.

Both follow from a ceiling v_t that sinks: v_0 = F(μ_0), b_t(μ_{t−1}) ≤ v_{t−1}, and v_t = b_t(μ_t) − η d_t. A ceiling
v_t = v_{t−1} − η (v_{t−1} − F(μ_t)) is higher. Beneath it bounds may rise, and the rest remains true: F(μ_t) ≤
b_t(μ_t) ≤ v_{t−1} ≤ F(μ_0), and d_t ≤ v_{t−1} − F(μ_t) = (v_{t−1} − v_t) / η, so that η Σ_t d_t ≤ F(μ_0) − v_T.

A cluster without points has no say in its bound: every place of its centre minimises b. It is put on a point, drawn as
k-means++ draws it, after the centres placed before it; that lowers F and leaves all of the above true. (The thesis lets
such centres fall onto the origin; scikit-learn takes the point that is the farthest from its centre.) It also widens
the gap d, and with it the choice of the next bound: bounds that empty clusters on purpose lead the farthest.

None of this compares two ends: bounds that explore may end above the minimum that Lloyd's algorithm finds from the same
centres. With ``Settings.never_worse`` each start is followed twice, by touching bounds and by the others, and the
better end is kept.
"""

from __future__ import annotations

import copy
import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import wait
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ..solvers.solve import first_interrupt
from ..solvers.threads import one_blas_thread, pool
from .bounds import BOUNDS, Chooser
from .points import Measured, Points
from .starts import Spread

Start = Callable[[Points, np.random.Generator], np.ndarray]
Report = Callable[[int, "Settings", "ClusterRecord", bool], object]


@dataclass(frozen=True)
class ClusterRecord:
    """One bound, at its own minimiser: what ``history_`` keeps.

    ``objective`` is F there, ``bound`` the value of the bound, ``gap`` their difference d; ``changed`` is the share
    of points that have another label than in the bound before.
    """

    number: int
    seconds: float
    objective: float
    bound: float
    gap: float
    changed: float


@dataclass(frozen=True)
class Settings:
    """How a sequence of bounds is run.

    Parameters
    ----------
    bound : {"merge", "random", "gmme", "kmeans"}
        How the next bound is chosen.
    eta : float
        The share of the gap that every bound must close, in (0, 1].
    sweeps : float or None
        Steps per point of the random walk; None: as many as there are clusters, so that on average every label of
        every point is tried once. That costs about as much as the distances do.
    tol : float
        The search ends when the ceiling is above the objective by at most ``tol`` times that; Lloyd's bounds lead on
        to a fixed point.
    max_iter : int
        The most bounds.
    never_worse : bool
        Whether each start is also followed by touching bounds, so that its end is never above that of Lloyd's
        algorithm.
    """

    bound: str = "merge"
    eta: float = 0.02
    sweeps: float | None = None
    tol: float = 1e-3
    max_iter: int = 1000
    never_worse: bool = False

    @property
    def touching(self) -> bool:
        """Whether all bounds touch the objective: then there is no choice, and no chance."""
        return self.bound == "kmeans" or self.eta == 1.0


@dataclass
class Clustering:
    """How far the bounds from one start have come; ``cluster`` gives the best. Whole at every moment, for interrupts.

    ``start`` is the objective of the first centres, ``best`` the least one so far, with its centres.
    """

    start: float = np.inf
    best: tuple[float, np.ndarray | None] = (np.inf, None)
    history: list[ClusterRecord] = field(default_factory=list)
    converged: bool = False
    interrupted: bool = False

    def offer(self, objective: float, centres: np.ndarray) -> None:
        if objective < self.best[0] or self.best[1] is None:
            self.best = (objective, centres)

    @property
    def objective(self) -> float:
        return self.best[0]

    @property
    def centres(self) -> np.ndarray:
        assert self.best[1] is not None
        return self.best[1]


def cluster(
    points: Points,
    start: Start,
    settings: Settings,
    rng: np.random.Generator,
    *,
    n_init: int = 1,
    threads: int = 1,
    report: Report | None = None,
) -> Clustering:
    """The best clustering from ``n_init`` starts, on several threads where there are several starts.

    Every start has a generator of its own, and draws its centres first: two calls that differ in ``settings`` alone
    start from the same places. Ctrl-C ends all of them and gives the best so far; once more within two
    seconds, it is passed on.

    Examples
    --------
    >>> from maxmargin.clustering.starts import forgy
    >>> X = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> points = Points(X, np.ones(4), n_clusters=2)
    >>> found = cluster(points, forgy, Settings(), np.random.default_rng(0))
    >>> np.sort(found.centres, axis=None), found.objective
    (array([0.5, 5.5]), 1.0)
    """
    seeds = rng.integers(1, 2**63, size=n_init).tolist()
    ways = [settings]
    if settings.never_worse and not settings.touching:
        ways.insert(0, replace(settings, bound="kmeans"))  # the quicker first: an interrupt finds something
    runs = [[Clustering() for _ in ways] for _ in seeds]
    stop = threading.Event()
    interrupted = False

    def work(number: int) -> None:
        if stop.is_set():
            return
        own = np.random.default_rng(seeds[number])
        centres = start(points, own)
        at = points.measure(centres, np.zeros(points.n, np.int32))
        for run, way in zip(runs[number], ways, strict=True):
            tell = None if report is None else partial(report, number, way)
            # A copy: what one run draws does not depend on the other.
            _follow(run, points, centres, at, way, copy.deepcopy(own), stop, tell)

    with one_blas_thread():
        try:
            if min(threads, n_init) == 1:
                for number in range(n_init):
                    work(number)
            else:
                _side_by_side(work, n_init, min(threads, n_init), stop)
        except KeyboardInterrupt:
            interrupted = first_interrupt() and any(run.best[1] is not None for run in itertools.chain(*runs))
            if not interrupted:
                raise
    best = min(itertools.chain(*runs), key=lambda run: run.objective)
    best.converged, best.interrupted = best.converged and not interrupted, interrupted
    return best


def _side_by_side(work: Callable[[int], None], n: int, threads: int, stop: threading.Event) -> None:
    """All starts on a pool. Nobody is still at work when this returns or raises."""
    futures = [pool(threads).submit(work, number) for number in range(n)]
    try:
        for future in futures:
            future.result()
    except BaseException:
        stop.set()
        wait(futures)
        raise


def _follow(
    run: Clustering,
    points: Points,
    centres: np.ndarray,
    at: Measured,
    settings: Settings,
    rng: np.random.Generator,
    stop: threading.Event,
    tell: Callable[[ClusterRecord, bool], object] | None,
) -> None:
    """The bounds from these centres."""
    clock = time.perf_counter()
    run.start = at.objective
    run.offer(at.objective, centres)
    chooser: Chooser | None = (
        None if settings.touching else BOUNDS[settings.bound](settings.sweeps or points.n_clusters)
    )
    label = at.near  # the first bound touches
    last = np.full(points.n, -1, np.int32)
    before = np.inf
    ceiling = at.objective
    for number in range(1, settings.max_iter + 1):
        if stop.is_set():
            return
        centres, at = _minimised(points, label, centres, rng)
        run.offer(at.objective, centres)
        seconds = time.perf_counter() - clock
        changed, last = float(np.mean(label != last)), label
        record = ClusterRecord(number, seconds, at.objective, at.objective + at.gap, at.gap, changed)
        run.history.append(record)
        run.converged = chooser is None and (at.changed == 0.0 or at.objective >= before)
        if tell is not None:
            tell(record, run.converged or number == settings.max_iter)
        if run.converged:
            return
        if chooser is None:
            before, label = at.objective, at.near
            continue
        ceiling = chooser.ceiling(ceiling, at, settings.eta)
        budget = ceiling - at.objective
        if budget > settings.tol * at.objective + points.nothing:
            chosen = chooser.choose(points, centres, at, budget, rng)
            if chosen is not None:
                label = chosen
                continue
        chooser = None
        if run.objective < at.objective:
            # The search has passed better centres: the bound that touches there is below all others.
            centres = run.centres
            at = points.measure(centres, at.near)
        label = at.near


def _minimised(
    points: Points, label: np.ndarray, before: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, Measured]:
    """The minimiser of the bound of these labels, and what it is worth."""
    centres, empty = points.means(label, before)
    if empty.size:
        spread = Spread.from_centres(points, np.delete(centres, empty, axis=0))
        for z in empty:
            if not spread.share.any():
                break  # every point has a centre on it
            centres[z] = points.X[spread.draw(rng)]
    return centres, points.measure(centres, label)

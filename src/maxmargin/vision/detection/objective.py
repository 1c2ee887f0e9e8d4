"""Training a detector: the objective, which is not convex, and its convex bounds.

    F(w) = Ω(w) + Σ_positives C max(0, 1 − max_{z ∈ Z_i} f(z)) + Σ_windows C max(0, 1 + f(z_j))

    f = max over component and positive parts, min over negative parts, of w·φ

(Felzenszwalb et al. (2010), (4.11) and (4.12) of Naderi Parizi.) A bound holds the root, the component and the positive
parts of every positive example, so that its score is a minimum of linear functions; and for every window the negative
parts, where the weights of the last bound would place them, so that its score is a maximum of linear functions. These
places follow from those weights, and are kept only where pyramids are. What is fixed is a list: a placement for each
positive example, and at its end, if there are negative parts, those weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import wait
from typing import NamedTuple, NoReturn, TypeVar

import numpy as np

from ...constraints.sums import DualSums
from ...data.arrays import as_rows
from ...kernels.simplex import project
from ...kernels.vectors import dot, within
from ...problem import Planes, Problem, TotalLoss, Totals
from ...protocols import Regularizer
from ...rounding import bounded_sum, gamma
from ...solvers.threads import one_blas_thread, pool
from ..features.cell_pyramid import Level
from ..kernels.windows import hinge_sum
from .model import StarModel, by_view_and_level
from .star import LevelScores, Star
from .training_images import TrainingImages, by_image, check_held, own_shares, placed

T = TypeVar("T")


class DetectionObjective:
    """F and its bounds, for ``latent.minimise``.

    Parameters
    ----------
    model : StarModel
    images : TrainingImages
    regularizer : Regularizer
    C, positive_weight : float
        What an example costs, and how much more a positive one.
    n_jobs : int
    """

    def __init__(
        self,
        model: StarModel,
        images: TrainingImages,
        regularizer: Regularizer,
        C: float,
        positive_weight: float = 1.0,
        n_jobs: int = 1,
    ) -> None:
        self.model, self.images, self.regularizer, self.n_jobs = model, images, regularizer, n_jobs
        self.C, self.positive_C = C, C * positive_weight
        self.n_weights = model.n_weights
        self.n_positives = len(images.positives)
        self.n_examples = self.n_positives + model.has_negative_parts
        self.in_image: list[list[int]] = [[] for _ in range(len(images))]
        for i, positive in enumerate(images.positives):
            self.in_image[positive.image].append(i)

    def problem(self, latent: Sequence[np.ndarray], factors: np.ndarray | None = None) -> Problem:
        return Problem(WindowBound(self, latent, factors), self.regularizer)

    def evaluate(self, w: np.ndarray) -> DetectionEvaluation:
        return DetectionEvaluation(self, w)

    def initial(self, rng: np.random.Generator | None) -> NoReturn:
        raise ValueError("A detector is trained from given placements or weights: see detection.training.")

    def carriers(self, alpha: Planes) -> np.ndarray:
        carries = np.zeros(self.n_examples, bool)
        share = alpha.example[alpha.alpha > 0.0]
        carries[share[share < self.n_positives]] = True
        if self.model.has_negative_parts:
            carries[-1] = True
        return carries

    def over_images(self, work: Callable[[int], T], images: Iterable[int]) -> Iterator[T]:
        """The work for each image, in order, on all threads; few results wait at the same time."""
        images = list(images)
        if self.n_jobs == 1:
            yield from map(work, images)
            return
        with one_blas_thread():
            ahead = [pool(self.n_jobs).submit(work, i) for i in images[: 2 * self.n_jobs]]
            try:
                for after in [*images[2 * self.n_jobs :], *[None] * len(ahead)]:
                    yield ahead.pop(0).result()
                    if after is not None:
                        ahead.append(pool(self.n_jobs).submit(work, after))
            finally:
                # Nobody is still at work when this ends, in whatever way it ends.
                for future in ahead:
                    future.cancel()
                wait(ahead)

    def background(self, i: int, k: int, found: LevelScores) -> np.ndarray:
        """Scores of the views that are background at each place of a level, −∞ where they are not."""
        free = self.images.background(i, k)
        component = [view // 2 for view in found.views]
        return np.where(free[component], found.scores, -np.inf)


class Hard(NamedTuple):
    """What a search finds in an image: examples with a loss, worst first within their kind.

    ``placements`` of them, what is ``missing`` of their margins, and the loss of *all* examples of the image, C_i
    included.
    """

    example: np.ndarray
    placements: np.ndarray
    missing: np.ndarray
    loss: TotalLoss


class WindowBound:
    """A convex bound of F, as constraints. Examples are the positive ones, then all windows of all images.

    Dual variables are ``Planes`` whose labels are placements. Features are cut out of the pyramids anew whenever they
    are asked for, and the places that the bound holds are put right then: shares of another bound can be handed over.
    """

    closed = False
    held_in = "images"

    def __init__(
        self, objective: DetectionObjective, latent: Sequence[np.ndarray], factors: np.ndarray | None = None
    ) -> None:
        self.objective, self.images, self.model = objective, objective.images, objective.model
        n = objective.n_positives
        check_held(self.model, self.images, latent)
        self.fixed = np.array(latent[:n], np.int32).reshape(n, self.model.placement_length)
        self._held = np.asarray(latent[n]) if self.model.has_negative_parts else None
        self._places: dict[int, list[LevelScores]] = {}
        share = np.ones(objective.n_examples) if factors is None else factors
        self.positive_budget = objective.positive_C * share[:n]
        self.window_budget = objective.C * (float(share[n]) if self.model.has_negative_parts else 1.0)
        self.n_weights, self.n_positives = objective.n_weights, n
        self.n_examples = n + self.images.n_windows

    @property
    def oracle(self) -> WindowBound:
        return self

    def held_places(self, i: int, levels: Sequence[Level]) -> Sequence[LevelScores | None]:
        """Where the negative parts of all windows of an image are held, kept for as long as its pyramid is."""
        if self._held is None:
            return [None] * len(levels)
        places = self._places.get(i)
        if places is None:
            star = Star(self.model, self._held)
            places = [star.negative_places(level) for level in levels]
            if self.images.pyramids.keeps(i):
                self._places[i] = places
        return places

    def budget_of(self, example: np.ndarray) -> np.ndarray:
        positive = example < self.n_positives
        budget = np.full(example.size, self.window_budget)
        budget[positive] = self.positive_budget[example[positive]]
        return budget

    def search(self, i: int, star: Star, w: np.ndarray, most: int) -> Hard:
        """The hardest examples of an image: all positive ones, and as many windows."""
        levels = self.images.pyramids[i]
        example, placements, scores, losses = [], [], [], []
        for k, (level, held) in enumerate(zip(levels, self.held_places(i, levels), strict=True)):
            found = star.scores(level, held)
            free = self.objective.background(i, k, found)
            best = free.max(axis=0)
            error = star.rounding(level, found)
            total, n = hinge_sum(best, error)
            off = n * error + gamma(best.size + 4) * total if n else 0.0
            losses.append(TotalLoss(self.window_budget * total, rounding=self.window_budget * off))
            if total > 0.0:
                some, score = found.above(k, free, -1.0, most)
                example.append(self.n_positives + self.images.window(i, k, some[:, 2], some[:, 3]))
                placements.append(some)
                scores.append(score)
        ids = np.array(self.objective.in_image[i], np.int64)
        lowest, score, errors = self.lowest(ids, levels, w)
        budget, short = self.positive_budget[ids], 1.0 - score
        total = dot(budget, np.maximum(short, 0.0))
        hidden = dot(budget, np.where(short + errors > 0.0, errors, 0.0))
        losses.append(TotalLoss(total, rounding=hidden + gamma(score.size + 4) * total))
        missing = 1.0 + np.concatenate([-score, *scores])
        windows = ids.size + np.argsort(-missing[ids.size :], kind="stable")[:most]
        listed = np.concatenate([np.arange(ids.size), windows])
        return Hard(
            np.concatenate([ids, *example])[listed],
            np.concatenate([lowest, *placements])[listed],
            missing[listed],
            TotalLoss.sum(losses),
        )

    def lowest(
        self, ids: np.ndarray, levels: Sequence[Level], w: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positive examples of one image as they are held, negative parts where they harm most; their scores, and by
        how much these may be too high."""
        placements, errors = self.fixed[ids].copy(), np.zeros(ids.size)
        if self.model.has_negative_parts:
            errors += place_negative_parts(self.model, levels, placements, w)
        rows = self.model.features(levels, placements)
        return placements, rows @ w, errors + gamma(w.size + 2) * (1.0 + np.abs(rows) @ np.abs(w))

    # What ``solve`` and certificates ask for.

    def no_shares(self) -> Planes:
        return placed(np.empty(0, np.int64), np.empty((0, self.model.placement_length), np.int32), np.empty(0))

    def feasible(self, alpha: Planes) -> Planes:
        alpha = own_shares(self.model, self.images, alpha)
        share = np.array(alpha.alpha, dtype=np.float64)
        order = np.argsort(alpha.example, kind="stable")
        example = np.asarray(alpha.example)[order]
        ends = np.flatnonzero(np.diff(example, append=-1))
        ranked, begin = share[order], 0
        for end, budget in zip((ends + 1).tolist(), self.budget_of(example[ends]).tolist(), strict=True):
            some = ranked[begin:end].copy()
            project(some, budget)
            within(some, budget)
            ranked[begin:end] = some
            begin = end
        return placed(example, np.asarray(alpha.labels)[order], ranked)

    def totals(self, alpha: Planes) -> Totals:
        alpha = self.feasible(alpha)
        sums = DualSums(self.n_weights)
        sums.add_linear(*bounded_sum(alpha.alpha.tolist()))
        for ids, _, rows in self.formed(alpha):
            sign = np.where(alpha.example[ids] < self.n_positives, 1.0, -1.0)
            sums.add_rows(as_rows(rows), sign * alpha.alpha[ids])
        return sums.totals()

    def combine(self, alpha: Planes) -> np.ndarray:
        return self.totals(alpha).v

    def linear(self, alpha: Planes) -> float:
        return float(alpha.alpha.sum())

    def formed(self, alpha: Planes) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Positions of shares, their placements in this bound, and the features there: image by image."""
        example, labels = np.asarray(alpha.example), np.asarray(alpha.labels, np.int32)
        groups = by_image(self.images.image_of(example))

        def form(i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            ids, levels = groups[i], self.images.pyramids[i]
            placements = self._as_held(i, example[ids], labels[ids], levels)
            return ids, placements, self.model.features(levels, placements)

        return self.objective.over_images(form, groups)

    def _as_held(self, i: int, example: np.ndarray, placements: np.ndarray, levels: Sequence[Level]) -> np.ndarray:
        """Placements with what this bound holds in its place."""
        placements = placements.copy()
        positive = example < self.n_positives
        fixed = self.fixed[example[positive]]
        if self._held is None:
            placements[positive] = fixed
            return placements
        # Negative parts of a positive example may be anywhere, as long as they are near its root: if that has moved
        # they are placed anew.
        moved = (fixed[:, :4] != placements[positive, :4]).any(axis=1)
        free = negative_columns(self.model)[fixed[:, 0] // 2]
        stay = np.where(free & ~moved[:, None], placements[positive], fixed)
        placements[positive] = stay
        placements[~positive] = self._held_windows(i, placements[~positive], levels)
        return placements

    def _held_windows(self, i: int, windows: np.ndarray, levels: Sequence[Level]) -> np.ndarray:
        """Windows with their negative parts where ``evaluate`` has them: another product may be rounded otherwise."""
        columns, views = negative_columns(self.model), np.asarray(self.model.views)
        windows, places = windows.copy(), self.held_places(i, levels)
        for k in np.unique(windows[:, 1]).tolist():
            ids, found = np.flatnonzero(windows[:, 1] == k), places[k]
            assert found is not None
            view, _, row, column = windows[ids, :4].T
            best = found.placements(k, np.searchsorted(views, view), row, column)
            windows[ids] = np.where(columns[view // 2], best, windows[ids])
        return windows

    def evaluate(self, w: np.ndarray) -> TotalLoss:
        star = Star(self.model, w)
        return TotalLoss.sum(
            self.objective.over_images(lambda i: self.search(i, star, w, 0).loss, range(len(self.images)))
        )


def negative_columns(model: StarModel) -> np.ndarray:
    """Which entries of placements are those of negative parts, (n_components, placement_length)."""
    columns = np.zeros((len(model.components), model.placement_length), bool)
    for c, component in enumerate(model.components):
        for p, part in enumerate(component.parts):
            columns[c, 4 + 2 * p : 6 + 2 * p] = part.sign < 0
    return columns


def place_negative_parts(
    model: StarModel, levels: Sequence[Level], placements: np.ndarray, w: np.ndarray
) -> np.ndarray:
    """Move the negative parts of placements, in place, to where they are strongest at w.

    Returns by how much rounding may have hidden even stronger places.
    """
    columns, errors = negative_columns(model), np.zeros(len(placements))
    stars: dict[int, Star] = {}
    for view, k, ids in by_view_and_level(placements):
        star = stars.get(view) or stars.setdefault(view, Star(model, w, views=[view]))
        found = star.negative_places(levels[k])
        best = found.placements(k, np.zeros(ids.size, np.int64), placements[ids, 2], placements[ids, 3])
        placements[ids] = np.where(columns[view // 2], best, placements[ids])
        errors[ids] = star.negative_rounding(0, levels[k], found)
    return errors


class DetectionEvaluation:
    """F at one w: the best placement of every positive example, and what others lose against it."""

    def __init__(self, objective: DetectionObjective, w: np.ndarray) -> None:
        self.objective, self.w = objective, np.asarray(w, dtype=np.float64)
        model = objective.model
        self.scores = np.empty(objective.n_positives)
        self._roots: list[np.ndarray] = [np.empty(0)] * objective.n_positives
        best = [np.empty(0)] * objective.n_positives
        views = range(2 * len(model.components))
        stars = {view: Star(model, self.w, views=[view]) for view in views}
        images = [i for i, some in enumerate(objective.in_image) if some]
        for i, found in zip(images, objective.over_images(lambda i: self._search(i, stars), images), strict=True):
            for p, placements, one, score in zip(objective.in_image[i], *found, strict=True):
                self._roots[p], best[p], self.scores[p] = placements, one, score
        self.best = [*best, self.w.copy()] if model.has_negative_parts else best

    def _search(self, i: int, stars: dict[int, Star]) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """For every positive example of an image: all its roots with their parts, the best of them, and its score."""
        objective = self.objective
        levels = objective.images.pyramids[i]
        known: dict[tuple[int, int], LevelScores] = {}
        every, best = [], []
        for p in objective.in_image[i]:
            roots = objective.images.positives[p].roots
            placements = np.zeros((len(roots), objective.model.placement_length), np.int32)
            scores = np.empty(len(roots))
            for view, k in np.unique(roots[:, :2], axis=0).tolist():
                if (view, k) not in known:
                    known[view, k] = stars[view].scores(levels[k])
                found = known[view, k]
                ids = np.flatnonzero((roots[:, 0] == view) & (roots[:, 1] == k))
                row, column = roots[ids, 2], roots[ids, 3]
                placements[ids] = found.placements(k, np.zeros(ids.size, np.int64), row, column)
                scores[ids] = found.scores[0, row, column]
            every.append(placements)
            best.append(placements[int(scores.argmax())])
        # From features, as bounds have it: scores of the search are rounded otherwise, and a bound that touches would
        # seem not to.
        return every, np.array(best), objective.model.features(levels, np.array(best)) @ self.w

    def regrets(self, ids: np.ndarray, latent: Sequence[np.ndarray]) -> np.ndarray:
        """C_i·(loss under what is fixed − loss); the last entry is that of all windows together."""
        objective, n = self.objective, self.objective.n_positives
        positive = np.flatnonzero(ids < n)
        regret = np.zeros(ids.size)
        if positive.size:
            examples, places = ids[positive], [latent[at] for at in positive.tolist()]
            held, best = self._held_scores(examples, np.array(places, np.int32)), self.scores[examples]
            more = objective.positive_C * (np.maximum(0.0, 1.0 - held) - np.maximum(0.0, 1.0 - best))
            # Sums of one row depend on how many are summed at a time, by a bit or two.
            same = [np.array_equal(self.best[p], place) for p, place in zip(examples, places, strict=True)]
            regret[positive] = np.where(same, 0.0, more)
        for at in np.flatnonzero(ids >= n).tolist():
            regret[at] = self._window_regret(np.asarray(latent[at]))
        return np.maximum(regret, 0.0)

    def _held_scores(self, examples: np.ndarray, placements: np.ndarray) -> np.ndarray:
        """Scores of positive examples that are held at placements, negative parts wherever they harm most."""
        objective, model = self.objective, self.objective.model
        groups = by_image(objective.images.image_of(examples))
        scores = np.empty(len(placements))

        def score(i: int) -> np.ndarray:
            levels, some = objective.images.pyramids[i], placements[groups[i]]
            if model.has_negative_parts:
                place_negative_parts(model, levels, some, self.w)
            return model.features(levels, some) @ self.w

        for some, found in zip(groups.values(), objective.over_images(score, groups), strict=True):
            scores[some] = found
        return scores

    def _window_regret(self, held: np.ndarray) -> float:
        """By how much windows cost more with their negative parts where other weights would place them."""
        if np.array_equal(held, self.w):
            return 0.0
        objective = self.objective
        star, other = Star(objective.model, self.w), Star(objective.model, held)

        def difference(i: int) -> float:
            total = 0.0
            for k, level in enumerate(objective.images.pyramids[i]):
                responses = star.responses(level)
                for places, sign in ((other.negative_places(level), 1.0), (None, -1.0)):
                    found = star.scores(level, places, responses)
                    total += sign * hinge_sum(objective.background(i, k, found).max(axis=0), 0.0)[0]
            return total

        return objective.C * float(sum(objective.over_images(difference, range(len(objective.images)))))

    def listed(self) -> None:
        """There are as many placements as places to the power of parts."""
        return None

    def propose(self, i: int, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Another root for a positive example, with its parts at their best; windows have nothing to propose."""
        if i >= self.objective.n_positives:
            return z
        roots = self._roots[i]
        return roots[int(rng.integers(len(roots)))]

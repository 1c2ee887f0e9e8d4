"""Learning the filters of parts while the part weights of all classes stay as they are.

    F(w) = ½‖w‖² + Σ_i C_i max(0, max_{k ≠ y_i} 1 + offset_k − offset_{y_i} + (u_k − u_{y_i})·r(x_i, w))

(Naderi Parizi (3.7)). A response r is a largest score, convex in w; where a rival class weighs a part less than the
true one the sign of its difference is negative and F is not convex. There a bound (3.8) holds the part at a place of
the image: at any place the score is at most the response, so this can only raise the loss.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ...constraints.sums import DualSums
from ...data.arrays import as_rows
from ...kernels.rows import combine
from ...kernels.simplex import project
from ...kernels.vectors import dot, within
from ...problem import Rivals, RowErrors, TotalLoss, Totals
from ...regularizers import GaussianPrior
from ...rounding import gamma
from ...solvers.threads import in_parts
from ..kernels import part_places as kernels
from .responses import AT_A_TIME, Responder
from .weights import PartWeights

_TOGETHER = 32  # images whose features are formed in one call


def tied_to(last: np.ndarray, tie: float) -> GaussianPrior:
    """½‖w‖² + ½ tie ‖w − last‖², less its least value, ½ tie/(1 + tie) ‖last‖².

    A bound is good near the filters at which it touches F, and its minimiser may be far from there. Tied to these
    filters it is a bound that touches F in the same place still, and its minimiser comes in fewer passes.
    """
    return GaussianPrior(tie / (1.0 + tie) * last, 1.0 / (1.0 + tie))


@dataclass
class ImageShare:
    """Dual variables of an image: a share for each of some rival classes, and the features that these amount to.

    ``rival`` is −1 for what was averaged over several classes, where memory is short.
    """

    rival: np.ndarray
    share: np.ndarray
    loss: np.ndarray = field(default_factory=lambda: np.empty(0))
    features: np.ndarray = field(default_factory=lambda: np.empty(0))

    @property
    def nbytes(self) -> int:
        return self.features.nbytes + self.share.nbytes + self.loss.nbytes + self.rival.nbytes

    def __len__(self) -> int:
        return self.share.size


@dataclass
class FilterShares:
    """Dual variables of a bound: those of each image, and the places where its parts were seen last."""

    images: list[ImageShare]
    places: np.ndarray
    bound: FilterBound | None = None
    """The bound that features were formed for; None if they must be formed anew."""
    operations: float = 0.0
    """How often since then a feature may have been rounded."""

    def without_features(self) -> FilterShares:
        """All that another bound asks for; features take nearly all of the memory."""
        return FilterShares([ImageShare(image.rival, image.share) for image in self.images], self.places)

    def __len__(self) -> int:
        return sum(map(len, self.images))


class FilterBound:
    """A convex bound of F, as constraints: the loss when every part of every image is held at a place.

    Parameters
    ----------
    responder : Responder
    weights : PartWeights
    label : int array (n_images,)
    budget : float array (n_images,) or (1,)
        C_i.
    held : int array (n_images, n_views, n_parts, n_regions)
        Where parts are held for rivals that weigh them less than the true class.
    n_jobs : int
    """

    closed = False
    held_in = "images"

    def __init__(
        self,
        responder: Responder,
        weights: PartWeights,
        label: np.ndarray,
        budget: np.ndarray,
        held: np.ndarray,
        n_jobs: int = 1,
    ) -> None:
        self.responder, self.held, self.n_jobs = responder, held, n_jobs
        self.table, self.offset = weights.table, weights.offset
        self.label = np.ascontiguousarray(label, dtype=np.int64)
        self.n_examples = len(responder.patches)
        self.budget = np.broadcast_to(np.asarray(budget, dtype=np.float64), self.n_examples)
        self.n_parts = self.table.shape[1]
        self.n_weights = self.n_parts * responder.patches.n_features
        self._flat = np.ascontiguousarray(self.table.reshape(len(self.table), -1))
        self.unit = unit_of(responder)
        self._largest_loss = 1.0 + 2.0 * float(np.abs(self.offset).max(initial=0.0))
        self._scale = np.outer(np.ptp(self.table, axis=0).sum(axis=1), responder.patches.largest).ravel()

    def filters(self, w: np.ndarray) -> np.ndarray:
        return w.reshape(self.n_parts, -1)

    @property
    def oracle(self) -> FilterBound:
        """Who searches for constraints."""
        return self

    # What ``solve`` and certificates ask for.

    def no_shares(self) -> FilterShares:
        features = np.empty((0, self.n_weights), self.responder.dtype)
        none = ImageShare(np.empty(0, np.int64), np.empty(0), features=features)
        return FilterShares([none] * self.n_examples, self.held.copy(), self)

    def feasible(self, alpha: FilterShares) -> FilterShares:
        """The nearest shares that keep within the budgets."""
        images = []
        for image, budget in zip(alpha.images, self.budget.tolist(), strict=True):
            share = image.share.copy()
            project(share, budget)
            within(share, budget)
            images.append(replace(image, share=share))
        return replace(alpha, images=images)

    def totals(self, alpha: FilterShares) -> Totals:
        alpha = self.feasible(self.begun_from(alpha))
        sums = DualSums(self.n_weights)
        for image in alpha.images:
            if len(image):
                errors = self._row_errors(len(image), alpha.operations)
                sums.add_planes(
                    Rivals(image.rival.tolist(), as_rows(image.features), image.loss, errors=errors), image.share
                )
                sums.add_linear(0.0, gamma(alpha.operations + 4) * self._largest_loss * float(image.share.sum()))
        return sums.totals()

    def _row_errors(self, n: int, operations: float) -> RowErrors:
        """Of features: sums over views and regions, and averages of several such sums, all of them rounded."""
        formed = self.responder.patches.n_views * self.table.shape[2] + 6
        return RowErrors(np.full(n, gamma(formed + operations, self.unit)), self._scale)

    def linear(self, alpha: FilterShares) -> float:
        return sum(dot(image.loss, image.share) for image in alpha.images)

    def combine(self, alpha: FilterShares) -> np.ndarray:
        v = np.zeros(self.n_weights)
        for image in alpha.images:
            if len(image):
                combine(as_rows(image.features).arrays, image.share, v)
        return v

    def evaluate(self, w: np.ndarray) -> TotalLoss:
        missing, error = self._missing(np.arange(self.n_examples), w, self.responder)
        near = np.flatnonzero(missing + error > 0.0)
        if near.size and self.responder.dtype == np.float32:  # rounding would be seen in the certificate
            missing[near], error[near] = self._missing(near, w, self.responder.precise())
        total = dot(self.budget, np.maximum(missing, 0.0))
        hidden = dot(self.budget, np.where(missing + error > 0.0, error, 0.0))
        return TotalLoss(total, rounding=hidden + gamma(self.n_examples + 4) * total)

    def _missing(self, ids: np.ndarray, w: np.ndarray, responder: Responder) -> tuple[np.ndarray, np.ndarray]:
        """What is missing of the margins of some images, and by how much that may be underrated."""
        found = in_parts(lambda some: self.search(ids[some], w, responder)[1], ids.size, AT_A_TIME, self.n_jobs)
        return np.concatenate(found), self._search_error(w, unit_of(responder))[self.label[ids]]

    def _search_error(self, w: np.ndarray, unit: float) -> np.ndarray:
        """By how much the margin to a rival may be underrated, for images of each class."""
        size = np.abs(self.filters(w)) @ self.responder.patches.largest  # no score of a part has larger terms
        n_views, n_features = self.responder.patches.n_views, self.responder.patches.n_features
        apart = np.array([(np.abs(self.table - own).sum(axis=2) @ size).max() for own in self.table])
        each = gamma(n_features + 2, unit) + gamma(n_views + self._flat.shape[1] + 8)
        return each * apart + gamma(8) * self._largest_loss

    # What the ascent asks for.

    def search(
        self, ids: np.ndarray, w: np.ndarray, responder: Responder | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(worst rival class, what is missing of the margin to it, best places of all parts) for some images."""
        filters, responder = self.filters(w), responder or self.responder
        placed = responder.respond(ids, filters)
        held = responder.scores_at(ids, filters, self.held[ids])
        rival, missing = np.empty(ids.size, np.int64), np.empty(ids.size)
        free, fixed = placed.responses.reshape(ids.size, -1), held.reshape(ids.size, -1)
        kernels.rival_classes(self._flat, self.offset, self.label[ids], free, fixed, rival, missing)
        return rival, missing, placed.places

    def losses(self, ids: np.ndarray, rival: np.ndarray) -> np.ndarray:
        """The margin to a rival, offsets of the classes included."""
        return 1.0 + self.offset[rival] - self.offset[self.label[ids]]

    def features(self, ids: np.ndarray, rival: np.ndarray, places: np.ndarray) -> np.ndarray:
        """x of rivals of some images with parts at certain places, held ones excepted: margin = loss − w·x."""
        weights = self.table[rival] - self.table[self.label[ids]]
        places = np.where(weights[:, None] < 0.0, self.held[ids], places)
        return self.responder.rows(ids, places, weights)

    def begun_from(self, alpha: FilterShares) -> FilterShares:
        """Dual variables of another bound, or for other part weights, as some of this one.

        Shares stay, and so do the places where parts were seen last. Averages over classes mean nothing any more.
        """
        if alpha.bound is self:
            return alpha
        images: list[ImageShare] = []
        for start in range(0, self.n_examples, _TOGETHER):
            old = alpha.images[start : start + _TOGETHER]
            kept = [np.flatnonzero((image.share > 0.0) & (image.rival >= 0)) for image in old]
            sizes = [some.size for some in kept]
            rivals = [image.rival[some] for image, some in zip(old, kept, strict=True)]
            each, rival = np.repeat(start + np.arange(len(old)), sizes), np.concatenate(rivals)
            ends = np.cumsum(sizes)[:-1]
            losses = np.split(self.losses(each, rival), ends)
            features = np.split(self.features(each, rival, alpha.places[each]), ends)
            # Copies: an image that drops its rivals must not hold on to those of the others.
            images += [
                ImageShare(rivals[p], image.share[kept[p]], losses[p].copy(), features[p].copy())
                for p, image in enumerate(old)
            ]
        return self.feasible(FilterShares(images, alpha.places.copy(), self))


def unit_of(responder: Responder) -> float:
    """By which share one operation may round."""
    return float(np.finfo(responder.dtype).eps) / 2.0

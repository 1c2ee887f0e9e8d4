"""Learning the filters of parts while the part weights of all classes stay as they are.

    F(w) = ½‖w‖² + Σ_i C_i max(0, max_{k ≠ y_i} 1 + offset_k − offset_{y_i} + (u_k − u_{y_i})·r(x_i, w))

(Naderi Parizi (3.7)). A response r is a largest score, convex in w; where a rival class weighs a part less than the true
one the sign of its difference is negative and F is not convex. There a bound (3.8) holds the part at a place of the
image: at any place the score is at most the response, so this can only raise the loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...constraints import Searched
from ...data.arrays import as_rows
from ...kernels import part_places as kernels
from ...problem import Planes, Problem, Rivals
from ...protocols import Regularizer
from ...regularizers import L2
from .responses import Responder, atoms_of


class FilterObjective:
    """F and its bounds. Latent values of an image are the places (n_views, n_parts, n_regions) that a bound holds.

    Parameters
    ----------
    responder : Responder
    part_weights : float array (n_classes, n_parts, n_regions)
        u.
    offset : float array (n_classes,)
        What is added to the score of each class.
    label : int array (n_images,)
    budget : float array (n_images,) or (1,)
        C_i.
    """

    def __init__(
        self,
        responder: Responder,
        part_weights: np.ndarray,
        offset: np.ndarray,
        label: np.ndarray,
        budget: np.ndarray,
    ) -> None:
        self.responder, self.part_weights, self.offset = responder, part_weights, offset
        self.label = np.ascontiguousarray(label, dtype=np.int64)
        self.budget = np.atleast_1d(np.asarray(budget, dtype=np.float64))
        self.regularizer: Regularizer = L2()
        self.n_examples = len(responder.patches)
        self.n_parts = part_weights.shape[1]
        self.n_weights = self.n_parts * responder.patches.n_features
        self._flat = np.ascontiguousarray(part_weights.reshape(len(part_weights), -1))

    def problem(self, latent: Any, weights: np.ndarray | None = None) -> Problem:
        budget = self.budget if weights is None else self.budget * weights
        return Problem(Searched(FilterOracle(self, latent), budget), self.regularizer)

    def standing(self, w: np.ndarray) -> FilterStanding:
        return FilterStanding(self, w)

    def initial(self, rng: np.random.Generator | None) -> Any:
        """The places that random filters like best."""
        rng = np.random.default_rng(0) if rng is None else rng
        return self.standing(rng.normal(size=self.n_weights)).best

    def carriers(self, alpha: Planes) -> np.ndarray:
        carries = np.zeros(self.n_examples, bool)
        carries[alpha.example[alpha.alpha > 0.0]] = True
        return carries

    def filters(self, w: np.ndarray) -> np.ndarray:
        return w.reshape(self.n_parts, -1)

    def rivals(self, ids: np.ndarray, free: np.ndarray, fixed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(class, what is missing of the margin to it) for each image, the worst of all classes but its own."""
        rival, missing = np.empty(ids.size, np.int64), np.empty(ids.size)
        shape = (ids.size, -1)
        kernels.rival_classes(
            self._flat, self.offset, self.label[ids], free.reshape(shape), fixed.reshape(shape), rival, missing
        )
        return rival, missing

    def differences(self, ids: np.ndarray, rival: np.ndarray) -> np.ndarray:
        """u of a rival less u of the true class, for each image."""
        return self.part_weights[rival] - self.part_weights[self.label[ids]]


class FilterOracle:
    """The search for the worst offenders against a bound: a class, and the best places of the parts it likes better.

    An answer is one array of whole numbers, the class and then the places; where the bound holds a part, the bound's
    place counts, whatever the answer says. So answers mean something in the next bound as well.
    """

    releases_gil = True

    def __init__(self, objective: FilterObjective, held: np.ndarray) -> None:
        self.objective, self.held = objective, held
        self.n_examples, self.n_weights = objective.n_examples, objective.n_weights
        self.shape = (objective.responder.patches.n_views, objective.n_parts, objective.responder.pooling.n_regions)
        sizes = np.diff(objective.responder.patches.first)
        self._dtype = np.int16 if max(sizes.max(initial=0), len(objective.part_weights)) < 2**15 else np.int32

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        objective, filters = self.objective, self.objective.filters(w)
        free = objective.responder.respond(ids, filters)
        fixed = objective.responder.scores_at(ids, filters, self.held[ids])
        rival, _ = objective.rivals(ids, free.responses, fixed)
        answers = np.empty((ids.size, 1 + free.places[0].size if ids.size else 1), self._dtype)
        answers[:, 0] = rival
        answers[:, 1:] = free.places.reshape(ids.size, -1)
        return self._planes(ids, list(answers), rival, free.places)

    def planes(self, ids: np.ndarray, labels: Sequence[Any]) -> Rivals:
        answers = np.stack([np.asarray(label) for label in labels]) if len(labels) else np.empty((0, 1), self._dtype)
        n_values = 1 + int(np.prod(self.shape))
        if len(labels) and answers.shape[1] != n_values:
            raise ValueError(f"An answer is a class and places, {n_values} whole numbers; got {labels[0]!r}.")
        rival = answers[:, 0].astype(np.int64)
        return self._planes(ids, labels, rival, answers[:, 1:].reshape(-1, *self.shape).astype(np.int32))

    def _planes(self, ids: np.ndarray, labels: Sequence[Any], rival: np.ndarray, places: np.ndarray) -> Rivals:
        objective = self.objective
        weights = objective.differences(ids, rival)
        places = np.where(weights[:, None] < 0.0, self.held[ids], places)
        data = objective.responder.rows(ids, places, weights)
        offset = objective.offset
        losses = (rival != objective.label[ids]) + offset[rival] - offset[objective.label[ids]]
        return Rivals(labels, as_rows(data), losses)


class FilterStanding:
    """F at one w: the regret of holding parts at certain places is C_i·(hinge then − hinge now)."""

    def __init__(self, objective: FilterObjective, w: np.ndarray) -> None:
        self._objective, self._filters = objective, objective.filters(w)
        everybody = np.arange(objective.n_examples)
        placed = objective.responder.respond(everybody, self._filters)
        self.best, self._free = placed.places, placed.responses
        self._hinge = np.maximum(objective.rivals(everybody, self._free, self._free)[1], 0.0)

    @property
    def loss(self) -> float:
        """Σ C_i · hinge."""
        return float((self._objective.budget * self._hinge).sum())

    def regrets(self, ids: np.ndarray, latent: Any) -> np.ndarray:
        objective = self._objective
        latent, free = np.asarray(latent), self._free[ids]
        # Products in another order differ by rounding: at the best places the score is the response, to the last bit.
        fixed = np.minimum(objective.responder.scores_at(ids, self._filters, latent), free)
        fixed = np.where((latent == self.best[ids]).all(axis=1), free, fixed)
        hinge = np.maximum(objective.rivals(ids, free, fixed)[1], 0.0)
        budget = objective.budget[ids] if objective.budget.size > 1 else objective.budget
        return budget * np.maximum(hinge - self._hinge[ids], 0.0)

    def listed(self) -> None:
        return None

    def propose(self, i: int, z: Any, rng: np.random.Generator) -> Any:
        """One part of one region is held at another patch of that region, in one view."""
        patches, pooling = self._objective.responder.patches, self._objective.responder.pooling
        v, j, r = (int(rng.integers(n)) for n in np.shape(z))
        view = slice(*patches.first[i * patches.n_views + v :][:2].tolist())
        atoms = atoms_of(replace(patches, values=patches.values[view], windows=patches.windows_of(view)), pooling)
        there = np.flatnonzero(pooling.member[r, atoms])
        changed = np.array(z)
        if there.size:
            changed[v, j, r] = rng.choice(there)
        return changed

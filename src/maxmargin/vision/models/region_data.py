"""Images as grids of region features, bound to a ``Reconfigurable`` model: searches over many images at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ...models import labelling
from ...models.rounding import search_rounding
from ...problem import Rivals, RowErrors, Rows
from ...rounding import gamma
from ..kernels import regions as kernels

if TYPE_CHECKING:
    from .reconfigurable import Reconfigurable

_BLOCK = 2**25  # bytes of products that are at hand at a time
_REMEMBER = 2**28  # bytes of scores of the true classes that are kept between two questions about the same weights


def as_regions(X: ArrayLike, grid: tuple[int, int] | None, n_features: int | None) -> np.ndarray:
    """X as a floating array (n, rows, columns, features), a memory map included, without a copy where possible."""
    X = np.asanyarray(X)
    if X.ndim != 4:
        raise ValueError(
            f"Regions must be an array (images, rows, columns, features), got one of shape {X.shape}. A list of images "
            "must consist of arrays (rows, columns, features) of the same shape."
        )
    if X.dtype.kind not in "fiub":
        raise ValueError(f"Features of regions must be numbers, got {X.dtype}.")
    if grid is not None and X.shape[1:3] != tuple(grid):
        raise ValueError(
            f"The model has a grid of {grid[0]} × {grid[1]} regions, X one of {X.shape[1]} × {X.shape[2]}."
        )
    if n_features is not None and X.shape[3] != n_features:
        raise ValueError(f"The model has {n_features} features for each region, X has {X.shape[3]}.")
    if 0 in X.shape[1:]:
        raise ValueError(f"X has no regions or no features: its shape is {X.shape}.")
    if X.dtype in (np.float32, np.float64):
        return X
    return X.astype(np.float32 if X.dtype.itemsize <= 2 else np.float64)


class RegionData:
    """A ``LatentOracle``. Where neighbours count, the last parts found for each class are where the next search begins.

    Latent values are a list of int16 arrays, one part for each region. Who asks ``once`` only saves the room for these.
    """

    y: np.ndarray
    n_examples: int
    n_weights: int
    exact: bool
    costs: np.ndarray

    def __init__(self, model: Reconfigurable, X: ArrayLike, Y: ArrayLike, *, once: bool = False) -> None:
        self.model = model
        self.N, self.P, self.R, self.D, self.Q = model.sizes()
        self.M = model.n_parts
        X = as_regions(X, model.grid, model.n_features)
        self.y = labelling.check_labels(Y, self.N, "Y")
        if self.y.size != len(X):
            raise ValueError(f"X has {len(X)} images, Y has {self.y.size} labels.")
        self.X = X.reshape(len(X), self.R, self.D)
        largest = self._largest()
        self.n_examples, self.n_weights = len(X), model.n_weights
        # Pairs of neighbours, two at most for each region, have features up to 1.
        self._scale = np.full(self.n_weights, 2.0)
        self._scale[: self.P * self.M * self.D] = np.tile(largest, self.P * self.M)
        self.exact = model.exact
        self.costs = model.costs()
        self._search = model.search() if self.Q else None
        keeps = self.Q and not self.exact and not once
        self._found = np.full((self.n_examples, self.N, self.R), -1, np.int8) if keeps else None
        self._last: tuple[np.ndarray, np.ndarray] = np.empty(0), np.empty(0)

    def exact_at(self, w: np.ndarray) -> bool:
        """Whether the best parts are found for certain at these weights, whatever regularizer let them come about."""
        return self._search is None or self._search.exact_for(*self.model.tables(w))

    def _largest(self) -> np.ndarray:
        """The largest absolute value of every feature; complains if some are not finite."""
        largest = np.zeros(self.D)
        for ids in self._blocks(np.arange(len(self.X))):
            some = np.abs(self.X[ids])
            bad = ~np.isfinite(some).all(axis=(1, 2))
            if bad.any():
                raise ValueError(f"Image {ids[np.argmax(bad)]} has features that are not finite.")
            np.maximum(largest, some.max(axis=(0, 1), initial=0.0), out=largest)
        return largest

    def _blocks(self, ids: np.ndarray) -> Iterator[np.ndarray]:
        size = max(1, _BLOCK // (8 * self.R * max(self.P * self.M, self.N * self.M if self.Q else 0, self.D)))
        for start in range(0, ids.size, size):
            yield ids[start : start + size]

    # Scores at some weights.

    def _products(self, ids: np.ndarray, B: np.ndarray) -> np.ndarray:
        """B·x_r for some images: (n, R, sets of parts, M)."""
        x = self.X[ids].reshape(-1, self.D).astype(np.float64, copy=False)
        return (x @ B.reshape(-1, self.D).T).reshape(ids.size, self.R, -1, self.M)

    def _true_unaries(self, ids: np.ndarray, w: np.ndarray) -> np.ndarray:
        """What each part scores in each region, for the true class: (n, R, M)."""
        if np.array_equal(w, self._last[0]):
            return self._last[1][ids]
        B, prior = self.model.appearance(w), self.model.preference(w)
        out = np.empty((ids.size, self.R, self.M))
        if self.P == 1:
            np.add(self._products(ids, B)[:, :, 0], prior[self.y[ids]], out=out)
            return out
        for k in np.unique(self.y[ids]).tolist():
            here = np.flatnonzero(self.y[ids] == k)
            out[here] = self._products(ids[here], B[k])[:, :, 0] + prior[k]
        return out

    def _remember(self, w: np.ndarray) -> None:
        """Keep the scores of the true classes of all images, where there is room: more will be asked at w."""
        w = labelling.as_weights(w, self.n_weights)
        if 8 * self.n_examples * self.R * self.M <= _REMEMBER and not np.array_equal(w, self._last[0]):
            unary = np.empty((self.n_examples, self.R, self.M))
            for ids in self._blocks(np.arange(self.n_examples)):
                unary[ids] = self._true_unaries(ids, w)
            self._last = w.copy(), unary

    # What a LatentOracle can do.

    def bound(self, latent: ArrayLike) -> RegionOracle:
        z = self.checked(np.arange(self.n_examples), latent)
        if self._found is not None:  # no search for the true class ends below these parts
            self._found[np.arange(self.n_examples), self.y] = z
        return RegionOracle(self, z)

    def truths(self, ids: np.ndarray, latent: ArrayLike) -> list[tuple[int, np.ndarray]]:
        return list(zip(self.y[ids].tolist(), self.checked(ids, latent), strict=True))

    def complete(self, w: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        z = np.empty((self.n_examples, self.R), np.int16)
        score = np.empty(self.n_examples)
        tables = self.model.tables(w)
        self._remember(w)
        for ids in self._blocks(np.arange(self.n_examples)):
            unary = self._true_unaries(ids, w)
            if self._search is None:
                z[ids] = unary.argmax(axis=2)
                score[ids] = _part_scores(unary, z[ids])
            else:
                z[ids], score[ids] = self._labelled(ids, self.y[ids], unary, tables)
        return list(z), score

    def scores(self, ids: np.ndarray, latent: ArrayLike, w: np.ndarray) -> np.ndarray:
        z = self.checked(ids, latent)
        if ids.size == self.n_examples:
            self._remember(w)
        out = np.empty(ids.size)
        for some in self._blocks(np.arange(ids.size)):
            out[some] = _part_scores(self._true_unaries(ids[some], np.asarray(w, np.float64)), z[some])
        return out + self._pair_scores(self.y[ids], z, w) if self.Q else out

    def _pair_scores(self, classes: np.ndarray, z: np.ndarray, w: np.ndarray) -> np.ndarray:
        rows, cols = self.model.grid  # type: ignore[misc]
        horizontal, vertical = self.model.tables(w)
        at = classes[:, None, None]
        z = z.reshape(-1, rows, cols)
        beside = horizontal[at, z[:, :, :-1], z[:, :, 1:]].sum(axis=(1, 2))
        return beside + vertical[at, z[:, :-1], z[:, 1:]].sum(axis=(1, 2))

    def listed(self, w: np.ndarray) -> None:
        return None

    def propose(self, i: int, z: np.ndarray, w: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.model.propose(None, int(self.y[i]), z, w, rng)

    def initial(self) -> list[np.ndarray]:
        return [self.model.initial(None, 0)] * self.n_examples

    # The search over classes.

    def rivals(
        self, ids: np.ndarray, w: np.ndarray, cost: np.ndarray, *, careful: bool = True
    ) -> list[tuple[int, np.ndarray]]:
        """The best (class, parts) of some images, costs included where there are any.

        Where neighbours count and nothing is certain anyway, all classes are first searched by single regions; unless
        it is to be done with care, only the class that is then the best is searched further.
        """
        found: list[tuple[int, np.ndarray]] = []
        for block in self._blocks(ids):
            scores, parts_of = self._by_class(block, w, cost, careful or self.exact)
            top = np.argmax(scores, axis=1)
            found += zip(top.tolist(), parts_of(top).astype(np.int16), strict=True)
        return found

    def _by_class(
        self, ids: np.ndarray, w: np.ndarray, cost: np.ndarray, careful: bool, n_jobs: int = 1
    ) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """The scores of all classes, (n, N), and what gives the best parts of one class for each of these images."""
        w = labelling.as_weights(w, self.n_weights)
        prior, tables = self.model.preference(w), self.model.tables(w)
        products = self._products(ids, self.model.appearance(w))
        scores = cost[self.y[ids]] if cost.size else np.zeros((ids.size, self.N))
        every = np.arange(ids.size)
        if self._search is None:
            kernels.all_classes(products, prior, scores)
            return scores, lambda top: (products[every, :, 0 if self.P == 1 else top] + prior[top]).argmax(axis=2)
        # The score of every part in every region, for all classes: (n, N, R, M).
        unary = np.add(products.swapaxes(1, 2), prior, order="C")
        each, classes = np.repeat(ids, self.N), np.tile(np.arange(self.N), ids.size)
        z, reached = self._labelled(each, classes, unary.reshape(-1, self.R, self.M), tables, careful, n_jobs)
        scores += reached.reshape(ids.size, self.N)
        if careful:
            return scores, lambda top: z.reshape(ids.size, self.N, self.R)[every, top]
        return scores, lambda top: self._labelled(ids, top, unary[every, top], tables)[0]

    def _labelled(
        self,
        ids: np.ndarray,
        classes: np.ndarray,
        unary: np.ndarray,
        tables: tuple[np.ndarray, np.ndarray],
        careful: bool = True,
        n_jobs: int = 1,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The best parts of grids, from those that the same image and class had last."""
        search: Any = self._search
        if self.exact:
            return search.best(unary, *tables, which=classes, threads=n_jobs)
        start = None
        if self._found is not None:
            start = self._found[ids, classes]
            new = start[:, 0] < 0
            start[new] = unary[new].argmax(axis=2)
        z, score = search.best(unary, *tables, which=classes, start=start, threads=n_jobs, swaps=careful)
        if self._found is not None:
            self._found[ids, classes] = z
        return z, score

    def search_rounding(self, ids: np.ndarray, w: np.ndarray) -> np.ndarray:
        """By how much rounding may have hidden a better answer to some images: no score has larger terms than these."""
        largest = np.abs(self.model.appearance(w)).reshape(-1, self.D).max(axis=0)
        size = np.concatenate([np.abs(self.X[b]).sum(axis=1, dtype=np.float64) @ largest for b in self._blocks(ids)])
        tables = [np.abs(table).max(initial=0.0) for table in self.model.tables(w)] if self.Q else [0.0]
        rest = self.R * (np.abs(self.model.preference(w)).max(initial=0.0) + 2.0 * max(tables)) + self.costs.max()
        return search_rounding(size + rest, self.D + 8.0 * self.R)

    def row_errors(self, ids: np.ndarray) -> RowErrors:
        """Rows sum the features of the regions that have the same part."""
        return RowErrors(np.full(ids.size, gamma(2 * self.R + 2) * self.R), self._scale)

    def answers(self, w: np.ndarray) -> list[tuple[int, np.ndarray]]:
        return self.rivals(np.arange(self.n_examples), w, np.empty((0, 0)))

    def class_scores(self, w: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        scores = np.empty((self.n_examples, self.N))
        for ids in self._blocks(np.arange(self.n_examples)):
            scores[ids] = self._by_class(ids, w, np.empty(0), careful=True, n_jobs=n_jobs)[0]
        return scores

    def checked(self, ids: np.ndarray, latent: ArrayLike) -> np.ndarray:
        """Parts of some images as one array (n, R), if these are parts of this model."""
        if not ids.size and not np.size(latent):  # no numbers to look at
            return np.empty((0, self.R), np.int16)
        try:
            z = np.asarray(latent)
        except ValueError:
            z = np.empty(0)
        if z.shape[:1] != ids.shape or z.size != ids.size * self.R or z.dtype.kind not in "iu":
            raise ValueError(
                f"Latent values must be whole numbers, {self.R} parts for each of {ids.size} images; got an array of "
                f"{z.dtype} of shape {z.shape}."
            )
        z = z.reshape(ids.size, self.R)
        bad = (z < 0) | (z >= self.M)
        if bad.any():
            p, r = np.argwhere(bad)[0]
            raise ValueError(f"Image {ids[p]} has part {z[p, r]} in region {r}, which is not one of its parts.")
        return z.astype(np.int16, copy=False)


class RegionOracle:
    """The bound in which image i is of class y_i with parts z_i."""

    data: RegionData
    z: np.ndarray
    n_examples: int
    n_weights: int

    releases_gil = True

    def __init__(self, data: RegionData, z: np.ndarray) -> None:
        self.data, self.z = data, z
        self.n_examples, self.n_weights = data.n_examples, data.n_weights

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        answers = self.data.rivals(ids, w, self.data.costs, careful=False)
        found = replace(self._planes(ids, answers), rounding=partial(self.data.search_rounding, ids, w))
        return found if self.data.exact_at(w) else replace(found, excess=np.full(ids.size, np.inf))

    def planes(self, ids: np.ndarray, labels: Sequence[Any]) -> Rivals:
        if not len(labels):  # no numbers to look at
            return self._planes(ids, [])
        classes = labelling.check_labels([label[0] for label in labels], self.data.N, "An answer")
        z = self.data.checked(ids, [label[1] for label in labels])
        return self._planes(ids, list(zip(classes.tolist(), z, strict=True)))

    def _planes(self, ids: np.ndarray, answers: list[tuple[int, np.ndarray]]) -> Rivals:
        data = self.data
        classes = np.array([k for k, _ in answers], np.int64)
        z = np.array([z for _, z in answers], np.int16).reshape(ids.size, data.R)
        most = int((_n_parts(self.z[ids]) + _n_parts(z)).sum()) * data.D + 2 * ids.size * (data.R + data.Q)
        indptr = np.empty(ids.size + 1, np.int64)
        indices, values = np.empty(most + 1, np.int32), np.empty(most + 1)
        n = kernels.differences(
            data.X[ids], data.P, data.N, data.M, data.model.pair_kind, data.model.grid[1], data.Q,  # type: ignore[index]
            data.y[ids], self.z[ids], classes, z, indptr, indices, values,
        )  # fmt: skip
        n = max(n, 1)  # empty ``indices`` would mean "dense"
        rows = Rows(indptr, indices[:n].copy(), values[:n].copy(), ids.size, self.n_weights)
        losses = data.costs[data.y[ids], classes]
        excess = None if data.exact else np.full(ids.size, np.inf)
        return Rivals(answers, rows, losses, excess, errors=data.row_errors(ids))


def _part_scores(unary: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Σ_r unary[i, r, z_r] for each example, summed up region by region."""
    return np.take_along_axis(unary, z[..., None], axis=2)[..., 0].cumsum(axis=1)[:, -1]


def _n_parts(z: np.ndarray) -> np.ndarray:
    """How many different parts each image has."""
    return 1 + np.count_nonzero(np.diff(np.sort(z, axis=1), axis=1), axis=1)

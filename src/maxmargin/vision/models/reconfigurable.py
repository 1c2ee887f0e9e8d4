"""The reconfigurable model: classes of images whose regions are explained by parts, as latent variables."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ...models import labelling
from ...persistence import storable_part
from ...regularizers import Bounded
from ...validation import whole
from ..kernels import regions as kernels
from .grids import MOST_LABELS, GridSearch
from .region_data import RegionData, as_regions

PAIRS = (None, "potts", "regular")


@storable_part(key="model")
class Reconfigurable:
    """Images as arrangements of parts (RBoW, RBoW+, RBoW++; Naderi Parizi, chapter 2).

        w·φ(x, y, z) = Σ_r B_{y,z_r}·x_r + A_{y,r,z_r}  +  Σ over neighbours (r, s) of S_y(z_r, z_s)

    x are the features of regions on a grid (X an array (n, rows, columns, features)), y a class 0 … n_classes−1, and
    the latent z says which of the class's parts explains each region: an array with one part for each region, row by
    row. Neighbours are joined from left to right and from top to bottom, each pair once.

    Parameters
    ----------
    n_classes, n_features : int or None
        Taken from the data by default.
    n_parts : int
        Region models of each class, or of all classes together.
    grid : (rows, columns) or None
        Taken from the data by default.
    parts : {"separate", "shared"}
        Whether each class has parts of its own, or B is the same for all of them; A and S are the class's own in
        any case.
    pairs : {None, "potts", "regular"}
        None: regions are independent. "potts": borders between parts j and k cost (T_{y,j} + T_{y,k})/2, with T ≥ 0.
        "regular": any S with S_jj + S_kk ≥ S_jk + S_kj, one for horizontal and one for vertical neighbours.
    cost : array (n_classes, n_classes) or None
        Loss of answering the column where the row is true; 1 for every confusion by default.

    Examples
    --------
    >>> model = Reconfigurable(n_classes=2, n_features=1, n_parts=2, grid=(1, 2))
    >>> w = np.array([1.0, -1.0, 0.0, 0.0, *8 * [0.0]])  # class 0 has a part for large and one for small values
    >>> y, z = model.predict(np.array([[[3.0], [-2.0]]]), w)
    >>> y, z.tolist()
    (0, [0, 1])
    """

    n_parts: int
    grid: tuple[int, int] | None
    pair_kind: int
    cost: np.ndarray | None

    def __init__(
        self,
        n_classes: int | None = None,
        n_features: int | None = None,
        *,
        n_parts: int = 16,
        grid: tuple[int, int] | None = None,
        parts: str = "separate",
        pairs: str | None = None,
        cost: ArrayLike | None = None,
    ) -> None:
        labelling.check_sizes(n_classes=n_classes, n_features=n_features)
        if not isinstance(n_parts, int | np.integer) or not 1 <= n_parts < 2**15:
            raise ValueError(f"n_parts must be a whole number of at least 1, got {n_parts!r}.")
        if parts not in ("separate", "shared"):
            raise ValueError(f"parts must be 'separate' or 'shared', got {parts!r}.")
        if pairs not in PAIRS:
            raise ValueError(f"pairs must be None, 'potts' or 'regular', got {pairs!r}.")
        if pairs is not None and n_parts > MOST_LABELS:
            raise ValueError(f"Where neighbours count there can be {MOST_LABELS} parts at most, got n_parts={n_parts}.")
        self.n_classes = n_classes
        self.n_features = n_features
        self.n_parts = int(n_parts)
        self.grid = None if grid is None else (whole("grid[0]", grid[0]), whole("grid[1]", grid[1]))
        self.parts = parts
        self.pairs = pairs
        self.pair_kind = PAIRS.index(pairs)
        self.cost = None if cost is None else np.asarray(cost, dtype=np.float64)
        if self.cost is not None:
            labelling.check_loss(self.cost, n_classes)

    def __repr__(self) -> str:
        return (
            f"Reconfigurable(n_classes={self.n_classes}, n_features={self.n_features}, n_parts={self.n_parts}, "
            f"grid={self.grid}, parts={self.parts!r}, pairs={self.pairs!r})"
        )

    def sized(self, X: ArrayLike, Y: ArrayLike) -> Reconfigurable:
        """A copy that knows its sizes: from the data, where they were not given."""
        X = as_regions(X, self.grid, self.n_features)
        sized = copy.copy(self)
        sized.grid, sized.n_features = (X.shape[1], X.shape[2]), X.shape[3]
        if self.n_classes is None:
            labels = labelling.check_labels(Y, np.inf, "Y")
            sized.n_classes = 1 + int(labels.max()) if self.cost is None else len(self.cost)
        return sized

    def joined(self, others: Sequence[Reconfigurable]) -> Reconfigurable:
        """The model that knows the sizes of this one and others, each sized on a part of the data."""
        return labelling.joined([self, *others], ["n_features", "grid"], ["n_classes"])

    # Where the weights are.

    def sizes(self) -> tuple[int, int, int, int, int]:
        """Classes, sets of parts, regions, features, weights of a class's pairs."""
        if self.n_classes is None or self.n_features is None or self.grid is None:
            raise ValueError(
                "This model does not know its sizes: give n_classes, n_features and grid, or use sized(X, Y)."
            )
        M, R = self.n_parts, self.grid[0] * self.grid[1]
        Q = {None: 0, "potts": M, "regular": 2 * M * M}[self.pairs]
        return self.n_classes, 1 if self.parts == "shared" else self.n_classes, R, self.n_features, Q

    @property
    def n_weights(self) -> int:
        N, P, R, D, Q = self.sizes()
        return P * self.n_parts * D + N * R * self.n_parts + N * Q

    def appearance(self, w: np.ndarray) -> np.ndarray:
        """B, the weights of each part: (classes or 1, n_parts, n_features), not a copy."""
        _, P, _, D, _ = self.sizes()
        return w[: P * self.n_parts * D].reshape(P, self.n_parts, D)

    def preference(self, w: np.ndarray) -> np.ndarray:
        """A, how much each region likes each part: (n_classes, n_regions, n_parts), not a copy."""
        N, P, R, D, _ = self.sizes()
        start = P * self.n_parts * D
        return w[start : start + N * R * self.n_parts].reshape(N, R, self.n_parts)

    def tables(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """S, the scores of horizontal and of vertical neighbours: two arrays (n_classes, n_parts, n_parts)."""
        N, _, R, _, Q = self.sizes()
        M = self.n_parts
        both = np.zeros((2, N, M, M))
        own = w[self.n_weights - N * Q :].reshape(N, Q)
        if self.pairs == "potts":
            both[:] = -0.5 * (own[:, :, None] + own[:, None])
            both[..., range(M), range(M)] = 0.0
        elif self.pairs == "regular":
            above, below = np.triu_indices(M, 1)
            for table, part in zip(both, (own[:, : M * M], own[:, M * M :]), strict=True):
                worth, (beta, alpha) = part[:, :M], np.split(part[:, M:], 2, axis=1)
                table[:] = 0.5 * (1.0 / np.sqrt(R)) * (worth[:, :, None] + worth[:, None])
                table[:, above, below] += beta - alpha
                table[:, below, above] -= beta + alpha
        return both[0], both[1]

    @property
    def regularizer(self) -> Bounded | None:
        """What keeps S regular: bounds on some weights (Naderi Parizi (2.31)); None where there are no pairs."""
        N, P, R, D, Q = self.sizes()
        if not Q:
            return None
        M = self.n_parts
        start = P * M * D + N * R * M
        bounded = np.arange(N * Q).reshape(N, Q)
        if self.pairs == "regular":  # the α of both directions
            bounded = bounded.reshape(N, 2, M * M)[:, :, M + M * (M - 1) // 2 :]
        return Bounded(0.0, start + bounded.ravel())

    @property
    def states(self) -> list[int] | list[tuple[int, int]]:
        """For the group norm: the parts, or (class, part) where each class has its own."""
        N, P, _, _, _ = self.sizes()
        return list(range(self.n_parts)) if P == 1 else [(k, j) for k in range(N) for j in range(self.n_parts)]

    @property
    def groups(self) -> list[np.ndarray]:
        """The weights of each of ``states``: what a part looks like and where it may be."""
        if self.pairs is not None:
            raise AttributeError("groups: the weights of pairs belong to two parts at once.")
        _, P, _, _, _ = self.sizes()
        number = np.arange(self.n_weights)
        B, A = self.appearance(number), self.preference(number)
        if P == 1:
            return [np.concatenate([B[0, j], A[:, :, j].ravel()]) for j in range(self.n_parts)]
        return [np.concatenate([B[k, j], A[k, :, j]]) for k in range(P) for j in range(self.n_parts)]

    # The methods of a latent model.

    def features(self, x: ArrayLike, answer: tuple[int, ArrayLike]) -> sp.csr_matrix:
        N, P, R, D, Q = self.sizes()
        x = as_regions(np.asarray(x)[None], self.grid, self.n_features)[0].reshape(R, D)
        y, z = answer
        z = np.asarray(z, np.int64).ravel()
        vector = np.zeros(self.n_weights)
        np.add.at(self.appearance(vector)[0 if P == 1 else y], z, x)
        self.preference(vector)[y, np.arange(R), z] = 1.0
        if Q:
            pairs = np.empty(Q)
            kernels.pair_features(self.pair_kind, z, *self.grid, self.n_parts, pairs)  # type: ignore[misc]
            vector[vector.size - N * Q :].reshape(N, Q)[y] = pairs
        return sp.csr_matrix(vector)

    def costs(self) -> np.ndarray:
        return 1.0 - np.eye(self.sizes()[0]) if self.cost is None else self.cost

    def loss(self, y: int, answer: tuple[int, ArrayLike]) -> float:
        return float(self.costs()[int(y), int(answer[0])])

    @property
    def exact(self) -> bool:
        """Whether the best parts are found for certain, at weights that the regularizer allows."""
        return self.pairs is None or (self.grid is not None and self.search().exact)

    def search(self) -> GridSearch:
        """The search for the best parts of a whole grid, where neighbours count."""
        return GridSearch(*self.grid, self.n_parts)  # type: ignore[misc]

    def predict(self, x: ArrayLike, w: np.ndarray) -> tuple[int, np.ndarray]:
        return self.predict_all(np.asarray(x)[None], w)[0]

    def predict_all(self, X: ArrayLike, w: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """The best class of every image, and the parts that explain it."""
        return self._bound_to(X).answers(w)

    def class_scores(self, X: ArrayLike, w: np.ndarray, *, n_jobs: int = 1) -> np.ndarray:
        """The score of every class with its best parts: (n, n_classes). Threads share grids with neighbours."""
        return self._bound_to(X).class_scores(w, n_jobs)

    def _bound_to(self, X: ArrayLike) -> RegionData:
        X = np.asanyarray(X)
        return RegionData(self, X, np.zeros(len(X), np.int64), once=True)

    def most_violated(self, x: ArrayLike, y: int, w: np.ndarray) -> tuple[int, np.ndarray]:
        data = RegionData(self, np.asarray(x)[None], [y])
        return data.rivals(np.zeros(1, np.int64), w, self.costs())[0]

    def complete(self, x: ArrayLike, y: int, w: np.ndarray) -> np.ndarray:
        return RegionData(self, np.asarray(x)[None], [y]).complete(w)[0][0]

    def propose(self, x: object, y: int, z: np.ndarray, w: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One region has another part."""
        z = np.array(z)
        r = int(rng.integers(0, z.size))
        others = np.flatnonzero(np.arange(self.n_parts) != z[r])
        if others.size:
            z[r] = rng.choice(others)
        return z

    def initial(self, x: object, y: int) -> np.ndarray:
        """Parts dealt out to the regions row by row: with as many parts as regions, one for each."""
        R = self.sizes()[2]
        return (np.arange(R) * self.n_parts // R).astype(np.int16)

    def latent_oracle(self, X: ArrayLike, Y: ArrayLike) -> RegionData:
        return RegionData(self, X, Y)

"""Labels for the pixels of pictures: a grid of pixels or of square cells, as a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data.graphs import Graphs
from ..validation import switch, whole
from . import labelling
from .graph import Graph, GraphOracle

_STEPS = ((0, 1), (1, 0), (1, 1), (1, -1))  # rows and columns to the second end of an edge


class Segmentation2D(Graph):
    """Labels for the pixels of pictures: each pixel, or square cell of pixels, is a node of a ``Graph``.

    x is an array (height, width) or (height, width, n_features) of what is known of each pixel, y an array (height,
    width) of labels 0 … n_labels−1; pictures may differ in size. Pixels of a cell have the same label: features are
    averaged over it, and its true label is the most frequent one. Losses count cells.

    Parameters
    ----------
    n_labels, n_features : int or None
        Taken from the data by default.
    cell : int
        Pixels of a side of a cell; 1 labels every pixel by itself.
    neighbours : {4, 8}
        Whether cells that touch at a corner are neighbours, too. Every direction has weights of its own.
    contrast : bool
        Whether there are besides weights for pairs of labels where neighbours look alike: an edge has the feature
        exp(−‖difference of features‖² / mean of that over the picture).
    loss, bias, symmetric, inference
        As for ``Graph``.

    Examples
    --------
    >>> pictures = [np.array([[0.9, 0.8, -0.7], [1.1, -0.1, -1.0], [0.7, -0.9, -1.2]])] * 2
    >>> truth = [(picture > 0).astype(int) for picture in pictures]
    >>> from maxmargin import StructuralSVM
    >>> svm = StructuralSVM(Segmentation2D(), C=1.0, random_state=0).fit(pictures, truth)
    >>> svm.predict(pictures)[0]
    array([[1, 1, 0],
           [1, 0, 0],
           [1, 0, 0]], dtype=int32)
    """

    def __init__(
        self,
        n_labels: int | None = None,
        n_features: int | None = None,
        *,
        cell: int = 1,
        neighbours: int = 4,
        contrast: bool = True,
        loss: object = "hamming",
        bias: bool = True,
        symmetric: bool = False,
        inference: str = "auto",
    ) -> None:
        self.cell = whole("cell", cell)
        if whole("neighbours", neighbours) not in (4, 8):
            raise ValueError(f"neighbours must be 4 or 8, got {neighbours}.")
        self.neighbours = neighbours
        switch("contrast", contrast)
        self.contrast = contrast
        n_edge_features = neighbours // 2 * (1 + contrast)
        super().__init__(
            n_labels, n_features, n_edge_features, loss=loss, bias=bias, symmetric=symmetric, inference=inference
        )

    def __repr__(self) -> str:
        return f"Segmentation2D(n_labels={self.n_labels}, n_features={self.n_features}, cell={self.cell})"

    def graph(self, x: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A picture as nodes, edges and edge features."""
        pixels = np.asarray(x)
        pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
        if pixels.ndim != 3 or not pixels.size or pixels.dtype.kind not in "iufb":
            raise ValueError(
                "A picture must be an array of numbers (height, width) or (height, width, n_features), got "
                f"{pixels.dtype} of shape {np.shape(x)}."
            )
        nodes = self._sums(pixels.astype(np.float64)) / self._sums(np.ones((*pixels.shape[:2], 1)))
        height, width, n_features = nodes.shape
        number = np.arange(height * width).reshape(height, width)
        edges, direction = [], []
        for d, (down, right) in enumerate(_STEPS[: self.neighbours // 2]):
            left = slice(max(-right, 0), width - max(right, 0))
            other = slice(max(right, 0), width + min(right, 0))
            ends = number[: height - down, left], number[down:, other]
            edges.append(np.stack([end.ravel() for end in ends], axis=1))
            direction += [d] * ends[0].size
        pairs, flat = np.concatenate(edges), nodes.reshape(-1, n_features)
        features = np.eye(self.neighbours // 2)[np.array(direction, dtype=int)]
        if self.contrast:
            apart = np.square(flat[pairs[:, 0]] - flat[pairs[:, 1]]).sum(axis=1)
            mean = apart.mean() if apart.any() else 1.0
            features = np.concatenate([features, features * np.exp(-apart / mean)[:, None]], axis=1)
        return flat, pairs, features

    def oracle(self, X: Sequence[Any], Y: Sequence[Any]) -> GraphOracle:
        for i, (x, y) in enumerate(zip(X, Y, strict=False)):
            if np.ndim(y) == 2 and np.shape(y) != np.shape(x)[:2]:
                raise ValueError(
                    f"Picture {i} has {np.shape(x)[0]} rows of {np.shape(x)[1]} pixels, its labels are of shape "
                    f"{np.shape(y)}. Give one label for each pixel."
                )
        return super().oracle(X, Y)

    def _sums(self, pixels: np.ndarray) -> np.ndarray:
        """Sums over the pixels of each cell."""
        if self.cell == 1:
            return pixels
        rows, columns = (np.arange(0, size, self.cell) for size in pixels.shape[:2])
        return np.add.reduceat(np.add.reduceat(pixels, rows, axis=0), columns, axis=1)

    def _graphs(self, X: Sequence[Any]) -> Graphs:
        return Graphs.of([self.graph(x) for x in X], self.n_features, self.n_edge_features)

    def _labels(self, Y: Sequence[Any]) -> list[np.ndarray]:
        return [self._of_cells(y, f"Y[{i}]") for i, y in enumerate(Y)]

    def _of_cells(self, y: Any, what: str = "y") -> np.ndarray:
        """Labels of cells, one after another: they are given so, or found in those of pixels."""
        pixels = np.asarray(y)
        if pixels.ndim != 2:
            return labelling.check_labels(pixels, np.inf, what)
        labels = labelling.check_labels(pixels.ravel(), np.inf, what).reshape(pixels.shape)
        if self.cell == 1:
            return labels.ravel()
        return self._sums(np.eye(1 + labels.max(initial=0))[labels]).argmax(axis=2).ravel()

    def loss(self, y: object, y_hat: object) -> float:
        return super().loss(self._of_cells(y), self._of_cells(y_hat))

    def predict_all(self, X: Sequence[Any], w: np.ndarray) -> list[np.ndarray]:
        """The best labels of the pixels of every picture."""
        return [self._pixels(x, labels) for x, labels in zip(X, super().predict_all(X, w), strict=True)]

    def _pixels(self, x: Any, labels: np.ndarray) -> np.ndarray:
        height, width = np.shape(x)[:2]
        cells = labels.reshape(-(-height // self.cell), -1)
        return np.repeat(np.repeat(cells, self.cell, axis=0), self.cell, axis=1)[:height, :width]

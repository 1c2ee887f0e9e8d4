"""Responses of many filters at all places of a grid of cells."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..kernels.correlation import add_rows, add_spectra, runs, tile

_BLOCK = 1 << 17  # numbers in a block of runs: half a megabyte, which stays in the second cache beside the product
_LENGTHS = (16, 24, 32, 40, 48, 64, 80, 96, 128)  # sides of tiles: few, so that few spectra of filters are needed
_KEPT = 1 << 28  # bytes of spectra of filters that are kept


class Correlator:
    """What filters give at every place of a grid where they lie wholly within it.

    Parameters
    ----------
    filters : sequence of finite arrays, each of shape (h, w, d)
        Of any numbers of rows and columns; the number of features d of a cell is the same for all, 32 for ``hog``.
    method : {"auto", "products", "fft"}, default "auto"
        How it is computed: by matrix products, by Fourier transforms of tiles of the grid, or by whichever is expected
        to be faster for these filters on a grid of that size. Results differ by rounding.

    Notes
    -----
    Threads may share one: the spectra of the filters, which are kept from grid to grid, are guarded. What ``"auto"``
    chooses depends on the sizes of filters and grid alone, so results can be repeated.

    Examples
    --------
    >>> cells = np.arange(12, dtype=np.float32).reshape(3, 4, 1)
    >>> across, down = Correlator([np.array([[[-1.0], [1.0]]]), np.array([[[-1.0]], [[1.0]]])])(cells)
    >>> across.tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    >>> down.tolist()
    [[4.0, 4.0, 4.0, 4.0], [4.0, 4.0, 4.0, 4.0]]
    """

    def __init__(self, filters: Sequence[np.ndarray], method: str = "auto") -> None:
        self.method = method
        self.filters = [np.ascontiguousarray(f, np.float32) for f in filters]
        self._groups: list[_Group] = []
        for width in sorted({f.shape[1] for f in self.filters}):
            members = [k for k, f in enumerate(self.filters) if f.shape[1] == width]
            some = [self.filters[k] for k in members]
            heights = np.array([len(f) for f in some])
            matrix = np.ascontiguousarray(np.concatenate([f.reshape(len(f), -1) for f in some]).T)
            self._groups.append(_Group(width, members, matrix, heights, np.cumsum(heights) - heights))
        self._spectra: OrderedDict[tuple[int, int], np.ndarray] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, cells: np.ndarray) -> list[np.ndarray]:
        """The responses of each filter to ``cells``, float32 (R, C, d): float32 (R − h + 1, C − w + 1).

        There are 0 rows, or 0 columns, where a filter has more of them than the grid.
        """
        cells = np.ascontiguousarray(cells, np.float32)
        if self.chosen(*cells.shape[:2]) == "fft":
            return self._by_spectra(cells)
        return self._by_products(cells)

    def chosen(self, rows: int, columns: int) -> str:
        """How a grid of so many cells is correlated: "products" or "fft"."""
        if self.method != "auto":
            return self.method
        shapes = self._fitting(rows, columns)
        products = not shapes or seconds_of_products(shapes, rows, columns) <= seconds_of_fft(shapes, rows, columns)
        return "products" if products else "fft"

    def _fitting(self, rows: int, columns: int) -> list[tuple[int, int, int]]:
        return [f.shape for f in self.filters if f.shape[0] <= rows and f.shape[1] <= columns]

    def _by_products(self, cells: np.ndarray) -> list[np.ndarray]:
        rows, columns = cells.shape[:2]
        out: list[np.ndarray] = [_empty(f, rows, columns) for f in self.filters]
        for group in self._groups:
            places = columns - group.width + 1
            height = np.maximum(rows - group.heights + 1, 0)
            if places <= 0 or not height.any():
                continue
            ends = np.cumsum(height * places)
            begin = ends - height * places
            sums = np.zeros(ends[-1], np.float32)
            block = max(_BLOCK // (places * len(group.matrix)), 1)
            windows = np.empty((min(block, rows) * places, len(group.matrix)), np.float32)
            for first in range(0, rows, block):
                last = min(first + block, rows)
                some = windows[: (last - first) * places]
                runs(cells, first, last, group.width, some)
                add_rows(some @ group.matrix, first, places, group.heights, group.column, begin, height, sums)
            for k, start, end in zip(group.members, begin, ends, strict=True):
                out[k] = sums[start:end].reshape(-1, places)
        return out

    def _by_spectra(self, cells: np.ndarray) -> list[np.ndarray]:
        from scipy import fft

        rows, columns = cells.shape[:2]
        out = [_empty(f, rows, columns) for f in self.filters]
        fitting = self._fitting(rows, columns)
        if not fitting:
            return out
        tall, tops = tiling(rows, [h for h, _, _ in fitting])
        wide, lefts = tiling(columns, [w for _, w, _ in fitting])
        filters = self._spectra_of_filters(tall, wide)
        corners = [(top, left) for top in tops for left in lefts]
        planes = np.empty((len(corners), cells.shape[2], tall, wide), np.float32)
        for plane, (top, left) in zip(planes, corners, strict=True):
            tile(cells, top, left, plane)
        spectra = fft.rfft2(planes, workers=1)
        sums = np.empty((len(corners), len(out), *spectra.shape[2:]), np.complex64)
        add_spectra(spectra.reshape(*spectra.shape[:2], -1), filters, sums.reshape(len(corners), len(out), -1))
        found = fft.irfft2(sums, s=(tall, wide), workers=1)
        for responses, (top, left) in zip(found, corners, strict=True):
            for to, of in zip(out, responses, strict=True):
                part = to[top : top + tops.step, left : left + lefts.step]
                part[...] = of[: part.shape[0], : part.shape[1]]
        return out

    def _spectra_of_filters(self, tall: int, wide: int) -> np.ndarray:
        """The conjugate spectra of all filters on a tile, complex64 (filters, d, frequencies)."""
        from scipy import fft

        with self._lock:
            known = self._spectra.get((tall, wide))
            if known is not None:
                self._spectra.move_to_end((tall, wide))
                return known
        made = np.stack(
            [
                np.conj(fft.rfft2(f.transpose(2, 0, 1), s=(tall, wide), workers=1)).reshape(f.shape[2], -1)
                for f in self.filters
            ]
        )
        with self._lock:
            self._spectra[tall, wide] = made
            while len(self._spectra) > 1 and sum(s.nbytes for s in self._spectra.values()) > _KEPT:
                self._spectra.popitem(last=False)
        return made


class _Group(NamedTuple):
    """Filters of the same number of columns, as one matrix: a column of it for each row of each filter."""

    width: int
    members: list[int]
    matrix: np.ndarray  # (width · d, Σ heights)
    heights: np.ndarray
    column: np.ndarray  # the first column of each filter


def tiling(length: int, sides: Sequence[int]) -> tuple[int, range]:
    """Along one axis of a grid: the side of the tiles with the least to transform, and where they begin.

    A tile as long as the grid is the only one. Shorter ones overlap, so that every filter lies within one of them
    wherever it is put.

    >>> tiling(38, [6]), tiling(74, [6])
    ((40, range(0, 1, 40)), (40, range(0, 69, 35)))
    """
    best = None
    for side in _LENGTHS:
        if side >= length:
            starts = range(0, 1, side)
        elif side > max(sides):
            starts = range(0, length - min(sides) + 1, side - max(sides) + 1)
        else:
            continue
        if best is None or len(starts) * side < len(best[1]) * best[0]:
            best = side, starts
    if best is None:
        from scipy.fft import next_fast_len

        side = int(next_fast_len(length, real=True))
        best = side, range(0, 1, side)
    return best


# What a step costs, in seconds on one core of an AMD EPYC with 512-bit vectors, as the least of 12 repeats on grids of
# 20 × 25 to 62 × 82 cells with 1 to 50 filters of 3 × 3 to 16 × 16 cells of 32 features. Only their ratios count.
_CALL = 3e-6
_COPY = 2e-10
_MULTIPLY = 2e-11
_ADD = 5e-10
_TRANSFORM = 2.5e-10  # per number and doubling of their count
_TILE = 8e-10
_SPECTRUM = 1.6e-10
_USES = 16  # how often spectra of filters are taken to be used before they are forgotten


def seconds_of_products(shapes: Sequence[tuple[int, int, int]], rows: int, columns: int) -> float:
    """What filters of these shapes, all within the grid, are expected to take by matrix products."""
    total = 0.0
    for width in {w for _, w, _ in shapes}:
        length = width * shapes[0][2]
        heights = sum(h for h, w, _ in shapes if w == width)
        wide = 8 * math.ceil(heights / 8)  # a product of few columns costs as much as one of 8
        count = rows * (columns - width + 1)
        total += _CALL * (1 + count * length / _BLOCK) + count * (length * (_COPY + _MULTIPLY * wide) + _ADD * heights)
    return total


def seconds_of_fft(shapes: Sequence[tuple[int, int, int]], rows: int, columns: int) -> float:
    """What they are expected to take by Fourier transforms, with a share of the spectra of the filters."""
    tall, tops = tiling(rows, [h for h, _, _ in shapes])
    wide, lefts = tiling(columns, [w for _, w, _ in shapes])
    n, d = len(shapes), shapes[0][2]
    transform = _TRANSFORM * math.log2(tall * wide)
    one = 8 * _CALL + tall * wide * (d * (_TILE + transform) + n * (d * _SPECTRUM + transform))
    return len(tops) * len(lefts) * one + tall * wide * n * d * transform / _USES


def _empty(of: np.ndarray, rows: int, columns: int) -> np.ndarray:
    return np.empty((max(rows - of.shape[0] + 1, 0), max(columns - of.shape[1] + 1, 0)), np.float32)

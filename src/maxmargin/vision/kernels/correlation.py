"""Responses of filters at all places of a grid of cells, as matrix products.

A filter F of h × w cells, each of d features, responds to cells X, where it lies wholly within the grid, with

    S(r, c) = Σ_{i < h} Σ_{j < w} Σ_k F(i, j, k) X(r + i, c + j, k)

A row of a window is w·d numbers next to each other in memory, so with A the matrix of all such runs, the
responses of all rows of all filters are one product A·B, with a column of B for each row of each filter, and S is the
sum of h columns, each taken from another row of cells. No more is multiplied than S needs, and the product, whose inner
dimension is w·d, does not have to write w times as much as it reads, as a product cell by cell would.
"""

import numpy as np

from ...kernels import compiled


@compiled
def runs(cells, first, last, w, out):
    """Rows of windows, w·d numbers each, of every place in the rows of cells from ``first`` to before ``last``."""
    d = cells.shape[2]
    places = cells.shape[1] - w + 1
    flat = cells.reshape(cells.shape[0], cells.shape[1] * d)
    at = 0
    for r in range(first, last):
        row = flat[r]
        for c in range(places):
            to = out[at]
            for j in range(np.uint64(w * d)):
                to[j] = row[np.uint64(c * d) + j]
            at += 1


@compiled
def add_rows(product, first, places, heights, column, begin, height, out):
    """Adds to the responses what rows of cells from ``first`` on contribute.

    ``product`` is (rows · places, columns). Filter f, of ``heights[f]`` rows, has the columns from ``column[f]`` on,
    and its responses, ``height[f]`` rows of ``places``, begin at ``begin[f]`` of ``out``.
    """
    flat = product.reshape(product.size)
    step = np.uint64(product.shape[1])
    for r in range(product.shape[0] // places):
        for f in range(heights.shape[0]):
            for i in range(heights[f]):
                row = first + r - i
                if row < 0 or row >= height[f]:
                    continue
                start = begin[f] + row * places
                to = out[start : start + places]
                at = np.uint64(r * places) * step + np.uint64(column[f] + i)
                for c in range(np.uint64(places)):
                    to[c] += flat[at + c * step]

"""Histograms of oriented gradients, in the form that deformable part models use.

Felzenszwalb, Girshick, McAllester and Ramanan (2010), "Object detection with discriminatively trained part-based
models", §6.2. The gradient of a pixel, of length m, falls into one of 18 directions that are 20° apart, and votes for
it with m in the four cells whose centres are around the pixel, bilinearly:

    H(r, c, o) = Σ_pixels (1 − |u − c|)₊ (1 − |v − r|)₊ m [direction = o],     (u, v) the pixel in units of cells

With h(o) = H(o) + H(o + 9) for o < 9, the energy of a cell is E = Σ h(o)², and a cell is normalised in four ways, by
the blocks of 2 × 2 cells that it lies in: n_k = (E₁ + E₂ + E₃ + E₄ + ε)^(−½). The 32 features of a cell are

    ½ Σ_k min(n_k H(o), 0.2)                18 directions
    ½ Σ_k min(n_k h(o), 0.2)                9 directions, dark on bright or bright on dark
    0.2357 Σ_o min(n_k H(o), 0.2)           4 energies, one for each block: texture
    1 in cells beyond the image             which is where padding begins

Where we depart from print, it is for the sake of symmetry. Cells on the border are described too: pixels of their outer
half vote for them alone, and blocks beyond the image repeat its outermost cells. The grid lies in the middle of an
image that is no whole number of cells. A vertical gradient, which lies between two directions, votes for both. So a
mirrored image has mirrored features.
"""

import numpy as np

from ...kernels import compiled, compiled_sum

DIRECTIONS = 18
UNSIGNED = 9
LENGTH = 32
OUTSIDE = 31  # the feature that only cells beyond the image have

CLIP = 0.2
EPS = 1e-4
TEXTURE = 0.2357

_t10, _t30, _t50, _t70 = (np.float32(np.tan(np.deg2rad(angle))) for angle in (10, 30, 50, 70))  # between directions
_zero = np.float32(0.0)
_half = np.float32(0.5)


@compiled
def _differences(above, here, below, dx, dy):
    """Of the neighbours of a row's pixels, twice the gradient, in the colour where it is longest; if equal, the first.

    The rows are (channels, w).
    """
    channels, w = here.shape
    dx[:] = _zero
    dy[:] = _zero
    for k in range(channels):
        up, row, down = above[k], here[k], below[k]
        for x in range(1, w - 1):
            gx = np.float32(row[x + 1]) - np.float32(row[x - 1])
            gy = np.float32(down[x]) - np.float32(up[x])
            longer = gx * gx + gy * gy > dx[x] * dx[x] + dy[x] * dy[x]
            dx[x] = gx if longer else dx[x]
            dy[x] = gy if longer else dy[x]
        for x in (0, w - 1):
            gx = np.float32(row[min(x + 1, w - 1)]) - np.float32(row[max(x - 1, 0)])
            gy = np.float32(down[x]) - np.float32(up[x])
            if gx * gx + gy * gy > dx[x] * dx[x] + dy[x] * dy[x]:
                dx[x] = gx
                dy[x] = gy


@compiled
def _directions(dx, dy, length, first, second):
    """Half the length of each gradient, and its two directions: the same one twice, unless it is vertical."""
    for x in range(dx.shape[0]):
        gx, gy = dx[x], dy[x]
        ax, ay = abs(gx), abs(gy)
        k = np.int32(ay > _t10 * ax) + np.int32(ay > _t30 * ax) + np.int32(ay > _t50 * ax) + np.int32(ay > _t70 * ax)
        right = k if gy >= _zero else np.int32(18) - k
        left = np.int32(9) - k if gy >= _zero else np.int32(9) + k
        right = np.int32(0) if right == 18 else right
        first[x] = right if gx >= _zero else left
        second[x] = left if gx <= _zero else right
        length[x] = _half * np.sqrt(gx * gx + gy * gy)


@compiled
def _shares(pixels, cell, count):
    """Along one axis: the first of the two cells that a pixel votes for, and the shares of both."""
    at = np.zeros(pixels, np.int64)
    share = np.zeros((pixels, 2), np.float32)
    start = 0.5 * (pixels - count * cell)
    end = start + count * cell
    for x in range(pixels):
        inside = min(x + 1.0, end) - max(x, start)  # of a pixel that the edge of the grid cuts, only a part votes
        if inside <= 0.0:
            continue
        u = min(max((x + 0.5 - start) / cell - 0.5, 0.0), count - 1.0)
        at[x] = max(min(int(np.floor(u)), count - 2), 0)
        share[x, 0] = inside * (1.0 - (u - at[x]))
        share[x, 1] = inside * (u - at[x])
    return at, share


@compiled
def votes(image, cell, rows, columns):
    """Lengths of gradients by cell and direction, an array (rows, columns, 18); the image is (h, channels, w)."""
    h, _, w = image.shape
    dx = np.empty(w, np.float32)
    dy = np.empty(w, np.float32)
    length = np.empty(w, np.float32)
    first = np.empty(w, np.int32)
    second = np.empty(w, np.int32)
    line = np.empty((columns + 1) * DIRECTIONS, np.float32)  # with a cell too many, which never gets more than zero
    out = np.zeros((rows + 1, columns * DIRECTIONS), np.float32)
    at_x, share_x = _shares(w, cell, columns)
    at_y, share_y = _shares(h, cell, rows)
    for y in range(h):
        upper, lower = share_y[y, 0], share_y[y, 1]
        if upper + lower == 0.0:
            continue
        above, here, below = image[max(y - 1, 0)], image[y], image[min(y + 1, h - 1)]
        _differences(above, here, below, dx, dy)
        _directions(dx, dy, length, first, second)
        line[:] = _zero
        for x in range(w):
            m = length[x]
            to = np.uint64(at_x[x] * DIRECTIONS + first[x])
            other = np.uint64(at_x[x] * DIRECTIONS + second[x])
            after = np.uint64(DIRECTIONS)
            if to == other:
                line[to] += m * share_x[x, 0]
                line[to + after] += m * share_x[x, 1]
            else:
                m *= _half
                line[to] += m * share_x[x, 0]
                line[to + after] += m * share_x[x, 1]
                line[other] += m * share_x[x, 0]
                line[other + after] += m * share_x[x, 1]
        one = out[at_y[y]]
        two = out[at_y[y] + 1]
        for j in range(columns * DIRECTIONS):
            one[j] += upper * line[j]
            two[j] += lower * line[j]
    return out[:rows].copy().reshape(rows, columns, DIRECTIONS)


@compiled_sum
def features(found, up, aside, out):
    """Normalises ``votes`` into the middle of ``out``, with so many rows above and below and columns on both sides.

    Those lie beyond the image: they have no gradients, and a 1 as their last feature.
    """
    rows, columns, _ = found.shape
    for r in range(out.shape[0]):
        inside = up <= r < up + rows
        for c in range(out.shape[1]):
            if inside and aside <= c < aside + columns:
                continue
            f = out[r, c]
            for o in range(OUTSIDE):
                f[o] = _zero
            f[OUTSIDE] = np.float32(1.0)
    energy = np.zeros((rows + 2, columns + 2), np.float32)
    for r in range(rows):
        for c in range(columns):
            total = _zero
            for o in range(UNSIGNED):
                h = found[r, c, o] + found[r, c, o + UNSIGNED]
                total += h * h
            energy[r + 1, c + 1] = total
    energy[0] = energy[1]
    energy[rows + 1] = energy[rows]
    for r in range(rows + 2):
        energy[r, 0] = energy[r, 1]
        energy[r, columns + 1] = energy[r, columns]
    scale = np.empty((rows + 1, columns + 1), np.float32)
    for r in range(rows + 1):
        for c in range(columns + 1):
            block = (energy[r, c] + energy[r, c + 1]) + (energy[r + 1, c] + energy[r + 1, c + 1])
            scale[r, c] = np.float32(1.0) / np.sqrt(block + np.float32(EPS))
    clip = np.float32(CLIP)
    texture = np.float32(TEXTURE)
    for r in range(rows):
        for c in range(columns):
            n1, n2, n3, n4 = scale[r + 1, c + 1], scale[r, c + 1], scale[r + 1, c], scale[r, c]
            H = found[r, c]
            f = out[r + up, c + aside]
            t1 = t2 = t3 = t4 = _zero
            for o in range(DIRECTIONS):
                h1, h2, h3, h4 = min(n1 * H[o], clip), min(n2 * H[o], clip), min(n3 * H[o], clip), min(n4 * H[o], clip)
                f[o] = _half * ((h1 + h2) + (h3 + h4))
                t1 += h1
                t2 += h2
                t3 += h3
                t4 += h4
            for o in range(UNSIGNED):
                h = H[o] + H[o + UNSIGNED]
                h1, h2, h3, h4 = min(n1 * h, clip), min(n2 * h, clip), min(n3 * h, clip), min(n4 * h, clip)
                f[DIRECTIONS + o] = _half * ((h1 + h2) + (h3 + h4))
            f[27] = texture * t1
            f[28] = texture * t2
            f[29] = texture * t3
            f[30] = texture * t4
            f[OUTSIDE] = _zero

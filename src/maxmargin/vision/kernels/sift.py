"""Dense SIFT: histograms of gradient directions in 4 × 4 cells of every patch of a regular grid.

A gradient of length m at angle a (in units of 45°, o = ⌊a⌋, f = a − o) gives m·(1 − f) to direction o and m·f to o + 1.
A cell of width b, centred at (u, v), collects them with weights that fall off linearly to zero at its neighbours'
centres:

    cell(u, v, o) = 1/b² Σ_pixels max(0, 1 − |x − u|/b) · max(0, 1 − |y − v|/b) · g(x, y, o)

Lowe (2004), "Distinctive image features from scale-invariant keypoints", §6, without the Gaussian window and on upright
patches. Neighbouring patches share cells, so each cell is summed once: along rows first, then down the columns.
"""

import numpy as np

from ...kernels import compiled, compiled_sum, inlined

DIRECTIONS = 8
SIDE = 4  # cells along a side of a patch
LENGTH = SIDE * SIDE * DIRECTIONS

_one = np.float32(1.0)
_half = np.float32(0.5)


@inlined
def _octant(gx, gy):
    """A gradient as two shares and a direction: the first share is the direction's, the second the next one's."""
    ax = abs(gx)
    ay = abs(gy)
    t = min(ax, ay) / max(ax, ay, np.float32(1e-6))
    # arctan on [0, 1] in octants, to 2·10⁻⁵: Abramowitz and Stegun 4.4.49, coefficients times 4/π
    q = t * t
    f = np.float32(0.026528) * q - np.float32(0.108395)
    f = f * q + np.float32(0.229363)
    f = f * q - np.float32(0.420551)
    f = min(t * (f * q + np.float32(1.273069)), _one)
    m = np.sqrt(gx * gx + gy * gy)
    steep = ay > ax
    against = steep != ((gx < 0.0) != (gy < 0.0))  # octants in which the angle falls where f rises
    quarter = (3 if gy < 0.0 else 1) if steep else (2 if gx < 0.0 else 0)
    g = _one - f
    return m * (f if against else g), m * (g if against else f), (2 * quarter + (7 if against else 0)) & 7


@compiled_sum
def directions(image):
    """Central differences at every pixel, as (h, w) arrays of first shares, second shares and directions."""
    h, w = image.shape
    first = np.empty((h, w), np.float32)
    second = np.empty((h, w), np.float32)
    octant = np.empty((h, w), np.uint8)
    for y in range(h):
        above = image[max(y - 1, 0)]
        here = image[y]
        below = image[min(y + 1, h - 1)]
        for x in range(w):
            gx = _half * (np.float32(here[min(x + 1, w - 1)]) - np.float32(here[max(x - 1, 0)]))
            gy = _half * (np.float32(below[x]) - np.float32(above[x]))
            first[y, x], second[y, x], octant[y, x] = _octant(gx, gy)
    return first, second, octant


@compiled
def _shares(pixels, width, pitch, start, count):
    """Along one axis: the first and last cell that a pixel gives to, and how much to each of them."""
    span = np.empty((pixels, 2), np.int64)
    share = np.zeros((pixels, 2 * width // pitch + 2), np.float32)
    for x in range(pixels):
        u = x + 0.5 - start - 0.5 * width  # from the centre of the first cell
        first = max(0, int(np.floor((u - width) / pitch)) + 1)
        last = min(count - 1, int(np.ceil((u + width) / pitch)) - 1)
        span[x, 0] = first
        span[x, 1] = last
        for i in range(first, last + 1):
            share[x, i - first] = (1.0 - abs(u - i * pitch) / width) / width
    return span, share


@compiled
def cells(first, second, octant, width, pitch, left, top, across, down):
    """Cells of ``width`` pixels, ``pitch`` pixels apart, the first of them with its corner at (left, top).

    The gradients are those of ``directions``. Returns an array (down, across, 8), in grey levels per pixel.
    """
    h, w = octant.shape
    row = np.empty((across, DIRECTIONS), np.float32)
    line = row.reshape(across * DIRECTIONS)
    out = np.zeros((down, across * DIRECTIONS), np.float32)
    span_x, share_x = _shares(w, width, pitch, left, across)
    span_y, share_y = _shares(h, width, pitch, top, down)
    for y in range(h):
        if span_y[y, 0] > span_y[y, 1]:
            continue
        row[:] = 0.0
        for x in range(w):
            o = octant[y, x]
            after = (o + 1) & 7
            start = span_x[x, 0]
            for i in range(start, span_x[x, 1] + 1):
                row[i, o] += share_x[x, i - start] * first[y, x]
                row[i, after] += share_x[x, i - start] * second[y, x]
        for i in range(span_y[y, 0], span_y[y, 1] + 1):
            share = share_y[y, i - span_y[y, 0]]
            target = out[i]
            for j in range(line.size):
                target[j] += share * line[j]
    return out.reshape(down, across, DIRECTIONS)


@compiled_sum
def descriptors(cell, stride, reach, contrast, clip, root, across, out):
    """The patches' descriptors: 4 × 4 cells, ``reach`` cells apart, of patches ``stride`` cells apart.

    With c the 128 numbers of a patch, n = ‖c‖ and L = min(1, n/contrast): c/n is cut off at ``clip`` and scaled back to
    length one, d; the descriptor is L·d, or L·√(d/‖d‖₁) for RootSIFT (Arandjelović and Zisserman 2012). A patch with
    hardly any contrast is so not blown up to the length of the others.
    """
    for p in range(out.shape[0]):
        y0 = (p // across) * stride
        x0 = (p % across) * stride
        d = out[p]
        at = 0
        total = np.float32(0.0)
        for i in range(SIDE):
            for j in range(SIDE):
                c = cell[y0 + i * reach, x0 + j * reach]
                for o in range(DIRECTIONS):
                    d[at + o] = c[o]
                    total += c[o] * c[o]
                at += DIRECTIONS
        n = np.sqrt(total)
        if n == 0.0:
            continue
        length = np.float32(min(1.0, n / contrast)) if contrast > 0.0 else _one
        most = np.float32(clip) * n
        total = np.float32(0.0)
        for k in range(LENGTH):
            d[k] = min(d[k], most)
            total += d[k] if root else d[k] * d[k]
        if root:
            scale = length * length / total
            for k in range(LENGTH):
                d[k] = np.sqrt(d[k] * scale)
        else:
            scale = length / np.sqrt(total)
            for k in range(LENGTH):
                d[k] *= scale

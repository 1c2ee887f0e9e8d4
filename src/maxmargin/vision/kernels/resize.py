"""Images of unsigned bytes at other sizes, with planes of colours kept apart as gradients want them.

A pixel of the new image is a mean of old ones around its place, weighted by a triangle,

    y(j) = Σ_i max(0, 1 − |i + ½ − s (j + ½)| / b) x(i) / (the sum of the weights),     s = old / new,  b = max(s, 1)

along both axes: linear interpolation where an image grows, and where it shrinks a mean over what one pixel now covers.
Sums are rounded once, at the end, and the weights are symmetric: a mirrored image becomes the mirrored new one.
"""

import numpy as np

from ...kernels import compiled

_UP = np.float32(0.5 + 2**-10)  # means that lie between two bytes are many: in whatever order summed, they go up


@compiled
def weights(old, new):
    """Along one axis: the first pixel that each new one takes, and the weights, (most pixels taken, new)."""
    scale = old / new
    reach = max(scale, 1.0)
    taps = min(int(np.ceil(2.0 * reach)) + 1, old)
    first = np.empty(new, np.int32)
    share = np.zeros((taps, new), np.float32)
    for j in range((new + 1) // 2):
        middle = scale * (j + 0.5)
        begin = min(max(int(np.floor(middle - reach - 0.5)) + 1, 0), old - taps)
        total = 0.0
        for t in range(taps):
            total += max(0.0, 1.0 - abs(begin + t + 0.5 - middle) / reach)
        first[new - 1 - j] = old - taps - begin
        first[j] = begin  # of an odd number the one in the middle, which is its own mirror image, is written last
        for t in range(taps):
            part = max(0.0, 1.0 - abs(begin + t + 0.5 - middle) / reach) / total
            if 2 * j + 1 < new:
                share[taps - 1 - t, new - 1 - j] = part
            share[t, j] = part
    return first, share


@compiled
def resize(image, height, width):
    """An image (h, channels, w) as (height, channels, width)."""
    h, channels, w = image.shape
    at_y, share_y = weights(h, height)
    at_x, share_x = weights(w, width)
    line = np.empty(w, np.float32)
    sums = np.empty(width, np.float32)
    out = np.empty((height, channels, width), np.uint8)
    for y in range(height):
        for k in range(channels):
            line[:] = np.float32(0.0)
            for t in range(share_y.shape[0]):
                row = image[at_y[y] + t, k]
                share = share_y[t, y]
                if share != 0.0:
                    for x in range(w):
                        line[x] += share * np.float32(row[x])
            sums[:] = _UP
            for t in range(share_x.shape[0]):
                share_t = share_x[t]
                moved = line[t:]
                for x in range(width):
                    sums[x] += share_t[x] * moved[np.uint64(at_x[x])]
            to = out[y, k]
            for x in range(width):
                to[x] = np.uint8(min(np.int32(sums[x]), 255))
    return out

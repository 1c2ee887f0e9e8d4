"""Where a part is best placed around each of its anchors: the distance transform of a map of scores.

Felzenszwalb and Huttenlocher (2012), "Distance transforms of sampled functions"; for deformable part models,
Felzenszwalb, Girshick, McAllester and Ramanan (2010), equation 9. From an anchor (Y, X), a part that moves to the place
(y, x) has the score of that place, less what the way there costs:

    D(Y, X) = max_{y, x}  f(y, x) − c_y(y − Y) − c_x(x − X),      c(d) = q d² + l d,   q > 0

The cost is a sum over the axes, so the maximum is taken along the columns first, and along the rows of what that gives.

There are two ways along one axis, and both give the same.

Outwards from the cheapest place, for all lines at once (eight comparisons are one instruction), until nothing can win
any more:

    high − c(d) ≤ low,     high the largest score of the map, low the smallest of the best values that are known so far

An anchor takes about 2 √((high − low) / q) comparisons. Up to some forty, as costs of detectors have them, this is the
faster way, by a factor of up to six; but the smaller the cost, the slower.

Along the upper hull, in time that is linear in the length of a line whatever the cost is. The parabolas of the paper
differ from lines by what depends on the anchor alone,

    f(y) − c(y − Y)  =  h(y) + 2 q Y y + (l Y − q Y²),      h(y) = f(y) − q y² − l y

so that a place wins somewhere only if (y, h(y)) is a corner of the upper hull of these points, and for growing Y the
winners are its corners in their order. No comparison divides, but each is a branch that no processor foresees.

We begin with the first way, and give it up for the second as soon as the anchors so far needed clearly more places, on
average, than would be tried in the time of the second. Places are counted, not seconds, so that the choice is the same
on every machine. What was done till then is lost: mostly a tenth of the time of the second way, at worst about all of
it. So the time is linear in the number of cells and anchors, whatever the scores and costs are.
"""

import numpy as np

from ...kernels import compiled, inlined

_LANES = 16  # as many minima side by side as two vector registers hold: one alone would wait for each comparison
_PLACES = 96  # as many are tried from one anchor in the time in which one point is put on a hull, if rows are long
_SHORT = 80  # columns: rows of this length take twice as long for each of them as long rows


@inlined
def _lowest(values, lanes):
    """The smallest of the values; ``lanes`` is working space, of length 16."""
    n = np.uint64(values.shape[0])
    one, width = np.uint64(1), np.uint64(_LANES)
    lanes[:] = values[0]
    x = np.uint64(0)
    while x + width <= n:
        for k in range(width):
            lanes[k] = values[x + k] if values[x + k] < lanes[k] else lanes[k]
        x += width
    low = values[0]
    for k in range(width):
        low = lanes[k] if lanes[k] < low else low
    while x < n:
        low = values[x] if values[x] < low else low
        x += one
    return low


@compiled
def _highest(scores):
    """The largest score of a map."""
    line = scores[0].copy()
    for y in range(1, scores.shape[0]):
        other = scores[y]
        for x in range(np.uint64(line.shape[0])):
            line[x] = other[x] if other[x] > line[x] else line[x]
    return line.max()


@inlined
def _offer(values, price, place, best, at):
    """Replaces the best values, and where they are from, by those of another place, where these are better."""
    for x in range(np.uint64(values.shape[0])):
        value = values[x] - price
        better = value > best[x]
        best[x] = value if better else best[x]
        at[x] = place if better else at[x]


@compiled
def _walked(scores, q, l, start, step, farthest, best, at):
    """Goes outwards from the cheapest places; gives up, and says so, if anchors need more than ``farthest`` steps."""
    n, w = scores.shape
    lanes = np.empty(_LANES, np.float32)
    high = _highest(scores)
    spare = farthest * (best.shape[0] // 10)  # and what anchors that need less leave to others
    for i in range(best.shape[0]):
        anchor = start + step * i
        cheapest = int(min(max(np.rint(anchor - 0.5 * l / q), 0.0), n - 1.0))
        d = np.float64(cheapest - anchor)
        price = np.float32(d * (q * d + l))
        nearest, values, places = scores[cheapest], best[i], at[i]
        for x in range(np.uint64(w)):
            values[x] = nearest[x] - price
            places[x] = np.float32(cheapest)
        low = _lowest(values, lanes)
        spare += farthest
        for far in range(1, n):
            if spare == 0:
                return False
            go_on = False
            for y in (cheapest - far, cheapest + far):
                d = np.float64(y - anchor)
                price = np.float32(d * (q * d + l))
                if 0 <= y < n and high - price > low:
                    go_on = True
                    _offer(scores[y], price, np.float32(y), values, places)
            if not go_on:
                break
            spare -= 1
            if far & (far - 1) == 0:  # at powers of two: low rises most in the first steps
                low = _lowest(values, lanes)
    return True


@compiled
def _on_hulls(scores, q, l, start, step, best, at):
    """Goes along the upper hull of each column."""
    n = np.uint64(scores.shape[0])
    one, two = np.uint64(1), np.uint64(2)
    place, height = np.empty(n), np.empty(n)  # of the corners of the hull
    for x in range(np.uint64(scores.shape[1])):
        count = np.uint64(0)
        for r in range(n):
            y = np.float64(r)
            h = scores[r, x] - y * (q * y + l)
            while count >= two:
                b, a = count - one, count - two
                if (height[b] - height[a]) * (y - place[b]) > (h - height[b]) * (place[b] - place[a]):
                    break
                count = b  # the corner b is not above the line from a to the new point
            place[count] = y
            height[count] = h
            count += one
        k = np.uint64(0)
        for i in range(np.uint64(best.shape[0])):
            anchor = np.float64(start + step * i)
            while k + one < count and height[k + one] - height[k] > -2.0 * q * anchor * (place[k + one] - place[k]):
                k += one
            d = place[k] - anchor
            best[i, x] = scores[np.uint64(place[k]), x] - np.float32(d * (q * d + l))
            at[i, x] = np.float32(place[k])


@compiled
def _along_columns(scores, q, l, start, step, best, at):
    """For each column, the best place y for the anchors ``start + step * i``; places are float32, as wide as scores."""
    n, w = scores.shape
    places = _PLACES * n * w // (best.shape[0] * (w + _SHORT))  # for one anchor, in the time that the hulls take
    farthest = n if n <= places else places // 2
    if not _walked(scores, q, l, start, step, farthest, best, at):
        _on_hulls(scores, q, l, start, step, best, at)


@compiled
def spread(scores, cost, top, left, step, best, at_row, at_column):
    """The best place around every anchor of a grid.

    ``scores`` is a map (H, W) of finite float32, ``cost`` is (q_y, l_y, q_x, l_x) in float64. The anchors are
    (top + step * i, left + step * j), integers that may lie beyond the map. Written are ``best``, float32, and
    ``at_row`` and ``at_column``, int16: what is attained, and where. Their shape says how many anchors there are.
    """
    rows, columns = best.shape
    down = np.empty((rows, scores.shape[1]), np.float32)
    at_y = np.empty((rows, scores.shape[1]), np.float32)
    _along_columns(scores, cost[0], cost[1], top, step, down, at_y)
    across = np.empty((columns, rows), np.float32)
    at_x = np.empty((columns, rows), np.float32)
    _along_columns(down.T.copy(), cost[2], cost[3], left, step, across, at_x)
    for i in range(rows):
        for j in range(columns):
            x = np.uint64(at_x[j, i])
            best[i, j] = across[j, i]
            at_column[i, j] = np.int16(x)
            at_row[i, j] = np.int16(at_y[i, x])

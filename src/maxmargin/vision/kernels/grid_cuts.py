"""Minimum cuts of parts of a grid: the set of cells that gains most.

    maximise over A ⊆ cells  Σ_{r in A} gain_r − Σ_{neighbours r in A, s not in A} c_rs

Gain is handed on from cells where it is positive to cells where it is negative. As long as c_rs falls by what goes from
r to s, and c_sr rises, that leaves the value of every A as it is. Once no path leads from a positive gain to a negative
one, the cells that positive ones reach are a best A: its gains are not negative, and nothing is left of its rim.

This goes in waves of pushes from far to near (Goldberg and Tarjan, 1988), up to the end.

Cells are numbered with a border around the grid. Directions: left, right, up, down; d ^ 1 is the way back.
"""

from ...kernels import compiled


@compiled
def _wave(cells, n, step, least, gain, residual, distance, queue):
    """Push gain one cell after another towards the nearest negative gain. Returns whether there was any to push.

    If not, ``distance`` is positive afterwards where a path leads to a negative gain, and everywhere if no positive
    one is left; else 0.
    """
    n_sinks = 0
    n_left = 0
    for i in range(n):
        p = cells[i]
        distance[p] = 0
        n_left += gain[p] > least
        if gain[p] < -least:
            distance[p] = 1
            queue[n_sinks] = p
            n_sinks += 1
    if n_left == 0:
        for i in range(n):
            distance[cells[i]] = 1
        return False
    end = n_sinks
    at = 0
    while at < end and n_left > 0:
        p = queue[at]
        at += 1
        further = distance[p] + 1
        for d in range(4):
            q = p + step[d]
            if distance[q] == 0 and residual[q, d ^ 1] > least:
                distance[q] = further
                queue[end] = q
                end += 1
                n_left -= gain[q] > least
    pushed = False
    for i in range(end - 1, n_sinks - 1, -1):
        p = queue[i]
        if gain[p] <= least:
            continue
        pushed = True
        nearer = distance[p] - 1
        for d in range(4):
            q = p + step[d]
            if distance[q] == nearer and residual[p, d] > least:
                flow = min(gain[p], residual[p, d])
                gain[p] -= flow
                gain[q] += flow
                residual[p, d] -= flow
                residual[q, d ^ 1] += flow
                if gain[p] <= least:
                    break
    return pushed


@compiled
def best_set(cells, n, step, c_beside, c_above, least, is_open, gain, residual, distance, queue, chosen):
    """Mark in ``chosen`` which of the first n ``cells``, all of them open, are in the best A; ``gain`` is used up.

    ``residual[p, d]``: how much gain p can still hand on in direction d. ``distance`` is −1 where cells are not open.
    Gains and capacities up to ``least`` count as none.
    """
    beside = max(c_beside, 0.0)
    above = max(c_above, 0.0)
    for i in range(n):
        p = cells[i]
        distance[p] = 0
        for d in range(4):
            residual[p, d] = (beside if d < 2 else above) if is_open[p + step[d]] else 0.0
    while _wave(cells, n, step, least, gain, residual, distance, queue):
        pass
    for i in range(n):
        chosen[cells[i]] = distance[cells[i]] == 0
        distance[cells[i]] = -1

"""Minimum cuts of parts of a grid: the set of cells that gains most.

    maximise over A ⊆ cells  Σ_{r in A} gain_r − Σ_{neighbours r in A, s not in A} c_rs

Gain is handed on from cells where it is positive to cells where it is negative. As long as c_rs falls by what goes from
r to s, and c_sr rises, that leaves the value of every A as it is. Once no path leads from a positive gain to a negative
one, the cells that positive ones reach are a best A: its gains are not negative, and nothing is left of its rim.

Gain moves in waves of pushes from far to near, each towards the negative gains nearest to it, until none is left to
push (Goldberg and Tarjan, 1988).

Cells are numbered with a border around the grid. Directions: left, right, up, down; d ^ 1 is the way back.
"""

from ...kernels import compiled


@compiled
def _wave(cells, n, step, least, gain, residual, distance, queue):
    """Push gain one cell after another towards the nearest negative gain. Returns whether there was any to push.

    Afterwards ``distance`` is positive where a path led to a negative gain, else 0. Before a push it need not be known
    beyond the farthest positive gain.
    """
    n_sinks = 0
    n_sources = 0
    for i in range(n):
        p = cells[i]
        distance[p] = 0
        n_sources += gain[p] > least
        if gain[p] < -least:
            distance[p] = 1
            queue[n_sinks] = p
            n_sinks += 1
    end = n_sinks
    at = 0
    sought = n_sources if n_sources > 0 else -1
    while at < end and sought != 0:
        p = queue[at]
        at += 1
        further = distance[p] + 1
        for d in range(4):
            q = p + step[d]
            if distance[q] == 0 and residual[q, d ^ 1] > least:
                distance[q] = further
                queue[end] = q
                end += 1
                sought -= gain[q] > least
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

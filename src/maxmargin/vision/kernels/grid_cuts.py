"""Minimum cuts of parts of a grid: the set of cells that gains most.

    maximise over A ⊆ cells  Σ_{r in A} gain_r − Σ_{neighbours r in A, s not in A} c_rs

Gain is handed on from cells where it is positive to cells where it is negative. As long as c_rs falls by what goes from
r to s, and c_sr rises, that leaves the value of every A as it is. Once no path leads from a positive gain to a negative
one, the cells that positive ones reach are a best A: its gains are not negative, and nothing is left of its rim.

First comes a wave of pushes from far to near (Goldberg and Tarjan, 1988), then each cell with gain left looks for a
shortest path (Edmonds and Karp, 1972). Where these searches get long there are further waves, up to the end.

Cells are numbered with a border around the grid. Directions: left, right, up, down; d ^ 1 is the way back.
"""

from ...kernels import compiled

_PATIENCE = 4  # cells looked at in search of paths for each cell of the part, before the next wave


@compiled
def _augment(source, step, least, gain, residual, distance, queue, came):
    """Hand gain on from one cell along shortest paths to negative ones until it has none, or none is in reach.

    Returns how many cells were looked at, negative if some gain is left: then the cells that can be reached are the
    first of ``queue``, as many as this says, and are closed.
    """
    looked = 0
    while gain[source] > least:
        queue[0] = source
        distance[source] = -2
        end = 1
        at = 0
        sink = -1
        while at < end and sink < 0:
            p = queue[at]
            at += 1
            for d in range(4):
                q = p + step[d]
                if distance[q] >= 0 and residual[p, d] > least:
                    distance[q] = -2
                    came[q] = d
                    queue[end] = q
                    end += 1
                    if gain[q] < -least:
                        sink = q
                        break
        if sink < 0:
            return -end
        looked += end
        for i in range(end):
            distance[queue[i]] = 0
        flow = min(gain[source], -gain[sink])
        q = sink
        while q != source:
            d = came[q]
            q -= step[d]
            flow = min(flow, residual[q, d])
        gain[sink] += flow
        gain[source] -= flow
        q = sink
        while q != source:
            d = came[q]
            residual[q, d ^ 1] += flow
            q -= step[d]
            residual[q, d] -= flow
    return looked


@compiled
def _wave(cells, n, step, least, gain, residual, distance, queue):
    """Push gain one cell after another towards the nearest negative gain. Returns whether there was any to push.

    Afterwards ``distance`` is positive where a path led to a negative gain, else 0.
    """
    n_sinks = 0
    for i in range(n):
        p = cells[i]
        distance[p] = 0
        if gain[p] < -least:
            distance[p] = 1
            queue[n_sinks] = p
            n_sinks += 1
    end = n_sinks
    at = 0
    while at < end:
        p = queue[at]
        at += 1
        further = distance[p] + 1
        for d in range(4):
            q = p + step[d]
            if distance[q] == 0 and residual[q, d ^ 1] > least:
                distance[q] = further
                queue[end] = q
                end += 1
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
def _all_paths(cells, n, step, least, gain, residual, distance, queue, came, chosen):
    """Search paths from all positive gains. Returns whether all were searched for: then ``chosen`` is the best A."""
    patience = _PATIENCE * n
    for i in range(n):
        distance[cells[i]] = 0
        chosen[cells[i]] = False
    for i in range(n):
        p = cells[i]
        if distance[p] == 0 and gain[p] > least:
            looked = _augment(p, step, least, gain, residual, distance, queue, came)
            patience -= abs(looked)
            for j in range(-looked):
                chosen[queue[j]] = True
            if patience < 0:
                return False
    return True


@compiled
def best_set(cells, n, step, c_beside, c_above, least, is_open, gain, residual, distance, queue, came, chosen):
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
    pushed = _wave(cells, n, step, least, gain, residual, distance, queue)
    if not (pushed and _all_paths(cells, n, step, least, gain, residual, distance, queue, came, chosen)):
        while pushed:
            pushed = _wave(cells, n, step, least, gain, residual, distance, queue)
        for i in range(n):
            chosen[cells[i]] = distance[cells[i]] == 0
    for i in range(n):
        distance[cells[i]] = -1

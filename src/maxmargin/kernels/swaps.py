"""Labellings of grids that no swap of two labels improves.

    maximise  Σ_r unary[r, z_r] + Σ_{r left of s} H[z_r, z_s] + Σ_{r above s} V[z_r, z_s]

α-β swap moves (Boykov, Veksler and Zabih, 2001, fig. 3): the cells that carry α (t = 0) or β (t = 1) choose anew between
the two, all others stay. With s00 = S[α, α], s01 = S[α, β] … and c = (s00 + s11 − s01 − s10) / 2 ≥ 0, a pair of such
cells adds, up to a constant,

    a t_r + b t_s − c [t_r ≠ t_s],   a = s10 − s00 + c,   b = s01 − s00 + c,

so a move maximises Σ_r gain_r t_r − Σ_rs c_rs [t_r ≠ t_s], which is a minimum cut. A cell whose |gain| is at least the
sum of its c is decided at once, and hands ±c to its neighbours' gains. What is left over is cut by pushing gain from
where it is positive to where it is negative (Goldberg and Tarjan, 1988): each such push leaves the value of every
labelling as it is. Distances are computed anew for every wave of pushes, from far to near.

Tables with c < 0 are lowered at choices other than the present one until c = 0: what improves the lowered score improves
the true one at least as much.

Grids have a border of cells with the label M, for which all tables are zero. Directions: left, right, up, down; d ^ 1
is the way back.
"""

import numpy as np

from . import compiled, inlined

_ROUNDING = 1e-14  # of the largest scores: smaller differences are not told from rounding errors


@compiled
def neighbour_tables(horizontal, vertical):
    """``tables[i, d, z, k]``: what label k scores beside a neighbour z in direction d; zero where z = M, the border."""
    n, n_labels = horizontal.shape[0], horizontal.shape[1]
    tables = np.zeros((n, 4, n_labels + 1, n_labels))
    for i in range(n):
        for j in range(n_labels):
            for k in range(n_labels):
                tables[i, 0, j, k] = horizontal[i, j, k]
                tables[i, 1, k, j] = horizontal[i, j, k]
                tables[i, 2, j, k] = vertical[i, j, k]
                tables[i, 3, k, j] = vertical[i, j, k]
    return tables


@compiled
def allowed_only(unary, tables, out):
    """Copy ``unary`` with finite scores for −∞: so low that a cell with another choice gains by it, whatever is near.

    Returns the size of the largest score.
    """
    reach = 0.0
    for d in range(4):
        reach += tables[d].max() - tables[d].min()
    largest = np.abs(tables).max()
    n_labels = unary.shape[1]
    for r in range(unary.shape[0]):
        lowest = np.inf
        forbidden = False
        for k in range(n_labels):
            value = np.float64(unary[r, k])
            out[r, k] = value
            if value == -np.inf:
                forbidden = True
            else:
                lowest = min(lowest, value)
                largest = max(largest, abs(value))
        if forbidden:
            lowest = 0.0 if lowest == np.inf else lowest
            low = lowest - (abs(lowest) + 2.0 * reach + 1.0)
            largest = max(largest, abs(low))
            for k in range(n_labels):
                if out[r, k] == -np.inf:
                    out[r, k] = low
    return largest


@compiled
def grid_score(unary, rows, cols, horizontal, vertical, labels):
    """The score of a labelling, summed up in float64."""
    total = 0.0
    for i in range(rows):
        for j in range(cols):
            r = i * cols + j
            k = labels[r]
            total += unary[r, k]
            if j > 0:
                total += horizontal[labels[r - 1], k]
            if i > 0:
                total += vertical[labels[r - cols], k]
    return total


@compiled
def score_all(unary, which, rows, cols, horizontal, vertical, labels, score):
    """``score[i]``: the score of ``labels[i]``."""
    for i in range(unary.shape[0]):
        t = which[i]
        score[i] = grid_score(unary[i], rows, cols, horizontal[t], vertical[t], labels[i])


@compiled
def _single_moves(u, tables, inner, step, least, label, look):
    """Iterated conditional modes (Besag, 1986): each cell takes its best label given the others, until all have."""
    n_labels = u.shape[1]
    for i in range(inner.size):
        look[inner[i]] = 1
    again = True
    while again:
        again = False
        for i in range(inner.size):
            p = inner[i]
            if look[p] == 0:
                continue
            look[p] = 0
            left = tables[0, label[p + step[0]]]
            right = tables[1, label[p + step[1]]]
            up = tables[2, label[p + step[2]]]
            down = tables[3, label[p + step[3]]]
            present = np.int64(label[p])
            best = u[p, present] + left[present] + right[present] + up[present] + down[present] + least
            chosen = present
            for k in range(n_labels):
                value = u[p, k] + left[k] + right[k] + up[k] + down[k]
                if value > best:
                    best = value
                    chosen = k
            if chosen != present:
                label[p] = chosen
                again = True
                for d in range(4):
                    look[p + step[d]] = 1


@compiled
def _prepare(tables, alpha, beta, pull, capacity):
    """The two labels' move in tables: what a neighbour z in direction d adds to the gain of β over α, and its c.

    ``pull[t, d, z]`` is for cells that carry α (t = 0) or β (t = 1) at present: only lowered tables tell them apart.
    """
    outside = tables.shape[1] - 1
    for d in range(4):
        table = tables[d]
        for z in range(outside):
            pull[0, d, z] = pull[1, d, z] = table[z, beta] - table[z, alpha]
        pull[0, d, outside] = pull[1, d, outside] = 0.0
        # table[z, k] has the neighbour's label first.
        c = 0.5 * (table[alpha, alpha] + table[beta, beta] - table[alpha, beta] - table[beta, alpha])
        joined = table[alpha, beta] - table[alpha, alpha] + c
        for z in (alpha, beta):
            pull[0, d, z] = pull[1, d, z] = joined
        if c < 0.0:
            pull[0, d, beta] += c
            pull[1, d, alpha] -= c
        capacity[d] = max(c, 0.0)


@inlined
def _decision(gain, room, present):
    """Which choice is best whatever the neighbours choose: 1, 0, or −1 if that depends. Equal ones: the present."""
    if gain > room or (gain == room and present == 1):
        return 1
    if -gain > room or (-gain == room and present == 0):
        return 0
    return -1


@compiled
def _cut(cells, n, step, capacity, least, is_open, gain, residual, distance, queue, choice):
    """The best choices of the first n ``cells``, all of them open; ``gain`` is used up."""
    for i in range(n):
        p = cells[i]
        for d in range(4):
            residual[d, p] = capacity[d] if is_open[p + step[d]] else 0.0
    while True:
        n_sinks = 0
        n_sources = 0
        for i in range(n):
            p = cells[i]
            distance[p] = 0
            if gain[p] < -least:
                distance[p] = 1
                queue[n_sinks] = p
                n_sinks += 1
            elif gain[p] > least:
                n_sources += 1
        # How far it is from each cell to the nearest negative gain, over arcs that can still take something.
        end = n_sinks
        at = 0
        while at < end and n_sources > 0:
            p = queue[at]
            at += 1
            for d in range(4):
                q = p + step[d]
                if is_open[q] and distance[q] == 0 and residual[d ^ 1, q] > least:
                    distance[q] = distance[p] + 1
                    queue[end] = q
                    end += 1
        pushed = False
        for i in range(end - 1, n_sinks - 1, -1):
            p = queue[i]
            if gain[p] <= least:
                continue
            pushed = True
            for d in range(4):
                q = p + step[d]
                if is_open[q] and distance[q] == distance[p] - 1 and residual[d, p] > least:
                    flow = min(gain[p], residual[d, p])
                    gain[p] -= flow
                    gain[q] += flow
                    residual[d, p] -= flow
                    residual[d ^ 1, q] += flow
                    if gain[p] <= least:
                        break
        if not pushed:
            for i in range(n):
                p = cells[i]
                choice[p] = 1 if n_sources > 0 and distance[p] == 0 else 0
            return


@compiled
def _change(cells, n, u, tables, step, label, fresh):
    """By how much the score changes if ``fresh`` takes the place of ``label``, and how many cells do."""
    change = 0.0
    n_changed = 0
    for i in range(n):
        p = cells[i]
        old = label[p]
        new = fresh[p]
        if old == new:
            continue
        n_changed += 1
        change += u[p, new] - u[p, old]
        for d in range(4):
            q = p + step[d]
            # A pair of which both change is counted at its left or upper cell.
            if d % 2 == 1 or fresh[q] == label[q]:
                change += tables[d, fresh[q], new] - tables[d, label[q], old]
    return change, n_changed


@compiled
def _swap(alpha, beta, u, tables, inner, step, least, label, fresh, work):
    """The best move between two labels, left in ``fresh``: the cells concerned are the first of ``cells``.

    Returns how many these are, and whether the move improves the score.
    """
    pull, capacity, cells, queue, is_open, gain, room, residual, distance, choice = work
    n = 0
    for i in range(inner.size):
        p = inner[i]
        if label[p] == alpha or label[p] == beta:
            cells[n] = p
            n += 1
    _prepare(tables, alpha, beta, pull, capacity)
    waiting = 0
    for i in range(n):
        p = cells[i]
        t = 1 if label[p] == beta else 0
        g = u[p, beta] - u[p, alpha]
        c = 0.0
        for d in range(4):
            z = label[p + step[d]]
            g += pull[t, d, z]
            if z == alpha or z == beta:
                c += capacity[d]
        gain[p] = g
        room[p] = c
        choice[p] = _decision(g, c, t)
        is_open[p] = choice[p] < 0
        if choice[p] >= 0:
            queue[waiting] = p
            waiting += 1
    n_open = n - waiting
    at = 0
    while at < waiting and n_open > 0:
        p = queue[at]
        at += 1
        for d in range(4):
            q = p + step[d]
            if is_open[q]:
                gain[q] += capacity[d] if choice[p] == 1 else -capacity[d]
                room[q] -= capacity[d]
                choice[q] = _decision(gain[q], room[q], label[q] == beta)
                if choice[q] >= 0:
                    is_open[q] = False
                    n_open -= 1
                    queue[waiting] = q
                    waiting += 1
    if n_open > 0:
        n_open = 0
        for i in range(n):
            p = cells[i]
            if is_open[p]:
                # Sorted in place behind the closed ones: the cells concerned stay the same.
                cells[i] = cells[n_open]
                cells[n_open] = p
                n_open += 1
        _cut(cells, n_open, step, capacity, least, is_open, gain, residual, distance, queue, choice)
    differs = False
    for i in range(n):
        p = cells[i]
        is_open[p] = False
        fresh[p] = beta if choice[p] == 1 else alpha
        differs |= fresh[p] != label[p]
    if not differs:
        return n, False
    change, n_changed = _change(cells, n, u, tables, step, label, fresh)
    return n, change > least * n_changed


@compiled
def _swap_moves(u, tables, inner, step, least, label, fresh, tried, touched, count, work):
    """Swap moves until none improves. A pair of labels is tried again only after something near their cells changed."""
    n_labels = u.shape[1]
    cells = work[2]
    fresh[:] = label
    tried[:] = 0
    touched[:] = 1
    count[:] = 0
    for i in range(inner.size):
        count[label[inner[i]]] += 1
    now = 1
    again = True
    while again:
        again = False
        for alpha in range(n_labels):
            for beta in range(alpha + 1, n_labels):
                if count[alpha] + count[beta] == 0 or max(touched[alpha], touched[beta]) <= tried[alpha, beta]:
                    continue
                n, better = _swap(alpha, beta, u, tables, inner, step, least, label, fresh, work)
                if better:
                    again = True
                    now += 1
                    for i in range(n):
                        p = cells[i]
                        if fresh[p] != label[p]:
                            count[label[p]] -= 1
                            count[fresh[p]] += 1
                            label[p] = fresh[p]
                            for d in range(4):
                                touched[label[p + step[d]]] = now
                    touched[alpha] = touched[beta] = now
                else:
                    for i in range(n):
                        fresh[cells[i]] = label[cells[i]]
                tried[alpha, beta] = now


@compiled
def _inner_cells(rows, cols):
    """Where the cells of a grid are in the grid with a border, and the steps to the four neighbours there."""
    inner = np.empty(rows * cols, np.int64)
    for i in range(rows):
        for j in range(cols):
            inner[i * cols + j] = (i + 1) * (cols + 2) + j + 1
    step = np.empty(4, np.int64)
    step[0] = -1
    step[1] = 1
    step[2] = -(cols + 2)
    step[3] = cols + 2
    return inner, step


@compiled
def swap_all(unary, which, rows, cols, horizontal, vertical, labels, score, swaps):
    """Improve each labelling, by single cells and then, if ``swaps``, by swap moves, until none improves it.

    ``unary`` is (n, rows·cols, M), ``which[i]`` names the tables of grid i in ``horizontal`` and ``vertical``
    (N, M, M); ``labels`` (n, rows·cols) come in as starts and go out improved; ``score`` (n,) is filled.
    """
    n_labels = unary.shape[2]
    inner, step = _inner_cells(rows, cols)
    tables = neighbour_tables(horizontal, vertical)
    size = (rows + 2) * (cols + 2)
    finite = np.empty((rows * cols, n_labels))
    u = np.zeros((size, n_labels))
    label = np.full(size, n_labels, np.int8)
    fresh = np.full(size, n_labels, np.int8)
    look = np.zeros(size, np.int8)
    tried = np.empty((n_labels, n_labels), np.int64)
    touched = np.empty(n_labels + 1, np.int64)
    count = np.empty(n_labels + 1, np.int64)
    work = (
        np.empty((2, 4, n_labels + 1)),
        np.empty(4),
        np.empty(rows * cols, np.int64),
        np.empty(rows * cols, np.int64),
        np.zeros(size, np.bool_),
        np.empty(size),
        np.empty(size),
        np.empty((4, size)),
        np.empty(size, np.int64),
        np.empty(size, np.int8),
    )
    for i in range(unary.shape[0]):
        t = which[i]
        least = _ROUNDING * allowed_only(unary[i], tables[t], finite)
        for r in range(rows * cols):
            u[inner[r]] = finite[r]
            label[inner[r]] = labels[i, r]
        _single_moves(u, tables[t], inner, step, least, label, look)
        if swaps:
            _swap_moves(u, tables[t], inner, step, least, label, fresh, tried, touched, count, work)
        for r in range(rows * cols):
            labels[i, r] = label[inner[r]]
        score[i] = grid_score(unary[i], rows, cols, horizontal[t], vertical[t], labels[i])

"""Labellings of grids that no swap of two labels improves.

    maximise  Σ_r unary[r, z_r] + Σ_{r left of s} H[z_r, z_s] + Σ_{r above s} V[z_r, z_s]

α-β swap moves (Boykov, Veksler and Zabih, 2001): the cells that carry α or β choose anew between the two. Tables are
*regular* where c = (S_αα + S_ββ − S_αβ − S_βα) / 2 ≥ 0 for all α and β. Then the score is supermodular in the choice,
and the best swap is found in two steps: the best change of cells from α to β, and then from β to α. (Let y be best
among choices above x, and x* best of all. Score(x* ∨ y) ≤ score(y), so score(x* ∧ y) ≥ score(x*), and it is below y.)

One step: f_r ≤ 0 is what cell r gains by β instead of α, all others as they are. If a set A of cells changes,

    change(A) = Σ_{r in A} f_r + Σ_{neighbours r, s in A} 2 c_rs.

A cell whose f_r outweighs all the 2 c_rs around it stays, and no neighbour can count on it any more; and so on. Mostly
nobody is left. Otherwise a minimum cut decides (``grid_cuts.py``): with gain_r = f_r + Σ_s c_rs,

    change(A) = Σ_{r in A} gain_r − Σ c_rs over the rim of A.

Where c < 0 by more than a rounding error, each cell pays for half of 2 c whether its neighbour changes or not: what
improves this lowered score improves the true one at least as much.

Grids have a border of cells with the label M, for which all tables are zero. Directions: left, right, up, down; d ^ 1
is the way back.
"""

import numpy as np

from ...kernels import compiled, inlined
from .grid_cuts import best_set
from .grids import grid_score

_ROUNDING = 1e-14  # of the largest scores: smaller differences are not told from rounding errors
_BITS = 62  # of an integer, one for each label
_SWEEPS = 3  # of hopes
_SMOOTH = 0.6  # of all hopes: so many at first, and sweeping is no use


@compiled
def _neighbour_tables(horizontal, vertical):
    """``tables[i, d, z, k]``: what label k scores beside a neighbour z in direction d; zero where z = M, the border."""
    n, n_labels = horizontal.shape[0], horizontal.shape[1]
    tables = np.zeros((n, 4, n_labels + 1, n_labels))
    for i in range(n):
        tables[i, 0, :n_labels] = horizontal[i]
        tables[i, 1, :n_labels] = horizontal[i].T
        tables[i, 2, :n_labels] = vertical[i]
        tables[i, 3, :n_labels] = vertical[i].T
    return tables


@compiled
def _couplings(horizontal, vertical):
    """``c[i, 0 or 1, a, b]``: half of what two neighbours gain by agreeing, side by side or one above the other."""
    n, n_labels = horizontal.shape[0], horizontal.shape[1]
    c = np.empty((n, 2, n_labels, n_labels))
    for i in range(n):
        for d in range(2):
            table = horizontal[i] if d == 0 else vertical[i]
            agreed = np.diag(table)
            c[i, d] = 0.5 * (agreed.reshape((n_labels, 1)) + agreed - table - table.T)
    return c


@inlined
def _refresh(p, u, tables, step, label, field):
    """``field[p, k]``: what cell p scores with label k beside its present neighbours."""
    left = label[p - 1]
    right = label[p + 1]
    up = label[p + step[2]]
    down = label[p + step[3]]
    for k in range(u.shape[1]):
        beside = tables[0, left, k] + tables[1, right, k]
        field[p, k] = u[p, k] + beside + (tables[2, up, k] + tables[3, down, k])


@compiled
def _single_moves(u, tables, inner, step, least, label, field, look, touched):
    """Iterated conditional modes (Besag, 1986): each cell takes its best label given the others, until all have.

    Only the cells marked in ``look`` and, after a change, their neighbours need to be looked at. ``touched[a]`` says
    when a cell with label a or beside one changed last.
    """
    n_labels = u.shape[1]
    now = touched.max() + 1
    again = True
    while again:
        again = False
        for i in range(inner.size):
            p = inner[i]
            if not look[p]:
                continue
            look[p] = False
            present = np.int64(label[p])
            best = field[p, present] + least
            chosen = present
            for k in range(n_labels):
                if field[p, k] > best:
                    best = field[p, k]
                    chosen = k
            if chosen != present:
                label[p] = chosen
                again = True
                touched[chosen] = now
                for d in range(4):
                    q = p + step[d]
                    if label[q] < n_labels:
                        look[q] = True
                        touched[label[q]] = now
                        _refresh(q, u, tables, step, label, field)


@compiled
def _hopes(inner, step, coupling, least, label, field, hope, hopeful):
    """Bit b of ``hope[p]``: might cell p change to b, together with neighbours that carry its label and have that bit?

    ``hopeful[a]`` joins those of all cells with label a. This only saves looking at most cells for most b: a few sweeps
    will do. Returns whether it does; if not, because scores are smooth or labels more than bits, all bits are set.
    """
    n_labels = field.shape[1]
    width = step[3]
    n_bits = 0
    for i in range(inner.size):
        p = inner[i]
        a = label[p]
        n_beside = np.int64(label[p - 1] == a) + np.int64(label[p + 1] == a)
        n_above = np.int64(label[p - width] == a) + np.int64(label[p + width] == a)
        own = field[p, a] + least
        bits = 0
        for b in range(min(n_labels, _BITS)):
            most = field[p, b] + 2.0 * (n_beside * coupling[0, a, b] + n_above * coupling[1, a, b])
            bits |= np.int64(most > own) << b
            n_bits += most > own
        hope[p] = bits
    if n_labels > _BITS or n_bits > _SMOOTH * inner.size * (n_labels - 1):
        hope[:] = -1
        hopeful[:] = -1
        return False
    for sweep in range(_SWEEPS):
        for i in range(inner.size):
            p = inner[i if sweep % 2 == 1 else inner.size - 1 - i]
            if hope[p] == 0:
                continue
            a = label[p]
            left = hope[p - 1] if label[p - 1] == a else 0
            right = hope[p + 1] if label[p + 1] == a else 0
            up = hope[p - width] if label[p - width] == a else 0
            down = hope[p + width] if label[p + width] == a else 0
            bits = hope[p] & (left | right | up | down)
            hope[p] = 0
            own = field[p, a] + least
            b = 0
            while bits >> b != 0:
                if (bits >> b) & 1:
                    n_beside = ((left >> b) & 1) + ((right >> b) & 1)
                    n_above = ((up >> b) & 1) + ((down >> b) & 1)
                    most = field[p, b] + 2.0 * (n_beside * coupling[0, a, b] + n_above * coupling[1, a, b])
                    hope[p] |= np.int64(most > own) << b
                b += 1
    hopeful[:] = 0
    for i in range(inner.size):
        hopeful[label[inner[i]]] |= hope[inner[i]]
    return True


@compiled
def _core(a, b, carriers, step, c_beside, c_above, least, label, field, hope, cells, stack, is_open, gain):
    """The cells whose change from a to b may pay if the others among them change too: the first of ``cells``, open.

    ``carriers`` are all cells that had label a; some may have changed. Also fills the ``gain`` of the open ones.
    Returns how many there are.
    """
    width = step[3]
    # Capacities; and what a neighbour costs for sure where tables are not regular.
    beside = max(c_beside, 0.0)
    above = max(c_above, 0.0)
    bit = min(b, _BITS)
    n = 0
    for i in range(carriers.size):
        p = carriers[i]
        if label[p] != a or (hope[p] >> bit) & 1 == 0:
            continue
        n_beside = (label[p - 1] == a) + (label[p + 1] == a)
        n_above = (label[p - width] == a) + (label[p + width] == a)
        f = field[p, b] - field[p, a] + n_beside * (c_beside - beside) + n_above * (c_above - above)
        if f + 2.0 * (n_beside * beside + n_above * above) > least:
            gain[p] = f
            is_open[p] = True
            cells[n] = p
            n += 1
    for i in range(n):
        p = cells[i]
        n_beside = np.int64(is_open[p - 1]) + np.int64(is_open[p + 1])
        n_above = np.int64(is_open[p - width]) + np.int64(is_open[p + width])
        gain[p] += 2.0 * (n_beside * beside + n_above * above)
    # Those that stay take with them what their neighbours hoped for.
    for i in range(n):
        if not is_open[cells[i]] or gain[cells[i]] > least:
            continue
        is_open[cells[i]] = False
        stack[0] = cells[i]
        height = 1
        while height > 0:
            height -= 1
            p = stack[height]
            for d in range(4):
                q = p + step[d]
                if is_open[q]:
                    gain[q] -= 2.0 * (beside if d < 2 else above)
                    if gain[q] <= least:
                        is_open[q] = False
                        stack[height] = q
                        height += 1
    n_open = 0
    for i in range(n):
        p = cells[i]
        if is_open[p]:
            cells[n_open] = p
            n_open += 1
            n_beside = np.int64(is_open[p - 1]) + np.int64(is_open[p + 1])
            n_above = np.int64(is_open[p - width]) + np.int64(is_open[p + width])
            gain[p] -= n_beside * beside + n_above * above
    return n_open


@compiled
def _change(a, b, cells, n, step, coupling, field, chosen):
    """change(A), and how many cells A has."""
    change = 0.0
    size = 0
    for i in range(n):
        p = cells[i]
        if chosen[p]:
            size += 1
            change += field[p, b] - field[p, a]
            for d in (1, 3):
                if chosen[p + step[d]]:
                    change += 2.0 * coupling[d >> 1, a, b]
    return change, size


@compiled
def _swap_moves(u, tables, coupling, inner, step, least, label, field, look, memory, work):
    """Try all pairs of labels once. Returns whether anything changed.

    From a to b is tried again only after a cell with a or beside one has changed.
    """
    tried, touched, hope, hopeful = memory
    cells, queue, is_open, gain, residual, distance, chosen, renewed = work
    n_labels = u.shape[1]
    selective = _hopes(inner, step, coupling, least, label, field, hope, hopeful)
    changed = False
    began = now = touched.max()
    for a in range(n_labels):
        if hopeful[a] == 0:
            continue
        carriers = inner[label[inner] == a]
        for b in range(n_labels):
            if (hopeful[a] >> min(b, _BITS)) & 1 == 0 or touched[a] <= tried[a, b]:
                continue
            # Hopes are as old as the beginning: if cells with a were touched since, some may have been overlooked.
            up_to_date = not selective or touched[a] <= began
            tried[a, b] = began
            c_beside = coupling[0, a, b]
            c_above = coupling[1, a, b]
            n = _core(a, b, carriers, step, c_beside, c_above, least, label, field, hope, cells, queue, is_open, gain)
            if n == 0:
                continue
            best_set(cells, n, step, c_beside, c_above, least, is_open, gain, residual, distance, queue, chosen)
            change, size = _change(a, b, cells, n, step, coupling, field, chosen)
            if change > least * size:
                changed = True
                now += 1
                touched[b] = now
                if up_to_date:
                    tried[a, b] = now
                for i in range(n):
                    if chosen[cells[i]]:
                        label[cells[i]] = b
                for i in range(n):
                    if chosen[cells[i]]:
                        for d in range(4):
                            q = cells[i] + step[d]
                            if label[q] < n_labels and renewed[q] < now:
                                renewed[q] = now
                                look[q] = True
                                hope[q] = -1
                                touched[label[q]] = now
                                _refresh(q, u, tables, step, label, field)
            for i in range(n):
                is_open[cells[i]] = False
                chosen[cells[i]] = False
    return changed


@compiled
def swap_all(unary, which, rows, cols, horizontal, vertical, labels, score, swaps):
    """Improve each labelling, by single cells and, if ``swaps``, by swap moves as well, until none improves it.

    ``unary`` is (n, rows·cols, M), ``which[i]`` names the tables of grid i in ``horizontal`` and ``vertical``
    (N, M, M); ``labels`` (n, rows·cols) come in as starts, negative ones standing for a cell's best label by itself,
    and go out improved; ``score`` (n,) is filled.
    """
    n_labels = unary.shape[2]
    size = (rows + 2) * (cols + 2)
    inner = np.arange(size).reshape((rows + 2, cols + 2))[1:-1, 1:-1].copy().ravel()
    step = np.array([-1, 1, -(cols + 2), cols + 2])
    tables = _neighbour_tables(horizontal, vertical)
    coupling = _couplings(horizontal, vertical)
    u = np.zeros((size, n_labels))
    field = np.zeros((size, n_labels))
    label = np.full(size, n_labels, np.int8)
    look = np.zeros(size, np.bool_)
    tried = np.empty((n_labels, n_labels), np.int64)
    touched = np.empty(n_labels, np.int64)
    renewed = np.empty(size, np.int64)
    memory = (
        tried,
        touched,
        np.zeros(size, np.int64),
        np.empty(n_labels, np.int64),
    )
    work = (
        np.empty(inner.size, np.int64),
        np.empty(inner.size, np.int64),
        np.zeros(size, np.bool_),
        np.empty(size),
        np.empty((size, 4)),
        np.full(size, -1, np.int64),
        np.zeros(size, np.bool_),
        renewed,
    )
    for i in range(unary.shape[0]):
        t = which[i]
        least = _ROUNDING * max(np.abs(unary[i]).max(), np.abs(tables[t]).max())
        for r in range(inner.size):
            p = inner[r]
            u[p] = unary[i, r]
            label[p] = labels[i, r]
            if labels[i, r] < 0:
                label[p] = 0
                for k in range(1, n_labels):
                    if u[p, k] > u[p, label[p]]:
                        label[p] = k
        for r in range(inner.size):
            look[inner[r]] = True
            _refresh(inner[r], u, tables[t], step, label, field)
        tried[:] = 0
        touched[:] = 1
        _single_moves(u, tables[t], inner, step, least, label, field, look, touched)
        renewed[:] = 0
        while swaps and _swap_moves(u, tables[t], coupling[t], inner, step, least, label, field, look, memory, work):
            _single_moves(u, tables[t], inner, step, least, label, field, look, touched)
        labels[i] = label[inner]
        score[i] = grid_score(unary[i], rows, cols, horizontal[t], vertical[t], labels[i])

"""Dual coordinate ascent over the planes that a cache holds, one small exact problem per example.

    minimise   Ω(w) + Σ_i C_i·max(0, max_j (l_ij − w·x_ij)),      j over the cached planes of example i
    maximise   D(α) = Σ l_ij α_ij − Ω*(v),   v = Σ α_ij x_ij,   α_ij ≥ 0,   Σ_j α_ij ≤ C_i

Ramanan, Algorithm 1, with pair steps, but all steps of one visit are taken inside the example: with the Gram
block G_jk = x_ijᵀ S x_ik at hand, a pair step costs as many operations as the example has planes, whatever the
length of a plane. Planes are read once before (the scores) and those that moved once after.

    g_j = l_j − w·x_j,    a = clip((g_u − g_d)/(G_uu + G_dd − 2 G_ud), 0, α_d)    moved from d to u

The truth takes part as a plane of zeros whose share is what the budget leaves over. Slots
``first[i] … first[i]+count[i]−1`` belong to example i; each names the stored row that holds its plane and, if the
truth has changed since, the row to subtract from it (−1: none).
"""

import numpy as np
from numpy import uint64

from . import compiled, inlined, maps, order as _order
from .rows import at, bounds, column, dot
from .simplex import project_first

# A visit ends when this share of the example's gap is left: the others have moved on by the next visit anyway.
_LEFT = 0.05
_TRUTH = -1


@inlined
def longest_of(count):
    """The most planes that any example has."""
    longest = 0
    for i in range(count.size):
        longest = max(longest, np.int64(count[i]))
    return longest


@compiled
def solve_block(g, a, k, c, gram):
    """Move the shares a[:k] of one example to where the block's own gap is a fraction of what it was.

    ``gram[j*k + l]`` is the inner product of planes j and l. g follows the moves.
    """
    rest = c
    for j in range(k):
        rest -= a[j]
    rest = max(rest, 0.0)
    wanted = -1.0
    for _ in range(10 * (k + 1)):
        up = _TRUTH
        best = 0.0
        paid = 0.0
        for j in range(k):
            paid += a[j] * g[j]
            if g[j] > best:
                best = g[j]
                up = j
        gap = c * best - paid
        if wanted < 0.0:
            wanted = _LEFT * gap
        if gap <= wanted or gap <= 0.0:
            break
        h_up = gram[up * k + up] if up >= 0 else 0.0
        # The partner with which a step gains most.
        down = up
        gain = 0.0
        move = 0.0
        for j in range(_TRUTH, k):
            room = a[j] if j >= 0 else rest
            if j == up or room <= 0.0:
                continue
            slope = best - (g[j] if j >= 0 else 0.0)
            if slope <= 0.0:
                continue
            h = h_up
            if j >= 0:
                h += gram[j * k + j]
                if up >= 0:
                    h -= 2.0 * gram[up * k + j]
            step = room
            if h > 1e-13 * h_up and h > 0.0:
                step = min(slope / h, room)
            value = step * (slope - 0.5 * step * max(h, 0.0))
            if value > gain:
                gain = value
                move = step
                down = j
        if down == up:
            break
        if up >= 0:
            a[up] += move
        else:
            rest += move
        if down >= 0:
            a[down] = max(a[down] - move, 0.0)
        else:
            rest = max(rest - move, 0.0)
        for j in range(k):
            if up >= 0:
                g[j] -= move * gram[j * k + up]
            if down >= 0:
                g[j] += move * gram[j * k + down]


@compiled
def sweep(rows, slots, budget, alpha, m, norms, order, n_active, block, seed):
    """One visit to each example of ``order[:n_active]``: (still active, gap as seen, change of Σ l α).

    A sweep over all examples looks at every plane; those that it leaves without a share are *cold* and not looked at
    until the next one. Planes that carry no share are the majority, and reading them is what takes time. ``norms`` are
    not needed: they are in the Gram blocks.
    """
    indptr, indices, data, width = rows
    row, shift, loss, first, count, gram_first, gram, hot = slots
    full = n_active == count.size
    blocks, size, state = _order.shuffled_blocks(n_active, block, uint64(seed))
    longest = longest_of(count)
    g = np.empty(longest)
    a = np.empty(longest)
    chosen = np.empty(longest, np.int64)
    block_gram = np.empty(longest * longest)
    total = 0.0
    change = 0.0
    for z in range(blocks.size):
        block_start = blocks[z] * size
        block_stop = min(block_start + size, n_active)
        state = _order.shuffle(order, block_start, block_stop, state)
        for p in range(block_start, block_stop):
            i = order[p]
            start = first[i]
            c = at(budget, i)
            worst = 0.0
            paid = 0.0
            k = np.int64(0)
            for s in range(start, start + count[i]):
                if full or hot[s]:
                    chosen[k] = s
                    g[k] = loss[s] - maps.score(indptr, indices, data, width, 0.0, row[s], shift[i], m)
                    a[k] = alpha[s]
                    worst = max(worst, g[k])
                    paid += a[k] * g[k]
                    k += 1
            seen = c * worst - paid
            total += seen
            if seen <= 0.0:
                order[p] = -i - 1
                continue
            n_slots = first[i + 1] - start
            for j in range(k):
                for l in range(k):
                    block_gram[j * k + l] = gram[gram_first[i] + (chosen[j] - start) * n_slots + chosen[l] - start]
            solve_block(g, a, k, c, block_gram)
            for j in range(k):
                s = chosen[j]
                step = a[j] - alpha[s]
                if full:
                    hot[s] = a[j] > 0.0 or step != 0.0
                if step != 0.0:
                    alpha[s] = a[j]
                    change += step * loss[s]
                    maps.move(indptr, indices, data, width, 0.0, row[s], shift[i], step, m)
    return _order.active_first(order, n_active), total, change


@compiled
def extrapolate(rows, slots, budget, alpha, previous, momentum, m, order, active, visited):
    """α ← Proj(α + momentum·(α − previous)) for the examples of ``order[:active]``, then previous ← the old α.

    v has been extrapolated by the caller already: only what is held back is corrected in it (see ``kernels.shared``).
    """
    indptr, indices, data, width = rows
    row, shift, loss, first, count, gram_first, gram, hot = slots
    longest = longest_of(count)
    free = np.empty(longest)
    trial = np.empty(longest)
    change = 0.0
    for p in range(visited):
        i = order[p]
        start = first[i]
        k = np.int64(count[i])
        for j in range(k):
            s = start + j
            free[j] = alpha[s] + momentum * (alpha[s] - previous[s])
            trial[j] = free[j] if p < active else alpha[s]
            previous[s] = alpha[s]
        if p < active:
            project_first(trial, k, at(budget, i))
        for j in range(k):
            s = start + j
            change += (trial[j] - alpha[s]) * loss[s]
            alpha[s] = trial[j]
            if trial[j] != free[j]:
                maps.move(indptr, indices, data, width, 0.0, row[s], shift[i], trial[j] - free[j], m)
    return change


@inlined
def _clear(indptr, indices, width, r, out):
    """Zero where a row has entries."""
    start, stop = bounds(indptr, indices, width, r)
    for k in range(start, stop):
        out[column(indices, k, start)] = 0.0


@inlined
def _gram_column(indptr, indices, data, width, slots, i, last, m, everywhere, scratch):
    """Inner products of plane ``last`` of example i with those before it and with itself.

    The plane is written out at full length once, in ``scratch`` (zeros before and after); the others are read
    against it.
    """
    row, shift, loss, first, count, gram_first, gram, hot = slots
    start = first[i]
    size = first[i + 1] - start
    b = shift[i]
    maps.spread(indptr, indices, data, width, 0.0, row[start + last], 1.0, m, scratch)
    if b >= 0:
        maps.spread(indptr, indices, data, width, 0.0, b, -1.0, m, scratch)
    for j in range(last + 1):
        value = dot(indptr, indices, data, width, 0.0, row[start + j], scratch)
        if b >= 0:
            value -= dot(indptr, indices, data, width, 0.0, b, scratch)
        gram[gram_first[i] + j * size + last] = value
        gram[gram_first[i] + last * size + j] = value
    if everywhere:
        scratch[:] = 0.0
    else:
        _clear(indptr, indices, width, row[start + last], scratch)
        if b >= 0:
            _clear(indptr, indices, width, b, scratch)


@compiled
def fill_gram(rows, slots, ids, m, everywhere, scratch, all_planes):
    """The Gram blocks of some examples, after each got one plane more; or of all their planes, from nothing.

    ``everywhere``: the metric joins weights that a row does not have, so ``scratch`` fills up.
    """
    indptr, indices, data, width = rows
    for p in range(ids.size):
        count = np.int64(slots[4][ids[p]])
        for last in range(0 if all_planes else count - 1, count):
            _gram_column(indptr, indices, data, width, slots, ids[p], last, m, everywhere, scratch)


@compiled
def worst_cached(rows, slots, ids, w, out):
    """out_p = max(0, max_j (l_j − w·x_j)) over the cached planes of each example."""
    indptr, indices, data, width = rows
    row, shift, loss, first, count, gram_first, gram, hot = slots
    for p in range(ids.size):
        i = ids[p]
        worst = 0.0
        for s in range(first[i], first[i] + count[i]):
            score = dot(indptr, indices, data, width, 0.0, row[s], w)
            if shift[i] >= 0:
                score -= dot(indptr, indices, data, width, 0.0, shift[i], w)
            worst = max(worst, loss[s] - score)
        out[p] = worst


@compiled
def add_rows(rows, chosen, store, shift, out_indptr, out_indices, out_data):
    """Row ``chosen[p]`` plus stored row ``shift[p]`` (none where that is −1), as CSR rows; returns entries written."""
    at = 0
    out_indptr[0] = 0
    for p in range(chosen.size):
        i, i_stop = bounds(rows.indptr, rows.indices, rows.width, chosen[p])
        j = np.int64(0)
        j_stop = np.int64(0)
        if shift[p] >= 0:
            j, j_stop = bounds(store.indptr, store.indices, store.width, shift[p])
        i_start = i
        j_start = j
        while i < i_stop or j < j_stop:
            a = column(rows.indices, i, i_start) if i < i_stop else np.int64(rows.width)
            b = column(store.indices, j, j_start) if j < j_stop else np.int64(rows.width)
            total = 0.0
            if a <= b:
                total += rows.data[i]
                i += 1
            if b <= a:
                total += store.data[j]
                j += 1
            if total != 0.0:
                out_indices[at] = min(a, b)
                out_data[at] = total
                at += 1
        out_indptr[p + 1] = at
    return at


@compiled
def relay(slots, keep, examples, new, source):
    """Move kept slots to their new places; ``source`` tells for each new slot which old one it was (−1: spare).

    ``examples`` has the old number of each example (−1: it is new).
    """
    row, shift, loss, first, count, gram_first, gram, hot = slots
    new_row, _, new_loss, new_first, new_count, new_gram_first, new_gram, new_hot = new
    kept = np.empty(longest_of(count), np.int64)
    for e in range(examples.size):
        i = examples[e]
        if i < 0:
            continue
        n = 0
        for j in range(count[i]):
            if keep[first[i] + j]:
                kept[n] = j
                n += 1
        size = first[i + 1] - first[i]
        new_size = new_first[e + 1] - new_first[e]
        for a in range(n):
            s = first[i] + kept[a]
            t = new_first[e] + a
            source[t] = s
            new_row[t] = row[s]
            new_loss[t] = loss[s]
            new_hot[t] = hot[s]
            for b in range(n):
                value = gram[gram_first[i] + kept[a] * size + kept[b]]
                new_gram[new_gram_first[e] + a * new_size + b] = value
        new_count[e] = n

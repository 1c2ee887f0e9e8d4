"""One image's visit in the dual ascent over filters of parts.

    maximise  D = Σ_c α_c l_c − Ω*(v),   v = Σ_c α_c x_c over all images,   α_c ≥ 0,   Σ_c α_c ≤ C

x_c is what a rival class c is worth to the filters: one block of features for each part, an average over places of the
part, and each part may be moved without regard to the others. So every part has its own exact step towards the best
places at hand, where a step for all parts at once would be as short as the worst of them needs it. Then the shares α_c
of the classes are moved by pair steps (see ``kernels.planes``).
"""

import numpy as np

from ...kernels import compiled, compiled_sum
from ...kernels.planes import solve_block


@compiled_sum
def move_parts(x, towards, share, scale, w, n_parts):
    """Move every part of one class towards better places as far as it pays, with w = … + scale·v in step."""
    d = x.size // n_parts
    for j in range(n_parts):
        start = j * d
        gain = 0.0
        length = 0.0
        for k in range(start, start + d):
            step = towards[k] - x[k]
            gain -= w[k] * step
            length += step * step
        if gain > 0.0 and length > 0.0:
            far = min(1.0, gain / (share * scale * length))
            for k in range(start, start + d):
                # Rounded once, to the precision of x: bounds of rounding errors rely on it.
                step = far * (np.float64(towards[k]) - np.float64(x[k]))
                x[k] = np.float64(x[k]) + step
                w[k] += scale * share * step


@compiled_sum
def dot(x, y):
    total = 0.0
    for k in range(x.size):
        total += x[k] * y[k]
    return total


@compiled
def visit(x, loss, share, towards, movable, budget, scale, w, n_parts):
    """Move the parts of all classes, then their shares; returns Σ α (l − w·x) before that, and the change of Σ α l.

    ``towards[c]`` are the best places at hand for class c; classes that are not ``movable`` are averages of several,
    and stay as they are. w follows v.
    """
    n = loss.size
    paid = 0.0
    for c in range(n):
        if share[c] > 0.0:
            paid += share[c] * (loss[c] - dot(x[c], w))
    for c in range(n):
        if movable[c]:
            if share[c] > 0.0:
                move_parts(x[c], towards[c], share[c], scale, w, n_parts)
            else:
                x[c] = towards[c]
    g = np.empty(n)
    gram = np.empty(n * n)
    for a in range(n):
        g[a] = loss[a] - dot(x[a], w)
        for b in range(a + 1):
            gram[a * n + b] = scale * dot(x[a], x[b])
            gram[b * n + a] = gram[a * n + b]
    moved = share.copy()
    solve_block(g, moved, n, budget, gram)
    change = 0.0
    for c in range(n):
        step = moved[c] - share[c]
        if step != 0.0:
            share[c] = moved[c]
            change += step * loss[c]
            row = x[c]
            for k in range(row.size):
                w[k] += scale * step * row[k]
    return paid, change

"""The best tree over the words of a sentence, each with one head; word 0 is the root, which has none.

    maximise  Σ_d score[d, head_d]   over trees: projective ones (no two arcs cross), or all

Projective trees are found by Eisner (1996), in a time that grows with n³: spans are joined that have their head at one
end. All trees by Chu and Liu (1965) and Edmonds (1967): every word takes its best head, and cycles are contracted
until there are none.
"""

import numpy as np

from . import compiled, inlined

_RIGHT, _LEFT, _TO_RIGHT, _TO_LEFT = 0, 1, 2, 3


@compiled
def rooms_for(longest):
    """Working memory for sentences of up to so many words."""
    return np.empty((6, longest + 1, longest + 1)), np.empty((2 * longest + 8, 3), np.int64)


@compiled
def _joint(right, left, i, j):
    """The last word of the left one of two spans with heads i < j that are the best together."""
    best = right[i, i] + left[j, i + 1]
    at = i
    for k in range(i + 1, j):
        value = right[i, k] + left[j, k + 1]
        if value > best:
            best = value
            at = k
    return at


@inlined
def _end_of_arc(to, a, rest, b, i, j, end):
    """Where the outermost arc from the head of the words i … j ends, at ``end`` or between: ``to[a, k]`` is what the
    words up to k are worth where it ends there, ``rest[b, k]`` what the others are."""
    best = to[a, end]
    at = end
    for k in range(i + 1, j):
        value = to[a, k] + rest[b, k]
        if value > best:
            best = value
            at = k
    return at


@inlined
def _push(stack, size, kind, i, j):
    stack[size, 0] = kind
    stack[size, 1] = i
    stack[size, 2] = j
    return size + 1


@compiled
def projective(score, n, single_root, rooms, stack, heads):
    """Fill ``heads[1 … n]`` with those of the best projective tree.

    ``right[i, j]`` is what the words i … j are worth with head i, ``left[j, i]`` with head j; ``to_right`` and
    ``to_left`` are the same where the words at both ends have an arc. Two are kept transposed, too, to be read in rows.
    """
    right = rooms[0]
    left = rooms[1]
    to_right = rooms[2]
    to_left = rooms[3]
    right_by_end = rooms[4]
    left_by_end = rooms[5]
    first = 1 if single_root else 0
    for i in range(first, n + 1):
        right[i, i] = left[i, i] = right_by_end[i, i] = left_by_end[i, i] = 0.0
    for width in range(1, n + 1 - first):
        for i in range(first, n + 1 - width):
            j = i + width
            best = right[i, i] + left[j, i + 1]
            for k in range(i + 1, j):
                best = max(best, right[i, k] + left[j, k + 1])
            to_right[i, j] = best + score[j, i]
            to_left[j, i] = best + score[i, j] if i > 0 else -np.inf
            best = to_right[i, j]
            for k in range(i + 1, j):
                best = max(best, to_right[i, k] + right_by_end[j, k])
            right[i, j] = right_by_end[j, i] = best
            best = to_left[j, i]
            for k in range(i + 1, j):
                best = max(best, to_left[j, k] + left_by_end[i, k])
            left[j, i] = left_by_end[i, j] = best
    if single_root:
        root = 1
        best = -np.inf
        for r in range(1, n + 1):
            value = left[r, 1] + right[r, n] + score[r, 0]
            if value > best:
                best = value
                root = r
        heads[root] = 0
        size = _push(stack, _push(stack, 0, _LEFT, 1, root), _RIGHT, root, n)
    else:
        size = _push(stack, 0, _RIGHT, 0, n)
    while size > 0:
        size -= 1
        kind = stack[size, 0]
        i = stack[size, 1]
        j = stack[size, 2]
        if i == j:
            continue
        if kind == _RIGHT:
            at = _end_of_arc(to_right, i, right_by_end, j, i, j, j)
            size = _push(stack, _push(stack, size, _TO_RIGHT, i, at), _RIGHT, at, j)
        elif kind == _LEFT:
            at = _end_of_arc(to_left, j, left_by_end, i, i, j, i)
            size = _push(stack, _push(stack, size, _TO_LEFT, at, j), _LEFT, i, at)
        else:
            if kind == _TO_RIGHT:
                heads[j] = i
            else:
                heads[i] = j
            at = _joint(right, left, i, j)
            size = _push(stack, _push(stack, size, _RIGHT, i, at), _LEFT, at + 1, j)


@compiled
def first_fault(heads, first, known, is_projective, single_root):
    """The number of the first tree, of those not ``known`` to be right, that has several words below the root or arcs
    that cross, where this may not be; −1 if there is none."""
    for p in range(known.size):
        if known[p]:
            continue
        tree = heads[first[p] : first[p + 1]]
        roots = 0
        for d in range(1, tree.size + 1):
            h = tree[d - 1]
            roots += h == 0
            for k in range(min(h, d) + 1, max(h, d) if is_projective else 0):
                if not min(h, d) <= tree[k - 1] <= max(h, d):
                    return p
        if single_root and roots != 1:
            return p
    return -1


@compiled
def discourage_roots(score, n):
    """Take so much from all arcs of the root that the best tree has one of them: any tree gains less by another, even
    where scores are so large that their differences are lost in rounding."""
    total = 1.0
    largest = 0.0
    for d in range(1, n + 1):
        low = np.inf
        high = -np.inf
        for h in range(n + 1):
            if h != d:
                low = min(low, score[d, h])
                high = max(high, score[d, h])
        total += high - low
        largest = max(largest, abs(low), abs(high))
    total += largest
    for d in range(1, n + 1):
        score[d, 0] -= total


@compiled
def _cycle(best, active, n, seen):
    """Some word on a cycle of arcs (d, best[d]) between active words; 0 if there is none."""
    for d in range(n + 1):
        seen[d] = 0
    for start in range(1, n + 1):
        d = start
        while active[d] and d != 0 and seen[d] == 0:
            seen[d] = start
            d = best[d]
        if d != 0 and active[d] and seen[d] == start:
            return d
    return 0


@compiled
def spanning(score, n, heads):
    """Fill ``heads[1 … n]`` with those of the best tree. ``score`` is overwritten.

    A contracted cycle takes the place of one of its words; the best arcs into it and out of it remember which words
    they join. Contracted cycles have numbers above n; each word, and each cycle inside another, knows what contains it.
    """
    head_of = np.empty((n + 1, n + 1), np.int64)
    word_of = np.empty((n + 1, n + 1), np.int64)
    inside = np.empty(2 * n + 2, np.int64)
    arc_head = np.empty(2 * n + 2, np.int64)
    arc_word = np.empty(2 * n + 2, np.int64)
    node = np.empty(n + 1, np.int64)
    best = np.empty(n + 1, np.int64)
    seen = np.empty(n + 1, np.int64)
    active = np.empty(n + 1, np.bool_)
    on_cycle = np.empty(n + 1, np.bool_)
    for d in range(n + 1):
        for h in range(n + 1):
            head_of[d, h] = h
            word_of[d, h] = d
        node[d] = d
        inside[d] = -1
        active[d] = True
    on_cycle[0] = False
    nodes = n + 1
    while True:
        for d in range(1, n + 1):
            if active[d]:
                highest = -np.inf
                best[d] = 0
                for h in range(n + 1):
                    if active[h] and h != d and score[d, h] > highest:
                        highest = score[d, h]
                        best[d] = h
        root = _cycle(best, active, n, seen)
        for d in range(1, n + 1):
            on_cycle[d] = False
            if active[d]:
                arc_head[node[d]] = head_of[d, best[d]]
                arc_word[node[d]] = word_of[d, best[d]]
        if root == 0:
            break
        d = root
        while not on_cycle[d]:
            on_cycle[d] = True
            inside[node[d]] = nodes
            d = best[d]
        for other in range(n + 1):
            if not active[other] or on_cycle[other]:
                continue
            entered = root
            left = root
            gain = score[root, other] - score[root, best[root]]
            m = best[root]
            while m != root:
                if score[m, other] - score[m, best[m]] > gain:
                    gain = score[m, other] - score[m, best[m]]
                    entered = m
                if score[other, m] > score[other, left]:
                    left = m
                m = best[m]
            word_of[root, other], head_of[root, other] = word_of[entered, other], head_of[entered, other]
            word_of[other, root], head_of[other, root] = word_of[other, left], head_of[other, left]
            score[root, other] = gain
            score[other, root] = score[other, left]
        m = best[root]
        while m != root:
            active[m] = False
            m = best[m]
        node[root] = nodes
        inside[nodes] = -1
        nodes += 1
    for cycle in range(nodes - 1, n, -1):  # broken where an arc enters it
        member = arc_word[cycle]
        while inside[member] != cycle:
            member = inside[member]
        arc_head[member] = arc_head[cycle]
        arc_word[member] = arc_word[cycle]
    for d in range(1, n + 1):
        heads[d] = arc_head[d]

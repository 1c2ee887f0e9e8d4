"""Arcs between the words of sentences: features from templates, hashed into a table of weights, formed when needed.

A template has a part of the head and a part of the dependent. The key of a feature of an arc is made of the keys of
both, and of the way between them: its direction, alone or with the distance. Tags that stand between two words are
features, too, each once. Features of relations have one weight for each relation, side by side. A sentence has n² arcs
with dozens of features each; none of these is stored, only the keys of the values of tokens.
(Hashed features: Shi et al. 2009; in parsers: Bohnet 2010.)

The words of a sentence have the places root + 1 … root + n; those before the root and after the last word hold values
of their own. ``keys`` has a row for each column of tokens, that of tags is the second. Weights of arcs come first,
``size`` of them, then rows of those of relations.
"""

import numpy as np
from numpy import uint64

from . import compiled, inlined, spanning_trees

_TAGS = 1
_FAR, _WAYS = 12, 14  # to the right, to the left by distance: 1, 2, 3, 4, 5 … 9, more; then to the right, to the left
_HALF, _LESS = uint64(32), uint64(29)
_ONE, _TWO, _THREE = uint64(0xFF51AFD7ED558CCD), uint64(0xC4CEB9FE1A85EC53), uint64(0x9E3779B97F4A7C15)


@inlined
def _mixed(key):
    """Every bit of the result depends on every bit of the key."""
    key = (key ^ (key >> _HALF)) * _ONE
    key = (key ^ (key >> _LESS)) * _TWO
    return key ^ (key >> _HALF)


@inlined
def _slot(key, size):
    """The place of a key in a table."""
    return (((key * _THREE) >> _HALF) * uint64(size)) >> _HALF


@inlined
def _ways(h, d):
    """The numbers of the way from head to dependent, with its distance and without."""
    distance = abs(h - d)
    bucket = distance - 1 if distance < 5 else 4 if distance < 10 else 5
    return (bucket, _FAR) if h < d else (6 + bucket, _FAR + 1)


@compiled
def rooms_for(longest, templates, relation_templates):
    """Keys of one sentence: by word and template those of both sides of arcs, then of relations; of words between."""
    words = longest + 1
    sides = np.empty((2, words, templates.shape[0]), np.uint64)
    relation_sides = np.empty((2, words, relation_templates.shape[0]), np.uint64)
    ways = np.empty(_WAYS, np.uint64)
    for b in range(_WAYS):
        ways[b] = _mixed(uint64(b + 1))
    return sides, relation_sides, ways, np.empty(words, np.uint64), np.empty(words, np.int64)


@compiled
def _fill_sides(keys, root, n, templates, sides):
    """``templates[t, side]`` lists columns and offsets; a column of −1 ends the list."""
    for t in range(templates.shape[0]):
        for side in range(2):
            for p in range(n + 1):
                key = _mixed(uint64(100 + 2 * t + side))
                for a in range(templates.shape[2]):
                    column = templates[t, side, a, 0]
                    if column < 0:
                        break
                    key = _mixed(key ^ keys[column, root + p + templates[t, side, a, 1]])
                sides[side, p, t] = key


@compiled
def _fill(keys, root, n, templates, relation_templates, rooms):
    """The keys of a sentence; for each word the one before with the same tag, 0 if there is none."""
    sides, relation_sides, _, tags, before = rooms
    _fill_sides(keys, root, n, templates, sides)
    _fill_sides(keys, root, n, relation_templates, relation_sides)
    for b in range(1, n + 1):
        tags[b] = _mixed(keys[_TAGS, root + b])
        before[b] = 0
        for c in range(b - 1, 0, -1):
            if tags[c] == tags[b]:
                before[b] = c
                break


@inlined
def _arc_score(h, d, w, size, heads, words, ways, tags, between, n_between):
    near, far = _ways(h, d)
    total = 0.0
    for t in range(heads.shape[1]):
        key = heads[h, t] ^ words[d, t]
        total += w[_slot(key ^ ways[near], size)] + w[_slot(key ^ ways[far], size)]
    key = heads[h, 0] ^ words[d, 0] ^ ways[far]
    for b in range(n_between):
        total += w[_slot(key ^ tags[between[b]], size)]
    return total


@compiled
def _arc_scores(n, w, size, rooms, between, score):
    """score[d, h] of all arcs."""
    sides, _, ways, tags, before = rooms
    heads = sides[0]
    words = sides[1]
    for i in range(n + 1):
        n_between = 0
        for j in range(i + 1, n + 1):
            if j > i + 1 and before[j - 1] <= i:
                between[n_between] = j - 1
                n_between += 1
            for turn in range(1 if i == 0 else 2):
                h, d = (i, j) if turn == 0 else (j, i)
                score[d, h] = _arc_score(h, d, w, size, heads, words, ways, tags, between, n_between)


@inlined
def _add_row(table, at, n_relations, out):
    for k in range(n_relations):
        out[k] += table[at + uint64(k)]


@compiled
def _one_sided(n, table, n_rows, n_relations, templates, rooms, out):
    """out[side, right or left, p]: scores of relations from templates that look at one side alone."""
    _, sides, ways, _, _ = rooms
    heads = sides[0]
    words = sides[1]
    out[:, :, : n + 1] = 0.0
    for t in range(templates.shape[0]):
        for side in range(2):
            if templates[t, 1 - side, 0, 0] >= 0:
                continue
            for p in range(n + 1):
                key = heads[p, t] ^ words[0, t] if side == 0 else heads[0, t] ^ words[p, t]
                for turn in range(2):
                    at = _slot(key ^ ways[_FAR + turn], n_rows) * uint64(n_relations)
                    _add_row(table, at, n_relations, out[side, turn, p])


@compiled
def _best_relations(
    n, w, size, n_relations, templates, rooms, alone, true_heads, true_relations, cost, score, relations
):
    """Add to each arc the score of its best relation, and name that; a wrong one at a true arc has a cost."""
    _, sides, ways, _, _ = rooms
    heads = sides[0]
    words = sides[1]
    n_rows = (w.size - size) // n_relations
    table = w[size:]
    _one_sided(n, table, n_rows, n_relations, templates, rooms, alone)
    each = np.empty(n_relations)
    for d in range(1, n + 1):
        for h in range(n + 1):
            if h == d:
                continue
            _, far = _ways(h, d)
            for k in range(n_relations):
                each[k] = alone[0, far - _FAR, h, k] + alone[1, far - _FAR, d, k]
            for t in range(templates.shape[0]):
                if templates[t, 0, 0, 0] >= 0 and templates[t, 1, 0, 0] >= 0:
                    at = _slot(heads[h, t] ^ words[d, t] ^ ways[far], n_rows) * uint64(n_relations)
                    _add_row(table, at, n_relations, each)
            if true_heads.size > 0 and true_heads[d - 1] == h:
                for k in range(n_relations):
                    each[k] += cost * (k != true_relations[d - 1])
            best = 0
            highest = each[0]
            for k in range(1, n_relations):
                if each[k] > highest:
                    highest = each[k]
                    best = k
            score[d, h] += highest
            relations[d, h] = best


@compiled
def search(sentences, offsets, templates, relation_templates, w, size, n_relations, settings, ids, y, out_first, out):
    """The best tree of each sentence of ``ids``, with costs where true trees are known.

    A tree is a row of heads and one of relations. ``out[:, out_first[p]:out_first[p+1]]`` receives that of ids[p].
    """
    keys, roots = sentences
    is_projective, single_root, cost, relation_cost = settings
    longest = 0
    for p in range(ids.size):
        longest = max(longest, offsets[ids[p] + 1] - offsets[ids[p]])
    rooms = rooms_for(longest, templates, relation_templates)
    between = np.empty(longest + 1, np.int64)
    score = np.empty((longest + 1, longest + 1))
    relations = np.empty((longest + 1, longest + 1), np.int32)
    alone = np.empty((2, 2, longest + 1, n_relations))
    heads = np.empty(longest + 1, np.int64)
    spans, stack = spanning_trees.rooms_for(longest)
    none = y[0, :0]
    for p in range(ids.size):
        i = ids[p]
        n = offsets[i + 1] - offsets[i]
        if n == 0:
            continue
        _fill(keys, roots[i], n, templates, relation_templates, rooms)
        _arc_scores(n, w, size, rooms, between, score)
        true_heads = y[0, offsets[i] : offsets[i + 1]] if y.shape[1] > 0 else none
        true_relations = y[1, offsets[i] : offsets[i + 1]] if y.shape[1] > 0 else none
        if n_relations > 0:
            _best_relations(
                n,
                w,
                size,
                n_relations,
                relation_templates,
                rooms,
                alone,
                true_heads,
                true_relations,
                relation_cost,
                score,
                relations,
            )
        for d in range(1, true_heads.size + 1):
            for h in range(n + 1):
                score[d, h] += cost * (h != true_heads[d - 1])
        if is_projective:
            spanning_trees.projective(score, n, single_root, spans, stack, heads)
        else:
            if single_root:
                spanning_trees.discourage_roots(score, n)
            spanning_trees.spanning(score, n, heads)
        for d in range(1, n + 1):
            out[0, out_first[p] + d - 1] = heads[d]
            out[1, out_first[p] + d - 1] = relations[d, heads[d]] if n_relations > 0 else -1


@inlined
def _put_arc(h, d, sign, size, heads, words, ways, tags, before, entries, n):
    """The features of an arc: twice the numbers of their weights, one more where they count against it."""
    near, far = _ways(h, d)
    for t in range(heads.shape[1]):
        key = heads[h, t] ^ words[d, t]
        entries[n] = 2 * np.int64(_slot(key ^ ways[near], size)) + sign
        entries[n + 1] = 2 * np.int64(_slot(key ^ ways[far], size)) + sign
        n += 2
    key = heads[h, 0] ^ words[d, 0] ^ ways[far]
    for b in range(min(h, d) + 1, max(h, d)):
        if before[b] <= min(h, d):
            entries[n] = 2 * np.int64(_slot(key ^ tags[b], size)) + sign
            n += 1
    return n


@inlined
def _put_relation(h, d, label, sign, size, n_rows, n_relations, heads, words, ways, entries, n):
    _, far = _ways(h, d)
    for t in range(heads.shape[1]):
        row = np.int64(_slot(heads[h, t] ^ words[d, t] ^ ways[far], n_rows))
        entries[n] = 2 * (size + row * n_relations + label) + sign
        n += 1
    return n


@compiled
def differences(
    sentences, offsets, templates, relation_templates, n_weights, size, n_relations, ids, y, z, z_first, out_indptr
):
    """Rows φ(x, y) − φ(x, z) as (indices, data); ``z[:, z_first[p]:]`` is a tree of sentence ids[p].

    Heads of −1 in y have no features: the row is −φ(x, z) then.
    """
    keys, roots = sentences
    n_rows = 0 if n_relations == 0 else (n_weights - size) // n_relations
    longest = 0
    for p in range(ids.size):
        longest = max(longest, offsets[ids[p] + 1] - offsets[ids[p]])
    rooms = rooms_for(longest, templates, relation_templates)
    sides, relation_sides, ways, tags, before = rooms
    heads = sides[0]
    words = sides[1]
    relation_heads = relation_sides[0]
    relation_words = relation_sides[1]
    most = 2 * longest * (2 * templates.shape[0] + relation_templates.shape[0] + longest)
    entries = np.empty(most, np.int64)
    room = 1024
    indices = np.empty(room, np.int32)
    data = np.empty(room, np.float32)
    filled = 0
    out_indptr[0] = 0
    for p in range(ids.size):
        t0 = offsets[ids[p]]
        n = offsets[ids[p] + 1] - t0
        _fill(keys, roots[ids[p]], n, templates, relation_templates, rooms)
        end = 0
        for d in range(1, n + 1):
            for sign in range(2):
                h = y[0, t0 + d - 1] if sign == 0 else z[0, z_first[p] + d - 1]
                label = y[1, t0 + d - 1] if sign == 0 else z[1, z_first[p] + d - 1]
                same_head = y[0, t0 + d - 1] == z[0, z_first[p] + d - 1]
                same = same_head and y[1, t0 + d - 1] == z[1, z_first[p] + d - 1]
                if h >= 0 and not same_head:
                    end = _put_arc(h, d, sign, size, heads, words, ways, tags, before, entries, end)
                if h >= 0 and not same and n_relations > 0:
                    end = _put_relation(
                        h, d, label, sign, size, n_rows, n_relations, relation_heads, relation_words, ways, entries, end
                    )
        entries[:end].sort()
        if filled + end + 1 > room:
            room = 2 * (filled + end + 1)
            indices = np.concatenate((indices[:filled], np.empty(room - filled, np.int32)))
            data = np.concatenate((data[:filled], np.empty(room - filled, np.float32)))
        e = 0
        while e < end:
            number = entries[e] >> 1
            value = 0
            while e < end and entries[e] >> 1 == number:
                value += 1 - 2 * (entries[e] & 1)
                e += 1
            if value != 0:
                indices[filled] = number
                data[filled] = value
                filled += 1
        out_indptr[p + 1] = filled
    return indices[: max(filled, 1)], data[: max(filled, 1)]

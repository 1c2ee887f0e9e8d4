"""The best tree of a grammar over a sentence: the algorithm of Cocke, Kasami and Younger, for binary and unary rules.

    maximise  Σ score of rules + Σ score[t, symbol over token t]  (+ cost of every (start, end, symbol) of the tree)

Charts are kept by start and by end, so that the inner loop over the token at which a span is split reads rows.
"""

import numpy as np

from . import compiled

_NONE = -1


@compiled
def _close(s, e, unary, unary_scores, cost, by_start, by_end, rule):
    """Symbols that have the same words as the one below them; rules come in an order in which that is settled."""
    for r in range(unary.shape[0]):
        value = by_start[s, unary[r, 1], e] + unary_scores[r] + cost[s, e, unary[r, 0]]
        if value > by_start[s, unary[r, 0], e]:
            by_start[s, unary[r, 0], e] = by_end[e, unary[r, 0], s] = value
            rule[s, e, unary[r, 0]] = r


@compiled
def fill_chart(n, score, binary, binary_scores, unary, unary_scores, cost, by_start, by_end, rule, split):
    """The best value of every symbol over every span, and how it came about.

    ``score[t, symbol]`` is −∞ for symbols that may not stand over a token. ``rule`` counts unary rules from 0 on,
    binary ones behind them.
    """
    n_symbols = score.shape[1]
    for width in range(1, n + 1):
        for s in range(n + 1 - width):
            e = s + width
            for a in range(n_symbols):
                value = score[s, a] + cost[s, e, a] if width == 1 else -np.inf
                by_start[s, a, e] = by_end[e, a, s] = value
                rule[s, e, a] = _NONE
            for r in range(binary.shape[0]):
                a = binary[r, 0]
                best = -np.inf
                at = s
                for m in range(s + 1, e):
                    value = by_start[s, binary[r, 1], m] + by_end[e, binary[r, 2], m]
                    if value > best:
                        best = value
                        at = m
                best += binary_scores[r] + cost[s, e, a]
                if best > by_start[s, a, e]:
                    by_start[s, a, e] = by_end[e, a, s] = best
                    rule[s, e, a] = unary.shape[0] + r
                    split[s, e, a] = at
            _close(s, e, unary, unary_scores, cost, by_start, by_end, rule)


@compiled
def read_tree(n, start, binary, unary, rule, split, stack, out):
    """Write the tree as rows (start, end, symbol, rule), parents first; returns their number."""
    size = 1
    stack[0, 0] = 0
    stack[0, 1] = n
    stack[0, 2] = start
    filled = 0
    while size > 0:
        size -= 1
        s = stack[size, 0]
        e = stack[size, 1]
        a = stack[size, 2]
        r = rule[s, e, a]
        out[filled, 0] = s
        out[filled, 1] = e
        out[filled, 2] = a
        out[filled, 3] = r
        filled += 1
        if r == _NONE:
            continue
        if r < unary.shape[0]:
            stack[size, 2] = unary[r, 1]
            size += 1
            continue
        at = split[s, e, a]
        b = r - unary.shape[0]
        stack[size, 0] = at
        stack[size, 2] = binary[b, 2]
        stack[size + 1, 0] = s
        stack[size + 1, 1] = at
        stack[size + 1, 2] = binary[b, 1]
        size += 2
    return filled


@compiled
def search(score, offsets, start, binary, unary, rule_scores, costs, true_nodes, true_first, ids, out, out_first):
    """The best tree of each sentence of ``ids``, with costs where true trees are known; returns their values.

    ``score`` has a row for each token of these sentences, in their order, ``true_nodes[true_first[i]:]`` the nodes of
    the true tree of sentence i. Every node that the true tree lacks costs one, every one that it has gives one back, so
    that the loss counts both kinds of mistakes. ``out_first`` is filled with where the rows of each tree begin.
    """
    n_symbols = score.shape[1]
    longest = 0
    for p in range(ids.size):
        longest = max(longest, offsets[ids[p] + 1] - offsets[ids[p]])
    by_start = np.empty((longest + 1, n_symbols, longest + 1))
    by_end = np.empty((longest + 1, n_symbols, longest + 1))
    rule = np.empty((longest + 1, longest + 1, n_symbols), np.int32)
    split = np.empty((longest + 1, longest + 1, n_symbols), np.int32)
    cost = np.zeros((longest + 1, longest + 1, n_symbols))
    stack = np.empty((2 * longest + 2, 3), np.int64)
    values = np.zeros(ids.size)
    binary_scores = rule_scores[unary.shape[0] :]
    unary_scores = rule_scores[: unary.shape[0]]
    t0 = 0
    filled = 0
    for p in range(ids.size):
        i = ids[p]
        n = offsets[i + 1] - offsets[i]
        out_first[p] = filled
        if costs:
            for s in range(n):
                for e in range(s + 1, n + 1):
                    for a in range(n_symbols):
                        cost[s, e, a] = 1.0
            for k in range(true_first[i], true_first[i + 1]):
                cost[true_nodes[k, 0], true_nodes[k, 1], true_nodes[k, 2]] = -1.0
        fill_chart(
            n,
            score[t0 : t0 + n],
            binary,
            binary_scores,
            unary,
            unary_scores,
            cost,
            by_start,
            by_end,
            rule,
            split,
        )
        values[p] = by_start[0, start, n]
        if values[p] > -np.inf:
            filled += read_tree(n, start, binary, unary, rule, split, stack, out[filled:])
        t0 += n
    out_first[ids.size] = filled
    return values

"""Probabilities along chains, p(y) = exp(score of y) / Z, by the forward–backward algorithm in logarithms.

    forward[t, k]  = log Σ exp(score of the labels at 0 … t), over those with label k at t
    backward[t, k] = log Σ exp(score of the labels behind t), over those that follow label k at t

Scores of tokens are one table (n_tokens, n_labels) for all sequences, sequence i in its rows ``offsets[i]`` to
``offsets[i + 1] - 1``; forbidden pairs, starts and ends are −∞. Every row of ``forward`` and ``backward`` is kept
relative to its largest entry, so that scores of any size neither overflow nor lose digits. A step is then a product
with the table exp(transition − its largest entry), K exponentials for K² terms; where such a sum has underflowed, it
is taken again relative to its own largest term. The recursions are those of Lafferty, McCallum and Pereira (2001).
"""

import numpy as np

from . import compiled, inlined

_TINY = 1e-200  # what underflows in a sum of this size is less than 1e-100 of it


@inlined
def _centre(row):
    """Subtract the largest entry, and return it."""
    top = -np.inf
    for k in range(row.size):
        top = max(top, row[k])
    if top > -np.inf:
        for k in range(row.size):
            row[k] -= top
    return top


@compiled
def _log_sum(row, other):
    """log Σ_k exp(row[k] + other[k])."""
    top = -np.inf
    for k in range(row.size):
        top = max(top, row[k] + other[k])
    if top == -np.inf:
        return top
    total = 0.0
    for k in range(row.size):
        total += np.exp(row[k] + other[k] - top)
    return top + np.log(total)


@compiled
def _factors(transition):
    """exp(transition − top) and top, the largest entry."""
    top = -np.inf
    for j in range(transition.shape[0]):
        for k in range(transition.shape[1]):
            top = max(top, transition[j, k])
    if top == -np.inf:
        top = 0.0
    return np.exp(transition - top), top


@compiled
def _step(before, transition, factor, top, sums, out):
    """out[k] = log Σ_j exp(before[j] + transition[j, k]), where the largest entry of ``before`` is 0."""
    n_labels = before.size
    for k in range(n_labels):
        sums[k] = 0.0
    for j in range(n_labels):
        share = np.exp(before[j])
        for k in range(n_labels):
            sums[k] += share * factor[j, k]
    for k in range(n_labels):
        out[k] = top + np.log(sums[k]) if sums[k] > _TINY else _log_sum(before, transition[:, k])


@compiled
def _forward(score, transition, factor, top, start, sums, out, level):
    """Fill ``out`` with centred rows; ``level[t]`` is what was subtracted from row t."""
    for k in range(start.size):
        out[0, k] = start[k] + score[0, k]
    level[0] = _centre(out[0])
    for t in range(1, score.shape[0]):
        _step(out[t - 1], transition, factor, top, sums, out[t])
        for k in range(start.size):
            out[t, k] += score[t, k]
        level[t] = level[t - 1] + _centre(out[t])


@compiled
def _backward(score, turned, factor, top, end, sums, ahead, out):
    """Fill ``out`` with centred rows; ``turned`` are transitions from the next label to the one before."""
    n = score.shape[0]
    for k in range(end.size):
        out[n - 1, k] = end[k]
    _centre(out[n - 1])
    for t in range(n - 2, -1, -1):
        for k in range(end.size):
            ahead[k] = out[t + 1, k] + score[t + 1, k]
        _centre(ahead)
        _step(ahead, turned, factor, top, sums, out[t])
        _centre(out[t])


@compiled
def _longest(offsets):
    longest = 0
    for i in range(offsets.size - 1):
        longest = max(longest, offsets[i + 1] - offsets[i])
    return longest


@compiled
def log_partitions(score, offsets, pairs):
    """log Z of every sequence; 0 of an empty one."""
    transition, start, end = pairs
    factor, top = _factors(transition)
    longest = _longest(offsets)
    forward = np.empty((longest, start.size))
    level = np.empty(longest)
    sums = np.empty(start.size)
    out = np.zeros(offsets.size - 1)
    for i in range(offsets.size - 1):
        n = offsets[i + 1] - offsets[i]
        if n > 0:
            rows = score[offsets[i] : offsets[i + 1]]
            _forward(rows, transition, factor, top, start, sums, forward, level)
            out[i] = level[n - 1] + _log_sum(forward[n - 1], end)
    return out


@compiled
def marginals(score, offsets, pairs):
    """Put p(label at t) in the place of the scores of every token; returns log Z of every sequence."""
    transition, start, end = pairs
    turned = np.ascontiguousarray(transition.T)
    factor, top = _factors(transition)
    back_factor = np.ascontiguousarray(factor.T)
    longest = _longest(offsets)
    forward = np.empty((longest, start.size))
    backward = np.empty((longest, start.size))
    level = np.empty(longest)
    sums = np.empty(start.size)
    ahead = np.empty(start.size)
    out = np.zeros(offsets.size - 1)
    for i in range(offsets.size - 1):
        n = offsets[i + 1] - offsets[i]
        if n == 0:
            continue
        rows = score[offsets[i] : offsets[i + 1]]
        _forward(rows, transition, factor, top, start, sums, forward, level)
        _backward(rows, turned, back_factor, top, end, sums, ahead, backward)
        out[i] = level[n - 1] + _log_sum(forward[n - 1], end)
        for t in range(n):
            _shares(forward[t], backward[t], rows[t])
    return out


@inlined
def _shares(forward, backward, out):
    """out[k] = exp(forward[k] + backward[k]), divided by the sum."""
    top = -np.inf
    for k in range(forward.size):
        out[k] = forward[k] + backward[k]
        top = max(top, out[k])
    total = 0.0
    for k in range(forward.size):
        out[k] = np.exp(out[k] - top)
        total += out[k]
    for k in range(forward.size):
        out[k] /= total


@compiled
def _mean_of_step(before, transition, factor, raw, share, sums, means):
    """Σ_k share[k]·E[raw[j, k] | k], the label before k being j with odds exp(before[j] + transition[j, k])."""
    n_labels = before.size
    for k in range(n_labels):
        sums[k] = 0.0
        means[k] = 0.0
    for j in range(n_labels):
        odds = np.exp(before[j])
        for k in range(n_labels):
            sums[k] += odds * factor[j, k]
            means[k] += odds * factor[j, k] * raw[j, k]
    total = 0.0
    for k in range(n_labels):
        if sums[k] > _TINY:
            total += share[k] * means[k] / sums[k]
        elif share[k] > 0.0:
            norm = _log_sum(before, transition[:, k])
            for j in range(n_labels):
                total += share[k] * np.exp(before[j] + transition[j, k] - norm) * raw[j, k]
    return total


@compiled
def expectations(score, offsets, pairs, raw_score, raw_pairs):
    """(log Z, mean of another score, mean number of tokens with each label), summed over all sequences.

    The other score is that of ``raw_score`` and ``raw_pairs``, which have a number, any, where a pair is forbidden.
    """
    transition, start, end = pairs
    raw_transition, raw_start, raw_end = raw_pairs
    turned = np.ascontiguousarray(transition.T)
    factor, top = _factors(transition)
    back_factor = np.ascontiguousarray(factor.T)
    n_labels = start.size
    longest = _longest(offsets)
    forward = np.empty((longest, n_labels))
    backward = np.empty((longest, n_labels))
    level = np.empty(longest)
    sums = np.empty(n_labels)
    ahead = np.empty(n_labels)
    share = np.empty(n_labels)
    counts = np.zeros(n_labels)
    log_z = 0.0
    mean = 0.0
    for i in range(offsets.size - 1):
        n = offsets[i + 1] - offsets[i]
        if n == 0:
            continue
        rows = score[offsets[i] : offsets[i + 1]]
        raw = raw_score[offsets[i] : offsets[i + 1]]
        _forward(rows, transition, factor, top, start, sums, forward, level)
        _backward(rows, turned, back_factor, top, end, sums, ahead, backward)
        log_z += level[n - 1] + _log_sum(forward[n - 1], end)
        for t in range(n):
            _shares(forward[t], backward[t], share)
            for k in range(n_labels):
                counts[k] += share[k]
                mean += share[k] * raw[t, k]
                if t == 0:
                    mean += share[k] * raw_start[k]
                if t == n - 1:
                    mean += share[k] * raw_end[k]
            if t > 0:
                mean += _mean_of_step(forward[t - 1], transition, factor, raw_transition, share, sums, ahead)
    return log_z, mean, counts


@compiled
def span_log_probabilities(score, offsets, pairs, sequence, first, mask_first, masks):
    """For each span the logarithm of the probability that all of its tokens have labels that its masks allow.

    Span s begins at token ``first[s]`` of ``sequence[s]``, and its tokens have the masks
    ``mask_first[s] … mask_first[s + 1] − 1``, at least one. Spans of one sequence stand together.
    """
    transition, start, end = pairs
    turned = np.ascontiguousarray(transition.T)
    factor, top = _factors(transition)
    back_factor = np.ascontiguousarray(factor.T)
    n_labels = start.size
    longest = _longest(offsets)
    forward = np.empty((longest, n_labels))
    backward = np.empty((longest, n_labels))
    level = np.empty(longest)
    sums = np.empty(n_labels)
    ahead = np.empty(n_labels)
    value = np.empty(n_labels)
    out = np.empty(sequence.size)
    at_hand = -1
    for s in range(sequence.size):
        rows = score[offsets[sequence[s]] : offsets[sequence[s] + 1]]
        if sequence[s] != at_hand:
            at_hand = sequence[s]
            _forward(rows, transition, factor, top, start, sums, forward, level)
            _backward(rows, turned, back_factor, top, end, sums, ahead, backward)
        t = first[s]
        height = level[t]
        for m in range(mask_first[s], mask_first[s + 1]):
            if m == mask_first[s]:
                for k in range(n_labels):
                    value[k] = forward[t, k]
            else:
                t += 1
                for k in range(n_labels):
                    ahead[k] = value[k]
                _step(ahead, transition, factor, top, sums, value)
                for k in range(n_labels):
                    value[k] += rows[t, k]
            for k in range(n_labels):
                if not masks[m, k]:
                    value[k] = -np.inf
            height += _centre(value)
            if height == -np.inf:
                break
        last = first[s] + mask_first[s + 1] - mask_first[s] - 1
        free = level[last] + _log_sum(forward[last], backward[last])
        if not np.isfinite(free):
            out[s] = np.nan
        elif height == -np.inf:
            out[s] = height
        else:
            log_p = height + _log_sum(value, backward[last]) - free
            out[s] = 0.0 if log_p > 0.0 else log_p
    return out

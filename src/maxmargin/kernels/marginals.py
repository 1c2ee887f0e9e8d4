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
def _forward(score, transition, factor, top, start):
    """Centred rows for one sequence, and what was subtracted from each."""
    out = np.empty(score.shape)
    level = np.empty(score.shape[0])
    sums = np.empty(start.size)
    for k in range(start.size):
        out[0, k] = start[k] + score[0, k]
    level[0] = _centre(out[0])
    for t in range(1, score.shape[0]):
        _step(out[t - 1], transition, factor, top, sums, out[t])
        for k in range(start.size):
            out[t, k] += score[t, k]
        level[t] = level[t - 1] + _centre(out[t])
    return out, level


@compiled
def _backward(score, turned, back_factor, top, end):
    """Centred rows for one sequence; ``turned`` are transitions from the next label to the one before."""
    n = score.shape[0]
    out = np.empty(score.shape)
    sums = np.empty(end.size)
    ahead = np.empty(end.size)
    for k in range(end.size):
        out[n - 1, k] = end[k]
    _centre(out[n - 1])
    for t in range(n - 2, -1, -1):
        for k in range(end.size):
            ahead[k] = out[t + 1, k] + score[t + 1, k]
        _centre(ahead)
        _step(ahead, turned, back_factor, top, sums, out[t])
        _centre(out[t])
    return out


@compiled
def log_partitions(score, offsets, pairs):
    """log Z of every sequence; 0 of an empty one."""
    transition, start, end = pairs
    factor, top = _factors(transition)
    out = np.zeros(offsets.size - 1)
    for i in range(offsets.size - 1):
        if offsets[i + 1] > offsets[i]:
            forward, level = _forward(score[offsets[i] : offsets[i + 1]], transition, factor, top, start)
            out[i] = level[-1] + _log_sum(forward[-1], end)
    return out


@compiled
def marginals(score, offsets, pairs):
    """Put p(label at t) in the place of the scores of every token; returns log Z of every sequence."""
    transition, start, end = pairs
    turned = np.ascontiguousarray(transition.T)
    factor, top = _factors(transition)
    back_factor = np.ascontiguousarray(factor.T)
    out = np.zeros(offsets.size - 1)
    for i in range(offsets.size - 1):
        rows = score[offsets[i] : offsets[i + 1]]
        if rows.shape[0] == 0:
            continue
        forward, level = _forward(rows, transition, factor, top, start)
        backward = _backward(rows, turned, back_factor, top, end)
        out[i] = level[-1] + _log_sum(forward[-1], end)
        for t in range(rows.shape[0]):
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
    sums = np.empty(n_labels)
    means = np.empty(n_labels)
    share = np.empty(n_labels)
    counts = np.zeros(n_labels)
    log_z = 0.0
    mean = 0.0
    for i in range(offsets.size - 1):
        rows = score[offsets[i] : offsets[i + 1]]
        raw = raw_score[offsets[i] : offsets[i + 1]]
        n = rows.shape[0]
        if n == 0:
            continue
        forward, level = _forward(rows, transition, factor, top, start)
        backward = _backward(rows, turned, back_factor, top, end)
        log_z += level[-1] + _log_sum(forward[-1], end)
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
                mean += _mean_of_step(forward[t - 1], transition, factor, raw_transition, share, sums, means)
    return log_z, mean, counts


@compiled
def segment_log_probabilities(score, offsets, pairs, goes_on, type_of, segments):
    """The logarithm of the probability of each segment, a row (sequence, first token, token behind the last, type).

    A segment goes on from a label to the next one where ``goes_on`` says so, and begins and ends where it does not;
    ``type_of`` has the types of labels. Segments of one sequence stand together.
    """
    transition, start, end = pairs
    turned = np.ascontiguousarray(transition.T)
    factor, top = _factors(transition)
    back_factor = np.ascontiguousarray(factor.T)
    inside = np.where(goes_on, transition, -np.inf)
    inside_factor, inside_top = _factors(inside)
    across = np.where(goes_on, -np.inf, transition)
    across_factor, across_top = _factors(across)
    n_labels = start.size
    value = np.empty(n_labels)
    before = np.empty(n_labels)
    sums = np.empty(n_labels)
    out = np.empty(segments.shape[0])
    at_hand = -1
    for s in range(segments.shape[0]):
        i, first, behind, kind = segments[s]
        rows = score[offsets[i] : offsets[i + 1]]
        if i != at_hand:
            at_hand = i
            forward, level = _forward(rows, transition, factor, top, start)
            backward = _backward(rows, turned, back_factor, top, end)
        last = min(behind, rows.shape[0] - 1)  # that is looked at
        height = 0.0
        for t in range(first, last + 1):
            if t == 0:
                value[:] = start
            elif t == first:
                height = level[t - 1]
                _step(forward[t - 1], across, across_factor, across_top, sums, value)
            elif t < behind:
                before[:] = value
                _step(before, inside, inside_factor, inside_top, sums, value)
            else:
                before[:] = value
                _step(before, across, across_factor, across_top, sums, value)
            for k in range(n_labels):
                value[k] = value[k] + rows[t, k] if t > first or type_of[k] == kind else -np.inf
            height += _centre(value)
            if height == -np.inf:
                break
        free = level[last] + _log_sum(forward[last], backward[last])
        if not np.isfinite(free):
            out[s] = np.nan
        elif height == -np.inf:
            out[s] = height
        else:
            log_p = height + _log_sum(value, backward[last]) - free
            out[s] = 0.0 if log_p > 0.0 else log_p
    return out

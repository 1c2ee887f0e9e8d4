"""Where parts respond most, and the feature vectors that belong to such places.

Scores of one view are an array (patches, parts). Atoms are the pieces into which pooling regions cut an image: the best
patch of each atom is found first, the best of a region is the best of its atoms. −1 stands where there is no patch.
"""

import numpy as np

from ...kernels import compiled, compiled_sum


@compiled
def best_of_atoms(scores, atom, best, at):
    """The largest score of every part within every atom, and the patch that has it."""
    n_parts = scores.shape[1]
    best[:] = -np.inf
    at[:] = -1
    for q in range(scores.shape[0]):
        row = scores[q]
        top = best[atom[q]]
        where = at[atom[q]]
        number = np.int32(q)
        for j in range(n_parts):
            s = row[j]
            better = s > top[j]
            top[j] = s if better else top[j]
            where[j] = number if better else where[j]


@compiled
def best_of_regions(best, at, member, share, responses, place):
    """``place[j, r]`` is the best patch of part j in region r, and ``share`` of its score is added to ``responses``."""
    for r in range(member.shape[0]):
        for j in range(best.shape[1]):
            top = -np.inf
            where = -1
            for a in range(member.shape[1]):
                if member[r, a] and best[a, j] > top:
                    top = best[a, j]
                    where = at[a, j]
            place[j, r] = where
            if where >= 0:
                responses[j, r] += share * top


@compiled
def add_scores_at(values, filters, place, share, out):
    """``out[j, r]`` += share · (the score of part j at its place in region r), within one view."""
    for j in range(place.shape[0]):
        for r in range(place.shape[1]):
            q = place[j, r]
            if q >= 0:
                out[j, r] += share * _dot(values, q, filters, j)


@compiled_sum
def _dot(values, q, filters, j):
    total = 0.0
    for k in range(values.shape[1]):
        total += values[q, k] * filters[j, k]
    return total


@compiled
def add_features_at(values, place, weight, share, out):
    """``out[j]`` −= share · Σ_r weight[j, r] · (the features at the place of part j in region r), within one view."""
    for j in range(place.shape[0]):
        row = out[j]
        for r in range(place.shape[1]):
            q = place[j, r]
            factor = share * weight[j, r]
            if q >= 0 and factor != 0.0:
                features = values[q]
                for k in range(row.size):
                    row[k] -= factor * features[k]


@compiled_sum
def rival_classes(part_weights, offset, label, free, fixed, rival, missing):
    """The class that comes closest to each image's own, or goes beyond it, and what is missing of the margin to it.

    ``free`` are the responses of parts, ``fixed`` their scores where a bound holds them: where a rival weighs a part
    less than the true class does, the part stays at its place.

        missing = max_{k ≠ y} 1 + offset_k − offset_y + Σ_p (u_kp − u_yp)·(free_p if u_kp ≥ u_yp else fixed_p)
    """
    n_classes, n_parts = part_weights.shape
    for i in range(label.size):
        y = label[i]
        missing[i] = -np.inf
        rival[i] = -1
        for k in range(n_classes):
            if k == y:
                continue
            total = 0.0
            for p in range(n_parts):
                d = part_weights[k, p] - part_weights[y, p]
                total += d * (free[i, p] if d >= 0.0 else fixed[i, p])
            total += 1.0 + offset[k] - offset[y]
            if total > missing[i]:
                missing[i] = total
                rival[i] = k

"""Parts of images by loops over patches: nothing here is shared with the package but the record of what patches are."""

from itertools import product

import numpy as np

from maxmargin.vision.parts.patches import Patches


def ragged(seed=0, n=5, n_views=2, d=4, dtype=np.float64, most=7):
    """Images with 1 to ``most`` patches in each view; so few that some regions have none."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most + 1, n * n_views)
    first = np.concatenate([[0], np.cumsum(sizes)])
    corner = rng.uniform(0.0, 0.8, (first[-1], 2))
    windows = np.hstack([corner, corner + rng.uniform(0.05, 0.2, corner.shape)]).astype(np.float32)
    return Patches(rng.normal(size=(first[-1], d)).astype(dtype), first, windows, n_views)


def region_of(window, grids):
    """The regions that a window's centre lies in: one cell of each grid."""
    x, y = 0.5 * (window[0] + window[2]), 0.5 * (window[1] + window[3])
    start, found = 0, []
    for g in grids:
        row, column = min(int(y * g), g - 1), min(int(x * g), g - 1)
        found.append(start + row * g + column)
        start += g * g
    return found


def looked_up(patches, filters, grids):
    """(responses, places) patch by patch."""
    n, n_regions = len(patches), sum(g * g for g in grids)
    responses = np.zeros((n, len(filters), n_regions))
    places = np.full((n, patches.n_views, len(filters), n_regions), -1)
    for i in range(n):
        for v in range(patches.n_views):
            start, stop = patches.first[i * patches.n_views + v], patches.first[i * patches.n_views + v + 1]
            best = np.full((len(filters), n_regions), -np.inf)
            for q in range(start, stop):
                for j, w in enumerate(filters):
                    s = float(patches.values[q].astype(np.float64) @ w)
                    for r in region_of(patches.windows[q], grids):
                        if s > best[j, r]:
                            best[j, r], places[i, v, j, r] = s, q - start
            responses[i] += np.where(np.isfinite(best), best, 0.0) / patches.n_views
    return responses, places


def looked_up_at(patches, filters, places):
    scores = np.zeros((len(patches), *places.shape[2:]))
    for i, v, j, r in np.ndindex(places.shape):
        if places[i, v, j, r] >= 0:
            q = patches.first[i * patches.n_views + v] + places[i, v, j, r]
            scores[i, j, r] += patches.values[q].astype(np.float64) @ filters[j] / patches.n_views
    return scores


def hinges(responses, label, table, bias, centre):
    """What each image misses of the margin, class by class."""
    found = np.zeros(len(label))
    for i, y in enumerate(label):
        score = [(u * (responses[i] - centre)).sum() + b for u, b in zip(table, bias, strict=True)]
        found[i] = max(0.0, *(1.0 + score[k] - score[y] for k in range(len(table)) if k != y))
    return found


def every_constraint(patches, label, weights, grids, held):
    """All that a bound of the filters says, as rows: (X, loss, image), for every rival and every choice of places."""
    rows, losses, images = [], [], []
    n_classes, n_parts, n_regions = weights.table.shape
    for i, y in enumerate(label):
        for k in set(range(n_classes)) - {int(y)}:
            d = weights.table[k] - weights.table[y]
            choices = []  # of each view, part and region: patches, with the block of x that they add to
            for v, j, r in product(range(patches.n_views), range(n_parts), range(n_regions)):
                start, stop = patches.first[i * patches.n_views + v], patches.first[i * patches.n_views + v + 1]
                inside = [q for q in range(start, stop) if r in region_of(patches.windows[q], grids)]
                if d[j, r] < 0.0 and inside:
                    inside = [start + held[i, v, j, r]]
                if inside:
                    choices.append([(j, -d[j, r] * patches.values[q] / patches.n_views) for q in inside])
            offset = (weights.table * weights.centre).sum(axis=(1, 2))
            for chosen in product(*choices):
                x = np.zeros((n_parts, patches.n_features))
                for j, part in chosen:
                    x[j] += part
                rows.append(x.ravel())
                losses.append(1.0 + weights.bias[k] - offset[k] - weights.bias[y] + offset[y])
                images.append(i)
    return np.array(rows), np.array(losses), np.array(images)

"""Deformable part models by exhaustion: every place of every part at every root, on images that are small enough."""

import itertools

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from maxmargin.problem import Problem, Rows
from maxmargin.vision.detection.model import Component, Part, Prior, StarModel
from maxmargin.vision.detection.objective import DetectionObjective
from maxmargin.vision.detection.photos import Photo
from maxmargin.vision.detection.training_images import PyramidStore, TrainingImages
from maxmargin.vision.features.cell_pyramid import Frame, Grid, Level
from maxmargin.vision.features.hog import mirrored

PARTS = StarModel((Component(3, 3, (Part(2, 2, 1, 1), Part(2, 3, 3, 0))), Component(2, 3, (Part(2, 2, 0, 3),))))
AGAINST = StarModel((Component(3, 3, (Part(2, 2, 1, 1), Part(3, 2, 2, 3, -1))), Component(3, 2, (Part(2, 2, 2, 0),))))


def random_level(rng, rows=6, columns=7):
    coarse = rng.normal(0.0, 0.3, (rows, columns, 32)).astype(np.float32)
    fine = rng.normal(0.0, 0.3, (2 * rows, 2 * columns, 32)).astype(np.float32)
    return Level(coarse, fine, Frame(rows, columns, 0.0, 0.0, 8.0, 8.0))


def random_weights(rng, model, scale=0.3):
    """Any filters and linear costs; quadratic costs above zero, as training keeps them."""
    w = rng.normal(0.0, scale, model.n_weights)
    for c, component in enumerate(model.components):
        for p in range(len(component.parts)):
            at = model.cost_at(c, p)
            w[at] = rng.uniform(0.02, 0.5), rng.normal(0.0, 0.2), rng.uniform(0.02, 0.5), rng.normal(0.0, 0.2)
    return w


def correlated(cells, values):
    windows = sliding_window_view(cells.astype(np.float64), values.shape[:2], axis=(0, 1))
    return np.einsum("ijfyx,yxf->ij", windows, values)


def all_values(model, w, level, view):
    """What roots score at every place, and what every part at every place would be worth to every root.

    A mirrored view is the view that is not, in the mirrored image.
    """
    if view % 2:
        turned = Level(mirrored(level.coarse), mirrored(level.fine), level.frame)
        root, parts = all_values(model, w, turned, view - 1)
        return root[:, ::-1], [part[:, ::-1, :, ::-1] for part in parts]
    c = view // 2
    component = model.components[c]
    shape = level.coarse.shape[0] - component.rows + 1, level.coarse.shape[1] - component.columns + 1
    if min(shape) < 1:
        return np.empty((max(shape[0], 0), max(shape[1], 0))), []
    root = correlated(level.coarse, model.root(w, c)) + w[model.bias_at(c)]
    parts = []
    for p, part in enumerate(component.parts):
        response = correlated(level.fine, model.filter(w, c, p))
        y, x = np.indices(response.shape)
        dy = y - (2 * np.arange(shape[0]) + part.top)[:, None, None, None]
        dx = x - (2 * np.arange(shape[1]) + part.left)[None, :, None, None]
        a, b, d, e = w[model.cost_at(c, p)]
        parts.append(response - (a * dy**2 + b * dy + d * dx**2 + e * dx))
    return root, parts


def view_scores(model, w, level, view, held=None):
    """Scores of a view at all its places; negative parts where ``held`` would place them, if it is given."""
    root, parts = all_values(model, w, level, view)
    others = parts if held is None else all_values(model, held, level, view)[1]
    total = root.copy()
    for part, values, other in zip(model.components[view // 2].parts, parts, others, strict=False):
        flat = values.reshape(*total.shape, -1)
        if part.sign > 0 or held is None:
            total += part.sign * flat.max(axis=2)
        else:
            at = other.reshape(*total.shape, -1).argmax(axis=2)
            total -= np.take_along_axis(flat, at[..., None], axis=2)[..., 0]
    return total


def overlap(a, b):
    wide, tall = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    common = max(wide, 0.0) * max(tall, 0.0)
    return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common)


def is_background(images, i, k, view, row, column):
    frame, (rows, columns) = images.pyramids.frames(i)[k], images.model.size_of(view)
    box = frame.box(row, column, rows, columns)
    return all(overlap(box, other) < images.background_overlap for other in images.pyramids.photos[i].boxes)


def window_scores(images, model, w, held=None):
    """For every root place of every image that is background for some view: its number and the best score."""
    found = {}
    for i in range(len(images)):
        for k, level in enumerate(images.pyramids[i]):
            for view in model.views:
                scores = view_scores(model, w, level, view, held)
                for (row, column), score in np.ndenumerate(scores):
                    if is_background(images, i, k, view, row, column):
                        at = int(images.window(i, k, np.array([row]), np.array([column]))[0])
                        found[at] = max(found.get(at, -np.inf), score)
    return found


def positive_score(images, model, w, p, fixed=None):
    """The best root of a positive example, or the score where all but its negative parts is fixed."""
    positive = images.positives[p]
    levels = images.pyramids[positive.image]
    if fixed is None:
        return max(view_scores(model, w, levels[k], view)[row, column] for view, k, row, column in positive.roots)
    view, k, row, column = fixed[:4]
    root, parts = all_values(model, w, levels[k], view)
    total = root[row, column]
    for p, (part, values) in enumerate(zip(model.components[view // 2].parts, parts, strict=True)):
        y, x = fixed[4 + 2 * p : 6 + 2 * p]
        total += values[row, column, y, x] if part.sign > 0 else -values[row, column].max()
    return total


def objective_value(objective, w, latent=None):
    """F at w, or the bound of F that fixes ``latent``."""
    images, model = objective.images, objective.model
    held = latent[-1] if latent is not None and model.has_negative_parts else None
    total = objective.regularizer.value(w)
    for p in range(len(images.positives)):
        score = positive_score(images, model, w, p, None if latent is None else latent[p])
        total += objective.positive_C * max(0.0, 1.0 - score)
    windows = window_scores(images, model, w, held)
    return total + objective.C * sum(max(0.0, 1.0 + score) for score in windows.values())


# Training data.


def photo(rng, box=None, size=48, bright=200):
    """Noise, and a square with a bright bar at its left."""
    image = rng.integers(0, 60, (size, size)).astype(np.uint8)
    boxes = np.empty((0, 4))
    if box is not None:
        x, y, right, bottom = box
        image[y:bottom, x:right] = 110
        image[y + 3 : bottom - 3, x + 3 : x + 9] = bright
        boxes = np.array([box], float)
    return Photo(image, size, size, boxes, np.zeros(len(boxes), bool))


def tiny_objective(rng, model, *, C=0.05, prior=None, flips=True, n_background=1, regularizer=None, overlap=0.5):
    """Two small images with an object, and some without."""
    photos = [photo(rng, (8, 8, 32, 32)), photo(rng, (14, 18, 40, 42)), *(photo(rng) for _ in range(n_background))]
    pyramids = PyramidStore(photos, Grid(8, 1, 1.0, (3, 3)), model.has_parts, 10**9)
    images = TrainingImages(model, pyramids, flips, overlap)
    regularizer = model.regularizer(prior or Prior()) if regularizer is None else regularizer
    return DetectionObjective(model, images, regularizer, C, positive_weight=2.0)


def enumerated(objective, latent):
    """The bound that fixes ``latent`` with all its constraints listed, one slack for each window."""
    from maxmargin.constraints.shared import SharedSlack

    images, model = objective.images, objective.model
    n = objective.n_positives
    rows, owner = [], []
    for p in range(n):
        levels = images.pyramids[images.positives[p].image]
        places = _placements(model, levels, *latent[p][:4], [latent[p]], -1)
        rows.append(model.features(levels, places))
        owner += [p] * len(places)
    for i in range(len(images)):
        levels = images.pyramids[i]
        for k, level in enumerate(levels):
            for view in model.views:
                held = all_values(model, latent[-1], level, view)[1] if model.has_negative_parts else None
                height, width = model.size_of(view)
                for row, column in np.ndindex(
                    max(level.coarse.shape[0] - height + 1, 0), max(level.coarse.shape[1] - width + 1, 0)
                ):
                    if is_background(images, i, k, view, row, column):
                        at = np.zeros(model.placement_length, np.int32)
                        for p, part in enumerate(model.parts_of(view)):
                            if part.sign < 0:
                                values = held[p][row, column]
                                at[4 + 2 * p : 6 + 2 * p] = np.unravel_index(values.argmax(), values.shape)
                        places = _placements(model, levels, view, k, row, column, [at], 1)
                        rows.append(model.features(levels, places))
                        window = int(images.window(i, k, np.array([row]), np.array([column]))[0])
                        owner += [n + window] * len(places)
    table, owner = np.concatenate(rows), np.array(owner)
    order = np.argsort(owner, kind="stable")
    table, owner = np.ascontiguousarray(table[order]), owner[order]
    first = np.flatnonzero(np.diff(owner, prepend=-1, append=-1))
    positive = owner[first[:-1]] < n
    matrix = Rows(np.empty(0, np.int64), np.empty(0, np.int32), table.reshape(-1), len(table), model.n_weights)
    budget = np.where(positive, objective.positive_C, objective.C)
    side = np.where(positive, 1, -1).astype(np.int8)
    return Problem(SharedSlack(matrix, np.ones(len(table)), first, budget, side), objective.regularizer)


def _placements(model, levels, view, k, row, column, given, free):
    """All placements with this root whose parts of sign ``free`` are anywhere, the others as given."""
    choices = []
    for p, part in enumerate(model.parts_of(view)):
        fine = levels[k].fine
        anywhere = itertools.product(range(fine.shape[0] - part.rows + 1), range(fine.shape[1] - part.columns + 1))
        choices.append(list(anywhere) if part.sign == free else [tuple(given[0][4 + 2 * p : 6 + 2 * p])])
    out = []
    for places in itertools.product(*choices):
        at = np.zeros(model.placement_length, np.int32)
        at[:4] = view, k, row, column
        for p, place in enumerate(places):
            at[4 + 2 * p : 6 + 2 * p] = place
        out.append(at)
    return np.array(out, np.int32)

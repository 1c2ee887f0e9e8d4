"""The content of a clustering: sizes of clusters, their centres, and how the objective came down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..report import numbers
from ..report.content import Data, ReportContent
from ..report.curves import search
from ..report.markup import (
    MOST,
    Markup,
    count_bars,
    element,
    heat_table,
    note,
    together,
)

if TYPE_CHECKING:
    from .estimator import GMMKMeans

_MOST_CLUSTERS = 40
_MOST_FEATURES = 12


def content(estimator: GMMKMeans, data: Data) -> ReportContent:
    """Of a fitted GMMKMeans. Where ``data`` has labels, clusters are compared with them."""
    centres, labels = estimator.cluster_centers_, estimator.labels_
    told = ReportContent("Clusters", history=search(estimator.history_, estimator.tol, "labels"))
    objective = numbers.number(estimator.inertia_)
    said = "The points are at a squared distance of ", element("b", objective), " from their centres, in all."
    told.claim = together(
        element("p", *said, class_="claim"),
        note(
            "k-means has no certificate: other centres may be better. No centres on the way were worse than those at "
            "the start, and every label is that of the nearest centre."
        ),
    )
    told.tiles.update(clusters=len(centres), objective=objective, bounds=estimator.n_iter_, features=centres.shape[1])
    if data.given:
        labels, nearest = estimator.predict(data.X), estimator.transform(data.X).min(axis=1)
        told.results[f"mean distance on {data.name}"] = numbers.number(float(nearest.mean()))
        told.results[f"rows of {data.name}"] = labels.size
    sizes = np.bincount(labels, minlength=len(centres))
    where = f"on {data.name}" if data.given else "in training"
    told.sections += [
        (f"Sizes of the clusters {where}", _sizes(sizes)),
        ("Clusters and labels", _labels(labels, np.asarray(data.y), len(centres)) if data.y is not None else None),
        ("Centres", _centres(estimator, sizes)),
    ]
    return told


def _sizes(sizes: np.ndarray) -> Markup:
    entries = [(f"cluster {k}", int(sizes[k])) for k in np.argsort(-sizes, kind="stable")[:_MOST_CLUSTERS]]
    more = f"The {_MOST_CLUSTERS} largest of {sizes.size}." if sizes.size > _MOST_CLUSTERS else None
    return together(count_bars(entries, max(int(sizes.sum()), 1)), note(more))


def _labels(labels: np.ndarray, y: np.ndarray, n_clusters: int) -> Markup:
    """How many rows of each cluster have which label."""
    names = np.unique(y)
    counts = np.array([np.bincount(labels[y == name], minlength=n_clusters) for name in names]).T
    pure = counts.max(axis=1).sum() / max(labels.size, 1)
    said = f"{numbers.share(pure)} of the rows have the label that is most frequent in their cluster."
    if names.size > MOST or n_clusters > _MOST_CLUSTERS:
        return element("p", said)
    rows, columns = [f"cluster {k}" for k in range(n_clusters)], [numbers.label(name) for name in names]
    return together(element("p", said), heat_table(rows, columns, counts))


def _centres(estimator: GMMKMeans, sizes: np.ndarray) -> Markup:
    """How far centres lie from the mean of all, in the features in which they differ most."""
    centres = np.asarray(estimator.cluster_centers_, dtype=np.float64)
    mean = np.average(centres, axis=0, weights=sizes if sizes.sum() else None)
    spread = np.average((centres - mean) ** 2, axis=0, weights=sizes if sizes.sum() else None)
    features = np.sort(np.argsort(-spread, kind="stable")[:_MOST_FEATURES])
    clusters = np.argsort(-sizes, kind="stable")[:_MOST_CLUSTERS]
    known = getattr(estimator, "feature_names_in_", None)
    names = [str(known[j]) if known is not None else f"feature {j}" for j in features]
    rows = [f"cluster {k}" for k in clusters]
    said = "How far each centre lies above (blue) or below (red) the mean of all rows"
    said += f", in the {len(names)} features in which centres differ most." if centres.shape[1] > len(names) else "."
    values = (centres - mean)[np.ix_(clusters, features)]
    return together(note(said), heat_table(rows, names, values))

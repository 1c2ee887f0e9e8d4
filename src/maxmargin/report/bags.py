"""The content of a classifier of bags: classes, which instance decided, and by how much."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import numbers
from .answers import confusion
from .content import LAST_BOUND, LATENT, ReportContent
from .curves import search
from .markup import Markup, bars, element, facts, note, table, together
from .tallies import Classes, positions
from .weights import weights

_MOST_PLACES = 20
_MOST_BAGS = 12


def content(estimator: Any, bags: Any, y: Any, on: str) -> ReportContent:
    """Of a fitted LatentSVC. ``bags`` is None, or bags with ``sizes`` that can be read one by one."""
    told = ReportContent("Bags", history=search(estimator.history_, estimator.bound_tol, "instances"))
    told.subject, told.about = LAST_BOUND, LATENT
    told.tiles += [
        ("objective", numbers.number(estimator.objective_)), ("bounds", numbers.count(estimator.n_bounds_)),
        ("classes", numbers.count(estimator.classes_.size)), ("features", numbers.count(estimator.n_features_in_)),
    ]  # fmt: skip
    if estimator.positive_ is not None:
        told.tiles.append(("one instance is enough for", numbers.label(estimator.positive_)))
    if bags is not None:
        _compare(estimator, bags, np.asarray(y), on, told)
    told.sections.append(("Heaviest weights", weights(estimator)))
    told.hint = "With bags and their labels there are answers and the instances that decided: model.report(path, X, y)"
    return told


def _compare(estimator: Any, bags: Any, y: np.ndarray, on: str, told: ReportContent) -> None:
    scores, best = estimator._looked(bags)
    two = scores.shape[1] == 1
    answer = estimator._answers(scores)
    column = np.zeros(len(answer), np.int64) if two else answer
    instance = best[np.arange(len(best)), column]
    tally = Classes(estimator.classes_)
    tally.compare(positions(estimator.classes_, y), answer, y)
    if tally.score is not None:
        told.tiles.insert(0, (f"accuracy on {on}", numbers.share(tally.score)))
    sizes = np.asarray(bags.sizes)
    told.sections += [
        (f"Answers on {on}", confusion(tally, "bags")),
        (
            "Which instance decided",
            together(_places(instance), _deciders(estimator, bags, y, scores, answer, instance)),
        ),
    ]
    told.facts = facts(
        ("bags", numbers.count(len(sizes))),
        ("instances", numbers.count(sizes.sum())),
        ("instances per bag", f"{sizes.mean():.1f}, from {sizes.min()} to {sizes.max()}"),
    )


def _places(instance: np.ndarray) -> Markup:
    place, n = np.unique(instance, return_counts=True)
    order = np.argsort(-n, kind="stable")[:_MOST_PLACES] if place.size > _MOST_PLACES else np.arange(place.size)
    entries = [(f"instance {place[k]}", int(n[k]), numbers.counted(n[k], "bags")) for k in order]
    remark = "How often the instance at each place of its bag had the highest score. Places are counted from 0"
    remark += f"; the {_MOST_PLACES} most frequent are shown." if place.size > _MOST_PLACES else "."
    return together(note(remark), bars(entries))


def _deciders(
    estimator: Any, bags: Any, y: np.ndarray, scores: np.ndarray, answer: np.ndarray, instance: np.ndarray
) -> Markup:
    """Bags with the score of the instance that decided: the wrong ones first, the closest of the others then."""
    classes = estimator.classes_
    two = scores.shape[1] == 1
    if two:
        margin = np.abs(scores[:, 0])
    else:
        ordered = np.sort(scores, axis=1)
        margin = ordered[:, -1] - ordered[:, -2]
    right = positions(classes, y) == answer
    order = np.lexsort((margin, right))[:_MOST_BAGS]
    rows = [
        [
            str(i), numbers.count(bags.sizes[i]), numbers.label(y[i]),
            _mark(numbers.label(classes[answer[i]]), bool(right[i])), str(instance[i]),
            numbers.number(float(scores[i, 0 if two else answer[i]])), numbers.number(float(margin[i])),
        ]
        for i in order
    ]  # fmt: skip
    head = ["bag", "instances", "truth", "answer", "decided by", "its score", "margin"]
    title = "Wrong answers first, then those that were closest"
    return element("details", element("summary", title), table(head, rows, "numbers"), open="")


def _mark(text: str, right: bool) -> Any:
    return text if right else element("b", text, class_="off")

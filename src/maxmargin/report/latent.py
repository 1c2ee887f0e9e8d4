"""The content of models with latent variables: bounds, states that were kept, latent values; and of bags."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from . import numbers
from .answers import confusion
from .content import LAST_BOUND, LATENT, Data, ReportContent
from .curves import search
from .linear import weights
from .markup import Markup, bars, count_bars, element, facts, note, table, together
from .structural import Answers, compare
from .tallies import Classes, positions

if TYPE_CHECKING:
    from ..data.bags import Bags
    from ..estimators.bags import LatentSVC
    from ..estimators.latent import LatentStructuralSVM

_MOST_VALUES = 30
_MOST_STATES = 60
_MOST_BAGS = 12
_SHORT = 4  # tuples up to this long are one value; longer ones, such as a part for each region, are many


def content(estimator: LatentStructuralSVM, data: Data) -> ReportContent:
    """Of a fitted LatentStructuralSVM."""
    told = ReportContent("Latent variables", history=search(estimator.history_, estimator.bound_tol))
    told.subject, told.about = LAST_BOUND, LATENT
    objective = numbers.number(estimator.objective_)
    told.tiles.update(objective=objective, bounds=estimator.n_bounds_, weights=estimator.coef_.size)
    if data.given:
        answers, latent = Answers(), []
        for X, Y in data.pairs():
            for x, y, answer in zip(X, Y, estimator._answers(X), strict=True):
                answers.add(x, y, answer[0], estimator.model_.loss(y, answer))  # may be for the latent value, too
                latent.append(answer[1])
        compare(told, data.name, answers)
        told.sections.append((f"Latent values of the answers on {data.name}", chosen_values(latent)))
    told.sections += [
        ("States that were kept", _states(estimator)),
        ("Latent values in training", chosen_values(estimator.latent_)),
    ]
    return told


def chosen_values(latent: Any) -> Markup | None:
    """How often each latent value was chosen: all those of an example where it has many."""
    counts: Counter[str] = Counter()
    for z in latent:
        if isinstance(z, tuple) and len(z) <= _SHORT:
            counts[f"({', '.join(map(str, z))})"] += 1
        else:
            counts.update(map(str, np.ravel(np.asarray(z)).tolist()))
    if not counts:
        return None
    more = f"The {_MOST_VALUES} most frequent of {len(counts)} values." if len(counts) > _MOST_VALUES else None
    entries = [(f"value {value}", n) for value, n in counts.most_common(_MOST_VALUES)]
    return together(count_bars(entries, counts.total()), note(more))


def _states(estimator: LatentStructuralSVM) -> Markup | None:
    """Groups of weights that the model declares: which are zero, and how large the others are."""
    model = estimator.model_
    groups = getattr(model, "groups", None)
    if not groups or len(groups) < 2:
        return None
    names = getattr(model, "states", None) or list(range(len(groups)))
    size = np.array([float(np.linalg.norm(estimator.coef_[group])) for group in groups])
    kept = int(np.count_nonzero(size))
    said = f"{numbers.count(kept)} of {numbers.count(size.size)} states have weights that are not all zero."
    order = np.argsort(-size, kind="stable")[: min(_MOST_STATES, kept)]
    entries = [(f"state {names[k]}", float(size[k]), numbers.number(size[k])) for k in order]
    remark = f"The length of the weights of each, the longest first, {_MOST_STATES} at most."
    return together(element("p", said), bars(entries), note(remark))


def bag_content(estimator: LatentSVC, bags: Bags | None, y: np.ndarray | None, on: str) -> ReportContent:
    """Of a fitted LatentSVC. ``bags`` is None, or bags with ``sizes`` that can be read one by one."""
    told = ReportContent("Bags", history=search(estimator.history_, estimator.bound_tol, "instances"))
    told.subject, told.about = LAST_BOUND, LATENT
    told.tiles.update(objective=numbers.number(estimator.objective_), bounds=estimator.n_bounds_)
    told.tiles.update(classes=estimator.classes_.size, features=estimator.n_features_in_)
    if estimator.positive_ is not None:
        told.tiles["one instance is enough for"] = numbers.label(estimator.positive_)
    if bags is not None:
        _compare_bags(estimator, bags, np.asarray(y), on, told)
    told.sections.append(("Heaviest weights", weights(estimator)))
    return told


def _compare_bags(estimator: LatentSVC, bags: Bags, y: np.ndarray, on: str, told: ReportContent) -> None:
    """Answers, and bags with the instance that decided: the wrong ones first, the closest of the others then."""
    scores, best = estimator._looked(bags)
    answer, classes = estimator._answers(scores), estimator.classes_
    two = scores.shape[1] == 1
    at = np.arange(len(answer)), np.zeros(len(answer), np.int64) if two else answer
    decided, score = best[at], scores[at]
    margin = np.abs(score) if two else np.diff(np.sort(scores, axis=1)[:, -2:], axis=1)[:, 0]
    truth, sizes = positions(classes, y), np.asarray(bags.sizes)
    tally = Classes(classes)
    tally.compare(truth, answer, y)
    if tally.score is not None:
        told.results[f"accuracy on {on}"] = numbers.share(tally.score)
    rows = [
        [
            str(i), numbers.count(sizes[i]), numbers.label(y[i]),
            element("b", numbers.label(classes[answer[i]]), class_=None if truth[i] == answer[i] else "off"),
            str(decided[i]), numbers.number(float(score[i])), numbers.number(float(margin[i])),
        ]
        for i in np.lexsort((margin, truth == answer))[:_MOST_BAGS]
    ]  # fmt: skip
    head = ["bag", "instances", "truth", "answer", "decided by", "its score", "margin"]
    lead = "Wrong answers first, then those that were closest. Instances are counted from 0 in their bags."
    told.sections += [
        (f"Answers on {on}", confusion(tally, "bags")),
        ("Which instance decided", together(note(lead), table(head, rows, "numbers"))),
    ]
    told.facts = facts(
        ("bags", len(sizes)),
        ("instances", sizes.sum()),
        ("instances per bag", f"{sizes.mean():.1f}, from {sizes.min()} to {sizes.max()}"),
    )

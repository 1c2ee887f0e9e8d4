"""The contents of searches over latent variables: bounds, states that were kept, values that were chosen; and bags."""

from __future__ import annotations

import numbers as kinds
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
_MOST_PLACES = 20
_MOST_BAGS = 12
_SHORT = 4  # tuples up to this long are one value; longer ones, such as a part for each region, are many


def content(estimator: LatentStructuralSVM, data: Data) -> ReportContent:
    """Of a fitted LatentStructuralSVM."""
    told = ReportContent("Latent variables", history=search(estimator.history_, estimator.bound_tol))
    told.subject, told.about = LAST_BOUND, LATENT
    told.tiles += [
        ("objective", numbers.number(estimator.objective_)), ("bounds", numbers.count(estimator.n_bounds_)),
        ("weights", numbers.count(estimator.coef_.size)),
    ]  # fmt: skip
    if data.given:
        answers, latent = Answers(), []
        for X, Y in data.pairs():
            for y, answer in zip(Y, estimator._answers(X), strict=True):
                answers.add(y, answer[0], estimator.model_.loss(y, answer))  # may be for the latent value, too
                latent.append(answer[1])
        compare(told, data.name, answers)
        told.sections.append((f"Latent values of the answers on {data.name}", chosen_values(latent)))
    told.sections += [
        ("States that were kept", _states(estimator)),
        ("Latent values in training", chosen_values(estimator.latent_)),
    ]
    told.hint = "With inputs and labels there are answers beside labels, too: model.report(path, X, Y)"
    return told


def chosen_values(latent: Any) -> Markup | None:
    """How often each latent value was chosen, where they are whole numbers or short tuples of them."""
    if len(latent) == 0:
        return None
    counts = _counted(latent)
    if counts is None:
        return element("p", f"{numbers.count(len(latent))} latent values, which are no numbers to count.")
    listed = sorted(counts.items()) if len(counts) <= _MOST_VALUES else counts.most_common(_MOST_VALUES)
    entries = [(f"value {value}", n) for value, n in listed]
    more = f"The {_MOST_VALUES} most frequent of {len(counts)} values." if len(counts) > _MOST_VALUES else None
    return together(count_bars(entries, counts.total()), note(more))


def _counted(latent: Any) -> Counter[Any] | None:
    """How often each latent value occurs: all those of an example where it has many. None if they are no numbers."""
    if isinstance(latent, list) and all(isinstance(z, tuple) and len(z) <= _SHORT for z in latent):
        try:
            counts = Counter(tuple(part.item() if isinstance(part, np.generic) else part for part in z) for z in latent)
            return Counter({value: counts[value] for value in sorted(counts)})
        except (TypeError, ValueError):  # made of what cannot be put in order
            return None
    try:
        values = np.ravel(np.asarray(latent))
    except ValueError:  # of different lengths
        values = np.concatenate([np.ravel(np.asarray(one)) for one in latent])
    return Counter(values.tolist()) if values.dtype.kind in "iu" else None


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
    order = np.argsort(-size, kind="stable")[: min(_MOST_STATES, max(kept, 1))]
    entries = [(_state(names[k]), float(size[k]), numbers.number(size[k])) for k in order if size[k] > 0.0]
    remark = "The length of the weights of each, the longest first."
    if kept > len(entries):
        remark += f" The first {len(entries)} are shown."
    return together(element("p", said), bars(entries), note(remark))


def _state(name: Any) -> str:
    """A state in words; pairs are those of bags: class and instance."""
    if isinstance(name, tuple) and len(name) == 2:
        return f"class {name[0]}, instance {name[1]}"
    return f"state {name}" if isinstance(name, kinds.Integral) else str(name)


def bag_content(estimator: LatentSVC, bags: Bags | None, y: np.ndarray | None, on: str) -> ReportContent:
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
        _compare_bags(estimator, bags, np.asarray(y), on, told)
    told.sections.append(("Heaviest weights", weights(estimator)))
    told.hint = "With bags and their labels there are answers and the instances that decided: model.report(path, X, y)"
    return told


def _compare_bags(estimator: LatentSVC, bags: Bags, y: np.ndarray, on: str, told: ReportContent) -> None:
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
    estimator: LatentSVC, bags: Bags, y: np.ndarray, scores: np.ndarray, answer: np.ndarray, instance: np.ndarray
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


def _mark(text: str, right: bool) -> Markup | str:
    return text if right else element("b", text, class_="off")

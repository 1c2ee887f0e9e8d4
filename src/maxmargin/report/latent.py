"""The content of a search over latent variables: bounds, the states that were kept, and the values that were chosen."""

from __future__ import annotations

import numbers as kinds
from collections import Counter
from typing import Any

import numpy as np

from . import numbers
from .content import LAST_BOUND, LATENT, Data, ReportContent
from .curves import search
from .markup import Markup, bars, element, note, together
from .structural import Answers, compare

_MOST_VALUES = 30
_MOST_STATES = 60
_SHORT = 4  # tuples up to this long are one value; longer ones, such as a part for each region, are many


def content(estimator: Any, data: Data) -> ReportContent:
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
    total = sum(counts.values())
    listed = sorted(counts.items()) if len(counts) <= _MOST_VALUES else counts.most_common(_MOST_VALUES)
    entries = [(f"value {value}", n, f"{numbers.count(n)} ({numbers.share(n / total)})") for value, n in listed]
    more = f"The {_MOST_VALUES} most frequent of {len(counts)} values." if len(counts) > _MOST_VALUES else None
    return together(bars(entries), note(more))


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


def _states(estimator: Any) -> Markup | None:
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

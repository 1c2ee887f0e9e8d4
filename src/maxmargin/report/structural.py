"""The story of a structural SVM with any model: losses of its answers, the worst of them, and their labels."""

from __future__ import annotations

import numbers as kinds
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import numbers
from .answers import confusion
from .bars import bars
from .charts import histogram
from .convergence import convergence
from .heat import MOST, heat_table
from .markup import Markup, element, table, together
from .story import Data, Story
from .tallies import Classes

_MOST_WORST = 10
_MOST_BARS = 12
_MOST_TEXT = 160


def story(estimator: Any, data: Data) -> Story:
    """Of a fitted StructuralSVM."""
    told = Story(type(estimator).__name__, history=convergence(estimator.history_, estimator.tol))
    told.tiles += [("weights", numbers.count(estimator.coef_.size)), ("model", type(estimator.model_).__name__)]
    if data.given:
        truths, answers, losses = answered(estimator, data)
        compare(told, data.name, truths, answers, losses)
    told.sections.append(("Neighbouring labels", _transitions(estimator)))
    told.hint = "With inputs and answers there are losses and the worst answers, too: model.report(path, X, Y)"
    return told


def answered(estimator: Any, data: Data) -> tuple[list[Any], list[Any], np.ndarray]:
    """True answers, those of the model, and what each of them costs."""
    truths: list[Any] = []
    answers: list[Any] = []
    for X, Y in data.pairs():
        truths += list(Y)
        answers += list(estimator.predict(X))
    losses = [estimator.model_.loss(y, z) for y, z in zip(truths, answers, strict=True)]
    return truths, answers, np.array(losses, dtype=np.float64)


def compare(told: Story, on: str, truths: Sequence[Any], answers: Sequence[Any], losses: np.ndarray) -> None:
    """Tiles and sections on losses, on labels where answers are made of them, and on the worst answers."""
    perfect = float(np.mean(losses == 0.0)) if losses.size else 0.0
    told.tiles[:0] = [
        (f"mean loss on {on}", numbers.number(float(losses.mean())) if losses.size else "–"),
        ("answers without loss", numbers.share(perfect)),
    ]
    tally = label_tally(truths, answers)
    what = "labels" if np.ndim(truths[0]) else "examples"
    told.sections += [
        (f"Loss of the answers on {on}", loss_histogram(losses)),
        ("Which label was taken for which", confusion(tally, what) if tally is not None else None),
        ("The worst answers", _worst(truths, answers, losses)),
    ]
    told.facts = table([], [["examples", numbers.count(len(truths))]], "facts")


def loss_histogram(losses: np.ndarray) -> Markup | None:
    """How many answers cost how much."""
    if not losses.size:
        return None
    top = float(losses.max())
    said = f"{numbers.count((losses == 0).sum())} of {numbers.count(losses.size)} answers are without loss"
    said += "." if top == 0.0 else f"; the largest loss is {numbers.number(top)}."
    if top == 0.0:
        return element("p", said)
    value, n = np.unique(losses, return_counts=True)
    if value.size <= _MOST_BARS:
        entries = [
            (f"loss {numbers.number(v)}", int(k), numbers.counted(k, "answers")) for v, k in zip(value, n, strict=True)
        ]
        return together(element("p", said), bars(entries))
    edges = np.linspace(0.0, top, 21)
    heights = np.histogram(losses, edges)[0]
    chart = histogram(edges, heights, title="Losses", x_label="loss", y_label="answers", what="answers")
    return together(element("p", said), element("figure", chart, class_="single"))


def label_tally(truths: Sequence[Any], answers: Sequence[Any]) -> Classes | None:
    """Counts of labels, where answers are a label each, or arrays of labels as long as the truth; None otherwise."""
    pairs: list[tuple[list[Any], list[Any]]] = []
    for y, z in zip(truths, answers, strict=True):
        true_labels, answered_labels = _labels(y), _labels(z)
        if true_labels is None or answered_labels is None or len(true_labels) != len(answered_labels):
            return None
        pairs.append((true_labels, answered_labels))
    true, found = ([label for side in pairs for label in side[k]] for k in (0, 1))
    try:
        known = sorted(set(true) | set(found))
    except TypeError:
        return None
    number = {label: k for k, label in enumerate(known)}
    tally = Classes(np.array(known))
    a, b = (np.array([number[label] for label in side], np.int64) for side in (true, found))
    tally.compare(a, b, true)
    return tally


def _labels(y: Any) -> list[Any] | None:
    """An answer as labels: whole numbers or text, one or many."""
    if isinstance(y, str | kinds.Integral):
        return [y.item() if isinstance(y, np.generic) else y]
    if isinstance(y, np.ndarray | list | tuple):
        flat = np.ravel(np.asarray(y)).tolist() if isinstance(y, np.ndarray) else list(y)
        return flat if all(isinstance(v, str | kinds.Integral) for v in flat) else None
    return None


def _worst(truths: Sequence[Any], answers: Sequence[Any], losses: np.ndarray) -> Markup | None:
    order = [i for i in np.argsort(-losses, kind="stable")[:_MOST_WORST] if losses[i] > 0.0]
    if not order:
        return None
    rows = [[str(i), numbers.number(float(losses[i])), _text(truths[i]), _text(answers[i])] for i in order]
    return table(["example", "loss", "truth", "answer"], rows, "worst")


def _text(value: Any) -> Markup:
    """An answer in a few words."""
    text = " ".join(str(value.tolist() if isinstance(value, np.ndarray) else value).split())
    return element("code", text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 2] + " …")


def _transitions(estimator: Any) -> Markup | None:
    """Of models that are chains."""
    model = estimator.model_
    if not hasattr(model, "transition_table"):
        return None
    values = np.asarray(model.transition_table(estimator.coef_))
    if len(values) > MOST:
        return None
    names = [str(k) for k in range(len(values))]
    return heat_table(names, names, values, "from ↓ to →", dark=getattr(model, "forbidden", None))

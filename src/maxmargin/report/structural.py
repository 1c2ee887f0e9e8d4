"""The content of a structural SVM with any model: losses of its answers, the worst of them, and their labels."""

from __future__ import annotations

import numbers as kinds
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from . import numbers
from .answers import confusion
from .charts import histogram
from .content import Data, ReportContent
from .curves import convergence
from .markup import MOST, Markup, bars, element, facts, heat_table, table, together
from .tallies import Classes

if TYPE_CHECKING:
    from ..estimators.structured import StructuralSVM

_MOST_WORST = 10
_MOST_BARS = 12
_MOST_TEXT = 160


def content(estimator: StructuralSVM, data: Data) -> ReportContent:
    """Of a fitted StructuralSVM."""
    told = ReportContent(type(estimator).__name__, history=convergence(estimator.history_, estimator.tol))
    told.tiles += [("weights", numbers.count(estimator.coef_.size)), ("model", type(estimator.model_).__name__)]
    if data.given:
        answers = Answers()
        for X, Y in data.pairs():
            for y, z in zip(Y, estimator.predict(X), strict=True):
                answers.add(y, z, estimator.model_.loss(y, z))
        compare(told, data.name, answers)
    told.sections.append(("Neighbouring labels", _transitions(estimator)))
    told.hint = "With inputs and answers there are losses and the worst answers, too: model.report(path, X, Y)"
    return told


class Answers:
    """Answers beside the truth, added up one by one: of all that was answered, only losses and the worst are kept."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.worst: list[tuple[float, int, str, str]] = []
        """Loss, number of the example, truth and answer, the worst first."""
        self.many = False
        """Whether an answer has many labels, as sequences do, or is one."""
        self._pairs: Counter[tuple[Any, Any]] | None = Counter()

    def add(self, truth: Any, answer: Any, loss: float) -> None:
        i, loss = len(self.losses), float(loss)
        self.losses.append(loss)
        self.many |= not isinstance(truth, str) and hasattr(truth, "__len__")
        if loss > 0.0 and (len(self.worst) < _MOST_WORST or loss > self.worst[-1][0]):
            self.worst.append((loss, i, _text(truth), _text(answer)))
            self.worst.sort(key=lambda entry: (-entry[0], entry[1]))
            del self.worst[_MOST_WORST:]
        if self._pairs is not None:
            true, found = _labels(truth), _labels(answer)
            if true is None or found is None or len(true) != len(found):
                self._pairs = None
            else:
                self._pairs.update(zip(true, found, strict=True))

    def tally(self) -> Classes | None:
        """Counts of labels, where answers are a label each, or as many labels as the truth has; None otherwise."""
        if not self._pairs:
            return None
        try:
            known = sorted({label for pair in self._pairs for label in pair})
        except TypeError:
            return None
        number = {label: k for k, label in enumerate(known)}
        tally = Classes(np.array(known))
        tally.pairs.update({(number[a], number[b]): n for (a, b), n in self._pairs.items()})
        tally.rows = self._pairs.total()
        return tally


def compare(told: ReportContent, on: str, answers: Answers) -> None:
    """Tiles and sections on losses, on labels where answers are made of them, and on the worst answers."""
    losses = np.array(answers.losses)
    perfect = float(np.mean(losses == 0.0)) if losses.size else 0.0
    told.tiles[:0] = [
        (f"mean loss on {on}", numbers.number(float(losses.mean())) if losses.size else "–"),
        ("answers without loss", numbers.share(perfect)),
    ]
    tally = answers.tally()
    told.sections += [
        (f"Loss of the answers on {on}", loss_histogram(losses)),
        (
            "Which label was taken for which",
            confusion(tally, "labels" if answers.many else "examples") if tally is not None else None,
        ),
        ("The worst answers", _worst(answers.worst)),
    ]
    told.facts = facts(("examples", numbers.count(losses.size)))


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


def _labels(y: Any) -> list[Any] | None:
    """An answer as labels: whole numbers or text, one or many."""
    if isinstance(y, str | kinds.Integral):
        return [y.item() if isinstance(y, np.generic) else y]
    if isinstance(y, np.ndarray | list | tuple):
        flat = np.ravel(np.asarray(y)).tolist() if isinstance(y, np.ndarray) else list(y)
        return flat if all(isinstance(v, str | kinds.Integral) for v in flat) else None
    return None


def _worst(worst: list[tuple[float, int, str, str]]) -> Markup | None:
    if not worst:
        return None
    rows = [
        [str(i), numbers.number(loss), element("code", truth), element("code", answer)]
        for loss, i, truth, answer in worst
    ]
    return table(["example", "loss", "truth", "answer"], rows, "worst")


def _text(value: Any) -> str:
    """An answer in a few words."""
    text = " ".join(str(value.tolist() if isinstance(value, np.ndarray) else value).split())
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 2] + " …"


def _transitions(estimator: StructuralSVM) -> Markup | None:
    """Of models that are chains."""
    model = estimator.model_
    if not hasattr(model, "transition_table"):
        return None
    values = np.asarray(model.transition_table(estimator.coef_))
    if len(values) > MOST:
        return None
    names = [str(k) for k in range(len(values))]
    return heat_table(names, names, values, "from ↓ to →", dark=getattr(model, "forbidden", None))

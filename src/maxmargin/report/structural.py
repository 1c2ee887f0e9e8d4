"""The content of a structural SVM with any model: losses of its answers, the worst of them, and their labels."""

from __future__ import annotations

import numbers as kinds
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import numbers
from .answers import confusion
from .charts import histogram
from .content import Data, ReportContent
from .curves import convergence
from .markup import MOST, Markup, element, heat_table, note, table, together
from .tallies import Classes

if TYPE_CHECKING:
    from ..estimators.structured import StructuralSVM

_MOST_WORST = 10
_MOST_TEXT = 160
_BINS = 20


class Worst(NamedTuple):
    """An answer that is not right."""

    loss: float
    number: int
    x: Any
    truth: Any
    answer: Any


def content(estimator: StructuralSVM, data: Data) -> ReportContent:
    """Of a fitted StructuralSVM."""
    model = estimator.model_
    told = ReportContent(type(estimator).__name__, history=convergence(estimator.history_, estimator.tol))
    told.tiles.update(weights=estimator.coef_.size, model=type(model).__name__)
    if data.given:
        answers = Answers()
        for X, Y in data.pairs():
            for x, y, z in zip(X, Y, estimator.predict(X), strict=True):
                labels = [model.tokens(x, answer) for answer in (y, z)] if hasattr(model, "tokens") else None
                answers.add(x, y, z, model.loss(y, z), labels)
        compare(told, data.name, answers)
    if hasattr(model, "transition_table"):
        values = np.asarray(model.transition_table(estimator.coef_))
        names = [str(k) for k in range(len(values))]
        told.sections.append(("Neighbouring labels", steps(names, values, getattr(model, "forbidden", None))))
        told.sections.append(("Three labels in a row", triples(names, model, estimator.coef_)))
    return told


class Answers:
    """Answers beside the truth, added up one by one: of all that was answered, only losses and the worst are kept."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.worst: list[Worst] = []
        self._pairs: Counter[tuple[Any, Any]] | None = Counter()

    def add(
        self, x: object, truth: object, answer: object, loss: float, labels: Sequence[object] | None = None
    ) -> None:
        """``labels`` are those of truth and answer, where these are no labels themselves."""
        if loss > 0.0:
            self.worst.append(Worst(float(loss), len(self.losses), x, truth, answer))
            self.worst.sort(key=lambda entry: (-entry.loss, entry.number))
            del self.worst[_MOST_WORST:]
        self.losses.append(float(loss))
        if self._pairs is not None:
            true, found = (_labels(side) for side in ((truth, answer) if labels is None else labels))
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


def compare(
    told: ReportContent, on: str, answers: Answers, shown: Callable[[Sequence[Worst]], Markup] | None = None
) -> None:
    """Tiles and sections on losses, on labels where answers are made of them, and on the worst answers."""
    losses = np.array(answers.losses)
    tally = answers.tally()
    told.results[f"mean loss on {on}"] = numbers.number(float(losses.mean())) if losses.size else "–"
    told.results["answers without loss"] = numbers.share(float(np.mean(losses == 0.0)) if losses.size else 0.0)
    if tally is not None and tally.score is not None:
        told.results["labels right"] = numbers.share(tally.score)
    told.sections += [
        (f"Loss of the answers on {on}", _losses(losses) if losses.size else None),
        ("Which label was taken for which", confusion(tally, "labels") if tally is not None else None),
        ("The worst answers", (shown or _worst)(answers.worst) if answers.worst else None),
    ]


def _losses(losses: np.ndarray) -> Markup:
    """How many answers cost how much."""
    said = f"{numbers.count((losses == 0).sum())} of {numbers.count(losses.size)} answers are without loss."
    top = float(losses.max())
    heights, edges = np.histogram(losses, _intervals(losses, top))
    return together(element("p", said), histogram(edges, heights, "loss", "answers") if top else None)


def _intervals(losses: np.ndarray, top: float) -> np.ndarray:
    """Equally wide; where losses are counts, of as many whole numbers each."""
    if (losses % 1.0).any():
        return np.linspace(0.0, top, _BINS + 1)
    width = np.ceil((top + 1.0) / _BINS)
    return np.arange(0.0, top + 1.0 + width, width)


def _labels(y: object) -> list[Any] | None:
    """An answer as labels: whole numbers or text, one or many."""
    if isinstance(y, str | kinds.Integral | np.ndarray | list | tuple):
        flat = y if isinstance(y, list | tuple) else np.ravel(np.asarray(y)).tolist()
        return list(flat) if all(isinstance(label, str | kinds.Integral) for label in flat) else None
    return None


def _worst(worst: Sequence[Worst]) -> Markup:
    rows = [
        [str(w.number), numbers.number(w.loss), element("code", _text(w.truth)), element("code", _text(w.answer))]
        for w in worst
    ]
    return table(["example", "loss", "truth", "answer"], rows, "worst")


def _text(value: object) -> str:
    """An answer in a few words."""
    text = " ".join(str(value.tolist() if isinstance(value, np.ndarray) else value).split())
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 2] + " …"


def steps(names: list[str], values: np.ndarray, forbidden: np.ndarray | None) -> Markup:
    """Weights of steps between labels; of many labels, those of the heaviest steps."""
    shown = values if forbidden is None else np.where(forbidden, np.nan, values)
    if len(names) <= MOST:
        remark = "Rows come first, columns next: the weight of a step from one label to the other."
        remark += "" if forbidden is None else " Empty cells are steps that no answer may take."
        return together(note(remark), heat_table(names, names, shown, "from ↓ to →"))
    known = np.isfinite(shown)
    return heaviest_pairs(names, np.argwhere(known), shown[known], ["from", "to", "weight"])


def triples(names: list[str], model: Any, w: np.ndarray) -> Markup | None:
    """The heaviest weights of three labels in a row, where a chain has such weights."""
    if getattr(model, "order", 1) == 1:
        return None
    values = model.triple_table(w)
    which = np.argwhere(np.ones(values.shape, bool))
    return heaviest_pairs(names, which, values.ravel(), ["first", "second", "third", "weight"])


def heaviest_pairs(names: list[str], pairs: np.ndarray, weights: np.ndarray, head: list[str]) -> Markup:
    """The pairs of labels (or more in a row) with the largest weights, where a picture of all would be too large."""
    order = np.argsort(-np.abs(weights), kind="stable")[: 2 * MOST]
    rows = [[*(names[label] for label in pairs[k]), numbers.number(float(weights[k]))] for k in order]
    return table(head, rows, "pairs")

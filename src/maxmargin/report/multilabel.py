"""The content of a model of several labels: how well each is found, and which labels go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import numbers
from .content import Data, ReportContent
from .curves import convergence
from .linear import by_class
from .markup import MOST, Markup, element, facts, heat_table, label_table, note, together
from .structural import heaviest_pairs

if TYPE_CHECKING:
    from ..estimators.multilabel import MultilabelSVM


def content(estimator: MultilabelSVM, data: Data) -> ReportContent:
    """Of a fitted MultilabelSVM."""
    n = estimator.classes_.size
    names = [f"label {k}" for k in range(n)]
    told = ReportContent("Several labels", history=convergence(estimator.history_, estimator.tol))
    if data.given:
        _compare(estimator, data, names, told)
    told.tiles = {"labels": n, "pairs with weights": len(estimator.edges_)}
    coef = estimator.label_coef_[:, :-1] if estimator.fit_intercept else estimator.label_coef_
    features = getattr(estimator, "feature_names_in_", None)
    told.sections += [
        ("Which labels go together", _attraction(estimator, names)),
        ("Heaviest features", by_class([f"for {name}" for name in names], coef, features)),
    ]
    return told


def _compare(estimator: MultilabelSVM, data: Data, names: list[str], told: ReportContent) -> None:
    present, found, right = (np.zeros(len(names), np.int64) for _ in range(3))
    rows = whole = 0
    for X, Y in data.pairs():
        truth, answer = np.asarray(Y) != 0, np.asarray(estimator.predict(X)) != 0
        present += truth.sum(axis=0)
        found += answer.sum(axis=0)
        right += (truth & answer).sum(axis=0)
        whole += int((truth == answer).all(axis=1).sum())
        rows += len(truth)
    wrong = int(present.sum() + found.sum() - 2 * right.sum())
    told.results[f"labels right on {data.name}"] = numbers.share(1.0 - wrong / max(rows * len(names), 1))
    told.results["rows with all labels right"] = numbers.share(whole / max(rows, 1))
    told.sections.append((f"Answers on {data.name}", label_table(names, present, found, right)))
    told.facts = facts(("rows", rows), ("labels per row", f"{present.sum() / max(rows, 1):.2f}"))


def _attraction(estimator: MultilabelSVM, names: list[str]) -> Markup:
    if not len(estimator.edges_):
        return element("p", 'Labels are independent: no pair of them has weights of its own (edges="none").')
    remark = (
        "What a row gains if two labels agree (both there, or neither) rather than differ: above zero they attract "
        "each other, below they exclude each other."
    )
    pair, edges = estimator.pair_coef_, estimator.edges_  # weights by the four combinations of two labels
    strength = pair[:, 0, 0] + pair[:, 1, 1] - pair[:, 0, 1] - pair[:, 1, 0]
    if len(names) > MOST:
        return together(note(remark), heaviest_pairs(names, edges, strength, ["label", "label", "attraction"]))
    values = np.full((len(names), len(names)), np.nan)
    for (a, b), value in zip(edges, strength, strict=True):
        values[a, b] = values[b, a] = value
    return together(note(remark), heat_table(names, [str(k) for k in range(len(names))], values))

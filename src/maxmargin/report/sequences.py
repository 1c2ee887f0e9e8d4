"""The content of a tagger: answers token by token, steps between labels, features, and where it was wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..data.attributes import word_of
from ..metrics import SegmentCounts, SegmentScores
from . import numbers
from .content import Data, ReportContent
from .curves import convergence
from .linear import by_class
from .markup import Markup, element, facts, note, table, together
from .structural import Answers, Worst, compare, steps, triples

if TYPE_CHECKING:
    from ..estimators.sequence import SequenceSVM

_MOST_TOKENS = 60


def content(estimator: SequenceSVM, data: Data) -> ReportContent:
    """Of a fitted SequenceSVM."""
    names, features = [numbers.label(c) for c in estimator.classes_], estimator.feature_names_
    told = ReportContent("Sequences", history=convergence(estimator.history_, estimator.tol))
    if data.given:
        _compare(estimator, data, told)
    told.tiles.update(labels=len(names), features=estimator.emissions_.shape[0])
    numbered = not features or isinstance(features[0], int)
    titles = [f"for {name}" for name in names]
    told.sections += [
        ("Which label follows which", steps(names, np.asarray(estimator.transitions_), estimator.model_.forbidden)),
        ("Three labels in a row", triples(names, estimator.model_, estimator.coef_)),
        ("Heaviest features", by_class(titles, estimator.emissions_.T, None if numbered else features)),
    ]
    return told


def _compare(estimator: SequenceSVM, data: Data, told: ReportContent) -> None:
    answers, lengths, segments = Answers(), [], SegmentCounts()
    for X, Y in data.pairs():
        truths, found = [y.tolist() if hasattr(y, "tolist") else list(y) for y in Y], estimator.predict(X).tolist()
        if estimator.segments is not None:
            segments.add(truths, found)
        for x, truth, answer in zip(X, truths, found, strict=True):
            lengths.append(len(truth))
            answers.add(x, truth, answer, sum(a != b for a, b in zip(truth, answer, strict=True)))
    compare(told, data.name, answers, _examples)
    if estimator.segments is not None:
        scores = segments.scores()
        told.results["F1 of segments"] = numbers.share(scores.micro.f1)
        told.sections.insert(0, (f"Segments on {data.name}", _segments(scores)))
    told.facts = facts(
        ("sequences", len(lengths)),
        ("tokens", sum(lengths)),
        ("tokens per sequence", f"{np.mean(lengths):.1f}, at most {max(lengths)}" if lengths else "–"),
    )


def _segments(scores: SegmentScores) -> Markup:
    """Precision, recall and F1 by type of segment and on average."""
    rows = [
        [name, numbers.count(score.support), *[numbers.share(part) for part in score[:3]]]
        for name, score in scores.rows()
    ]
    remark = (
        "A segment is right if its first and last token and its type are. The micro average counts all segments "
        "together, the macro average is the mean over types, the weighted one counts types by their true segments."
    )
    return together(note(remark), table(["segment", "true", "precision", "recall", "F1"], rows, "pairs by-label"))


def _examples(worst: Sequence[Worst]) -> Markup:
    shown = []
    for errors, i, x, truth, answer in worst:
        n = len(truth)
        first = max(0, next(t for t in range(n) if truth[t] != answer[t]) - 5)
        last = min(first + _MOST_TOKENS, n)
        words = x if isinstance(x, list | tuple) else [None] * n
        tokens = [_token(word_of(words[t]) or str(t + 1), truth[t], answer[t]) for t in range(first, last)]
        cut = element("span", "…", class_="token")
        tokens = [cut] * (first > 0) + tokens + [cut] * (last < n)
        title = f"sequence {i}: {errors:.0f} of {n} wrong"
        shown.append(element("div", element("h3", title), element("div", *tokens, class_="tokens")))
    remark = (
        "Under each token its label; where the answer was another, that is red, with the label that is true below it."
    )
    return together(note(remark), *shown)


def _token(word: str, true: object, answer: object) -> Markup:
    if true == answer:
        return element("span", element("b", word), element("i", numbers.label(answer)), class_="token")
    marks = element("i", numbers.label(answer), class_="wrong"), element("i", numbers.label(true), class_="true")
    remark = f"{word}: {numbers.label(answer)} instead of {numbers.label(true)}"
    return element("span", element("b", word), *marks, class_="token off", title=remark)

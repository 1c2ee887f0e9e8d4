"""The content of a tagger: answers token by token, steps between labels, features, and where it was wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import numbers
from .answers import confusion
from .content import Data, ReportContent
from .curves import convergence
from .linear import by_class
from .markup import MOST, Markup, element, facts, heat_table, label_table, note, table, together
from .tallies import Classes

if TYPE_CHECKING:
    from ..estimators.sequence import SequenceSVM

_MOST_EXAMPLES = 8
_MOST_TOKENS = 60
_WORDS = ("word", "token", "form", "text", "w")  # what people call the feature that is the token itself


def content(estimator: SequenceSVM, data: Data) -> ReportContent:
    """Of a fitted SequenceSVM."""
    names = [numbers.label(c) for c in estimator.classes_]
    told = ReportContent("Sequences", history=convergence(estimator.history_, estimator.tol))
    if data.given:
        _compare(estimator, data, names, told)
    told.tiles += [("labels", numbers.count(len(names))), ("features", numbers.count(estimator.emissions_.shape[0]))]
    told.sections += [
        ("Which label follows which", _transitions(estimator, names)),
        ("Heaviest features", by_class([f"for {name}" for name in names], estimator.emissions_.T, _names(estimator))),
    ]
    told.hint = "With sequences and their labels there are answers beside labels, too: model.report(path, X, Y)"
    return told


def _names(estimator: SequenceSVM) -> list[str] | None:
    """Names of features, None where they are numbers."""
    names = estimator.feature_names_
    return None if names and isinstance(names[0], int) else names


def _compare(estimator: SequenceSVM, data: Data, names: list[str], told: ReportContent) -> None:
    number = {label: k for k, label in enumerate(estimator.classes_.tolist())}
    tally = Classes(estimator.classes_)
    whole = sequences = 0
    wrong: list[tuple[int, int, list[str], list[Any], list[Any]]] = []
    lengths = []
    for X, Y in data.pairs():
        for x, y, answer in zip(X, Y, estimator.predict(X), strict=True):
            true = y.tolist() if hasattr(y, "tolist") else list(y)
            lengths.append(len(true))
            truth, found = (np.array([number.get(label, -1) for label in side], np.int64) for side in (true, answer))
            tally.compare(truth, found, true)
            errors = sum(a != b for a, b in zip(true, answer, strict=True))
            whole += errors == 0
            if errors:
                wrong.append((errors, sequences, _words(x, len(true)), true, answer))
                wrong.sort(key=lambda entry: (-entry[0], entry[1]))
                del wrong[_MOST_EXAMPLES:]
            sequences += 1
    counts = tally.matrix()
    if tally.score is not None:
        told.tiles.append((f"tokens right on {data.name}", numbers.share(tally.score)))
    told.tiles.append(("whole sequences right", numbers.share(whole / max(sequences, 1))))
    told.sections += [
        (f"Answers on {data.name}", confusion(tally, "tokens")),
        ("Label by label", label_table(names, counts.sum(axis=1), counts.sum(axis=0), np.diag(counts), "tokens")),
        ("Sequences with most mistakes", _examples(wrong) if wrong else None),
    ]
    told.facts = facts(
        ("sequences", numbers.count(sequences)),
        ("tokens", numbers.count(tally.rows)),
        ("tokens per sequence", f"{np.mean(lengths):.1f}, at most {max(lengths)}" if lengths else "–"),
    )


def _transitions(estimator: SequenceSVM, names: list[str]) -> Markup:
    values, forbidden = np.asarray(estimator.transitions_), estimator.model_.forbidden
    if len(names) <= MOST:
        remark = "Rows come first, columns next: the weight of a step from one label to the other."
        if forbidden is not None:
            remark += " Empty cells are steps that no answer may take."
        return together(note(remark), heat_table(names, names, values, "from ↓ to →", dark=forbidden))
    likely, unlikely = (
        table(
            ["from", "to", "weight"],
            [[numbers.label(a), numbers.label(b), numbers.number(w)] for a, b, w in estimator.top_transitions(n)],
            "pairs",
        )
        for n in (MOST, -MOST)
    )
    both = [element("div", element("h3", "likeliest"), likely), element("div", element("h3", "unlikeliest"), unlikely)]
    return element("div", *both, class_="panels")


def _words(x: Any, length: int) -> list[str]:
    """A word for each token: its own where it has one, its number otherwise."""
    if not isinstance(x, list | tuple):
        return [str(t + 1) for t in range(length)]
    return [_word(token, t) for t, token in enumerate(x)]


def _word(token: Any, t: int) -> str:
    if isinstance(token, str):
        return token
    if isinstance(token, dict):
        for key in _WORDS:
            if isinstance(token.get(key), str):
                return token[key]
        return next((value for value in token.values() if isinstance(value, str)), str(t + 1))
    if isinstance(token, list | tuple):
        return next((name for name in token if isinstance(name, str)), str(t + 1))
    return str(t + 1)


def _examples(wrong: Iterable[tuple[int, int, list[str], list[Any], list[Any]]]) -> Markup:
    shown = []
    for errors, i, words, true, answer in wrong:
        first = max(0, next(t for t in range(len(true)) if true[t] != answer[t]) - 5)
        cut = slice(first, first + _MOST_TOKENS)
        tokens = [_token(word, a, b) for word, a, b in zip(words[cut], true[cut], answer[cut], strict=True)]
        before = [element("span", "…", class_="token")] if first else []
        after = [element("span", "…", class_="token")] if len(true) > first + _MOST_TOKENS else []
        title = f"sequence {i}: {errors} of {len(true)} wrong"
        shown.append(element("div", element("h3", title), element("div", *before, *tokens, *after, class_="tokens")))
    remark = (
        "Under each token its label; where the answer was another, that is red, with the label that is true below it."
    )
    return together(note(remark), *shown)


def _token(word: str, true: Any, answer: Any) -> Markup:
    if true == answer:
        return element("span", element("b", word), element("i", numbers.label(answer)), class_="token")
    marks = element("i", numbers.label(answer), class_="wrong"), element("i", numbers.label(true), class_="true")
    remark = f"{word}: {numbers.label(answer)} instead of {numbers.label(true)}"
    return element("span", element("b", word), *marks, class_="token off", title=remark)

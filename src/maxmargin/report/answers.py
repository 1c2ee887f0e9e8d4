"""The section that compares answers with labels: confusions, residuals, or pairs in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import numbers
from .charts import histogram
from .markup import Markup, element, facts, note, table, together
from .tallies import Classes, Order, Residuals

# A matrix with more classes than this is no longer readable, and on a phone not even visible.
_MOST_IN_MATRIX = 15
_MOST_PAIRS = 15
_MOST_BINS = 41


def answers(task: str, tally: Any) -> Markup:
    """What the tally of this task found, in the form that suits it."""
    sections: dict[str, Callable[[Any], Markup]] = {"classify": confusion, "regress": _residuals, "rank": _order}
    return sections[task](tally)


def confusion(tally: Classes, what: str = "rows") -> Markup:
    """Which class was taken for which; ``what`` has a class: rows, tokens, bags, images."""
    names = [numbers.label(c) for c in tally.classes]
    right = sum(n for (truth, answer), n in tally.pairs.items() if truth == answer)
    found = f"{numbers.count(right)} of {numbers.count(tally.rows)} {what} have the right answer"
    if tally.score is None:
        found = "None of the labels was in the training data: there is nothing to compare the answers with"
        if tally.first_unseen:
            known = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
            found += f". The first is {numbers.label(tally.first_unseen[0])}, where the model knows {known}"
    parts: list[Any] = [element("p", found + ".")]
    if tally.unseen and tally.first_unseen and tally.score is not None:
        value, row = tally.first_unseen
        parts.append(
            note(
                f"{numbers.count(tally.unseen)} {what} have a label that was not in the training data (the first is "
                f"{numbers.label(value)} in {what.removesuffix('s')} {numbers.count(row + 1)}). They count as wrong."
            )
        )
    if tally.pairs:
        parts.append(_matrix(tally, names) if len(names) <= _MOST_IN_MATRIX else None)
        parts.append(_most_confused(tally, names, what) if len(names) > 2 else None)
    return together(*parts)


def _matrix(tally: Classes, names: list[str]) -> Markup:
    """Counts, with the share of the true class behind them as colour."""
    counts = tally.matrix()
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    head = ["", *names, "right"]
    rows = []
    for i, name in enumerate(names):
        cells: list[Any] = [element("th", name, scope="row")]
        for j in range(len(names)):
            kind = "right" if i == j else "wrong"
            # Mistakes are few where a model is good: their colour is spread so that they are seen at all.
            depth = shares[i, j] if i == j else min(1.0, 4.0 * shares[i, j])
            remark = f"{name} taken for {names[j]}: {numbers.count(counts[i, j])}, {numbers.share(shares[i, j])}"
            text = numbers.count(counts[i, j]) if counts[i, j] else "·"
            cells.append(element("td", text, class_=kind, style=f"--depth:{100 * depth:.0f}%", title=remark))
        cells.append(numbers.share(shares[i, i]) if counts[i].any() else "–")
        rows.append(cells)
    caption = "Rows are the true classes, columns the answers; the depth of colour is a share of the row."
    return together(note(caption), table(head, rows, "confusion"))


def _most_confused(tally: Classes, names: list[str], what: str) -> Markup | None:
    wrong = tally.confused()
    if not wrong:
        return None
    totals = tally.matrix().sum(axis=1)
    rows = [
        [names[truth], names[answer], numbers.count(n), numbers.share(n / totals[truth])]
        for truth, answer, n in wrong[:_MOST_PAIRS]
    ]
    listed = table(["truth", "answer", what, "share of the truth"], rows, "pairs")
    title = element("h3", "Most frequent mistakes")
    if len(names) > _MOST_IN_MATRIX:
        return together(title, listed)
    return element("details", element("summary", "Most frequent mistakes"), listed)


def _residuals(tally: Residuals) -> Markup:
    if not tally.rows:
        return element("p", "There are no labels to compare the answers with.")
    known = facts(
        ("R²", numbers.number(tally.score) if tally.score is not None else "not defined: all labels are the same"),
        ("mean absolute error", numbers.number(tally.mean_absolute)),
        ("rows", numbers.count(tally.rows)),
    )
    edges, heights, beyond = _bars(tally)
    caption = "How far the labels lie above (right) or below (left) the answers."
    if beyond:
        caption += f" {numbers.counted(beyond, 'rows')} {'lies' if beyond == 1 else 'lie'} outside this picture."
    chart = histogram(edges, heights, title="Residuals", x_label="label − answer", y_label="rows")
    return together(known, element("figure", chart, element("figcaption", caption), class_="single"))


def _bars(tally: Residuals) -> tuple[np.ndarray, np.ndarray, int]:
    """The histogram around zero that holds 99 % of the rows, in few enough bars: (edges, heights, rows outside)."""
    n_bins = tally.histogram.size
    half = tally.half_width or 1.0
    middle = n_bins // 2
    folded = tally.histogram[middle:] + tally.histogram[:middle][::-1]
    reach = int(np.searchsorted(np.cumsum(folded), 0.99 * tally.rows)) + 1
    per_bar = -(-2 * reach // _MOST_BINS)
    bars = min(-(-reach // per_bar), middle // per_bar)
    kept = tally.histogram[middle - bars * per_bar : middle + bars * per_bar]
    heights = kept.reshape(-1, per_bar).sum(axis=1)
    edges = np.linspace(-1.0, 1.0, heights.size + 1) * bars * per_bar * (2.0 * half / n_bins)
    return edges, heights, tally.rows - int(heights.sum())


def _order(tally: Order) -> Markup:
    if tally.score is None:
        return element("p", "No two rows of one group have different grades: there is no order to judge.")
    return together(
        element(
            "p",
            f"Of {numbers.count(tally.pairs)} pairs of rows with different grades in {numbers.count(tally.groups)} "
            f"groups, {numbers.share(tally.score)} are in the right order (ties count half; chance gives 50 %).",
        ),
        element("div", element("i", style=f"width:{100 * tally.score:.2f}%"), class_="meter"),
    )

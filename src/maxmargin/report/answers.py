"""The section that compares answers with labels: confusions, residuals, or pairs in order."""

from __future__ import annotations

import numpy as np

from . import numbers
from .charts import histogram
from .markup import Markup, cell_table, element, facts, label_table, note, shaded, table, together
from .tallies import Classes, Order, Residuals, Tally

# A matrix with more classes than this is no longer readable, and on a phone not even visible.
_MOST_IN_MATRIX = 15
_MOST_PAIRS = 15
_MOST_BINS = 41


def answers(tally: Tally) -> Markup:
    """What a tally found, in the form that suits it."""
    if isinstance(tally, Classes):
        return confusion(tally)
    return _residuals(tally) if isinstance(tally, Residuals) else _order(tally)


def confusion(tally: Classes, what: str = "rows") -> Markup:
    """Which class was taken for which; ``what`` has a class: rows, labels, bags, images."""
    names = [numbers.label(c) for c in tally.classes]
    unseen = None
    if tally.first_unseen:
        value, row = tally.first_unseen
        known = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
        unseen = (
            f"{numbers.count(tally.unseen)} {what} have a label that was not in the training data (the first is "
            f"{numbers.label(value)} in {what.removesuffix('s')} {numbers.count(row + 1)}, where the model knows "
            f"{known}). They count as wrong."
        )
    if tally.score is None:
        return together(element("p", f"{tally.unjudged}."), note(unseen))
    counts = tally.matrix()
    right = f"{numbers.count(np.trace(counts))} of {numbers.count(tally.rows)} {what} have the right answer."
    by_label = label_table(names, counts.sum(axis=1), counts.sum(axis=0), np.diag(counts))
    found = _matrix(counts, names) if len(names) <= _MOST_IN_MATRIX else _most_confused(tally, counts, names, what)
    return together(element("p", right), note(unseen), found, by_label)


def _matrix(counts: np.ndarray, names: list[str]) -> Markup:
    """Counts, with the share of the true class behind them as colour."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)

    def cell(i: int, j: int) -> Markup:
        # Mistakes are few where a model is good: their colour is spread so that they are seen at all.
        depth = shares[i, j] if i == j else min(1.0, 4.0 * shares[i, j])
        remark = f"{names[i]} taken for {names[j]}: {numbers.count(counts[i, j])}, {numbers.share(shares[i, j])}"
        text = numbers.count(counts[i, j]) if counts[i, j] else "·"
        return shaded(text, "right" if i == j else "wrong", depth, remark)

    caption = "Rows are the true classes, columns the answers; the depth of colour is a share of the row."
    return together(note(caption), cell_table(["truth", *names], names, cell, "confusion"))


def _most_confused(tally: Classes, counts: np.ndarray, names: list[str], what: str) -> Markup:
    wrong = sorted((-n, pair) for pair, n in tally.pairs.items() if pair[0] != pair[1])
    rows = [
        [names[truth], names[answer], numbers.count(-n), numbers.share(-n / counts[truth].sum())]
        for n, (truth, answer) in wrong[:_MOST_PAIRS]
    ]
    listed = table(["truth", "answer", what, "share of the truth"], rows, "pairs")
    return together(element("h3", "Most frequent mistakes"), listed)


def _residuals(tally: Residuals) -> Markup:
    if not tally.rows:
        return element("p", "There are no labels to compare the answers with.")
    known = facts(
        ("R²", numbers.number(tally.score) if tally.score is not None else "not defined: all labels are the same"),
        ("mean absolute error", numbers.number(tally.mean_absolute)),
        ("rows", tally.rows),
    )
    edges, heights, beyond = _bars(tally)
    caption = "How far the labels lie above (right) or below (left) the answers."
    if beyond:
        caption += f" Outside this picture: {numbers.count(beyond)} rows."
    return together(known, note(caption), histogram(edges, heights, "label − answer", "rows"))


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
    groups, pairs, score = tally.counts()
    if score is None:
        return element("p", f"{tally.unjudged}: there is no order to judge.")
    said = (
        f"Of {numbers.count(pairs)} pairs of rows with different grades in {numbers.count(groups)} groups, "
        f"{numbers.share(score)} are in the right order (ties count half; chance gives 50 %)."
    )
    return element("p", said)

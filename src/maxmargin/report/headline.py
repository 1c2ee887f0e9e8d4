"""The top of a page: what is proved, both bounds, and the numbers that matter most."""

from __future__ import annotations

from typing import Any

from ..notebook import told_apart
from . import numbers
from .markup import Markup, element, together
from .story import Story

_PROOF = (
    "This is proved, not estimated: these weights reach the upper value, no weights whatever get below the lower one, "
    "and both follow from weights, dual variables and data alone. It speaks of the training problem; how well the "
    "model does on new data, only a test can tell."
)
_SHORT = 9  # letters that fit into a tile
_NO_PROOF_YET = (
    "These weights reach the upper value, and no weights whatever get below the lower one. More passes bring the two "
    "together; features of similar scale, or a smaller C, do so sooner."
)


def headline(estimator: Any, title: str, story: Story, tiles: list[tuple[str, str]]) -> Markup:
    """The claim is the story's own where there is no certificate."""
    claim = story.claim if story.claim is not None else _certified(estimator, story)
    return element("header", element("h1", title), claim, tile_list(tiles))


def tile_list(tiles: list[tuple[str, str]]) -> Markup:
    """Numbers side by side, each with its name; long words are set smaller, so that they need not be broken."""
    shown = [
        element("div", element("dt", k), element("dd", v, class_="word" if len(v) > _SHORT and v.isalpha() else None))
        for k, v in tiles
    ]
    return element("dl", *shown, class_="tiles")


def _certified(estimator: Any, story: Story) -> Markup:
    certificate, tol = estimator.certificate_, estimator.tol
    gap = certificate.relative_gap
    reached = gap <= tol
    if gap < 1.0:
        claim = together(f"{story.subject} is within ", element("b", numbers.share(gap)), " of the best possible.")
    elif certificate.exact:
        claim = together(
            f"How far {_lower(story.subject)} is from the best possible is ", element("b", "not known yet"), "."
        )
    else:
        claim = together(
            f"{story.subject} is ", element("b", "not bounded"), " from above: the search was approximate."
        )
    goal = f"Training ended before the goal of {numbers.share(tol)}." if certificate.exact else ""
    proof = _PROOF if gap < 1.0 else _NO_PROOF_YET
    return together(
        element("p", claim, class_="claim" if reached else "claim missed"),
        element("p", goal) if goal and not reached else None,
        _bracket(certificate.lower, certificate.upper),
        element("p", f"The bounds are those {story.about}.") if story.about else None,
        element("p", proof, class_="note"),
    )


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _bracket(lower: float, upper: float) -> Markup:
    low, high = told_apart(lower, upper)
    return element(
        "div",
        element("div", element("strong", low), element("small", "nothing gets below"), class_="low"),
        element("hr"),
        element("div", element("strong", high), element("small", "these weights"), class_="high"),
        class_="bracket",
    )

"""The story of a linear model: answers beside labels, and the heaviest weights."""

from __future__ import annotations

from typing import Any

from ..protocols import Source
from . import numbers
from .answers import answers
from .convergence import convergence
from .reading import measure
from .story import Story
from .summary import data_summary
from .tallies import task_of
from .weights import weights

_KINDS = {"classify": "Classification", "regress": "Regression", "rank": "Ranking"}


def is_linear(estimator: Any) -> bool:
    """Whether the estimator scores rows of a matrix by weights; others have a model or latent values."""
    has = all(hasattr(estimator, part) for part in ("coef_", "n_features_in_"))
    return has and not any(hasattr(estimator, part) for part in ("model_", "latent_"))


def story(estimator: Any, source: Source | None, on: str) -> Story:
    """``source`` is read once, chunk by chunk."""
    task = task_of(estimator)
    tally, survey = measure(estimator, source) if source is not None else (None, None)
    told = Story(_KINDS[task], history=convergence(estimator.history_, estimator.tol))
    if tally is not None and tally.score is not None:
        told.tiles.append((f"{tally.name} on {on}", numbers.score(task, tally.score)))
    if survey is not None:
        told.tiles.append((f"rows of {on}", numbers.count(survey.rows)))
        told.facts = data_summary(survey, task)
    told.tiles.append(("features", numbers.count(estimator.n_features_in_)))
    if task == "classify":
        told.tiles.append(("classes", numbers.count(estimator.classes_.size)))
    if tally is not None and tally.rows:
        told.sections.append((f"Answers on {on}", answers(task, tally)))
    told.sections.append(("Heaviest weights", weights(estimator)))
    told.hint = (
        "With data there are answers beside labels, too: maxmargin report MODEL DATA, or model.report(path, X, y)"
    )
    return told

"""A callback that scores a development set while a model is trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..validation import shown, whole

Scorer = Callable[[Any, Any, Any], float]


class DevelopmentScore:
    """Score a development set every few passes, and stop when it no longer gets better.

    Parameters
    ----------
    X_dev, y_dev : data as ``score`` takes it
    every : int
        Passes between two looks.
    patience : int or None
        End the fit after so many looks in a row without a better score; None: never.
    scorer : function of (estimator, X, y), optional
        What is measured, higher being better; the estimator's own ``score`` if not given. Scorers of scikit-learn fit.
    shown_to : function of text, optional
        Is given a line for every look, such as ``print``.

    Attributes
    ----------
    scores_ : list of (int, float)
        The passes after which the development set was scored and the scores, of the last fit that has begun.

    Notes
    -----
    A fit that is ended early keeps the weights with the lowest objective, and their certificate. Only fits of one
    convex problem are scored on the way; one-vs-rest classifiers and latent variables are refused.

    Examples
    --------
    >>> from maxmargin import SequenceSVM
    >>> X, y = [["the", "dog", "barks"], ["dog", "barks"]], [["DET", "NOUN", "VERB"], ["NOUN", "VERB"]]
    >>> dev = DevelopmentScore(X, y, every=2)
    >>> tagger = SequenceSVM(random_state=0).fit(X, y, callbacks=[dev])
    >>> dev.scores_[0]
    (2, 1.0)
    """

    def __init__(
        self,
        X_dev: Any,
        y_dev: Any,
        *,
        every: int = 1,
        patience: int | None = None,
        scorer: Scorer | None = None,
        shown_to: Callable[[str], object] | None = None,
    ) -> None:
        whole("every", every)
        if patience is not None:
            whole("patience", patience)
        for name, function in (("scorer", scorer), ("shown_to", shown_to)):
            if function is not None and not callable(function):
                raise ValueError(f"{name} must be a function or None, got {shown(function)}.")
        self.X_dev, self.y_dev = X_dev, y_dev
        self.every, self.patience, self.scorer, self.shown_to = every, patience, scorer, shown_to
        self.scores_: list[tuple[int, float]] = []

    def begin(self, estimator: object) -> _Looks:
        """The looks of one fit."""
        looks = _Looks(self)
        self.scores_ = looks.scores
        return looks


class _Looks:
    def __init__(self, settings: DevelopmentScore) -> None:
        self.settings = settings
        self.scores: list[tuple[int, float]] = []

    def __call__(self, record: object) -> None:
        raise ValueError(
            "DevelopmentScore needs an estimator that solves one convex problem; one-vs-rest classifiers and latent "
            "variables have several. Score them after the fit."
        )

    def judge(self, record: Any, fitted: Callable[[], Any]) -> bool:
        """``fitted`` gives the estimator with the weights of this pass; True ends the fit."""
        s = self.settings
        if record.number % s.every:
            return False
        estimator = fitted()
        score = float(s.scorer(estimator, s.X_dev, s.y_dev) if s.scorer else estimator.score(s.X_dev, s.y_dev))
        self.scores.append((record.number, score))
        if s.shown_to is not None:
            s.shown_to(f"pass {record.number}: {score:.4f} on the development set")
        values = [value for _, value in self.scores]
        return s.patience is not None and len(values) - 1 - values.index(max(values)) >= s.patience

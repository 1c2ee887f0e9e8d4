"""Why a chain labels a sequence as it does: by how much each label is ahead of the next best, and what decides it.

    margin of token t = best score − best score of all labellings with another label at t

The second is reached by a labelling, the runner-up, that differs from the best one at t and perhaps around it. The
difference of both scores is a sum over features, transitions and ends, whose terms are what explains the label.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.sequences import Sequences
from ..models.chain import Chain
from ..models.distribution import ChainScores
from .sequence_data import as_sequences
from .structured import Examples, StructuredEstimator

_SHOWN = 3  # contributions in a line of the table


@dataclass(frozen=True)
class Contribution:
    """One term of the difference between the best labelling and a runner-up.

    Parameters
    ----------
    kind : {"feature", "bias", "transition", "start", "end"}
    token : int
        Where it is; of a transition, where it ends.
    name : object
        Of a feature its name, of others the label, or the two labels, of the best labelling.
    instead : object
        The label, or the two labels, of the runner-up.
    label : object
        The label of the best labelling.
    value : float
        By how much it speaks for the best labelling.
    """

    kind: str
    token: int
    name: Any
    label: Any
    instead: Any
    value: float

    def __str__(self) -> str:
        if self.kind == "transition":
            what = f"{' → '.join(map(str, self.label))} over {' → '.join(map(str, self.instead))}"
        else:
            what = {"bias": "bias", "start": f"starts with {self.label}", "end": f"ends with {self.label}"}.get(
                self.kind, str(self.name)
            )
        return f"{what} {self.value:+.2f}"


@dataclass(frozen=True)
class TokenExplanation:
    """Why one token has its label.

    Parameters
    ----------
    index : int
    token : object
        As it was given.
    label : object
        What ``predict`` answers.
    margin : float
        By how much the best labelling is ahead of the best one with another label here; infinite if there is none.
    runner_up : object
        The label that the token has in that one, None if there is none.
    runner_up_labels : list or None
        All labels of that one.
    contributions : tuple of Contribution
        Their values add up to the margin. Largest first.
    probability : float or None
        Of the label, if the model is calibrated.
    """

    index: int
    token: Any
    label: Any
    margin: float
    runner_up: Any
    runner_up_labels: list[Any] | None
    contributions: tuple[Contribution, ...]
    probability: float | None = None


@dataclass(frozen=True)
class Explanation(Sequence[TokenExplanation]):
    """Why a sequence is labelled as it is, token by token; printed, it is a table.

    Parameters
    ----------
    tokens : tuple of TokenExplanation
    score : float
        Of the best labelling.
    """

    tokens: tuple[TokenExplanation, ...]
    score: float

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: Any) -> Any:
        return self.tokens[index]

    def __iter__(self) -> Iterator[TokenExplanation]:
        return iter(self.tokens)

    @property
    def labels(self) -> list[Any]:
        return [token.label for token in self.tokens]

    def __str__(self) -> str:
        known = any(token.probability is not None for token in self.tokens)
        header = ["", "token", "label", *["p"] * known, "margin", "runner-up", "decided by"]
        rows = [header, *(_row(token, known) for token in self.tokens)]
        width = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(map(str.ljust, row, width)).rstrip() for row in rows)


def _row(told: TokenExplanation, known: bool) -> list[str]:
    decided = ", ".join(
        f"{part} (at {part.token})" if part.token != told.index else str(part) for part in told.contributions[:_SHOWN]
    )
    more = len(told.contributions) - _SHOWN
    runner_up = "" if told.runner_up_labels is None else str(told.runner_up)
    sure = [f"{told.probability or 0.0:.3f}"] * known + [f"{told.margin:.2f}", runner_up]
    return [str(told.index), _word(told.token), str(told.label), *sure, decided + f", {more} more" * (more > 0)]


def _word(token: Any) -> str:
    """A token as the table shows it: its word, or the first thing that is said of it."""
    if isinstance(token, dict):
        token = next(iter(token.values()), "")
    elif isinstance(token, list | tuple):
        token = token[0] if token else ""
    text = str(token) if isinstance(token, str | int | float) else ""
    return text if len(text) <= 20 else text[:19] + "…"


def explained(
    model: Chain,
    x: Sequences,
    w: np.ndarray,
    names: Sequence[Any],
    classes: Sequence[Any],
    tokens: Sequence[Any],
    probabilities: np.ndarray | None,
) -> Explanation:
    """The explanation of one sequence."""
    best = model.predict_all(x, w)[0]
    scores = ChainScores(model, x, w)
    around = _Around(scores, best)
    difference = _Difference(model, x, w, scores, names, classes)
    told = []
    for t, label in enumerate(best.tolist()):
        other, margin = around.runner_up(t)
        rival = None if other is None else around.labelling(t, other)
        told.append(
            TokenExplanation(
                index=t,
                token=tokens[t],
                label=classes[label],
                margin=margin,
                runner_up=None if other is None else classes[other],
                runner_up_labels=None if rival is None else [classes[k] for k in rival.tolist()],
                contributions=() if rival is None else difference.between(best, rival),
                probability=None if probabilities is None else float(probabilities[t, label]),
            )
        )
    return Explanation(tuple(told), float(scores.of([best])[0][0]))


class _Around:
    """The best scores of the labels on either side of every token, given its label."""

    def __init__(self, scores: ChainScores, best: np.ndarray) -> None:
        self._score, (self._transition, start, end) = scores.table, scores.pairs
        self._best = best
        n, K = self._score.shape
        self._behind, self._ahead = np.empty((n, K)), np.empty((n, K))
        for t in range(n):
            before = start if t == 0 else (self._reached(t - 1)[:, None] + self._transition).max(axis=0)
            self._behind[t] = before
        for t in range(n - 1, -1, -1):
            self._ahead[t] = end if t == n - 1 else (self._transition + self._leads(t + 1)).max(axis=1)

    def _reached(self, t: int) -> np.ndarray:
        return self._behind[t] + self._score[t]

    def _leads(self, t: int) -> np.ndarray:
        return self._ahead[t] + self._score[t]

    def runner_up(self, t: int) -> tuple[int | None, float]:
        """The other label of the highest score at a token, and by how much it is behind."""
        total = self._behind[t] + self._leads(t)
        others = total.copy()
        others[self._best[t]] = -np.inf
        other = int(others.argmax())
        margin = float(total[self._best[t]] - others[other])
        return (other, margin) if np.isfinite(margin) else (None, np.inf)

    def labelling(self, t: int, label: int) -> np.ndarray:
        """The best labelling that has this label at this token: it leaves the best of all only around there."""
        found = self._best.copy()
        found[t] = label
        for s in range(t - 1, -1, -1):
            k = int((self._reached(s) + self._transition[:, found[s + 1]]).argmax())
            if k == found[s]:
                break  # before a label that both share, the best one of all is best
            found[s] = k
        for s in range(t + 1, found.size):
            k = int((self._transition[found[s - 1]] + self._leads(s)).argmax())
            if k == found[s]:
                break
            found[s] = k
        return found


class _Difference:
    """The score of one labelling minus that of another, term by term."""

    def __init__(
        self,
        model: Chain,
        x: Sequences,
        w: np.ndarray,
        scores: ChainScores,
        names: Sequence[Any],
        classes: Sequence[Any],
    ) -> None:
        self._emissions, self._table = model.emissions(w), x[0]
        self._transition, self._start, self._end = scores.pairs
        at = model.layout[0]
        self._bias = w[at : at + len(classes)] if at >= 0 else np.zeros(len(classes))
        self._names, self._classes = names, classes

    def between(self, best: np.ndarray, other: np.ndarray) -> tuple[Contribution, ...]:
        found: list[Contribution] = []
        differs = best != other
        for t in np.flatnonzero(differs).tolist():
            found += self._token(t, int(best[t]), int(other[t]))
        for t in (1 + np.flatnonzero(differs[1:] | differs[:-1])).tolist():
            pair, instead = (int(best[t - 1]), int(best[t])), (int(other[t - 1]), int(other[t]))
            found.append(self._between("transition", t, self._transition, pair, instead))
        for kind, t, table in (("start", 0, self._start), ("end", best.size - 1, self._end)):
            if best[t] != other[t]:
                found.append(self._between(kind, t, table, int(best[t]), int(other[t])))
        found = [one for one in found if one.value != 0.0]
        return tuple(sorted(found, key=lambda one: -abs(one.value)))

    def _token(self, t: int, label: int, instead: int) -> Iterator[Contribution]:
        row = slice(*self._table.indptr[t : t + 2])
        for f, value in zip(self._table.indices[row].tolist(), self._table.data[row].tolist(), strict=True):
            by = float(value * (self._emissions[f, label] - self._emissions[f, instead]))
            yield self._made("feature", t, self._names[f], label, instead, by)
        yield self._made(
            "bias", t, self._classes[label], label, instead, float(self._bias[label] - self._bias[instead])
        )

    def _between(self, kind: str, t: int, table: np.ndarray, label: Any, instead: Any) -> Contribution:
        return self._made(kind, t, self._said(label), label, instead, float(table[label] - table[instead]))

    def _made(self, kind: str, t: int, name: Any, label: Any, instead: Any, value: float) -> Contribution:
        return Contribution(kind, t, name, self._said(label), self._said(instead), value)

    def _said(self, label: Any) -> Any:
        return tuple(self._classes[k] for k in label) if isinstance(label, tuple) else self._classes[label]


class WithExplanations(StructuredEstimator):
    """Weights by name, and why sentences are labelled as they are, as ``SequenceSVM`` has it."""

    model_: Chain

    if TYPE_CHECKING:

        @property
        def feature_names_(self) -> list[Any]: ...

        @property
        def emissions_(self) -> np.ndarray: ...

        @property
        def transitions_(self) -> np.ndarray: ...

        def prepare(self, X: Examples | Sequences) -> Sequences: ...

        def _class_list(self) -> list[Any]: ...

        def predict_proba(self, X: Examples | Sequences) -> list[np.ndarray]: ...

    @property
    def state_features_(self) -> dict[tuple[Any, Any], float]:
        """Weights that are not zero, by (feature, label)."""
        classes, names, weights = self._class_list(), self.feature_names_, self.emissions_
        feature, label = np.nonzero(weights)
        found = zip(feature.tolist(), label.tolist(), weights[feature, label].tolist(), strict=True)
        return {(names[f], classes[k]): weight for f, k, weight in found}

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """Weights of neighbouring labels that are not zero, by (label, next label), without those ruled out."""
        classes, weights, forbidden = self._class_list(), self.transitions_, self.model_.forbidden
        before, after = np.nonzero(weights if forbidden is None else np.where(forbidden, 0.0, weights))
        found = zip(before.tolist(), after.tolist(), weights[before, after].tolist(), strict=True)
        return {(classes[j], classes[k]): weight for j, k, weight in found}

    def explain(self, x: Any) -> Explanation:
        """Why every token of one sequence has its label: its margin, the runner-up, and what makes the difference.

        The margin of a token is the score of the best labelling minus that of the best one with another label there,
        the runner-up. Both differ in some features, transitions and ends: these are the contributions, which add up to
        the margin. Neighbours may have other labels in the runner-up, too; what they contribute is said with their
        place.

        Parameters
        ----------
        x : one sequence, as in ``predict_single``

        Returns
        -------
        Explanation
            A sequence with an entry for every token; printed, it is a table. Where ``calibrate`` was called, with the
            probabilities of the labels.

        Examples
        --------
        >>> from maxmargin import SequenceSVM
        >>> X, Y = [["the", "dog", "barks"], ["dogs", "bark"]], [["DET", "NOUN", "VERB"], ["NOUN", "VERB"]]
        >>> told = SequenceSVM(random_state=0).fit(X, Y).explain(["the", "cat", "barks"])
        >>> print(told)  # doctest: +ELLIPSIS
           token  label  margin  runner-up  decided by
        0  the    DET    ...
        1  cat    NOUN   ...
        2  barks  VERB   ...
        >>> round(sum(part.value for part in told[0].contributions) - told[0].margin, 9)
        0.0
        """
        prepared = self.prepare([x])
        if not prepared.n_tokens:
            return Explanation((), 0.0)
        calibrated = "temperature_" in vars(self)
        return explained(
            self.model_,
            prepared,
            self.coef_,
            self.feature_names_,
            self._class_list(),
            _given(x, len(prepared[0].indptr) - 1),
            self.predict_proba(prepared)[0] if calibrated else None,
        )


def _given(x: Any, n_tokens: int) -> Sequence[Any]:
    """The tokens as they were given; none are shown of what is no list of them."""
    tokens = as_sequences([x])[0]
    return list(tokens) if isinstance(tokens, list | tuple) and len(tokens) == n_tokens else [""] * n_tokens

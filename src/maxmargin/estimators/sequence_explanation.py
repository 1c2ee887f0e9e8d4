"""Why a chain labels a sequence as it does: by how much each label is ahead of the next best, and what decides it.

    margin of token t = best score − best score of all labellings with another label at t

The second is reached by a labelling, the runner-up, that differs from the best one at t and perhaps around it. The
difference of both scores is a sum over features, transitions and ends, whose terms are what explains the label.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.attributes import word_of
from ..models.chain import labels_of
from .sequence_data import as_sequences
from .tagger import Tagger

_SHOWN = 3  # contributions in a line of the table
_LONGEST = 20  # letters of a word there


@dataclass(frozen=True)
class Contribution:
    """One term of the difference between the best labelling and a runner-up.

    Parameters
    ----------
    kind : {"feature", "bias", "transition", "start", "end", "triple"}
    token : int
        Where it is; of a transition or a triple, where it ends.
    name : object
        Of a feature its name, of others what ``label`` is.
    label : object
        The label of the best labelling; of a transition or a triple a tuple of labels.
    instead : object
        The same of the runner-up.
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
        if self.kind in ("transition", "triple"):
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
    word = word_of(told.token)
    word = word if len(word) <= _LONGEST else word[: _LONGEST - 1] + "…"
    return [str(told.index), word, str(told.label), *sure, decided + f", {more} more" * (more > 0)]


class WithExplanations(Tagger):
    """Why sentences are labelled as they are, as ``SequenceSVM`` says it."""

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
        classes, names, tokens = self._class_list(), self.feature_names_, _given(x, prepared.n_tokens)
        shares = self.predict_proba(prepared)[0] if hasattr(self, "temperature_") else None
        (best,), (score,) = self.model_.scored(prepared, self.coef_)
        told = []
        for t, (rival, runner_up) in enumerate(self.model_.runners_up(prepared, self.coef_, best)):
            there = np.isfinite(runner_up)
            told.append(
                TokenExplanation(
                    index=t,
                    token=tokens[t],
                    label=classes[best[t]],
                    margin=float(score - runner_up),
                    runner_up=classes[rival[t]] if there else None,
                    runner_up_labels=[classes[k] for k in rival.tolist()] if there else None,
                    contributions=self._difference(prepared[0], names, best, rival) if there else (),
                    probability=None if shares is None else float(shares[t, best[t]]),
                )
            )
        return Explanation(tuple(told), float(score))

    def _difference(
        self, x: sp.csr_matrix, names: Sequence[Any], best: np.ndarray, other: np.ndarray
    ) -> tuple[Contribution, ...]:
        """The score of one labelling minus that of another, term by term."""
        classes, emissions, found = self._class_list(), self.emissions_, []
        for t in np.flatnonzero(best != other).tolist():
            row = slice(*x.indptr[t : t + 2])
            label, instead, features = best[t], other[t], x.indices[row]
            gain = x.data[row] * (emissions[features, label] - emissions[features, instead])
            for p in np.flatnonzero(gain).tolist():
                name, value = names[features[p]], float(gain[p])
                found.append(Contribution("feature", t, name, classes[label], classes[instead], value))
        for kind, table in self.model_.blocks(self.coef_).items():
            here, there = labels_of(kind, best), labels_of(kind, other)
            gain = table[here] - table[there]
            first = 0 if kind == "start" else best.size - gain.size  # where the last label of the first run is
            for p in np.flatnonzero(gain).tolist():
                said, others = (tuple(classes[labels[p]] for labels in run) for run in (here, there))
                name, instead = (said, others) if len(said) > 1 else (said[0], others[0])
                found.append(Contribution(kind, first + p, name, name, instead, float(gain[p])))
        return tuple(sorted(found, key=lambda part: -abs(part.value)))


def _given(x: Any, n_tokens: int) -> Sequence[Any]:
    """The tokens as they were given; none are shown of what is no list of them."""
    tokens = as_sequences([x])[0]
    return list(tokens) if isinstance(tokens, list | tuple) and len(tokens) == n_tokens else [""] * n_tokens

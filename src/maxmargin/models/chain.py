"""The model of sequences: a Markov chain of labels, of first or second order."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import islice, pairwise
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.sequences import Sequences
from ..data.transitions import first_fault
from ..inference import restricted
from ..kernels import chains as kernels, second_order, viterbi
from ..validation import one_of, shown
from . import labelling
from .rounding import LabellingErrors, whole_sums
from .sequence_model import SequenceModel, block, switches

BLOCKS = {"bias": 1, "transition": 2, "start": 1, "end": 1, "triple": 3}
"""The weights behind those of features, in their order, and how many labels in a row each of them is for."""

_MOST_BYTES = 4 << 30  # of the tables in which the k best labellings are found


class Chain(SequenceModel):
    """Sequences of labels: weights for features at every position and for neighbouring labels.

        w·φ(x, y) = Σ_t emission[:, y_t]·x_t + Σ_{t>0} transition[y_{t−1}, y_t]  (+ bias, start, end if asked for)

    and of second order, with weights for three labels in a row besides:  + Σ_{t>1} triple[y_{t−2}, y_{t−1}, y_t].
    x is a matrix of tokens by features, dense or sparse; y an array of labels 0 … n_labels−1.

    Parameters
    ----------
    n_labels, n_features : int or None
        Taken from the data by default.
    loss : {"hamming", "normalized_hamming"} or array (n_labels, n_labels)
        Wrong labels counted, their share of the sequence, or the sum of ``loss[true, answer]``.
    bias, start, end : bool
        Whether each label has a weight of its own at every, the first, the last position.
    transitions : bool
        Whether neighbouring labels interact.
    forbidden : bool array (n_labels, n_labels) or None
        Pairs (from, to) that no answer may contain.
    forbidden_start, forbidden_end : bool array (n_labels,) or None
        Labels that no answer may begin with, or end with.
    rescaling : {"margin", "slack"}
        Whether a loss asks for a margin of its size, or multiplies what is missing of a margin of one. Slack
        rescaling takes the Hamming losses, and time that grows with the square of the length; chains of first order
        only.
    order : {1, 2}
        How many labels before it a label depends on. Searches of second order are exact, too; they take n_labels times
        as long at worst, and far less where most continuations are out of the question.

    Examples
    --------
    >>> chain = Chain(n_labels=2, n_features=1)
    >>> w = np.array([-1.0, 1.0, 0.0, 0.0, 0.0, -9.0])  # label 1 where x > 0, but never twice in a row
    >>> chain.predict(np.array([[1.0], [0.4], [2.0]]), w)
    array([1, 0, 1], dtype=int32)
    """

    _impossible = (
        "every labelling of that length is forbidden. Allow more transitions, or more labels at the start and the end."
    )

    def __init__(
        self,
        n_labels: int | None = None,
        n_features: int | None = None,
        *,
        loss: object = "hamming",
        bias: bool = False,
        start: bool = False,
        end: bool = False,
        transitions: bool = True,
        forbidden: Any = None,
        forbidden_start: Any = None,
        forbidden_end: Any = None,
        rescaling: str = "margin",
        order: int = 1,
    ) -> None:
        labelling.check_loss(loss, n_labels)
        labelling.check_sizes(n_labels=n_labels, n_features=n_features)
        labelling.check_switches(bias=bias, start=start, end=end, transitions=transitions)
        one_of("rescaling", rescaling, ("margin", "slack"))
        if rescaling == "slack" and not isinstance(loss, str):
            raise ValueError("Slack rescaling of a chain counts wrong labels: it needs a Hamming loss.")
        _check_order(order, transitions, rescaling)
        self.n_labels = n_labels
        self.n_features = n_features
        self.cost = loss
        self.bias = bias
        self.start = start
        self.end = end
        self.transitions = transitions
        self.forbidden = switches(forbidden)
        self.forbidden_start = switches(forbidden_start)
        self.forbidden_end = switches(forbidden_end)
        self.rescaling = rescaling
        self.order = order
        self._check_forbidden()

    def sized(self, X: Any, Y: Any) -> Chain:
        """A copy that knows its sizes: from the data, where they were not given."""
        sized = copy.copy(self)
        sized.n_features = Sequences.of(X, self.n_features).n_features
        if self.n_labels is None:
            sized.n_labels = labelling.n_labels(Y, self.cost)
        labelling.check_loss(self.cost, sized.n_labels)
        sized._check_forbidden()
        return sized

    def _check_forbidden(self) -> None:
        super()._check_forbidden()
        for name in ("forbidden_start", "forbidden_end"):
            table = getattr(self, name)
            if table is not None and (table.ndim != 1 or table.all()):
                what = "True for all labels, and nothing is left" if table.ndim == 1 else f"an array of {table.shape}"
                raise ValueError(f"{name} must say for each label whether it is forbidden there; it is {what}.")
            if table is not None and self.n_labels is not None and len(table) != self.n_labels:
                raise ValueError(f"{name} has shape {table.shape}, there are {self.n_labels} labels.")

    def joined(self, others: Sequence[Chain]) -> Chain:
        """The chain that knows the sizes of this one and others, each sized on a part of the data."""
        return labelling.joined([self, *others], ["n_features"], ["n_labels"])

    def _places(self) -> list[int]:
        """Where the blocks of weights behind those of features begin, and the last one ends."""
        K, d = self._sizes()
        present = self.bias, self.transitions, self.start, self.end, self.order == 2
        sizes = [K**n_labels * has for n_labels, has in zip(BLOCKS.values(), present, strict=True)]
        return np.cumsum([K * d, *sizes]).tolist()

    @property
    def n_weights(self) -> int:
        return self._places()[-1]

    @property
    def layout(self) -> tuple[int, ...]:
        """Where the blocks of bias, transition, start, end and triple weights begin (−1: there is none)."""
        return tuple(a if b > a else -1 for a, b in pairwise(self._places()))

    def emissions(self, w: np.ndarray) -> np.ndarray:
        """The weights of features by label, (n_features, n_labels)."""
        K, d = self._sizes()
        return w[: K * d].reshape(d, K)

    def blocks(self, w: np.ndarray) -> dict[str, np.ndarray]:
        """The weights behind those of features, by label or by labels in a row, as far as there are any."""
        K, _ = self._sizes()
        places = zip(BLOCKS.items(), self.layout, strict=True)
        return {name: block(w, at, *[K] * n_labels) for (name, n_labels), at in places if at >= 0}

    def _block(self, w: np.ndarray, name: str) -> np.ndarray:
        found = self.blocks(w).get(name)
        return np.zeros(self._sizes()[:1] * BLOCKS[name]) if found is None else found

    def transition_table(self, w: np.ndarray) -> np.ndarray:
        """The weights of neighbouring labels, from × to; zeros if there are none."""
        return self._block(w, "transition")

    def triple_table(self, w: np.ndarray) -> np.ndarray:
        """The weights of three labels in a row, in their order; zeros if there are none."""
        return self._block(w, "triple")

    def __repr__(self) -> str:
        order = ", order=2" if self.order == 2 else ""
        return f"Chain(n_labels={self.n_labels}, n_features={self.n_features}, loss={self.cost!r}{order})"

    def features(self, x: Any, y: Any) -> sp.csr_matrix:
        K, d = self._sizes()
        y = labelling.check_labels(y, K)
        x = Sequences.of([x], d)[0]
        out = np.zeros(self.n_weights)
        self.emissions(out)[:] = x.T @ np.eye(K)[y]
        for name, table in self.blocks(out).items():
            np.add.at(table, labels_of(name, y), 1.0)
        return sp.csr_matrix(out)

    def loss(self, y: object, y_hat: object) -> float:
        return labelling.loss(self.cost, y, y_hat)

    def scored(self, X: Any, w: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """The best labelling of every sequence, and its score."""
        X = Sequences.of(X, self._sizes()[1])
        flat, everybody = np.empty(X.n_tokens, np.int32), np.arange(len(X))
        no_cost = np.empty((0, 0)), np.empty(0), labelling.NO_LABELS
        scores = self._searches.search(*self._arguments(X, w), everybody, *no_cost, X.offsets, flat)
        self._check_found(scores, X, w)
        return labelling.split(flat, X.offsets), scores

    def k_best(self, x: object, w: np.ndarray, k: int) -> list[tuple[np.ndarray, float]]:
        """The k best labellings with their scores, best first (fewer if there are not as many)."""
        K, d = self._sizes()
        X = Sequences.of([x], d)
        k = int(min(k, float(K) ** min(X.n_tokens, 60)))  # there are no more
        size = X.n_tokens * k * (24 * K if self.order == 1 else 4 * X.n_tokens)
        if size > _MOST_BYTES:
            raise ValueError(
                f"The {k} best labellings of {X.n_tokens} tokens would take {size >> 30} GB to find, more than "
                f"{_MOST_BYTES >> 30} GB, the limit. Ask for fewer."
            )
        if self.order == 1:
            paths, scores = viterbi.k_best(*self._arguments(X, w), k)
            found = list(zip(paths, scores.tolist(), strict=True))
        else:
            found = list(islice(restricted.in_order(self._search_of(X, w), X.n_tokens, K), k))
        if not found:
            self.scored(X, w)  # says what is wrong
        return found

    def margins(self, X: Any, w: np.ndarray, Y: list[np.ndarray]) -> list[np.ndarray]:
        """For each token, by how much its label in Y beats every labelling that has another label there."""
        K, d = self._sizes()
        X = Sequences.of(X, d)
        y = labelling.concatenated(Y, np.diff(X.offsets), K)
        if self.order == 1:
            found = labelling.split(viterbi.margins(*self._arguments(X, w), y), X.offsets)
        else:
            parts = enumerate(labelling.split(y, X.offsets))
            found = [restricted.margins(self._search_of(X.alone(i), w), labels, K) for i, labels in parts]
        if any(np.isnan(margins).any() for margins in found):
            self.scored(X, w)  # says what is wrong
        return found

    def runners_up(self, X: Sequences, w: np.ndarray, y: np.ndarray) -> list[tuple[np.ndarray, float]]:
        """For each token of one sequence the best labelling with another label there than in y, and its score.

        The score is −∞ where there is no such labelling.
        """
        return restricted.runners_up(self._search_of(X, w), y, self._sizes()[0])

    def _search_of(self, X: Sequences, w: np.ndarray) -> restricted.Search:
        """The search over one sequence, among the labels that tokens may have."""
        # Costs depend on true labels; here each token has one of its own.
        arguments, scale, token = self._arguments(X, w), np.ones(1), np.arange(X.n_tokens, dtype=np.int32)

        def search(allowed: np.ndarray) -> restricted.Labelling:
            path = np.empty(X.n_tokens, np.int32)
            cost = np.where(allowed, 0.0, -np.inf)
            scores = self._searches.search(*arguments, np.zeros(1, np.int64), cost, scale, token, X.offsets, path)
            return path, float(scores[0])

        return search

    @property
    def _searches(self) -> ModuleType:
        """The searches over chains of this order; their arguments begin with those of ``_arguments``."""
        return second_order if self.order == 2 else viterbi

    def _arguments(self, X: Sequences, w: np.ndarray) -> tuple[Any, ...]:
        """What every search over these sequences is given first."""
        w = labelling.as_weights(w, self.n_weights)
        scores = [self._block(w, name) for name in ("transition", "start", "end")]
        banned = (self.forbidden, self.forbidden_start, self.forbidden_end)
        both = zip(scores, banned, strict=True)
        pairs = tuple(np.where(False if bad is None else bad, -np.inf, score) for score, bad in both)
        triples = (self.triple_table(w),) if self.order == 2 else ()
        return (X.indptr, X.indices, X.values), X.offsets, w, self.layout[0], pairs, *triples

    def oracle(self, X: object, Y: object) -> ChainOracle:
        return ChainOracle(self, X, Y)


def labels_of(block: str, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Where in a table of ``BLOCKS`` the weights of a labelling stand.

    >>> labels_of("transition", np.array([0, 2, 1])), labels_of("end", np.array([0, 2, 1]))
    ((array([0, 2]), array([2, 1])), (array([1]),))
    """
    y = {"start": y[:1], "end": y[-1:]}.get(block, y)
    n = BLOCKS[block]
    return tuple(y[k : max(y.size - n + 1, 0) + k] for k in range(n))


def _check_order(order: object, transitions: bool, rescaling: str) -> None:
    if not isinstance(order, int | np.integer) or isinstance(order, bool) or order not in (1, 2):
        raise ValueError(
            f"order must be 1 or 2, the number of labels that a label depends on; got {shown(order)}. Features of "
            "longer stretches are those of models.SemiMarkov."
        )
    if order == 2 and not transitions:
        raise ValueError("A chain with order=2 has weights for pairs of labels, too: leave transitions=True.")
    if order == 2 and rescaling == "slack":
        raise ValueError('rescaling="slack" takes chains of order 1: give order=1, or rescaling="margin".')


class ChainOracle(labelling.LabellingOracle):
    """A chain bound to data: whole batches are searched in one compiled call."""

    model: Chain
    releases_gil = True

    def __init__(self, model: Chain, X: Any, Y: Any) -> None:
        super().__init__(model, Sequences.of(X, model._sizes()[1]).sorted(), Y)
        self._layout = model.layout
        # Sums of small whole numbers are exact in half the memory; others would be rounded, and the bounds with them.
        values, most = self.X.values, 2 * int(self.length.max(initial=0))
        self._kind = np.empty(0, np.float32 if whole_sums(values, most, 2.0**24) else np.float64)
        self.errors = LabellingErrors(
            self.X,
            self.n_labels,
            np.ones(self.n_weights - self.n_labels * self.X.n_features),
            self.length,
            cost=self.cost.max(initial=0.0) * self.scale,
            slack=self.length * self.scale if model.rescaling == "slack" else None,
            exact=whole_sums(values, most),
        )
        self._check_allowed(self.first_token, self.y, "Example {}. Allow it, or mend the labels.")

    def check_answers(self, first: np.ndarray, flat: np.ndarray) -> None:
        self._check_allowed(first, flat, "These answers do not belong to this model: number {}.")

    def _check_allowed(self, first: np.ndarray, flat: np.ndarray, message: str) -> None:
        model = self.model
        fault = first_fault(first, flat, self.n_labels, model.forbidden, model.forbidden_start, model.forbidden_end)
        if fault is None:
            return
        i, t, label, follower = fault
        if label is None:
            what = f"begins with the label {follower}, which is forbidden there"
        elif follower is None:
            what = f"ends with the label {label}, which is forbidden there"
        else:
            what = f"has the labels {label}, {follower} at position {t} and the next, a pair that is forbidden"
        raise ValueError(message.format(f"{i} {what}"))

    def search(self, ids: np.ndarray, w: np.ndarray, first: np.ndarray, flat: np.ndarray) -> None:
        search = viterbi.search_slack if self.model.rescaling == "slack" else self.model._searches.search
        search(*self.model._arguments(self.X, w), ids, self.cost, self.scale, self.y, first, flat)

    def differences(self, ids: np.ndarray, first: np.ndarray, flat: np.ndarray, indptr: np.ndarray) -> Any:
        return kernels.differences(
            *self.tokens, self.first_token, self.y, self.n_labels, self._layout, ids, flat, first, indptr, self._kind
        )

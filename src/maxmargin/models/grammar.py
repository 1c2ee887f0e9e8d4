"""The model of parse trees: a given grammar, weights for its rules and for features of tokens."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..data.arrays import as_rows
from ..data.sequences import Sequences
from ..kernels import chains, grammar as kernels
from ..problem import Rivals
from ..validation import shown
from . import labelling
from .parse_trees import children_of, nested, rows_of
from .rounding import LabellingErrors, whole_sums

_ALONE = (-1,) * 5  # of the blocks of a chain: features of tokens are all there is


class Read(NamedTuple):
    """Trees of several sentences: their nodes one after another, and where those of each begin; over each token the
    number of its symbol among those; how often each rule is used by each tree."""

    nodes: np.ndarray
    first: np.ndarray
    labels: np.ndarray
    counts: np.ndarray


class Grammar:
    """Parse trees of a given grammar: a weight for every rule, and weights for features of tokens.

        w·φ(x, y) = Σ_rules count(rule, y)·rule + Σ_t token[:, s_t]·x_t,   s_t the symbol over token t

    x is a matrix of tokens by features, dense or sparse. y is a tree of names: a symbol with one or two trees below it,
    ``("S", ("NP", "D", "N"), "V")``, where a name alone stands over a token. The best tree is found exactly, by the
    algorithm of Cocke, Kasami and Younger. The loss counts nodes (start, end, symbol) that an answer lacks, and those
    that it has and the truth has not.

    Parameters
    ----------
    rules : list of tuples of str
        (parent, left, right) or (parent, child). Symbols without a rule of their own stand over tokens, one over each.
        Rules of one child must not lead back to their parent.
    start : str
        The symbol over a whole sentence.
    n_features : int or None
        Taken from the data by default.

    Notes
    -----
    A search takes a time of n³ times the number of binary rules.

    Examples
    --------
    >>> grammar = Grammar([("S", "NP", "V"), ("NP", "D", "N"), ("NP", "N")], "S", n_features=3)
    >>> grammar.symbols, grammar.over_tokens
    (['S', 'NP', 'V', 'D', 'N'], ['V', 'D', 'N'])
    >>> w = np.concatenate([np.eye(3).ravel(), np.zeros(3)])  # features are those of V, D and N
    >>> grammar.predict(np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]]), w)
    ('S', ('NP', 'D', 'N'), 'V')
    """

    exact = True
    rescaling = "margin"

    def __init__(self, rules: Sequence[tuple[str, ...]], start: str, *, n_features: int | None = None) -> None:
        labelling.check_sizes(n_features=n_features)
        self.rules = _checked(rules)
        self.start = start
        self.n_features = n_features
        self.symbols = list(dict.fromkeys(name for rule in self.rules for name in rule))
        parents = {rule[0] for rule in self.rules}
        self.over_tokens = [name for name in self.symbols if name not in parents]
        if not isinstance(start, str) or start not in parents:
            raise ValueError(f"start must be a symbol that has a rule, one of {sorted(parents)}; got {shown(start)}.")
        self._number = {name: k for k, name in enumerate(self.symbols)}
        self._leaf = np.array([self._number[name] for name in self.over_tokens], np.int64)
        # Kernels take the unary rules first, those below before those above.
        self._order = _sorted_unary(self.rules) + [r for r, rule in enumerate(self.rules) if len(rule) == 3]
        self._place = {tuple(self._number[name] for name in rule): r for r, rule in enumerate(self.rules)}

    def sized(self, X: Any, Y: Any) -> Grammar:
        """A copy that knows its sizes from the data."""
        sized = copy.copy(self)
        sized.n_features = Sequences.of(X, self.n_features).n_features
        return sized

    def joined(self, others: Sequence[Grammar]) -> Grammar:
        """The model that knows the sizes of this one and others, each sized on a part of the data."""
        return labelling.joined([self, *others], ["n_features"], [])

    @property
    def n_weights(self) -> int:
        return labelling.sizes(self, "n_features")[0] * len(self.over_tokens) + len(self.rules)

    def rule_weights(self, w: np.ndarray) -> dict[tuple[str, ...], float]:
        """The weight of every rule."""
        return dict(zip(self.rules, w[w.size - len(self.rules) :].tolist(), strict=True))

    def __repr__(self) -> str:
        return f"Grammar({len(self.rules)} rules, start={self.start!r}, n_features={self.n_features})"

    def features(self, x: Any, y: Any) -> sp.csr_matrix:
        X = Sequences.of([x], labelling.sizes(self, "n_features")[0])
        read = self._read([y], X.offsets, "The tree")
        tokens = X[0].T @ np.eye(len(self.over_tokens))[read.labels]
        return sp.csr_matrix(np.concatenate([tokens.ravel(), read.counts[0]]))

    def loss(self, y: Any, y_hat: Any) -> float:
        true, found = ({*map(tuple, rows_of(tree, self._number, "y").tolist())} for tree in (y, y_hat))
        return float(len(true ^ found))

    def predict(self, x: Any, w: np.ndarray) -> Any:
        """The tree of the highest score."""
        return self.predict_all([x], w)[0]

    def predict_all(self, X: Any, w: np.ndarray) -> list[Any]:
        """The best tree of every sentence."""
        X = Sequences.of(X, labelling.sizes(self, "n_features")[0])
        found, first, values = self._search(X, np.arange(len(X)), w, None)
        if not np.isfinite(values).all():
            i = int(np.argmin(np.isfinite(values)))
            raise ValueError(
                f"Sequence {i} has {X.offsets[i + 1] - X.offsets[i]} tokens, and the grammar has no tree over so many. "
                "Give it more rules."
            )
        return [nested(found[a:b, :3], self.symbols) for a, b in pairwise(first.tolist())]

    def most_violated(self, x: Any, y: Any, w: np.ndarray) -> np.ndarray:
        """The tree ŷ of the highest loss(y, ŷ) + w·φ(x, ŷ): rows (start, end, symbol), parents first."""
        return self.oracle([x], [y]).rivals(np.zeros(1, np.int64), w).labels[0]

    def tokens(self, x: Any, y: Any) -> list[str]:
        """The symbol over every token of x, where y is its tree."""
        labels = self._read([y], np.array([0, np.shape(x)[0]]), "The tree").labels
        return [self.over_tokens[k] for k in labels.tolist()]

    def oracle(self, X: Any, Y: Any) -> GrammarOracle:
        return GrammarOracle(self, X, Y)

    def _search(
        self, X: Sequences, ids: np.ndarray, w: np.ndarray, true: Read | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows (start, end, symbol, rule of the kernel) of the best trees, where each begins, and their values."""
        w = labelling.as_weights(w, self.n_weights)
        starts = labelling.starts(X.offsets, ids)
        score = np.full((int(starts[-1]), len(self.symbols)), -np.inf)
        K = len(self.over_tokens)
        for p, i in enumerate(ids.tolist()):
            tokens = np.empty((starts[p + 1] - starts[p], K))
            chains.label_scores(X.indptr, X.indices, X.values, X.offsets[i], X.offsets[i + 1], K, w, -1, tokens)
            score[starts[p] : starts[p + 1], self._leaf] = tokens
        unary, binary = self._rule_tables()
        found = np.empty((2 * int(starts[-1]) * (1 + len(unary)), 4), np.int32)
        first = np.empty(ids.size + 1, np.int64)
        nodes, at = (np.empty((0, 3), np.int64), first[:0]) if true is None else (true.nodes, true.first)
        scores = w[w.size - len(self.rules) :][self._order]
        tables = (score, X.offsets, self._number[self.start], binary, unary, scores)
        values = kernels.search(*tables, true is not None, nodes, at, ids, found, first)
        return found[: first[-1]], first, values

    def _rule_tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Unary and binary rules in the order of kernels."""
        listed = [[self._number[name] for name in self.rules[r]] for r in self._order]
        unary, binary = (np.array([rule for rule in listed if len(rule) == k], np.int64) for k in (2, 3))
        return unary.reshape(-1, 2), binary.reshape(-1, 3)

    def _read(self, Y: Sequence[Any], offsets: np.ndarray, what: str) -> Read:
        """Trees as arrays, checked."""
        if len(Y) != offsets.size - 1:
            raise ValueError(f"X has {offsets.size - 1} examples, Y has {len(Y)}. Give one tree for each.")
        nodes, labels = [np.empty((0, 3), np.int64)], [np.empty(0, np.int32)]
        counts = np.zeros((len(Y), len(self.rules)))
        for i, (y, n) in enumerate(zip(Y, np.diff(offsets).tolist(), strict=True)):
            name = what.format(i)
            rows = rows_of(y, self._number, name)
            below = children_of(rows, n, name)
            symbols = rows[:, 2].tolist()
            if symbols[0] != self._number[self.start]:
                raise ValueError(f"{name} has no {self.start} over the sentence.")
            over = []
            for k, children in enumerate(below):
                rule = (symbols[k], *(symbols[child] for child in children))
                if children and rule not in self._place:
                    told = [self.symbols[a] if 0 <= a < len(self.symbols) else a for a in rule]
                    raise ValueError(
                        f"{name} uses {shown(tuple(told))}, which is none of the rules. Add it, or mend y."
                    )
                if children:
                    counts[i, self._place[rule]] += 1.0
                else:
                    over.append(symbols[k])
            strange = next((a for a in over if a not in self._leaf), None)
            if strange is not None:
                raise ValueError(f"{name} has {self.symbols[strange]} over a token; only {self.over_tokens} may be.")
            nodes.append(rows)
            labels.append(np.searchsorted(self._leaf, over).astype(np.int32))
        first = np.cumsum([0, *map(len, nodes[1:])])
        return Read(np.concatenate(nodes), first, np.concatenate(labels), counts)


def _checked(rules: Any) -> list[tuple[str, ...]]:
    listed = rules if isinstance(rules, list | tuple) else []
    wrong = next((rule for rule in listed if not _is_rule(rule)), None)
    if not listed or wrong is not None or len({*map(tuple, listed)}) < len(listed):
        raise ValueError(
            "rules must be a list of different tuples of names, (parent, left, right) or (parent, child); got "
            f"{shown(rules if wrong is None else wrong)}."
        )
    return [tuple(rule) for rule in listed]


def _is_rule(rule: Any) -> bool:
    return isinstance(rule, tuple | list) and 2 <= len(rule) <= 3 and all(isinstance(name, str) for name in rule)


def _sorted_unary(rules: list[tuple[str, ...]]) -> list[int]:
    """Rules of one child, those of a symbol before those in which it is the child."""
    left = [r for r, rule in enumerate(rules) if len(rule) == 2]
    order: list[int] = []
    while left:
        parents = {rules[r][0] for r in left}
        ready = [r for r in left if rules[r][1] not in parents]
        if not ready:
            raise ValueError(
                f"Rules of one child lead back to their parent: {shown([rules[r] for r in left])}. A symbol could "
                "then stand over itself without end: leave one of them out."
            )
        order += ready
        left = [r for r in left if r not in ready]
    return order


class GrammarOracle:
    """A grammar bound to data: whole batches are searched in one compiled call."""

    releases_gil = True

    def __init__(self, model: Grammar, X: Any, Y: Sequence[Any]) -> None:
        self.model = model
        self.X = X = Sequences.of(X, labelling.sizes(model, "n_features")[0]).sorted()
        self.n_examples, self.n_weights = len(X), model.n_weights
        self.y = model._read(Y, X.offsets, "Y[{}]")
        n = np.diff(X.offsets)
        n_nodes = 2 * n * (1 + len(model._rule_tables()[0]))
        whole = whole_sums(X.values, 2 * int(n_nodes.max(initial=0)))
        cost = np.full(n.size, 2.0)
        self.errors = LabellingErrors(
            X, len(model.over_tokens), np.ones(len(model.rules)), n_nodes, cost=cost, exact=whole
        )

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        found, first, _ = self.model._search(self.X, ids, w, self.y)
        offsets = labelling.starts(self.X.offsets, ids)
        answers = [found[a:b, :3] for a, b in pairwise(first.tolist())]
        rivals = self._planes(ids, self.model._read(answers, offsets, "Answer {}"), answers)
        return replace(rivals, rounding=partial(self.errors.of_search, ids, w))

    def planes(self, ids: np.ndarray, labels: Sequence[Any]) -> Rivals:
        offsets = labelling.starts(self.X.offsets, ids)
        return self._planes(ids, self.model._read(labels, offsets, "Answer {}"), list(labels))

    def _planes(self, ids: np.ndarray, read: Read, answers: list[Any]) -> Rivals:
        X, model = self.X, self.model
        K, offsets = len(model.over_tokens), labelling.starts(X.offsets, ids)
        indptr = np.empty(ids.size + 1, np.int64)
        tokens = (X.indptr, X.indices, X.values, X.offsets)
        indices, data = chains.differences(
            *tokens, self.y.labels, K, _ALONE, ids, read.labels, offsets, indptr, np.empty(0)
        )
        words = sp.csr_matrix((data[: indptr[-1]], indices[: indptr[-1]], indptr), shape=(ids.size, K * X.n_features))
        rules = sp.csr_matrix(self.y.counts[ids] - read.counts)
        losses = np.array([model.loss(self._truth(i), y) for i, y in zip(ids.tolist(), answers, strict=True)])
        rows = as_rows(sp.hstack([words, rules], format="csr"))
        return Rivals(answers, rows, losses, errors=self.errors.of_rows(ids))

    def _truth(self, i: int) -> np.ndarray:
        return self.y.nodes[self.y.first[i] : self.y.first[i + 1]]

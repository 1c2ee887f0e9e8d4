"""The model of dependency trees: each word of a sentence has a head, another word or the root."""

from __future__ import annotations

import copy
from collections.abc import Sequence, Sized
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.dependencies import COLUMNS, HashedSentences, n_columns, relations_of
from ..kernels import arcs as kernels, spanning_trees
from ..problem import Rivals, Rows
from ..validation import one_of, shown, whole
from . import labelling
from .rounding import search_rounding

_PER_TOKEN, _LEAST, _MOST = 32, 1 << 14, 1 << 23  # weights of arcs, if nothing is said
_LOSSES = ("labelled", "unlabelled")

# What arcs look at: of the head h and of the dependent d the word w, the tag t and the finer tag f, or those of the
# word before (-) or after (+). The first one is combined with all tags between the two. (McDonald, Crammer and Pereira
# 2005, table 1, and shorter ones of its kind.)
_ARCS = """
    ht dt; hw ht; hw; ht; dw dt; dw; dt; hw ht dw dt; ht dw dt; hw dw dt; hw ht dt; hw ht dw; hw dw;
    ht ht+ dt- dt; ht- ht dt- dt; ht ht+ dt dt+; ht- ht dt dt+; ht ht+ dt; ht- ht dt; ht dt- dt; ht dt dt+
"""
_FINE_ARCS = """
    hf df; hf hf+ df- df; hf- hf df- df; hf hf+ df df+; hf- hf df df+; hf df- df; hf df df+; hw hf df; hf dw df; hf; df
"""
_RELATIONS = "ht dt; dw dt; dw; dt- dt dt+; hw ht; ht- ht ht+; hw dt; ht dw; hw dw; dw dw+; dw- dw"
_MORE_RELATIONS = "ht dw dt; hw ht dt; dw dt dt+; ht- ht dt- dt; ht dt- dt; ht dt dt+; ht ht+ dt"  # of the finest tag
_FINE_RELATIONS = "hf df; df- df df+; hf dw; hw df"


class DependencyTree:
    """Dependency trees over the words of sentences: weights for features of arcs, and of their relations.

        w·φ(x, y) = Σ_d arc(head_d, d) + relation(head_d, d, r_d)

    x is a list of tokens: words, or tuples of a word, its tag and a finer tag if there is one. y has for each of them
    the number of its head, counted from 1, or 0 for the root; with relations, pairs of that and the name of the
    relation: ``[(2, "nsubj"), (0, "root")]``. ``data.read_trees`` reads both from CoNLL-U files.

    Features come from templates on words and tags of the head, the dependent, their neighbours, and what stands between
    them, with direction and distance (first-order features of McDonald, Crammer and Pereira 2005). They are hashed,
    and formed when they are needed: nothing is stored of the n² arcs of a sentence.

    Parameters
    ----------
    relations : list of str or None
        Names of relations; those of the data by default, none where y has heads alone.
    projective : bool
        Whether no two arcs of an answer may cross. Such trees are found by Eisner's algorithm, all trees by that of
        Chu, Liu and Edmonds. True trees may be any.
    single_root : bool
        Whether answers have exactly one word whose head is the root.
    loss : {"labelled", "unlabelled"}
        Words counted whose head or relation is wrong, or whose head is.
    n_features : int or None
        Weights that features of arcs are hashed into; about as many are for those of relations. By default 32 for each
        token of the data, 2²³ at most.
    n_columns : {1, 2, 3} or None
        Of tokens: word, tag, finer tag. Taken from the data by default. Words without tags have their last three
        letters for one.

    Notes
    -----
    The search is exact: the best relation of each arc is found first, then the best tree. It takes a time that grows
    with the number of arcs times features and relations, and with n³ for projective trees, which matters less.

    Examples
    --------
    >>> from maxmargin import StructuralSVM
    >>> X = [[("dogs", "N"), ("bark", "V")], [("the", "D"), ("dog", "N"), ("barked", "V")]]
    >>> Y = [[(2, "nsubj"), (0, "root")], [(2, "det"), (3, "nsubj"), (0, "root")]]
    >>> svm = StructuralSVM(DependencyTree(), C=1.0, random_state=0).fit(X, Y)
    >>> svm.predict([[("a", "D"), ("cat", "N"), ("slept", "V")]])
    [[(2, 'det'), (3, 'nsubj'), (0, 'root')]]
    """

    exact = True
    rescaling = "margin"

    def __init__(
        self,
        relations: Sequence[str] | None = None,
        *,
        projective: bool = True,
        single_root: bool = True,
        loss: str = "labelled",
        n_features: int | None = None,
        n_columns: int | None = None,
    ) -> None:
        labelling.check_switches(projective=projective, single_root=single_root)
        labelling.check_sizes(n_features=n_features)
        if relations is not None and not _are_names(relations):
            raise ValueError(f"relations must be a list of different names, got {shown(relations)}.")
        if n_columns is not None:
            whole("n_columns", n_columns, 1, 3)
        self.relations = None if relations is None else list(relations)
        self.projective = projective
        self.single_root = single_root
        self.cost = one_of("loss", loss, _LOSSES)
        self.n_features = n_features
        self.n_columns = n_columns
        self._taken = 0  # weights of arcs that were taken from the number of tokens

    def sized(self, X: Sequence[Any], Y: Sequence[Any]) -> DependencyTree:
        """A copy that knows from the data what it was not told."""
        sized = copy.copy(self)
        if self.n_columns is None:
            sized.n_columns = n_columns(X)
        if self.relations is None:
            sized.relations = relations_of(Y)
        if self.n_features is None:
            sized._taken = _PER_TOKEN * sum(len(x) for x in X if isinstance(x, Sized))
            sized._settle()
        return sized

    def _settle(self) -> None:
        self.n_features = min(max(self._taken, _LEAST), _MOST)

    def joined(self, others: Sequence[DependencyTree]) -> DependencyTree:
        """The model that knows what this one and others know, each sized on a part of the data."""
        whole = labelling.joined([self, *others], ["n_columns"], ["n_features"])
        whole.relations = sorted({name for model in (self, *others) for name in model._names})
        if self._taken:
            whole._taken = sum(model._taken for model in (self, *others))
            whole._settle()
        return whole

    @property
    def _names(self) -> list[str]:
        return labelling.sizes(self, "relations")[0]  # type: ignore[return-value]

    @property
    def n_weights(self) -> int:
        n, _ = labelling.sizes(self, "n_features", "n_columns")
        K = len(self._names)
        return n + K * max(n // K, 1) if K else n

    def __repr__(self) -> str:
        relations = self.relations if self.relations is None else f"{len(self.relations)} of them"
        kind = "" if self.projective else ", projective=False"
        return f"DependencyTree(relations={relations}, n_features={self.n_features}{kind}, loss={self.cost!r})"

    def features(self, x: object, y: object) -> sp.csr_matrix:
        X = self._sentences([x])
        tree = self._trees([y], X.offsets)
        rows = self._differences(X, np.zeros(1, np.int64), np.full_like(tree, -1), tree, X.offsets)
        n = rows.indptr[-1]
        values = -rows.data[:n].astype(np.float64)
        return sp.csr_matrix((values, rows.indices[:n], rows.indptr), shape=(1, self.n_weights))

    def loss(self, y: Any, y_hat: Any) -> float:
        (heads, relations), (others, named) = (self._tree(tree, len(tree), "y", strict=False) for tree in (y, y_hat))
        if heads.size != others.size:
            raise ValueError(f"A tree of {heads.size} words cannot be compared with one of {others.size}.")
        wrong = heads != others
        return float(np.count_nonzero(wrong | (relations != named) if self.cost == "labelled" else wrong))

    def predict(self, x: object, w: np.ndarray) -> Any:
        """The tree of the highest score, in the form of y: pairs of head and relation, or an array of heads."""
        return self.predict_all([x], w)[0]

    def predict_all(self, X: Sequence[Any], w: np.ndarray) -> list[Any]:
        """The best tree of every sentence."""
        sentences = self._sentences(X)
        found = self._search(sentences, np.arange(len(sentences)), w, np.empty((2, 0), np.int32))
        answers = self._answers(found, sentences.offsets)
        if not self._names:
            return answers
        return [[(h, self._names[k]) for h, k in answer.tolist()] for answer in answers]

    def most_violated(self, x: object, y: object, w: np.ndarray) -> np.ndarray:
        """The tree ŷ of the highest loss(y, ŷ) + w·φ(x, ŷ): rows of head and number of the relation, or heads."""
        return self.oracle([x], [y]).rivals(np.zeros(1, np.int64), w).labels[0]

    def tokens(self, x: object, y: Any) -> list[str] | None:  # reports ask so
        """The relation of every word, if the model has any."""
        names = self._names
        return [names[k] for k in self._tree(y, len(y), "y")[1].tolist()] if names else None

    def oracle(self, X: Sequence[Any], Y: Sequence[Any]) -> DependencyOracle:
        return DependencyOracle(self, X, Y)

    def _sentences(self, X: Any) -> HashedSentences:
        return HashedSentences.of(X, labelling.sizes(self, "n_columns")[0])

    def _layout(self) -> tuple[np.ndarray, np.ndarray]:
        """Templates of arcs and of relations."""
        return _FINE if self.n_columns == len(COLUMNS) else _PLAIN

    def _search(self, X: HashedSentences, ids: np.ndarray, w: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The best trees of some sentences, one after another, with costs if true trees are known."""
        first = labelling.starts(X.offsets, ids)
        found = np.empty((2, first[-1]), np.int32)
        (size,) = labelling.sizes(self, "n_features")
        settings = self.projective, self.single_root, 1.0, float(self.cost == "labelled")
        w = labelling.as_weights(w, self.n_weights)
        kernels.search(
            (X.keys, X.root), X.offsets, *self._layout(), w, size, len(self._names), settings, ids, y, first, found
        )
        return found

    def _differences(
        self, X: HashedSentences, ids: np.ndarray, y: np.ndarray, z: np.ndarray, first: np.ndarray
    ) -> Rows:
        """Rows φ(x, y) − φ(x, z)."""
        (size,) = labelling.sizes(self, "n_features")
        indptr = np.empty(ids.size + 1, np.int64)
        sizes = self.n_weights, size, len(self._names)
        indices, data = kernels.differences(
            (X.keys, X.root), X.offsets, *self._layout(), *sizes, ids, y, z, first, indptr
        )
        return Rows(indptr, indices, data, ids.size, self.n_weights)

    def _answers(self, found: np.ndarray, first: np.ndarray) -> list[np.ndarray]:
        """Trees as arrays: rows of head and relation, or heads alone."""
        flat = found.T if self._names else found[0]
        return [flat[a:b] for a, b in pairwise(first.tolist())]

    def _trees(self, Y: Sequence[Any], offsets: np.ndarray, what: str = "Y[{}]") -> np.ndarray:
        """Heads and relations of all sentences, one after another, checked."""
        if len(Y) != offsets.size - 1:
            raise ValueError(f"X has {offsets.size - 1} examples, Y has {len(Y)}. Give one tree for each.")
        trees = [self._tree(y, n, what.format(i)) for i, (y, n) in enumerate(zip(Y, np.diff(offsets), strict=True))]
        return np.concatenate([np.empty((2, 0)), *trees], axis=1).astype(np.int32)

    def _tree(self, y: Any, n: int, what: str, *, strict: bool = True) -> np.ndarray:
        """Heads and numbers of relations; −1 for relations that are not known, unless that is an error."""
        heads, relations = _columns(y, what)
        number = {name: k for k, name in enumerate(self._names)}
        K = len(number)
        labels = [_number_of(r, number) for r in relations] if K else [-1] * len(heads)
        if len(heads) != n:
            raise ValueError(f"{what} must have a head for each of {n} words, got {len(heads)}.")
        if len(labels) != n or (strict and K and not all(0 <= k < K for k in labels)):
            bad = [shown(r) for r, k in zip(relations, labels, strict=True) if not 0 <= k < K]
            known = ", ".join(self._names[:8]) + (", …" if K > 8 else "")
            raise ValueError(
                f"{what} has {f'the relation {bad[0]}' if bad else 'heads alone'}; every word needs one of "
                f"{known}. relations=[] learns heads alone, a list of names allows more."
            )
        tree = np.array([heads, labels], np.int64).reshape(2, n)
        _check_tree(tree[0], what)
        return tree


def _are_names(relations: Any) -> bool:
    listed = isinstance(relations, list | tuple) and all(isinstance(name, str) for name in relations)
    return listed and len(set(relations)) == len(relations)


def _number_of(relation: Any, number: dict[str, int]) -> int:
    """That of a name, −1 if it has none; answers have numbers already."""
    known = number.get(relation, -1) if isinstance(relation, str) else relation
    return int(known) if isinstance(known, int | np.integer) else -1


def _columns(y: Any, what: str) -> tuple[list[Any], list[Any]]:
    """Heads, and relations if there are any."""
    listed = y.tolist() if isinstance(y, np.ndarray) else list(y) if isinstance(y, list | tuple) else [None]
    pairs = [pair for pair in listed if isinstance(pair, tuple | list) and len(pair) == 2]
    heads = [head for head, _ in pairs] if pairs else listed
    whole_numbers = all(isinstance(h, int | np.integer) and not isinstance(h, bool) for h in heads)
    if not whole_numbers or len(heads) != len(listed):
        raise ValueError(
            f'{what} must be a list of pairs of head and relation, such as [(2, "nsubj"), (0, "root")], or of heads '
            f"alone; got {shown(y)}."
        )
    return heads, [relation for _, relation in pairs]


def _check_tree(heads: np.ndarray, what: str) -> None:
    """Every word must reach the root, which is 0."""
    n = heads.size
    if not n:
        return
    if heads.min() < 0 or heads.max() > n:
        bad = int(heads[(heads < 0) | (heads > n)][0])
        raise ValueError(f"{what} has the head {bad}; heads are 1 … {n}, or 0 for the root.")
    above = np.concatenate([[0], heads])
    for _ in range(n.bit_length()):
        above = above[above]
    if above.any():
        raise ValueError(f"{what} is no tree: word {int(np.argmax(above > 0))} is on a cycle, or below one.")


def _parsed(*texts: str) -> np.ndarray:
    """Columns and offsets of the parts of templates: (templates, sides, parts, 2), a column of −1 ends them."""
    templates = [template for text in texts for template in text.split(";")]
    table = np.full((len(templates), 2, 3, 2), -1, np.int64)
    for row, template in zip(table, templates, strict=True):
        for side, mark in zip(row, "hd", strict=True):
            atoms = [atom for atom in template.split() if atom[0] == mark]
            for place, atom in zip(side, atoms, strict=False):
                place[:] = "wtf".index(atom[1]), {"": 0, "-": -1, "+": 1}[atom[2:]]
    return table


_PLAIN = _parsed(_ARCS), _parsed(_RELATIONS, _MORE_RELATIONS)
_FINE = _parsed(_ARCS, _FINE_ARCS), _parsed(_RELATIONS, _FINE_RELATIONS, _MORE_RELATIONS.replace("t", "f"))


class DependencyOracle:
    """The model bound to sentences: whole batches are searched in one compiled call."""

    releases_gil = True

    def __init__(self, model: DependencyTree, X: Sequence[Any], Y: Sequence[Any]) -> None:
        self.model = model
        self.X = model._sentences(X)
        self.n_examples, self.n_weights = len(self.X), model.n_weights
        self.y = model._trees(Y, self.X.offsets)

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        found = self.model._search(self.X, ids, w, self.y)
        return replace(self._planes(ids, found), rounding=partial(self._rounding, ids, w))

    def planes(self, ids: np.ndarray, labels: Sequence[Any]) -> Rivals:
        first = labelling.starts(self.X.offsets, ids)
        found = self.model._trees(labels, first, "Answer {}")
        model, true = self.model, self._count(self._true(ids, first) != found, first) == 0
        fault = spanning_trees.first_fault(found[0], first, true, model.projective, model.single_root)
        if fault >= 0:
            raise ValueError(f"Answer {fault} has several words below the root or arcs that cross, which may not be.")
        return self._planes(ids, found)

    def _planes(self, ids: np.ndarray, found: np.ndarray) -> Rivals:
        """All sums here are of whole numbers: exact."""
        first = labelling.starts(self.X.offsets, ids)
        rows = self.model._differences(self.X, ids, self.y, found, first)
        wrong = self._true(ids, first) != found
        losses = self._count(wrong if self.model.cost == "labelled" else wrong[:1], first)
        return Rivals(self.model._answers(found, first), rows, losses)

    def _true(self, ids: np.ndarray, first: np.ndarray) -> np.ndarray:
        """True heads and relations of some sentences, one after another."""
        return self.y[:, np.repeat(self.X.offsets[ids] - first[:-1], np.diff(first)) + np.arange(first[-1])]

    @staticmethod
    def _count(wrong: np.ndarray, first: np.ndarray) -> np.ndarray:
        """How many words of each sentence are wrong in one way or another."""
        return np.diff(np.concatenate([[0], np.cumsum(wrong.any(axis=0))])[first]).astype(np.float64)

    def _rounding(self, ids: np.ndarray, w: np.ndarray) -> np.ndarray:
        """By how much rounding may have hidden a better tree.

        Contracting a cycle takes one score from another, n times at most, of which those of the root may be n times as
        large as others.
        """
        n = np.diff(self.X.offsets)[ids].astype(np.float64)
        arcs, relations = self.model._layout()
        n_terms = 2.0 * len(arcs) + len(relations) + n
        each = n_terms * np.abs(w).max(initial=0.0) + 2.0
        if self.model.projective:
            return search_rounding(n * each, n_terms + 8.0 * n)
        return search_rounding(n * (2.0 * n + 3.0) * each, n_terms + n * n + 8.0)

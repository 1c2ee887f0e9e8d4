"""Parse trees against listing every one, and against the cone solver."""

import numpy as np
import pytest
import scipy.sparse as sp
from compiled import equals_its_source
from hypothesis import given, settings, strategies as st
from user_models import dense, has_the_optimum_of_a_cone_solver

import maxmargin as mm
from maxmargin.checks import check_model
from maxmargin.kernels import grammar as kernels
from maxmargin.models import Grammar

few = settings(max_examples=60, deadline=None)
ENGLISH = [("S", "NP", "VP"), ("NP", "D", "N"), ("NP", "N"), ("NP", "NP", "PP"), ("PP", "P", "NP"), ("VP", "V", "NP"),
           ("VP", "VP", "PP"), ("VP", "V")]  # fmt: skip
CHAINS = [("S", "S", "S"), ("S", "A"), ("A", "B"), ("A", "a"), ("B", "b"), ("B", "a"), ("S", "b", "B")]
GRAMMARS = [(ENGLISH, "S"), (CHAINS, "S")]


def all_trees(model, n, symbol=None):
    """Every tree over n tokens."""
    symbol = symbol or model.start
    if symbol in model.over_tokens:
        if n == 1:
            yield symbol
        return
    for rule in model.rules:
        if rule[0] != symbol:
            continue
        if len(rule) == 2:
            yield from ((symbol, below) for below in all_trees(model, n, rule[1]))
        else:
            for m in range(1, n):
                for left in all_trees(model, m, rule[1]):
                    yield from ((symbol, left, right) for right in all_trees(model, n - m, rule[2]))


def leaves(tree):
    return [tree] if isinstance(tree, str) else [leaf for child in tree[1:] for leaf in leaves(child)]


def used(tree):
    """The rules of a tree, as often as it uses them."""
    if isinstance(tree, str):
        return []
    head = lambda node: node if isinstance(node, str) else node[0]  # noqa: E731
    return [(tree[0], *map(head, tree[1:])), *(rule for child in tree[1:] for rule in used(child))]


def nodes(tree, at=0):
    """(start, end, symbol) of all nodes."""
    if isinstance(tree, str):
        return {(at, at + 1, tree)}, at + 1
    found, end = set(), at
    for child in tree[1:]:
        below, end = nodes(child, end)
        found |= below
    return found | {(at, end, tree[0])}, end


def data(rng, model, sizes=(1, 2, 3, 4), whole=False):
    X, Y = [], []
    for n in sizes:
        every = list(all_trees(model, n))
        if every:
            shape = n, model.n_features
            X.append(rng.integers(0, 2, shape).astype(float) if whole else rng.normal(size=shape))
            Y.append(every[int(rng.integers(len(every)))])
    return X, Y


@st.composite
def cases(draw):
    rules, start = draw(st.sampled_from(GRAMMARS))
    model, rng = Grammar(rules, start, n_features=2), np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    whole = draw(st.booleans())
    X, Y = data(rng, model, whole=whole)
    w = rng.integers(-1, 2, model.n_weights).astype(float) if whole else rng.normal(size=model.n_weights)
    return model, X, Y, w


def score(model, x, tree, w):
    """Taken from the definition."""
    K = len(model.over_tokens)
    weights = dict(zip(model.rules, w[2 * K :], strict=True))
    tokens = sum(
        row @ w[: 2 * K].reshape(2, K)[:, model.over_tokens.index(s)] for row, s in zip(x, leaves(tree), strict=True)
    )
    return tokens + sum(weights[rule] for rule in used(tree))


@few
@given(cases(), st.booleans())
def test_predictions_and_worst_offenders_are_the_best_of_all_trees(case, sparse):
    model, X, Y, w = case
    given = [sp.csr_matrix(x) for x in X] if sparse else X
    rivals = model.oracle(given, Y).rivals(np.arange(len(X)), w)
    for i, (x, y, found) in enumerate(zip(X, Y, model.predict_all(given, w), strict=True)):
        every = list(all_trees(model, len(x)))
        assert found in every
        assert score(model, x, found, w) == pytest.approx(max(score(model, x, z, w) for z in every), abs=1e-9)
        value = {z: len(nodes(y)[0] ^ nodes(z)[0]) + score(model, x, z, w) for z in every}
        worst = rivals.labels[i]
        assert rivals.losses[i] == model.loss(y, worst)
        reached = rivals.losses[i] + dense(model.features(x, worst)) @ w
        assert reached == pytest.approx(max(value.values()), abs=1e-9)


@few
@given(cases())
def test_features_add_up_to_the_score_and_the_loss_counts_nodes(case):
    model, X, Y, w = case
    for x, y in zip(X, Y, strict=True):
        for z in all_trees(model, len(x)):
            assert dense(model.features(x, z)) @ w == pytest.approx(score(model, x, z, w), abs=1e-9)
            assert model.loss(y, z) == len(nodes(y)[0] ^ nodes(z)[0])


@pytest.mark.parametrize(("rules", "start"), GRAMMARS)
def test_the_model_is_sound_and_its_optimum_that_of_a_cone_solver(rng, rules, start):
    model = Grammar(rules, start, n_features=2)
    X, Y = data(rng, model, (2, 3, 3, 4))
    check_model(Grammar(rules, start), X, Y)
    has_the_optimum_of_a_cone_solver(Grammar(rules, start), X, Y, lambda x: list(all_trees(model, len(x))), 0.5)


def test_kernels_equal_their_source(rng):
    model = Grammar(ENGLISH, "S")
    X, Y = data(rng, Grammar(ENGLISH, "S", n_features=2), (2, 4))
    oracle = model.sized(X, Y).oracle(X, Y)
    (unary, binary), offsets = model._rule_tables(), oracle.X.offsets
    score = rng.normal(size=(int(offsets[-1]), len(model.symbols)))
    score[:, [k for k, name in enumerate(model.symbols) if name not in model.over_tokens]] = -np.inf
    tables = (score, offsets, 0, binary, unary, rng.normal(size=len(ENGLISH)), True, oracle.y.nodes, oracle.y.first)
    found = np.zeros((60, 4), np.int32)
    equals_its_source(kernels.search, *tables, np.arange(2), found, np.zeros(3, np.int64))


def test_a_grammar_is_saved_and_loaded(rng, tmp_path):
    X, Y = data(rng, Grammar(ENGLISH, "S", n_features=2), (2, 3, 4, 4))
    svm = mm.StructuralSVM(Grammar(ENGLISH, "S"), random_state=0).fit(X, Y)
    svm.save(tmp_path / "m.mm")
    again = mm.load(tmp_path / "m.mm")
    assert again.certify(X, Y).lower == pytest.approx(svm.certificate_.lower)
    assert again.predict(X) == svm.predict(X)
    assert again.model_.rule_weights(again.coef_).keys() == set(ENGLISH)
    svm.report(tmp_path / "r.html", X, Y)
    assert "Which label was taken for which" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (("S", "D", "N"), r"uses \('S', 'D', 'N'\), which is none of the rules"),
        (("NP", "D", "N"), "no S over the sentence"),
        (("S", ("NP", "N"), ("VP", "V", ("NP", "N"))), "no tree over 2 tokens"),
        (("S", "NP", ("VP", "V")), "NP over a token"),
        (("S", ("NP", "X"), ("VP", "V")), "the symbol 'X', which no rule has"),
        (("S",), "a tree of names"),
        (np.zeros((2, 2), int), r"rows \(start, end, symbol\)"),
        (np.array([[0, 2, 0], [0, 1, 1], [0, 1, 4]]), "covers 1 tokens"),
    ],
)
def test_what_is_no_tree_of_the_grammar_is_said(y, message):
    with pytest.raises(ValueError, match=message):
        mm.StructuralSVM(Grammar(ENGLISH, "S")).fit([np.ones((2, 1))], [y])


@pytest.mark.parametrize(
    ("rules", "start", "message"),
    [
        ([("S", "A"), ("A", "S")], "S", "lead back to their parent"),
        ([("S", "A", "B", "C")], "S", "a list of different tuples"),
        ([("S", "A"), ("S", "A")], "S", "a list of different tuples"),
        (["SAB"], "S", "a list of different tuples.*got 'SAB'"),
        ([3], "S", "a list of different tuples.*got 3"),
        ("S", "S", "a list of different tuples"),
        ([("S", "A")], "A", r"one of \['S'\]; got 'A'"),
    ],
)
def test_rules_are_checked(rules, start, message):
    with pytest.raises(ValueError, match=message):
        Grammar(rules, start)


def test_sentences_without_a_tree_are_named():
    with pytest.raises(ValueError, match="Sequence 0 has 3 tokens, and the grammar has no tree"):
        Grammar([("S", "A", "B")], "S", n_features=1).predict(np.ones((3, 1)), np.zeros(3))


@pytest.mark.filterwarnings("error")
def test_sentences_with_one_tree_each_leave_nothing_to_learn():
    truth = ("S", ("NP", "N"), ("VP", "V"))
    svm = mm.StructuralSVM(Grammar(ENGLISH, "S")).fit([np.eye(2)], [truth])
    assert svm.predict([np.eye(2)]) == [truth]
    assert svm.certificate_.upper < 1e-9

"""Dependency trees against trying every one, and against the cone solver."""

from itertools import product

import numpy as np
import pytest
from compiled import equals_its_source
from hypothesis import given, settings, strategies as st
from user_models import dense, has_the_optimum_of_a_cone_solver

import maxmargin as mm
from maxmargin.checks import check_model
from maxmargin.kernels import arcs, spanning_trees
from maxmargin.models import DependencyTree

few = settings(max_examples=60, deadline=None)
RELATIONS = ["det", "obj", "root"]
WORDS = [("the", "D", "DT"), ("A", "D", "DT"), ("dog", "N", "NN"), ("dogs", "N", "NNS"), ("barks", "V", "VBZ")]


def is_tree(heads):
    for d in range(1, len(heads) + 1):
        seen, above = set(), d
        while above and above not in seen:
            seen.add(above)
            above = heads[above - 1]
        if above:
            return False
    return True


def crosses(heads):
    spans = [sorted((h, d)) for d, h in enumerate(heads, 1)]
    return any(a < c < b < e for a, b in spans for c, e in spans)


def all_heads(n, projective, single_root):
    """Of every tree of n words."""
    for heads in product(range(n + 1), repeat=n):
        if is_tree(heads) and not (projective and crosses(heads)) and not (single_root and heads.count(0) > 1):
            yield list(heads)


def all_trees(model, n):
    for heads in all_heads(n, model.projective, model.single_root):
        for names in product(model.relations or [None], repeat=n):
            yield list(zip(heads, names, strict=True)) if model.relations else heads


def data(rng, model, n_sentences=4, most=3):
    X, Y = [], []
    for _ in range(n_sentences):
        n = int(rng.integers(1, most + 1))
        tokens = [WORDS[k] for k in rng.integers(len(WORDS), size=n)]
        X.append([token[0] if model.n_columns == 1 else token[: model.n_columns] for token in tokens])
        every = list(all_trees(model, n))
        Y.append(every[rng.integers(len(every))])
    return X, Y


@st.composite
def cases(draw):
    """A model with a table so small that features meet, sentences, true trees and weights; often with ties."""
    projective, single_root = draw(st.booleans()), draw(st.booleans())
    relations = RELATIONS[: draw(st.integers(0, 2))]
    loss = draw(st.sampled_from(("labelled", "unlabelled")))
    sizes = {"n_features": draw(st.sampled_from((5, 300))), "n_columns": draw(st.integers(1, 3))}
    model = DependencyTree(relations, projective=projective, single_root=single_root, loss=loss, **sizes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X, Y = data(rng, model, 2, 3 if relations else 4)
    w = rng.integers(-1, 2, model.n_weights).astype(float) if draw(st.booleans()) else rng.normal(size=model.n_weights)
    return model, X, Y, w


def score(model, x, y, w):
    return float(dense(model.features(x, y)) @ w)


@few
@given(cases())
def test_predictions_and_worst_offenders_are_the_best_of_all_trees(case):
    model, X, Y, w = case
    rivals = model.oracle(X, Y).rivals(np.arange(len(X)), w)
    for i, (x, y, found) in enumerate(zip(X, Y, model.predict_all(X, w), strict=True)):
        every = list(all_trees(model, len(x)))
        assert (found if model.relations else found.tolist()) in every
        assert score(model, x, found, w) == pytest.approx(max(score(model, x, z, w) for z in every), abs=1e-9)
        worst = rivals.labels[i]
        assert rivals.losses[i] == model.loss(y, worst)
        reached = model.loss(y, worst) + score(model, x, worst, w)
        assert reached == pytest.approx(max(model.loss(y, z) + score(model, x, z, w) for z in every), abs=1e-9)


@few
@given(cases())
def test_the_loss_counts_words_with_a_wrong_head_or_relation(case):
    model, X, Y, _ = case
    for x, y in zip(X, Y, strict=True):
        for z in all_trees(model, len(x)):
            if model.relations and model.cost == "unlabelled":
                wrong = sum(a[0] != b[0] for a, b in zip(y, z, strict=True))
            else:
                wrong = sum(a != b for a, b in zip(y, z, strict=True))
            assert model.loss(y, z) == wrong


@few
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.booleans(), st.booleans(), st.booleans())
def test_the_searches_find_the_best_of_all_trees(seed, n, projective, single_root, whole):
    rng = np.random.default_rng(seed)
    score = rng.integers(-3, 4, (n + 1, n + 1)).astype(float) if whole else rng.normal(size=(n + 1, n + 1))
    heads = np.zeros(n + 1, np.int64)
    given = score.copy()
    if projective:
        rooms, stack = spanning_trees.rooms_for(n)
        spanning_trees.projective(given, n, single_root, rooms, stack, heads)
    else:
        if single_root:
            spanning_trees.discourage_roots(given, n)
        spanning_trees.spanning(given, n, heads)
    every = list(all_heads(n, projective, single_root))
    total = lambda heads: sum(score[d, h] for d, h in enumerate(heads, 1))  # noqa: E731
    assert heads[1:].tolist() in every
    assert total(heads[1:]) == pytest.approx(max(map(total, every)), abs=1e-9)


@pytest.mark.parametrize("size", [0.0, 1e17, 1e200])
def test_one_word_is_below_the_root_however_large_scores_are(rng, size):
    for _ in range(20):
        score, heads = size + rng.integers(-3, 4, (5, 5)).astype(float), np.zeros(5, np.int64)
        spanning_trees.discourage_roots(score, 4)
        spanning_trees.spanning(score, 4, heads)
        assert np.count_nonzero(heads[1:] == 0) == 1


def test_long_sentences_of_contracted_cycles_agree_with_projective_search(rng):
    """Where no two arcs of the best tree cross both searches must find it: here arcs between neighbours are best."""
    n = 40
    score = rng.normal(size=(n + 1, n + 1))
    score[np.abs(np.subtract.outer(np.arange(n + 1), np.arange(n + 1))) > 1] -= 100.0
    found = []
    for search in ("projective", "spanning"):
        heads = np.zeros(n + 1, np.int64)
        more = spanning_trees.rooms_for(n) if search == "projective" else ()
        arguments = (score.copy(), n, False, *more, heads) if more else (score.copy(), n, heads)
        getattr(spanning_trees, search)(*arguments)
        found.append(heads[1:].tolist())
    assert found[0] == found[1] and is_tree(found[0])


@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize(
    ("loss", "relations"), [("labelled", ["det", "obj"]), ("unlabelled", ["det", "obj"]), ("unlabelled", [])]
)
def test_the_model_is_sound_and_its_optimum_that_of_a_cone_solver(rng, projective, loss, relations):
    model = DependencyTree(relations, projective=projective, loss=loss, n_features=20, n_columns=2)
    X, Y = data(rng, model)
    check_model(model, X, Y)
    has_the_optimum_of_a_cone_solver(model, X, Y, lambda x: list(all_trees(model, len(x))), 0.5)


def test_true_trees_may_be_any(rng):
    """One that is not projective is learned from beside rivals that are."""
    X, Y = [["a", "b", "c", "d"]], [[2, 0, 2, 3]]
    crossing = [[3, 4, 0, 3]]
    assert crosses(crossing[0]) and not crosses(Y[0])
    for truth in (Y, crossing):
        svm = mm.StructuralSVM(DependencyTree(), C=10.0, tol=1e-4, random_state=0).fit(X, truth)
        assert svm.certificate_.relative_gap <= 1e-4
        assert svm.predict(X)[0].tolist() == Y[0] if truth is Y else svm.predict(X)[0].tolist() != crossing[0]
    free = mm.StructuralSVM(DependencyTree(projective=False), C=10.0, random_state=0).fit(X, crossing)
    assert free.predict(X)[0].tolist() == crossing[0]


@pytest.mark.parametrize("truth", [[3, 4, 0, 3], [2, 0, 2, 3]])
def test_answers_that_may_not_be_prove_nothing(truth):
    """Dual variables of other settings may name them."""
    x, example = ["a", "b", "c", "d"], np.zeros(1, np.int64)
    crossing, two_roots = [3, 0, 2, 2], [0, 1, 0, 3]
    oracle = DependencyTree([], n_columns=1, n_features=64).oracle([x], [truth])
    for answer in (crossing, two_roots):
        with pytest.raises(ValueError, match="Answer 0 has several words below the root or arcs that cross"):
            oracle.planes(example, [answer])
    assert oracle.planes(example, [truth]).losses == [0.0]
    free = DependencyTree([], n_columns=1, n_features=64, projective=False, single_root=False).oracle([x], [truth])
    assert free.planes(example, [crossing]).losses > 0 and free.planes(example, [two_roots]).losses > 0


def test_features_of_words_between_count_each_tag_once():
    model = DependencyTree([], n_features=1 << 20, n_columns=2)
    sizes = []
    for between in (["N"], ["N", "N"], ["N", "V"]):
        x = [("a", "D"), *(("x", tag) for tag in between), ("b", "D")]
        n = len(x)
        arc, none = [n, *[0] * (n - 1)], [0] * n  # the first word under the last one, and under the root
        both = dense(model.features(x, arc)) - dense(model.features(x, none))
        sizes.append(int(both[both > 0].sum()))
    assert sizes == [sizes[0], sizes[0], sizes[0] + 1]


@pytest.mark.parametrize("projective", [True, False])
def test_sentences_of_one_word_and_of_none_have_one_tree(projective):
    X, Y = [["a", "b"], [], ["c"]], [[2, 0], [], [0]]
    parser = mm.StructuralSVM(DependencyTree(projective=projective), C=10.0, random_state=0).fit(X, Y)
    assert [tree.tolist() for tree in parser.predict(X)] == Y


def test_a_model_learns_its_sizes_from_parts_of_the_data_as_from_the_whole(rng):
    X, Y = data(rng, DependencyTree(RELATIONS, n_features=5, n_columns=3), 6)
    whole = DependencyTree().sized(X, Y)
    parts = [DependencyTree().sized(X[:2], Y[:2]), DependencyTree().sized(X[2:], Y[2:])]
    joined = parts[0].joined(parts[1:])
    assert (joined.relations, joined.n_weights) == (whole.relations, whole.n_weights)
    source = mm.data.open(lambda: zip(X, Y, strict=True))
    svm = mm.StructuralSVM(DependencyTree(), random_state=0).fit(source)
    assert svm.model_.n_weights == whole.n_weights


def test_kernels_equal_their_source(rng):
    model = DependencyTree(RELATIONS[:2], n_features=40, n_columns=3)
    X, Y = data(rng, model)
    oracle = model.oracle(X, Y)
    sentences, first, ids = (oracle.X.keys, oracle.X.root), oracle.X.offsets, np.arange(len(X))
    w, z = rng.normal(size=model.n_weights), oracle.y[:, ::-1].copy()
    for projective in (True, False):
        settings = projective, True, 1.0, 1.0
        equals_its_source(
            arcs.search, sentences, first, *model._layout(), w, 40, 2, settings, ids, oracle.y, first, z.copy()
        )
    indptr = np.empty(ids.size + 1, np.int64)
    equals_its_source(
        arcs.differences, sentences, first, *model._layout(), w.size, 40, 2, ids, oracle.y, z, first, indptr
    )


def test_a_parser_is_saved_and_loaded(rng, tmp_path):
    X, Y = data(rng, DependencyTree(RELATIONS, n_features=5, n_columns=2), 5)
    svm = mm.StructuralSVM(DependencyTree(loss="unlabelled", projective=False), random_state=0).fit(X, Y)
    svm.save(tmp_path / "m.mm")
    again = mm.load(tmp_path / "m.mm")
    assert again.certify(X, Y).lower == pytest.approx(svm.certificate_.lower)
    assert again.predict(X) == svm.predict(X)


def test_a_report_compares_relations(rng, tmp_path):
    X, Y = data(rng, DependencyTree(RELATIONS, n_features=5, n_columns=2), 5)
    svm = mm.StructuralSVM(DependencyTree(), random_state=0).fit(X, Y)
    svm.report(tmp_path / "r.html", X, Y)
    assert "Which label was taken for which" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (["a", "b"], [(2, "det")], "a head for each of 2 words"),
        (["a", "b"], [(2, "det"), (3, "det")], r"the head 3; heads are 1 … 2"),
        (["a", "b"], [(2, "det"), (1, "det")], "no tree: word 1 is on a cycle"),
        (["a", "b"], [(2, "det"), (0, "who")], "the relation 'who'.*one of det"),
        (["a", "b"], [(2, "det"), (0, None)], "the relation None.*one of det"),
        (["a", "b"], [(2, "det"), (0, 0.5)], r"the relation 0\.5.*one of det"),
        (["a", "b"], [2, 0], "heads alone.*one of det"),
        (["a", "b"], [("2", "det"), (0, "det")], "pairs of head and relation"),
        ([("a", "b"), ("a", "b")], [(2, "det"), (0, "det")], "needs text for word"),
    ],
)
def test_what_is_no_tree_is_said(x, y, message):
    with pytest.raises(ValueError, match=message):
        mm.StructuralSVM(DependencyTree(["det"], n_columns=1)).fit([x], [y])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"relations": "det"}, "list of different names"),
        ({"relations": ["det", "det"]}, "list of different names"),
        ({"n_columns": 4}, "at most 3"),
        ({"loss": "hamming"}, "one of"),
        ({"projective": "yes"}, "True or False"),
    ],
)
def test_settings_are_checked(wrong, message):
    with pytest.raises(ValueError, match=message):
        DependencyTree(**wrong)


def test_tokens_of_four_columns_are_refused():
    with pytest.raises(ValueError, match="a word, its tag and a finer tag"):
        mm.StructuralSVM(DependencyTree()).fit([[("a", "b", "c", "d")]], [[0]])

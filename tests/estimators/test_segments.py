"""Taggers of segments: no illegal answer, whatever the weights; segments of answers; constraints at both ends."""

from itertools import pairwise, product

import numpy as np
import pytest
from spelling import LETTERS, labels_of, segmentations, spelled, spellings
from user_models import is_allowed

import maxmargin as mm
from maxmargin import SequenceSVM
from maxmargin.data.segments import fits, forbidden
from maxmargin.metrics import segment_scores, segments
from maxmargin.models import Chain

ALL = [*LETTERS]
TYPES = {"two": ("X", "Y"), "bare": ("_",)}


def _chain(scheme, types, n_features=2, **settings):
    labels = labels_of(scheme, types)
    return labels, Chain(len(labels), n_features, **forbidden(labels, scheme), **settings)


@pytest.mark.parametrize("scheme", ALL)
@pytest.mark.parametrize("types", TYPES.values(), ids=TYPES)
def test_a_chain_allows_what_the_scheme_allows(scheme, types):
    labels, chain = _chain(scheme, types)
    for n in range(1, 5 if types == ("_",) else 4):
        answers = (tuple(labels[k] for k in z) for z in product(range(len(labels)), repeat=n) if is_allowed(chain, z))
        assert set(answers) == set(spellings(n, scheme, types))


@pytest.mark.parametrize("scheme", ALL)
@pytest.mark.parametrize("types", TYPES.values(), ids=TYPES)
def test_no_weights_give_an_illegal_answer(scheme, types, rng):
    """10 000 weight vectors in all, on sequences of all lengths up to five."""
    labels, chain = _chain(scheme, types, bias=True, start=True, end=True)
    legal = {n: set(spellings(n, scheme, types)) for n in range(1, 6)}
    X = [rng.normal(size=(n, 2)) for n in legal]
    for trial in range(1000):
        w = rng.normal(size=chain.n_weights) * 10.0 ** rng.integers(-2, 3)
        paths = [*chain.predict_all(X, w), *(path for path, _ in chain.k_best(X[trial % 5], w, 4))]
        for path in paths:
            assert tuple(labels[k] for k in path) in legal[path.size]


def _text(scheme, seed=0, n=12, types=("X", "Y")):
    """Sentences whose words say little about their labels."""
    rng = np.random.default_rng(seed)
    Y = []
    for i in range(n):
        length = 3 + i % 3
        choices = list(segmentations(length, types))
        Y.append(spelled(choices[int(rng.integers(len(choices)))], length, scheme))
    return [[f"{label[0] if rng.random() < 0.5 else ''}{rng.integers(3)}" for label in y] for y in Y], Y


@pytest.mark.parametrize("scheme", ALL)
def test_a_tagger_answers_in_segments(scheme, rng, tmp_path):
    X, Y = _text(scheme)
    tagger = SequenceSVM(segments=scheme, random_state=0).fit(X, Y)
    assert tagger.certificate_.relative_gap <= tagger.tol
    assert tagger.certify(X, Y).upper == pytest.approx(tagger.certificate_.upper, rel=1e-9)
    tagger.save(tmp_path / "segments.mm")
    loaded = mm.load(tmp_path / "segments.mm")
    assert loaded.segments == scheme
    assert loaded.predict_segments(X) == tagger.predict_segments(X) == segments(tagger.predict(X), scheme)
    for model in (tagger, loaded):
        model.coef_ = rng.normal(size=model.coef_.size)
        sentences = [x[:n] for x in X for n in range(1, 1 + len(x))]
        assert fits(model.predict(sentences), scheme)
        assert fits([labels for labels, _ in model.k_best(X[0], 20)], scheme)


def test_score_counts_segments_and_stays_a_share_of_tokens_without():
    X, Y = _text("iob2")
    weight = np.arange(len(X))
    tagger, plain = SequenceSVM(segments="iob2", random_state=0).fit(X, Y), SequenceSVM(random_state=0).fit(X, Y)
    scores = segment_scores(Y, tagger.predict(X))
    assert tagger.segment_scores(X, Y) == scores
    assert tagger.score(X, Y) == scores.micro.f1 != scores.accuracy
    assert tagger.score(X, Y, weight) == segment_scores(Y, tagger.predict(X), sample_weight=weight).micro.f1
    assert plain.score(X, Y) == segment_scores(Y, plain.predict(X)).accuracy
    assert plain.predict_segments(X) == segments(plain.predict(X))
    # True labels that break the scheme are counted as they are read, and are no reason to stop.
    assert 0.0 < tagger.score(X, [["I" + label[1:] if label[0] == "B" else label for label in y] for y in Y]) < 1.0


def test_all_kinds_of_fit_have_the_same_constraints():
    X, Y = _text("iob2", n=24)
    settings = {"segments": "iob2", "allowed_transitions": "observed", "random_state": 0, "tol": 1e-4}
    whole = SequenceSVM(**settings).fit(X, Y)
    from_source = SequenceSVM(**settings).fit(mm.data.open(lambda: zip(X, Y, strict=True), chunk_rows=5))
    stream = SequenceSVM(**settings)
    for at in range(0, 24, 6):
        stream.partial_fit(X[at : at + 6], Y[at : at + 6], classes=whole.classes_)
    seen = {pair for y in Y for pair in pairwise(y)}
    expected = forbidden(whole.classes_.tolist(), "iob2")
    labels = whole.classes_.tolist()
    expected["forbidden"] |= [[(a, b) not in seen for b in labels] for a in labels]
    for name, table in expected.items():
        for tagger in (whole, from_source, stream):
            np.testing.assert_array_equal(getattr(tagger.model_, name), table)
    assert from_source.certificate_.upper == pytest.approx(whole.certificate_.upper, rel=1e-3)


def test_a_stream_and_a_source_refuse_labels_that_break_the_scheme():
    X, Y = _text("iob2")
    bad = [*Y[:7], ["O", "O", "I-X", "O", "O"][: len(Y[7])], *Y[8:]]
    tagger = SequenceSVM(segments="iob2", random_state=0)
    with pytest.raises(mm.data.DataError, match=r"examples 5 to 9 of the source.*: Y\[2\] has 'I-X' after 'O'"):
        tagger.fit(mm.data.open(lambda: zip(X, bad, strict=True), chunk_rows=5))
    stream = tagger.partial_fit(X[:5], Y[:5], classes=sorted({label for y in Y for label in y}))
    with pytest.raises(ValueError, match=r"Y\[2\] has 'I-X' after 'O' at token 2"):
        stream.partial_fit(X[5:], bad[5:])
    with pytest.raises(ValueError, match="The labels have 'NOUN', which does not belong to segments='iob2'"):
        SequenceSVM(segments="iob2").partial_fit(X[:5], Y[:5], classes=[*labels_of("iob2"), "NOUN"])
    with pytest.raises(ValueError, match=r"Y\[7\] has 'I-X' after 'O' at token 2"):
        stream.certify(X, bad)


def test_listed_starts_and_ends_are_obeyed():
    X, Y = [[["a"], ["b"]], [["a"], ["a"], ["b"]]], [["A", "B"], ["A", "A", "B"]]
    inside = [("A", "A"), ("A", "B"), ("B", "B")]
    tagger = SequenceSVM(C=1.0, allowed_transitions=[*inside, (None, "A"), ("B", None)], random_state=0).fit(X, Y)
    assert tagger.predict([[["b"], ["b"]], [["a"], ["a"]]]).tolist() == [["A", "B"], ["A", "B"]]
    assert tagger.model_.forbidden_start.tolist() == [False, True]
    assert tagger.model_.forbidden_end.tolist() == [True, False]
    free = SequenceSVM(C=1.0, allowed_transitions=inside, random_state=0).fit(X, Y)
    assert free.model_.forbidden_start is None and free.model_.forbidden_end is None
    assert free.predict([[["b"]]]).tolist() == [["B"]]
    with pytest.raises(ValueError, match="1 tokens, and every labelling of that length is forbidden"):
        tagger.predict([[["b"]]])


def test_listed_transitions_and_segments_must_both_allow():
    X, Y = [["a", "b", "c"], ["b", "a"]], [["B", "I", "O"], ["O", "B"]]
    pairs = [(a, b) for a in "BIO" for b in "BIO" if (a, b) != ("I", "I")] + [(None, "I"), (None, "B"), (None, "O")]
    tagger = SequenceSVM(segments="iob2", allowed_transitions=pairs, random_state=0).fit(X, Y)
    assert tagger.model_.forbidden.tolist() == [[False, False, False], [False, True, False], [False, True, False]]
    assert tagger.model_.forbidden_start.tolist() == [False, True, False]
    assert tagger.predict_segments(X) == [[(0, 2, "_")], [(1, 2, "_")]]

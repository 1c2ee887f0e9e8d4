"""Probabilities of chains against the sum over all labellings, finite differences, and scores of any size."""

from itertools import combinations

import numpy as np
import pytest
from compiled import equals_its_source
from hypothesis import given, settings, strategies as st
from user_models import labellings

from maxmargin.kernels import marginals as kernels
from maxmargin.models import Chain
from maxmargin.models.distribution import ChainDistribution, ChainScores, calibrated

EXAMPLES = settings(max_examples=40, deadline=None)


@st.composite
def cases(draw):
    """A small chain with some pairs ruled out, sequences of different lengths, weights of some size, and offsets."""
    K = draw(st.integers(2, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    forbidden = (rng.random((K, K)) < 0.4) & ~np.eye(K, dtype=bool) if draw(st.booleans()) else None
    parts = {part: draw(st.booleans()) for part in ("bias", "start", "end", "transitions")}
    model = Chain(K, 2, forbidden=forbidden, **parts)
    X = [rng.normal(size=(n, 2)) for n in (1, draw(st.integers(2, 4)), 3)]
    w = draw(st.sampled_from([0.1, 1.0, 30.0, 2000.0])) * rng.normal(size=model.n_weights)
    temperature = draw(st.sampled_from([0.5, 1.0, 7.0]))
    offsets = rng.normal(size=K) if draw(st.booleans()) else None
    return model, X, w, temperature, offsets


def _listed(model, x, w, temperature, offsets):
    """All labellings that are allowed, and their probabilities."""
    everything = [np.array(y) for y in labellings(model, x)]
    b = np.zeros(model.n_labels) if offsets is None else offsets
    scores = np.array([(model.features(x, y) @ w)[0] / temperature + b[y].sum() for y in everything])
    odds = np.exp(scores - scores.max())
    return everything, odds / odds.sum(), scores.max() + np.log(odds.sum())


@EXAMPLES
@given(case=cases())
def test_marginals_are_sums_over_all_labellings(case):
    model, X, *rest = case
    for x, found in zip(X, ChainDistribution(model, X, *rest).marginals(), strict=True):
        everything, p, _ = _listed(model, x, *rest)
        expected = sum(p[i] * np.eye(model.n_labels)[y] for i, y in enumerate(everything))
        np.testing.assert_allclose(found, expected, atol=1e-9)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)


@EXAMPLES
@given(case=cases(), data=st.data())
def test_probabilities_of_labellings_are_their_shares(case, data):
    model, X, *rest = case
    distribution = ChainDistribution(model, X, *rest)
    listed = [_listed(model, x, *rest) for x in X]
    chosen = [data.draw(st.integers(0, len(p) - 1)) for _, p, _ in listed]
    found = distribution.log_probabilities(
        [everything[i] for (everything, _, _), i in zip(listed, chosen, strict=True)]
    )
    expected = [np.log(max(p[i], 1e-300)) for (_, p, _), i in zip(listed, chosen, strict=True)]
    near = np.array(expected) > -600.0
    np.testing.assert_allclose(found[near], np.array(expected)[near], rtol=1e-9, atol=1e-8)
    assert (found[~near] < -500.0).all()


def _has(y, first, behind, kind, goes_on, type_of):
    """Whether a labelling has this segment."""
    steps = [False, *goes_on[y[:-1], y[1:]], False]
    whole = all(steps[t] for t in range(first + 1, behind))
    return type_of[y[first]] == kind and whole and not steps[first] and not steps[behind]


@EXAMPLES
@given(case=cases(), seed=st.integers(0, 2**32 - 1))
def test_segments_have_the_probability_of_all_labellings_that_have_them(case, seed):
    model, X, *rest = case
    rng = np.random.default_rng(seed)
    type_of = rng.integers(-1, 2, size=model.n_labels)
    goes_on = (rng.random((model.n_labels, model.n_labels)) < 0.6) & (type_of[:, None] == type_of) & (type_of >= 0)
    asked = [
        (i, *ends, kind) for i, x in enumerate(X) for ends in combinations(range(len(x) + 1), 2) for kind in (0, 1)
    ]
    found = np.exp(ChainDistribution(model, X, *rest).log_segments(np.array(asked), goes_on, type_of))
    listed = [_listed(model, x, *rest) for x in X]
    for (i, *segment), p in zip(asked, found, strict=True):
        everything, shares, _ = listed[i]
        assert p == pytest.approx(sum(shares[[_has(y, *segment, goes_on, type_of) for y in everything]]), abs=1e-9)


@EXAMPLES
@given(case=cases())
def test_expectations_are_the_slope_of_log_z(case):
    model, X, w, temperature, offsets = case
    scores = ChainScores(model, X, w)
    b = np.zeros(model.n_labels) if offsets is None else offsets
    plain = tuple(np.where(np.isneginf(part), 0.0, part) for part in scores.pairs)
    beta = 1.0 / temperature / np.abs(w).max()  # differences of sums of a few units are exact to many digits

    def at(beta, b):
        table, pairs = scores.scaled(beta, b)
        return kernels.expectations(table, scores.offsets, pairs, scores.table, plain)

    log_z, mean, counts = at(beta, b)
    assert log_z == pytest.approx(sum(_listed(model, x, w, 1.0 / beta, b)[2] for x in X))
    step = 1e-5
    for slope, by_beta, by_b in [(mean / np.abs(w).max(), step / np.abs(w).max(), 0.0)] + [
        (counts[k], 0.0, step * np.eye(model.n_labels)[k]) for k in range(model.n_labels)
    ]:
        numeric = (at(beta + by_beta, b + by_b)[0] - at(beta - by_beta, b - by_b)[0]) / (2.0 * step)
        assert slope == pytest.approx(numeric, abs=1e-6)


def test_scores_of_any_size_are_no_trouble():
    """What is hopeless up to here may be all that is left later: a sum of exponentials alone would have lost it."""
    forbidden = np.array([[False, True], [True, False]])
    for size in (1.0, 1e3, 1e6):
        model = Chain(2, 1, forbidden=forbidden)
        w = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
        x = size * np.array([[-1.0]] * 5 + [[5.0]])  # two labellings, whose scores are equal
        np.testing.assert_allclose(ChainDistribution(model, [x], w).marginals()[0], 0.5, atol=1e-8)
    free = Chain(2, 1)
    steep = np.array([0.0, 1.0, 0.0, -5e3, -5e3, 0.0])
    p = ChainDistribution(free, [np.array([[-2e3], [2e3 + 1.0]])], steep).marginals()[0]
    np.testing.assert_allclose(p[:, 1], 1.0 / (1.0 + np.exp(-1.0)), atol=1e-9)


def test_long_sequences_have_small_probabilities_and_exact_logarithms():
    model, n = Chain(2, 1), 5000
    distribution = ChainDistribution(model, [np.zeros((n, 1))], np.zeros(model.n_weights))
    found = distribution.log_probabilities([np.zeros(n, int)])
    assert found[0] == pytest.approx(-n * np.log(2.0))


def test_a_sequence_without_a_labelling_and_weights_that_are_not_finite_are_named():
    model = Chain(2, 1, forbidden=np.ones((2, 2), bool))
    X = [np.ones((1, 1)), np.ones((2, 1))]
    with pytest.raises(ValueError, match="Sequence 1 has 2 tokens"):
        ChainDistribution(model, X, np.zeros(model.n_weights)).marginals()
    with pytest.raises(ValueError, match="weights are not all finite"):
        ChainDistribution(Chain(2, 1), X, np.full(6, np.nan)).marginals()
    with pytest.raises(ValueError, match="Sequence 1 has 2 tokens"):
        distribution = ChainDistribution(model, X, np.zeros(model.n_weights))
        distribution.log_segments(np.array([[1, 0, 1, 0]]), np.eye(2, dtype=bool), np.arange(2))


def test_chains_of_second_order_have_no_probabilities():
    with pytest.raises(ValueError, match=r"chains of first order.*Fit with order=1"):
        ChainScores(Chain(2, 1, order=2), [np.ones((2, 1))], np.zeros(14))


@pytest.mark.parametrize("offsets", [False, True])
def test_calibration_minimises_the_smoothed_likelihood(offsets, rng):
    from scipy.optimize import minimize

    model = Chain(3, 2, start=True, forbidden=[[False, True, False], [False] * 3, [False] * 3])
    X = [rng.normal(size=(n, 2)) for n in (2, 3, 4, 3, 2, 4)]
    w = rng.normal(size=model.n_weights)
    listed = [_listed(model, x, w, 0.4, np.array([0.5, 0.0, -0.5])) for x in X]
    Y = [everything[rng.choice(len(p), p=p)] for everything, p, _ in listed]
    odd = 1.0 / (1.0 + sum(map(len, X)))

    every = [
        np.array([model.features(x, z).toarray()[0] @ w for z in zs]) for x, (zs, _, _) in zip(X, listed, strict=True)
    ]
    gold = [[np.array_equal(y, z) for z in zs].index(True) for y, (zs, _, _) in zip(Y, listed, strict=True)]

    def loss(v):
        b = np.append(v[1:], 0.0) if offsets else np.zeros(3)
        total = 0.0
        for plain, g, (zs, _, _) in zip(every, gold, listed, strict=True):
            scores = v[0] * plain + b[np.array(zs)].sum(axis=1)
            total += np.log(np.exp(scores).sum()) - (1.0 - odd) * scores[g] - odd * scores.mean()
        return total

    found = calibrated(ChainScores(model, X, w), Y, by="sequence", offsets=offsets)
    best = minimize(loss, [1.0, 0.0, 0.0][: 3 if offsets else 1], options={"gtol": 1e-8})
    assert 1.0 / found.temperature == pytest.approx(best.x[0], rel=1e-3)
    if offsets:
        np.testing.assert_allclose(found.label_offsets - found.label_offsets[-1], [*best.x[1:], 0.0], atol=1e-3)
        assert found.label_offsets.sum() == pytest.approx(0.0, abs=1e-9)
    else:
        assert found.label_offsets is None


@pytest.mark.parametrize("by", ["token", "sequence"])
def test_calibration_recovers_the_temperature_that_labels_were_drawn_at(by):
    rng = np.random.default_rng(3)
    model = Chain(3, 3)
    w = 2.0 * rng.normal(size=model.n_weights)
    X, Y = [], []
    for x in rng.normal(size=(15, 3, 3)):
        everything, p, _ = _listed(model, x, w, 2.5, None)
        X += [x] * 200
        Y += [everything[k] for k in rng.choice(len(p), p=p, size=200)]
    found = calibrated(ChainScores(model, X, w), Y, by=by)
    assert found.temperature == pytest.approx(2.5, rel=0.1)


def test_by_token_the_marginals_are_likeliest(rng):
    model = Chain(3, 2)
    X, w = [rng.normal(size=(4, 2)) for _ in range(30)], rng.normal(size=15)
    Y = [np.where(rng.random(4) < 0.7, model.predict(x, w), rng.integers(3, size=4)) for x in X]
    scores = ChainScores(model, X, w)

    def loss(temperature):
        p = ChainDistribution(model, X, w, temperature).marginals()
        return -sum(np.log(table[np.arange(4), y]).sum() for table, y in zip(p, Y, strict=True))

    by_token, by_sequence = (calibrated(scores, Y, by=by).temperature for by in ("token", "sequence"))
    tokens = [loss(t) for t in (by_token, by_sequence, 0.7 * by_token, 1.4 * by_token)]
    assert min(tokens) == tokens[0]


@pytest.mark.parametrize("forbid", [False, True])
def test_kernels_equal_their_source(forbid, rng):
    forbidden = np.array([[False, False, True], [False] * 3, [True, False, False]]) if forbid else None
    model = Chain(3, 2, start=True, end=True, forbidden=forbidden)
    X = [rng.normal(size=(n, 2)) for n in (1, 3, 4)]
    scores = ChainScores(model, X, 500.0 * rng.normal(size=model.n_weights))
    table, pairs = scores.scaled(1.0, None)
    plain = tuple(np.where(np.isneginf(part), 0.0, part) for part in pairs)
    equals_its_source(kernels.log_partitions, table, scores.offsets, pairs)
    equals_its_source(kernels.marginals, table, scores.offsets, pairs)
    equals_its_source(kernels.expectations, table, scores.offsets, pairs, table, plain)
    goes_on, type_of = np.array([[False, True, False], [False, True, False], [False] * 3]), np.array([0, 0, -1])
    asked = np.array([[1, 0, 2, 0], [2, 1, 2, 0], [2, 1, 4, 0]])
    equals_its_source(kernels.segment_log_probabilities, table, scores.offsets, pairs, goes_on, type_of, asked)

"""Generative models of scenes: the sums they stand for, EM that never falls, limits that meet, bad input."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import logsumexp
from scipy.stats import multinomial
from sklearn.naive_bayes import MultinomialNB

from maxmargin.vision.scenes import ReconfigurableBagOfWords, SpatialBagOfWords, counts

MODELS = (SpatialBagOfWords, ReconfigurableBagOfWords)
ROUNDING = 1e-12  # of a likelihood, relative


def draw(rng, n=24, n_regions=4, n_words=5, n_classes=3, most=12):
    """Counts with empty regions and a word that is never seen, and the classes 0 … n_classes − 1."""
    X = rng.poisson(rng.gamma(0.5, 4.0, size=(n, n_regions, n_words))).clip(max=most)
    X[rng.random((n, n_regions)) < 0.1] = 0
    X[:, :, -1] = 0
    return X, rng.permutation(np.arange(n) % n_classes)


def objective(model, X, y, smoothing, part_smoothing):
    """What ``fit`` says that EM climbs, from the arrays of the model, region by region."""
    log_words = np.broadcast_to(model.log_words, (len(model.log_prior), *model.log_words.shape[1:]))
    value = smoothing / model.temperature * model.log_words.sum()
    if part_smoothing:
        value += part_smoothing * model.log_parts.sum()
    for x, c in zip(X, y, strict=True):
        for r, words in enumerate(x):
            value += logsumexp(model.log_parts[c, r] + log_words[c] @ words / model.temperature)
    return value


def test_bag_of_words_is_multinomial_naive_bayes(rng):
    X, y = draw(rng)
    whole = X.sum(axis=1, keepdims=True)
    model = SpatialBagOfWords.fit(whole, y, smoothing=0.7)
    reference = MultinomialNB(alpha=0.7).fit(whole[:, 0], y)
    assert np.allclose(model.log_words[:, 0], reference.feature_log_prob_)
    assert np.allclose(model.scores(whole), reference.predict_joint_log_proba(whole[:, 0]))


def test_spatial_scores_are_products_of_multinomials(rng):
    X, y = draw(rng)
    y = np.sort(y) // 2  # of two images in three
    model = SpatialBagOfWords.fit(X, y)
    full = np.log(np.bincount(y) / y.size) + np.array(
        [
            [
                sum(multinomial.logpmf(x, x.sum(), np.exp(v)) for x, v in zip(image, words, strict=True))
                for words in model.log_words
            ]
            for image in X
        ]
    )
    missing = full - model.scores(X)  # the multinomial coefficients: of the image, not of the class
    assert np.allclose(missing, missing[:, :1])


@pytest.mark.parametrize("shared", [False, True])
def test_reconfigurable_scores_sum_over_all_arrangements(rng, shared):
    X, y = draw(rng, n=12)
    model = ReconfigurableBagOfWords.fit(X, y, n_parts=3, temperature=2, shared=shared, random_state=0)
    assert model.log_words.shape == (1 if shared else 3, 3, 5) and model.log_parts.shape == (3, 4, 3)
    arrangements = list(itertools.product(range(3), repeat=4))
    for c in range(3):
        log_words = model.log_words[0 if shared else c]
        table = np.einsum("irk,jk->irj", X, log_words) / 2 + model.log_parts[c]
        joint = np.array([table[:, range(4), z].sum(axis=1) for z in arrangements])
        assert np.allclose(logsumexp(joint, axis=0) + model.log_prior[c], model.scores(X)[:, c])
        best = np.array(arrangements)[joint.argmax(axis=0)]
        assert np.array_equal(model.assign(X, np.full(len(X), c)), best)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    temperature=st.sampled_from([1.0, 1.7, 8.0]),
    smoothing=st.sampled_from([1e-6, 0.3, 10.0]),
    part_smoothing=st.sampled_from([0.0, 0.1, 2.0]),
    shared=st.booleans(),
    start=st.sampled_from(["random", "fixed", "given"]),
)
def test_em_never_falls_and_ends_where_it_says(seed, temperature, smoothing, part_smoothing, shared, start):
    rng = np.random.default_rng(seed)
    X, y = draw(rng)
    model = ReconfigurableBagOfWords.fit(
        X, y, n_parts=3, temperature=temperature, smoothing=smoothing, part_smoothing=part_smoothing, shared=shared,
        start=rng.integers(3, size=X.shape[:2]) if start == "given" else start, tol=0, max_iter=30, random_state=seed,
    )  # fmt: skip
    history = model.likelihoods
    assert len(history) > 1 and (np.diff(history) >= -ROUNDING * np.abs(history[:-1])).all()
    assert history[-1] == pytest.approx(objective(model, X, y, smoothing, part_smoothing), rel=1e-10)
    assert np.allclose(np.exp(model.log_words).sum(axis=-1), 1) and np.allclose(np.exp(model.log_parts).sum(axis=-1), 1)
    assert np.isfinite(model.scores(X)).all()


def test_a_fixed_start_without_smoothing_of_parts_is_the_spatial_model(rng):
    X, y = draw(rng)
    spatial = SpatialBagOfWords.fit(X, y, smoothing=0.4, temperature=3)
    model = ReconfigurableBagOfWords.fit(X, y, n_parts=4, start="fixed", part_smoothing=0, smoothing=0.4, temperature=3)
    assert np.array_equal(np.exp(model.log_parts), np.broadcast_to(np.eye(4), (3, 4, 4)))
    assert np.allclose(model.log_words, spatial.log_words, rtol=1e-14)
    assert np.allclose(model.scores(X), spatial.scores(X), rtol=1e-14)
    assert np.array_equal(model.assign(X, y), np.tile(np.arange(4), (len(X), 1)))


def test_tempering_is_the_same_as_counting_less(rng):
    X, y = draw(rng)
    z = rng.integers(3, size=X.shape[:2])
    hot = ReconfigurableBagOfWords.fit(X, y, n_parts=3, start=z, temperature=4, smoothing=1)
    few = ReconfigurableBagOfWords.fit(X / 4, y, n_parts=3, start=z, temperature=1, smoothing=1 / 4)
    assert np.allclose(hot.log_words, few.log_words) and np.allclose(hot.log_parts, few.log_parts)
    assert np.allclose(hot.likelihoods, few.likelihoods)
    assert np.allclose(hot.scores(X), few.scores(X / 4))


@pytest.mark.rounding
def test_parts_are_found_again():
    rng = np.random.default_rng(3)
    words = rng.dirichlet(np.full(12, 0.3), size=4)
    z = rng.integers(4, size=(60, 6))
    X = rng.multinomial(60, words[z])
    fits = [
        ReconfigurableBagOfWords.fit(X, np.zeros(60, int), n_parts=4, temperature=1, random_state=s) for s in range(5)
    ]
    model = max(fits, key=lambda fit: fit.likelihoods[-1])
    found = model.assign(X, np.zeros(60, int))
    name = [np.bincount(z[found == j], minlength=4).argmax() for j in range(4)]
    assert sorted(name) == [0, 1, 2, 3]
    assert (np.array(name)[found] == z).mean() > 0.99
    assert np.allclose(np.exp(model.log_words[0]), words[name], atol=0.03)


@pytest.mark.rounding
def test_classes_that_share_parts_differ_in_where_these_are():
    rng = np.random.default_rng(4)
    words = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    y = np.arange(80) % 2
    upper = rng.random((80, 3)) < np.where(y[:, None] == 0, 0.9, 0.1)  # class 0 likes part 0 in the first three regions
    z = np.hstack([upper, ~upper]).astype(int)
    X = rng.multinomial(40, words[z])
    model = ReconfigurableBagOfWords.fit(X, y, n_parts=2, shared=True, temperature=1, random_state=0)
    assert model.log_words.shape == (1, 2, 3)
    assert (model.scores(X).argmax(axis=1) == y).mean() > 0.9


def test_the_seed_alone_decides_and_max_iter_ends_em(rng):
    X, y = draw(rng)
    fits = [ReconfigurableBagOfWords.fit(X, y, n_parts=3, random_state=s) for s in (0, np.random.default_rng(0), 1)]
    assert np.array_equal(fits[0].log_words, fits[1].log_words)
    assert not np.array_equal(fits[0].log_words, fits[2].log_words)
    assert len(ReconfigurableBagOfWords.fit(X, y, n_parts=3, max_iter=2, random_state=0).likelihoods) == 2


@pytest.mark.parametrize("model", MODELS)
def test_scores_are_finite_for_empty_images_and_huge_counts_and_the_same_in_small_pieces(model, rng, monkeypatch):
    X, y = draw(rng)
    fitted = model.fit(X, y, temperature=2)
    extreme = np.stack([np.zeros((4, 5)), np.full((4, 5), 1e6), np.eye(4, 5)[:, ::-1] * 1e5])  # with the unseen word
    assert np.isfinite(fitted.scores(extreme)).all()
    assert np.allclose(fitted.scores(extreme)[0], fitted.log_prior)
    scores, z = fitted.scores(X), fitted.assign(X, y) if hasattr(fitted, "assign") else None
    monkeypatch.setattr(counts, "_CHUNK_BYTES", 1)
    assert np.allclose(fitted.scores(X), scores, rtol=1e-13)
    assert z is None or np.array_equal(fitted.assign(X, y), z)


def fit_with(model=ReconfigurableBagOfWords, X=((((1, 2),) * 2),) * 4, y=(0, 0, 1, 1), **given):
    return model.fit(np.array(X), np.array(y), **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"X": np.ones((4, 2))}, "three axes"),
        ({"X": np.ones((4, 2, 2, 2))}, r"reshape\(len\(X\)"),
        ({"X": np.ones((4, 0, 2))}, "at least one region"),
        ({"X": np.full((4, 2, 2), -1)}, "not below 0"),
        ({"X": np.full((4, 2, 2), np.nan)}, "NaN"),
        ({"X": np.full((4, 2, 2), np.inf)}, "infinities"),
        ({"X": np.full((4, 2, 2), "a")}, "real numbers"),
        ({"X": np.ones((0, 2, 2)), "y": np.zeros(0, int)}, "no images"),
        ({"y": [0, 1]}, "one for each image"),
        ({"y": ["a", "a", "b", "b"]}, "return_inverse"),
        ({"y": [0.0, 0.0, 1.0, 1.0]}, "class numbers"),
        ({"y": [0, 0, 2, 2]}, "class 1 has no image"),
        ({"y": [0, 0, -1, 1]}, "from 0"),
        ({"smoothing": 0}, "smoothing must be greater than 0, got 0"),
        ({"smoothing": "a"}, "smoothing must be a finite number, got 'a'"),
        ({"temperature": 0.5}, "temperature must be at least 1, got 0.5"),
        ({"temperature": np.inf}, "temperature must be a finite number, got inf"),
    ],
)
@pytest.mark.parametrize("model", MODELS)
def test_bad_input_is_refused_with_what_to_do(model, given, message):
    with pytest.raises(ValueError, match=message):
        fit_with(model, **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_parts": 0}, "n_parts must be a whole number of at least 1, got 0"),
        ({"n_parts": 2.0}, "n_parts must be a whole number of at least 1, got 2.0"),
        ({"part_smoothing": -1}, "part_smoothing must be at least 0, got -1"),
        ({"max_iter": None}, "max_iter"),
        ({"tol": np.nan}, "tol"),
        ({"start": "middle"}, '"random", "fixed" or an array'),
        ({"start": "fixed", "n_parts": 3}, "3 parts and 2 regions"),
        ({"start": np.zeros((4, 3), int)}, "4 × 2 regions"),
        ({"start": np.zeros((4, 2))}, "holds float64"),
        ({"start": np.full((4, 2), 2), "n_parts": 2}, "n_parts allows 0 to 1"),
        ({"start": np.full((4, 2), -1)}, "from -1"),
    ],
)
def test_bad_settings_of_em_are_refused_with_what_to_do(given, message):
    with pytest.raises(ValueError, match=message):
        fit_with(**given)


def test_what_does_not_fit_the_model_is_refused():
    for ask, message in (
        *(
            (lambda model=model: fit_with(model).scores(np.ones((1, 2, 3))), r"the model is of .*2 words")
            for model in MODELS
        ),
        (lambda: fit_with(SpatialBagOfWords).scores(np.ones((1, 3, 2))), "2 regions and 2 words"),
        (lambda: fit_with().assign(np.ones((1, 2, 2)), [2]), "from 0 to 1"),
        (lambda: SpatialBagOfWords(np.zeros((2, 2)), np.zeros(3)), "a class in each row"),
        (lambda: ReconfigurableBagOfWords(np.zeros((2, 3, 4)), np.zeros((2, 5, 2)), np.zeros(2)), "have shapes"),
    ):
        with pytest.raises(ValueError, match=message):
            ask()

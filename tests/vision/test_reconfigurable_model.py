"""Images as arrangements of parts: the compiled search against trying every arrangement, the limits in which the models
meet each other and a plain SVM, and what is claimed about what was learned."""

import warnings
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from latent_models import objective_of
from quietly import quiet
from thinned import rotating

from maxmargin import LatentStructuralSVM
from maxmargin.checks import check_model
from maxmargin.regularizers import L2
from maxmargin.vision.models import Reconfigurable
from maxmargin.vision.models.region_data import as_regions

PARTS = ("separate", "shared")
PAIRS = (None, "potts", "regular")
COST = np.array([[0.0, 1.0, 3.0], [0.5, 0.0, 1.0], [2.0, 2.0, 0.0]])


def images(rng, n=6, grid=(2, 2), d=3, n_classes=3):
    """Regions of noise with some zeros, and classes, of which each occurs."""
    X = rng.normal(size=(n, *grid, d)) * (rng.random((n, *grid, d)) < 0.8)
    return X, rng.permutation(np.arange(n) % n_classes)


def scenes(rng, n=18, grid=(2, 2), d=4, n_classes=3, noise=0.4):
    """Each class has two kinds of regions, arranged anew in each image."""
    looks = rng.normal(size=(n_classes, 2, d))
    y = np.arange(n) % n_classes
    z = rng.integers(0, 2, (n, *grid))
    return looks[y[:, None, None], z] + noise * rng.normal(size=(n, *grid, d)), y


def edges(grid):
    """Pairs of neighbours: the left one first, the upper one first."""
    cell = np.arange(grid[0] * grid[1]).reshape(grid)
    beside = np.stack([cell[:, :-1].ravel(), cell[:, 1:].ravel()], axis=1)
    below = np.stack([cell[:-1].ravel(), cell[1:].ravel()], axis=1)
    return beside, below


def score(model, x, y, z, w):
    """w·φ(x, y, z) from its definition, region by region and edge by edge."""
    B, A = model.appearance(w), model.preference(w)
    H, V = model.tables(w)
    x = np.asarray(x, float).reshape(len(z), -1)
    total = sum(B[y if len(B) > 1 else 0, j] @ x[r] + A[y, r, j] for r, j in enumerate(z))
    beside, below = edges(model.grid)
    return total + sum(H[y, z[r], z[s]] for r, s in beside) + sum(V[y, z[r], z[s]] for r, s in below)


def arrangements(model):
    """Every z."""
    return list(product(range(model.n_parts), repeat=model.grid[0] * model.grid[1]))


def allowed_weights(model, rng, size=1.0):
    """Weights at random, within the bounds of the regularizer."""
    w = size * rng.normal(size=model.n_weights)
    bounded = model.regularizer
    if bounded is not None:
        w[bounded.indices] = np.abs(w[bounded.indices])
    return w


def dense(rows):
    return sp.csr_matrix((rows.data, rows.indices, rows.indptr), shape=(rows.n_rows, rows.width)).toarray()


# Features, scores and searches.


@pytest.mark.parametrize(("pairs", "parts", "more"), rotating(PAIRS, PARTS, [{"cost": COST}, {}], times=2))
def test_every_combination_passes_the_check_of_models(parts, pairs, more):
    X, y = images(np.random.default_rng(0))
    check_model(Reconfigurable(3, n_parts=3, parts=parts, pairs=pairs, **more), X, y)


@pytest.mark.parametrize("pairs", ["potts", "regular"])
def test_a_search_by_swaps_passes_the_check_of_models(pairs):
    X, y = images(np.random.default_rng(0), n=4, grid=(5, 5))
    model = Reconfigurable(3, 3, n_parts=6, grid=(5, 5), pairs=pairs)
    assert not model.exact
    check_model(model, X, y)


@pytest.mark.parametrize(("grid", "parts", "pairs"), rotating([(2, 2), (1, 4), (3, 1), (2, 3)], PARTS, PAIRS, times=3))
def test_the_search_finds_what_trying_everything_finds(grid, parts, pairs):
    rng = np.random.default_rng(3)
    X, Y = images(rng, n=4, grid=grid)
    for table in (None, COST):
        model = Reconfigurable(3, 3, n_parts=2, grid=grid, parts=parts, pairs=pairs, cost=table)
        assert model.exact
        cost = 1.0 - np.eye(3) if table is None else table
        data = model.latent_oracle(X, Y)
        every = arrangements(model)
        for size in (0.0, 0.3, 3.0):
            w = size * rng.normal(size=model.n_weights)
            scores = np.array([[[score(model, x, k, z, w) for z in every] for k in range(3)] for x in X])
            np.testing.assert_allclose(model.class_scores(X, w), scores.max(axis=2), atol=1e-9)
            best, top = data.complete(w)
            np.testing.assert_allclose(top, scores[np.arange(4), Y].max(axis=1), atol=1e-9)
            found = data.bound(data.initial()).rivals(np.arange(4), w)
            assert found.excess is None
            for i, x in enumerate(X):
                assert score(model, x, Y[i], best[i], w) == pytest.approx(top[i], abs=1e-9)
                k, z = found.labels[i]
                worst = (scores[i] + cost[Y[i]][:, None]).max()
                assert score(model, x, k, z, w) + cost[Y[i], k] == pytest.approx(worst, abs=1e-9)
                assert found.losses[i] == cost[Y[i], k] == model.loss(Y[i], (k, z))
                k, z = model.predict(x, w)
                assert score(model, x, k, z, w) == pytest.approx(scores[i].max(), abs=1e-9)
                assert tuple(z) in every
                assert tuple(best[i]) in every


@pytest.mark.parametrize(
    ("grid", "parts", "pairs"), rotating([(1, 1), (1, 5), (4, 1), (2, 3), (3, 4)], PARTS, PAIRS, times=2)
)
def test_features_are_those_of_the_definition_and_each_edge_counts_once(grid, parts, pairs):
    rng = np.random.default_rng(4)
    model = Reconfigurable(3, 2, n_parts=3, grid=grid, parts=parts, pairs=pairs)
    for _ in range(20):
        x, w = rng.normal(size=(*grid, 2)), rng.normal(size=model.n_weights)
        y, z = int(rng.integers(3)), rng.integers(0, 3, grid[0] * grid[1])
        assert (model.features(x, (y, z)) @ w).item() == pytest.approx(score(model, x, y, z, w))


@pytest.mark.parametrize(
    ("dtype", "parts", "pairs"), rotating([np.float64, np.float32, np.uint8], PARTS, PAIRS, times=2)
)
def test_rows_are_differences_of_features(parts, pairs, dtype):
    """For random answers: of the same class and of others, with all, some or no regions in common."""
    rng = np.random.default_rng(5)
    n, R, M = 60, 6, 3
    X = (4 * rng.random((n, 2, 3, 2))).astype(dtype)
    Y = np.arange(n) % 3
    model = Reconfigurable(3, 2, n_parts=M, grid=(2, 3), parts=parts, pairs=pairs)
    data = model.latent_oracle(X, Y)
    Z = rng.integers(0, M, (n, R))
    changed = rng.random((n, R)) < rng.choice([0.0, 0.5, 1.0], (n, 1))
    answers = [
        (int(k), np.where(c, rng.integers(0, M, R), z))
        for k, c, z in zip(np.where(rng.random(n) < 0.5, Y, rng.integers(0, 3, n)), changed, Z, strict=True)
    ]
    ids = rng.permutation(n)
    found = data.bound(list(Z)).planes(ids, [answers[i] for i in ids])
    rows = dense(found.rows)
    for p, i in enumerate(ids):
        truth, answer = model.features(X[i], (Y[i], Z[i])), model.features(X[i], answers[i])
        np.testing.assert_allclose(rows[p], (truth - answer).toarray()[0], rtol=1e-6, atol=1e-6)
        assert found.losses[p] == float(Y[i] != answers[i][0])
    assert not rows.any(axis=1).all()  # some answers were the truth
    for row in np.split(found.rows.indices, found.rows.indptr[1:-1]):
        assert (np.diff(row) > 0).all()  # in the order of the weights, none twice


@pytest.mark.parametrize(("pairs", "grid"), rotating(PAIRS, [(2, 3), (4, 4)]))
def test_blocks_of_images_and_storage_do_not_matter(pairs, grid, monkeypatch, tmp_path):
    rng = np.random.default_rng(6)
    X, Y = images(rng, n=9, grid=grid)
    X = X.astype(np.float32)
    model = Reconfigurable(3, 3, n_parts=3, grid=grid, pairs=pairs)
    w = rng.normal(size=model.n_weights)
    scores, answers, best = model.class_scores(X, w), model.predict_all(X, w), model.latent_oracle(X, Y).complete(w)
    mapped = np.memmap(tmp_path / "x", np.float32, "w+", shape=X.shape)
    mapped[:] = X
    monkeypatch.setattr("maxmargin.vision.models.region_data._BLOCK", 1)
    monkeypatch.setattr("maxmargin.vision.models.region_data._REMEMBER", 0)
    for stored in (X, X.astype(np.float64), mapped, list(X), np.asfortranarray(X)):
        np.testing.assert_allclose(model.class_scores(stored, w), scores, rtol=1e-12)
        assert [k for k, _ in model.predict_all(stored, w)] == [k for k, _ in answers]
        data = model.latent_oracle(stored, Y)
        found, top = data.complete(w)
        np.testing.assert_array_equal(found, best[0])
        np.testing.assert_allclose(top, best[1], rtol=1e-12)
        ids = np.array([7, 2])
        np.testing.assert_allclose(data.scores(ids, [found[7], found[2]], w), best[1][ids], rtol=1e-12)
        np.testing.assert_allclose(data.scores(np.arange(9), found, w), best[1], rtol=1e-12)


# Pairs of neighbours.


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), M=st.integers(2, 5))
def test_tables_have_weights_and_these_are_allowed_if_and_only_if_the_tables_are_regular(seed, M):
    """Theorem 2.1: allowed weights give all regular tables, and no others."""
    rng = np.random.default_rng(seed)
    model = Reconfigurable(2, 1, n_parts=M, grid=(2, 2), pairs="regular")
    start = model.regularizer.indices.min() - M - M * (M - 1) // 2
    basis = np.array([np.ravel(model.tables(unit)) for unit in np.eye(model.n_weights)[start:]]).T
    tables = rng.normal(size=(2, 2, M, M))  # direction, class
    j, k = np.triu_indices(M, 1)

    def lacking():
        return tables[..., j, k] + tables[..., k, j] - tables[..., j, j] - tables[..., k, k]

    def allowed():
        w = np.zeros(model.n_weights)
        w[start:], *_ = np.linalg.lstsq(basis, tables.ravel(), rcond=None)
        np.testing.assert_allclose(model.tables(w), tables, atol=1e-9)
        return np.isfinite(model.regularizer.value(w))

    tables[..., j, k] -= np.maximum(lacking(), 0.0) + 0.01 + rng.random(j.size)
    assert (lacking() < 0.0).all()
    assert allowed()
    p = (int(rng.integers(2)), int(rng.integers(2)), int(rng.integers(j.size)))
    tables[p[0], p[1], j[p[2]], k[p[2]]] += 0.01 - lacking()[p]  # these two parts would now rather differ
    assert not allowed()


# Models that meet.


@pytest.mark.parametrize(("grid", "parts", "pairs"), [((2, 3), "shared", "potts"), ((5, 5), "separate", "regular")])
def test_pairs_that_weigh_nothing_change_nothing(grid, parts, pairs):
    rng = np.random.default_rng(8)
    X, Y = images(rng, grid=grid)
    plain, more = (Reconfigurable(3, 3, n_parts=6, grid=grid, parts=parts, pairs=p) for p in (None, pairs))
    w = rng.normal(size=plain.n_weights)
    padded = np.concatenate([w, np.zeros(more.n_weights - w.size)])
    np.testing.assert_allclose(more.class_scores(X, padded), plain.class_scores(X, w), rtol=1e-12)
    for (k, z), (k0, z0) in zip(more.predict_all(X, padded), plain.predict_all(X, w), strict=True):
        assert k == k0
        np.testing.assert_array_equal(z, z0)
    np.testing.assert_array_equal(
        more.latent_oracle(X, Y).complete(padded)[0], plain.latent_oracle(X, Y).complete(w)[0]
    )


# What is learned, and what is claimed about it.


@pytest.mark.parametrize(("pairs", "parts"), rotating(PAIRS, PARTS))
def test_certificates_of_small_grids_are_exact_and_true(parts, pairs):
    X, y = scenes(np.random.default_rng(13))
    svm = LatentStructuralSVM(Reconfigurable(n_parts=2, parts=parts, pairs=pairs), C=0.3, tol=1e-5, bound_tol=1e-4,
                              max_passes=5000, random_state=0).fit(X, y)  # fmt: skip
    model, w, omega = svm.model_, svm.coef_, svm.model_.regularizer or L2()
    certificate = svm.certificate_
    assert certificate.exact
    assert certificate.lower <= certificate.upper
    assert certificate.relative_gap <= 1e-5
    again = svm.certify(X, y)
    assert again.exact
    assert again.lower == pytest.approx(certificate.lower, rel=1e-6)
    # F by trying every arrangement, and the bound in which the last ones are fixed.
    every = arrangements(model)
    objective = bound = omega.value(w)
    for x, k, z in zip(X, y, svm.latent_, strict=True):
        scores = np.array([[score(model, x, c, a, w) for a in every] for c in range(3)])
        worst = (scores + (np.arange(3) != k)[:, None]).max()
        objective += 0.3 * (worst - scores[k].max())
        bound += 0.3 * (worst - score(model, x, k, z, w))
    assert svm.objective_ == pytest.approx(objective, rel=1e-6)
    assert svm.objective(X, y) == pytest.approx(objective, rel=1e-6)
    assert certificate.upper == pytest.approx(bound, rel=1e-6)
    assert objective <= bound * (1 + 1e-9)
    # No weights do better on the last bound than its lower end says.
    rng = np.random.default_rng(0)
    problem = objective_of(model, X, y, 0.3).problem(svm.latent_)
    for size in (0.0, 0.01, 0.1):
        other = w + size * rng.normal(size=w.size)
        if model.regularizer is not None:
            other[model.regularizer.indices] = np.maximum(other[model.regularizer.indices], 0.0)
        assert omega.value(other) + problem.constraints.evaluate(other).total >= certificate.lower * (1 - 1e-9)


@pytest.mark.parametrize("pairs", ["potts", "regular"])
def test_nothing_exact_is_claimed_of_searches_by_swaps(pairs):
    X, y = scenes(np.random.default_rng(14), n=8, grid=(5, 5), n_classes=2)
    svm = quiet(LatentStructuralSVM(Reconfigurable(n_parts=6, pairs=pairs), C=0.02, max_bounds=2, random_state=0), X, y)
    assert not svm.certificate_.exact
    assert not svm.certify(X, y).exact
    assert LatentStructuralSVM(Reconfigurable(n_parts=6), C=0.02, random_state=0).fit(X, y).certificate_.exact


def test_two_parts_on_a_large_grid_are_exact_only_where_tables_are_regular():
    """One cut is exact if the weights keep to their bounds. A regularizer of one's own may not ask them to."""
    rng = np.random.default_rng(15)
    model = Reconfigurable(2, 1, n_parts=2, grid=(12, 12), pairs="potts")
    data = model.latent_oracle(rng.normal(size=(2, 12, 12, 1)), [0, 1])
    oracle = data.bound(data.initial())
    w = allowed_weights(model, rng)
    assert oracle.rivals(np.arange(2), w).excess is None
    w[model.regularizer.indices] = -1.0
    assert np.isinf(oracle.rivals(np.arange(2), w).excess).all()


def test_the_group_norm_drops_parts_that_are_not_needed():
    rng = np.random.default_rng(19)
    X, y = scenes(rng, n=24, n_classes=2, noise=0.2)
    Z = list(rng.integers(0, 4, (len(X), 4)))
    model = Reconfigurable(n_parts=4)
    svm = quiet(
        LatentStructuralSVM(model, C=1.0, group_norm=10.0, max_bounds=30, max_passes=5000, random_state=0), X, y, Z
    )
    kept = svm.selected_states_
    assert 0 < len(kept) < 8
    B, A = svm.model_.appearance(svm.coef_), svm.model_.preference(svm.coef_)
    for k, j in product(range(2), range(4)):
        assert ((k, j) in kept) == bool(B[k, j].any() or A[k, :, j].any())
    groups = np.concatenate(svm.model_.groups)
    assert np.array_equal(np.sort(groups), np.arange(svm.model_.n_weights))  # each weight belongs to one part
    shared = Reconfigurable(2, 4, n_parts=3, grid=(2, 2), parts="shared")
    assert np.array_equal(np.sort(np.concatenate(shared.groups)), np.arange(shared.n_weights))
    assert shared.states == [0, 1, 2]
    with pytest.raises(ValueError, match="declares groups of weights; Reconfigurable has none"):
        LatentStructuralSVM(Reconfigurable(n_parts=2, pairs="potts"), group_norm=1.0).fit(X, y)


# Starts and proposals.


def test_parts_to_begin_with_are_those_of_the_regions():
    for n_parts, expected in ((2, [0, 0, 1, 1]), (4, [0, 1, 2, 3])):
        assert Reconfigurable(2, 1, n_parts=n_parts, grid=(2, 2)).initial(None, 0).tolist() == expected


def test_proposals_change_one_region():
    rng = np.random.default_rng(21)
    model = Reconfigurable(2, 1, n_parts=3, grid=(2, 2))
    z, seen = np.array([0, 0, 1, 0], np.int16), set()
    for _ in range(200):
        other = model.propose(None, 0, z, None, rng)
        assert np.count_nonzero(other != z) == 1
        seen.add(tuple(other.tolist()))
    assert z.tolist() == [0, 0, 1, 0] and len(seen) == 8


# What cannot be.


X4 = np.zeros((4, 2, 2, 3))
BROKEN = np.where(np.arange(48).reshape(X4.shape) == 27, np.nan, X4)


def bound(Z=None, X=X4, y=(0, 1, 0, 1), **given):
    model = Reconfigurable(**{"n_classes": 2, "n_features": 3, "n_parts": 2, "grid": (2, 2)} | given)
    data = model.latent_oracle(X, list(y))
    return data if Z is None else data.bound(Z)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_parts": 0}, "n_parts must be a whole number of at least 1, got 0"),
        ({"n_parts": 2.5}, "n_parts must be a whole number"),
        ({"parts": "own"}, "parts must be 'separate' or 'shared', got 'own'"),
        ({"pairs": "ising"}, "pairs must be None, 'potts' or 'regular', got 'ising'"),
        ({"n_parts": 200, "pairs": "potts"}, "there can be 127 parts at most, got n_parts=200"),
        ({"cost": [[0.0, -1.0], [1.0, 0.0]]}, "must be finite and not negative"),
        ({"n_classes": 3, "cost": [[0.0, 1.0], [1.0, 0.0]]}, "must be 3 × 3"),
        ({"n_classes": None}, "does not know its sizes"),
        ({"X": X4[0]}, "must be an array"),
        ({"X": X4[..., :2]}, "The model has 3 features for each region, X has 2"),
        ({"X": X4[:, :1]}, "a grid of 2 × 2 regions, X one of 1 × 2"),
        ({"X": X4.astype(str)}, "must be numbers"),
        ({"X": BROKEN}, "Image 2 has features that are not finite"),
        ({"y": [0, 1, 0]}, "X has 4 images, Y has 3 labels"),
        ({"y": [0, 1, 0, 2]}, "Y"),
        ({"Z": np.zeros((4, 3), int)}, "4 parts for each of 4 images; got an array of int64 of shape"),
        ({"Z": np.zeros((4, 4))}, "must be whole numbers"),
        ({"Z": [[0, 0, 0, 0], [0], [0], [0]]}, "must be whole numbers"),
        ({"Z": np.full((4, 4), 2)}, "Image 0 has part 2 in region 0"),
        ({"Z": np.full((4, 4), -1)}, "Image 0 has part -1 in region 0"),
    ],
)
def test_models_regions_and_parts_that_cannot_be(given, message):
    with pytest.raises(ValueError, match=message):
        bound(**given)


def test_regions_without_features_cannot_be():
    with pytest.raises(ValueError, match="no regions or no features"):
        as_regions(np.zeros((2, 0, 2, 3)), None, None)


def test_weights_that_no_cut_can_serve_do_not_make_the_model_a_liar():
    """Two parts on a large grid are searched exactly only where tables are regular, which plain l2 does not ensure."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 14, 14, 3)), np.arange(12) % 2
    model = Reconfigurable(n_parts=2, pairs="regular")
    svm = LatentStructuralSVM(
        model, regularizer=L2(), init="random", random_state=0, max_bounds=3, tol=0.1, bound_tol=0.1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        svm.fit(X, y)
    assert np.isfinite(svm.objective_)

"""k-means by bounds: their guarantees, the uniformity of the walk, Lloyd's algorithm as a special case, bad input."""

import copy
import itertools
import pickle
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from compiled import equals_its_source, nothing_compiled
from hypothesis import assume, given, settings, strategies as st
from scipy.stats import chi2
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from thinned import rotating

import maxmargin as mm
from maxmargin import GMMKMeans
from maxmargin.clustering import few_points, kernels as clusters, points as kmeans_points
from maxmargin.clustering.bounds import BOUNDS, MaximumEntropy, Merge, RandomWalk
from maxmargin.clustering.kmeans import Settings, cluster
from maxmargin.clustering.points import Points
from maxmargin.clustering.starts import STARTS

WIDE = clusters.FEW_COLUMNS + 5  # columns enough for the matrix product


def blobs(rng, n=60, k=4, width=2, spread=0.5):
    return rng.normal(scale=3.0, size=(k, width))[rng.integers(k, size=n)] + spread * rng.normal(size=(n, width))


def regrets(X, weight, centres):
    """The table of regrets, from nothing."""
    far = ((X[:, None, :] - centres) ** 2).sum(axis=2)
    return weight[:, None] * (far - far.min(axis=1, keepdims=True))


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, k = draw(st.integers(6, 60)), draw(st.integers(1, 6))
    X = blobs(rng, n, k + 2, draw(st.sampled_from([1, 2, WIDE])))
    if draw(st.booleans()):
        X[: n // 2] = X[0]  # points that fall together
    if draw(st.booleans()):
        X += 1000.0
    weight = rng.uniform(0.1, 3.0, size=n) if draw(st.booleans()) else np.ones(n)
    return Points(X.astype(draw(st.sampled_from([np.float32, np.float64]))), weight, k), rng


# Guarantees


@settings(deadline=None, max_examples=60)
@given(problems(), st.sampled_from(["merge", "random", "kmeans"]), st.sampled_from([0.02, 0.3, 1.0]),
       st.sampled_from(sorted(STARTS)))  # fmt: skip
def test_bounds_stay_below_a_sinking_ceiling_and_gaps_sum_up_to_no_more_than_was_gained(problem, bound, eta, start):
    points, rng = problem
    found = cluster(points, STARTS[start], Settings(bound=bound, eta=eta, sweeps=5.0), rng)
    slack = 1e-9 * (found.start + 1e-9 * float(np.abs(points.X).max()) ** 2)
    value, gap, objective = np.array([(r.bound, r.gap, r.objective) for r in found.history]).T
    assert value[0] <= found.start + slack
    assert np.all(gap >= 0.0) and np.allclose(value - gap, objective)
    assert np.all(objective <= found.start + slack)
    assert eta * gap[:-1].sum() <= found.start - value[-1] + slack
    if bound == "merge":
        ceiling = found.start
        for v, f in zip(value, objective, strict=True):
            assert f <= v + slack and v <= ceiling + slack
            ceiling -= max(eta, Merge().sinks) * (ceiling - f)
    else:
        assert np.all(value[1:] <= value[:-1] - eta * gap[:-1] + slack)
    assert found.objective == objective.min() or found.objective == found.start
    assert found.converged


@settings(deadline=None, max_examples=60)
@given(problems(), st.sampled_from(["merge", "random"]), st.floats(0.01, 2.0))
def test_chosen_labels_stay_within_the_budget(problem, bound, share):
    points, rng = problem
    centres = STARTS["forgy"](points, rng)
    at = points.measure(centres, np.zeros(points.n, np.int32))
    budget = share * at.objective / points.n + 1e-12
    label = BOUNDS[bound](20.0).choose(points, centres, at, budget, rng)
    assume(label is not None)
    table = regrets(points.X.astype(np.float64), points.weight, centres)
    assert label.min() >= 0 and label.max() < points.n_clusters
    assert table[np.arange(points.n), label].sum() <= budget * (1 + 1e-6) + 1e-9 * table.max()


@settings(deadline=None, max_examples=40)
@given(problems(), st.floats(0.001, 10.0))
def test_maximum_entropy_spends_the_budget_in_expectation(problem, share):
    points, rng = problem
    centres = STARTS["forgy"](points, rng)
    at = points.measure(centres, np.zeros(points.n, np.int32))
    budget = share * at.objective / points.n + 1e-6
    t = MaximumEntropy()._tilt(points, centres, at, budget)
    table = regrets(points.X.astype(np.float64), points.weight, centres)
    p = np.exp(-t * table)
    expected = (p * table).sum(axis=1) @ (1.0 / p.sum(axis=1))
    # Products of float32 rows far from their mean lose digits that this table has.
    rounding = 1e-5 * table.max() if points.X.dtype == np.float32 else 1e-9 * table.max()
    assert expected <= budget * (1 + 1e-6) + rounding
    if t > 0.0:
        assert expected >= 0.99 * budget - rounding
    else:
        assert expected == pytest.approx(table.mean(axis=1).sum())


def test_draws_follow_their_distribution(rng):
    X, centres = np.zeros((20000, 1)), np.array([[0.0], [1.0], [-1.5]])
    points = Points(X, np.ones(20000), 3)
    at = points.measure(centres, np.zeros(20000, np.int32))
    label, t = np.empty(20000, np.int32), 0.8
    clusters.draw(X, points.weight, points.shift, centres, at.near, at.least, t, rng.random(20000), label, 0, 20000)
    p = np.exp(-t * centres[:, 0] ** 2)
    expected = 20000 * p / p.sum()
    assert ((np.bincount(label, minlength=3) - expected) ** 2 / expected).sum() < chi2.ppf(1 - 1e-6, 2)


# Uniformity of the walk


X4 = np.array([[0.0], [1.0], [2.2], [3.0]])
CENTRES3 = np.array([[0.2], [1.5], [2.9]])
BUDGET = 5.0


def _chi_square(walk, steps, runs=4000):
    """How far the ends of many walks are from equal shares of all valid labels, and how many of those there are."""
    points = Points(X4, np.array([1.0, 1.0, 2.0, 1.0]), 3)
    at = points.measure(CENTRES3, np.zeros(4, np.int32))
    table = regrets(X4, points.weight, CENTRES3)
    valid = [z for z in itertools.product(range(3), repeat=4) if table[range(4), z].sum() <= BUDGET]
    seen = dict.fromkeys(valid, 0)
    label = np.empty(4, np.int32)
    for seed in np.random.default_rng(7).integers(1, 2**63, size=runs).tolist():
        walk(X4, points.weight, CENTRES3, at.near, at.least, label, BUDGET, steps, seed)
        seen[tuple(label.tolist())] += 1  # a label outside of the valid ones would be a KeyError
    expected = runs / len(valid)
    return sum((count - expected) ** 2 / expected for count in seen.values()), len(valid)


def test_the_walk_is_uniform_over_all_valid_labels_and_others_are_seen_not_to_be():
    distance, n_valid = _chi_square(clusters.walk, steps=200)
    limit = chi2.ppf(1 - 1e-5, n_valid - 1)
    assert 10 < n_valid < 81
    assert distance < limit
    assert _chi_square(clusters.walk, steps=4)[0] > 10 * limit  # too short to mix

    def uneven(state, n):
        return min(int(state) >> 32, int(state) & 0xFFFFFFFF) * n >> 32

    with nothing_compiled() as patch:
        patch.setattr(clusters, "below", uneven)
        assert _chi_square(clusters.walk, steps=60, runs=1000)[0] > 2 * limit


# Lloyd's algorithm


@pytest.mark.parametrize(("bound", "init"), list(zip(sorted(BOUNDS), itertools.cycle(sorted(STARTS)), strict=False)))
def test_eta_one_is_lloyd_bit_for_bit(bound, init, rng):
    X = blobs(rng, 200, 8)
    lloyd = GMMKMeans(6, bound="kmeans", init=init, n_init=3, random_state=1).fit(X)
    same = GMMKMeans(6, bound=bound, eta=1.0, init=init, n_init=3, random_state=1).fit(X)
    assert np.array_equal(same.cluster_centers_, lloyd.cluster_centers_)
    assert np.array_equal(same.labels_, lloyd.labels_) and same.inertia_ == lloyd.inertia_
    assert [r.bound for r in same.history_] == [r.bound for r in lloyd.history_]


@pytest.mark.rounding
@pytest.mark.parametrize(
    ("dtype", "width", "weighted"),
    [(np.float32, 2, True), (np.float64, 2, False), (np.float64, 5, True), (np.float32, WIDE, False),
     (np.float64, WIDE, True)],
)  # fmt: skip
def test_lloyd_agrees_with_scikit_learn(width, dtype, weighted, rng):
    X = blobs(rng, 300, 6, width, spread=1.5).astype(dtype)
    weight = rng.uniform(0.5, 2.0, size=300) if weighted else None
    init = X[rng.choice(300, 6, replace=False)]
    ours = GMMKMeans(6, bound="kmeans", init=init).fit(X, sample_weight=weight)
    theirs = KMeans(6, init=init, n_init=1, tol=0.0, max_iter=1000, algorithm="lloyd").fit(X, sample_weight=weight)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9 if dtype == np.float64 else 1e-4)
    assert np.mean(ours.labels_ == theirs.labels_) > 0.99
    assert ours.cluster_centers_.dtype == dtype


def test_weights_are_repetitions(rng):
    X, times = blobs(rng, 80, 5), rng.integers(0, 4, size=80)
    init = X[np.flatnonzero(times)[:5]]
    weighted = GMMKMeans(5, bound="kmeans", init=init).fit(X, sample_weight=times)
    repeated = GMMKMeans(5, bound="kmeans", init=init).fit(np.repeat(X, times, axis=0))
    assert weighted.cluster_centers_ == pytest.approx(repeated.cluster_centers_)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_)
    assert np.array_equal(np.repeat(weighted.labels_, times), repeated.labels_)
    assert weighted.score(X, sample_weight=times) == pytest.approx(repeated.score(np.repeat(X, times, axis=0)))


def test_random_bounds_leave_minima_in_which_lloyd_stays():
    """Two groups far apart, both centres in one of them at first, many times over."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 0.1, size=(50, 2)) for c in ((0, 0), (0, 1), (1, 0), (1, 1))])
    totals = {}
    for bound in ("kmeans", "random", "merge"):
        fits = [GMMKMeans(4, bound=bound, init="forgy", random_state=s).fit(X) for s in range(20)]
        totals[bound] = np.mean([km.inertia_ for km in fits])
    assert totals["random"] < 0.95 * totals["kmeans"]
    assert totals["merge"] < 0.6 * totals["kmeans"]


def test_merging_gives_up_the_cheapest_clusters_first():
    """Two pairs of centres share one group each, two groups share one: the cheaper of the pairs is merged."""
    X = np.array([[0.0], [0.3], [10.0], [10.1], [20.0], [30.0]])
    centres = np.array([[0.0], [0.3], [10.0], [10.1], [25.0]])
    points = Points(X, np.ones(6), 5)
    at = points.measure(centres, np.zeros(6, np.int32))

    def merge(at, budget):
        return Merge().choose(points, centres, at, budget, np.random.default_rng(0))

    for budget, merged in ((0.005, []), (0.05, [[2, 3]]), (1.0, [[0, 1], [2, 3]])):
        label = merge(at, budget)
        pairs = [[i, i + 1] for i in (0, 2) if label[i] == label[i + 1]]
        assert pairs == merged and label[4] == label[5] == 4
    assert merge(points.measure(centres, at.near), 0.005) is None  # settled


@pytest.mark.parametrize("bound", sorted(BOUNDS))
def test_never_worse_than_lloyd_from_the_same_start(bound):
    """Explored ends alone are worse from some of these starts, or this would show nothing."""
    worse = 0
    for seed, init in enumerate(4 * sorted(STARTS)):
        rng = np.random.default_rng(seed)
        X = blobs(rng, 150, 8, width=1 + seed % 4, spread=0.3 + 0.1 * seed)
        weight = rng.uniform(0.1, 5.0, size=150) if seed % 2 else None
        ours, lloyd = (
            GMMKMeans(6, bound=b, eta=0.3, init=init, random_state=seed).fit(X, sample_weight=weight)
            for b in (bound, "kmeans")
        )
        assert ours.inertia_ <= lloyd.inertia_ * (1 + 1e-12)
        assert ours.history_[-1].objective == pytest.approx(ours.inertia_)
        points = Points(X, np.ones(150) if weight is None else weight, 6)
        pure, touching = (
            cluster(points, STARTS[init], Settings(bound=b, eta=0.3), np.random.default_rng(seed))
            for b in (bound, "kmeans")
        )
        assert ours.inertia_ == pytest.approx(min(pure.objective, touching.objective))
        worse += pure.objective > touching.objective * (1 + 1e-9)
    assert worse > 0


# The result


@pytest.mark.parametrize(("bound", "width"), rotating(["kmeans", *BOUNDS], [2, WIDE]))
def test_labels_are_nearest_centres_and_centres_are_means(bound, width, rng):
    X = blobs(rng, 150, 6, width)
    km = GMMKMeans(5, bound=bound, random_state=0).fit(X)
    far = ((X[:, None, :] - km.cluster_centers_) ** 2).sum(axis=2)
    assert np.array_equal(km.labels_, far.argmin(axis=1)) and np.array_equal(km.predict(X), km.labels_)
    assert km.inertia_ == pytest.approx(far.min(axis=1).sum()) and km.score(X) == pytest.approx(-km.inertia_)
    assert km.transform(X) == pytest.approx(np.sqrt(far))
    means = [X[km.labels_ == z].mean(axis=0) for z in range(5)]
    assert km.cluster_centers_ == pytest.approx(np.array(means))
    assert km.n_iter_ == len(km.history_) and km.history_[-1].gap == pytest.approx(0.0, abs=1e-9)
    assert km.get_feature_names_out()[0] == "gmmkmeans0"


@pytest.mark.parametrize("bound", sorted(BOUNDS))
def test_results_do_not_depend_on_threads(bound, rng, monkeypatch):
    monkeypatch.setattr(kmeans_points, "_WORTH_A_PART", 500)
    X = blobs(rng, 400, 8, 3)
    for n_init in (1, 3):
        alone, together = (
            GMMKMeans(6, bound=bound, n_init=n_init, n_jobs=n_jobs, random_state=5).fit(X) for n_jobs in (1, 3)
        )
        assert np.array_equal(alone.cluster_centers_, together.cluster_centers_)
        assert np.array_equal(alone.labels_, together.labels_) and alone.inertia_ == together.inertia_


def test_a_cluster_that_lost_its_points_finds_others(rng):
    X = blobs(rng, 100, 5)
    init = np.concatenate([X[:3], [[1e6, 1e6], [-1e6, 0.0]]])
    km = GMMKMeans(5, bound="kmeans", init=init).fit(X)
    assert np.bincount(km.labels_, minlength=5).min() > 0


@pytest.mark.parametrize("bound", ["kmeans", "merge", "gmme"])
def test_too_few_distinct_rows_are_told_once(bound):
    X = np.repeat([[1.0, 2.0], [3.0, 4.0]], 10, axis=0)
    with pytest.warns(ConvergenceWarning, match="Only 2 of n_clusters=3 clusters have points") as told:
        km = GMMKMeans(3, bound=bound, random_state=0).fit(X)
    assert len(told) == 1 and km.inertia_ == pytest.approx(0.0) and len(set(km.labels_)) == 2


def test_a_function_as_init_is_called_with_data_number_and_generator(rng):
    X = blobs(rng)

    def init(X, n_clusters, random_state):
        return X[random_state.choice(len(X), n_clusters, replace=False)]

    a, b = (GMMKMeans(3, init=init, random_state=0).fit(X) for _ in range(2))
    assert np.array_equal(a.cluster_centers_, b.cluster_centers_)


def test_warm_start_goes_on_from_the_last_centres(rng):
    X = blobs(rng, 200, 8)
    km = GMMKMeans(6, bound="kmeans", init="forgy", warm_start=True, random_state=0).fit(X)
    again = km.inertia_
    assert km.fit(X).n_iter_ == 1 and km.inertia_ == pytest.approx(again)


# Streams


def test_the_bound_of_a_stream_is_above_its_objective(rng):
    X = blobs(rng, 600, 5).astype(np.float32)
    weight = rng.uniform(0.5, 2.0, size=600)
    km = GMMKMeans(5, random_state=0)
    for part in np.split(np.arange(600), 6):
        km.partial_fit(X[part], sample_weight=weight[part])
        seen = slice(0, part[-1] + 1)
        assert -km.score(X[seen], sample_weight=weight[seen]) <= km.inertia_ * (1 + 1e-6)
        assert np.array_equal(km.labels_, km.predict(X[part]))
    assert km.inertia_ < 1.5 * GMMKMeans(5, n_init=5, random_state=0).fit(X, sample_weight=weight).inertia_


def test_a_stream_of_one_point_each_is_the_running_mean(rng):
    X = blobs(rng, 30)
    km = GMMKMeans(1)
    for row in X:
        km.partial_fit(row[None])
    assert km.cluster_centers_ == pytest.approx(X.mean(axis=0, keepdims=True))
    assert km.inertia_ == pytest.approx(((X - X.mean(axis=0)) ** 2).sum())


def test_a_stream_keeps_its_number_of_clusters(rng):
    km = GMMKMeans(3, random_state=0).partial_fit(blobs(rng))
    with pytest.raises(ValueError, match="n_clusters=4, but the chunks before left 3"):
        km.set_params(n_clusters=4).partial_fit(blobs(rng))


# Interrupts


def _interrupt_at(monkeypatch, number):
    calls = itertools.count(1)
    choose = RandomWalk.choose

    def interrupted(self, *arguments):
        if next(calls) == number:
            raise KeyboardInterrupt
        return choose(self, *arguments)

    monkeypatch.setattr(RandomWalk, "choose", interrupted)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_gives_the_best_so_far(n_jobs, rng, monkeypatch):
    X = blobs(rng, 200, 8)
    km = GMMKMeans(6, bound="random", init="random_partition", n_init=2, n_jobs=n_jobs, random_state=0)
    _interrupt_at(monkeypatch, 5)
    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        km.fit(X)
    assert np.array_equal(km.labels_, km.predict(X))
    _interrupt_at(monkeypatch, 5)
    with pytest.raises(KeyboardInterrupt):  # the second within two seconds
        km.fit(X)


def test_interrupt_before_there_is_anything_is_passed_on(rng):
    def init(X, n_clusters, random_state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        GMMKMeans(3, init=init).fit(blobs(rng))


def test_a_limit_of_bounds_is_told(rng):
    with pytest.warns(ConvergenceWarning, match="stopped after max_iter=2 bounds"):
        km = GMMKMeans(6, max_iter=2, init="forgy", random_state=0).fit(blobs(rng, 200, 8))
    assert km.n_iter_ == 2


# Bad input


X0 = np.arange(12.0).reshape(6, 2)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"n_clusters": 0}, "n_clusters must be a whole number of at least 1, got 0"),
        ({"eta": 1.5}, r"eta must be in \(0, 1\], got 1.5"),
        ({"bound": "lloyd"}, "bound must be one of .* got 'lloyd'"),
        ({"init": np.zeros((3, 2))}, r"init has the shape \(3, 2\); n_clusters=2 and 2 features need \(2, 2\)"),
        ({"init": [[0.0, np.nan], [1.0, 1.0]]}, "init contains NaN or infinity"),
        ({"init": object()}, "init must be one of .* or a function"),
        ({"init": lambda X, k, random_state: X}, r"init has the shape \(6, 2\)"),
        ({"sweeps": 0}, "sweeps must be greater than 0"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        GMMKMeans(**{"n_clusters": 2, **options}).fit(X0)


def test_bad_data_is_refused():
    km = GMMKMeans(2, random_state=0)
    spoiled = np.where(np.arange(12).reshape(6, 2) == 7, np.nan, X0)
    for data, weight, error, message in (
        (spoiled, None, ValueError, "X contains NaN at row 3, column 1"),
        (sp.csr_matrix(X0), None, TypeError, r"[Ss]parse"),
        (X0, [1, 1, 1, 1, 1, -1], ValueError, "must not be negative"),
        (X0, [0, 0, 0, 0, 0, 1], ValueError, "n_samples=1 rows of weight above zero should be >= n_clusters=2"),
    ):
        with pytest.raises(error, match=message):
            km.fit(data, sample_weight=weight)
    assert not hasattr(km, "cluster_centers_")


# Keeping and passing on


def test_saved_and_pickled_models_are_the_same(rng, tmp_path):
    X = blobs(rng)
    km = GMMKMeans(3, init=lambda X, k, random_state: X[:k], random_state=0).fit(X)
    km.save(tmp_path / "clusters.safetensors")
    kept = mm.load(tmp_path / "clusters.safetensors")
    assert kept.init == "k-means++" and kept.history_ == km.history_ and kept.n_iter_ == km.n_iter_
    km.set_params(init=X[:3])
    for same in (kept, pickle.loads(pickle.dumps(km))):
        assert np.array_equal(same.predict(X), km.labels_) and same.inertia_ == km.inertia_
        assert np.array_equal(
            same.partial_fit(X + 0.1).cluster_centers_, copy.deepcopy(km).partial_fit(X + 0.1).cluster_centers_
        )
    assert clone(km).get_params().keys() == km.get_params().keys()


def test_verbose_tells_about_starts_and_bounds(rng, capsys):
    km = GMMKMeans(3, n_init=2, random_state=0, verbose=1).fit(blobs(rng))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" bound ")[0] for line in lines] == [
        f"GMMKMeans: start {start} of 2, {bound}" for start in (1, 2) for bound in ("kmeans", "merge")
    ]
    km.set_params(bound="kmeans", n_init=1, verbose=2).fit(blobs(rng))
    assert len(capsys.readouterr().err.splitlines()) == km.n_iter_


# Kernels


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("width", "k"), [(3, 4), (20, 4), (3, 1)])
def test_few_points_are_clustered_in_array_code_as_by_kernels(width, k, dtype, rng):
    X, s = rng.normal(size=(40, width)).astype(dtype), rng.uniform(0.5, 2.0, 40)
    X[5] = X[6]
    shift, centres = X.mean(axis=0).astype(np.float64), X[:k].astype(np.float64)
    label = rng.integers(0, k, 40).astype(np.int32)
    found = []
    for loops in (few_points, clusters):
        near, second, least = np.zeros(40, np.int32), np.zeros(40, np.int32), np.zeros(40)
        worth = loops.measure(X, s, shift, centres, label, near, least, 0, 40)
        total, mass, price, gains = np.zeros((k, width)), np.zeros(k), np.zeros(k), np.zeros(3)
        loops.add_rows(X, s, near, 0, 40, total, mass)
        loops.runners_up(X, s, shift, centres, near, least, second, price, 0, 40)
        loops.approach(X, s, least, np.array([7, 5, 9]), gains, 0, 40)
        closest, share = least.copy(), np.zeros(40)
        loops.come_closer(X, s, closest, 9, share, 0, 40)
        found.append([worth, near, least, total, mass, second, price, gains, closest, share])
    for few, compiled in zip(*found, strict=True):
        np.testing.assert_allclose(few, compiled, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("width", [2, WIDE])
def test_kernels_equal_their_source(width, rng):
    both = partial(equals_its_source, rtol=1e-9, atol=1e-12)
    n, k = 2 * clusters.BLOCK + 9, 4
    X, s = blobs(rng, n, 5, width), rng.uniform(0.5, 2.0, size=n)
    centres, shift, label = X[:k].copy(), X.mean(axis=0), rng.integers(k, size=n).astype(np.int32)
    near, least = np.zeros(n, np.int32), np.zeros(n)
    both(clusters.measure, X, s, shift, centres, label, near, least, 0, n)
    clusters.measure(X, s, shift, centres, label, near, least, 0, n)
    both(clusters.add_rows, X, s, label, 3, n, np.zeros((k, width)), np.zeros(k))
    spent, _ = both(clusters.walk, X, s, centres, near, least, label, 5.0, 3000, 12345678901234567)
    assert 0.0 < spent <= 5.0 + 1e-9
    both(clusters.runners_up, X, s, shift, centres, near, least, label, np.zeros(k), 0, n)
    alone = np.zeros(n, np.int32), least, label, np.zeros(1)
    both(clusters.runners_up, X, s, shift, centres[:1], *alone, 0, n)
    both(clusters.expected_regret, X, s, shift, centres, least, 0.3, 0, n)
    both(clusters.draw, X, s, shift, centres, near, least, 0.3, rng.random(n), label, 0, n)
    both(clusters.approach, X, s, least, np.array([1, 5, 9]), np.zeros(3), 0, n)
    both(clusters.come_closer, X, s, least, 7, np.zeros(n), 0, n)


@pytest.mark.parametrize("bound", ["kmeans", "random", "merge", "gmme"])
def test_float32_tells_centres_apart_that_are_close_together(bound):
    rng = np.random.default_rng(0)
    far = rng.normal(size=(10, 16)) * 100.0
    centres = np.concatenate([far, far + 0.05])  # in pairs, much closer than they are to the origin
    X = (np.repeat(centres, 20, axis=0) + 0.02 * rng.normal(size=(400, 16))).astype(np.float32)
    svm = GMMKMeans(20, bound=bound, init=centres.astype(np.float32), n_init=1, random_state=0).fit(X)
    distance = ((X[:, None, :].astype(np.float64) - svm.cluster_centers_.astype(np.float64)) ** 2).sum(axis=2)
    assert svm.inertia_ == pytest.approx(distance.min(axis=1).sum(), rel=1e-3)
    chosen = distance[np.arange(400), svm.labels_]
    np.testing.assert_allclose(chosen, distance.min(axis=1), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("bound", ["kmeans", "random", "merge"])
def test_history_tells_how_many_labels_changed_since_the_bound_before(bound):
    X = np.random.default_rng(3).normal(size=(300, 2))
    history = GMMKMeans(6, bound=bound, init="forgy", random_state=0).fit(X).history_
    changed = [record.changed for record in history]
    assert changed[0] == 1.0  # there was none before
    assert all(0.0 <= share <= 1.0 for share in changed)
    assert min(changed) < 0.5

"""Patches, pooling, and what parts respond: everything against loops over patches."""

import numpy as np
import pytest
from compiled import equals_its_source
from hypothesis import given, settings, strategies as st
from parts_by_hand import looked_up, looked_up_at, ragged, region_of
from thinned import rotating

from maxmargin.solvers.threads import in_parts
from maxmargin.vision.kernels import part_ascent, part_places
from maxmargin.vision.parts.detections import best_detections
from maxmargin.vision.parts.patches import Patches
from maxmargin.vision.parts.responses import Pooling, Responder, respond_all, responses_of

GRIDS = [(1,), (2,), (1, 2), (1, 2, 3), (3, 3)]


# Patches.


def test_stacked_patches_lie_one_image_after_the_other():
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(n, 3)) for n in (2, 1, 4)]
    windows = [rng.uniform(size=(len(bag), 4)) for bag in bags]
    stacked = Patches.stack(bags, windows).checked()
    assert (len(stacked), stacked.n_features) == (3, 3)
    for i, bag in enumerate(bags):
        np.testing.assert_array_equal(stacked.values[stacked.of(i)], bag)
        np.testing.assert_allclose(stacked.windows[stacked.of(i)], windows[i], rtol=1e-6)


def broken(**changes):
    whole = ragged(n=3, n_views=2)
    return Patches(**{**vars(whole), **changes}).checked


def with_nan():
    values = ragged(n=3, n_views=2).values.copy()
    values[-1, 2] = np.nan
    return values


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: Patches.stack([np.ones((2, 3)), np.ones((2, 4))]), r"as many features in all images; got shapes"),
        (lambda: Patches.stack([np.ones(3), np.ones(3)]), r"an array \(patches, features\)"),
        (lambda: Patches.stack([]), r"an array \(patches, features\)"),
        (broken(values=np.ones((4, 2), int)), "must be floats"),
        (broken(values=np.ones((4, 0))), "must be floats"),
        (broken(values=np.ones(4)), "must be floats"),
        (broken(first=np.array([0, 1, 2])), "must rise from 0 to the number of patches"),
        (broken(first=np.array([], int)), "must rise from 0"),
        (broken(first=[0, 1, 2]), "made of arrays"),
        (broken(first=np.linspace(0.0, 21.0, 7)), "in whole numbers"),
        (Patches(np.ones((0, 1)), np.array([0])).checked, "patches of no images"),
        (broken(n_views=1.5), "n_views=1.5"),
        (broken(windows=np.full((21, 4), np.nan)), "windows must be an array of finite numbers"),
        (broken(n_views=4), "6 views are not those of images with n_views=4"),
        (broken(n_views=0), "n_views=0"),
        (broken(windows=np.ones((2, 4))), r"windows have shape \(2, 4\)"),
        (broken(values=with_nan()), "image 2 is not finite"),
        (Patches(np.ones((2, 1)), np.array([0, 1, 1, 2])).checked, "Image 1 has no patches"),
    ],
)
def test_what_is_wrong_with_patches_is_said(check, message):
    with pytest.raises(ValueError, match=message):
        check()


# Pooling.


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(0, 2**32 - 1))
def test_a_window_lies_in_one_cell_of_each_grid(grids, seed):
    rng = np.random.default_rng(seed)
    corner = rng.uniform(0.0, 0.9, (20, 2))
    windows = np.hstack([corner, corner + rng.uniform(0.0, 0.2, corner.shape)])  # some reach beyond the image
    pooling = Pooling(grids)
    member = pooling.member[:, pooling.atoms(windows)]
    assert pooling.n_regions == sum(g * g for g in grids)
    for k, window in enumerate(windows):
        assert sorted(np.flatnonzero(member[:, k])) == region_of(window, grids)


@pytest.mark.parametrize("grids", [(), (0,), (1.5,), "no", 3, None, (2, -1)])
def test_grids_must_be_whole_numbers(grids):
    with pytest.raises(ValueError, match="regions must be whole numbers from 1 on"):
        Pooling(grids)


def test_regions_need_windows():
    bags = Patches(np.ones((4, 2)), np.array([0, 2, 4]))
    with pytest.raises(ValueError, match="nobody knows where in its image a patch is"):
        Responder(bags, Pooling((1, 2)))
    assert Responder(bags, Pooling((1, 1))).respond(np.arange(2), np.ones((1, 2))).responses.shape == (2, 1, 2)


# Responses.


@pytest.mark.parametrize(("grids", "n_views"), rotating(GRIDS, [1, 2, 3], times=2))
def test_responses_are_the_largest_scores(grids, n_views):
    patches = ragged(1, n_views=n_views)
    filters = np.random.default_rng(10).normal(size=(3, 4))
    found = Responder(patches, Pooling(grids)).respond(np.arange(5), filters)
    responses, places = looked_up(patches, filters, grids)
    np.testing.assert_array_equal(found.places, places)
    np.testing.assert_allclose(found.responses, responses, atol=1e-12)
    if grids == (1, 2, 3):
        assert (places < 0).any()
        assert not found.responses[(places < 0).all(axis=1)].any()


@pytest.mark.parametrize(
    ("dtype", "working"), [(np.float16, "float32"), (np.float32, "float32"), (np.float64, "float64")]
)
@pytest.mark.parametrize("mapped", [False, True])
def test_patches_of_any_precision_and_in_files(dtype, working, mapped, tmp_path):
    patches = ragged(3, dtype=dtype)
    filters = np.random.default_rng(4).normal(size=(3, 4))
    expected = looked_up(patches, filters, (1, 2))
    if mapped:
        np.save(tmp_path / "values.npy", patches.values)
        values = np.load(tmp_path / "values.npy", mmap_mode="r")
        patches = Patches(values, patches.first, patches.windows, patches.n_views).checked()
    responder = Responder(patches, Pooling((1, 2)))
    found = responder.respond(np.arange(5), filters)
    accuracy = {"rtol": 1e-12, "atol": 1e-12} if dtype == np.float64 else {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(found.responses, expected[0], **accuracy)
    np.testing.assert_array_equal(found.places, expected[1])
    rows = responder.rows(np.arange(5), found.places, np.ones((5, 3, 5)))
    assert rows.dtype == responder.dtype == np.dtype(working)
    np.testing.assert_allclose(rows @ filters.ravel(), -expected[0].sum(axis=(1, 2)), **accuracy)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.sampled_from(GRIDS))
def test_scores_and_rows_at_any_places(seed, n_views, grids):
    patches = ragged(seed, n_views=n_views)
    rng = np.random.default_rng(seed)
    pooling = Pooling(grids)
    filters, weights = rng.normal(size=(2, 4)), rng.normal(size=(5, 2, pooling.n_regions))
    sizes = np.diff(patches.first).reshape(5, n_views)
    places = rng.integers(-1, sizes[:, :, None, None], (5, n_views, 2, pooling.n_regions)).astype(np.int32)
    responder = Responder(patches, pooling)
    scores = responder.scores_at(np.arange(5), filters, places)
    np.testing.assert_allclose(scores, looked_up_at(patches, filters, places), atol=1e-12)
    rows = responder.rows(np.arange(5), places, weights)
    np.testing.assert_allclose(rows @ filters.ravel(), -(weights * scores).sum(axis=(1, 2)), atol=1e-12)
    # A row has a block for each part, which knows nothing of the others.
    alone = responder.rows(np.arange(5), places, weights * np.array([1.0, 0.0])[:, None])
    np.testing.assert_array_equal(alone[:, 4:], 0.0)
    np.testing.assert_array_equal(alone[:, :4], rows[:, :4])


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_threads_share_the_images(n_jobs):
    patches = ragged(9, n=150, n_views=1, dtype=np.float32)
    filters = np.random.default_rng(10).normal(size=(3, 4))
    responder = Responder(patches, Pooling((1, 2)))
    whole = responder.respond(np.arange(150), filters)
    found = respond_all(responder, filters, n_jobs)
    np.testing.assert_allclose(found.responses, whole.responses, rtol=1e-6)
    np.testing.assert_array_equal(found.places, whole.places)
    np.testing.assert_array_equal(responses_of(responder, filters, n_jobs), found.responses)
    parts = in_parts(lambda some: np.arange(150)[some], 150, 64, n_jobs)
    assert len(parts) > 1
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(150))


# Compiled code does what it says in Python.


def test_kernels_of_places_agree_with_python():
    rng = np.random.default_rng(11)
    values, filters = rng.normal(size=(9, 4)), rng.normal(size=(3, 4))
    scores, atom = values @ filters.T, rng.integers(0, 3, 9).astype(np.int32)  # of four atoms, the last is empty
    member = np.array([[1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 0, 1]], dtype=bool)
    near = {"rtol": 0.0, "atol": 1e-14}
    best, at = np.empty((4, 3)), np.empty((4, 3), np.int32)
    _, (_, _, best, at) = equals_its_source(part_places.best_of_atoms, scores, atom, best, at, **near)
    responses, place = np.zeros((3, 3)), np.empty((3, 3), np.int32)
    _, (*_, responses, place) = equals_its_source(
        part_places.best_of_regions, best, at, member, 0.5, responses, place, **near
    )
    assert (at[3] == -1).all() and (place[:, 2] == -1).all()
    _, (*_, seen) = equals_its_source(part_places.add_scores_at, values, filters, place, 0.5, np.zeros((3, 3)), **near)
    np.testing.assert_allclose(seen, responses, atol=1e-14)
    weights = np.arange(9.0).reshape(3, 3) - 2.0
    equals_its_source(part_places.add_features_at, values, place, weights, 0.5, np.zeros((3, 4)), **near)


def test_the_worst_rival_is_that_of_a_loop_over_classes():
    rng = np.random.default_rng(12)
    u, offset, label = rng.normal(size=(4, 6)), rng.normal(size=4), rng.integers(0, 4, 8)
    free = rng.normal(size=(8, 6))
    fixed = free - rng.exponential(size=(8, 6))
    for function in (part_places.rival_classes, part_places.rival_classes.py_func):
        rival, missing = np.empty(8, np.int64), np.empty(8)
        function(u, offset, label, free, fixed, rival, missing)
        for i, y in enumerate(label):
            lacks = {}
            for k in set(range(4)) - {y}:
                d = u[k] - u[y]
                lacks[k] = 1.0 + offset[k] - offset[y] + np.where(d >= 0.0, d * free[i], d * fixed[i]).sum()
            assert rival[i] == max(lacks, key=lacks.get)
            assert missing[i] == pytest.approx(max(lacks.values()))


def dual(x, loss, share, scale, rest):
    """Σ α l − ‖rest + scale Σ α x‖²/(2 scale): what a visit raises."""
    w = rest + scale * share @ x
    return share @ loss - 0.5 * w @ w / scale


@pytest.mark.parametrize("seed", range(3))
def test_a_visit_raises_the_dual_and_keeps_within_the_budget(seed):
    rng = np.random.default_rng(seed)
    n, n_parts, d, scale, budget = 3, 2, 4, 0.5, 1.5
    x, towards = rng.normal(size=(n, n_parts * d)), rng.normal(size=(n, n_parts * d))
    loss, movable = rng.uniform(0.5, 1.5, n), np.array([True, True, False])
    share = np.array([0.6, 0.0, 0.4])
    rest = rng.normal(size=n_parts * d)
    results = []
    for function in (part_ascent.visit, part_ascent.visit.py_func):
        own, part = x.copy(), share.copy()
        w = rest + scale * share @ x
        paid, change = function(own, loss, part, towards.copy(), movable, budget, scale, w, n_parts)
        assert paid == pytest.approx(share @ (loss - x @ (rest + scale * share @ x)))
        assert change == pytest.approx((part - share) @ loss)
        np.testing.assert_allclose(w, rest + scale * part @ own, atol=1e-12)  # w follows
        assert (part >= 0.0).all()
        assert part.sum() <= budget + 1e-12
        assert dual(own, loss, part, scale, rest) >= dual(x, loss, share, scale, rest) - 1e-12
        np.testing.assert_array_equal(own[2], x[2])  # an average stays
        np.testing.assert_array_equal(own[1], towards[1])  # what has no share goes all the way
        block, goal, start = own[0].reshape(n_parts, d), towards[0].reshape(n_parts, d), x[0].reshape(n_parts, d)
        for j in range(n_parts):  # every part on its own way
            far = (block[j] - start[j]) @ (goal[j] - start[j]) / ((goal[j] - start[j]) ** 2).sum()
            np.testing.assert_allclose(block[j], start[j] + far * (goal[j] - start[j]), atol=1e-12)
            assert -1e-12 <= far <= 1.0 + 1e-12
        results.append((own, part, w))
    for compiled, python in zip(*results, strict=True):
        np.testing.assert_allclose(compiled, python, atol=1e-12)


def test_every_part_takes_its_own_exact_step():
    rng = np.random.default_rng(1)
    x, towards, w0 = rng.normal(size=6), rng.normal(size=6), rng.normal(size=6)
    share, scale = 0.7, 0.5
    for function in (part_ascent.move_parts, part_ascent.move_parts.py_func):
        own, w = x.copy(), w0.copy()
        function(own, towards, share, scale, w, 2)
        for j, block in enumerate((slice(0, 3), slice(3, 6))):
            steps = np.linspace(0.0, 1.0, 2001)
            tried = [np.sum((w0[block] + scale * share * s * (towards - x)[block]) ** 2) for s in steps]
            best = steps[int(np.argmin(tried))]
            np.testing.assert_allclose(
                own[block], x[block] + best * (towards - x)[block], atol=2e-3, err_msg=f"part {j}"
            )
    assert part_ascent.dot.py_func(x, w0) == pytest.approx(x @ w0)


# Detections.


def overlap(a, b):
    across = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    down = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    both = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - across * down
    return across * down / both


def detected(patches, w, n, per_image, start=0):
    """(image, view, patch, window in the image) of the best places, by hand."""
    found = []
    for i in range(len(patches)):
        every = []
        for v in range(patches.n_views):
            a, b = patches.first[i * patches.n_views + v], patches.first[i * patches.n_views + v + 1]
            for q in range(a, b):
                left, top, right, bottom = patches.windows[q].astype(float)
                window = (1 - right, top, 1 - left, bottom) if v == 1 else (left, top, right, bottom)
                every.append((float(patches.values[q] @ w), start + i, v, q - a, window))
        taken = []
        for one in sorted(every, key=lambda e: -e[0]):
            if len(taken) < per_image and all(overlap(one[4], t[4]) < 0.5 for t in taken):
                taken.append(one)
        found += taken
    return sorted(found, key=lambda e: -e[0])[:n]


@pytest.mark.parametrize(("n_views", "n", "per_image"), [(1, 3, 1), (2, 7, 2), (2, 100, 5)])
def test_the_best_detections_are_those_of_a_search_by_hand(n_views, n, per_image):
    rng = np.random.default_rng(n)
    patches = ragged(13, n=20, n_views=n_views, most=9)
    corner = rng.choice([0.0, 0.05, 0.3, 0.6], (len(patches.values), 2))  # so that many overlap
    patches = Patches(patches.values, patches.first, np.hstack([corner, corner + 0.3]), n_views)
    w = rng.normal(size=4)
    found, expected = best_detections(patches, w, n, per_image, start=5), detected(patches, w, n, per_image, 5)
    assert [(d.image, int(d.mirrored), d.patch) for d in found] == [e[1:4] for e in expected]
    np.testing.assert_allclose([d.score for d in found], [e[0] for e in expected])
    np.testing.assert_allclose([d.window for d in found], [e[4] for e in expected])

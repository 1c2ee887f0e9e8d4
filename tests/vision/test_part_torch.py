"""Responses of parts by PyTorch: those of the compiled code, whatever the blocks and wherever patches are."""

import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from thinned import rotating

from maxmargin.vision.parts import joint
from maxmargin.vision.parts.joint import JointSettings, JointTraining
from maxmargin.vision.parts.patches import Patches
from maxmargin.vision.parts.responses import Pooling, Responder, respond_all, responder_for
from maxmargin.vision.parts.torch_responses import TorchResponder


@pytest.fixture
def torch():
    """Responses need it; what is checked without it does not."""
    return pytest.importorskip("torch", reason="needs maxmargin[torch]")


def some_patches(sizes, n_views=1, d=5, dtype=np.float32, seed=0, corner=False):
    """Patches of views with so many each; in the first quarter of the image only, if all are in a corner."""
    rng = np.random.default_rng(seed)
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    corners = rng.random((2, int(first[-1]), 2)) * (0.5 if corner else 1.0)
    windows = np.concatenate([corners.min(axis=0), corners.max(axis=0)], axis=1)
    return Patches(rng.normal(size=(int(first[-1]), d)).astype(dtype), first, windows, n_views)


def both(patches, grids=(1, 2), memory=None):
    return Responder(patches, Pooling(grids)), TorchResponder(patches, Pooling(grids), "cpu", memory)


def assert_same(host, other, ids, n_parts=4, seed=1):
    rng = np.random.default_rng(seed)
    filters = rng.normal(size=(n_parts, host.patches.n_features))
    close = {"rtol": 0.0, "atol": 1e-12 if host.dtype == np.float64 else 2e-5}
    expected, found = host.respond(ids, filters), other.respond(ids, filters)
    np.testing.assert_allclose(found.responses, expected.responses, **close)
    np.testing.assert_array_equal(found.places, expected.places)
    places = _other_places(host, ids, expected.places, rng)
    scores = other.scores_at(ids, filters, places)
    np.testing.assert_allclose(scores, host.scores_at(ids, filters, places), **close)
    weights = rng.normal(size=scores.shape)
    rows, right = other.rows(ids, places, weights), host.rows(ids, places, weights)
    np.testing.assert_allclose(rows, right, **close)
    for a, b in ((found.responses, expected.responses), (found.places, expected.places), (rows, right)):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
    assert other.dtype == host.dtype
    # The product of rows with filters is the weighed sum of scores.
    np.testing.assert_allclose(rows @ filters.ravel(), -(weights * scores).sum((1, 2)), rtol=1e-4, atol=1e-3)


def _other_places(host, ids, places, rng):
    """Any patch of the view instead of the best, where there is one."""
    n_views = host.patches.n_views
    n = np.diff(host.patches.first)[ids[:, None] * n_views + np.arange(n_views)][..., None, None]
    return np.where(places < 0, -1, (rng.random(places.shape) * n).astype(np.int32)).astype(np.int32)


@pytest.mark.parametrize(
    ("dtype", "n_views", "grids"),
    rotating([np.float16, np.float32, np.float64], [1, 2, 3], [(1,), (1, 2), (2, 3)], times=3),
)
def test_responses_are_those_of_the_host(torch, dtype, n_views, grids):
    patches = some_patches(np.random.default_rng(0).integers(5, 40, 7 * n_views), n_views, dtype=dtype)
    host, other = both(patches, grids)
    assert other.resident
    assert_same(host, other, np.array([3, 0, 6, 5]))
    without = Patches(patches.values, patches.first, n_views=n_views)
    assert_same(*both(without, (1,)), np.arange(2))
    with pytest.raises(ValueError, match="nobody knows where in its image"):
        TorchResponder(without, Pooling((1, 2)), "cpu")


def test_of_equal_scores_the_first_wins(torch):
    """Also where shorter atoms are filled up."""
    patches = some_patches([6, 30, 17])
    patches.values[:] = 1.0
    assert_same(*both(patches, (1, 2)), np.arange(3))


def test_several_threads_may_ask(torch):
    host, other = both(some_patches([20] * 150), memory=30_000)
    filters = np.random.default_rng(0).normal(size=(3, 5))
    expected, found = respond_all(host, filters), respond_all(other, filters, n_jobs=3)
    np.testing.assert_allclose(found.responses, expected.responses, atol=1e-5)
    np.testing.assert_array_equal(found.places, expected.places)


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 9), min_size=2, max_size=12),
    n_views=st.integers(1, 2),
    memory=st.sampled_from([None, 0, 20_000, 100_000]),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_ragged_images_and_empty_regions(sizes, n_views, memory, seed, data):
    """Whole images may have no patches, the first and the last included; an image may be asked for more than once."""
    pytest.importorskip("torch", reason="needs maxmargin[torch]")
    sizes = sizes[: len(sizes) // n_views * n_views]
    host, other = both(some_patches(sizes, n_views, seed=seed), memory=memory)
    ids = np.array(data.draw(st.lists(st.integers(0, len(host.patches) - 1), max_size=6)), np.int64)
    assert_same(host, other, ids, n_parts=3, seed=seed)


def test_where_nothing_is_nothing_responds(torch):
    _, other = both(some_patches([4, 0, 3], corner=True))
    found = other.respond(np.arange(3), np.random.default_rng(0).normal(size=(2, 5)))
    assert (found.places[:, :, :, 2:] == -1).all() and (found.places[1] == -1).all()
    assert (found.responses[:, :, 2:] == 0.0).all() and (found.responses[1] == 0.0).all()
    assert (found.places[[0, 2], :, :, :2] >= 0).all()
    _, nobody = both(some_patches([0, 0]))
    assert (nobody.respond(np.arange(2), np.ones((2, 5))).places == -1).all()
    _, streamed = both(some_patches([0, 0]), memory=0)
    assert (streamed.respond(np.arange(2), np.ones((2, 5))).responses == 0.0).all()


@pytest.mark.parametrize(
    ("block", "dtype", "resident"),
    rotating([0, 30_000, 60_000, 2**30], [np.float16, np.float32, np.float64], [True, False], times=2),
)
def test_blocks_of_any_size(torch, block, dtype, resident):
    host, other = both(
        some_patches(np.random.default_rng(1).integers(0, 30, 24), 2, dtype=dtype), memory=None if resident else 0
    )
    assert other.resident == resident
    other._block = block
    seen, best = [], other._best
    other._best = lambda ids, turned: seen.append(ids.size) or best(ids, turned)
    assert_same(host, other, np.random.default_rng(2).permutation(12))
    assert sum(seen) == 12
    few, many = {0: (12, 12), 2**30: (1, 1)}.get(block, (2, 11))
    assert few <= len(seen) <= many


def test_patches_stay_on_the_device_if_there_is_room_for_blocks_too(torch):
    patches = some_patches([50] * 4)
    held = patches.values.nbytes
    for memory, resident in ((held, False), (2 * held - 16, False), (2 * held + 16, True), (None, True)):
        host, other = both(patches, memory=memory)
        assert other.resident == resident
        assert_same(host, other, np.array([2, 2, 0]))


def test_products_keep_their_digits_and_settings_stay(torch):
    """Whoever allows short products elsewhere gets full ones here, and what was allowed still is afterwards."""
    from maxmargin.vision.parts.torch_responses import _all_digits

    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        allowed = _precisions(torch)
        assert not set(allowed) & {"ieee", "highest", "none"}
        entered, leave, within = threading.Event(), threading.Event(), []

        def other_thread():
            with _all_digits():
                entered.set()
                leave.wait(10)

        thread = threading.Thread(target=other_thread)
        with _all_digits():
            thread.start()
            entered.wait(10)
            within.append(_precisions(torch))
        within.append(_precisions(torch))  # the other one is still at it
        leave.set()
        thread.join()
        assert all(p in ("ieee", "highest") for some in within for p in some)
        assert _precisions(torch) == allowed
        assert_same(*both(some_patches([30, 40], d=60), (1,)), np.arange(2))
        assert _precisions(torch) == allowed and torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


def _precisions(torch):
    if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        return [torch.backends.cuda.matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision]
    return [torch.get_float32_matmul_precision()]


def scenes(dtype, per_class=4, n_parts=3):
    """(patches, labels, filters) of three classes, each with patches of its own kind."""
    rng = np.random.default_rng(0)
    label = np.repeat(np.arange(3), per_class)
    patches = some_patches(rng.integers(6, 12, 2 * label.size), 2, d=4, dtype=dtype)
    kinds = rng.normal(size=(3, 4))
    for i, y in enumerate(label):
        patches.values[patches.of(i)][::4] += kinds[y]
    return patches, label, patches.values[rng.choice(len(patches.values), n_parts, replace=False)].astype(np.float64)


@pytest.mark.parametrize("memory", [None, 0])
def test_joint_training_ends_in_the_same_place(torch, memory, monkeypatch):
    """Ascent that stops early may stop elsewhere after the least rounding, so here every bound is solved to the end."""
    monkeypatch.setattr(joint, "_PASSES", 3000)
    patches, label, filters = scenes(np.float64)
    found = []
    for responder in both(patches, memory=memory):
        chosen = JointSettings(max_rounds=2, tol=1e-5, bound_tol=1e-6, random_state=0)
        found.append(JointTraining(responder, label, 3, np.array([0.1]), filters, chosen).run())
    host, other = ([record.objective for record in trained.history] for trained in found)
    assert host[-1] < 0.99 * host[0]
    assert other == pytest.approx(host, rel=1e-4)


def test_the_device_says_who_responds(torch):
    patches, pooling = some_patches([3, 4]), Pooling((1,))
    assert type(responder_for(patches, pooling)) is Responder
    assert type(responder_for(patches, pooling, "cpu")) is Responder
    assert type(responder_for(patches, pooling, "cpu:0")) is TorchResponder


@pytest.mark.parametrize("device", ["gpu", "cuda:99", "meta", 1.5])
def test_a_device_that_is_not_there(torch, device):
    with pytest.raises(ValueError, match=r"device=.* cannot be used: .+\. PyTorch \S+ has 'cpu'.* here\."):
        responder_for(some_patches([3, 4]), Pooling((1,)), device)


def test_without_torch_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r'pip install "maxmargin\[torch\]"'):
        responder_for(some_patches([3, 4]), Pooling((1,)), "cuda")

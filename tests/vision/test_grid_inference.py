"""Searches over grids against trying everything, against each other, and against the cuts of general graphs."""

import threading
from itertools import product

import numpy as np
import pytest
from compiled import equals_its_source
from hypothesis import given, settings, strategies as st

from maxmargin.inference import cuts
from maxmargin.vision.kernels import frontiers, swaps
from maxmargin.vision.models import grids
from maxmargin.vision.models.grids import GridSearch

few = settings(max_examples=40, deadline=None)
seeds = st.integers(0, 2**32 - 1)
small = st.sampled_from(
    [(2, 2, 4), (2, 3, 4), (3, 2, 3), (1, 5, 4), (5, 1, 3), (3, 3, 3), (3, 3, 2), (1, 1, 4), (2, 3, 1)]
)


def edges_of(rows, cols):
    """Pairs of neighbours, the left or upper one first, and whether they are side by side."""
    cell = np.arange(rows * cols).reshape(rows, cols)
    beside = np.stack([cell[:, :-1].ravel(), cell[:, 1:].ravel()], axis=1)
    above = np.stack([cell[:-1].ravel(), cell[1:].ravel()], axis=1)
    return np.concatenate([beside, above]), np.arange(len(beside) + len(above)) < len(beside)


def score_of(rows, cols, unary, horizontal, vertical, z):
    """Written again, slowly: nothing here is shared with the searches."""
    total = sum(unary[r, k] for r, k in enumerate(z))
    for (r, s), side in zip(*edges_of(rows, cols), strict=True):
        total += horizontal[z[r], z[s]] if side else vertical[z[r], z[s]]
    return total


def by_trying(rows, cols, unary, horizontal, vertical):
    every = product(range(unary.shape[1]), repeat=len(unary))
    return max(score_of(rows, cols, unary, horizontal, vertical, z) for z in every)


def regular_table(rng, m, scale=1.0):
    """An antisymmetric part, costs of being different, and what each label is worth: regular, and not symmetric."""
    turned, costs, worth = rng.normal(size=(m, m)), np.abs(rng.normal(size=(m, m))), rng.normal(size=m)
    costs = np.triu(costs, 1)
    return scale * (turned - turned.T - costs - costs.T + worth[:, None] + worth)


def instance(rng, rows, cols, m, n=1, scale=1.0):
    """n grids with a table of their own each."""
    tables = [np.stack([regular_table(rng, m, scale) for _ in range(n)]) for _ in range(2)]
    return rng.normal(size=(n, rows * cols, m)), *tables


def improved_by_cuts(rows, cols, unary, horizontal, vertical, labels):
    """The score after swap moves of the general cuts."""
    edges, side = edges_of(rows, cols)
    return cuts.swap(unary, edges, np.where(side[:, None, None], horizontal, vertical), labels)[1]


@few
@given(seeds, small)
def test_frontiers_find_the_best_of_all(seed, size):
    rows, cols, m = size
    unary, horizontal, vertical = (a[0] for a in instance(np.random.default_rng(seed), rows, cols, m))
    vertical = np.random.default_rng(seed + 1).normal(size=(m, m))  # exact whatever the tables
    search = GridSearch(rows, cols, m)
    labels, score = search.best(unary, horizontal, vertical)
    assert search.exact
    assert score == pytest.approx(by_trying(rows, cols, unary, horizontal, vertical), abs=1e-9)
    assert score == pytest.approx(score_of(rows, cols, unary, horizontal, vertical, labels), abs=1e-9)


@few
@given(seeds, st.integers(1, 6), st.integers(1, 4))
def test_two_labels_by_cuts_are_exact(seed, rows, cols):
    unary, horizontal, vertical = instance(np.random.default_rng(seed), rows, cols, 2, n=10, scale=0.5)
    search = GridSearch(rows, cols, 2)
    _, score = search.best(unary, horizontal, vertical)
    # A third label that nobody may take leads over all frontiers.
    unary = np.concatenate([unary, np.full((10, rows * cols, 1), -np.inf)], axis=2)
    horizontal, vertical = (np.pad(t, ((0, 0), (0, 1), (0, 1))) for t in (horizontal, vertical))
    three = GridSearch(rows, cols, 3, exact_limit=10**7)
    assert search.exact
    assert three.exact
    np.testing.assert_allclose(score, three.best(unary, horizontal, vertical)[1], atol=1e-9)


@pytest.mark.parametrize("noise", [1.0, 0.1, 0.01])
def test_cuts_of_smooth_grids_are_exact(noise):
    # Gain has far to go where neighbours hold together, and most of the grid changes in one piece.
    rng = np.random.default_rng(0)
    rows, cols = 14, 15
    edges, side = edges_of(rows, cols)
    for _ in range(15):
        unary = noise * rng.normal(size=(rows * cols, 2))
        horizontal, vertical = (regular_table(rng, 2, 0.1) for _ in range(2))
        _, score = GridSearch(rows, cols, 2).best(unary, horizontal, vertical)
        tables = np.where(side[:, None, None], horizontal, vertical)
        _, best, excess = cuts.best_binary(unary, edges, tables)
        assert best - 1e-9 <= score <= best + excess + 1e-9


def test_more_labels_than_an_integer_has_bits():
    rng = np.random.default_rng(0)
    unary, horizontal, vertical = instance(rng, 4, 6, 2, n=10, scale=0.5)
    many = np.full((10, 24, 90), -np.inf)
    many[:, :, [3, 80]] = unary
    tables = rng.normal(size=(2, 10, 90, 90)) - 100 * (1 - np.eye(90))
    for i, table in enumerate((horizontal, vertical)):
        tables[i][np.ix_(range(10), [3, 80], [3, 80])] = table
    start = np.where(rng.random((10, 24)) < 0.5, 3, 80)
    labels, score = GridSearch(4, 6, 90).best(many, *tables, start=start)
    assert np.isin(labels, [3, 80]).all()
    np.testing.assert_allclose(score, GridSearch(4, 6, 2).best(unary, horizontal, vertical)[1], atol=1e-9)


@few
@given(seeds, st.sampled_from([(5, 6, 3), (4, 4, 6), (7, 3, 4)]), st.booleans(), st.booleans())
def test_moves_only_improve_and_their_scores_are_true(seed, size, warm, regular):
    rows, cols, m = size
    rng = np.random.default_rng(seed)
    unary, horizontal, vertical = instance(rng, rows, cols, m, n=4, scale=0.4)
    if not regular:
        horizontal = rng.normal(size=horizontal.shape)
    given = unary, horizontal, vertical
    search = GridSearch(rows, cols, m, exact_limit=0)
    start = rng.integers(m, size=(4, rows * cols)) if warm else unary.argmax(axis=2)
    labels, score = search.best(*given, start=start if warm else None)
    single, single_score = search.icm(*given, start=start if warm else None)
    assert not search.exact
    assert (score >= single_score - 1e-9).all()
    assert (single_score >= search.score(start, *given) - 1e-9).all()
    for i in range(4):
        for z, value in ((labels[i], score[i]), (single[i], single_score[i])):
            assert value == pytest.approx(score_of(rows, cols, *(a[i] for a in given), z), abs=1e-9)
            for r, k in product(range(rows * cols), range(m)):
                other = z.copy()
                other[r] = k
                assert score_of(rows, cols, *(a[i] for a in given), other) <= value + 1e-9


@few
@given(seeds, st.sampled_from([(5, 6, 3), (6, 6, 5), (3, 8, 4)]), st.sampled_from([0.2, 0.5, 1.0]))
def test_no_swap_of_the_general_cuts_improves_the_result(seed, size, scale):
    rows, cols, m = size
    unary, horizontal, vertical = (a[0] for a in instance(np.random.default_rng(seed), rows, cols, m, scale=scale))
    labels, score = GridSearch(rows, cols, m, exact_limit=0).best(unary, horizontal, vertical)
    assert improved_by_cuts(rows, cols, unary, horizontal, vertical, labels) <= score + 1e-6


def test_swaps_do_as_well_as_the_general_cuts_and_better_than_single_cells():
    rows, cols, m, n = 8, 8, 4, 40
    rng = np.random.default_rng(0)
    unary = rng.normal(size=(n, rows * cols, m))
    table = np.eye(m) - 0.1 * np.arange(m)[:, None]
    search = GridSearch(rows, cols, m, exact_limit=0)
    score = search.best(unary, table, table.T)[1]
    by_cuts = [improved_by_cuts(rows, cols, u, table, table.T, u.argmax(axis=1)) for u in unary]
    gain = np.mean(by_cuts - search.icm(unary, table, table.T)[1])
    assert gain > 0
    assert np.mean(score) > np.mean(by_cuts) - 0.1 * gain


def test_a_whole_region_changes_at_once():
    # No single cell wants to change, but all of them together do.
    unary = np.tile([0.0, 0.3, 0.1], (25, 1))
    search = GridSearch(5, 5, 3, exact_limit=0)
    start = np.zeros(25, int)
    assert (search.icm(unary, np.eye(3), np.eye(3), start=start)[0] == 0).all()
    assert (search.best(unary, np.eye(3), np.eye(3), start=start)[0] == 1).all()


def test_left_is_not_right_and_up_is_not_down():
    order = np.where(np.arange(3)[:, None] < np.arange(3), 1.0, -np.eye(3) - 1.0)
    for limit in (0, 10**6):
        search = GridSearch(3, 3, 3, exact_limit=limit)
        prefers = np.zeros((9, 3))
        labels, score = search.best(prefers, order, np.zeros((3, 3)), start=np.tile([0, 1, 2], 3))
        assert labels.reshape(3, 3).tolist() == [[0, 1, 2]] * 3
        assert score == 6.0
        labels, score = search.best(prefers, np.zeros((3, 3)), order, start=np.repeat([0, 1, 2], 3))
        assert labels.reshape(3, 3).T.tolist() == [[0, 1, 2]] * 3
        assert score == 6.0


@pytest.mark.parametrize("limit", [0, 10**6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_that_are_not_allowed(limit, dtype):
    rng = np.random.default_rng(3)
    rows, cols, m, n = 3, 4, 3, 30
    unary, horizontal, vertical = instance(rng, rows, cols, m, n=n, scale=5.0)
    unary = unary.astype(dtype)
    forbidden = rng.random(unary.shape) < 0.4
    forbidden[:, :, 0] &= ~forbidden.all(axis=2)
    unary[forbidden] = -np.inf
    search = GridSearch(rows, cols, m, exact_limit=limit)
    for start in (None, rng.integers(m, size=(n, rows * cols))):
        for labels, score in (
            search.best(unary, horizontal, vertical, start=start),
            search.icm(unary, horizontal, vertical),
        ):
            assert np.isfinite(score).all()
            assert np.isfinite(np.take_along_axis(unary, labels[..., None].astype(int), axis=2)).all()
    # Where a cell may not take any label the score says so, and the other cells keep to what they may.
    unary[:, 5] = -np.inf
    labels, score = search.best(unary, horizontal, vertical)
    chosen = np.take_along_axis(unary, labels[..., None].astype(int), axis=2)[..., 0]
    assert (score == -np.inf).all()
    assert np.isfinite(np.delete(chosen, 5, axis=1)).all()


@pytest.mark.parametrize("shape", [(1, 300), (300, 1)])
def test_a_row_or_a_column_is_a_chain(shape):
    rng = np.random.default_rng(0)
    unary, along = rng.normal(size=(300, 5)), rng.normal(size=(5, 5))
    value = unary[0]
    for u in unary[1:]:
        value = u + (value[:, None] + along).max(axis=0)
    other = np.full((5, 5), 100.0)
    tables = (along, other) if shape[0] == 1 else (other, along)
    search = GridSearch(*shape, 5, exact_limit=0)
    assert search.exact
    assert search.best(unary, *tables)[1] == pytest.approx(value.max())


@pytest.mark.parametrize("limit", [0, 10**6])
def test_batches_and_threads_change_nothing(limit, monkeypatch):
    rng = np.random.default_rng(1)
    rows, cols, m, n = 4, 5, 3, 23
    unary = rng.normal(size=(n, rows * cols, m)).astype(np.float32)
    horizontal, vertical = (np.stack([regular_table(rng, m) for _ in range(4)]) for _ in range(2))
    which = rng.integers(4, size=n)
    start = rng.integers(m, size=(n, rows * cols))
    search = GridSearch(rows, cols, m, exact_limit=limit)
    labels, score = search.best(unary, horizontal, vertical, which, start)
    assert labels.dtype == np.int8
    assert labels.shape == (n, rows * cols)
    np.testing.assert_array_equal(score, search.score(labels, unary, horizontal, vertical, which))
    monkeypatch.setattr(grids, "_AT_ONCE", 4 * search._cost)
    for threads in (1, 3):
        again = search.best(unary, horizontal, vertical, which, start, threads=threads)
        np.testing.assert_array_equal(labels, again[0])
        np.testing.assert_array_equal(score, again[1])
    for i in range(n):
        alone = search.best(unary[i], horizontal[which[i]], vertical[which[i]], start=start[i])
        np.testing.assert_array_equal(labels[i], alone[0])
        assert score[i] == alone[1]


def test_nobody_is_at_work_after_an_interrupt():
    done, last = [], threading.Event()

    def work(part):
        if part.start == 1:
            raise KeyboardInterrupt
        last.wait(0.05)
        done.append(part.start)

    with pytest.raises(KeyboardInterrupt):
        grids._in_parts(work, 1000, 1, threads=2)
    after = len(done)
    last.wait(0.2)
    assert len(done) == after < 100


@pytest.mark.parametrize(("swap", "scale"), [(True, 0.3), (True, 1.0), (False, 1.0)])
def test_compiled_kernels_do_what_their_source_says(swap, scale):
    rng = np.random.default_rng(7)
    rows, cols, m, n = 3, 4, 3, 6
    unary, horizontal, vertical = instance(rng, rows, cols, m, n=n, scale=scale)
    horizontal[-1] = -horizontal[-1]  # not regular
    unary[rng.random(unary.shape) < 0.1] = -np.inf
    kernel, more = (swaps.swap_all, (True,)) if swap else (frontiers.frontier_all, ())
    out = np.full((n, rows * cols), -1, np.int8), np.zeros(n)
    equals_its_source(kernel, unary, np.arange(n), rows, cols, horizontal, vertical, *out, *more)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unary": np.zeros((4, 3))}, "needs"),
        ({"unary": np.full((4, 2), np.nan)}, "NaN"),
        ({"unary": np.full((4, 2), np.inf)}, r"\+inf"),
        ({"horizontal": np.eye(3)}, "horizontal has shape"),
        ({"vertical": np.full((2, 2), -np.inf)}, "vertical has NaN or infinite"),
        ({"vertical": np.zeros((2, 2, 2))}, "1 horizontal tables, but 2"),
        ({"which": [1]}, "which names tables"),
        ({"which": [0, 0]}, "which must be integers"),
        ({"start": np.zeros(5, int)}, "Labels have shape"),
        ({"start": np.full(4, 2)}, "must be 0 … 1"),
        ({"start": np.full(4, -1)}, "must be 0 … 1"),
        ({"threads": 0}, "threads"),
    ],
)
def test_what_cannot_be_searched_is_said(change, message):
    given = {"unary": np.zeros((4, 2)), "horizontal": np.eye(2), "vertical": np.eye(2)}
    with pytest.raises(ValueError, match=message):
        GridSearch(2, 2, 2).best(**(given | change))


def test_grids_that_cannot_be():
    with pytest.raises(ValueError, match="0 × 3"):
        GridSearch(0, 3, 2)
    with pytest.raises(ValueError, match="127"):
        GridSearch(2, 3, 128)
    with pytest.raises(ValueError, match="2 tables for 3 grids"):
        GridSearch(1, 1, 1).best(np.zeros((3, 1, 1)), np.zeros((2, 1, 1)), np.zeros((2, 1, 1)))

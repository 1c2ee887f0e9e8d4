"""Searches over grids against trying everything, against each other, and against the cuts of general graphs."""

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
    network = cuts.Network(rows * cols, edges)
    return cuts.swap(unary, np.where(side[:, None, None], horizontal, vertical), network, labels)[1]


@few
@given(seeds, small)
def test_frontiers_find_the_best_of_all(seed, size):
    rows, cols, m = size
    unary, horizontal, _ = instance(np.random.default_rng(seed), rows, cols, m)
    vertical = np.random.default_rng(seed + 1).normal(size=(1, m, m))  # exact whatever the tables
    search = GridSearch(rows, cols, m)
    labels, score = search.best(unary, horizontal, vertical)
    assert search.exact
    one = unary[0], horizontal[0], vertical[0]
    assert score == pytest.approx(by_trying(rows, cols, *one), abs=1e-9)
    assert score == pytest.approx(score_of(rows, cols, *one, labels[0]), abs=1e-9)


@few
@given(seeds, st.integers(1, 6), st.integers(1, 4))
def test_two_labels_by_cuts_are_exact(seed, rows, cols):
    unary, horizontal, vertical = instance(np.random.default_rng(seed), rows, cols, 2, n=10, scale=0.5)
    search = GridSearch(rows, cols, 2)
    _, score = search.best(unary, horizontal, vertical)
    # A third label that nobody would take leads over all frontiers.
    unary = np.concatenate([unary, np.full((10, rows * cols, 1), -1e4)], axis=2)
    horizontal, vertical = (np.pad(t, ((0, 0), (0, 1), (0, 1))) for t in (horizontal, vertical))
    three = GridSearch(rows, cols, 3, exact_limit=10**7)
    assert search.exact and three.exact
    np.testing.assert_allclose(score, three.best(unary, horizontal, vertical)[1], atol=1e-9)


@pytest.mark.parametrize("noise", [1.0, 0.1, 0.01])
def test_cuts_of_smooth_grids_are_exact(noise):
    # Gain has far to go where neighbours hold together, and most of the grid changes in one piece.
    rng = np.random.default_rng(0)
    rows, cols = 14, 15
    edges, side = edges_of(rows, cols)
    network = cuts.Network(rows * cols, edges)
    for _ in range(15):
        unary = noise * rng.normal(size=(rows * cols, 2))
        horizontal, vertical = (regular_table(rng, 2, 0.1) for _ in range(2))
        _, score = GridSearch(rows, cols, 2).best(unary[None], horizontal, vertical)
        _, best, excess = cuts.best_binary(unary, np.where(side[:, None, None], horizontal, vertical), network)
        assert best - 1e-9 <= score <= best + excess + 1e-9


@few
@given(seeds, st.sampled_from([(5, 6, 3), (4, 4, 6), (7, 3, 4)]), st.booleans(), st.sampled_from([None, 0.2, 1.0]))
def test_moves_only_improve_and_neither_single_cells_nor_swaps_of_general_cuts_do(seed, size, warm, scale):
    rows, cols, m = size
    rng = np.random.default_rng(seed)
    unary, horizontal, vertical = instance(rng, rows, cols, m, n=4, scale=scale or 0.4)
    if scale is None:
        horizontal = rng.normal(size=horizontal.shape)  # not regular
    search = GridSearch(rows, cols, m, exact_limit=0)
    assert not search.exact
    start = rng.integers(m, size=(4, rows * cols)) if warm else unary.argmax(axis=2)
    found = [search.best(unary, horizontal, vertical, start=start if warm else None, swaps=s) for s in (True, False)]
    for i, one in enumerate(zip(unary, horizontal, vertical, strict=True)):
        values = [score[i] for _, score in found]
        assert values[0] >= values[1] - 1e-9 >= score_of(rows, cols, *one, start[i]) - 2e-9
        for z, value in ((labels[i], score[i]) for labels, score in found):
            assert value == pytest.approx(score_of(rows, cols, *one, z), abs=1e-9)
            for r, k in product(range(rows * cols), range(m)):
                other = z.copy()
                other[r] = k
                assert score_of(rows, cols, *one, other) <= value + 1e-9
        if scale is not None:
            assert improved_by_cuts(rows, cols, *one, found[0][0][i]) <= values[0] + 1e-6


def test_a_whole_region_changes_at_once():
    # No single cell wants to change, but all of them together do.
    unary = np.tile([0.0, 0.3, 0.1], (1, 25, 1))
    search = GridSearch(5, 5, 3, exact_limit=0)
    given = {"horizontal": np.eye(3), "vertical": np.eye(3), "start": np.zeros((1, 25), int)}
    assert (search.best(unary, **given, swaps=False)[0] == 0).all()
    assert (search.best(unary, **given)[0] == 1).all()


@pytest.mark.parametrize("limit", [0, 10**6])
def test_left_is_not_right_and_up_is_not_down(limit):
    order, none = np.where(np.arange(3)[:, None] < np.arange(3), 1.0, -np.eye(3) - 1.0), np.zeros((3, 3))
    search, across = GridSearch(3, 3, 3, exact_limit=limit), np.tile(np.arange(3), (3, 1))
    for tables, expected in (((order, none), across), ((none, order), across.T)):
        labels, score = search.best(np.zeros((1, 9, 3)), *tables, start=expected.reshape(1, 9))
        np.testing.assert_array_equal(labels.reshape(3, 3), expected)
        assert score == 6.0


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
    assert search.best(unary[None], *tables)[1] == pytest.approx(value.max())


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
    assert labels.dtype == np.int8 and labels.shape == (n, rows * cols)
    monkeypatch.setattr(grids, "_AT_ONCE", 4 * search._cost)
    for threads in (1, 3):
        again = search.best(unary, horizontal, vertical, which, start, threads=threads)
        np.testing.assert_array_equal(labels, again[0])
        np.testing.assert_array_equal(score, again[1])
    for i in range(n):
        alone = search.best(unary[i : i + 1], horizontal[which[i]], vertical[which[i]], start=start[i : i + 1])
        np.testing.assert_array_equal(labels[i], alone[0][0])
        assert score[i] == alone[1][0]


@pytest.mark.parametrize(("swap", "scale"), [(True, 0.3), (True, 1.0), (False, 1.0)])
def test_compiled_kernels_do_what_their_source_says(swap, scale):
    rng = np.random.default_rng(7)
    rows, cols, m, n = 3, 4, 3, 6
    unary, horizontal, vertical = instance(rng, rows, cols, m, n=n, scale=scale)
    horizontal[-1] = -horizontal[-1]  # not regular
    kernel, more = (swaps.swap_all, (True,)) if swap else (frontiers.frontier_all, ())
    out = np.full((n, rows * cols), -1, np.int8), np.zeros(n)
    equals_its_source(kernel, unary, np.arange(n), rows, cols, horizontal, vertical, *out, *more)


@pytest.mark.parametrize("place", range(3))
def test_scores_that_are_not_finite_are_refused(place):
    given = [np.zeros((1, 4, 2)), np.eye(2), np.eye(2)]
    given[place] = given[place] + np.nan
    with pytest.raises(ValueError, match="must be finite"):
        GridSearch(2, 2, 2).best(*given)


def test_more_labels_than_an_integer_has_bits():
    rng = np.random.default_rng(0)
    unary, horizontal, vertical = instance(rng, 4, 6, 2, n=10, scale=0.5)
    many = np.full((10, 24, 90), -1e3)
    many[:, :, [3, 80]] = unary
    tables = rng.normal(size=(2, 10, 90, 90)) - 100 * (1 - np.eye(90))
    for i, table in enumerate((horizontal, vertical)):
        tables[i][np.ix_(range(10), [3, 80], [3, 80])] = table
    start = np.where(rng.random((10, 24)) < 0.5, 3, 80)
    labels, score = GridSearch(4, 6, 90).best(many, *tables, start=start)
    assert np.isin(labels, [3, 80]).all()
    np.testing.assert_allclose(score, GridSearch(4, 6, 2).best(unary, horizontal, vertical)[1], atol=1e-9)

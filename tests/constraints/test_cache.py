"""The cache of constraints: a closed problem like any other, and storage that keeps v and Σ l α what they are."""

import sys
from contextlib import nullcontext
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from compiled import equals_its_source
from generators import shared_slack
from regularized import REGULARIZED

from maxmargin import Problem, certify, solve
from maxmargin.checks import check_constraints
from maxmargin.constraints import Cache
from maxmargin.constraints.matrices import as_sparse
from maxmargin.constraints.small import none_is_small
from maxmargin.constraints.store import RowStore
from maxmargin.constraints.stored_planes import Slots, _relay, moved
from maxmargin.data.arrays import as_rows
from maxmargin.kernels import planes as kernels, rows as row_kernels
from maxmargin.problem import Planes, Rivals
from maxmargin.regularizers import L2
from maxmargin.solvers import DualCoordinate

SEED = 987654321
NO_NORMS = np.empty(0, np.float32)

REGULARIZERS = {name: REGULARIZED[name] for name in ("l2", "diagonal", "full", "bounds", "group+l2")}


def _exact(data):
    """The rows in float32, in which a cache stores them, so that nothing is lost."""
    return data.X.astype(np.float32).astype(np.float64)


def _feasible(rng, data):
    """Shares in general position: some zero, some budgets used up, others not."""
    alpha = rng.random(data.loss.size) * (rng.random(data.loss.size) < 0.7)
    used = np.bincount(data.example, alpha, minlength=data.budget.size)
    target = data.budget * np.where(rng.random(data.budget.size) < 0.5, 1.0, rng.random(data.budget.size))
    return alpha * (target / np.maximum(used, 1e-12))[data.example]


def _rivals(X, loss, sparse):
    return Rivals([f"answer {j}" for j in range(loss.size)], as_rows(sp.csr_matrix(X) if sparse else X), loss)


def _filled(data, X, alpha, regularizer, sparse):
    """(cache, α of its slots, weight map) that hold these rows with these shares."""
    cache = Cache(data.budget.size, X.shape[1], data.budget)
    m = regularizer.shape(X.shape[1]).bind(X.T @ alpha)
    rivals = _rivals(X, data.loss, sparse)
    return cache, cache.fill(Planes(data.example, rivals.labels, alpha), rivals, cache.no_shares(), m), m


def _case(seed, name="l2", sparse=False, n_weights=6, **settings):
    rng = np.random.default_rng([seed, sorted(REGULARIZERS).index(name)])
    data = shared_slack(rng, n_weights=n_weights, budgets=True, **settings)
    regularizer, solver, terms = REGULARIZERS[name](rng, n_weights)
    X, alpha = _exact(data), _feasible(rng, data)
    cache, shares, m = _filled(data, X, alpha, regularizer, sparse)
    return SimpleNamespace(**locals())


def _gram_blocks(cache):
    s = cache.slots
    blocks = []
    for i in range(cache.n_examples):
        size, k = s.first[i + 1] - s.first[i], s.count[i]
        blocks.append(s.gram[s.gram_first[i] : s.gram_first[i] + size * size].reshape(size, size)[:k, :k])
    return blocks


def _check_gram(cache, scale):
    """Gram blocks against the planes themselves, as ``worst`` and ``combine`` see them."""
    s = cache.slots
    for i, block in enumerate(_gram_blocks(cache)):
        vectors = []
        for j in range(s.count[i]):
            unit = cache.no_shares()
            unit[s.first[i] + j] = 1.0
            vectors.append(cache.combine(unit))
        if vectors:
            V = np.array(vectors)
            np.testing.assert_allclose(block, V @ scale @ V.T, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("seed", "sparse"), [(0, False), (1, True), (2, True)])
def test_filled_cache_is_the_problem_it_was_filled_with(seed, sparse):
    case = _case(seed, sparse=sparse, awkward=True)
    rng, data, X, alpha, cache, shares = case.rng, case.data, case.X, case.alpha, case.cache, case.shares
    np.testing.assert_allclose(cache.combine(shares), X.T @ alpha, rtol=1e-12, atol=1e-12)
    assert cache.linear(shares) == pytest.approx(data.loss @ alpha, rel=1e-12)
    assert cache.n_constraints == data.loss.size
    w = rng.normal(size=X.shape[1])
    missing = np.zeros(data.budget.size)
    np.maximum.at(missing, data.example, data.loss - X @ w)
    np.testing.assert_allclose(cache.worst(np.arange(data.budget.size), w), missing, rtol=1e-9, atol=1e-9)
    assert cache.evaluate(w).total == pytest.approx(data.budget @ missing, rel=1e-9)
    _check_gram(cache, np.eye(X.shape[1]))
    given_back = cache.planes(shares)
    support = alpha > 0
    assert np.array_equal(given_back.example, data.example[support])
    assert given_back.labels == [f"answer {j}" for j in np.flatnonzero(support)]
    assert np.array_equal(given_back.alpha, alpha[support])
    check_constraints(cache)


@pytest.mark.parametrize("name", REGULARIZERS)
def test_sweep_raises_the_dual_and_keeps_v(name):
    rose = 0
    for seed in range(4):
        case = _case(seed, name, seed % 2, awkward=True)
        rng, data, cache, shares = case.rng, case.data, case.cache, case.shares
        m, regularizer = case.m, case.regularizer
        linear = cache.linear(shares)
        visits = np.arange(cache.n_examples, dtype=np.int32)
        active = visits.size
        for _ in range(3):
            before = linear - regularizer.conjugate(m.v)
            active, _, change = cache.sweep(shares, m, NO_NORMS, visits, active, 2, int(rng.integers(2**62)))
            linear += change
            after = linear - regularizer.conjugate(m.v)
            assert after >= before - 1e-9 * (1 + abs(before))
            rose += after > before + 1e-6
            np.testing.assert_allclose(m.v, cache.combine(shares), rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(m.weights(), regularizer.weights(m.v), rtol=1e-7, atol=1e-9)
            assert linear == pytest.approx(cache.linear(shares), rel=1e-9, abs=1e-12)
            assert shares.min() >= 0
            used = np.add.reduceat(shares, cache.slots.first[:-1])
            assert (used <= data.budget * (1 + 1e-12)).all()
            assert sorted(visits) == list(range(cache.n_examples))
    assert rose >= 3


@pytest.mark.parametrize("name", REGULARIZERS)
def test_sweep_over_some_examples_passes_over_cold_planes_and_a_full_one_wakes_them(name):
    case = _case(3, name, n_examples=20)
    data, regularizer = case.data, case.regularizer
    cache, shares, m = case.cache, case.shares, case.m
    visits = np.arange(20, dtype=np.int32)
    for _ in range(5):
        cache.sweep(shares, m, NO_NORMS, visits, 20, 1, SEED)
        visits = np.arange(20, dtype=np.int32)
    # Planes that carry a share are never cold, nor are those that have just come.
    assert cache.slots.hot[shares > 0].all()
    cold = cache.used() & ~cache.slots.hot
    assert cold.any()
    cache.slots.loss[cold] += 100.0  # now they all matter
    before = cache.linear(shares) - regularizer.conjugate(m.v)
    some = np.arange(19, dtype=np.int32)
    cache.sweep(shares, m, NO_NORMS, some, 19, 1, SEED)
    assert not shares[cold].any()
    between = cache.linear(shares) - regularizer.conjugate(m.v)
    assert between >= before - 1e-9 * (1 + abs(before))
    np.testing.assert_allclose(m.v, cache.combine(shares), rtol=1e-9, atol=1e-9)
    cache.sweep(shares, m, NO_NORMS, visits, 20, 1, SEED)
    owners = np.searchsorted(cache.slots.first, np.flatnonzero(cold), side="right") - 1
    paid = data.budget[owners] > 0
    assert shares[cold][paid].any()
    assert cache.slots.hot[shares > 0].all()
    assert cache.linear(shares) - regularizer.conjugate(m.v) > between


@pytest.mark.parametrize("k", [1, 2, 5])
def test_solve_block_reaches_the_optimum_of_one_example(k, rng):
    for _ in range(5):
        X, loss, c = rng.normal(size=(k, 3)) + 0.3, rng.uniform(0.2, 2.0, size=k), float(10 ** rng.uniform(-1, 1))
        gram = (X @ X.T).ravel()
        a = rng.random(k)
        a *= c * rng.random() / a.sum()
        g = loss - X @ (X.T @ a)
        dual = -np.inf
        for _ in range(60):
            kernels.solve_block(g, a, k, c, gram)
            before, dual = dual, loss @ a - 0.5 * (X.T @ a) @ (X.T @ a)
            assert dual >= before - 1e-12
            np.testing.assert_allclose(g, loss - X @ (X.T @ a), rtol=1e-7, atol=1e-9)
            assert a.min() >= 0
            assert a.sum() <= c * (1 + 1e-12)
        optimum = reference.quadratic(X, loss, np.zeros(k, int), np.array([c])).value
        assert dual == pytest.approx(optimum, rel=1e-6, abs=1e-9)


def test_solve_block_survives_planes_of_zeros_and_twins():
    X = np.array([[0.0, 0.0], [1.0, 2.0], [1.0, 2.0]])
    loss, c = np.array([0.5, 1.0, 1.0]), 0.1
    a, g = np.zeros(3), loss.copy()
    for _ in range(20):
        kernels.solve_block(g, a, 3, c, (X @ X.T).ravel())
    assert a.sum() == pytest.approx(c)
    v = X.T @ a
    optimum = reference.quadratic(X, loss, np.zeros(3, int), np.array([c])).value
    assert loss @ a - 0.5 * v @ v == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("name", ["l2", "diagonal", "full"])
def test_tidy_drops_planes_without_a_share_and_changes_nothing_else(name):
    for seed in range(3):
        case = _case(seed, name, seed % 2, n_examples=20)
        X, alpha, cache, shares, terms = case.X, case.alpha, case.cache, case.shares, case.terms
        v, linear = cache.combine(shares), cache.linear(shares)
        before = cache.nbytes
        planes = cache.planes(shares)
        source = cache.tidy(cache.used() & (shares > 0))
        kept = np.where(source >= 0, shares[source], 0.0)
        np.testing.assert_allclose(cache.combine(kept), v, rtol=1e-12, atol=1e-12)
        assert cache.linear(kept) == pytest.approx(linear, rel=1e-12)
        assert cache.n_constraints == (alpha > 0).sum()
        assert cache.nbytes < before
        assert np.array_equal(cache.slots.first[1:] - cache.slots.first[:-1], cache.slots.count + 1)
        after = cache.planes(kept)
        assert after.labels == planes.labels
        assert np.array_equal(after.alpha, planes.alpha)
        scale = np.asarray(terms.get("covariance", 1.0))
        _check_gram(cache, scale if scale.ndim == 2 else np.diag(np.broadcast_to(scale, X.shape[1])))


def test_added_planes_take_the_spare_slots_of_their_examples():
    case = _case(1, n_examples=9)
    rng, X, cache, shares, m = case.rng, case.X, case.cache, case.shares, case.m
    source = cache.tidy(cache.used())
    shares = np.where(source >= 0, shares[source], 0.0)
    v, before = cache.combine(shares), cache.n_constraints
    ids, wanted = np.array([7, 2, 4]), np.array([True, False, True])
    new = rng.normal(size=(3, X.shape[1])).astype(np.float32).astype(float)
    cache.add(ids, Rivals(["a", "b", "c"], as_rows(sp.csr_matrix(new)), np.array([5.0, 6.0, 7.0])), wanted, m)
    assert cache.n_constraints == before + 2
    np.testing.assert_allclose(cache.combine(shares), v, rtol=1e-12)
    for p, i in ((0, 7), (2, 4)):
        slot = cache.slots.first[i] + cache.slots.count[i] - 1
        assert shares[slot] == 0.0
        unit = cache.no_shares()
        unit[slot] = 1.0
        np.testing.assert_allclose(cache.combine(unit), new[p])
        assert cache.linear(unit) == (5.0, 6.0, 7.0)[p]
        assert cache.planes(unit).labels == ["abc"[p]]
    _check_gram(cache, np.eye(X.shape[1]))


@pytest.mark.parametrize("first_sparse", [False, True])
def test_dense_and_sparse_planes_live_in_one_cache(first_sparse):
    case = _case(2, sparse=first_sparse, n_examples=6)
    rng, X, alpha, cache, shares, m = case.rng, case.X, case.alpha, case.cache, case.shares, case.m
    source = cache.tidy(cache.used())
    shares = np.where(source >= 0, shares[source], 0.0)
    new = (rng.normal(size=(6, X.shape[1])) * (rng.random((6, X.shape[1])) < 0.5)).astype(np.float32).astype(float)
    rows = as_rows(new if first_sparse else sp.csr_matrix(new))
    cache.add(np.arange(6), Rivals(list(range(6)), rows, np.ones(6)), np.ones(6, bool), m)
    for i in range(6):
        unit = cache.no_shares()
        unit[cache.slots.first[i] + cache.slots.count[i] - 1] = 1.0
        np.testing.assert_allclose(cache.combine(unit), new[i])
    np.testing.assert_allclose(cache.combine(shares), X.T @ alpha, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["l2", "diagonal", "full", "group+l2"])
def test_relabelled_cache_equals_one_built_with_the_new_truth(name):
    for seed in range(2):
        sparse = seed == 1
        case = _case(seed, name, sparse, n_examples=10)
        rng, data, X, alpha, regularizer = case.rng, case.data, case.X, case.alpha, case.regularizer
        cache, shares, m = case.cache, case.shares, case.m
        ids = np.array([1, 4, 5, 9])
        # On a grid, so that sums of two rows are exact in float32.
        shift = np.round(8 * rng.normal(size=(4, X.shape[1]))) / 8
        cache.relabel(ids, as_rows(sp.csr_matrix(shift) if sparse else shift), m)
        moved = X.copy()
        for i, s in zip(ids, shift, strict=True):
            moved[data.example == i] -= s
        new = Cache(10, X.shape[1], data.budget)
        new_m = regularizer.shape(X.shape[1]).bind(moved.T @ alpha)
        rivals = _rivals(moved, data.loss, sparse)
        new_shares = new.fill(Planes(data.example, rivals.labels, alpha), rivals, new.no_shares(), new_m)
        m = regularizer.shape(X.shape[1]).bind(cache.combine(shares))
        for kept in (False, True):
            if kept:  # the row that says how the truth changed survives a new layout
                source = cache.tidy(cache.used() & (shares > 0))
                shares = np.where(source >= 0, shares[source], 0.0)
                source = new.tidy(new.used() & (new_shares > 0))
                new_shares = np.where(source >= 0, new_shares[source], 0.0)
            np.testing.assert_allclose(cache.combine(shares), new.combine(new_shares), rtol=1e-5, atol=1e-5)
            assert cache.linear(shares) == pytest.approx(new.linear(new_shares), rel=1e-12)
            w = rng.normal(size=X.shape[1])
            everybody = np.arange(10)
            np.testing.assert_allclose(cache.worst(everybody, w), new.worst(everybody, w), rtol=1e-5, atol=1e-5)
            for a, b in zip(_gram_blocks(cache), _gram_blocks(new), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
        problem, new_problem = Problem(cache, regularizer), Problem(new, regularizer)
        again = certify(problem, w, shares)
        expected = certify(new_problem, w, new_shares)
        assert (again.lower, again.upper) == pytest.approx((expected.lower, expected.upper), rel=1e-5)
        found, wanted = (
            solve(p, DualCoordinate(random_state=0), tol=1e-8, max_passes=5000) for p in (problem, new_problem)
        )
        assert found.certificate.upper == pytest.approx(wanted.certificate.upper, rel=1e-5, abs=1e-6)
        cache.sweep(shares, m, NO_NORMS, np.arange(10, dtype=np.int32), 10, 1, SEED)
        np.testing.assert_allclose(m.v, cache.combine(shares), rtol=1e-9, atol=1e-9)


def test_bytes_are_those_of_all_arrays_and_fall_when_planes_leave():
    for sparse in (False, True):
        case = _case(4, sparse=sparse, n_examples=20)
        X, cache = case.X, case.cache
        s = cache.slots
        others = (cache.idle, cache._zeros, cache.labels, cache.answer_bytes)
        arrays = [a for a in (*cache.store.arrays, *s, *others) if isinstance(a, np.ndarray)]
        answers = sum(sys.getsizeof(label) for label in cache.labels if label is not None)
        assert cache.nbytes == sum(a.nbytes for a in arrays) + answers
        assert cache.nbytes >= 4 * np.count_nonzero(X)
        before = cache.nbytes
        cache.tidy(np.zeros(cache.dual_shape, bool))
        assert cache.nbytes < 0.5 * before
        assert cache.n_constraints == 0
        assert cache.no_shares().size == 20


@pytest.mark.parametrize(("name", "sparse"), [*zip(REGULARIZERS, [True, False] * 2, strict=False), ("group+l2", True)])
def test_sweep_and_extrapolation_equal_their_source(name, sparse):
    case = _case(5, name, sparse, n_examples=8, awkward=True)
    data, X, cache, shares, m, regularizer = case.data, case.X, case.cache, case.shares, case.m, case.regularizer
    cache.relabel(np.array([2]), as_rows(sp.csr_matrix(X[:1] + 1.0) if sparse else X[:1] + 1.0), m)
    m = regularizer.shape(X.shape[1]).bind(cache.combine(shares))
    stored, slots = cache.store.arrays, cache.slots
    slots.gram[np.abs(slots.gram) > 1e6] = 0.0  # the room of spare slots was never written to
    visits = np.arange(8, dtype=np.int32)
    for active in (8, 7):
        slots.hot[:] = shares > 0
        equals_its_source(
            kernels.sweep, stored, slots, data.budget, shares, m, NO_NORMS, visits, active, 3, SEED, rtol=1e-6
        )
    previous = 0.5 * shares
    equals_its_source(
        kernels.extrapolate, stored, slots, data.budget, shares, previous, 0.7, m, visits, 6, 8, rtol=1e-6
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_other_kernels_equal_their_source(sparse):
    case = _case(6, sparse=sparse, n_examples=7)
    rng, data, X, cache, shares, m = case.rng, case.data, case.X, case.cache, case.shares, case.m
    source = cache.tidy(cache.used())
    shares = np.where(source >= 0, shares[source], 0.0)
    stored, slots = cache.store.arrays, cache.slots
    slots.gram[:] = np.where(np.isfinite(slots.gram), slots.gram, 0.0)
    ids = np.array([0, 3, 6])
    scratch = np.zeros(X.shape[1])
    for everywhere in (False, True):
        equals_its_source(kernels.fill_gram, stored, slots, ids, m, everywhere, scratch, True)
    equals_its_source(kernels.worst_cached, stored, slots, ids, rng.normal(size=X.shape[1]), np.zeros(3))
    equals_its_source(kernels.solve_block, data.loss[:2].copy(), np.zeros(2), 2, 1.0, (X[:2] @ X[:2].T).ravel())
    grown = slots._replace(count=slots.count.copy(), hot=slots.hot.copy())
    grown.count[ids] += 1
    equals_its_source(kernels.fill_gram, stored, grown, ids, m, False, scratch, False)
    keep = cache.used() & (rng.random(shares.size) < 0.5)
    kept = np.array([keep[a:b].sum() for a, b in zip(slots.first[:-1], slots.first[1:], strict=True)])
    new = type(slots).of_sizes(kept + 1, slots.shift)
    new.gram[:] = 0.0
    equals_its_source(kernels.relay, slots, keep, np.arange(7), new, np.full(new.row.size, -1, np.int64))
    rows = cache.rows
    empty = (np.zeros(9, np.int64), np.zeros(100, np.int32), np.zeros(100, np.float32))
    arguments = (rows.indptr, rows.indices, rows.data, rows.dense, rows.width, np.array([2, 0]), *empty, 0)
    equals_its_source(row_kernels.copy_rows, *arguments)


@pytest.mark.parametrize("sparse", [False, True])
def test_few_planes_are_scored_in_array_code_as_by_the_kernel(sparse):
    found = []
    for where in (nullcontext(), none_is_small()):
        with where:
            case = _case(3, sparse=sparse, n_examples=9)
            cache, m = case.cache, case.m
            cache.relabel(np.array([2, 5]), as_rows(case.rng.normal(size=(2, 6)).astype(np.float32)), m)
            cache.tidy(cache.used() & (case.rng.random(cache.slots.row.size) < 0.7), squeeze=True)
            w, ids = case.rng.normal(size=6), np.array([5, 0, 2, 8])
            found.append(
                [cache.worst(ids, w), as_sparse(cache.store.rows).toarray(), cache.slots.row, cache.slots.count]
            )
    for few, by_kernels in zip(*found, strict=True):
        np.testing.assert_allclose(few, by_kernels, rtol=1e-12, atol=1e-12)


def test_few_planes_are_laid_out_in_array_code_as_the_kernel_does():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        size = rng.integers(1, 6, 7)
        slots = Slots.of_sizes(size, np.full(7, -1))
        slots.count[:] = rng.integers(0, size + 1)
        slots.row[:], slots.loss[:] = rng.permutation(slots.row.size), rng.random(slots.row.size)
        slots.gram[:], slots.hot[:] = rng.random(slots.gram.size), rng.random(slots.row.size) < 0.5
        used = np.arange(slots.row.size) - np.repeat(slots.first[:-1], size) < np.repeat(slots.count, size)
        keep, examples = used & (rng.random(used.size) < 0.7), rng.permutation(9) - 2
        examples[examples < 0] = -1
        room = np.full(9, 6)
        found = []
        for lay_out in (kernels.relay, _relay):
            new = Slots.of_sizes(room, np.full(9, -1))
            new.gram[:] = 0.0
            source = np.full(new.row.size, -1)
            lay_out(slots, keep, examples, new, source)
            found.append((source, *new))
        for kernel, arrays in zip(*found, strict=True):
            np.testing.assert_array_equal(arrays, kernel)


@pytest.mark.parametrize("sparse", [False, True])
def test_store_becomes_as_precise_as_the_most_precise_rows(sparse, rng):
    store = RowStore(3)
    whole, real = np.array([[1.0, 0.0, 2.0]], np.float32), rng.normal(size=(2, 3))
    for table in (whole, real, whole):
        rows = as_rows(sp.csr_matrix(table) if sparse else table)
        most = store.nbytes_with(rows)
        store.append(rows, np.arange(len(table)))
        assert store.nbytes <= most
    np.testing.assert_array_equal(as_sparse(store.rows).toarray(), np.concatenate([whole, real, whole]))


@pytest.mark.parametrize(("name", "sparse"), [("l2", True), ("full", False), ("bounds", True), ("group+l2", False)])
def test_spilled_and_recalled_planes_leave_the_dual_what_it_was(name, sparse):
    case = _case(7, name, sparse, n_examples=12)
    cache, shares, data = case.cache, case.shares, case.data
    v, linear, planes, bytes_before = cache.combine(shares), cache.linear(shares), cache.planes(shares), cache.nbytes
    chosen = np.arange(12) % 3 > 0
    left = cache.spill(chosen, shares)
    assert not cache.slots.count[chosen].any()
    assert cache.nbytes < bytes_before
    np.testing.assert_allclose(cache.combine(left), v, atol=1e-12)
    assert cache.linear(left) == pytest.approx(linear)
    after = cache.planes(left)
    assert sorted(zip(after.labels, after.alpha, strict=True)) == sorted(zip(planes.labels, planes.alpha, strict=True))
    for ids in (np.array([1, 2, 5]), np.arange(12)):
        back = cache.spilled.take(ids)
        rows = [int(label.split()[1]) for label in back.labels]
        rivals = Rivals(back.labels, as_rows(sp.csr_matrix(case.X[rows]) if sparse else case.X[rows]), data.loss[rows])
        left = cache.recall(back, rivals, left, case.m)
        np.testing.assert_allclose(cache.combine(left), v, atol=1e-10)
        assert cache.linear(left) == pytest.approx(linear)
    assert not len(cache.spilled)
    cache.away = None
    np.testing.assert_allclose(cache.combine(left), v, atol=1e-10)
    after = cache.planes(left)
    assert sorted(zip(after.labels, after.alpha, strict=True)) == sorted(zip(planes.labels, planes.alpha, strict=True))


def test_dismissed_examples_are_counted_no_more():
    case = _case(8, n_examples=15)
    cache, shares = case.cache, case.shares
    gone = np.arange(15) % 2 == 0
    left = cache.spill(gone, shares, for_ever=True)
    v, linear, blocks = cache.combine(left), cache.linear(left), _gram_blocks(cache)
    assert not len(cache.spilled)
    left = moved(left, cache.recount(np.flatnonzero(~gone)))
    assert cache.n_examples == 7
    assert left.shape == cache.dual_shape
    np.testing.assert_allclose(cache.combine(left), v)
    assert cache.linear(left) == pytest.approx(linear)
    for a, b in zip(_gram_blocks(cache), blocks[1::2], strict=True):
        np.testing.assert_array_equal(a, b)
    cache.away = None
    _check_gram(cache, np.eye(case.X.shape[1]))


def test_sums_of_planes_that_are_gone_for_ever_allow_for_their_rounding(rng):
    data = shared_slack(rng, n_examples=200, n_weights=2, budgets=True)
    data.loss[:] = rng.uniform(0.5, 1.5, data.loss.size) * 10.0 ** rng.uniform(-3, 3, data.loss.size)
    cache, shares, _ = _filled(data, _exact(data), _feasible(rng, data), L2(), False)
    used = np.flatnonzero(cache.used())
    exact = sum(Fraction(x) * Fraction(a) for x, a in zip(cache.slots.loss[used], shares[used], strict=True))
    for i in range(200):
        shares = cache.spill(np.arange(200) == i, shares, for_ever=True)
    found = cache.totals(shares)
    assert not shares.any()
    assert abs(Fraction(found.linear) - exact) <= Fraction(found.linear_error)
    cache.scale_away(0.7)
    assert abs(Fraction(cache.totals(shares).linear) - Fraction(0.7) * exact) <= Fraction(
        cache.totals(shares).linear_error
    )


def test_budgets_stay_with_the_examples_that_are_still_counted():
    cache = Cache(4, 3, np.array([1.0, 2.0, 3.0, 4.0]))
    cache.recount(np.array([1, 3]))
    assert cache.n_examples == 2 and cache.budget.tolist() == [2.0, 4.0]

"""Compiled kernels against their own source run as plain Python, and constraints against their contract."""

import pickle
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from compiled import equals_its_source
from generators import covariance, many_classes, shared_slack, two_classes

from maxmargin.checks import check_constraints
from maxmargin.constraints import SharedSlack, small
from maxmargin.data.arrays import as_rows
from maxmargin.kernels import bags, classes, maps, order, pairs, rows as row_kernels, scalar, shared, simplex
from maxmargin.losses import EpsilonInsensitive, LossShape, SmoothedHinge, SquaredEpsilonInsensitive, SquaredHinge
from maxmargin.models import binary, multiclass, ranking, regression
from maxmargin.problem import TotalLoss, Totals
from maxmargin.regularizers import L2, Bounded, GaussianPrior, GroupNorm

D = 5
SEED = 123456789


def _stored(rng, n, sparse, width=D):
    X = rng.normal(size=(n, width)) * (rng.random((n, width)) < 0.7)
    X[0] = 0.0
    return as_rows(sp.csr_matrix(X) if sparse else X, bias=0.5)


def _scalar_problems(rng, sparse):
    rows = _stored(rng, 12, sparse)
    sign = np.where(rng.random(12) < 0.5, 1, -1).astype(np.int8)
    budget = rng.uniform(0.1, 2.0, size=12)
    return [
        binary(rows, sign, np.ones(1)),
        binary(rows, sign, budget, loss=SquaredHinge()),
        binary(rows, sign, budget, loss=SmoothedHinge(0.5)),
        regression(rows, rng.normal(size=12), budget, loss=EpsilonInsensitive(0.1)),
        regression(rows, rng.normal(size=12), np.ones(1), loss=SquaredEpsilonInsensitive(0.1)),
        ranking(rows, np.arange(12.0) % 3, np.arange(12) % 2, np.ones(1)),
    ]


def _shared_problem(rng, sparse):
    return shared_slack(rng, n_examples=8, n_weights=D, awkward=True, budgets=True, sparse=sparse).constraints


def _class_problem(rng, sparse):
    X, label = many_classes(rng, n=10, d=D, k=3)
    X[0] = 0.0
    cost = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.0], [1.0, 3.0, 0.0]])
    stored = as_rows(sp.csr_matrix(X) if sparse else X, bias=0.5)
    return multiclass(stored, label, cost, rng.uniform(0.1, 2.0, size=10))


def _regularizers(rng, n):
    return {
        "plain": L2(),
        "clipped": Bounded(-0.1, base=GaussianPrior(rng.normal(size=n), rng.uniform(0.5, 2.0, size=n))),
        "boxed": Bounded(-0.1, upper=0.2, base=GaussianPrior(rng.normal(size=n), rng.uniform(0.5, 2.0, size=n))),
        "grouped": GroupNorm([np.arange(2), np.arange(2, n)], 0.3, l2=0.8),
        "dense": GaussianPrior(rng.normal(size=n), covariance(rng, n)),
    }


def _sweep_arguments(constraints, regularizer, rng):
    """A feasible point in general position, with its map, and fresh norms and order."""
    alpha = constraints.feasible(rng.normal(size=constraints.dual_shape))
    m = regularizer.shape(constraints.n_weights).bind(constraints.combine(alpha))
    m = constraints._for_kernel(m)
    norms = np.full(len(constraints.rows), -1.0, np.float32)
    visits = np.arange(constraints.n_examples, dtype=np.int32)
    return alpha, m, norms, visits


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", ["plain", "clipped", "boxed", "grouped", "dense"])
def test_sweeps_equal_their_source(name, sparse, rng):
    shares = _shared_problem(rng, sparse)
    sides = SharedSlack(shares.rows, shares.loss, shares.first, shares.budget, rng.choice([-1, 1], shares.n_examples))
    problems = [(scalar, c) for c in _scalar_problems(rng, sparse)] + [(shared, shares), (shared, sides)]
    if name in ("plain", "clipped", "boxed"):  # the maps that classes have steps for
        problems.append((classes, _class_problem(rng, sparse)))
    for kernels, c in problems:
        alpha, m, norms, visits = _sweep_arguments(c, _regularizers(rng, c.n_weights)[name], rng)
        # ε and the curvature of squares meet float32 norms; there Python rounds to float32, compiled code does not.
        rtol = 1e-6 if kernels is scalar and c.loss_shape != LossShape() else 1e-12
        for active in (visits.size, visits.size - 1):
            equals_its_source(kernels.sweep, *c.kernel_arguments(), alpha, m, norms, visits, active, 3, SEED, rtol=rtol)


@pytest.mark.parametrize(("sparse", "pairs_of_rows"), [(False, True), (True, False), (True, True)])
@pytest.mark.parametrize("name", ["plain", "clipped", "boxed", "grouped", "dense"])
def test_maps_score_move_and_measure_rows_as_matrices_do(name, sparse, pairs_of_rows, rng):
    stored = _stored(rng, 6, sparse)
    n = stored.n_weights
    regularizer = _regularizers(rng, n)[name]
    shape = regularizer.shape(n)
    v = rng.normal(size=n)
    m = shape.bind(v.copy())
    X = np.array([_dense_row(stored, r) for r in range(6)])
    row = (stored.indptr, stored.indices, stored.data, stored.width, stored.bias)
    a, b, c, d = (1, 2, 3, 4) if pairs_of_rows else (1, -1, 3, -1)
    x = X[a] - X[b] if pairs_of_rows else X[a]
    y = X[c] - X[d] if pairs_of_rows else X[c]
    metric = shape.covariance
    if metric is None:
        metric = np.diag(np.ones(n) if shape.scale is None else shape.scale)
    assert maps.inner(*row, a, b, c, d, m) == pytest.approx(x @ metric @ y)
    assert maps.curvature(*row, a, b, m) == pytest.approx(x @ metric @ x)
    assert maps.score(*row, a, b, m) == pytest.approx(regularizer.weights(v) @ x)
    maps.move(*row, a, b, 0.7, m)
    assert m.v == pytest.approx(v + 0.7 * x)
    assert m.weights() == pytest.approx(regularizer.weights(v + 0.7 * x))


def _dense_row(rows, r):
    if rows.indices.size == 0:
        return np.append(rows.data[r * rows.width : (r + 1) * rows.width], rows.bias)
    stored = sp.csr_matrix((rows.data, rows.indices, rows.indptr), shape=(rows.n_rows, rows.width))
    return np.append(stored[r].toarray().ravel(), rows.bias)


@pytest.mark.parametrize("sparse", [False, True])
def test_extrapolate_equals_its_source(sparse, rng):
    problems = [(scalar, c) for c in _scalar_problems(rng, sparse)]
    problems += [(shared, _shared_problem(rng, sparse)), (classes, _class_problem(rng, sparse))]
    for kernels, c in problems:
        alpha, m, _, visits = _sweep_arguments(c, L2(), rng)
        previous = c.feasible(rng.normal(size=c.dual_shape))
        equals_its_source(
            kernels.extrapolate,
            *c.kernel_arguments(),
            alpha,
            previous,
            0.7,
            m,
            visits,
            visits.size - 3,
            visits.size - 1,
        )


@pytest.mark.parametrize("name", ["scalar", "squared", "smoothed", "regression", "pairs", "shared", "classes"])
@pytest.mark.parametrize("sparse", [False, True])
def test_extrapolated_v_stays_the_combination_of_alpha(name, sparse, rng):
    names = ["scalar", "squared", "smoothed", "regression", "_", "pairs"]
    problems = dict(zip(names, _scalar_problems(rng, sparse), strict=True))
    problems |= {"shared": _shared_problem(rng, sparse), "classes": _class_problem(rng, sparse)}
    c = problems[name]
    alpha, m, _, visits = _sweep_arguments(c, L2(), rng)
    previous = alpha.copy()
    alpha = c.feasible(alpha + rng.normal(size=alpha.shape))
    active = visits.size - 3
    before_v, before = c.combine(previous), c.linear(alpha)
    v = c.combine(alpha)
    m.v[:] = v + 0.6 * (v - before_v)
    change = c.extrapolate(alpha, previous, 0.6, _plain(m.v), visits, active, visits.size)
    assert np.allclose(c.feasible(alpha), alpha, rtol=1e-12, atol=1e-14)
    assert np.allclose(c.combine(alpha), m.v, rtol=1e-9, atol=1e-11)
    assert c.linear(alpha) - before == pytest.approx(change, rel=1e-9, abs=1e-11)


def _plain(v):
    return L2().shape(v.size).bind(v)


@pytest.mark.parametrize("sparse", [False, True])
def test_combine_and_total_loss_equal_their_source(sparse, rng):
    for c in _scalar_problems(rng, sparse):
        w, alpha = rng.normal(size=c.n_weights), rng.normal(size=c.dual_shape)
        equals_its_source(scalar.total_loss, *c.kernel_arguments(), w)
        equals_its_source(row_kernels.combine, c.rows.arrays, alpha, np.zeros(c.n_weights))
        equals_its_source(row_kernels.bounded_combine, c.rows.arrays, alpha, *np.zeros((3, c.n_weights)))
        equals_its_source(row_kernels.bounded_scores, c.rows.arrays, w, *np.empty((2, len(c.rows))))
        equals_its_source(row_kernels.scores, c.rows.arrays, w, np.empty(len(c.rows)))
    c = _shared_problem(rng, sparse)
    equals_its_source(shared.total_loss, *c.kernel_arguments(), rng.normal(size=c.n_weights))
    c = _class_problem(rng, sparse)
    alpha = c.feasible(rng.normal(size=c.dual_shape))
    equals_its_source(classes.total_loss, *c.kernel_arguments(), rng.normal(size=c.n_weights))
    equals_its_source(classes.bounded_combine, c.rows.arrays, c.label, alpha, *np.zeros((3, c.n_weights)))


@pytest.mark.parametrize("sparse", [False, True])
def test_small_problems_in_array_code_come_to_what_kernels_find(sparse, rng):
    for c in [*_scalar_problems(rng, sparse), _shared_problem(rng, sparse), _class_problem(rng, sparse)]:
        w, wanted = rng.normal(size=c.n_weights), 2.0 * rng.normal(size=c.dual_shape)
        found = []
        for where in (nullcontext(), small.none_is_small()):
            with where:
                alpha = c.feasible(wanted)
                found.append([alpha, c.combine(alpha), *c.totals(alpha)[:2], c.evaluate(w).total])
                assert 0.0 < c.evaluate(w).rounding < 1e-12 * c.evaluate(w).total
                assert (c.totals(alpha).v_error < 1e-12 * np.abs(alpha).sum()).all()
        for array, kernel in zip(*found, strict=True):
            np.testing.assert_allclose(array, kernel, rtol=1e-12, atol=1e-13)


def test_rows_without_any_entry_have_an_intercept():
    c = binary(as_rows(sp.csr_matrix((3, 2)), bias=0.5), np.array([1, -1, 1], np.int8), np.ones(1))
    assert c.evaluate(np.array([7.0, 7.0, 0.5])).total == pytest.approx(0.75 + 1.25 + 0.75)
    assert c.combine(np.array([1.0, 0.0, 1.0])).tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("sparse", [False, True])
def test_stored_rows_that_no_constraint_has_are_not_read(sparse):
    X = np.array([[np.nan, np.inf], [1.0, 2.0], [3.0, 5.0], [np.nan, np.nan]], np.float32)
    rows = as_rows(sp.csr_matrix(X) if sparse else X, bias=1.0)
    rows = replace(rows, plus=np.array([1, 2], np.int32), minus=np.array([-1, 1], np.int32))
    for where in (nullcontext(), small.none_is_small()):
        with where:
            small.add_rows(rows, np.array([1.0, 2.0]), v := np.zeros(3))
            assert v.tolist() == [5.0, 8.0, 1.0]
            assert small.scores(rows, np.array([1.0, 1.0, 4.0])).tolist() == [7.0, 5.0]


@pytest.mark.parametrize("sparse", [False, True])
def test_looking_at_bags_equals_its_source(sparse, rng):
    stored, first, ids = _stored(rng, 12, sparse), np.array([0, 3, 4, 9, 12]), np.array([0, 2, 3])
    place = np.array([0, 3, 8])
    one_class = np.zeros(4, int), rng.normal(size=stored.n_weights), np.ones(1, bool), 1
    _, arguments = equals_its_source(
        bags.look, stored.arrays, first, ids, *one_class, place, np.zeros(11), np.zeros(3, int)
    )
    scores, best = arguments[-2:]
    assert [int(np.argmax(part)) for part in np.split(scores, place[1:])] == best.tolist()


def test_projections_equal_their_source(rng):
    c = _shared_problem(rng, False)
    equals_its_source(simplex.project_examples, 2 * rng.normal(size=c.dual_shape), c.first, c.budget)


def test_projection_is_the_nearest_feasible_point(rng):
    """The condition that characterises it: no feasible direction comes closer."""
    for _ in range(50):
        n, total = int(rng.integers(1, 7)), rng.uniform(0.1, 2.0)
        given = 2 * rng.normal(size=n)
        nearest = given.copy()
        simplex.project(nearest, total)
        assert nearest.min() >= 0
        assert nearest.sum() <= total * (1 + 1e-12)
        corners = np.vstack([np.zeros(n), total * np.eye(n)])
        assert ((corners - nearest) @ (given - nearest)).max() <= 1e-12


def test_kernels_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(order.shuffle)) is order.shuffle


def test_order_functions_equal_their_source(rng):
    state = np.uint64(2**63 + SEED)
    equals_its_source(order.next_random, state)
    equals_its_source(order.below, state, 1000)
    equals_its_source(order.shuffle, np.arange(30), 4, 21, state)
    for count, block in [(0, 4), (1, 1), (10, 1), (10, 3), (10, 64)]:
        equals_its_source(order.shuffled_blocks, count, block, state)
    marked = np.array([3, -1, 5, -8, 2, -5], dtype=np.int32)
    equals_its_source(order.active_first, marked, 5)


def test_pair_kernels_equal_their_source_and_brute_force(rng):
    grade, group = rng.integers(0, 3, size=25).astype(float), rng.integers(0, 4, size=25)
    by_group = np.lexsort((grade, group))
    start = np.concatenate([[0], np.flatnonzero(np.diff(group[by_group])) + 1, [25]]).astype(np.int64)
    expected = {(a, b) for a in range(25) for b in range(25) if group[a] == group[b] and grade[a] > grade[b]}
    equals_its_source(pairs.count_pairs, by_group, start, grade)
    assert pairs.count_pairs(by_group, start, grade) == len(expected)
    empty = np.empty(len(expected), np.int32)
    _, (*_, first, second) = equals_its_source(pairs.list_pairs, by_group, start, grade, empty, empty.copy())
    assert set(zip(first.tolist(), second.tolist(), strict=True)) == expected
    score = np.round(rng.normal(size=25), 1)
    equals_its_source(pairs.ordered_share, by_group, start, grade, score)
    share = np.mean([1.0 if score[a] > score[b] else 0.5 * (score[a] == score[b]) for a, b in expected])
    assert pairs.ordered_share(by_group, start, grade, score) == pytest.approx(share)


def _contract_problems():
    rng = np.random.default_rng(2)
    X, y = two_classes(rng, n=40, d=D)
    X[3] = 0.0
    sign, target, budget = y.astype(np.int8), X @ np.arange(D) + rng.normal(size=40), rng.uniform(0.1, 3.0, size=40)
    label = np.arange(40) % 4
    first = np.concatenate([[0], np.cumsum(np.tile([1, 3, 0, 4], 5))])
    return {
        "binary": lambda r: binary(r, sign, np.ones(1)),
        "binary-budgets": lambda r: binary(r, sign, budget),
        "binary-margins": lambda r: binary(r, sign, budget, margin=rng.uniform(0.5, 2.0, size=40)),
        "binary-squared": lambda r: binary(r, sign, budget, loss=SquaredHinge()),
        "binary-smoothed": lambda r: binary(r, sign, budget, loss=SmoothedHinge(0.5)),
        "regression": lambda r: regression(r, target, budget, loss=EpsilonInsensitive(0.2)),
        "regression-squared": lambda r: regression(r, target, np.ones(1), loss=SquaredEpsilonInsensitive(0.2)),
        "ranking": lambda r: ranking(r, np.arange(40.0) % 3, np.arange(40) % 4, np.ones(1)),
        "ranking-squared": lambda r: ranking(
            r, np.arange(40.0) % 3, np.arange(40) % 4, np.ones(1), loss=SquaredHinge()
        ),
        "multiclass": lambda r: multiclass(r, label, 1.0 - np.eye(4), np.ones(1)),
        "multiclass-costs": lambda r: multiclass(r, label, np.abs(np.subtract.outer(*[np.arange(4.0)] * 2)), budget),
        "shared": lambda r: SharedSlack(r, rng.uniform(0.1, 2.0, size=40), first, rng.uniform(0.1, 2.0, size=20)),
    }, X


CONTRACT, CONTRACT_X = _contract_problems()


@pytest.mark.parametrize(("sparse", "bias"), [(False, 2.0), (True, 0.0)])
@pytest.mark.parametrize("name", CONTRACT)
def test_constraints_keep_their_contract(name, sparse, bias):
    X = sp.csr_matrix(CONTRACT_X) if sparse else CONTRACT_X
    check_constraints(CONTRACT[name](as_rows(X, bias=bias)))


class _Broken:
    """Constraints with one method replaced, everything else passed through."""

    def __init__(self, constraints, **methods):
        self._inside = constraints
        vars(self).update(methods)

    def __getattr__(self, name):
        return getattr(self._inside, name)

    def totals(self, alpha):
        alpha = self.feasible(alpha)
        return Totals(self.linear(alpha), self.combine(alpha), 0.0, np.zeros(self.n_weights))


def test_check_constraints_catches_broken_ones():
    whole = CONTRACT["regression"](as_rows(CONTRACT_X))
    check_constraints(_Broken(whole))
    cases = [
        ({"feasible": lambda a: 0.5 * whole.feasible(a)}, "must change nothing"),
        ({"combine": lambda a: whole.combine(a) + 1.0}, "linear"),
        ({"totals": lambda a: whole.totals(a)._replace(linear=whole.linear(a) + 1.0)}, "totals"),
        ({"linear": lambda a: whole.linear(a) + 1e3 * np.abs(a).sum()}, "Weak duality"),
        ({"evaluate": lambda w: TotalLoss(0.0), "linear": lambda a: 1e6 * np.abs(a).sum()}, "Weak duality"),
        ({"combine": lambda a: 2.0 * whole.combine(a)}, "no longer equals|lowered|Weak duality"),
    ]
    for methods, message in cases:
        with pytest.raises(AssertionError, match=message):
            check_constraints(_Broken(whole, **methods))


def test_rows_of_a_matrix_without_entries_stay_sparse():
    rows = as_rows(sp.csr_matrix((4, 3)), bias=1.0)
    assert rows.indices.size > 0
    c = binary(rows, np.array([1, 1, 1, -1], np.int8), np.ones(1))
    assert len(rows) == 4
    assert c.evaluate(np.array([9.0, 9.0, 9.0, 0.5])).total == pytest.approx(3 * 0.5 + 1.5)


def test_data_of_the_caller_is_viewed_and_not_copied(rng):
    dense = rng.normal(size=(4, 3))
    assert np.shares_memory(as_rows(dense).data, dense)
    sparse = sp.csr_matrix(dense)
    assert np.shares_memory(as_rows(sparse).data, sparse.data)
    narrow = dense.astype(np.float32)
    assert as_rows(narrow).data.dtype == np.float32


def test_unsorted_and_duplicate_entries_are_put_in_order_on_a_copy():
    data, columns = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2, 0, 2, 1])
    X = sp.csr_matrix((data.copy(), columns.copy(), [0, 3, 4]), shape=(2, 3))
    rows = as_rows(X)
    assert list(rows.indices) == [0, 2, 1]
    assert list(rows.data) == [2.0, 4.0, 4.0]
    assert np.array_equal(X.data, data)
    assert np.array_equal(X.indices, columns)

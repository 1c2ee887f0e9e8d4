"""Sums over the rows of an interior-point method: against plain formulas, and split into parts wherever they are."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from generators import SCALAR_LOSSES

import maxmargin as mm
from maxmargin.constraints import Blocked, Scalar
from maxmargin.constraints.description import Description
from maxmargin.constraints.sums import DualSums
from maxmargin.data.arrays import as_rows
from maxmargin.losses import EpsilonInsensitive, LossShape
from maxmargin.models import binary, regression
from maxmargin.problem import Problem, TotalLoss
from maxmargin.regularizers import L2
from maxmargin.solvers import InteriorPoint, interior_rows, solve
from maxmargin.solvers.choose import interior_point_pays
from maxmargin.solvers.interior_rows import InteriorRows, added_advances, added_looks

N, D = 150, 8


@pytest.fixture(autouse=True, params=["compiled", "arrays"])
def loops(request, monkeypatch):
    """Problems as small as these have array code; compiled loops give the same answers."""
    monkeypatch.setattr(interior_rows, "COMPILED_FROM", 0 if request.param == "compiled" else 10**9)
    return request.param


@pytest.fixture
def compiled(monkeypatch):
    monkeypatch.setattr(interior_rows, "COMPILED_FROM", 0)


LOSSES = SCALAR_LOSSES | {"mixed sides": EpsilonInsensitive(0.1)}
KINDS = list(LOSSES)
CUTS = {1: [], 2: [40], 3: [100, 100], 7: [1, 1, 20, 45, 45, 130]}  # parts of unlike sizes, some without examples


class Data:
    """A problem whose examples can be cut into parts: matrix, targets, budgets."""

    def __init__(self, kind, storage="dense", seed=0):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(N, D)) * (1.0 + np.arange(D))
        if storage in ("sparse", "half full"):
            X = sp.random(N, 30, density=0.08 if storage == "sparse" else 0.4, format="csr", random_state=seed)
        score = np.asarray(X @ rng.normal(size=X.shape[1])).ravel()
        self.kind, self.X = kind, X.astype(np.float32) if storage == "float32" else X
        self.target = score + score.std() * rng.normal(size=N)
        self.sign = np.where(self.target > 0, 1, -1).astype(np.int8)
        self.budget = rng.uniform(0.1, 1.0, size=N)
        # Both sides cost in the midst only, so that some parts have examples with two sides and others have none.
        self.side = np.where(np.abs(np.arange(N) - 70) < 25, 0, self.sign).astype(np.int8)

    def constraints(self, chosen=slice(None), X=None):
        rows = as_rows(self.X[chosen] if X is None else X, bias=1.0)
        sign, target, budget = self.sign[chosen], self.target[chosen], self.budget[chosen]
        loss = LOSSES[self.kind]
        if "hinge" in self.kind:
            return binary(rows, sign, budget, loss=loss)
        if "regression" in self.kind:
            return regression(rows, target, budget, loss=loss)
        return Scalar(rows, target, self.side[chosen], budget, loss)

    def parts(self, cuts):
        return [self.constraints(slice(a, b)) for a, b in itertools.pairwise([0, *cuts, N])]

    def blocks(self, chunk_rows):
        source = mm.data.open(self.X, labels=self.target, chunk_rows=chunk_rows)
        return Blocked(source, lambda chunk: self.constraints(chunk.ids, chunk.x), self.X.shape[1] + 1)


class Spread:
    """Stands for several ``InteriorRows``, as a cluster does: hands on questions and adds up answers."""

    def __init__(self, parts, description, n_threads=1):
        self.rows = [InteriorRows(part, n_threads, description) for part in parts]
        self.n_weights = parts[0].n_weights

    @property
    def alpha(self):
        return np.concatenate([rows.alpha for rows in self.rows])

    @property
    def kept(self):
        return np.concatenate([rows.kept for rows in self.rows])

    def saved(self):
        return [np.concatenate(arrays) for arrays in zip(*(rows.saved() for rows in self.rows), strict=True)]

    def load(self, point, kept=None):
        ends = np.cumsum([rows.n_examples for rows in self.rows])[:-1]
        shares = [np.split(values, ends) if values.size else [values] * len(self.rows) for values in point]
        keeps = [None] * len(self.rows) if kept is None else np.split(kept, ends)
        for rows, share, keep in zip(self.rows, zip(*shares, strict=True), keeps, strict=True):
            rows.load(share, keep)

    def centre(self, w, mu):
        for rows in self.rows:
            rows.centre(w, mu)

    def look(self, *question):
        return added_looks(self.n_weights, (rows.look(*question) for rows in self.rows))

    def advance(self, *question):
        return added_advances(self.n_weights, (rows.advance(*question) for rows in self.rows))


class Cluster:
    """Constraints whose rows are elsewhere: only what certificates need, a description, and the sums."""

    closed = True
    held_in = "elsewhere"

    def __init__(self, parts):
        self._parts = parts
        self.n_examples = sum(part.n_examples for part in parts)
        self.n_weights = parts[0].n_weights
        self._ends = np.cumsum([part.n_examples for part in parts])[:-1]

    def describe(self):
        return Description.joined([part.describe() for part in self._parts])

    def interior_rows(self, n_threads):
        return Spread(self._parts, self.describe(), n_threads)

    def evaluate(self, w):
        return TotalLoss.sum(part.evaluate(w) for part in self._parts)

    def totals(self, alpha):
        sums = DualSums(self._parts[0].n_weights)
        for part, share in zip(self._parts, np.split(alpha, self._ends), strict=True):
            sums.add(part.totals(share))
        return sums.totals()


def answers(rows, n_weights):
    """What ``rows`` say to a few questions, one after another, and the point at which they end."""
    rng = np.random.default_rng(9)
    w = 0.1 * rng.normal(size=n_weights)
    directions = 0.01 * rng.normal(size=(3, n_weights))
    rows.centre(w, 0.4)
    told = [*rows.advance(w, directions[:0], 0.0, 0.0, True)]
    for depth in (1, 2, 3):
        told += rows.look(w, directions[:depth], 0.3)
    length = min(1.0, 0.9 / told[-1][0])
    told += rows.advance(w, directions, 0.3, length, True)
    told += rows.look(w + length * directions[2], directions[:1], 0.0)
    return [*told, *rows.saved()]


def assert_alike(some, others):
    for a, b in zip(some, others, strict=True):
        rtol = 1e-5 if a.dtype == np.float32 else 1e-8
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * max(1.0, np.abs(a).max(initial=0.0)))


# What the sums are


@pytest.mark.parametrize("storage", ["dense", "sparse", "half full"])
def test_sums_are_those_of_the_formulas(storage, compiled):
    data = Data("hinge", storage)
    X = np.column_stack([data.X.toarray() if sp.issparse(data.X) else data.X, np.ones(N)])
    w = 0.1 * np.random.default_rng(1).normal(size=X.shape[1])
    rows = InteriorRows(data.constraints())
    rows.centre(w, 0.4)
    gram, vectors, sums = rows.advance(w, np.zeros((0, w.size)), 0.0, 0.0, False)
    beta, excess, common = rows.saved()
    assert common.size == 0
    margin = 1.0 - data.sign * (X @ w)
    a = data.sign * beta
    s = data.budget - a
    xi = np.maximum(margin, 0.0) + excess
    y = xi - margin
    mu = 0.4 * data.budget / data.budget.mean()
    np.testing.assert_allclose(a * y, mu, rtol=1e-5)
    np.testing.assert_allclose(s * xi, mu, rtol=1e-5)
    p, h = a / y, s / xi
    np.testing.assert_allclose(gram, X.T @ ((p * h / (p + h))[:, None] * X), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(vectors[0], X.T @ beta, rtol=1e-9, atol=1e-9)
    affine, centred = (data.sign * (fa - p * (fa + fs) / (p + h)) for fa, fs in ((-a, -s), (1 / y, 1 / xi)))
    np.testing.assert_allclose(vectors[1], X.T @ affine, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(vectors[2], X.T @ centred, rtol=1e-6, atol=1e-6)
    loss = data.budget @ np.maximum(margin, 0.0)
    np.testing.assert_allclose(sums[:4], [loss, a.sum(), (a * y + s * xi).sum(), 2 * N], rtol=1e-9)


def test_float32_rows_are_multiplied_in_float64_on_request(compiled):
    data = Data("hinge", "float32")
    rows, wide = (InteriorRows(data.constraints(X=X)) for X in (data.X, data.X.astype(np.float64)))
    w = np.zeros(D + 1)
    for r in (rows, wide):
        r.centre(w, 1.0)
    still = (w, np.zeros((0, w.size)), 0.0, 0.0)
    reference = wide.advance(*still, False)[0]
    coarse, precise = (np.abs(rows.advance(*still, p)[0] - reference).max() for p in (False, True))
    assert precise <= 1e-12 * np.abs(reference).max() < coarse


# Parts add up


@pytest.mark.parametrize("storage", ["dense", "sparse", "half full", "float32"])
@pytest.mark.parametrize("kind", KINDS)
def test_answers_of_parts_add_up(kind, storage):
    data = Data(kind, storage)
    whole = data.constraints()
    for cuts in CUTS.values() if storage == "sparse" else (CUTS[7],):
        parts = data.parts(cuts)
        spread = Spread(parts, Description.joined([part.describe() for part in parts]))
        assert_alike(answers(InteriorRows(whole), whole.n_weights), answers(spread, whole.n_weights))


@pytest.mark.parametrize(
    ("kind", "chunk_rows", "n_threads"),
    [("hinge", 17, 3), ("squared regression", 17, 1), ("squared regression", 1000, 3)],
)
def test_blocks_and_threads_give_the_same_answers(kind, chunk_rows, n_threads):
    data = Data(kind, "sparse")
    whole = data.constraints()
    one = InteriorRows(whole)
    blocked = InteriorRows(data.blocks(chunk_rows), n_threads, whole.describe())  # of blocks one speaks for all
    assert_alike(answers(one, whole.n_weights), answers(blocked, whole.n_weights))
    first, again = (answers(InteriorRows(whole, n_threads), whole.n_weights) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_answers_do_not_depend_on_what_was_asked_before(kind):
    data, rng = Data(kind), np.random.default_rng(1)
    asked = InteriorRows(data.constraints())
    w, directions = rng.normal(size=asked.n_weights), 0.1 * rng.normal(size=(3, asked.n_weights))
    others = directions[[0, 2, 1]]
    asked.centre(w, 0.3)
    questions = [(0.0, directions[:1]), (0.2, directions[:2]), (0.2, directions), (0.1, others), (0.1, others[:2])]
    for mu, along in questions:
        fresh = InteriorRows(data.constraints())
        fresh.load(asked.saved())
        for at in (w, w + 1.0, w):
            for found, expected in zip(asked.look(at, along, mu), fresh.look(at, along, mu), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
            fresh.load(asked.saved())
    other = InteriorRows(data.constraints())
    other.centre(w, 5.0)
    asked.load(other.saved())
    np.testing.assert_allclose(asked.look(w, directions, 0.2)[1], other.look(w, directions, 0.2)[1], rtol=1e-9)


def test_questions_of_other_sizes_are_refused():
    rows = InteriorRows(Data("hinge").constraints())
    with pytest.raises(ValueError, match=r"have 9 weights.* got \(8,\) and \(0, 9\)"):
        rows.centre(np.zeros(8), 1.0)
    with pytest.raises(ValueError, match=r"directions \(k, 9\), got \(9,\) and \(1, 8\)"):
        rows.look(np.zeros(9), np.zeros((1, 8)), 0.0)
    with pytest.raises(ValueError, match=r"directions \(k, 9\), got \(9,\) and \(9,\)"):
        rows.advance(np.zeros(9), np.zeros(9), 0.0, 0.0, False)


# The solver does not need rows at hand


def assert_same_optimum(whole, parts, regularizer):
    """The solution over the parts, once it is certified to be as good as the one over the whole."""
    spread, local = Problem(Cluster(parts), regularizer), Problem(whole, regularizer)
    assert InteriorPoint().handles(spread)
    found = solve(spread, InteriorPoint(n_threads=2), tol=1e-6, max_passes=60)
    known = solve(local, InteriorPoint(), tol=1e-6, max_passes=60)
    assert found.converged and found.certificate.relative_gap <= 1e-6
    assert found.certificate.lower <= known.certificate.upper * (1 + 1e-12)
    assert known.certificate.lower <= found.certificate.upper * (1 + 1e-12)
    assert abs(len(found.history) - len(known.history)) <= 2
    np.testing.assert_allclose(found.weights, known.weights, atol=0.01 * np.abs(known.weights).max())
    return found


@pytest.mark.parametrize("kind", ["hinge", "squared regression"])
def test_parts_may_come_in_blocks(kind):
    one, other, whole = Data(kind), Data(kind), Data(kind)
    for data, chosen in ((one, slice(0, 60)), (other, slice(60, N))):
        for name in ("X", "target", "sign", "budget"):
            setattr(data, name, getattr(data, name)[chosen])
    nothing = Blocked(mm.data.open(one.X[:0], labels=one.target[:0], chunk_rows=5), one.constraints, D + 1)
    assert nothing.describe().n_examples == 0
    assert_same_optimum(whole.constraints(), [one.blocks(13), nothing, other.constraints()], L2())


@pytest.mark.parametrize("kind", ["squared hinge", "smoothed hinge", "mixed sides"])
def test_a_run_goes_on_over_other_parts(kind):
    data, solver = Data(kind), InteriorPoint()
    one = Problem(Cluster(data.parts(CUTS[3])), L2())
    state = solver.start(one)
    while not state.at_best:  # until some dual variables prove more than none would
        state = solver.step(one, state)
    saved = solver.save(state, settled=True)
    for other in (Problem(Cluster(data.parts(CUTS[7])), L2()), Problem(data.constraints(), L2())):
        again = solver.restore(other, saved)
        assert np.array_equal(again.alpha, state.alpha) and np.array_equal(again.w, state.w)
        assert again.lower == pytest.approx(state.lower, rel=1e-12)
        went_on = solver.step(other, again)
        here = solver.step(one, solver.restore(one, saved))
        assert went_on.lower == pytest.approx(here.lower, rel=1e-9)
        assert went_on.lower > state.lower
    assert solver.save(state, settled=False) is None


# Descriptions


@pytest.mark.parametrize(("kind", "storage"), list(zip(KINDS, 3 * ["dense", "sparse"], strict=False)))
def test_descriptions_of_parts_join_to_that_of_the_whole(kind, storage):
    data = Data(kind, storage)
    whole = data.constraints().describe()
    X = data.X.toarray() if storage == "sparse" else data.X
    assert whole.squared_norm == pytest.approx((X**2).sum(axis=1).mean() + 1.0)
    assert whole.budget == pytest.approx(data.budget.mean())
    assert whole.stored == (data.X.nnz / N if storage == "sparse" else D)
    for cuts in CUTS.values():
        joined = Description.joined([part.describe() for part in data.parts(cuts)])
        for name, value in vars(whole).items():
            rel = 0.2 if name == "slots_per_example" else 1e-6  # parts without a second side have one slot less
            assert getattr(joined, name) == (pytest.approx(value, rel) if isinstance(value, float) else value), name
    blocked = data.blocks(30).describe()
    assert (blocked.n_examples, blocked.kind, blocked.loss) == (N, "Scalar", whole.loss)


def test_solver_is_chosen_as_if_rows_were_at_hand():
    for scale, C in ((100.0, 1.0), (0.001, 0.01)):
        data = Data("hinge")
        data.X, data.budget = data.X + scale if scale > 1 else data.X * scale, np.full(N, C)
        pays = [interior_point_pays(Problem(c, L2()), 1e-3) for c in (data.constraints(), Cluster(data.parts(CUTS[7])))]
        assert pays == [scale > 1] * 2


def test_parts_that_do_not_belong_together():
    alike = Data("hinge").constraints().describe()
    unlike = Data("squared hinge").constraints().describe()
    with pytest.raises(ValueError, match=r"Scalar with .*bounded=True.* and Scalar with .*bounded=False"):
        Description.joined([alike, unlike])
    with pytest.raises(ValueError, match="no description"):
        Description.joined([])


def test_what_newton_steps_cannot_do_is_said():
    class Unknown(Cluster):
        def describe(self):
            return Description("Unknown", self.n_examples)

    unknown = Unknown([Data("hinge").constraints()])
    assert not InteriorPoint().handles(Problem(unknown, L2()))
    with pytest.raises(ValueError, match="know nothing of Unknown constraints"):
        InteriorRows(unknown)


def test_descriptions_that_do_not_fit_the_rows_are_refused(compiled):
    data = Data("mixed sides")
    whole, blocks = data.constraints(), data.blocks(17)
    assert not blocks.describe().two_sided  # the first block has one side only, as it happens
    with pytest.raises(ValueError, match="Give one with two_sided=True"):
        InteriorRows(blocks).centre(np.zeros(D + 1), 1.0)
    fitting = InteriorRows(blocks, description=whole.describe())
    assert_alike(answers(InteriorRows(whole), D + 1), answers(fitting, D + 1))
    with pytest.raises(ValueError, match="This loss is bounded"):
        InteriorRows(whole, description=replace(whole.describe(), loss=LossShape(0.1, 0.5, False))).centre(
            np.zeros(D + 1), 1.0
        )


def test_point_of_other_examples_is_refused(compiled):
    data = Data("hinge")
    rows = InteriorRows(data.constraints())
    with pytest.raises(ValueError, match=r"these 150 examples .* got \[\(40,\), \(40,\), \(0,\)\]"):
        rows.load(InteriorRows(data.constraints(slice(0, 40))).saved())
    rows.centre(np.zeros(D + 1), 1.0)
    other = InteriorRows(data.constraints())
    other.load(rows.saved())
    rows.centre(np.ones(D + 1), 1.0)  # what was loaded is a copy
    assert not np.array_equal(other.alpha, rows.alpha)

"""Losses: convex, of one piece with their conjugates and with what kernels read; optima are those of a cone solver."""

import numpy as np
import pytest
import reference
from generators import covariance, many_classes, two_classes

import maxmargin as mm
from maxmargin import LinearSVC, LinearSVR, Problem
from maxmargin.checks import check_constraints, check_loss
from maxmargin.data.arrays import as_rows
from maxmargin.losses import (
    DISTANCE,
    MARGIN,
    EpsilonInsensitive,
    Hinge,
    LossShape,
    SmoothedHinge,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)  # fmt: skip
from maxmargin.models import binary, regression
from maxmargin.regularizers import L2, Bounded, GaussianPrior
from maxmargin.solvers import DualCoordinate, InteriorPoint, solve

D = 6
LOSSES = [
    Hinge(), SquaredHinge(), SmoothedHinge(), SmoothedHinge(1e-3), SmoothedHinge(40.0), EpsilonInsensitive(0.0),
    EpsilonInsensitive(0.7), SquaredEpsilonInsensitive(0.3),
]  # fmt: skip


class Huber:
    """A loss of a user's: ε = 0, a parabola of width 2, then a line; and each of its methods can be broken."""

    def __init__(self, **broken):
        self.__dict__.update(broken)

    def value(self, missed):
        return np.where(missed <= 2.0, np.square(np.maximum(missed, 0.0)) / 4.0, missed - 1.0)

    def conjugate(self, alpha):
        return np.where((alpha >= 0.0) & (alpha <= 1.0), np.square(alpha), np.inf)

    def shape(self):
        return LossShape(curvature=2)


@pytest.mark.parametrize("loss", [*LOSSES, Huber()], ids=lambda loss: type(loss).__name__)
def test_every_loss_conforms(loss, rng):
    check_loss(loss)
    X, y = two_classes(rng, n=20, d=3)
    check_constraints(binary(as_rows(X), y.astype(np.int8), rng.uniform(0.1, 2.0, size=20), loss=loss))
    check_constraints(regression(as_rows(X), rng.normal(size=20), np.ones(1), loss=loss))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"value": lambda m: np.maximum(m, 0.0) + 1.0}, "zero at the target"),
        ({"value": lambda m: np.sqrt(np.maximum(m, 0.0))}, "convex"),
        ({"shape": LossShape}, "kernels would solve another problem"),
        ({"conjugate": lambda a: np.where((a >= 0.0) & (a <= 1.0), 0.5 * a * a, np.inf)}, "must equal"),
        ({"conjugate": np.square}, "infinite"),
    ],
    ids=["not free", "not convex", "shape", "conjugate", "domain"],
)
def test_a_broken_loss_is_found(broken, message):
    with pytest.raises(AssertionError, match=message):
        check_loss(Huber(**broken))


REGULARIZERS = {
    "l2": (L2(), {}),
    "both bounds": (Bounded(-0.2, upper=0.3), {"lower": np.full(D, -0.2), "upper": np.full(D, 0.3)}),
    "some upper bounds": (
        Bounded(-np.inf, [1, 4], GaussianPrior(0.2, 2.0), upper=[0.1, -0.1]),
        {
            "mean": 0.2, "covariance": 2.0,
            "upper": np.array([np.inf, 0.1, np.inf, np.inf, -0.1, np.inf]),
        },
    ),
    "full prior": (GaussianPrior(0.1, covariance(np.random.default_rng(3), D)), {
        "mean": 0.1, "covariance": covariance(np.random.default_rng(3), D)
    }),
}  # fmt: skip


@pytest.mark.parametrize("width", [0.0, 0.05, 1.0, 30.0])
@pytest.mark.parametrize("name", REGULARIZERS)
def test_optimum_is_that_of_a_cone_solver(name, width, rng):
    X, y = two_classes(rng, n=60, d=D, noise=1.0)
    budget = rng.uniform(0.05, 2.0, size=60)
    ours, theirs = REGULARIZERS[name]
    best = reference.quadratic(y[:, None] * X, np.ones(60), np.arange(60), budget, width=width, **theirs)
    loss = SmoothedHinge(width) if width else Hinge()
    problem = Problem(binary(as_rows(X), y.astype(np.int8), budget, loss=loss), ours)
    solvers = [DualCoordinate(0), InteriorPoint()] if name in ("l2", "full prior") else [DualCoordinate(0)]
    for solver in solvers:
        solution = solve(problem, solver, tol=1e-8, max_passes=20_000)
        assert solution.converged
        assert solution.certificate.lower <= best.value * (1 + 1e-9)
        assert best.value <= solution.certificate.upper * (1 + 1e-7)
        assert solution.weights == pytest.approx(best.weights, abs=3e-3)


@pytest.mark.parametrize("settings", [{}, {"regularizer": Bounded(-0.1, upper=0.2)}], ids=["l2", "bounds"])
def test_crammer_singer_under_bounds_and_smoothed_one_vs_rest(settings, rng):
    X, y = many_classes(rng, n=80, d=4, k=3)
    joint = LinearSVC(tol=1e-6, random_state=0, **settings).fit(X, y)
    apart = LinearSVC(loss="smoothed_hinge", multi_class="ovr", tol=1e-6, random_state=0, **settings).fit(X, y)
    for svm in (joint, apart):
        assert svm.certificate_.relative_gap <= 1e-6
        assert svm.certify(X, y).upper == svm.certificate_.upper
        if settings:
            assert svm.coef_.min() >= -0.1 and svm.coef_.max() <= 0.2
    with pytest.raises(ValueError, match="loss='smoothed_hinge' has no Crammer–Singer form"):
        LinearSVC(loss="smoothed_hinge").fit(X, y)


def test_losses_of_users_and_of_files(tmp_path, rng):
    X, y = two_classes(rng, n=60, d=3)
    svm = LinearSVC(loss=SmoothedHinge(0.25), random_state=0).fit(X, y)
    svm.save(tmp_path / "svm.mm")
    loaded = mm.load(tmp_path / "svm.mm")
    assert loaded.loss.width == 0.25 and loaded.certify(X, y) == svm.certify(X, y)
    huber = LinearSVR(loss=Huber(), tol=1e-6, random_state=0).fit(X, X @ np.ones(3) + rng.normal(size=60))
    assert huber.certificate_.relative_gap <= 1e-6
    with pytest.raises(ValueError, match="neither a number, text, array nor a loss"):
        huber.save(tmp_path / "huber.mm")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SmoothedHinge(0.0), "width must be a number above 0, got 0.0"),
        (lambda: SmoothedHinge("wide"), "got 'wide'"),
        (lambda: EpsilonInsensitive(-1), "epsilon must be a number of at least 0, got -1"),
        (lambda: SmoothedHinge(10**400), "width must be a number above 0, got 1000"),
        (lambda: EpsilonInsensitive(10**400), "epsilon must be a number of at least 0, got 1000"),
        (lambda: EpsilonInsensitive(np.complex128(1)), r"got \(1\+0j\)"),
        *((lambda shape=shape: LinearSVC(loss=Huber(shape=lambda: shape)).fit([[0.0], [1.0]], [0, 1]), "two numbers")
          for shape in (None, (0, 1), (1j, 0, True), ("a", 0, True), (0, [1], True), (0, 0, np.ones(2)))),
        (lambda: LinearSVC(loss=Huber(shape=lambda: (10**400, 0, True))).fit([[0.0], [1.0]], [0, 1]), "must be finite"),
        (lambda: LinearSVC(loss=SmoothedHinge).fit([[0.0], [1.0]], [0, 1]), r"give an object of it: SmoothedHinge\("),
        (lambda: LinearSVC(loss="smooth_hinge").fit([[0.0], [1.0]], [0, 1]), "Perhaps you meant 'smoothed_hinge'"),
        (lambda: LinearSVC(loss=[3]).fit([[0.0], [1.0]], [0, 1]), "lacks value, conjugate, shape"),
        (lambda: binary(as_rows(np.eye(1)), np.ones(1, np.int8), np.ones(1), loss=Huber(shape=lambda: (0, 0, False))),
         "without curvature must be bounded"),
        (lambda: binary(as_rows(np.eye(1)), np.ones(1, np.int8), np.ones(1), loss=Huber(shape=lambda: (-1, 0, True))),
         "must be finite and not negative"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_every_name_is_a_loss():
    for known in (MARGIN, DISTANCE):
        for kind in known.values():
            check_loss(kind())


class _Steeper(Hinge):
    """Twice the hinge, with the shape of the hinge: kernels and certificates would be of another problem."""

    def value(self, missed):
        return 2.0 * super().value(missed)


def test_a_loss_whose_value_is_not_that_of_its_shape_is_refused():
    X, y = np.array([[1.0], [-1.0]]), [0, 1]
    with pytest.raises(ValueError, match=r"value and shape are of different losses.*check_loss"):
        LinearSVC(loss=_Steeper()).fit(X, y)

"""Training over shards is the same training: the same optimum, the same certificate, whatever the cuts."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp
from generators import covariance, many_classes, two_classes
from inline_transport import Inline
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.data.array_source import Arrays
from maxmargin.distributed.ascent import ShardAscent
from maxmargin.regularizers import Bounded, GaussianPrior, GroupNorm

TOL = 1e-4
D = 6


def _regularizers():
    rng = np.random.default_rng(3)
    return {
        "prior-diagonal": GaussianPrior(0.1 * rng.normal(size=D), rng.uniform(0.5, 2.0, size=D)),
        "prior-full": GaussianPrior(0.1 * rng.normal(size=D), covariance(rng, D)),
        "bounded": Bounded(-0.1, [0, 2]),
        "group": GroupNorm([[0, 1, 2], [3, 4, 5]], 0.5, l2=1.0),
    }


REGULARIZERS = _regularizers()


def _binary(sparse=False, dtype=np.float64, weight=False, n=60):
    rng = np.random.default_rng(5)
    X, y = two_classes(rng, n=n, d=D)
    X = X.astype(dtype)
    return (sp.csr_matrix(X * (np.abs(X) > 0.5)) if sparse else X, y), (
        {"sample_weight": rng.uniform(0.2, 2.0, n)} if weight else {}
    )


def _several(n=60):
    return many_classes(np.random.default_rng(6), n=n, d=D, k=3), {}


def _numbers(weight=False, n=60):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, D))
    y = X @ rng.normal(size=D) + 0.3 * rng.normal(size=n)
    return (X, y), ({"sample_weight": rng.uniform(0.2, 2.0, n)} if weight else {})


def _ranked(groups, n=60):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(n, D))
    y = np.round(X @ rng.normal(size=D) + 0.5 * rng.normal(size=n))
    return (X, y), ({"groups": rng.permutation(np.arange(n) % 12)} if groups else {})


SVC, SVR, RANK = mm.LinearSVC, mm.LinearSVR, mm.RankingSVM
ASCENT = {"solver": "dual_coordinate"}
CASES = {
    "hinge": (SVC, ASCENT, _binary()),
    "hinge-interior": (SVC, {"solver": "interior_point"}, _binary()),
    "hinge-auto": (SVC, {}, _binary()),
    "hinge-no-intercept": (SVC, {"fit_intercept": False, **ASCENT}, _binary()),
    "hinge-sparse": (SVC, ASCENT, _binary(sparse=True)),
    "hinge-sparse-interior": (SVC, {"solver": "interior_point"}, _binary(sparse=True)),
    "hinge-float32": (SVC, ASCENT, _binary(dtype=np.float32)),
    "hinge-weights": (SVC, ASCENT, _binary(weight=True)),
    "hinge-balanced": (SVC, {"class_weight": "balanced", **ASCENT}, _binary(weight=True)),
    "hinge-balanced-interior": (SVC, {"class_weight": "balanced", "solver": "interior_point"}, _binary()),
    "squared": (SVC, {"loss": "squared_hinge", **ASCENT}, _binary()),
    "smoothed": (SVC, {"loss": "smoothed_hinge", **ASCENT}, _binary()),
    "smoothed-interior": (SVC, {"loss": "smoothed_hinge", "solver": "interior_point"}, _binary()),
    "squared-interior": (SVC, {"loss": "squared_hinge", "solver": "interior_point"}, _binary()),
    "crammer-singer": (SVC, ASCENT, _several()),
    "crammer-singer-balanced": (SVC, {"class_weight": "balanced", **ASCENT}, _several()),
    "ovr": (SVC, {"multi_class": "ovr", **ASCENT}, _several()),
    "ovr-interior": (SVC, {"multi_class": "ovr", "solver": "interior_point"}, _several()),
    "ovr-squared": (SVC, {"multi_class": "ovr", "loss": "squared_hinge", **ASCENT}, _several()),
    "regression": (SVR, {"epsilon": 0.1, **ASCENT}, _numbers()),
    "regression-interior": (SVR, {"epsilon": 0.1, "solver": "interior_point"}, _numbers()),
    "regression-squared": (SVR, {"epsilon": 0.1, "loss": "squared_epsilon_insensitive", **ASCENT}, _numbers(True)),
    "ranking": (RANK, ASCENT, _ranked(True)),
    "ranking-interior": (RANK, {"solver": "interior_point"}, _ranked(True)),
    "ranking-one-group": (RANK, ASCENT, _ranked(False, n=20)),
    **{
        f"{kind}-{name}": (est, {"regularizer": regularizer, **ASCENT}, data)
        for name, regularizer in REGULARIZERS.items()
        for kind, est, data in (("hinge", SVC, _binary()), ("regression", SVR, _numbers()))
    },
    "crammer-singer-diagonal": (SVC, {"regularizer": REGULARIZERS["prior-diagonal"], **ASCENT}, _several()),
    "crammer-singer-bounded": (SVC, {"regularizer": REGULARIZERS["bounded"], **ASCENT}, _several()),
    "prior-full-interior": (SVC, {"regularizer": REGULARIZERS["prior-full"], "solver": "interior_point"}, _binary()),
}


def _made(name, **more):
    kind, settings, (data, extra) = CASES[name]
    return kind(C=0.5, **{"tol": TOL, "random_state": 0, **settings, **more}), data, extra


@functools.cache
def _optimum(name):
    """Bounds of a single machine, tight enough to be called the optimum."""
    estimator, data, extra = _made(name, tol=1e-7)
    return estimator.set_params(solver="auto").fit(*data, **extra).certificate_


def _agrees(certificate, optimum, tol=TOL):
    """Certified to the tolerance, and neither bound on the wrong side of the optimum."""
    room = 1e-6 * abs(optimum.upper)
    assert certificate.relative_gap <= tol
    assert certificate.lower <= optimum.upper + room
    assert certificate.upper >= optimum.lower - room
    assert certificate.upper - optimum.lower <= tol * certificate.upper + room


@pytest.mark.parametrize(("name", "shards"), [(name, (7, 3, 2, 1)[i % 4]) for i, name in enumerate(CASES)])
def test_same_optimum_on_any_number_of_shards(name, shards):
    estimator, data, extra = _made(name)
    estimator.fit(*data, **extra, cluster=Inline(shards))
    _agrees(estimator.certificate_, _optimum(name))
    again = estimator.certify(*data, **extra)  # by dual variables that are in the order of the data
    assert again.lower == pytest.approx(estimator.certificate_.lower, rel=1e-6)
    assert again.upper == pytest.approx(estimator.certificate_.upper, rel=1e-6)


@pytest.mark.parametrize("name", ["hinge", "hinge-interior", "crammer-singer", "regression", "ranking"])
def test_what_a_fit_leaves_behind(name, tmp_path):
    estimator, data, extra = _made(name)
    here = type(estimator)(**{**estimator.get_params(), "tol": 1e-6}).fit(*data, **extra)
    estimator.set_params(tol=1e-6).fit(*data, **extra, cluster=Inline(3))
    assert np.allclose(estimator.coef_, here.coef_, atol=0.02)
    assert estimator.dual_coef_.shape == here.dual_coef_.shape
    bias = 1 if getattr(estimator, "fit_intercept", False) else 0
    combined = np.atleast_2d(estimator.dual_coef_) @ np.hstack([data[0], np.ones((data[0].shape[0], bias))])
    expected = np.atleast_2d(estimator.coef_)
    if bias:
        expected = np.hstack([expected, np.reshape(estimator.intercept_, (-1, 1))])
    assert np.allclose(combined, expected, atol=0.02)
    assert set(estimator.support_) <= set(range(data[0].shape[0]))
    assert 0 < estimator.support_.size < data[0].shape[0]
    estimator.save(tmp_path / "model")
    loaded = mm.load(tmp_path / "model")
    assert np.array_equal(loaded.predict(data[0]), estimator.predict(data[0]))
    assert np.allclose(estimator.predict(data[0]), here.predict(data[0]), atol=0.05)
    assert loaded.certify(*data, **extra).lower == pytest.approx(estimator.certificate_.lower, rel=1e-9)


@pytest.mark.parametrize("solver", ["dual_coordinate", "interior_point"])
def test_more_workers_than_rows(solver):
    X, y = _binary()[0]
    rows = [int(np.argmax(y == 1)), int(np.argmax(y == -1)), int(np.argmax(y == 1)) + 1]
    settings = {"C": 2.0, "random_state": 0, "solver": solver}
    transport = Inline(7)
    svm = SVC(tol=TOL, **settings).fit(X[rows], y[rows], cluster=transport)
    assert transport.n_workers == 7
    _agrees(svm.certificate_, SVC(tol=1e-7, **settings).fit(X[rows], y[rows]).certificate_)
    assert svm.certify(X[rows], y[rows]).relative_gap <= TOL


class _Uneven(Arrays):
    """Arrays whose chunks are as long as they are told."""

    def __init__(self, x, y, ends):
        super().__init__(x, y, chunk_rows=x.shape[0])
        self.offsets = np.array([0, *ends])
        self._begin()


@pytest.mark.parametrize(
    ("solver", "ends"),
    [("dual_coordinate", [1, 2, 55, 57, 60]), ("interior_point", [58, 59, 60]), ("dual_coordinate", [60])],
)
def test_shards_of_very_different_sizes(solver, ends):
    X, y = _binary()[0]
    transport = Inline(3)
    svm = SVC(C=0.5, tol=TOL, random_state=0, solver=solver).fit(_Uneven(X, y, ends), cluster=transport)
    _agrees(svm.certificate_, _optimum("hinge"))
    assert svm.certify(X, y).lower == pytest.approx(svm.certificate_.lower, rel=1e-6)


@functools.cache
def _more_rows(kind):
    """Data that is larger than the least memory that the package can work with, and its optimum."""
    rng = np.random.default_rng(10)
    X, label = many_classes(rng, n=1800, d=60, k=3)
    y = {"hinge": np.minimum(label, 1), "crammer-singer": label, "regression": X @ rng.normal(size=60) + label}[kind]
    estimator = SVR(C=0.001, epsilon=0.5) if kind == "regression" else SVC(C=0.001)
    return estimator, X, y, clone(estimator).set_params(tol=1e-6).fit(X, y).certificate_


@pytest.mark.parametrize(
    ("kind", "form", "memory"),
    [
        ("hinge", "shards", 260_000),
        ("hinge", "text", None),
        ("crammer-singer", "parquet", 260_000),
        ("crammer-singer", "shards", None),
        ("regression", "text", 260_000),
        ("regression", "parquet", None),
        ("hinge", "arrays", 260_000),
    ],
)
def test_workers_read_sources(kind, form, memory, tmp_path):
    """With little memory they read their blocks again and again."""
    estimator, X, y, optimum = _more_rows(kind)
    estimator = clone(estimator).set_params(tol=1e-3, random_state=0, memory=memory, solver="dual_coordinate")
    if form == "text":
        for part in range(3):
            dump_svmlight_file(X[part::3], y[part::3], str(tmp_path / f"{part}.svm"), zero_based=False)
        source = mm.data.open(sorted(tmp_path.glob("*.svm")), dtype="float64")
    elif form == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        table = pa.table({**{f"x{j}": X[:, j] for j in range(X.shape[1])}, "label": y})
        pq.write_table(table, tmp_path / "data.parquet", row_group_size=40)
        source = mm.data.open(tmp_path / "data.parquet", dtype="float64")
    elif form == "shards":
        mm.data.convert(X, tmp_path / "folder", labels=y, dtype="float64", batch_bytes=8000)
        source = mm.data.open(tmp_path / "folder")
    else:
        source = mm.data.open(X, labels=y, chunk_rows=17)
    transport = Inline(3)
    estimator.fit(source, cluster=transport)
    works = {type(shard._work).__name__ for shard in transport.objects if len(shard._recipe._piece)}
    assert works == ({"ClosedWork"} if memory is None else {"BlockWork"})
    _agrees(estimator.certificate_, optimum, 1e-3)


@pytest.mark.parametrize("name", ["crammer-singer", "ovr", "ranking"])
def test_warm_start_over_prices(name):
    estimator, data, extra = _made(name, warm_start=True)
    for C in (0.1, 0.3, 1.0):
        estimator.set_params(C=C).fit(*data, **extra, cluster=Inline(2))
        alone = type(estimator)(**{**estimator.get_params(), "tol": 1e-7, "warm_start": False})
        _agrees(estimator.certificate_, alone.fit(*data, **extra).certificate_)
    rounds = estimator.n_passes_
    estimator.fit(*data, **extra, cluster=Inline(3))
    assert estimator.n_passes_ <= rounds
    assert estimator.certificate_.relative_gap <= TOL


def test_records_and_callbacks():
    X, y = _binary()[0]
    seen = []
    svm = SVC(C=0.5, tol=1e-6, random_state=0, solver=ShardAscent(centre=0, momentum_after=10**9, random_state=0))
    svm.fit(X, y, cluster=Inline(3), callbacks=[seen.append])
    assert seen == svm.history_
    assert [record.number for record in seen] == list(range(1, svm.n_passes_ + 1))
    lower = np.array([record.lower for record in seen])
    assert (np.diff(lower) >= -1e-9 * abs(lower[-1])).all()  # σ = K and no momentum
    upper = [record.upper for record in seen if np.isfinite(record.upper)]
    assert upper and (np.diff(upper) <= 0).all()
    assert lower[-1] <= svm.certificate_.upper


@pytest.mark.parametrize(
    ("solver", "how"),
    [("dual_coordinate", "passes"), ("dual_coordinate", "interrupt"), ("interior_point", "callback")],
)
def test_early_ends_have_true_certificates(solver, how):
    X, y = _binary()[0]

    def stop(record):
        if how == "interrupt" and record.number == 3:
            raise KeyboardInterrupt
        return how == "callback" and record.number == 3

    svm = SVC(C=0.5, tol=1e-9, random_state=0, solver=solver, max_passes=3 if how == "passes" else 1000)
    said = {"passes": "stopped after max_passes=3", "callback": "was told to stop", "interrupt": "was interrupted"}
    with pytest.warns(ConvergenceWarning, match=said[how]):
        svm.fit(X, y, cluster=Inline(3), callbacks=[stop])
    assert len(svm.history_) == 3
    optimum, again = _optimum("hinge"), svm.certify(X, y)
    assert svm.certificate_.lower <= optimum.upper * (1 + 1e-6)
    assert svm.certificate_.upper >= optimum.lower * (1 - 1e-6)
    assert again.lower == pytest.approx(svm.certificate_.lower, rel=1e-6)
    assert again.upper == pytest.approx(svm.certificate_.upper, rel=1e-6)


def test_a_checkpoint_is_free_when_its_run_has_ended(tmp_path):
    """Also while the workers, which are the caller's, still live."""
    estimator, data, _ = _made("hinge")
    transport = Inline(2)
    estimator.fit(*data, cluster=transport, checkpoint=tmp_path)
    assert all(shard is not None for shard in transport.objects)
    again = _made("hinge")[0].fit(*data, cluster=Inline(2), checkpoint=tmp_path)
    assert len(again.history_) == len(estimator.history_)  # nothing was left to do
    assert again.certificate_.relative_gap <= TOL


def test_nothing_is_left_on_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    X, y = _several()[0]
    SVC(C=0.5, multi_class="ovr", random_state=0, **ASCENT).fit(X, y, cluster=Inline(2))
    assert list(tmp_path.iterdir()) == []

"""maxmargin among its neighbours: scikit-learn's searches and routing, data frames, joblib, notebooks."""

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from maxmargin import (
    Certificate,
    GMMKMeans,
    LatentSVC,
    LinearSVC,
    LinearSVR,
    MultilabelSVM,
    RankingSVM,
    SequenceSVM,
    StructuralSVM,
)
from maxmargin.estimators.inputs import check_threads
from maxmargin.models import Multiclass

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = (X[:, 0] + 0.2 * X[:, 1] > 0).astype(int)
GROUPS = np.repeat(np.arange(12), 5)
NAMES = ["height", "width", "depth", "mass"]
TOKENS = [RNG.normal(size=(n, 3)) for n in RNG.integers(2, 6, size=18)]
TAGS = [np.where(x[:, 0] > 0, "a", "b").tolist() for x in TOKENS]
BAGS = [RNG.normal(size=(n, 3)) for n in RNG.integers(1, 4, size=24)]
BAG_LABELS = np.array([int(bag[:, 0].max() > 0.3) for bag in BAGS])


# scikit-learn


@pytest.mark.parametrize(
    ("estimator", "data", "answers", "values"),
    [
        (make_pipeline(StandardScaler(), LinearSVC(random_state=0)), X, Y, {"linearsvc__C": [0.01, 1.0]}),
        (LinearSVR(random_state=0), X, X[:, 0], {"C": [0.01, 1.0]}),
        (MultilabelSVM(random_state=0), X, np.c_[Y, 1 - Y], {"C": [0.01, 1.0]}),
        (GMMKMeans(2, random_state=0), X, None, {"n_clusters": [2, 3]}),
        (SequenceSVM(random_state=0), TOKENS, TAGS, {"C": [0.01, 1.0]}),
        (SequenceSVM(random_state=0), [[{"f": r[0]} for r in x] for x in TOKENS], TAGS, {"bias": [False, True]}),
        (StructuralSVM(Multiclass(), random_state=0), list(X), list(Y), {"C": [0.01, 1.0]}),
        (LatentSVC(random_state=0), BAGS, BAG_LABELS, {"C": [0.01, 1.0]}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_grid_search_over_matrices_and_over_lists(estimator, data, answers, values):
    search = GridSearchCV(estimator, values, cv=3, error_score="raise").fit(data, answers)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(search.predict(data)) == len(data)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])


def test_calibration_adds_probabilities_that_agree_with_the_classes():
    svm = CalibratedClassifierCV(LinearSVC(random_state=0), cv=3).fit(X, Y, sample_weight=np.ones(60))
    shares = svm.predict_proba(X)
    assert np.allclose(shares.sum(axis=1), 1.0)
    assert np.mean(shares.argmax(axis=1) == Y) > 0.9


def test_columns_of_all_kinds_meet_in_a_transformer_and_a_union():
    frame = pd.DataFrame(X, columns=NAMES).assign(colour=np.where(Y, "red", "blue"))
    columns = ColumnTransformer([("numbers", StandardScaler(), NAMES), ("colour", OneHotEncoder(), ["colour"])])
    assert make_pipeline(columns, LinearSVC(random_state=0)).fit(frame, Y).score(frame, Y) == 1.0
    union = FeatureUnion([("plain", StandardScaler()), ("clusters", GMMKMeans(3, random_state=0))])
    assert make_pipeline(union, LinearSVC(random_state=0)).fit(X, Y)[-1].n_features_in_ == 7


# Metadata routing


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_groups_of_rankings_are_routed_without_being_asked_for(routing):
    grades = X[:, 0] + 10.0 * GROUPS  # no one ranking fits all rows, one for the groups does
    alone = cross_validate(RankingSVM(random_state=0), X, grades, params={"groups": GROUPS}, cv=GroupKFold(3))
    assert alone["test_score"].min() > 0.85
    pipeline = make_pipeline(StandardScaler(), RankingSVM(random_state=0))
    search = GridSearchCV(pipeline, {"rankingsvm__C": [0.1, 1.0]}, cv=GroupKFold(3)).fit(X, grades, groups=GROUPS)
    assert search.best_score_ > 0.85


def test_weights_are_routed_through_pipeline_and_search(routing):
    weight = np.arange(60) % 2.0
    wrong = np.where(weight > 0, Y, 1 - Y)
    svm = LinearSVC(random_state=0).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), svm)
    search = GridSearchCV(pipeline, {"linearsvc__C": [0.1, 1.0]}, cv=3).fit(X, wrong, sample_weight=weight)
    assert search.best_score_ > 0.8  # half of the labels are wrong, and weigh nothing
    assert search.best_estimator_.score(X, Y) > 0.8


def test_weights_that_nobody_asked_for_are_an_error(routing):
    with pytest.raises(UnsetMetadataPassedError, match=r"LinearSVC\.fit"):
        cross_validate(LinearSVC(), X, Y, params={"sample_weight": np.ones(60)})


def test_callbacks_are_routed_to_the_last_step(routing):
    seen = []
    pipeline = make_pipeline(StandardScaler(), LinearSVC(random_state=0).set_fit_request(callbacks=True))
    pipeline.fit(X, Y, callbacks=[seen.append])
    assert seen == pipeline[-1].history_


def test_sequences_are_scored_by_weight(routing):
    svm = SequenceSVM(random_state=0).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    scores = cross_validate(svm, TOKENS, TAGS, params={"sample_weight": np.ones(18)}, cv=3)["test_score"]
    assert np.allclose(scores, cross_val_score(SequenceSVM(random_state=0), TOKENS, TAGS, cv=3))


def test_structured_scores_are_weighted_means():
    svm = StructuralSVM(Multiclass(), random_state=0).fit(list(X), list(Y))
    wrong = [1 - Y[0], *Y[1:]]
    assert svm.score(X[:4], wrong[:4], [1.0, 0.0, 0.0, 0.0]) == -1.0
    assert svm.score(X[:4], wrong[:4], [1.0, 1.0, 1.0, 1.0]) == -0.25
    tagger = SequenceSVM(random_state=0).fit(TOKENS, TAGS)
    flipped = [["b" if tag == "a" else "a" for tag in tagger.predict(TOKENS[:1])[0]], tagger.predict(TOKENS[1:2])[0]]
    assert tagger.score(TOKENS[:2], flipped, [0.0, 1.0]) == 1.0
    assert tagger.score(TOKENS[:2], flipped, [1.0, 0.0]) == 0.0


# Data frames


def _polars(frame):
    return pytest.importorskip("polars").DataFrame(frame)


FRAMES = {"pandas": lambda frame: frame, "arrow": pa.table, "polars": _polars}
FRAME = pd.DataFrame(X, columns=NAMES)


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_give_names_and_the_same_weights_as_matrices(kind):
    frame = FRAMES[kind](FRAME)
    labels = frame["height"]
    svr = LinearSVR(random_state=0).fit(frame, labels, sample_weight=np.ones(60))
    assert svr.feature_names_in_.tolist() == NAMES
    assert np.array_equal(svr.coef_, LinearSVR(random_state=0).fit(X, X[:, 0]).coef_)
    assert np.array_equal(svr.predict(frame), svr.predict(FRAME))
    assert svr.certify(frame, labels).relative_gap <= 1e-3


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("names", [[*NAMES[1:], NAMES[0]], NAMES[:3], ["height", "width", "depth", "colour"]])
def test_other_columns_than_in_training_are_refused(kind, names):
    svm = LinearSVC(random_state=0).fit(FRAMES[kind](FRAME), Y)
    other = FRAMES[kind](FRAME.rename(columns={"mass": "colour"}) if "colour" in names else FRAME[names])
    for call in (svm.predict, lambda frame: svm.certify(frame, Y)):
        with pytest.raises(ValueError, match="feature names should match"):
            call(other)


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["red"] * 60, "Row 0 of X, column 'colour', is 'red'.*Encode text"),
        (pd.Categorical(["red"] * 60), "Row 0 of X, column 'colour', is 'red'"),
        (pd.date_range("2026-01-01", periods=60), "Column 'colour' of X holds dates or times"),
        ([None, *X[1:, 0]], "X contains NaN at row 0, column 4 'colour'"),
    ],
    ids=["text", "category", "dates", "missing"],
)
def test_columns_that_are_no_numbers_are_named(kind, column, message):
    frame = FRAMES[kind](FRAME.assign(colour=column))
    with pytest.raises(ValueError, match=message):
        LinearSVC().fit(frame, Y)


def test_dates_are_refused():
    with pytest.raises(ValueError, match=r"X holds dates or times \(datetime64"):
        LinearSVC().fit(np.array(["2026-01-01", "2026-01-02"], "M8[D]")[:, None], [0, 1])


@pytest.mark.parametrize("dtype", ["object", "string", "category", "Int64", "boolean", "int64[pyarrow]"])
def test_labels_of_a_series_stay_what_they_are(dtype):
    known = pd.Series(np.where(Y, "yes", "no") if dtype in ("object", "string", "category") else Y).astype(dtype)
    svm = LinearSVC(random_state=0).fit(FRAME, known)
    assert svm.classes_.tolist() == sorted(set(known.tolist()))
    assert type(svm.predict(FRAME[:1]).tolist()[0]) is type(known.tolist()[0])
    known = known.where(np.arange(60) != 7)
    with pytest.raises(ValueError, match=r"y\[7\] is missing \(1 such rows"):
        svm.fit(FRAME, known)
    with pytest.raises(ValueError, match=r"y\[7\] is missing"):
        svm.fit(FRAME, pa.array([None if i == 7 else int(v) for i, v in enumerate(Y)]))


# joblib


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_grid_search_on_two_workers_finds_the_same(backend):
    values = {"C": [0.01, 1.0]}
    alone = GridSearchCV(LinearSVC(random_state=0), values, cv=3).fit(X, Y).cv_results_["mean_test_score"]
    with joblib.parallel_config(backend, n_jobs=2):
        both = GridSearchCV(LinearSVC(random_state=0, n_jobs=-1), values, cv=3).fit(X, Y)
    assert np.array_equal(alone, both.cv_results_["mean_test_score"])


def test_threads_are_those_of_joblib_and_nobody_takes_what_others_have(monkeypatch):
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert check_threads(None) == 1
    assert check_threads(-1) == 8
    with joblib.parallel_config(n_jobs=2):
        assert check_threads(None) == 2
        assert check_threads(3) == 3
    inside = joblib.Parallel(2, backend="threading")(joblib.delayed(check_threads)(n) for n in (None, -1, 3))
    assert inside == [1, 1, 3]
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")  # as joblib sets it in the processes that it starts
    assert [check_threads(n) for n in (-1, -2, 3)] == [2, 1, 3]


# Notebooks


def test_notebooks_show_the_certificate_below_the_diagram():
    svm = LinearSVC(random_state=0)
    assert "maxmargin-certificate" not in svm._repr_html_()
    shown = svm.fit(X, Y)._repr_mimebundle_()["text/html"]
    assert shown.count("maxmargin-certificate") == svm._repr_html_().count("maxmargin-certificate") == 1
    assert f"relative gap {svm.certificate_.relative_gap:.1e}" in shown and "latent" not in shown
    assert (
        "of the last convex bound, latent values fixed" in LatentSVC(random_state=0).fit(BAGS, BAG_LABELS)._repr_html_()
    )
    with sklearn.config_context(display="text"):
        assert "text/html" not in svm._repr_mimebundle_()


@pytest.mark.parametrize(
    ("certificate", "words"),
    [
        (Certificate(9.99, 10.0), ["9.99", ">10<", "relative gap 1.0e-03", "these weights reach"]),
        (Certificate(123456.1, 123456.2), ["123456.1", "123456.2"]),
        (Certificate(3.0, np.inf), ["∞", "certify(X, y) adds the upper bound"]),
        (Certificate(3.0, np.inf, exact=False), ["∞", "the search was approximate"]),
    ],
)
def test_certificates_are_brackets(certificate, words):
    shown = certificate._repr_html_()
    assert all(word in shown for word in words)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_distances_to_clusters_come_as_a_frame(kind):
    pytest.importorskip(kind)
    found = GMMKMeans(2, random_state=0).set_output(transform=kind).fit_transform(FRAME)
    assert list(found.columns) == ["gmmkmeans0", "gmmkmeans1"]
    assert type(found).__module__.startswith(kind)

"""Fits written down in MLflow and TensorBoard, in stores of files, and read back by the tools themselves."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import maxmargin as mm
from maxmargin import LatentSVC, LinearSVC
from maxmargin.callbacks import MLflow, TensorBoard
from maxmargin.vision import SceneClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = (X[:, 0] + 0.5 * RNG.normal(size=60) > 0).astype(int)
BAGS = [RNG.normal(size=(2, 3)) for _ in range(24)]
BAG_LABELS = np.array([int(bag[:, 0].max() > 0.3) for bag in BAGS])


class Diary:
    """A callback that is told of whole fits."""

    def __init__(self):
        self.said = []

    def begin(self, estimator):
        return _Page(self.said, estimator)


class _Page:
    def __init__(self, said, estimator):
        self.said = said
        said.append(("begin", type(estimator).__name__))

    def __call__(self, record):
        self.said.append(record.number)

    def end(self, estimator, error):
        self.said.append(("end", hasattr(estimator, "certificate_"), type(error).__name__))


def test_callbacks_are_told_of_the_whole_fit():
    diary = Diary()
    svm = LinearSVC(random_state=0).fit(X, Y, callbacks=[diary])
    assert diary.said == [("begin", "LinearSVC"), *range(1, svm.n_passes_ + 1), ("end", True, "NoneType")]
    diary.said.clear()
    with pytest.raises(ValueError, match="inconsistent"):
        LinearSVC().fit(X, Y[:-1], callbacks=[diary])
    assert diary.said == [("begin", "LinearSVC"), ("end", False, "ValueError")]


def test_a_fit_within_a_fit_does_not_end_what_it_did_not_begin():
    diary = Diary()
    regions = RNG.normal(size=(12, 1, 2, 3))
    SceneClassifier(kind="bow", random_state=0).fit(regions, np.arange(12) % 2, callbacks=[diary])
    assert [entry[0] for entry in diary.said if isinstance(entry, tuple)] == ["begin", "end"]
    assert 1 in diary.said


def test_all_are_told_of_the_end_also_where_one_of_them_fails():
    class Failing:
        def begin(self, estimator):
            return self

        def __call__(self, record):
            pass

        def end(self, estimator, error):
            raise OSError("the disk is full")

    diary = Diary()
    with pytest.raises(OSError, match="the disk is full"):
        LinearSVC(random_state=0).fit(X, Y, callbacks=[Failing(), diary])
    assert diary.said[-1] == ("end", True, "NoneType")


def _events(folder):
    """Scalars of one folder as TensorBoard's own format has them."""
    from tensorboardX.proto.event_pb2 import Event

    found = {}
    for path in folder.glob("events.*"):
        data = path.read_bytes()
        while data:
            length = int.from_bytes(data[:8], "little")
            event = Event.FromString(data[12 : 12 + length])
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
            data = data[16 + length :]
    return found


def test_tensorboard_has_every_pass_and_the_certificate(tmp_path):
    log = TensorBoard(tmp_path)
    svm = LinearSVC(random_state=0).fit(X, Y, callbacks=[log])
    events = _events(tmp_path / "LinearSVC")
    assert [step for step, _ in events["lower"]] == list(range(1, svm.n_passes_ + 1))
    assert np.allclose([value for _, value in events["lower"]], [r.lower for r in svm.history_])
    assert {"seconds", "oracle_calls", "cache_size", "upper", "relative_gap"} <= set(events)
    assert np.isclose(events["certificate_upper"][-1][1], svm.certificate_.upper)
    assert len(events["upper"]) == sum(np.isfinite(r.upper) for r in svm.history_)


def test_tensorboard_keeps_fits_apart(tmp_path):
    log = TensorBoard(tmp_path / "runs", name="search")
    search = GridSearchCV(LinearSVC(random_state=0), {"C": [0.1, 1.0]}, cv=2)
    search.fit(X, Y, callbacks=[log])
    names = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert names == ["search", *(f"search-{k}" for k in range(2, 6))]
    one_vs_rest = LinearSVC(multi_class="ovr", random_state=0).fit(
        X, np.digitize(X[:, 0], [-0.5, 0.5]), callbacks=[log]
    )
    steps = [step for step, _ in _events(tmp_path / "runs" / "search-6")["lower"]]
    assert steps == list(range(1, len(one_vs_rest.history_) + 1))


def test_a_tool_that_fails_ends_its_log_and_not_the_fit(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr("tensorboardX.SummaryWriter.add_scalar", full)
    with pytest.warns(
        RuntimeWarning, match="TensorBoard could not be written to: disk full. This fit goes on"
    ) as caught:
        svm = LinearSVC(random_state=0).fit(X, Y, callbacks=[TensorBoard(tmp_path)])
    assert len(caught) == 1
    assert svm.certificate_.relative_gap <= 1e-3


def test_a_folder_that_cannot_be_made_fails_before_the_fit(tmp_path):
    (tmp_path / "runs").write_text("")
    seen = []
    with pytest.raises(OSError, match="runs"):
        LinearSVC().fit(X, Y, callbacks=[seen.append, TensorBoard(tmp_path / "runs")])
    assert not seen


@pytest.mark.parametrize(("make", "module"), [(lambda: TensorBoard("runs"), "tensorboardX"), (MLflow, "mlflow")])
def test_a_missing_package_is_named_with_its_extra(make, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"needs {module}.*pip install 'maxmargin\[(mlflow|tensorboard)\]'"):
        make()


@pytest.fixture
def client(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    yield mlflow.MlflowClient()
    mlflow.set_tracking_uri(before)


def test_mlflow_has_parameters_passes_certificate_model_and_report(client, tmp_path):
    log = MLflow(tags={"data": "noise"})
    svm = LinearSVC(C=0.5, random_state=0).fit(X, Y, callbacks=[log])
    run = client.get_run(log.run_ids[-1])
    assert run.info.status == "FINISHED"
    assert (run.data.params["C"], run.data.params["loss"]) == ("0.5", "hinge")
    assert run.data.tags["data"] == "noise"
    assert run.data.tags["maxmargin.certificate"] == repr(svm.certificate_)
    assert run.data.metrics["certificate_relative_gap"] == svm.certificate_.relative_gap
    passes = client.get_metric_history(run.info.run_id, "lower")
    assert [(m.step, m.value) for m in passes] == [(r.number, r.lower) for r in svm.history_]
    path = client.download_artifacts(run.info.run_id, "model.mm", str(tmp_path))
    assert np.array_equal(mm.load(path).coef_, svm.coef_)
    report = client.download_artifacts(run.info.run_id, "report.html", str(tmp_path))
    assert "<title>" in Path(report).read_text(encoding="utf-8")


def test_mlflow_puts_fits_below_the_active_run(client):
    import mlflow

    with mlflow.start_run() as parent:
        search = GridSearchCV(LinearSVC(random_state=0), {"C": [0.1, 1.0]}, cv=2)
        search.fit(X, Y, callbacks=[MLflow(model=False, report=False)])
    children = client.search_runs(
        [parent.info.experiment_id], f"tags.mlflow.parentRunId = '{parent.info.run_id}'", max_results=10
    )
    best = str(search.best_params_["C"])
    assert sorted(child.data.params["C"] for child in children) == sorted(["0.1", "0.1", "1.0", "1.0", best])


def test_mlflow_writes_into_a_given_run_and_leaves_it_open(client):
    import mlflow

    with mlflow.start_run() as run:
        log = MLflow(run_id=run.info.run_id, model=False)
        LatentSVC(random_state=0).fit(BAGS, BAG_LABELS, callbacks=[log])
        assert client.get_run(run.info.run_id).info.status == "RUNNING"
    assert {"objective", "bound", "gap", "certificate_lower"} <= set(client.get_run(run.info.run_id).data.metrics)
    assert [file.path for file in client.list_artifacts(run.info.run_id)] == ["report.html"]


def test_mlflow_marks_fits_that_failed(client):
    log = MLflow()
    with pytest.raises(ValueError, match="inconsistent"):
        LinearSVC().fit(X, Y[:-1], callbacks=[log])
    run = client.get_run(log.run_ids[-1])
    assert run.info.status == "FAILED"
    assert "inconsistent" in run.data.tags["maxmargin.error"]


def test_mlflow_leaves_no_run_open_that_could_not_begin(client, monkeypatch):
    def refuse(self, *args, **kwargs):
        raise OSError("the server is gone")

    monkeypatch.setattr(type(client), "log_batch", refuse)
    with pytest.raises(OSError, match="the server is gone"):
        LinearSVC().fit(X, Y, callbacks=[MLflow()])
    assert [run.info.status for run in client.search_runs(["0"])] == ["FAILED"]


def test_mlflow_goes_without_a_file_that_cannot_be_made(client, monkeypatch):
    def refuse(self, path):
        raise ValueError("no way to save this")

    monkeypatch.setattr(LinearSVC, "save", refuse)
    log = MLflow()
    with pytest.warns(RuntimeWarning, match=r"MLflow keeps no model\.mm of this fit: no way to save this"):
        LinearSVC(random_state=0).fit(X, Y, callbacks=[log])
    run = client.get_run(log.run_ids[-1])
    assert run.info.status == "FINISHED"
    assert [file.path for file in client.list_artifacts(run.info.run_id)] == ["report.html"]

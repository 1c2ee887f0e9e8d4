"""Errors as a feature: every wrong call ends at once, in one message that says what was given and what to do."""

import copy
import inspect
import pickle
import re
import sys
import warnings

import numpy as np
import pytest
import wrong_files
import wrong_linear
import wrong_structured
import wrong_vision
from commands import complaint
from sklearn.base import clone
from wrong_call import BAG_LABELS, BAGS, SEQUENCES, TAGS, Y2, X, latent, structural, svc, tagger

import maxmargin as mm
from maxmargin.vision import DeformablePartDetector, PartClassifier, SceneClassifier

CASES = [
    pytest.param(case, id=f"{module.__name__.removeprefix('wrong_')}: {case.name}")
    for module in (wrong_linear, wrong_structured, wrong_files, wrong_vision)
    for case in module.CASES
]
INSIDES = re.compile(
    "could not convert|out of range$|object is not|has no attribute|unsupported operand|broadcast|missing 1 required|"
    r"unexpected keyword|inhomogeneous|nopython|SeedSequence|np\.(float|int|str)|ambiguous|Traceback|ufunc"
)


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_call_is_answered_in_words(case, tmp_path):
    with pytest.raises(case.error) as found:
        case.call(tmp_path)
    message = str(found.value)
    assert re.search(case.given, message), message
    assert re.search(case.needed, message), message
    assert message.rstrip().endswith((".", "?")), message
    assert max(map(len, message.replace(str(tmp_path), "").splitlines())) <= 300, message
    assert re.search(rf"(?<!\w){re.escape(case.argument)}(?!\w)", message), message
    assert not INSIDES.search(message), message


def test_cases_have_names_of_their_own():
    names = [case.id for case in CASES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("arguments", "given", "needed"),
    [
        ("foo", "invalid choice: 'foo'", "'train'"),
        ("train ok.svm", "required: -o/--output", "maxmargin train --help"),
        ("train ok.svm -o m.mm -C -1", "--C must.*got -1", "greater than 0"),
        ("train ok.svm -o m.mm --loss hing", "--loss.*'hing'", "'hinge'"),
        ("train ok.svm -o no/m.mm", "there is no folder no", "Create it first"),
        ("train ok.svm -o m.mm --c 1", "ambiguous option: --c", "meant '--C'"),
        (
            "train ok.svm -o m.mm --lable y",
            "unrecognized arguments: --lable",
            "meant '--label'.*maxmargin train --help",
        ),
        ("convert ok.svm s --batch-size 4GB", "--batch-size must be at most 1 GiB", "not 4GB"),
        ("train no.svm -o m.mm", "no.svm does not exist", "Relative paths start at"),
        ("train bad.svm -o m.mm", "bad.svm, line 2, column 4", "Needed: label"),
        ("train t.csv -o m.mm", "t.csv is a table in text", "Parquet"),
        ("predict no.mm ok.svm", "no model file no.mm", "maxmargin train writes one"),
        ("predict ok.svm ok.svm", "ok.svm is not a model file", "Give a model file"),
        ("convert ok.svm bad.svm", "bad.svm is a file", "Shards need a folder"),
    ],
)
def test_the_command_line_complains_in_one_line(arguments, given, needed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ok.svm").write_text("1 1:1\n-1 1:2\n")
    (tmp_path / "bad.svm").write_text("1 1:1\n-1 1:abc\n")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    line = complaint(capsys, *arguments.split())
    assert re.search(given, line) and re.search(needed, line), line
    assert line.endswith((".", " --help)"))


class Untouched:
    """Data that nobody may look at yet."""

    def __len__(self):
        raise AssertionError("data was looked at before the settings")

    __array__ = __iter__ = __getitem__ = __len__


ESTIMATORS = [
    mm.LinearSVC(),
    mm.LinearSVR(),
    mm.RankingSVM(),
    mm.MultilabelSVM(),
    mm.SequenceSVM(),
    mm.StructuralSVM(mm.models.Multiclass()),
    mm.LatentSVC(),
    mm.LatentStructuralSVM(mm.models.Bags()),
    mm.GMMKMeans(),
    SceneClassifier(),
    PartClassifier(),
    DeformablePartDetector(),
]
NONSENSE = {
    "C": (0.0, -1.0, np.nan, "1", None),
    "bound": (mm.latent.CCCP,),
    "bound_tol": (0.0,),
    "eta": (0.0, 1.5),
    "loss": ("hing",),
    "max_bounds": (0,),
    "max_iter": (0,),
    "max_passes": (0, 2.5),
    "max_rounds": (0,),
    "memory": ("lots", -5),
    "n_init": (0,),
    "n_jobs": (0,),
    "on_error": ("none",),
    "random_state": ("seed",),
    "regularizer": (mm.regularizers.L2, "l1"),
    "solver": (mm.solvers.DualCoordinate,),
    "tol": (-1.0,),
    "training": ("none",),
    "verbose": ("loud",),
}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_settings_are_checked_before_data_is_looked_at(estimator):
    given = inspect.signature(type(estimator)).parameters
    switches = {name: ("maybe",) for name, p in given.items() if isinstance(p.default, bool)}
    tried = {**{k: v for k, v in NONSENSE.items() if k in given}, **switches}
    if isinstance(estimator, mm.SequenceSVM | mm.MultilabelSVM):
        tried.pop("loss")  # which may be a table by label: the labels must be known
    assert len(tried) >= 5
    for name, value in ((name, value) for name, values in tried.items() for value in values):
        wrong = type(estimator)(**{**estimator.get_params(deep=False), name: value})
        with pytest.raises(ValueError, match=rf"^{name} "):
            wrong.fit(Untouched(), Untouched())
        assert vars(wrong).keys() == estimator.get_params(deep=False).keys(), "nothing was learned"


@pytest.mark.parametrize(
    ("fitted", "wrong", "right"),
    [(svc, X[:, :2], X), (structural, X[0], list(X)), (tagger, SEQUENCES[0], SEQUENCES), (latent, BAGS[0], BAGS)],
    ids=["LinearSVC", "StructuralSVM", "SequenceSVM", "LatentSVC"],
)
def test_a_model_stays_usable_after_a_wrong_call(fitted, wrong, right, tmp_path):
    model = fitted()
    before, weights = list(model.predict(right)), model.coef_.copy()
    for call in (lambda: model.predict(wrong), lambda: model.save(tmp_path), lambda: model.score(right, None)):
        with pytest.raises((ValueError, OSError)):
            call()
    assert list(model.predict(right)) == before
    assert np.array_equal(model.coef_, weights)


def test_a_fit_that_fails_leaves_the_model_before():
    for model, good, bad in (
        (mm.LinearSVC(random_state=0), (X, Y2), (X[:, :2], np.zeros(20))),
        (mm.SequenceSVM(random_state=0), (SEQUENCES, TAGS), (SEQUENCES, [["A"], ["B"]])),
        (mm.LatentSVC(random_state=0), (BAGS, BAG_LABELS), (BAGS, [1] * 6)),
        (mm.GMMKMeans(2, random_state=0), (X, None), (X[:1], None)),
    ):
        before = list(model.fit(*good).predict(good[0]))
        with pytest.raises(ValueError):
            model.fit(*bad)
        assert list(model.predict(good[0])) == before


def test_a_stream_goes_on_after_a_chunk_that_was_refused():
    model, other = mm.LinearSVC(random_state=0), mm.LinearSVC(random_state=0)
    model.partial_fit(X[:10], Y2[:10])
    for wrong in ((X[:, :2], Y2), (X * np.nan, Y2), (X, Y2 + 1)):
        with pytest.raises(ValueError):
            model.partial_fit(*wrong)
    model.partial_fit(X[10:], Y2[10:])
    other.partial_fit(X[:10], Y2[:10]).partial_fit(X[10:], Y2[10:])
    assert np.array_equal(model.coef_, other.coef_)


@pytest.mark.parametrize(
    ("library", "extra", "call"),
    [
        ("matplotlib", "plots", lambda: mm.plots.convergence(svc())),
        ("PIL", "vision", lambda: mm.vision.read_image(__file__)),
        ("ray", "ray", lambda: mm.LinearSVC().fit(X, Y2, cluster="ray://auto")),
        ("torch", "torch", lambda: PartClassifier(device="cuda").fit(Untouched(), None)),
    ],
)
def test_a_missing_library_is_named_with_its_extra(library, extra, call, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf'pip install "maxmargin\[{extra}\]"\.$'):
        call()


@pytest.mark.parametrize(
    ("model", "own", "others"),
    [
        (svc, (X, Y2), [(X[::-1], Y2[::-1]), (X[:9], Y2[:9]), (2 * X, Y2)]),
        (structural, (list(X), Y2.tolist()), [(list(X[::-1]), Y2[::-1].tolist()), (list(X[:9]), Y2[:9].tolist())]),
        (tagger, (SEQUENCES, TAGS), [(SEQUENCES[::-1], TAGS[::-1])]),
        (latent, (BAGS, BAG_LABELS), [(BAGS[:4], BAG_LABELS[:4])]),
    ],
    ids=["LinearSVC", "StructuralSVM", "SequenceSVM", "LatentSVC"],
)
def test_certify_warns_of_rows_that_are_not_those_of_fit(model, own, others):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model().certify(*own)
    for other in others:
        with pytest.warns(UserWarning, match="not the rows of fit.*Give certify what fit was given") as found:
            model().certify(*other)
        assert found[0].filename == __file__


def test_other_weights_on_the_rows_of_fit_are_no_reason_to_warn():
    """Weights may be worse than those of fit: the lower bound still is what it was."""
    model = copy.deepcopy(svc())
    model.coef_ = model.coef_ + 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.certify(X, Y2).lower == pytest.approx(model.certificate_.lower)


def test_zero_has_no_sign_in_a_certificate():
    assert repr(mm.Certificate(-0.0, 1.0)) == "Certificate(0 <= optimum <= 1, relative gap 1e+00)"


def test_a_model_that_is_not_fitted_has_no_attributes_but_can_be_copied():
    model = mm.LinearSVC(C=3.0)
    assert not hasattr(model, "coef_") and not hasattr(model, "certificate_")
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), clone(model)):
        assert twin.get_params() == model.get_params()
    with pytest.raises(AttributeError, match="not kept of streams"):  # what a property says is not covered up
        _ = mm.LinearSVC().partial_fit(X, Y2).dual_coef_


def test_python_names_the_closest_attribute():
    with pytest.raises(AttributeError) as found:
        mm.LinearSVM  # noqa: B018
    assert found.value.name == "LinearSVM" and "LinearSVC" in dir(found.value.obj)


def test_a_factor_for_a_class_that_is_absent_is_no_error_where_all_others_have_one():
    """As in a fold of cross-validation that happens to lack a class."""
    weighted = mm.LinearSVC(class_weight={0: 1.0, 1: 1.0, 2: 5.0}, random_state=0).fit(X, Y2)
    assert np.array_equal(weighted.coef_, svc().coef_)

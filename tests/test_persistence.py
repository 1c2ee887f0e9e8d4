"""Models in files: what goes in comes out, and what is not known is refused. Loading never runs code."""

import hashlib
import json
import os
import pickletools
import re
import struct
import subprocess
import sys
import tracemalloc
import warnings
from decimal import Decimal

import numpy as np
import pytest
from generators import many_classes, two_classes
from quietly import quiet
from sklearn.base import clone

import maxmargin as mm
from maxmargin import LinearSVC, LinearSVR, RankingSVM
from maxmargin.regularizers import L2, Blocks, Bounded, GaussianPrior, GroupNorm
from maxmargin.solvers import DualCoordinate

D = 5


@pytest.fixture
def data(rng):
    return two_classes(rng, n=40, d=D)


def _reload(estimator, tmp_path):
    estimator.save(tmp_path / "model.safetensors")
    return mm.load(tmp_path / "model.safetensors")


def _assert_same(a, b):
    if isinstance(a, np.ndarray):
        assert np.array_equal(a, b)
        assert a.dtype == b.dtype
    else:
        assert a == b


@pytest.mark.parametrize("estimator", [LinearSVC(C=0.7), LinearSVR(C=0.7, epsilon=0.2), RankingSVM(C=0.7)])
def test_round_trip_keeps_parameters_weights_duals_and_certificate(estimator, data, tmp_path):
    X, y = data
    fitted = clone(estimator).set_params(random_state=3, tol=1e-4).fit(X, y)
    loaded = _reload(fitted, tmp_path)
    assert type(loaded) is type(fitted)
    assert loaded.get_params() == fitted.get_params()
    assert vars(loaded).keys() == vars(fitted).keys()
    for name, value in vars(fitted).items():
        _assert_same(value, getattr(loaded, name))
    assert np.array_equal(loaded.predict(X), fitted.predict(X))
    assert np.array_equal(loaded.dual_coef_, fitted.dual_coef_)
    assert loaded.certify(X, y) == fitted.certify(X, y)
    assert loaded.history_ == fitted.history_


@pytest.mark.parametrize(
    "regularizer",
    [
        L2(),
        GaussianPrior(0.5, 2.0),
        GaussianPrior(np.arange(D) / D, np.arange(1.0, D + 1)),
        GaussianPrior(0.0, np.eye(D) + 0.1),
        Bounded(0.0),
        Bounded(np.array([-0.5, 0.0]), [1, 3]),
        Bounded(-0.1, np.array([0, 2]), base=GaussianPrior(0.1, np.ones(D))),
        Bounded(-0.1, [0, 2], upper=np.array([0.1, np.inf])),
        GroupNorm([[0, 1], np.array([2, 3, 4])], [0.5, 1.0]),
        GroupNorm([[0, 1], [2, 3, 4]], 0.5, l2=1.0, centre=np.ones(D)),
    ],
    ids=[
        "l2",
        "prior",
        "diagonal",
        "full",
        "bounds",
        "some-bounds",
        "bounds-prior",
        "both-bounds",
        "group",
        "group-l2",
    ],
)
def test_round_trip_keeps_the_regularizer(regularizer, data, tmp_path, rng):
    X, y = data
    fitted = LinearSVC(regularizer=regularizer, random_state=0).fit(X, y)
    loaded = _reload(fitted, tmp_path)
    w = np.abs(rng.normal(size=D)) + 1.0
    assert type(loaded.regularizer) is type(regularizer)
    assert loaded.regularizer.value(w) == regularizer.value(w)
    assert loaded.certify(X, y) == fitted.certify(X, y)
    # A loaded model is a working estimator: it can be trained again, and gives the same bits.
    assert np.array_equal(loaded.fit(X, y).coef_, clone(fitted).fit(X, y).coef_)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["ham", "spam", "élève", "数"]),
        np.array(["a", "bcd", "ef", "g"], dtype=object),
        np.array([2**40, -7, 0, 3]),
        np.array([0.0, 1.0, 2.0, 3.0]),
        np.array([0, 1, 2, 3], dtype=np.uint8),
    ],
    ids=["text", "objects", "big", "floats", "uint8"],
)
def test_round_trip_keeps_labels_of_many_classes(labels, rng, tmp_path):
    X, label = many_classes(rng, n=40, d=D, k=4)
    y = labels[label]
    fitted = LinearSVC(multi_class="ovr" if labels.dtype == object else "crammer_singer", random_state=0).fit(X, y)
    loaded = _reload(fitted, tmp_path)
    assert np.array_equal(loaded.classes_, fitted.classes_)
    assert loaded.classes_.dtype == fitted.classes_.dtype
    assert np.array_equal(loaded.predict(X), fitted.predict(X))
    assert loaded.certify(X, y) == fitted.certify(X, y)


def test_round_trip_keeps_class_weights_costs_and_feature_names(rng, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = many_classes(rng, n=40, d=3, k=3)
    table = pandas.DataFrame(X, columns=["höhe", "b", "c"])
    cost = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    fitted = LinearSVC(class_weight={0: 2.0, 1: 1.0, 2: 0.5}, cost=cost, random_state=0).fit(table, y)
    loaded = _reload(fitted, tmp_path)
    assert loaded.class_weight == fitted.class_weight
    assert loaded.cost == cost
    assert list(loaded.feature_names_in_) == ["höhe", "b", "c"]
    assert np.array_equal(loaded.predict(table), fitted.predict(table))


def test_round_trip_keeps_answers_that_are_empty(tmp_path):
    """Where all tokens are outside, an answer has no segment at all."""
    model = mm.models.SemiMarkov(2, 1, max_length=1, outside=1)
    X, Y = [np.array([[1.0], [2.0]]), np.array([[2.0]])], [[(0, 1, 0), (1, 2, 0)], [(0, 1, 0)]]
    svm = mm.StructuralSVM(model, C=0.01, random_state=0).fit(X, Y)
    assert {len(answer) for answer in svm._alpha.labels} == {0}
    svm.save(tmp_path / "m.mm")
    assert mm.load(tmp_path / "m.mm").certify(X, Y) == svm.certificate_


def test_loaded_model_warm_starts_where_it_stopped(data, tmp_path):
    X, y = data
    fitted = LinearSVC(tol=1e-6, warm_start=True, solver="dual_coordinate", random_state=0).fit(X, y)
    loaded = _reload(fitted, tmp_path).fit(X, y)
    assert loaded.n_passes_ < fitted.n_passes_


def test_solver_objects_and_generators_are_left_out(data, tmp_path):
    X, y = data
    generator = np.random.default_rng(0)
    loaded = _reload(LinearSVC(solver=DualCoordinate(), random_state=generator).fit(X, y), tmp_path)
    assert loaded.solver == "auto"
    assert loaded.random_state is None


class _OwnL2(L2):
    pass


@pytest.mark.parametrize("regularizer", [_OwnL2(), Blocks([(np.arange(D), L2())])])
def test_regularizer_that_no_reader_would_know_is_not_saved(regularizer, data, tmp_path):
    fitted = LinearSVC(regularizer=regularizer).fit(*data)
    with pytest.raises(ValueError, match="Cannot save params"):
        fitted.save(tmp_path / "model.safetensors")
    assert not list(tmp_path.iterdir())


class _OwnSVC(LinearSVC):
    pass


def test_estimator_that_no_reader_would_know_is_not_saved(data, tmp_path):
    with pytest.raises(ValueError, match="Do not know how to save a _OwnSVC"):
        _OwnSVC().fit(*data).save(tmp_path / "model.safetensors")


# --- Files that are not what they should be. The container is safetensors: a length, a JSON header, the arrays.


def _drop(key):
    return lambda header: header.pop(key)


def _drop_fitted(name):
    def change(header):
        header["fitted"]["pairs"] = [p for p in header["fitted"]["pairs"] if p[0] != name]

    return change


def _replace(key, value):
    return lambda header: header.update({key: value})


@pytest.fixture
def saved(data, tmp_path):
    path = tmp_path / "model.safetensors"
    LinearSVC(regularizer=GaussianPrior(0.0, 2.0), random_state=0).fit(*data).save(path)
    return path


def _seal(path):
    """Give a file that was changed the checksum that belongs to it."""
    raw = path.read_bytes()
    named = re.search(rb'"checksum":"([0-9a-f]{32})"', raw)
    if named:
        a, b = named.span(1)
        found = hashlib.blake2b(raw[:a] + b"0" * 32 + raw[b:], digest_size=16).hexdigest()
        path.write_bytes(raw[:a] + found.encode() + raw[b:])


def _rewrite(path, change, change_header=None, sealed=True):
    """Change the metadata of a model file (a dict of strings), or the JSON that is inside its entry ``header``."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    outer = json.loads(raw[8 : 8 + length])
    metadata = outer["__metadata__"]
    if change_header:
        inner = json.loads(metadata["header"])
        change_header(inner)
        metadata["header"] = json.dumps(inner)
    change(metadata)
    text = json.dumps(outer, separators=(",", ":")).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + length :])
    if sealed:
        _seal(path)


def _inner(path, change):
    _rewrite(path, lambda metadata: None, change)


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x80\x04\x95pickle", b"\xff" * 200, b"PK" + b"\0" * 99])
def test_foreign_files_are_refused(content, tmp_path):
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a model file, or it is damaged"):
        mm.load(path)


def test_arrays_of_another_program_are_refused(tmp_path):
    from safetensors.numpy import save_file

    path = tmp_path / "other.safetensors"
    save_file({"weight": np.ones(3)}, str(path))
    with pytest.raises(ValueError, match="was not written by maxmargin"):
        mm.load(path)


def _declare(dtype, *text):
    def change(header):
        for pair in header["fitted"]["pairs"]:
            if pair[0] == "classes_":
                pair[1] = {"text": list(text), "dtype": dtype, "shape": [len(text)]}

    return change


@pytest.mark.parametrize(
    "change",
    [_declare("<U250000000", "a", "b"), _declare("U", "a" * 2**16, *map(str, range(2**16))), _declare("U", "b", "a")],
    ids=["declared", "one long", "unsorted"],
)
def test_text_takes_no_more_room_than_its_letters(saved, change):
    """A few bytes must not ask for gigabytes: tracked while the file is read."""
    _inner(saved, change)
    tracemalloc.start()
    try:
        with pytest.raises(mm.ModelFileError):
            mm.load(saved)
        assert tracemalloc.get_traced_memory()[1] < 2**27
    finally:
        tracemalloc.stop()


def test_a_checksum_covers_the_header(saved):
    _rewrite(saved, lambda metadata: metadata.update(estimator="LinearSVR"), sealed=False)
    with pytest.raises(mm.ModelFileError, match="its checksum is wrong"):
        mm.load(saved)


def test_what_no_load_would_take_is_not_saved(data, tmp_path):
    svm = LinearSVC().fit(*data)
    svm.coef_ = np.full_like(svm.coef_, np.nan)
    with pytest.raises(ValueError, match=r"no load would take it: coef_ .* entries that are not finite"):
        svm.save(tmp_path / "model.mm")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "labels",
    [[b"a", b"b"], np.array(["2024-01-01", "2024-01-02"], "M8[D]"), [Decimal(1), Decimal(2)], [1j, 2j]],
    ids=["bytes", "dates", "Decimal", "complex"],
)
@pytest.mark.parametrize("estimator", [mm.LinearSVC(), mm.LatentSVC(), mm.SequenceSVM()])
def test_labels_that_no_file_can_hold_are_refused_before_training(estimator, labels, rng):
    X, y = rng.normal(size=(12, 1, 3)), np.asarray(labels)[np.arange(12) % 2]
    if isinstance(estimator, mm.LinearSVC):
        X = X[:, 0]
    if isinstance(estimator, mm.SequenceSVM):
        y = [[label] for label in y.tolist()]
    with pytest.raises(ValueError, match=r"Labels are text|Complex data"):
        estimator.fit(X, y)


def test_bags_in_files_that_name_no_positive_class_have_the_second(rng, tmp_path):
    path, X, y = tmp_path / "bags.mm", rng.normal(size=(12, 2, 3)), np.arange(12) % 2
    svm = mm.LatentSVC(random_state=0).fit(X, y)
    svm.save(path)
    _inner(path, _drop_fitted("_positive_at"))
    _inner(path, lambda header: header["params"]["pairs"].remove(["positive", None]))
    read = mm.load(path)
    assert (read.positive, read.positive_) == (None, 1)
    assert np.array_equal(read.predict(X), svm.predict(X))


def _regularizer(change):
    return lambda header: change(next(pair for pair in header["params"]["pairs"] if pair[0] == "regularizer")[1])


def _of_metadata(**change):
    return lambda path: _rewrite(path, lambda metadata: metadata.update(change))


def _of_header(change):
    return lambda path: _inner(path, change)


UNREADABLE = "its header cannot be read"
UNKNOWN = "has entries that this release's LinearSVC does not know"
DAMAGE = {
    "version": (_of_metadata(version="1000"), "format version 1000, this release of maxmargin reads version 2"),
    "no version": (_of_metadata(version=""), "format version , this release"),
    # Also names that the estimators' module does have: only listed estimators are looked up.
    "estimator": (_of_metadata(estimator="SVC"), "which this release does not know"),
    "estimator that is a function": (_of_metadata(estimator="load"), "which this release does not know"),
    "estimator that is an attribute": (_of_metadata(estimator="__class__"), "which this release does not know"),
    "parameter": (_of_header(lambda h: h["params"]["pairs"].append(["shrinking", True])), r"know: \['shrinking'\]"),
    "method as attribute": (_of_header(lambda h: h["fitted"]["pairs"].append(["predict", 1.0])), UNKNOWN),
    "class as attribute": (_of_header(lambda h: h["fitted"]["pairs"].append(["__class__", 1.0])), UNKNOWN),
    "regularizer": (_of_header(_regularizer(lambda r: r.update(regularizer="os.system", arguments={}))), UNREADABLE),
    "no regularizer": (_of_header(_regularizer(lambda r: r.update(regularizer=None, arguments={}))), UNREADABLE),
    "argument": (_of_header(_regularizer(lambda r: r["arguments"].update(shape=1.0))), "GaussianPrior.*'shape'"),
    "header that is cut": (_of_metadata(header="{"), UNREADABLE),
    "header that is a list": (_of_metadata(header="[]"), UNREADABLE),
    "no header": (lambda path: _rewrite(path, lambda metadata: metadata.pop("header")), UNREADABLE),
    "no parameters": (_of_header(_drop("params")), "model"),
    "short certificate": (_of_header(_replace("certificate", [1.0])), "model"),
    "short record": (_of_header(_replace("history", [[1, 2]])), "model"),
    "missing array": (_of_header(_replace("params", {"array": "missing"})), "model"),
    "key is no text": (_of_header(_replace("params", {"pairs": [[{"pairs": []}, 1]]})), "model"),
    "half a pair": (_of_header(_replace("params", {"pairs": [["C"]]})), "model"),
    "text of numbers": (_of_header(_replace("fitted", {"text": ["a"], "dtype": "int64"})), "model"),
    "no weights": (_of_header(_drop_fitted("coef_")), "model"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_damaged_files_are_refused_in_plain_words(saved, damage, message):
    """Single faults and what is said of them; ``test_fuzz_models`` has thousands of them."""
    damage(saved)
    with pytest.raises(ValueError, match=message) as caught:
        mm.load(saved)
    assert "model.safetensors" in str(caught.value)


def test_file_holds_a_json_header_and_plain_numbers_only(saved):
    """No part of the file is a pickle: after the JSON there are exactly the bytes of the arrays."""
    raw = saved.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    outer = json.loads(raw[8 : 8 + length])
    metadata = outer.pop("__metadata__")
    assert set(metadata) == {"format", "version", "estimator", "header", "checksum"}
    json.loads(metadata["header"])
    assert {entry["dtype"] for entry in outer.values()} <= {"F64", "F32", "I64", "I32", "I8", "BOOL"}
    assert max(entry["data_offsets"][1] for entry in outer.values()) == len(raw) - 8 - length
    assert b"numpy" not in raw
    assert b"maxmargin.estimators" not in raw
    with pytest.raises(Exception, match=r".*"):
        list(pickletools.genops(raw))


def test_loading_never_unpickles_nor_evaluates(saved, monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("code was run")

    mm.load(saved)  # once before, so that imports do not count
    monkeypatch.setattr("pickle.load", forbidden)
    monkeypatch.setattr("pickle.loads", forbidden)
    monkeypatch.setattr("builtins.eval", forbidden)
    monkeypatch.setattr("builtins.exec", forbidden)
    assert mm.load(saved).C == 1.0


def test_a_class_smuggled_into_the_estimators_module_is_not_constructed(saved, monkeypatch):
    from maxmargin import estimators, regularizers

    made = []

    class Trap:
        def __init__(self, **arguments):
            made.append(arguments)

    monkeypatch.setattr(estimators, "Trap", Trap, raising=False)
    monkeypatch.setattr(regularizers, "Trap", Trap, raising=False)
    _inner(saved, lambda header: header["params"]["pairs"].append(["memory", {"regularizer": "Trap", "arguments": {}}]))
    with pytest.raises(ValueError, match="unknown entry 'Trap'"):
        mm.load(saved)
    _rewrite(saved, lambda metadata: metadata.update(estimator="Trap"))
    with pytest.raises(ValueError, match="does not know"):
        mm.load(saved)
    assert made == []


# --- Estimators inside estimators, and parts: a scene classifier has a learner and something that describes images.

SCENES = [(kind, "discriminative") for kind in ("bow", "sbow", "rbow", "rbow+", "rbow++")]
SCENES += [(kind, "generative") for kind in ("bow", "sbow", "rbow")]


def _pictures(n=9, size=64):
    """Stripes in three directions, with noise."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:size, :size]
    waves = np.array([np.sin(x / 2), np.sin(y / 2), np.sin((x + y) / 3)])
    noise = 20 * rng.normal(size=(n, size, size))
    return (128 + 80 * waves[np.arange(n) % 3] + noise).clip(0, 255).astype(np.uint8), np.array(["a", "bé", "c"])[
        np.arange(n) % 3
    ]


def _scenes(kind, training, X, y, **more):
    from maxmargin.vision import SceneClassifier

    settings = {"grid": 2, "n_words": 6, "n_parts": 2, "random_state": 0, "max_bounds": 3, **more}
    return quiet(SceneClassifier(kind, training, **settings), X, y)


@pytest.mark.parametrize(("kind", "training"), SCENES)
def test_round_trip_of_scenes_keeps_words_parts_and_certificate(kind, training, tmp_path):
    images, y = _pictures()
    parts = "shared" if kind == "rbow+" else "separate"
    fitted = _scenes(kind, training, images, y, parts=parts, C=2.0)
    loaded = _reload(fitted, tmp_path)
    assert type(loaded) is type(fitted)
    assert loaded.get_params() == fitted.get_params()
    assert vars(loaded).keys() == vars(fitted).keys()
    assert loaded.grid_ == fitted.grid_ == (2, 2)
    np.testing.assert_array_equal(loaded.extractor_.vocabulary_, fitted.extractor_.vocabulary_)
    assert loaded.extractor_.settings() == fitted.extractor_.settings()
    np.testing.assert_array_equal(loaded.decision_function(images), fitted.decision_function(images))
    np.testing.assert_array_equal(loaded.predict(images), fitted.predict(images))
    assert loaded.history_ == fitted.history_
    if kind != "bow":
        np.testing.assert_array_equal(loaded.predict_regions(images), fitted.predict_regions(images))
    if training == "discriminative":
        assert loaded.certificate_ == fitted.certificate_
        assert loaded.certify(images, y) == fitted.certify(images, y)
    # And it can be trained again, to the same bits.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = loaded.fit(images, y)
    np.testing.assert_array_equal(again.decision_function(images), fitted.decision_function(images))


def test_round_trip_of_scenes_from_features(tmp_path, rng):
    X, y = rng.normal(size=(8, 2, 3, 4)).astype(np.float32), np.arange(8) % 2
    fitted = _scenes("rbow", "discriminative", X, y, center=True)
    loaded = _reload(fitted, tmp_path)
    assert loaded.extractor_ is None
    _assert_same(fitted.mean_, loaded.mean_)
    np.testing.assert_array_equal(loaded.decision_function(X), fitted.decision_function(X))
    with pytest.raises(ValueError, match=r"trained on regions of shape \(2, 3, 4\)"):
        loaded.predict(X[:, :1])


def test_round_trip_keeps_how_images_are_described(tmp_path):
    from maxmargin.vision import DenseSIFT, WordHistograms

    images, y = _pictures()
    words = WordHistograms((2, 1), 5, DenseSIFT(patch=12, step=6, contrast=2.0), n_sampled=500, random_state=3)
    fitted = _scenes("sbow", "discriminative", images, y, features=words)
    loaded = _reload(fitted, tmp_path)
    assert loaded.extractor_.sift == words.sift
    assert loaded.features.settings
    assert not hasattr(loaded.features, "vocabulary_")  # a parameter, not yet trained
    np.testing.assert_array_equal(loaded.decision_function(images), fitted.decision_function(images))


class _Brightness:
    """Features of the user's: code, which no file holds."""

    color = False

    def __call__(self, image):
        return image.reshape(2, 32, 2, 32).mean(axis=(1, 3))[..., None] / 255.0

    def settings(self):
        return "brightness"


def test_features_of_the_users_are_not_saved(tmp_path):
    fitted = _scenes("sbow", "discriminative", *_pictures(), features=_Brightness())
    with pytest.raises(ValueError, match=r"Cannot save .*_Brightness"):
        fitted.save(tmp_path / "model.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def scenes_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("scenes") / "model.safetensors"
    _scenes("rbow", "discriminative", *_pictures()).save(path)
    return path.read_bytes()


@pytest.fixture
def saved_scenes(scenes_file, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(scenes_file)
    return path


def test_files_of_scenes_load_where_nobody_has_imported_vision(saved_scenes):
    code = f"import maxmargin as mm; print(mm.load({str(saved_scenes)!r}).classes_.tolist())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert "'bé'" in done.stdout


def _fitted(header, name):
    return next(value for key, value in header["fitted"]["pairs"] if key == name)


def _replaced(name, value):
    """An entry of what was fitted, or of the parameters."""

    def change(header):
        pairs = header["fitted"]["pairs"] + header["params"]["pairs"]
        next(pair for pair in pairs if pair[0] == name)[1] = value

    return change


DAMAGED_SCENES = {
    "class": lambda h: _fitted(h, "classes_")["text"].pop(0),
    "map": _replaced("feature_map_", "hello"),
    "kind": _replaced("kind", "bow"),
    "part": lambda h: _fitted(h, "extractor_").update(part="Popen"),
    "learner": lambda h: _fitted(h, "learner_").update(estimator="Popen"),
    "entry of a part": lambda h: _fitted(h, "extractor_")["content"].update(color=True),
    "argument of a part": lambda h: _fitted(h, "extractor_")["content"].pop("sift"),
    "entry of the learner": lambda h: _fitted(h, "learner_")["content"]["fitted"]["pairs"].append(["predict", 1]),
    "no weights": lambda h: _drop_fitted("coef_")(_fitted(h, "learner_")["content"]),
    "no learner": _drop_fitted("learner_"),
    "no extractor": _drop_fitted("extractor_"),
}


@pytest.mark.parametrize("change", DAMAGED_SCENES.values(), ids=DAMAGED_SCENES)
def test_damaged_files_of_scenes_are_refused_in_plain_words(saved_scenes, change):
    _inner(saved_scenes, change)
    with pytest.raises(ValueError, match=r"model\.safetensors"):
        mm.load(saved_scenes)


@pytest.mark.parametrize("size", [-3, 5])
def test_weights_of_an_inner_model_that_are_too_few_or_too_many(saved_scenes, size):
    from safetensors import safe_open
    from safetensors.numpy import save_file

    with safe_open(str(saved_scenes), framework="numpy") as file:
        metadata, arrays = file.metadata(), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    name = next(key for key in arrays if key.endswith("learner_.fitted.coef_"))
    arrays[name] = arrays[name][:size] if size < 0 else np.concatenate([arrays[name], np.ones(size)])
    save_file(arrays, str(saved_scenes), metadata=metadata)
    _seal(saved_scenes)
    with pytest.raises(mm.ModelFileError, match="damaged"):
        mm.load(saved_scenes)

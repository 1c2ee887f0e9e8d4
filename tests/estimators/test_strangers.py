"""Input from strangers: broken sparse matrices, masks, endless lines, names that climb, numbers beyond all bounds."""

import gzip
import json
import tracemalloc
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from PIL import Image
from sklearn.base import clone

import maxmargin as mm
from maxmargin.data import DataError
from maxmargin.data.arrays import as_rows
from maxmargin.data.bags import Bags
from maxmargin.estimators.inputs import check_threads
from maxmargin.vision.detection.annotations import annotated
from maxmargin.vision.images import read_image

N, D = 12, 4
rng = np.random.default_rng(0)
X = np.where(rng.random((N, D)) < 0.6, rng.normal(size=(N, D)), 0.0)
X[:, 0] = 1.0
Y, Y3, GROUPS = np.arange(N) % 2, np.arange(N) % 3, np.arange(N) // 4
EDGES = np.array([[0, 1], [1, 2]])


@cache
def fitted():
    """One of each estimator that takes rows."""
    means = {"random_state": 0, "max_passes": 20}
    return {
        "svc": mm.LinearSVC(**means).fit(X, Y),
        "svr": mm.LinearSVR(**means).fit(X, X[:, 1]),
        "ranking": mm.RankingSVM(**means).fit(X, Y3, GROUPS),
        "multilabel": mm.MultilabelSVM(**means).fit(X, np.c_[Y, 1 - Y]),
        "sequence": mm.SequenceSVM(**means).fit([X], [Y]),
        "bags": mm.LatentSVC(random_state=0, max_bounds=2).fit([X[:6], X[6:]], [0, 1]),
        "structural": mm.StructuralSVM(mm.models.Multiclass(), **means).fit(X, Y.tolist()),
        "graph": mm.StructuralSVM(mm.models.Graph(n_labels=2), **means).fit([(X, EDGES)], [Y]),
    }


def fit(name, *data):
    return clone(fitted()[name]).fit(*data).coef_


CALLS = {
    "svc fit": lambda x: fit("svc", x, Y),
    "svc partial_fit": lambda x: clone(fitted()["svc"]).partial_fit(x, Y).coef_,
    "svc decision_function": lambda x: fitted()["svc"].decision_function(x),
    "svc score": lambda x: fitted()["svc"].score(x, Y),
    "svc certify": lambda x: fitted()["svc"].certify(x, Y).upper,
    "path": lambda x: mm.path(clone(fitted()["svc"]), x, Y, C=[1.0])[0].coef_,
    "svr fit": lambda x: fit("svr", x, X[:, 1]),
    "svr predict": lambda x: fitted()["svr"].predict(x),
    "ranking fit": lambda x: fit("ranking", x, Y3, GROUPS),
    "ranking predict": lambda x: fitted()["ranking"].predict(x),
    "multilabel fit": lambda x: fit("multilabel", x, np.c_[Y, 1 - Y]),
    "multilabel predict": lambda x: fitted()["multilabel"].predict(x),
    "sequence fit": lambda x: fit("sequence", [X, x], [Y, Y]),
    "sequence predict": lambda x: fitted()["sequence"].predict([x])[0],
    "bags fit": lambda x: fit("bags", [x, X[:3]], [0, 1]),
    "bags decision_function": lambda x: fitted()["bags"].decision_function([x]),
    "Bags": lambda x: fitted()["bags"].decision_function(Bags(x, np.array([0, 5, N]))),
    "structural fit": lambda x: fit("structural", x, Y.tolist()),
    "structural predict": lambda x: fitted()["structural"].predict(x),
    "graph predict": lambda x: fitted()["graph"].predict([(x, EDGES)])[0],
    "source": lambda x: np.vstack([chunk.x.toarray() for chunk in mm.data.open(x, labels=Y).chunks()]),
    "source fit": lambda x: fit("svc", mm.data.open(x, labels=Y)),
    "as_rows": lambda x: dense(as_rows(x)),
}


def dense(rows):
    return sp.csr_matrix((rows.data, rows.indices, rows.indptr), shape=(rows.n_rows, rows.width)).toarray()


def changed(kind=sp.csr_matrix, **arrays):
    """A sparse matrix with other arrays in it, as SciPy lets anyone put them there."""
    x = kind(X)
    for name, change in arrays.items():
        setattr(x, name, change(getattr(x, name).copy()))
    return x


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


def shuffled():
    """Unsorted, with an entry in two halves; SciPy remembers that it was canonical."""
    x = sp.csr_matrix(X)
    assert x.has_canonical_format
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in zip(x.indptr[:-1], x.indptr[1:], strict=True)])
    values = x.data[order]
    values[0] /= 2
    x.indices = np.insert(x.indices[order], 0, x.indices[order][0])
    x.data = np.insert(values, 0, values[0])
    x.indptr = np.where(x.indptr > 0, x.indptr + 1, 0).astype(np.int32)
    x.has_sorted_indices = x.has_canonical_format = True
    return x


def infinite_lil():
    x = sp.lil_matrix(np.ones_like(X, dtype=int))
    x.data[0][0] = np.inf
    return x


BROKEN = {
    "index too large": lambda: changed(indices=put(3, D)),
    "index huge": lambda: changed(indices=put(-1, 2**31 - 1)),
    "index negative": lambda: changed(indices=put(0, -1)),
    "index in a csr_array": lambda: changed(sp.csr_array, indices=put(3, 10**6)),
    "offsets from 1": lambda: changed(indptr=put(0, 1)),
    "offset negative": lambda: changed(indptr=put(4, -5)),
    "offset huge": lambda: changed(indptr=put(4, 10**6)),
    "offsets end too late": lambda: changed(indptr=put(-1, 10**6)),
    "offsets end below zero": lambda: changed(indptr=put(-1, -1)),
    "offsets fall": lambda: changed(indptr=lambda a: a[::-1]),
    "offsets missing": lambda: changed(indptr=lambda a: a[:-1]),
    "values missing": lambda: changed(data=lambda a: a[:-3]),
    "indices missing": lambda: changed(indices=lambda a: a[:-3]),
    "float indices": lambda: changed(indices=lambda a: a.astype(float)),
    "indices in two dimensions": lambda: changed(indices=lambda a: a[:, None]),
    "masked values": lambda: changed(data=lambda a: np.ma.array(a, mask=a < 0)),
    "csc": lambda: changed(sp.csc_matrix, indices=put(2, N)),
    "bsr": lambda: changed(sp.bsr_matrix, indices=put(0, 10**6)),
    "coo row": lambda: changed(sp.coo_matrix, row=put(0, 10**6)),
    "coo column": lambda: changed(sp.coo_matrix, col=put(0, -1)),
    "lil": lambda: changed(sp.lil_matrix, rows=put(1, [0, 99, 3]), data=put(1, [1.0, 1.0, 1.0])),
    "lil without a row": lambda: changed(sp.lil_matrix, rows=put(1, None)),
    "lil of text": lambda: changed(sp.lil_matrix, data=put(1, ["a"]), rows=put(1, [0])),
    "lil with text for columns": lambda: changed(sp.lil_matrix, data=put(1, [1.0]), rows=put(1, ["a"])),
    "lil of integers with infinity": infinite_lil,
    "dia": lambda: changed(sp.dia_matrix, offsets=lambda a: np.append(a, [1, 2, 3])),
}
LEGAL = {
    "unsorted, with duplicates": shuffled,
    "more room than entries": lambda: changed(indices=lambda a: np.append(a, 77), data=lambda a: np.append(a, np.nan)),
    "small indices": lambda: changed(indices=lambda a: a.astype(np.int8), indptr=lambda a: a.astype(np.uint16)),
    "indices of two widths": lambda: changed(indptr=lambda a: a.astype(np.int64)),
    "other byte order": lambda: changed(indices=lambda a: a.astype(">i4")),
    "strided": lambda: changed(indices=lambda a: np.repeat(a, 2)[::2], data=lambda a: np.repeat(a, 2)[::2]),
    "csr_array": lambda: sp.csr_array(X),
    "csc_array": lambda: sp.csc_array(X),
    "coo_array": lambda: sp.coo_array(X),
    "bsr": lambda: sp.bsr_matrix(X, blocksize=(2, 2)),
    "lil": lambda: sp.lil_matrix(X),
    "dok": lambda: sp.dok_matrix(X),
    "dia": lambda: sp.dia_matrix(X),
}


@pytest.mark.parametrize("damage", BROKEN)
def test_a_broken_sparse_matrix_reaches_no_compiled_code(damage):
    for name, call in CALLS.items():
        with pytest.raises(ValueError, match=r"broken sparse|whole numbers|masked|lead out of it") as found:
            call(BROKEN[damage]())
        assert str(found.value).rstrip().endswith("."), name


@pytest.mark.parametrize("kind", LEGAL)
def test_legal_sparse_matrices_give_what_a_plain_one_gives(kind):
    every = ("unsorted, with duplicates", "small indices")  # the others show what SciPy makes of them
    for name in CALLS if kind in every else ("svc fit", "sequence predict", "Bags", "structural predict", "source"):
        call = CALLS[name]
        np.testing.assert_allclose(call(LEGAL[kind]()), call(sp.csr_matrix(X)), rtol=1e-6, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix, sp.coo_matrix])
def test_duplicates_add_up_beyond_small_integers(kind):
    x = kind((2, 2), dtype=np.uint8)
    if kind is sp.coo_matrix:
        x = kind((np.array([255, 2, 1], np.uint8), ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    else:
        x.data, x.indices, x.indptr = np.array([255, 2, 1], np.uint8), np.array([0, 0, 1]), np.array([0, 2, 3])
    assert mm.data.open(x).chunk(0).x.toarray().tolist() == [[257, 0], [0, 1]]


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.bsr_matrix, sp.dia_matrix])
def test_half_precision(kind):
    x = changed(kind, data=lambda a: a.astype(np.float16))
    call = CALLS["svc decision_function"]
    np.testing.assert_allclose(call(x), call(X.astype(np.float16)), rtol=1e-4, atol=1e-5)


def test_read_only_and_mapped_indices(tmp_path):
    x = sp.csr_matrix(X)
    for name in ("indices", "indptr", "data"):
        np.save(tmp_path / f"{name}.npy", getattr(x, name))
        setattr(x, name, np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    np.testing.assert_allclose(CALLS["svc fit"](x), CALLS["svc fit"](sp.csr_matrix(X)))
    np.testing.assert_allclose(CALLS["source"](x), X)


HIDDEN = np.ma.array(X, mask=X == 1.0)
MASKED = {
    "X": lambda: mm.LinearSVC().fit(HIDDEN, Y),
    "X of rows": lambda: mm.LinearSVC().fit(list(HIDDEN), Y),
    "predict": lambda: fitted()["svc"].predict(HIDDEN),
    "y": lambda: mm.LinearSVC().fit(X, np.ma.array(Y, mask=Y == 1)),
    "y of score": lambda: fitted()["svc"].score(X, np.ma.array(Y, mask=Y == 1)),
    "targets": lambda: mm.LinearSVR().fit(X, HIDDEN[:, 0]),
    "sample_weight": lambda: mm.LinearSVC().fit(X, Y, sample_weight=HIDDEN[:, 0]),
    "sample_weight of score": lambda: fitted()["svc"].score(X, Y, sample_weight=HIDDEN[:, 0]),
    "groups": lambda: mm.RankingSVM().fit(X, Y3, np.ma.array(GROUPS, mask=Y == 1)),
    "labels of rows": lambda: mm.MultilabelSVM().fit(X, np.ma.array(np.c_[Y, Y], mask=True)),
    "clusters": lambda: mm.GMMKMeans(2).fit(HIDDEN),
    "sequence": lambda: fitted()["sequence"].predict([HIDDEN]),
    "tags": lambda: mm.SequenceSVM().fit([X], [np.ma.array(Y, mask=Y == 1)]),
    "bag": lambda: fitted()["bags"].predict([X, HIDDEN]),
    "bags": lambda: fitted()["bags"].predict(np.ma.array(X[None], mask=X[None] == 1.0)),
    "structural": lambda: fitted()["structural"].predict(HIDDEN),
    "nodes": lambda: fitted()["graph"].predict([(HIDDEN, EDGES)]),
    "edges": lambda: fitted()["graph"].predict([(X, np.ma.array(EDGES, mask=EDGES == 1))]),
    "source": lambda: mm.data.open(HIDDEN, labels=Y),
    "labels of a source": lambda: mm.data.open(X, labels=np.ma.array(Y, mask=Y == 1)),
    "image": lambda: read_image(np.ma.array(np.zeros((4, 4), np.uint8), mask=True)),
}


@pytest.mark.parametrize("place", MASKED)
def test_masked_values_are_not_learned_from(place):
    with pytest.raises(ValueError, match=r"masked array with .*\.filled\(value\)"):
        MASKED[place]()


def test_a_mask_that_hides_nothing_is_no_harm():
    np.testing.assert_array_equal(fit("svc", np.ma.array(X), np.ma.array(Y)), fit("svc", X, Y))


HUGE = 10**400
ODD = {
    "C": (HUGE, -HUGE, np.nan, True, "1"),
    "tol": (HUGE, np.inf),
    "n_jobs": (0, True, 2.5, np.inf),
    "memory": (np.inf, np.nan, HUGE, -1, True, "1e400GB", "9" * 400 + "GB"),
    "max_passes": (HUGE, 2**63, np.inf),
    "max_bounds": (HUGE,),
    "n_init": (HUGE, 10**9),
    "n_clusters": (HUGE, 10**12),
    "random_state": (-HUGE, -1, 1.5, True, "seed"),
    "intercept_scaling": (HUGE, np.inf),
    "epsilon": (HUGE, np.nan),
    "eta": (HUGE, np.nan),
    "class_weight": ({0: HUGE, 1: 1}, {0: np.inf, 1: 1}),
    "sample_weight": ([HUGE] * N, np.full(N, np.inf), np.full(N, 1e308)),
}
FITS = {
    mm.LinearSVC: (X, Y),
    mm.LinearSVR: (X, X[:, 1]),
    mm.RankingSVM: (X, Y3, GROUPS),
    mm.MultilabelSVM: (X, np.c_[Y, 1 - Y]),
    mm.SequenceSVM: ([X], [Y]),
    mm.LatentSVC: ([X[:6], X[6:]], [0, 1]),
    mm.GMMKMeans: (X,),
}


@pytest.mark.parametrize("setting", ODD)
def test_odd_numbers_end_in_one_message(setting):
    for estimator, data in FITS.items():
        known = estimator().get_params()
        if setting not in known and not (setting == "sample_weight" and estimator in (mm.LinearSVC, mm.LinearSVR)):
            continue
        for value in ODD[setting]:
            with pytest.raises(ValueError, match=rf"\b{setting}\b") as found:
                if setting == "sample_weight":
                    estimator(C=10.0).fit(*data, sample_weight=value)
                else:
                    estimator(**{setting: value}).fit(*data)
            assert len(str(found.value)) < 300


def test_threads_are_bounded():
    assert check_threads(3) == 3
    assert check_threads(10**9) == check_threads(HUGE) < 10**5
    assert mm.LinearSVC(n_jobs=10**9, random_state=HUGE).fit(X, Y).certificate_.relative_gap <= 1e-3


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([[HUGE] * D] * N, Y),
        (sp.csr_matrix(X * 1j), Y),
        (X, Y * 1j),
        (X, np.array([object() for _ in range(N)])),
        (sp.csr_matrix(([1.0] * N, (range(N), [2**62 - 1] * N)), shape=(N, 2**62)), Y),
        (sp.coo_array(np.ones(N)), Y),
    ],
    ids=["huge", "complex", "complex labels", "objects", "too wide", "1-D"],
)
def test_odd_arrays_end_in_one_message(x, y):
    with pytest.raises(ValueError, match=r"\.$") as found:
        mm.LinearSVC().fit(x, y)
    assert len(str(found.value)) < 300


def test_a_line_without_end_stays_within_memory(tmp_path):
    path = tmp_path / "bomb.svm.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"1 1:1\n-1 1:2\n1 ")
        for _ in range(40):
            file.write(b"1:1 " * 2**18)
    assert path.stat().st_size < 2**20
    for read in (
        lambda: mm.LinearSVC(memory="64MB").fit(mm.data.open(path)),
        lambda: mm.data.convert(path, tmp_path / "shards", memory="64MB"),
    ):
        tracemalloc.start()
        with pytest.raises(DataError, match=r"bomb\.svm\.gz, line 3 has more than 8 MB.*memory is 64 MB"):
            read()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 128 << 20  # of what was asked for, not all of which was used


@pytest.fixture
def photos(tmp_path):
    """A folder of images with one in it, and one beside the folder."""
    (tmp_path / "images").mkdir()
    for path in (tmp_path / "secret.png", tmp_path / "images" / "a.png"):
        Image.new("L", (20, 20)).save(path)
    return tmp_path / "images"


def coco(folder, name):
    boxes = [{"id": 1, "image_id": 1, "bbox": [1, 1, 5, 5]}]
    (folder / "b.json").write_text(json.dumps({"images": [{"id": 1, "file_name": name}], "annotations": boxes}))
    return folder / "b.json"


def table(folder, name):
    (folder / "b.csv").write_text(f"image,xmin,ymin,xmax,ymax\n{name},1,1,5,5\n")
    return folder / "b.csv"


def voc(folder, name):
    box = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>5</xmax><ymax>5</ymax></bndbox>"
    (folder / "b.xml").write_text(
        f"<annotation><filename>{name}</filename><object><name>cat</name>{box}</object></annotation>"
    )
    return folder / "b.xml"


@pytest.mark.parametrize("write", [coco, table, voc])
def test_names_in_files_stay_inside_the_folder_of_images(photos, write):
    outside = photos.parent / "secret.png"
    for name in ("../secret.png", str(outside), f"../{photos.name}/../secret.png"):
        boxes = write(photos, name)
        for images in (None, photos):
            with pytest.raises(ValueError, match=r"lies outside of .*images, .*list them"):
                annotated(images, boxes)
        assert annotated([outside], boxes).images == [str(outside)]
    assert annotated(None, write(photos, str(photos / "a.png"))).images == [str(photos / "a.png")]
    assert annotated([outside], write(photos, "secret.png")).images == [str(outside)]

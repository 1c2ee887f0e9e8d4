"""Claims about real data. The folder named by MAXMARGIN_DATA holds the files; without it nothing here runs."""

import gzip
import io
import json
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import ndimage
from sklearn import svm
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import ndcg_score

from maxmargin import GMMKMeans, LatentStructuralSVM, LinearSVC, MultilabelSVM, RankingSVM, SequenceSVM, StructuralSVM
from maxmargin.models import Bags, Chain
from maxmargin.vision import SceneClassifier, WordHistograms

pytestmark = pytest.mark.realdata


def _folder():
    return Path(os.environ["MAXMARGIN_DATA"])


def _a9a():
    with gzip.open(_folder() / "a9a.libsvm.gz") as file:
        return load_svmlight_file(io.BytesIO(file.read()), n_features=123)


def _news20():
    """Counts as normalised logarithms, split into training and test part."""
    z = np.load(_folder() / "news20_bydate_counts.npz")
    X = sp.csr_matrix((np.log1p(z["data"].astype(float)), z["indices"], z["indptr"]), shape=tuple(z["shape"]))
    norm = np.sqrt(X.multiply(X).sum(axis=1)).A1
    X = sp.diags(1.0 / np.maximum(norm, 1e-12)) @ X
    train = z["is_train"]
    return X[train].tocsr(), z["y"][train], X[~train].tocsr(), z["y"][~train]


def _covtype():
    """Class 2 against the rest: ten standardised numbers, forty-four indicators."""
    z = np.load(_folder() / "covtype.npz")
    n = len(z["y"])
    X = np.zeros((n, 54), np.float32)
    numbers = z["num"].astype(np.float64)
    X[:, :10] = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    X[np.arange(n), 10 + z["wild"].astype(int)] = 1
    X[np.arange(n), 14 + z["soil"].astype(int)] = 1
    return X, z["y"] == 2


@pytest.mark.parametrize("solver", ["dual_coordinate", "interior_point"])
def test_a9a_reaches_its_known_optimum(solver):
    X, y = _a9a()
    found = LinearSVC(fit_intercept=False, tol=1e-6, solver=solver, random_state=0, max_passes=20_000).fit(X, y)
    assert found.certificate_.relative_gap <= 1e-6
    assert found.certificate_.lower <= 11433.809
    assert found.certificate_.upper == pytest.approx(11433.808, rel=2e-6)


def test_news20_one_vs_rest_brackets_the_objective_of_scikit_learn():
    X, y, X_test, y_test = _news20()
    found = LinearSVC(multi_class="ovr", tol=1e-4, n_jobs=2, random_state=0).fit(X, y)
    assert found.certificate_.relative_gap <= 1e-4
    assert found.certify(X, y).relative_gap <= 1e-4 * (1 + 1e-6)
    theirs = svm.LinearSVC(loss="hinge", tol=1e-4, max_iter=20_000, random_state=0).fit(X, y)
    value = 0.5 * (np.sum(theirs.coef_**2) + np.sum(theirs.intercept_**2))
    sign = np.where(np.arange(20) == y[:, None], 1.0, -1.0)
    value += np.maximum(0.0, 1.0 - sign * theirs.decision_function(X)).sum()
    assert found.certificate_.lower <= value * (1 + 1e-9)
    assert found.certificate_.upper == pytest.approx(value, rel=1e-3)
    assert found.score(X_test, y_test) == pytest.approx(theirs.score(X_test, y_test), abs=0.01)


def test_covtype_reaches_its_known_optimum_by_interior_points():
    X, y = _covtype()
    found = LinearSVC(tol=1e-6, solver="interior_point", n_jobs=2).fit(X, y)
    assert found.certificate_.relative_gap <= 1e-6
    assert found.certificate_.upper == pytest.approx(337_886.5, rel=5e-6)


def test_mnist_crammer_singer_agrees_with_scikit_learn():
    z = np.load(_folder() / "mnist.npz")
    X = z["X_train"][:5000].reshape(5000, -1) / 255.0
    y = z["y_train"][:5000]
    C = 0.01
    found = LinearSVC(C=C, tol=1e-5, random_state=0).fit(X, y)
    theirs = svm.LinearSVC(multi_class="crammer_singer", C=C, tol=1e-4, max_iter=20_000, random_state=0).fit(X, y)
    score = theirs.decision_function(X)
    true = score[np.arange(5000), y]
    loss = (1.0 - np.eye(10)[y] + score).max(axis=1) - true
    value = 0.5 * (np.sum(theirs.coef_**2) + np.sum(theirs.intercept_**2)) + C * loss.sum()
    assert found.certificate_.relative_gap <= 1e-5
    assert found.certificate_.lower <= value * (1 + 1e-9)
    assert found.certificate_.upper == pytest.approx(value, rel=1e-4)


def _letters(chosen):
    z = np.load(_folder() / "ocr_letters.npz")
    pixels, at = np.unpackbits(z["pixels_packed"], axis=1), z["offsets"]
    labels = z["labels"].astype(int) - int(z["labels"].min())
    words = np.flatnonzero(chosen(z["fold"]))
    return [pixels[at[i] : at[i + 1]] for i in words], [labels[at[i] : at[i + 1]] for i in words]


def test_letters_of_one_fold_reach_their_known_optimum():
    X, Y = _letters(lambda fold: fold == 1)
    found = StructuralSVM(Chain(26), C=0.1, tol=1e-4, random_state=0).fit(X, Y)
    assert len(X) == 704
    assert 246.15 <= found.certificate_.lower <= found.certificate_.upper <= 246.21
    assert found.certify(X, Y).relative_gap <= 1e-4 * (1 + 1e-6)


@pytest.mark.parametrize(("tol", "epochs"), [(1e-3, 15), (1e-4, 20)])
def test_letters_of_nine_folds_need_few_searches(tol, epochs):
    X, Y = _letters(lambda fold: fold != 0)
    found = StructuralSVM(Chain(26), C=0.1, tol=tol, random_state=0).fit(X, Y)
    assert found.certificate_.relative_gap <= tol
    assert found.history_[-1].oracle_calls <= epochs * len(X)


def test_tags_of_sentences_are_learned_within_a_memory_limit():
    def sentences(split):
        with gzip.open(_folder() / f"ud_ewt.{split}.jsonl.gz", "rt", encoding="utf8") as file:
            read = [json.loads(line) for line in file][:3000]
        X = [[[f"w={w.lower()}", f"s={w[-3:]}", f"u={w[:1].isupper()}"] for w in s["w"]] for s in read]
        return X, [s["upos"] for s in read]

    X, Y = sentences("train")
    X_test, Y_test = sentences("test")
    free = SequenceSVM(C=0.2, tol=0.02, random_state=0).fit(X, Y)
    limit = int(0.6 * max(record.bytes for record in free.history_))
    bounded = SequenceSVM(C=0.2, tol=0.02, memory=limit, random_state=0).fit(X, Y)
    assert max(record.bytes for record in bounded.history_) <= limit
    assert bounded.certificate_.relative_gap <= 0.02
    assert free.score(X_test, Y_test) > 0.88
    assert bounded.score(X_test, Y_test) == pytest.approx(free.score(X_test, Y_test), abs=0.01)


def test_pairs_of_labels_help_on_scenes():
    z = np.load(_folder() / "multilabel_scene.npz")
    y = "y" if "y_train" in z else "Y"
    X, Y, X_test, Y_test = z["X_train"], z[f"{y}_train"], z["X_test"], z[f"{y}_test"]
    alone, joint = (MultilabelSVM(C=0.1, edges=e, random_state=0).fit(X, Y) for e in ("none", "full"))
    assert joint.score(X_test, Y_test) > alone.score(X_test, Y_test) + 0.05


def _rotated_pair(a, b, n):
    """The first images of two digits, rotated by eleven angles, in ten principal components of the upright ones."""
    z = np.load(_folder() / "mnist.npz")
    chosen = np.flatnonzero(np.isin(z["y_train"], (a, b)))[:n]
    images, y = z["X_train"][chosen] * (32.0 / 255.0), (z["y_train"][chosen] == b).astype(int)
    views = np.stack(
        [
            ndimage.rotate(images, angle, axes=(2, 1), reshape=False, order=1).reshape(n, -1)
            for angle in np.linspace(-60, 60, 11)
        ],
        axis=1,
    )
    mean = views[:, 5].mean(axis=0)
    directions = np.linalg.svd(views[:, 5] - mean, full_matrices=False)[2][:10]
    return (views - mean) @ directions.T, y


def test_the_group_norm_finds_the_rotations_that_matter():
    X, y = _rotated_pair(3, 8, 1500)
    fit, test = slice(0, 1000), slice(1000, 1500)
    full = LatentStructuralSVM(Bags(2), C=1e-3, tol=3e-3, bound_tol=1e-2, random_state=0)
    full.fit(X[fit], y[fit], np.full(1000, 5))
    model = Bags(2, states="separate")
    few = LatentStructuralSVM(model, C=1e-3, group_norm=1.0, tol=3e-3, bound_tol=1e-2, random_state=0)
    few.fit(X[fit], y[fit], full.complete(X[fit], y[fit]))
    assert 2 <= len(few.selected_states_) <= 11
    assert few.score(X[test], y[test]) >= full.score(X[test], y[test]) - 0.01
    # What no digit has kept is not looked at.
    kept = {state for _, state in few.selected_states_}
    blank = X[test].copy()
    blank[:, [s for s in range(11) if s not in kept]] = 0.0
    assert few.predict(blank) == few.predict(X[test])
    assert few.certify(X[fit], y[fit]).relative_gap <= 3e-3 * (1 + 1e-9)


def test_clusters_of_d31_are_found_from_a_bad_start():
    z = np.load(_folder() / "clustering.npz")
    X = z["D31_X"]
    ends = [GMMKMeans(31, init="forgy", random_state=seed).fit(X).inertia_ / len(X) for seed in range(5)]
    lloyd = [
        GMMKMeans(31, bound="kmeans", init="forgy", random_state=seed).fit(X).inertia_ / len(X) for seed in range(5)
    ]
    assert all(end <= other * (1 + 1e-9) for end, other in zip(ends, lloyd, strict=True))
    assert max(ends) < 1.1  # the optimum is 1.0946, Lloyd's ends are at 1.5 and more


def _scenes(names, n):
    """The first photographs of some classes of 15-Scene: training images and test images, n of each class."""
    Image = pytest.importorskip("PIL.Image")
    found = {("train", name): [] for name in names} | {("test", name): [] for name in names}
    with tarfile.open(_folder() / "scene15.tar") as tar:
        for member in tar:
            place = tuple(member.name.split("/")[-3:-1])
            if member.isfile() and len(found.get(place, range(n))) < n:
                found[place].append(np.asarray(Image.open(tar.extractfile(member)).convert("L")))
    for part in ("train", "test"):
        yield [image for name in names for image in found[part, name]], np.repeat(names, n)


def test_parts_of_photographs_tell_scenes_apart():
    (X, y), (X_test, y_test) = _scenes(["Coast", "Forest", "Street", "Bedroom"], 30)
    words = WordHistograms(4, 50, n_sampled=20_000).fit(X, n_jobs=2)
    model = SceneClassifier("rbow", features=words, n_parts=4, random_state=0, n_jobs=2).fit(X, y)
    assert model.certificate_.exact and model.certificate_.relative_gap <= model.tol
    assert model.score(X_test, y_test) > 0.85
    # The sky of a coast is another part than its sea.
    parts = model.predict_regions(X_test[:30], "Coast")
    top, bottom = (np.bincount(rows.ravel(), minlength=4) / rows.size for rows in (parts[:, 0], parts[:, -1]))
    assert np.abs(top - bottom).sum() > 1.0


def test_ndcg_as_the_loss_ranks_the_documents_of_new_queries_better():
    def queries(split):
        with gzip.open(_folder() / f"lgbm_rank.{split}.libsvm.gz") as file:
            X, y = load_svmlight_file(io.BytesIO(file.read()), n_features=301)
        sizes = np.loadtxt(_folder() / f"lgbm_rank.{split}.query", dtype=int)
        return X, y, np.repeat(np.arange(sizes.size), sizes)

    X, y, query = queries("train")
    test, grade, of = queries("test")

    def measured(**settings):
        score = RankingSVM(C=0.1, random_state=0, **settings).fit(X, y, groups=query).predict(test)
        each = [(2.0 ** grade[of == q] - 1.0, score[of == q]) for q in np.unique(of)]
        return np.mean([ndcg_score([gain], [found]) for gain, found in each if gain.any()])

    assert measured(loss="ndcg") > measured() + 0.01

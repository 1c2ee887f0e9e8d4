"""The method ``report`` of every estimator: what its page says is so."""

import re
import shutil
import subprocess
from importlib import resources
from itertools import chain

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
from written_pages import check_self_contained, script

import maxmargin as mm
from maxmargin.models import Bags, Chain, Multiclass, SemiMarkov
from maxmargin.report.latent import chosen_values
from maxmargin.report.numbers import duration

HOSTILE = "</script><script>alert(1)</script>"


def number(text):
    return float(text.replace("−", "-").replace(" ", "").removesuffix("%"))


def page_of(path):
    return check_self_contained(path.read_text(encoding="utf-8"))


def matrix(table, n):
    return [[0 if cell == "·" else int(cell) for cell in row[:n]] for row in table.values()]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


def test_linear_page_from_arrays_and_from_a_source(iris, tmp_path):
    X, y = iris
    model = mm.LinearSVC(random_state=0).fit(X[::2], y[::2])
    path = model.report(tmp_path / "a.html", X[1::2], y[1::2], title="Irises", name="the test set")
    reader = page_of(path)
    assert path == tmp_path / "a.html" and "Irises" in reader.words
    table, truth = reader.table("truth", *model.classes_), confusion_matrix(y[1::2], model.predict(X[1::2]))
    assert np.array_equal(matrix(table, 3), truth)
    assert f"{np.trace(truth)} of 75 rows have the right answer" in reader.words
    assert "Answers on the test set" in reader.words
    model.report(tmp_path / "b.html", mm.data.open(X[1::2], labels=y[1::2]))
    assert page_of(tmp_path / "b.html").table("truth", *model.classes_) == table


def test_charts_carry_the_history(iris, tmp_path):
    model = mm.LinearSVC(random_state=0).fit(*iris)
    (curves,) = page_of(model.report(tmp_path / "a.html")).curves
    along = dict(curves["along"])
    assert along["passes"] == list(range(1, model.n_passes_ + 1)) or len(along["passes"]) == 120
    assert along["seconds"][-1] == pytest.approx(model.history_[-1].seconds, rel=1e-6)
    lower, upper = (line["values"][-1] for line in reversed(curves["panels"][0]["curves"]))
    assert lower == pytest.approx(max(r.lower for r in model.history_), rel=1e-6)
    assert upper == pytest.approx(model.history_[-1].upper, rel=1e-6)
    assert curves["panels"][1]["goal"] == model.tol


def test_ranking_page_knows_groups(rng, tmp_path):
    X, group = rng.normal(size=(60, 3)), rng.integers(0, 8, 60)
    y = np.digitize(X[:, 0] + rng.normal(size=60), [-1.0, 1.0])
    model = mm.RankingSVM(C=0.1, random_state=0).fit(X, y, groups=group)
    words = page_of(model.report(tmp_path / "a.html", X, y, groups=group)).words
    assert f"{100 * model.score(X, y, groups=group):.1f} % are in the right order" in words


@pytest.fixture(scope="module")
def tagger():
    rng = np.random.default_rng(0)
    X, Y = [], []
    for _ in range(30):
        tags = rng.choice(["A", "B", HOSTILE], 5)
        X.append([{"word": f"{tag[0].lower()}{rng.integers(2)}", "<b>": "x"} for tag in tags])
        Y.append([str(tag) if rng.random() < 0.8 else "A" for tag in tags])
    return mm.SequenceSVM(random_state=0).fit(X[:20], Y[:20]), X[20:], Y[20:]


def test_sequences_transitions_labels_and_mistakes(tagger, tmp_path):
    model, X, Y = tagger
    reader = page_of(model.report(tmp_path / "a.html", X, Y, name=HOSTILE, title=HOSTILE))
    names = model.classes_.tolist()
    true, answered = (list(chain.from_iterable(side)) for side in (Y, model.predict(X)))
    assert np.array_equal(matrix(reader.table("truth", *names), 3), confusion_matrix(true, answered))
    steps = [[number(cell) for cell in row] for row in reader.table("from ↓ to →", *names).values()]
    assert np.allclose(steps, model.transitions_, rtol=1e-2, atol=1e-9)
    by_label = reader.table("label", "true", "answered")
    expected = precision_recall_fscore_support(true, answered, labels=names)
    for k, name in enumerate(names):
        n, _, precision, recall, f1 = by_label[name]
        assert int(n) == expected[3][k]
        assert [number(precision), number(recall), number(f1)] == pytest.approx(
            [100 * part[k] for part in expected[:3]], abs=0.06
        )
    wrong = [sum(a != b for a, b in zip(y, z, strict=True)) for y, z in zip(Y, model.predict(X), strict=True)]
    worst = int(np.argmax(wrong))
    assert f"sequence {worst}: {wrong[worst]} of 5 wrong" in reader.words
    assert f"{100 * model.score(X, Y):.1f} %" in reader.words
    label = names[1]
    assert model.top_features(label, 1)[0][0] in reader.words


def test_a_tagger_of_segments_shows_how_many_are_right(tmp_path):
    rng = np.random.default_rng(0)
    Y = [["B-X", "I-X", "O", f"B-{rng.choice(['X', HOSTILE])}", "O"][: 2 + i % 4] for i in range(30)]
    X = [[f"{label[0] if rng.random() < 0.7 else ''}{rng.integers(2)}" for label in y] for y in Y]
    model = mm.SequenceSVM(segments="iob2", random_state=0).fit(X[:20], Y[:20])
    whole = page_of(model.report(tmp_path / "a.html", X[20:], Y[20:]))
    source = mm.data.open(lambda: zip(X[20:], Y[20:], strict=True), chunk_rows=3)
    for reader in (whole, page_of(model.report(tmp_path / "b.html", source))):
        rows = reader.table("segment", "true", "precision", "recall", "F1")
        scores = model.segment_scores(X[20:], Y[20:])
        assert list(rows) == [*sorted(["X", HOSTILE]), "micro average", "macro average", "weighted average"]
        for name, score in scores.rows():
            assert int(rows[name][0]) == score.support
            assert [number(cell) for cell in rows[name][1:]] == pytest.approx([100 * f for f in score[:3]], abs=0.06)
        assert f"F1 of segments {100 * scores.micro.f1:.1f} %" in reader.words
        assert f"labels right {100 * scores.accuracy:.1f} %" in reader.words


def test_a_page_without_data_shows_what_was_learned(tagger, tmp_path):
    reader = page_of(tagger[0].report(tmp_path / "a.html"))
    assert "Which label follows which" in reader.words and "Answers on" not in reader.words
    assert "With data the page also shows how well the answers are" in reader.words


def test_multilabel_scores_and_attraction(tmp_path):
    X, Y = make_multilabel_classification(n_samples=80, n_labels=2, n_classes=4, random_state=0)
    model = mm.MultilabelSVM(C=0.01, edges="tree", random_state=0).fit(X[:50], Y[:50])
    reader = page_of(model.report(tmp_path / "a.html", X[50:], Y[50:]))
    found = model.predict(X[50:])
    expected = precision_recall_fscore_support(Y[50:], found, zero_division=np.nan)
    rows = reader.table("label", "true", "answered")
    for k in range(4):
        n, answers, precision, recall, _ = rows[f"label {k}"]
        assert (int(n), int(answers)) == (Y[50:, k].sum(), found[:, k].sum())
        for said, part in ((precision, expected[0][k]), (recall, expected[1][k])):
            assert said == "–" if np.isnan(part) else number(said) == pytest.approx(100 * part, abs=0.06)
    whole = (found == Y[50:]).all(axis=1).mean()
    assert f"rows with all labels right {100 * whole:.1f} %" in reader.words
    shown = reader.table("", "0", "1", "2", "3")
    for (a, b), pair in zip(model.edges_, model.pair_coef_, strict=True):
        strength = pair[0, 0] + pair[1, 1] - pair[0, 1] - pair[1, 0]
        assert number(shown[f"label {a}"][b]) == number(shown[f"label {b}"][a]) == pytest.approx(strength, rel=1e-2)


def test_structural_losses_and_worst_answers(rng, tmp_path):
    X = [rng.normal(size=(6, 2)) for _ in range(40)]
    Y = [(x[:, 0] + rng.normal(size=6) > 0).astype(int) for x in X]
    model = mm.StructuralSVM(Chain(), random_state=0).fit(X[:25], Y[:25])
    reader = page_of(model.report(tmp_path / "a.html", X[25:], Y[25:]))
    losses = np.array([np.sum(y != z) for y, z in zip(Y[25:], model.predict(X[25:]), strict=True)])
    assert f"{(losses == 0).sum()} of 15 answers are without loss" in reader.words
    rows = reader.table("example", "loss", "truth", "answer")
    assert [int(i) for i in rows] == np.argsort(-losses, kind="stable")[: min(10, (losses > 0).sum())].tolist()
    assert [number(row[0]) for row in rows.values()] == sorted(losses[losses > 0].tolist(), reverse=True)[:10]
    bars = reader.curves[-1]["panels"][0]["curves"][0]["values"]
    assert bars == np.bincount(losses).tolist()
    true, answered = np.concatenate(Y[25:]), np.concatenate(model.predict(X[25:]))
    assert np.array_equal(matrix(reader.table("truth", "0", "1"), 2), confusion_matrix(true, answered))


def test_segmentations_are_compared_token_by_token_and_triples_are_listed(rng, tmp_path):
    X = [rng.normal(size=(6, 2)) for _ in range(20)]
    Y = [(x[:, 0] + rng.normal(size=6) > 0).astype(int) for x in X]
    segments = [[(0, 3, int(y[0])), (3, 6, int(y[3]))] for y in Y]
    model = mm.StructuralSVM(SemiMarkov(), random_state=0).fit(X, segments)
    reader = page_of(model.report(tmp_path / "a.html", X, segments))
    true, answered = (
        np.concatenate([model.model_.tokens(x, y) for x, y in zip(X, side, strict=True)])
        for side in (segments, model.predict(X))
    )
    assert np.array_equal(matrix(reader.table("truth", "0", "1"), 2), confusion_matrix(true, answered))
    model = mm.StructuralSVM(Chain(order=2), random_state=0).fit(X, Y)
    reader = page_of(model.report(tmp_path / "b.html", X, Y))
    shown = reader.table("first", "second", "third", "weight")
    assert {first for first in shown} == {"0", "1"}
    assert "Three labels in a row" in reader.words


@pytest.mark.parametrize(
    ("latent", "words"),
    [
        ([(0, 1), (0, 1), (2, 1)], "value (0, 1) 2 (66.7 %) value (2, 1) 1 (33.3 %)"),
        ([(1, None), (1, None), (1, 2)], "value (1, None) 2 (66.7 %) value (1, 2) 1"),
        ([(0,) * 5], "value 0 5 (100.0 %)"),
        ([[1, 2], [2]], "value 2 2 (66.7 %) value 1 1 (33.3 %)"),
    ],
)
def test_latent_values_of_any_kind_are_counted(latent, words):
    assert words in re.sub(r"(<[^>]*>|\s)+", " ", chosen_values(latent))


def test_a_page_is_small_however_long_the_settings_are_and_adds_up_seconds(tmp_path):
    X, y = load_iris(return_X_y=True)
    weights = dict.fromkeys(range(20_000), 1.0)
    model = mm.LinearSVC(multi_class="ovr", class_weight=weights, random_state=0).fit(X, y)
    path = model.report(tmp_path / "a.html")
    assert path.stat().st_size < 200_000
    starts = [k for k, record in enumerate(model.history_) if record.number == 1]
    ends = [model.history_[k - 1].seconds for k in [*starts[1:], len(model.history_)]]
    assert len(ends) == 3
    assert f"time {duration(sum(ends))}" in page_of(path).words


def test_latent_states_values_and_bounds(rng, tmp_path):
    X, y = rng.normal(size=(60, 4, 3)), np.arange(60) % 3
    X[np.arange(60), np.arange(60) % 2, y] += 4.0
    model = mm.LatentStructuralSVM(Bags(states="separate"), bound="gmm", C=0.1, group_norm=0.5, random_state=0)
    model.fit(X[:45], y[:45])
    reader = page_of(model.report(tmp_path / "a.html", X[45:], y[45:]))
    kept = model.selected_states_
    assert 0 < len(kept) < 12
    assert f"{len(kept)} of 12 states have weights that are not all zero" in reader.words
    assert all(f"state ({a}, {z})" in reader.words for a, z in kept)
    value, n = np.unique(model.latent_, return_counts=True)
    training = reader.words.split("Latent values in training")[1]
    assert all(f"value {v} {k} (" in training for v, k in zip(value, n, strict=True))
    (curves,) = reader.curves
    assert len(curves["along"][0][1]) == model.n_bounds_
    assert curves["panels"][0]["curves"][1]["values"][-1] == pytest.approx(model.history_[-1].objective, rel=1e-6)
    assert "The last convex bound is within" in reader.words


def test_bags_and_the_instance_that_decided(rng, tmp_path):
    X = [rng.normal(size=(int(rng.integers(2, 6)), 3)) for _ in range(50)]
    y = np.where(np.arange(50) % 2, "sick", "well")
    for x in X[1::2]:
        x[rng.integers(len(x))] += 1.5
    model = mm.LatentSVC(positive="sick", random_state=0).fit(X[:35], y[:35])
    reader = page_of(model.report(tmp_path / "a.html", X[35:], y[35:]))
    names = model.classes_.tolist()
    assert np.array_equal(matrix(reader.table("truth", *names), 2), confusion_matrix(y[35:], model.predict(X[35:])))
    rows, decided, scores = (
        reader.table("bag", "instances"),
        model.predict_latent(X[35:]),
        -model.decision_function(X[35:]),  # of the instance, for the positive class, which is the first
    )
    assert "one instance is enough for sick" in reader.words
    assert "for sick feature" in reader.words  # whose weights coef_ has
    assert len(rows) == 12
    for i, row in rows.items():
        assert (int(row[0]), int(row[3])) == (len(X[35 + int(i)]), decided[int(i)])
        assert number(row[4]) == pytest.approx(scores[int(i)], rel=1e-3)


def test_clusters_sizes_centres_and_labels(iris, tmp_path):
    X, y = iris
    model = mm.GMMKMeans(3, random_state=0).fit(X)
    reader = page_of(model.report(tmp_path / "a.html", X, y))
    sizes = np.bincount(model.labels_)
    assert all(f"cluster {k} {n} (" in reader.words for k, n in enumerate(sizes))
    centres = reader.table("", *[f"feature {j}" for j in range(4)])
    for k in range(3):
        shown = [number(cell) for cell in centres[f"cluster {k}"]]
        assert np.allclose(shown, model.cluster_centers_[k] - X.mean(axis=0), rtol=1e-2, atol=1e-4)
    counts = matrix(reader.table("", "setosa", "versicolor", "virginica"), 3)
    expected = [[np.sum((model.labels_ == k) & (y == name)) for name in np.unique(y)] for k in range(3)]
    assert counts == expected
    assert "There is no" not in reader.words and "k-means has no certificate" in reader.words
    assert "Sizes of the clusters in training" in page_of(model.report(tmp_path / "b.html")).words


def test_scenes_from_features(tmp_path):
    pytest.importorskip("matplotlib")
    some = mm.data.synthetic.scenes(4, random_state=0)
    two = np.isin(some.y, np.unique(some.y)[:2])
    X, y = some.X[two], some.y[two]
    model = mm.vision.SceneClassifier("rbow", "generative", n_parts=3, feature_map="none", random_state=0).fit(X, y)
    reader = page_of(model.report(tmp_path / "a.html", X, y))
    names = model.classes_.tolist()
    assert np.array_equal(matrix(reader.table("truth", *names), 2), confusion_matrix(y, model.predict(X)))
    pictures = [value for key, value in reader.attributes if key == "alt"]
    assert pictures == [f"region models of {name}" for name in names]
    assert "There is no certificate" in reader.words


# Wrong use


def test_wrong_use_is_told_before_anything_is_written(iris, tmp_path):
    X, y = iris
    with pytest.raises(NotFittedError):
        mm.LinearSVC().report(tmp_path / "a.html")
    model = mm.LinearSVC(random_state=0).fit(X, y)
    for error, said, arguments in [
        (ValueError, "y is missing", (tmp_path / "a.html", X)),
        (ValueError, "X is missing", (tmp_path / "a.html", None, y)),
        (ValueError, "leave y out", (tmp_path / "a.html", mm.data.open(X, labels=y), y)),
        (ValueError, "inconsistent numbers of samples", (tmp_path / "a.html", X, y[1:])),
        (ValueError, "features", (tmp_path / "a.html", X[:, 1:], y)),
        (FileNotFoundError, "there is no folder", (tmp_path / "no" / "a.html",)),
        (IsADirectoryError, "is a folder; name a file", (tmp_path,)),
        (TypeError, "path must name the HTML file", (X, y)),
    ]:
        with pytest.raises(error, match=said):
            model.report(*arguments)
    assert not list(tmp_path.iterdir())


def test_wrong_data_of_structured_models(tagger, tmp_path):
    model, X, Y = tagger
    with pytest.raises(ValueError, match="has 5 tokens, but 4 labels"):
        model.report(tmp_path / "a.html", X, [Y[0][:4], *Y[1:]])
    with pytest.raises(ValueError, match="X has 10 examples, Y has 9"):
        model.report(tmp_path / "a.html", X, Y[1:])
    structural = mm.StructuralSVM(Multiclass(), random_state=0).fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="The source has no labels to compare answers with"):
        structural.report(tmp_path / "a.html", mm.data.open(np.eye(4)))


# The script


def test_the_script_is_one_that_can_be_read(tmp_path):
    assert "</script" not in script() and "innerHTML" not in script()
    node = shutil.which("node")
    if node is not None:
        with resources.as_file(resources.files("maxmargin.report").joinpath("chart.js")) as path:
            assert subprocess.run([node, "--check", path], check=False).returncode == 0

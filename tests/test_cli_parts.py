"""Parts on the command line: folders of images in, models, answers and pages out."""

import signal

import numpy as np
import pytest

pytest.importorskip("PIL")
from commands import answer, complaint
from PIL import Image

import maxmargin as mm
from maxmargin.cli import main
from maxmargin.vision import PartClassifier

SMALL = ["--task", "parts", "--n-parts", "3", "--pool", "12", "--components", "8", "--quiet"]


def _image(name, rng):
    """Noise with a square in it, stripes in which lie in one class and stand in the other."""
    image = rng.integers(90, 110, (72, 88)).astype(np.uint8)
    top, left = rng.integers(0, 72 - 40), rng.integers(0, 88 - 40)
    along = np.mgrid[:40, :40][0 if name == "flat" else 1]
    image[top : top + 40, left : left + 40] = (128 + 90 * np.sin(along / 2.0)).astype(np.uint8)
    return image


def _write(place, rng, n=6):
    for name in ("flat", "tall"):
        (place / name).mkdir(parents=True)
        for i in range(n):
            Image.fromarray(_image(name, rng)).save(place / name / f"{i}.png")
    return place


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images to learn from and others, and a model, trained through the program."""
    place, rng = tmp_path_factory.mktemp("parts"), np.random.default_rng(0)
    _write(place / "train", rng)
    _write(place / "test", rng, 4)
    assert main(["train", f"{place}/train", "-o", f"{place}/joint.mm", "--cache", f"{place}/features", *SMALL]) == 0
    return place


def test_train_writes_a_model_and_says_what_is_proved(folder, tmp_path, capsys):
    path = tmp_path / "m.mm"
    arguments = ["train", folder / "train", "-o", path, *SMALL, "--regions", "1", "--test", folder / "test"]
    said, err = answer(capsys, *arguments, "--cache", folder / "features")
    assert err == ""
    assert (said["task"], said["task_guessed"], said["training"]) == ("parts", False, "joint")
    assert (said["parts"], said["regions"], said["images"], said["classes"]) == (3, [1], 12, 2)
    assert said["certificate"]["relative_gap"] <= said["tol"] == 1e-2
    assert said["converged"] and said["rounds"] >= 1
    model = mm.load(path)
    assert model.part_weights_.shape == (2, 3, 1)
    assert said["objective"] == pytest.approx(model.objective_) == pytest.approx(said["certificate"]["upper"])
    assert said["test"]["images"] == 8
    assert said["test"]["value"] == pytest.approx(model.score(folder / "test"))


@pytest.mark.parametrize("training", ["random", "selected"])
def test_parts_that_are_not_trained_have_a_certificate_of_their_weights(folder, tmp_path, capsys, training):
    arguments = ["train", folder / "train", "-o", tmp_path / "m.mm", "--task", "parts", "--n-parts", "3"]
    arguments += ["--components", "8", "--training", training, "--cache", folder / "features"]
    assert main([*map(str, arguments)]) == 0
    err = capsys.readouterr().err
    assert "parts, 2 classes" in err and "<= optimum <=" in err and "after 0 rounds" in err
    assert "of the part weights, the filters fixed; about other filters nothing is proved" in err
    assert {"random": "3, random", "selected": "3, selected from random ones"}[training] in err


def test_too_few_rounds_are_said_and_the_model_is_written(folder, tmp_path, capsys):
    path = tmp_path / "m.mm"
    arguments = ["train", folder / "train", "-o", path, *SMALL, "--max-rounds", "1", "--cache", folder / "features"]
    arguments.remove("--quiet")
    assert main([*map(str, arguments)]) == 1
    err = capsys.readouterr().err
    assert "Stopped before the goal" in err and "--max-rounds" in err
    assert mm.load(path).history_[-1].round == 1


def test_progress_is_a_line_for_every_step(folder, tmp_path, capsys):
    arguments = [*SMALL, "--progress", "--cache", f"{folder}/features", "--checkpoint", f"{tmp_path}/saved"]
    assert main(["train", f"{folder}/train", "-o", f"{tmp_path}/m.mm", *arguments]) == 0
    lines = capsys.readouterr().err.splitlines()
    history = mm.load(tmp_path / "m.mm").history_
    assert len(lines) == len(history)
    for line, record in zip(lines, history, strict=True):
        assert line.startswith(f"round {record.round}, {record.step}, objective {record.objective:.6g}")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--kind", "rbow"], "--kind is for scenes (--task scene), and these are images of parts"),
        (["--parts", "3"], "--parts is for scenes"),
        (["--words", "8"], "--words is for scenes"),
        (["--training", "generative"], "--training generative is not for --task parts: random or selected or joint is"),
        (["--features", "words"], "--features words is not for --task parts, which knows hog or cnn"),
        (["--features", "7"], "--features 7 is for rows of a matrix"),
        (["--training", "random", "--pool", "99"], "--pool is for --training selected or joint"),
        (["--training", "selected", "--max-rounds", "3"], "--max-rounds is for --training joint"),
        (["--training", "random", "--memory", "1GB"], "--memory is for --training joint"),
        (["--n-parts", "20", "--pool", "19"], "--pool must be a whole number of at least --n-parts 20, got 19"),
        (["--components", "2000"], "cannot be reduced to 2000"),
        (["--components", "900"], "or use a smaller --components."),
        (["--n-parts", "0"], "must be a whole number of at least 1"),
        (["--regions", "1,x"], "such as 1,2"),
        (["--regions", "0"], "such as 1,2"),
        (["--components", "few"], "must be a whole number of at least 1"),
        (["--loss", "hinge"], "--loss is for rows of a matrix"),
        (["--report", "no/r.html"], "there is no folder no"),
        (["--memory", "lots"], "memory must be a number of bytes"),
    ],
)
def test_what_has_no_meaning_is_refused(folder, tmp_path, capsys, options, said):
    path = tmp_path / "m.mm"
    assert said in complaint(capsys, "train", folder / "train", "-o", path, "--task", "parts", *options)
    assert not path.exists()


@pytest.mark.parametrize("options", [["--n-parts", "3"], ["--no-flips"], ["--regions", "1,2"], ["--device", "cuda"]])
def test_options_of_parts_are_refused_elsewhere(folder, tmp_path, capsys, options):
    (tmp_path / "a.svm").write_text("1 1:0.5\n-1 1:1.0\n")
    for data, these in ((tmp_path / "a.svm", "rows of a matrix"), (folder / "train", "images of scenes")):
        line = complaint(capsys, "train", data, "-o", tmp_path / "m.mm", *options)
        assert f"{options[0]} is for parts (--task parts)" in line and f", and these are {these}" in line
    line = complaint(capsys, "train", folder / "train", "-o", tmp_path / "m.mm", "--features", "hog")
    assert "--features hog is not for --task scene" in line
    line = complaint(capsys, "train", folder / "train", "-o", tmp_path / "m.mm", "--training", "joint")
    assert "--training joint is not for --task scene" in line


def test_options_reach_the_classifier(folder, tmp_path, monkeypatch):
    seen = {}

    def remember(self, X, **options):
        seen.update(self.get_params(), **options)
        raise ValueError("enough")

    monkeypatch.setattr(PartClassifier, "fit", remember)
    arguments = ["--task", "parts", "--n-parts", "5", "--pool", "50", "--components", "all", "--no-flips"]
    arguments += ["--regions", "1,3", "--max-rounds", "4", "--features", "cnn", "--device", "cpu", "--C", "2"]
    arguments += ["--tol", "0.1", "--seed", "7", "--jobs", "2", "--cache", "c", "--checkpoint", "k", "--memory", "64MB"]
    assert main(["train", f"{folder}/train", "-o", f"{tmp_path}/m.mm", *arguments]) == 2
    expected = {
        "n_parts": 5, "pool_size": 50, "n_components": None, "flips": False, "regions": (1, 3), "max_rounds": 4,
        "features": "cnn", "device": "cpu", "C": 2.0, "tol": 0.1, "random_state": 7, "n_jobs": 2, "cache": "c",
        "checkpoint": "k", "memory": "64MB", "training": "joint", "on_error": "raise",
    }  # fmt: skip
    assert {key: seen[key] for key in expected} == expected
    plain = PartClassifier().get_params()
    assert main(["train", f"{folder}/train", "-o", f"{tmp_path}/m.mm", "--task", "parts"]) == 2
    own = {"n_jobs", "random_state", "verbose"}  # which the program knows better
    assert {key: seen[key] for key in plain if key not in own} == {key: plain[key] for key in plain if key not in own}


def test_predict_writes_path_class_and_scores(folder, capsys):
    assert main(["predict", f"{folder}/joint.mm", f"{folder}/test", "--scores"]) == 0
    said = capsys.readouterr()
    lines = [line.split("\t") for line in said.out.splitlines()]
    model = mm.load(folder / "joint.mm")
    files = sorted(str(path) for path in (folder / "test").rglob("*.png"))
    assert [line[0] for line in lines] == files
    assert [line[1] for line in lines] == model.predict(files).tolist()
    assert np.allclose([[float(s) for s in line[2:]] for line in lines], model.decision_function(files), atol=1e-6)
    assert f"Accuracy: {100 * model.score(folder / 'test'):.1f} %" in said.err
    line = complaint(capsys, "predict", folder / "joint.mm", folder / "test", "--regions")
    assert "--regions is for scenes" in line


def test_certify_proves_again_and_the_summary_names_the_command(folder, capsys):
    kept = mm.load(folder / "joint.mm")
    said, _ = answer(capsys, "certify", folder / "joint.mm", folder / "train", "--cache", folder / "features")
    assert said["task"] == "parts" and said["proved"]
    assert said["certificate"]["upper"] == pytest.approx(kept.certificate_.upper, rel=1e-3)
    assert said["certificate"]["lower"] == pytest.approx(kept.certificate_.lower, rel=1e-3)


def test_report_shows_weights_detections_and_filters(folder, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    page = tmp_path / "r.html"
    assert answer(capsys, "report", folder / "joint.mm", folder / "test", "-o", page)[0]["task"] == "parts"
    text = page.read_text()
    assert '<table class="confusion">' in text and "of 8 images have the right answer" in text
    for what in ("part weights", "top detections", "filters"):
        assert f'alt="{what}"' in text
    assert "The bounds are those of the part weights" in text
    answer(capsys, "report", folder / "joint.mm", "-o", page)
    text = page.read_text()
    assert 'alt="part weights"' in text and 'alt="top detections"' not in text and 'class="confusion"' not in text


def test_training_can_write_the_page(folder, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    page, path = tmp_path / "r.html", tmp_path / "m.mm"
    random = ["--task", "parts", "--training", "random", "--n-parts", "3", "--components", "8", "--quiet"]
    arguments = ["train", folder / "train", "-o", path, *random, "--cache", folder / "features"]
    assert answer(capsys, *arguments, "--report", page)[0]["report"] == str(page)
    assert (
        "of 12 images have the right answer" in page.read_text() and "accuracy on training images" in page.read_text()
    )
    said, _ = answer(capsys, *arguments, "--report", page, "--test", folder / "test", "--test", folder / "train")
    assert said["test"]["images"] == 20 and "of 20 images have the right answer" in page.read_text()
    assert "accuracy on test images (test, train)" in page.read_text()


def test_the_method_writes_the_same_page(folder, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    model, page = mm.load(folder / "joint.mm"), tmp_path / "r.html"
    answer(capsys, "report", folder / "joint.mm", folder / "test", "-o", page, "--title", "A")
    said = page.read_text()
    model.report(page, folder / "test", title="A", name="test")
    without = [text.split("<section><h2>Settings")[0] for text in (said, page.read_text())]  # the means differ
    assert without[0] == without[1]
    assert model.cache == mm.load(folder / "joint.mm").cache
    with pytest.raises(ValueError, match="X is missing"):
        model.report(page, y=["flat"])
    with pytest.raises(ValueError, match="one label for each"):
        model.report(page, folder / "test", ["flat"])


def test_models_of_features_are_for_python(folder, tmp_path, capsys, rng):
    model = PartClassifier(2, "random", regions=(1,), random_state=0)
    model.fit(rng.normal(size=(8, 5, 3)), np.arange(8) % 2).save(tmp_path / "m.mm")
    assert "cannot look at images" in complaint(capsys, "predict", tmp_path / "m.mm", folder / "test")


def test_interrupted_training_leaves_the_best_parts_so_far(folder, tmp_path, capsys, monkeypatch):
    fit = PartClassifier.fit

    def interrupted(self, *data, **options):
        options["callbacks"] = (lambda record: signal.raise_signal(signal.SIGINT),)
        return fit(self, *data, **options)

    monkeypatch.setattr(PartClassifier, "fit", interrupted)
    path = tmp_path / "m.mm"
    arguments = ["train", folder / "train", "-o", path, *SMALL, "--test", folder / "test"]
    said, _ = answer(capsys, *arguments, "--cache", folder / "features", status=130)
    assert said["interrupted"] and not said["converged"] and said["test"] is None
    assert mm.load(path).predict(folder / "test").size == 8

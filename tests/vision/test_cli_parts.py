"""Parts on the command line: folders of images in, models, answers and pages out."""

import numpy as np
import pytest

pytest.importorskip("PIL")
from commands import answer, complaint, image_folders

import maxmargin as mm
from maxmargin.cli import main

SMALL = ["--task", "parts", "--n-parts", "3", "--pool", "12", "--components", "8", "--quiet"]


def _image(name, rng):
    """Noise with a square in it, stripes in which lie in one class and stand in the other."""
    image = rng.integers(90, 110, (72, 88)).astype(np.uint8)
    top, left = rng.integers(0, 72 - 40), rng.integers(0, 88 - 40)
    along = np.mgrid[:40, :40][0 if name == "flat" else 1]
    image[top : top + 40, left : left + 40] = (128 + 90 * np.sin(along / 2.0)).astype(np.uint8)
    return image


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images to learn from and others, and a model, trained through the program."""
    place, rng = tmp_path_factory.mktemp("parts"), np.random.default_rng(0)
    image_folders(place / "train", _image, rng)
    image_folders(place / "test", _image, rng, 4)
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
        (["--n-parts", "20", "--pool", "19"], "--pool must be a whole number of at least --parts 20, got 19"),
        (["--components", "900"], "or use a smaller n_components"),
        (["--n-parts", "0"], "--parts must be a whole number of at least 1"),
        (["--report", "no/r.html"], "there is no folder no"),
        (["--memory", "lots"], "--memory must be a number of bytes"),
    ],
)
def test_what_has_no_meaning_is_refused(folder, tmp_path, capsys, options, said):
    path = tmp_path / "m.mm"
    assert said in complaint(capsys, "train", folder / "train", "-o", path, "--task", "parts", *options)
    assert not path.exists()


def test_certify_proves_again(folder, capsys):
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

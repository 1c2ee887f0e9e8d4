"""Scenes on the command line: folders of images in, models, answers and pages out."""

import os
import signal
import sys

import numpy as np
import pytest

pytest.importorskip("PIL")
from commands import answer, complaint, image_folders
from PIL import Image

import maxmargin as mm
from maxmargin.cli import main
from maxmargin.vision import SceneClassifier
from maxmargin.vision.cli import is_image_folder

SMALL = ["--words", "8", "--grid", "2", "--quiet"]
PARTS = [*SMALL, "--parts", "2"]


def _image(name, rng):
    """Stripes that lie in one class and stand in the other, over noise."""
    y, x = np.mgrid[:48, :64]
    along = y if name == "flat" else x
    return (
        (100 + 80 * np.sin(along / rng.uniform(1.5, 2.5)) + rng.integers(0, 30, y.shape)).clip(0, 255).astype(np.uint8)
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images to learn from and others, and a model with a part per region, all trained through the program."""
    place, rng = tmp_path_factory.mktemp("scenes"), np.random.default_rng(0)
    image_folders(place / "train", _image, rng)
    image_folders(place / "test", _image, rng, 4)
    assert main(["train", f"{place}/train", "-o", f"{place}/sbow.mm", "--kind", "sbow", *SMALL]) == 0
    return place


@pytest.fixture(scope="module")
def latent(folder):
    path = folder / "rbow.mm"
    assert main(["train", f"{folder}/train", "-o", str(path), "--init", "random", *PARTS]) in (0, 1)
    return path


# Training


def test_train_writes_a_model_and_says_what_is_proved(folder, tmp_path, capsys):
    arguments = ["train", folder / "train", "-o", tmp_path / "m.mm", "--kind", "sbow", *SMALL]
    said, err = answer(capsys, *arguments, "--test", folder / "test")
    assert err == ""
    assert (said["task"], said["task_guessed"], said["kind"], said["grid"]) == ("scene", True, "sbow", [2, 2])
    assert (said["images"], said["classes"], said["left_out"], said["converged"]) == (12, 2, 0, True)
    assert said["certificate"]["exact"] and said["certificate"]["relative_gap"] <= said["tol"] == 1e-2
    model = mm.load(tmp_path / "m.mm")
    assert said["test"]["images"] == 8
    assert said["test"]["value"] == pytest.approx(model.score(folder / "test"))
    assert model.certificate_.upper == pytest.approx(said["certificate"]["upper"])


def test_mean_over_classes_gives_small_classes_the_same_voice(folder, tmp_path, capsys):
    rng = np.random.default_rng(1)
    uneven = image_folders(tmp_path / "uneven", _image, rng, 1)
    for i in range(3):  # stripes that lie, in the folder of those that stand: all wrong but one
        Image.fromarray(_image("flat", rng)).save(uneven / "tall" / f"wrong-{i}.png")
    said, _ = answer(capsys, "predict", folder / "sbow.mm", uneven)
    assert said["value"] == pytest.approx(2 / 5)
    assert said["per_class"] == pytest.approx((1.0 + 1 / 4) / 2)


def test_a_folder_of_images_is_recognised_and_the_reason_said(folder, tmp_path, capsys):
    arguments = ["train", folder / "train", "-o", tmp_path / "m.mm", "--kind", "bow", "--words", "8"]
    assert main([*map(str, arguments)]) == 0
    said = capsys.readouterr()
    assert "Task: scene, because DATA is a folder of images" in said.err
    assert "scene, 2 classes" in said.err and "<= optimum <=" in said.err and "regions" not in said.err
    assert is_image_folder(str(folder / "train")) and is_image_folder(str(folder / "train" / "flat"))
    assert not is_image_folder(str(folder)) and not is_image_folder(str(folder / "sbow.mm"))


def test_certificates_say_what_they_are_about(folder, tmp_path, capsys):
    def trained(*options):
        status = main(["train", f"{folder}/train", "-o", f"{tmp_path}/m.mm", *options])
        return status, capsys.readouterr().err

    status, err = trained("--init", "random", "--words", "8", "--grid", "2", "--parts", "2")
    assert status in (0, 1) and "rbow (2 parts per class), discriminative" in err
    assert "of the last convex bound" in err and "nothing is proved" in err
    few = ["--kind", "rbow+", "--grid", "6", "--words", "4", "--parts", "9", "--init", "random"]
    _, err = trained(*few, "--max-bounds", "1", "--max-passes", "2")
    assert "searched approximately: no upper bound" in err and "<= optimum <=" not in err
    assert not mm.load(tmp_path / "m.mm").certificate_.exact
    said, _ = answer(capsys, "certify", tmp_path / "m.mm", folder / "train", status=1)
    assert said["certificate"]["upper"] is None and not said["proved"]
    path = tmp_path / "generative.mm"
    said, _ = answer(capsys, "train", folder / "train", "-o", path, "--training", "generative", *PARTS)
    assert said["certificate"] is None and said["tol"] is None
    assert "no certificate" in complaint(capsys, "certify", path, folder / "train")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--training", "generative", "--kind", "rbow+"], "has no generative training"),
        (["--training", "generative", "--features", "cnn"], "counts words"),
        (["--training", "generative", "--checkpoint", "x"], "checkpoint and callbacks are for discriminative training"),
        (["--label", "y"], "--label is for --task"),
        (["--report", "no/r.html"], "there is no folder no"),
        (["--memory", "lots"], "--memory must be a number of bytes"),
        (["--task", "classify"], "is a folder of images, and --task classify is for rows"),
    ],
)
def test_what_has_no_meaning_is_refused(folder, tmp_path, capsys, options, said):
    path = tmp_path / "m.mm"
    assert said in complaint(capsys, "train", folder / "train", "-o", path, *options)
    assert not path.exists()


# Bad folders and images


def test_bad_folders_are_refused(folder, tmp_path, capsys):
    out = tmp_path / "m.mm"
    assert "it has no sub-folders" in complaint(capsys, "train", folder / "train" / "flat", "-o", out)
    assert "a folder that exists" in complaint(capsys, "train", tmp_path / "none", "-o", out, "--task", "scene")
    (tmp_path / "empty" / "a").mkdir(parents=True)
    assert "1 of 1 have none" in complaint(capsys, "train", tmp_path / "empty", "-o", out, "--task", "scene")
    both = [folder / "train", folder / "test"]
    assert "one folder" in complaint(capsys, "train", *both, "-o", out, "--task", "scene")
    line = complaint(capsys, "train", folder / "train", "-o", out, "--test", tmp_path / "empty", *SMALL)
    assert "have none" in line and not out.exists()


def test_broken_images_are_named_or_left_out(tmp_path, capsys):
    place = image_folders(tmp_path / "train", _image, np.random.default_rng(0))
    (place / "flat" / "broken.png").write_bytes(b"no image")
    arguments = ["train", place, "-o", tmp_path / "m.mm", "--kind", "sbow", *SMALL]
    line = complaint(capsys, *arguments)
    assert "broken.png" in line and "--on-error" in line
    said, err = answer(capsys, *arguments, "--on-error", "skip")
    assert (said["images"], said["left_out"]) == (12, 1)
    assert "broken.png" in err and "left out" in err
    assert "broken.png" in complaint(capsys, "predict", tmp_path / "m.mm", place, "-o", tmp_path / "a.txt")
    assert not (tmp_path / "a.txt").exists()
    said, err = answer(capsys, "predict", tmp_path / "m.mm", place, "--on-error", "skip", "-o", tmp_path / "a.txt")
    assert (said["images"], said["left_out"]) == (12, 1) and "broken.png" in err
    assert len((tmp_path / "a.txt").read_text().splitlines()) == 12
    assert answer(capsys, "certify", tmp_path / "m.mm", place, "--on-error", "skip")[0]["proved"]


def test_a_missing_library_is_named(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    line = complaint(capsys, "train", folder / "train", "-o", tmp_path / "m.mm", "--kind", "sbow", *SMALL)
    assert 'pip install "maxmargin[vision]"' in line and "fault" not in line


# Answers, proofs and pages


def test_predict_writes_path_and_class(folder, capsys, monkeypatch):
    assert main(["predict", f"{folder}/sbow.mm", f"{folder}/test"]) == 0
    said = capsys.readouterr()
    lines = [line.split("\t") for line in said.out.splitlines()]
    files = sorted(str(path) for path in (folder / "test").rglob("*.png"))
    model = mm.load(folder / "sbow.mm")
    assert [line[0] for line in lines] == files
    assert [line[1] for line in lines] == model.predict(files).tolist()
    accuracy = 100 * model.score(folder / "test")
    assert f"Accuracy: {accuracy:.1f} %" in said.err
    monkeypatch.setattr("maxmargin.vision.pages.classified._AT_A_TIME", 3)  # however many images are held
    main(["predict", f"{folder}/sbow.mm", f"{folder}/test/tall", "--quiet"])
    assert capsys.readouterr().out == "".join("\t".join(line) + "\n" for line in lines if "/tall/" in line[0])


def test_certify_proves_again(folder, latent, capsys):
    for path in (folder / "sbow.mm", latent):
        kept = mm.load(path)
        proved = kept.certificate_.relative_gap <= kept.tol
        said, _ = answer(capsys, "certify", path, folder / "train", status=0 if proved else 1)
        assert said["certificate"]["upper"] == pytest.approx(kept.certificate_.upper, rel=1e-4)
        assert said["certificate"]["lower"] == pytest.approx(kept.certificate_.lower, rel=1e-4)


def test_the_place_of_the_cache_belongs_to_the_command(folder, tmp_path, capsys):
    there, path = tmp_path / "features", tmp_path / "m.mm"
    train = ["train", folder / "train", "-o", path, "--kind", "sbow", *SMALL, "--cache", there]
    answer(capsys, *train)
    kept = sorted(os.listdir(there))
    answer(capsys, "predict", path, folder / "test")
    assert sorted(os.listdir(there)) == kept  # another machine has no such folder


def test_report_shows_confusions_and_region_models(folder, latent, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    page = tmp_path / "r.html"
    assert answer(capsys, "report", latent, folder / "test", "-o", page)[0]["output"] == str(page)
    text = page.read_text()
    assert '<table class="confusion">' in text and 'alt="region models of flat"' in text
    assert "The bounds are those of the last convex bound" in text
    assert "http" not in text
    answer(capsys, "report", latent, "-o", page)
    assert "confusion" not in page.read_text().split("<body>")[1] and "region models of tall" in page.read_text()


def test_models_of_features_are_for_python(folder, tmp_path, capsys, rng):
    X = rng.integers(0, 9, (8, 2, 2, 3)).astype(np.float32)
    SceneClassifier("sbow", random_state=0).fit(X, np.arange(8) % 2).save(tmp_path / "m.mm")
    assert "cannot look at images" in complaint(capsys, "predict", tmp_path / "m.mm", folder / "test")


# Ctrl-C


def test_interrupted_search_leaves_the_best_model_so_far(folder, tmp_path, capsys, monkeypatch):
    fit = mm.LatentStructuralSVM.fit

    def interrupted(self, *data, **options):
        options["callbacks"] = (lambda record: signal.raise_signal(signal.SIGINT),)
        return fit(self, *data, **options)

    monkeypatch.setattr(mm.LatentStructuralSVM, "fit", interrupted)
    path = tmp_path / "m.mm"
    arguments = ["train", folder / "train", "-o", path, "--init", "random", *PARTS, "--test", folder / "test"]
    said, _ = answer(capsys, *arguments, status=130)
    assert said["interrupted"] and not said["converged"] and said["test"] is None
    assert mm.load(path).predict(folder / "test").size == 8


def test_interrupt_before_there_is_a_model_writes_none(folder, tmp_path, capsys, monkeypatch):
    def pressed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("maxmargin.vision.features.words.WordHistograms.histogram", pressed)
    monkeypatch.setattr("maxmargin.vision.features.words.WordHistograms.fit", pressed)
    arguments = ["train", folder / "train", "-o", tmp_path / "m.mm", *SMALL]
    assert "interrupted" in complaint(capsys, *arguments, status=130)
    assert not (tmp_path / "m.mm").exists()

"""Detectors on the command line: images and boxes in, models, pictures, tables and pages out."""

import csv
import json
import signal

import numpy as np
import pytest

pytest.importorskip("PIL")
from commands import answer, complaint
from PIL import Image

import maxmargin as mm
from maxmargin.cli import main
from maxmargin.vision import DeformablePartDetector
from maxmargin.vision.cli.detector import split
from maxmargin.vision.detection.annotations import annotated

SMALL = ["--parts", "0", "--quiet"]
HEAD = "image,x_min,y_min,x_max,y_max,label"


def _square(rng):
    """Noise with a bright square, and where that is."""
    x, y = rng.integers(8, 48, 2)
    image = rng.integers(0, 40, (96, 96), dtype=np.uint8)
    image[y : y + 32, x : x + 32] = 200
    return image, (x, y, x + 32, y + 32)


def _write(place, rng, n):
    place.mkdir()
    lines = [HEAD]
    for i in range(n):
        image, box = _square(rng)
        Image.fromarray(image).save(place / f"{i}.png")
        lines.append(",".join(map(str, (f"{i}.png", *box, "square"))))
    Image.fromarray(rng.integers(0, 40, (96, 96), dtype=np.uint8)).save(place / "none.png")
    place.with_suffix(".csv").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images to learn from and others, tables of boxes, and a detector trained through the program."""
    place, rng = tmp_path_factory.mktemp("detect"), np.random.default_rng(0)
    _write(place / "train", rng, 8)
    _write(place / "test", rng, 3)
    options = ["--boxes", f"{place}/train.csv", "-o", f"{place}/squares.mm", *SMALL]
    assert main(["train", f"{place}/train", *options]) == 0
    return place


def _train(folder, path, *options):
    return ["train", folder / "train", "--task", "detect", "--boxes", folder / "train.csv", "-o", path, *options]


def test_train_says_what_is_proved_and_how_precise_it_is(folder, tmp_path, capsys):
    path = tmp_path / "m.mm"
    boxes = folder / "tested.csv"
    boxes.write_text((folder / "test.csv").read_text().replace("\n", "\ntest/", 3))
    said, err = answer(capsys, *_train(folder, path, *SMALL, "--test", boxes))
    assert err == ""
    assert (said["task"], said["task_guessed"], said["label"]) == ("detect", False, "square")
    assert (said["images"], said["boxes"], said["components"], said["parts"]) == (9, 8, 1, 0)
    assert said["certificate"]["relative_gap"] <= said["tol"] == 0.02
    assert said["converged"]
    model = mm.load(path)
    assert said["objective"] == pytest.approx(model.objective_)
    assert (said["test"]["objects"], said["test"]["images"]) == (3, 3)
    assert said["test"]["value"] == model.score(None, boxes)
    assert main([*map(str, _train(folder, path, "--parts", "0", "--test", folder / "test.csv"))]) == 2
    assert "None of the 3 images" in capsys.readouterr().err  # they do not lie beside their table


def test_with_boxes_the_task_is_guessed_and_parts_are_counted(folder, tmp_path, capsys):
    path, page = tmp_path / "m.mm", tmp_path / "r.html"
    arguments = ["train", folder / "train", "--boxes", folder / "train.csv", "-o", path, "--parts", "1", "--progress"]
    arguments += ["--part-size", "3", "--negative-parts", "1", "--holdout", "0.25", "--max-bounds", "12"]
    pytest.importorskip("matplotlib")
    assert main([*map(str, [*arguments, "--report", page])]) == 0
    err = capsys.readouterr().err
    assert "Task: detect, because there are --boxes." in err
    assert "parts: 1 and 1 negative" in err and "<= optimum <=" in err and "on 2 objects in 2 images" in err
    model = mm.load(path)
    lines = [line for line in err.splitlines() if line.startswith("bound ")]
    assert len(lines) == len(model.history_) >= 2
    assert f"objective {model.history_[-1].objective:.6g}" in lines[-1]
    text = page.read_text()
    assert "average precision" in text and "negative parts" in text and "data-chart" in text
    assert text.count("data:image/jpeg") == 2
    # What is held out is the same next time: the certificate is proved again without it, and not with it.
    certify = ["certify", path, folder / "train", "--boxes", folder / "train.csv"]
    said, _ = answer(capsys, *certify, "--holdout", "0.25")
    assert said["proved"] and said["images"] == 7
    assert said["certificate"]["upper"] == pytest.approx(model.certificate_.upper, rel=1e-5)
    assert said["certificate"]["lower"] == pytest.approx(model.certificate_.lower, rel=1e-5)


def test_holding_out_depends_on_names_and_keeps_shares():
    images = [np.zeros((4, 4), np.uint8)] * 30
    given = annotated(images, [[0, 0, 4, 4] if i % 3 else None for i in range(30)])
    rest, held = split(given, 0.2)
    assert [len(rest), len(held)] == [24, 6]
    assert [sum(map(len, some.boxes)) for some in (rest, held)] == [16, 4]
    again = split(given, 0.2)
    assert [len(box) for box in held.boxes] == [len(box) for box in again[1].boxes]
    with pytest.raises(ValueError, match=r"0\.01 of 20 images with objects is 0: at least one must be held out"):
        split(given, 0.01)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--holdout", "1"], "must be a number between 0 and 1"),
        (["--holdout", "0.01"], "at least one must be held out"),
        (["--holdout", "0.5", "--test", "x"], "Leave one of them out"),
        (["--label", "squre"], "no boxes of the class 'squre'; it has square (8). Perhaps you meant 'square'."),
        (["--memory", "lots"], "--memory must be a number of bytes"),
        (["--report", "no/such/r.html"], "there is no folder no/such"),
        (["--test", "no-such-folder"], "no-such-folder"),
    ],
)
def test_what_has_no_meaning_is_refused(folder, tmp_path, capsys, options, said):
    path = tmp_path / "m.mm"
    assert said in complaint(capsys, *_train(folder, path, *options))
    assert not path.exists()


def test_boxes_that_cannot_be_learned_from_are_refused(folder, tmp_path, capsys):
    path, table = tmp_path / "m.mm", tmp_path / "b.csv"
    arguments = ["train", folder / "train", "--task", "detect", "-o", path]
    assert "--boxes is missing" in complaint(capsys, *arguments)
    table.write_text(f"{HEAD}\n0.png,1,1,40,40,square\n1.png,1,1,40,40,disc\n")
    assert "boxes of 2 classes" in (line := complaint(capsys, *arguments, "--boxes", table))
    assert "choose with --label '" in line
    table.write_text(f"{HEAD}\n0.png,,,,,\n")
    assert "There are no positives" in complaint(capsys, *arguments, "--boxes", table)
    table.write_text(f"{HEAD}\nelsewhere.png,1,1,40,40,square\n")
    assert "Name the folder of the images" in complaint(capsys, *arguments, "--boxes", table)
    assert "no.csv" in complaint(capsys, *arguments, "--boxes", tmp_path / "no.csv")
    assert not path.exists()


def test_tables_hold_what_the_detector_finds(folder, tmp_path, capsys):
    model, files = mm.load(folder / "squares.mm"), sorted(map(str, (folder / "test").glob("*.png")))
    assert main(["predict", f"{folder}/squares.mm", f"{folder}/test", "--threshold", "-0.5"]) == 0
    said = capsys.readouterr()
    rows = list(csv.DictReader(said.out.splitlines()))
    found = model.predict(files, threshold=-0.5)
    assert [row["image"] for row in rows] == [f for f, one in zip(files, found, strict=True) for _ in range(len(one))]
    boxes = np.array([[float(row[k]) for k in ("x_min", "y_min", "x_max", "y_max")] for row in rows])
    assert np.allclose(boxes, np.concatenate([one.boxes for one in found]), atol=0.006)
    assert np.allclose([float(row["score"]) for row in rows], np.concatenate([one.scores for one in found]), rtol=1e-5)
    assert {row["label"] for row in rows} == {"square"}
    assert f"{len(rows)} square found in 4 images" in said.err
    # The same by several threads, and with tabs.
    table = tmp_path / "b.tsv"
    arguments = ["predict", folder / "squares.mm", folder / "test", "--threshold", "-0.5", "--jobs", "2", "-o", table]
    counts, _ = answer(capsys, *arguments)
    assert table.read_text() == said.out.replace(",", "\t")
    assert (counts["objects"], counts["images"], counts["left_out"]) == (len(rows), 4, 0)
    # What was written can be learned from.
    (tmp_path / "b.csv").write_text(said.out)
    again = annotated(str(folder / "test"), str(tmp_path / "b.csv"))
    assert sum(map(len, again.boxes)) == len(rows)
    # COCO's results.
    answer(capsys, "predict", folder / "squares.mm", folder / "test", "-o", tmp_path / "b.json", "--most", "1")
    results = json.loads((tmp_path / "b.json").read_text())
    best = {f: one for f, one in zip(files, model.predict(files, most=1), strict=True) if len(one)}
    assert [one["file_name"] for one in results] == list(best)
    assert [one["image_id"] for one in results] == [0, 1, 2]
    for one in results:
        x0, y0, x1, y1 = best[one["file_name"]].boxes[0]
        assert np.allclose(one["bbox"], [x0, y0, x1 - x0, y1 - y0], atol=0.006)


def test_pictures_show_frames_where_objects_are(folder, tmp_path, capsys):
    picture = tmp_path / "found.jpg"
    arguments = ["predict", folder / "squares.mm", folder / "test" / "0.png"]
    said, _ = answer(capsys, *arguments, "-o", picture)
    assert said["objects"] >= 1 and said["output"] == str(picture)
    before = np.asarray(Image.open(folder / "test" / "0.png").convert("RGB"))
    after = Image.open(picture)
    assert after.size == (4 * 96, 4 * 96)  # small images are enlarged, so that scores can be read
    coloured = np.ptp(np.asarray(after).astype(int), axis=2) > 60
    assert np.ptp(before.astype(int), axis=2).max() == 0 and coloured.any()
    x0, _, x1, y1 = 4 * mm.load(folder / "squares.mm").detect(folder / "test" / "0.png").boxes[0]
    rows, columns = np.nonzero(coloured)
    assert abs(columns.min() - x0) < 6 and abs(columns.max() - x1) < 6 and abs(rows.max() - y1) < 6
    # A folder of pictures, which is made, with folders in it like those of the images.
    for name in ("a", "b"):
        (tmp_path / "in" / name).mkdir(parents=True)
        Image.open(folder / "test" / "0.png").save(tmp_path / "in" / name / "x.png")
    Image.open(folder / "test" / "1.png").save(tmp_path / "in" / "a" / "x.bmp")
    answer(capsys, "predict", folder / "squares.mm", tmp_path / "in", "-o", tmp_path / "out")
    written = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*"))
    assert written == ["a/x.bmp.png", "a/x.png.png", "b/x.png.png"]


def test_outputs_that_make_no_sense_are_refused(folder, tmp_path, capsys):
    image, test = folder / "test" / "0.png", folder / "test"
    for arguments, said in (
        ([test, "-o", tmp_path / "a.png"], "is one picture, and there are 4 images. Name a folder"),
        ([image, "-o", image], "would be overwritten"),
        ([test, "-o", test], "would be overwritten"),
        ([image, "-o", tmp_path / "a.xyz"], "Name a picture (.png, .jpg), a folder of them, a table"),
        ([image, "-o", tmp_path / "no" / "a.png"], "there is no folder"),
        ([image, "-o", tmp_path / "no" / "a"], "there is no folder"),
        ([image, "-o", tmp_path / "no" / "a.csv"], "there is no folder"),
        ([image, "--threshold", "nan"], "must be a number"),
        ([tmp_path / "no.png"], "no.png does not exist"),
    ):
        assert said in complaint(capsys, "predict", folder / "squares.mm", *arguments)
    assert "--scores is for" in complaint(capsys, "predict", folder / "squares.mm", image, "--scores")
    assert not list(tmp_path.iterdir())


def test_models_of_other_kinds_find_nothing(tmp_path, capsys, rng):
    mm.LinearSVC(random_state=0).fit(rng.normal(size=(20, 3)), np.arange(20) % 2).save(tmp_path / "m.mm")
    (tmp_path / "a.svm").write_text("1 1:0.5\n")
    line = complaint(capsys, "predict", tmp_path / "m.mm", tmp_path / "a.svm", "--threshold", "0")
    assert "--threshold is for --task detect" in line


def test_unreadable_images_are_named_and_the_others_go_on(folder, tmp_path, capsys):
    Image.open(folder / "test" / "0.png").save(tmp_path / "good.png")
    (tmp_path / "bad.png").write_bytes(b"no image")
    said, err = answer(capsys, "predict", folder / "squares.mm", tmp_path, "-o", tmp_path / "b.csv")
    assert (said["images"], said["left_out"]) == (1, 1)
    assert err.count("\n") == 1 and "warning: left out: " in err and "bad.png" in err
    line = complaint(capsys, "predict", folder / "squares.mm", tmp_path / "bad.png", "-o", tmp_path / "c.csv")
    assert "bad.png" in line and not (tmp_path / "c.csv").exists()
    (tmp_path / "good.png").write_bytes(b"")
    line = complaint(capsys, "predict", folder / "squares.mm", tmp_path, "-o", tmp_path / "c.csv")
    assert "None of the 2 images could be read" in line


def test_certify_and_report(folder, tmp_path, capsys):
    model, page = mm.load(folder / "squares.mm"), tmp_path / "r.html"
    certify = ["certify", folder / "squares.mm", folder / "train"]
    said, _ = answer(capsys, *certify, "--boxes", folder / "train.csv")
    assert said["proved"] and said["images"] == 9
    assert said["certificate"]["upper"] == pytest.approx(model.certificate_.upper, rel=1e-5)
    assert "--boxes is missing" in complaint(capsys, *certify)
    pytest.importorskip("matplotlib")
    report = ["report", folder / "squares.mm", folder / "test", "-o", page]
    said, _ = answer(capsys, *report, "--boxes", folder / "test.csv")
    assert said["test"]["value"] == model.score(folder / "test", folder / "test.csv")
    assert "average precision" in page.read_text() and "How training got there" in page.read_text()
    for what in ("filters of the detector", "precision and recall"):
        assert f'alt="{what}"' in page.read_text()
    answer(capsys, *report)
    text = page.read_text()
    assert "average precision" not in text and text.count("data:image/jpeg") == 4
    assert "as detect finds them" in text
    assert "The bounds are those of the last convex bound" in text
    assert "no --boxes" in complaint(capsys, *report, "--holdout", "0.5")


def test_the_method_reports_on_arrays_and_boxes(folder, tmp_path, rng):
    pytest.importorskip("matplotlib")
    model, (image, box) = mm.load(folder / "squares.mm"), _square(rng)
    text = model.report(tmp_path / "r.html", [image], [[box]], title="<b>", name="one image").read_text()
    assert f"average precision on one image</dt><dd>{100 * model.score([image], [[box]]):.1f} %" in text
    assert "&lt;b&gt;" in text and text.count("data:image/jpeg") == 1 and 'alt="image 0"' in text
    assert "average precision" not in model.report(tmp_path / "r.html", [image]).read_text()
    assert "What it finds" not in model.report(tmp_path / "r.html").read_text()


def test_interrupted_training_leaves_the_best_so_far_and_goes_on(folder, tmp_path, capsys, monkeypatch):
    fit = DeformablePartDetector.fit

    def interrupted(self, *data, **options):
        options["callbacks"] = (lambda record: signal.raise_signal(signal.SIGINT),)
        return fit(self, *data, **options)

    path = tmp_path / "m.mm"
    arguments = [*_train(folder, path, *SMALL), "--checkpoint", tmp_path / "saved", "--holdout", "0.25"]
    with monkeypatch.context() as patched:
        patched.setattr(DeformablePartDetector, "fit", interrupted)
        said, _ = answer(capsys, *arguments, status=130)
    assert said["interrupted"] and not said["converged"] and said["test"] is None
    assert len(mm.load(path).predict([folder / "test" / "0.png"])) == 1
    said, _ = answer(capsys, *arguments)
    assert said["converged"] and said["test"]["objects"] == 2

"""The command line, through ``main`` and through real processes: what is written, said and returned."""

import argparse
import gzip
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from commands import answer, complaint, interrupted
from sklearn.datasets import dump_svmlight_file, load_diabetes, load_digits

import maxmargin as mm
from maxmargin.cli import _parser, interrupts, main
from maxmargin.cli.files import check_writable
from maxmargin.cli.rows import guess_task
from maxmargin.protocols import Chunk


def run(*arguments):
    """The program as a user starts it."""
    command = [sys.executable, "-m", "maxmargin", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Digits as text (even ones for training), and a model of them."""
    place = tmp_path_factory.mktemp("cli")
    X, y = load_digits(return_X_y=True)
    X /= 16.0
    dump_svmlight_file(X[::2], y[::2], str(place / "train.svm"), zero_based=False)
    dump_svmlight_file(X[1::2], y[1::2], str(place / "test.svm"), zero_based=False)
    assert main(["train", f"{place}/train.svm", "-o", f"{place}/model.mm", "--C", "0.1", "--quiet"]) == 0
    return place


@pytest.fixture(scope="module")
def held_back():
    X, y = load_digits(return_X_y=True)
    return X[1::2] / 16.0, y[1::2]


# Training


def test_training_writes_a_model_a_report_and_one_json_object(folder, tmp_path, capsys):
    page, arguments = tmp_path / "r.html", ["train", folder / "train.svm", "-o", tmp_path / "m.mm", "--C", 0.1]
    said, err = answer(capsys, *arguments, "--test", folder / "test.svm", "--report", page)
    assert err == ""
    assert said["task"] == "classify" and said["task_guessed"] and said["converged"]
    assert (said["rows"], said["features"], said["classes"]) == (899, 64, 10)
    bounds = said["certificate"]
    assert 0.0 < bounds["lower"] <= bounds["upper"] and bounds["relative_gap"] <= said["tol"] == 1e-3
    assert said["passes"] >= 1 and said["seconds"] > 0.0 and said["peak_memory"] > 2**20
    assert said["test"]["score"] == "accuracy" and said["test"]["value"] > 0.9 and said["test"]["rows"] == 898
    model = mm.load(said["model"])
    assert model.C == 0.1 and model.certificate_.relative_gap == bounds["relative_gap"]
    assert said["report"] == str(page)
    assert "Answers on test data" in page.read_text() and "peak memory" in page.read_text()


def test_training_says_what_was_learned(folder, tmp_path, capsys):
    model = tmp_path / "my model.mm"
    assert main(["train", str(folder / "train.svm"), "-o", str(model), "--C", "0.1"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "Task: classify, because labels are 10 different whole numbers" in said.err
    assert "<= optimum <=" in said.err and "goal 0.001 reached" in said.err


def test_goal_that_is_missed_is_status_one_with_a_model(folder, tmp_path, capsys):
    path = tmp_path / "m.mm"
    arguments = ["train", folder / "train.svm", "-o", path, "--tol", 1e-12, "--max-passes", 2]
    said, _ = answer(capsys, *arguments, status=1)
    assert not said["converged"] and said["passes"] == 2
    assert mm.load(path).certificate_.relative_gap == pytest.approx(said["certificate"]["relative_gap"])
    assert main([*map(str, arguments)]) == 1
    assert "Stopped before the goal, after 2 passes" in capsys.readouterr().err


def test_progress_in_a_log_is_one_line_per_pass(folder, tmp_path, capsys):
    said, err = answer(capsys, "train", folder / "train.svm", "-o", tmp_path / "m.mm", "--progress")
    lines = err.splitlines()
    assert len(lines) == said["passes"] and all(line.startswith(f"pass {i + 1}, gap ") for i, line in enumerate(lines))
    assert f"gap {said['certificate']['relative_gap']:.1e}" in lines[-1]


def test_regression_from_the_command_line(tmp_path, capsys):
    X, y = load_diabetes(return_X_y=True)
    dump_svmlight_file(20 * X, y, str(tmp_path / "d.svm"), zero_based=False)
    arguments = ["train", tmp_path / "d.svm", "-o", tmp_path / "m.mm", "--epsilon", 5, "--test", tmp_path / "d.svm"]
    said, _ = answer(capsys, *arguments)
    assert said["task"] == "regress" and said["test"]["score"] == "R²"
    model = mm.load(tmp_path / "m.mm")
    assert model.epsilon == 5.0
    assert said["test"]["value"] == pytest.approx(model.score(20 * X, y), abs=1e-5)


def test_ranking_from_the_command_line(tmp_path, rng, capsys):
    X, group = rng.normal(size=(120, 5)), np.repeat(np.arange(12), 10)
    y = np.digitize(X @ rng.normal(size=5) + 0.3 * rng.normal(size=120), [-1.0, 1.0])
    dump_svmlight_file(X, y, str(tmp_path / "r.svm"), zero_based=False, query_id=group)
    said, _ = answer(capsys, "train", tmp_path / "r.svm", "-o", tmp_path / "m.mm", "--C", 0.1)
    assert said["task"] == "rank" and said["converged"]
    scored, _ = answer(capsys, "predict", tmp_path / "m.mm", tmp_path / "r.svm")
    model = mm.load(tmp_path / "m.mm")
    assert scored["value"] == pytest.approx(model.score(X, y, groups=group), abs=1e-3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--no-flips"], "--no-flips is for --task parts or detect, and this is --task classify"),
        (["--memory", "lots"], "--memory must be a number of bytes or text such as '512MB'"),
        (["--memory", "1kB"], "at least"),
        (["--C", "-1"], "--C must be greater than 0"),
        (["--tol", "nan"], "--tol: must be a number"),
        (["--jobs", "0"], "a whole number other than 0"),
        (["--max-passes", "0"], "--max-passes must be a whole number of at least 1"),
        (["--task", "clasify"], "invalid choice: 'clasify'"),
        (["--colour", "red"], "unrecognized arguments: --colour red"),
    ],
)
def test_wrong_options_are_refused_in_one_line(folder, tmp_path, capsys, options, said):
    path = tmp_path / "m.mm"
    assert said in complaint(capsys, "train", folder / "train.svm", "-o", path, *options)
    assert not path.exists()


def test_rows_that_cannot_be_read_are_refused_with_their_place_or_skipped_and_said(tmp_path, capsys):
    data = tmp_path / "bad.svm"
    data.write_text("1 1:0.5\n-1 1:-1.0\n1 1:abc\n-1 1:-2\n")
    line = complaint(capsys, "train", data, "-o", tmp_path / "m.mm")
    assert str(data) in line and "3" in line
    said, err = answer(capsys, "train", data, "-o", tmp_path / "m.mm", "--on-error", "skip")
    assert (said["rows"], said["skipped"]) == (3, 1)
    assert "maxmargin: warning: 1 row left out; the first: " in err and str(data) in err


def test_errors_name_what_is_missing(folder, tmp_path, capsys):
    assert "none.svm" in complaint(capsys, "train", tmp_path / "none.svm", "-o", tmp_path / "m.mm")
    assert "there is no folder" in complaint(capsys, "train", folder / "train.svm", "-o", tmp_path / "no" / "m.mm")
    assert "There is no model file" in complaint(capsys, "predict", tmp_path / "none.mm", folder / "test.svm")
    assert "not a model file" in complaint(capsys, "predict", folder / "test.svm", folder / "test.svm")
    assert "stdin" in complaint(capsys, "train", "-", "-o", tmp_path / "m.mm")
    assert "one class only" in complaint(capsys, "train", _one_class(tmp_path), "-o", tmp_path / "m.mm")


def _one_class(place):
    (place / "one.svm").write_text("1 1:0.5\n1 1:1.0\n")
    return place / "one.svm"


def test_models_that_are_trained_in_python_alone_have_a_page(folder, tmp_path, capsys):
    chain = mm.StructuralSVM(mm.models.Chain(), random_state=0).fit([np.eye(2)], [[0, 1]])
    chain.save(tmp_path / "chain.mm")
    assert "holds a StructuralSVM" in complaint(capsys, "predict", tmp_path / "chain.mm", folder / "test.svm")
    answer(capsys, "report", tmp_path / "chain.mm", "-o", tmp_path / "r.html")
    assert "How training got there" in (tmp_path / "r.html").read_text()


# Sequences, bags, several labels, clusters


def _written(place, name, rng):
    """A small file for each task, and what its model answers to it."""
    X, group = rng.normal(size=(60, 4)), np.repeat(np.arange(12), 5)
    path = place / f"{name}.svm"
    if name == "multilabel":
        path.write_text(
            "\n".join(",".join(str(k) for k in range(3) if x[k] > 0) + f" 1:{x[0]} 2:{x[1]} 3:{x[2]}" for x in X) + "\n"
        )
        return path
    y = {"sequence": 1 + (X[:, 0] > 0), "bags": np.repeat([0, 1], 30), "cluster": np.zeros(60)}[name]
    X[y == 1, 1] += 6.0 * (name == "bags")
    X += 20.0 * (np.arange(60) % 3)[:, None] * (name == "cluster")
    groups = {} if name == "cluster" else {"query_id": group}
    dump_svmlight_file(X, y, str(path), zero_based=False, **groups)
    return path


@pytest.mark.parametrize(
    ("task", "options", "unit", "count", "lines"),
    [
        ("sequence", ["--bias", "--allowed-transitions", "observed"], "sequences", 12, 60),
        ("multilabel", ["--edges", "none"], "rows", 60, 60),
        ("bags", ["--bound", "gmm"], "bags", 12, 12),
        ("cluster", ["--clusters", "3"], "rows", 60, 60),
    ],
)
def test_other_tasks_have_all_commands(tmp_path, rng, capsys, task, options, unit, count, lines):
    path, model, page = _written(tmp_path, task, rng), tmp_path / "m.mm", tmp_path / "r.html"
    said, _ = answer(capsys, "train", path, "--task", task, "-o", model, *options, "--test", path, "--report", page)
    assert said["task"] == task and said["converged"] and said[unit] == said["test"][unit] == count
    assert page.exists()
    assert main(["predict", str(model), str(path)]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == lines and f"{count} {unit} answered" in err
    if task == "cluster":
        assert len(set(out.splitlines())) == 3
        assert "no certificate to prove again" in complaint(capsys, "certify", model, path)
    else:
        assert said["test"]["value"] > 0.8
        proved, _ = answer(capsys, "certify", model, path)
        assert proved["proved"] and proved["certificate"]["lower"] == pytest.approx(said["certificate"]["lower"])
    answer(capsys, "report", model, path, "-o", page)


def test_groups_that_are_none_or_torn_are_refused(tmp_path, capsys):
    data, train = tmp_path / "x.svm", ["train", tmp_path / "x.svm", "-o", tmp_path / "m.mm", "--task"]
    data.write_text("1 1:1\n2 1:2\n")
    assert "The rows are in no groups" in complaint(capsys, *train, "sequence")
    data.write_text("1 qid:1 1:1\n2 qid:1 1:2\n")
    assert "Row 2 has another label" in complaint(capsys, *train, "bags")
    data.write_text("a,b 1:1\n")
    assert "line 1: the line begins with 'a,b'. Labels are whole numbers" in complaint(capsys, *train, "multilabel")
    data.write_text("# all\n\n1,12 1:1\n 2:1\n0 2:x\n")
    assert "x.svm, line 5, column 3: the value of '2:x'" in complaint(capsys, *train, "multilabel")
    data.write_text("inf,1 1:1\n")
    assert "Row 1 has the labels [inf, 1.0]" in complaint(capsys, *train, "multilabel")


@pytest.mark.parametrize("task", ["classify", "rank", "multilabel", "bags"])
def test_text_that_is_cut_short_and_features_that_cannot_be_are_refused(tmp_path, capsys, task):
    data = tmp_path / "x.svm.gz"
    data.write_bytes(gzip.compress(b"1 qid:1 1:1\n")[:-12])
    train = ["train", data, "-o", tmp_path / "m.mm", "--task", task]
    assert "x.svm.gz is broken gzip data" in complaint(capsys, *train)
    assert "--features must be a whole number of at least 1, not -1" in complaint(capsys, *train, "--features", "-1")


# Predicting


def test_predictions_are_those_of_the_model(folder, held_back, tmp_path, capsys):
    X, y = held_back
    expected = mm.load(folder / "model.mm").predict(X.astype(np.float32))
    assert main(["predict", str(folder / "model.mm"), str(folder / "test.svm")]) == 0
    said = capsys.readouterr()
    assert said.out.split("\n") == [*[str(int(label)) for label in expected], ""]
    assert f"Accuracy: {100 * np.mean(expected == y):.1f} %" in said.err
    out = tmp_path / "answers.txt"
    assert main(["predict", str(folder / "model.mm"), str(folder / "test.svm"), "-o", str(out)]) == 0
    assert out.read_text() == said.out
    assert capsys.readouterr().out == ""


def test_scores_are_the_decision_function(folder, held_back, capsys):
    main(["predict", str(folder / "model.mm"), str(folder / "test.svm"), "--scores"])
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    model = mm.load(folder / "model.mm")
    values = np.array([[float(v) for v in line[1:]] for line in lines])
    assert np.allclose(values, model.decision_function(held_back[0]), atol=1e-5)
    assert [float(line[0]) for line in lines] == model.classes_[values.argmax(axis=1)].tolist()


def test_more_features_than_the_model_knows_are_ignored_with_one_warning(folder, held_back, tmp_path, capsys):
    X, y = held_back
    wide = np.hstack([X, np.ones((len(X), 3))])
    dump_svmlight_file(wide, y, str(tmp_path / "wide.svm"), zero_based=False)
    said, err = answer(capsys, "predict", folder / "model.mm", tmp_path / "wide.svm")
    assert said["value"] == answer(capsys, "predict", folder / "model.mm", folder / "test.svm")[0]["value"]
    assert said["features_ignored"] == 3
    assert err.count("warning") == 1 and "3 of 67 features were not in the training data" in err


def test_fewer_features_than_the_model_knows_are_zero(folder, held_back, tmp_path, capsys):
    X, y = held_back
    dump_svmlight_file(X[:, :20], y, str(tmp_path / "narrow.svm"), zero_based=False)
    said, err = answer(capsys, "predict", folder / "model.mm", tmp_path / "narrow.svm")
    cut = np.where(np.arange(64) < 20, X, 0.0)
    assert said["value"] == pytest.approx(np.mean(mm.load(folder / "model.mm").predict(cut) == y), abs=2e-3)
    assert err == ""


def test_labels_not_met_in_training_count_as_wrong_and_are_said(folder, held_back, tmp_path, capsys):
    X, y = held_back
    y = y.copy()
    y[[4, 9]] = 42
    dump_svmlight_file(X, y, str(tmp_path / "odd.svm"), zero_based=False)
    said, err = answer(capsys, "predict", folder / "model.mm", tmp_path / "odd.svm")
    assert said["labels_unseen"] == 2 and said["rows"] == 898
    assert said["value"] == pytest.approx(np.mean(mm.load(folder / "model.mm").predict(X) == y), abs=2e-3)
    assert "2 rows have labels that were not in the training data" in err and "'42' in row 5" in err


def test_placeholder_labels_give_answers_and_no_score(folder, held_back, tmp_path, capsys):
    dump_svmlight_file(held_back[0], np.full(898, -7), str(tmp_path / "new.svm"), zero_based=False)
    assert main(["predict", str(folder / "model.mm"), str(tmp_path / "new.svm")]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 898
    assert "None of the labels was in the training data: no score." in said.err and "warning" not in said.err


def test_text_labels_stay_on_their_line(tmp_path, rng, capsys):
    X = rng.normal(size=(40, 2))
    labels = np.where(X[:, 0] > 0, "two\nlines", "tab\there")
    mm.LinearSVC(random_state=0).fit(X, labels).save(tmp_path / "t.mm")
    dump_svmlight_file(X, np.zeros(40), str(tmp_path / "x.svm"), zero_based=False)
    assert main(["predict", str(tmp_path / "t.mm"), str(tmp_path / "x.svm")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 40 and set(lines) == {"two\\nlines", "tab\\there"}


def test_answers_of_a_regression_are_its_scores(tmp_path, rng, capsys):
    X = rng.normal(size=(50, 3))
    mm.LinearSVR(random_state=0).fit(X, X @ [1.0, 2.0, 3.0]).save(tmp_path / "r.mm")
    dump_svmlight_file(X, np.zeros(50), str(tmp_path / "x.svm"), zero_based=False)
    assert "--scores is for --task" in complaint(capsys, "predict", tmp_path / "r.mm", tmp_path / "x.svm", "--scores")
    assert main(["predict", str(tmp_path / "r.mm"), str(tmp_path / "x.svm")]) == 0
    said = capsys.readouterr()
    answers = np.array([float(line) for line in said.out.splitlines()])
    assert np.allclose(answers, mm.load(tmp_path / "r.mm").predict(X), atol=1e-5)
    assert "All labels are the same: no score." in said.err


# Certificates, shards, reports


def test_certify_proves_again_on_the_training_data_alone(folder, capsys):
    said, _ = answer(capsys, "certify", folder / "model.mm", folder / "train.svm")
    kept = mm.load(folder / "model.mm").certificate_
    assert said["proved"] and said["certificate"]["upper"] == pytest.approx(kept.upper, rel=1e-5)
    said, _ = answer(capsys, "certify", folder / "model.mm", folder / "test.svm", status=1)
    assert not said["proved"] and said["certificate"]["relative_gap"] > 0.1


def test_converted_data_trains_and_predicts(folder, tmp_path, capsys):
    arguments = ["convert", folder / "train.svm", tmp_path / "shards", "--memory", "64MB", "--jobs", -1]
    said, _ = answer(capsys, *arguments)
    assert (said["rows"], said["features"], said["shuffled"]) == (899, 64, True)
    assert "shards" in complaint(capsys, "convert", folder / "train.svm", tmp_path / "shards")
    arguments = ["convert", folder / "train.svm", tmp_path / "shards", "--overwrite", "--no-shuffle"]
    assert not answer(capsys, *arguments)[0]["shuffled"]
    path = tmp_path / "m.mm"
    trained, _ = answer(capsys, "train", tmp_path / "shards", "-o", path, "--C", 0.1, "--jobs", 2)
    assert trained["converged"] and trained["rows"] == 899
    kept = mm.load(folder / "model.mm").certificate_
    assert trained["certificate"]["upper"] == pytest.approx(kept.upper, rel=2e-3)
    assert answer(capsys, "predict", path, tmp_path / "shards")[0]["value"] > 0.95


def test_report_of_a_model_with_and_without_data(folder, tmp_path, capsys):
    page = tmp_path / "r.html"
    assert main(["report", str(folder / "model.mm"), "-o", str(page)]) == 0
    assert "Answers on" not in page.read_text()
    arguments = ["report", str(folder / "model.mm"), str(folder / "test.svm"), "-o", str(page), "--title", "A <b> C"]
    assert main(arguments) == 0
    assert f"Report: {page}" in capsys.readouterr().err
    text = page.read_text()
    assert "Answers on" in text and "A &lt;b&gt; C" in text


def test_training_says_whether_it_goes_on(folder, tmp_path, capsys):
    arguments = ["train", f"{folder}/train.svm", "-o", f"{tmp_path}/m.mm", "--checkpoint", f"{tmp_path}/run"]
    assert main(arguments) == 0
    assert f"nothing is saved in {tmp_path}/run yet, training begins anew" in capsys.readouterr().err
    assert main(arguments) == 0
    assert f"going on from what was saved in {tmp_path}/run at " in capsys.readouterr().err


def test_batches_of_a_conversion_have_the_size_asked_for(folder, tmp_path, capsys):
    for name, size in (("few", "4MB"), ("many", "8kB")):
        answer(capsys, "convert", folder / "train.svm", tmp_path / name, "--batch-size", size)
    few, many = (len(mm.data.open(tmp_path / name).offsets) for name in ("few", "many"))
    assert few == 2 < many


# Help, interrupts, pipes


def test_every_command_has_help_with_examples(capsys):
    for command in ("train", "predict", "certify", "convert", "report"):
        assert main([command, "--help"]) == 0
        said = capsys.readouterr().out
        assert f"usage: maxmargin {command} " in said
        assert said.count(f"  maxmargin {command}") >= 2 and "exit status: 0" in said


def test_help_is_whole_for_whoever_asks_a_parser_for_it():
    """As the reference of the site does."""
    (commands,) = (action for action in _parser()._actions if isinstance(action, argparse._SubParsersAction))
    for command, parser in commands.choices.items():
        said = parser.format_help()
        assert f"usage: maxmargin {command} " in said and "exit status: 0" in said and "--debug" in said


def test_version_and_no_command(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"maxmargin {mm.__version__}\n"
    assert main([]) == 2
    assert "maxmargin train" in capsys.readouterr().err


def test_help_needs_no_heavy_library():
    code = (
        "import sys; from maxmargin.cli import main; main(['train', '--help']); print([m for m in ('numba', 'sklearn', "
    )
    code += "'scipy', 'rich', 'pyarrow') if m in sys.modules])"
    whole = (
        "import sys; from maxmargin.cli import main; main(['--help']); print([m for m in sys.modules if m.startswith("
    )
    for text in (code, whole + "('maxmargin.vision', 'maxmargin.clustering'))])"):
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.splitlines()[-1] == "[]"


def test_interrupt_outside_of_training_ends_the_program(folder, monkeypatch, capsys):
    def pressed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(mm.LinearSVC, "certify", pressed)
    assert "interrupted" in complaint(capsys, "certify", folder / "model.mm", folder / "train.svm", status=130)


def test_interrupts_are_remembered_and_handed_on():
    before = signal.getsignal(signal.SIGINT)
    with interrupts() as seen, pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert seen == [True]
    assert signal.getsignal(signal.SIGINT) is before


def test_faults_are_one_line_unless_debugged(folder, monkeypatch, capsys):
    def broken(*_, **__):
        raise TypeError("oh no")

    monkeypatch.setattr(mm.LinearSVC, "certify", broken)
    arguments = ["certify", str(folder / "model.mm"), str(folder / "train.svm")]
    assert "TypeError: oh no. This is a fault of maxmargin" in complaint(capsys, *arguments, status=3)
    assert main([*arguments, "--debug"]) == 3
    assert "Traceback" in capsys.readouterr().err


def test_the_program_itself(folder, tmp_path):
    done = run("train", folder / "train.svm", "-o", tmp_path / "m.mm", "--json", "--C", 0.1)
    assert done.returncode == 0 and json.loads(done.stdout)["converged"] and done.stderr == ""
    done = run("train", tmp_path / "none.svm", "-o", tmp_path / "m.mm")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("maxmargin: error: ") and done.stderr.count("\n") == 1


def test_a_reader_that_leaves_early_is_no_error(folder, held_back, tmp_path):
    X, y = held_back
    dump_svmlight_file(np.vstack([X] * 30), np.hstack([y] * 30), str(tmp_path / "long.svm"), zero_based=False)
    command = [sys.executable, "-m", "maxmargin", "predict", str(folder / "model.mm"), str(tmp_path / "long.svm")]
    with subprocess.Popen([*command, "--scores"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=120) == 0


def test_ctrl_c_reaches_the_program_and_leaves_the_best_model_so_far(folder, tmp_path):
    page = tmp_path / "r.html"
    said, _ = interrupted("train", folder / "train.svm", "-o", tmp_path / "m.mm", "--report", page)
    assert said["passes"] == 1 and not said["converged"]
    assert said["report"] is None and not page.exists()


# Guessing the task, and files


class Labels:
    def __init__(self, y, group=None):
        self.y, self.group = np.asarray(y), group

    def chunks(self, order=None):
        for begin in range(0, self.y.size, 50):
            y = self.y[begin : begin + 50]
            yield Chunk(np.arange(begin, begin + y.size), None, y, self.group)


@pytest.mark.parametrize(
    ("y", "task"),
    [
        ([-1.0, 1.0, 1.0], "classify"),
        (["spam", "ham"], "classify"),
        ([0.5, 1.0], "regress"),
        (np.arange(10), "classify"),
        (np.arange(11), "regress"),
        (np.repeat(np.arange(100), 5), "classify"),
        (np.repeat(np.arange(100), 4), "regress"),
        (np.repeat(np.arange(1001), 10), "regress"),
        ([1.0, np.nan], "regress"),
        (np.append(np.zeros(200), 0.5), "regress"),
    ],
)
def test_tasks_are_guessed_from_labels(y, task):
    assert guess_task(Labels(y)).task == task
    assert guess_task(Labels(y, np.zeros(len(y)))).task == "rank"  # nothing else has groups


def test_places_that_cannot_be_written_are_found_out_at_once(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_writable(str(tmp_path))
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        check_writable(str(tmp_path / "no" / "x"))
    check_writable(str(tmp_path / "x"))
    assert os.listdir(tmp_path) == []

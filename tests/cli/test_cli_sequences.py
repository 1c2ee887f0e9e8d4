"""Taggers in the shell: from CoNLL files to tuned, calibrated models, and from text to labels."""

import json
import os
import signal
from itertools import pairwise

import pytest
from commands import answer, complaint

import maxmargin as mm
from maxmargin.cli import main
from maxmargin.data import read_conll

SENTENCES = [
    "Ada/B-PER Lovelace/I-PER flew/O to/O New/B-LOC York/I-LOC",
    "Grace/B-PER Hopper/I-PER met/O Ada/B-PER Lovelace/I-PER in/O Rome/B-LOC",
    "In/O Rome/B-LOC ,/O Grace/B-PER slept/O",
    "She/O left/O New/B-LOC York/I-LOC",
    "Ada/B-PER likes/O rain/O",
    "The/O train/O to/O Rome/B-LOC left/O",
]
TAGS = {"O": "X", "B-PER": "NNP", "I-PER": "NNP", "B-LOC": "NNP", "I-LOC": "NNP"}


def written(path, sentences, columns="{word} {tag} {label}"):
    lines = []
    for sentence in sentences:
        for pair in sentence.split():
            word, label = pair.rsplit("/", 1)
            lines.append(columns.format(word=word, tag=TAGS[label], label=label))
        lines.append("")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of all kinds, and a calibrated model of the first and the last of three columns."""
    place = tmp_path_factory.mktemp("tagging")
    written(place / "train.conll", SENTENCES * 4)
    written(place / "dev.conll", SENTENCES[:4])
    written(place / "words.txt", SENTENCES, "{word}")
    (place / "new.txt").write_text("Ada flew to Rome\n\nGrace met Ada in New York")
    model = ["-o", f"{place}/ner.mm", "--columns", "0,-1", "--segments", "iob2", "--dev", f"{place}/dev.conll"]
    assert main(["train", f"{place}/train.conll", *model, "--calibrate", "--quiet"]) == 0
    return place


def test_a_tagger_from_a_conll_file(folder, tmp_path, capsys):
    page = tmp_path / "r.html"
    said, err = answer(
        capsys, "train", folder / "train.conll", "-o", tmp_path / "m.mm", "--segments", "iob2", "--window", 1,
        "--affixes", 2, "--no-shape", "--no-pairs", "--dev", folder / "dev.conll", "--tune", "C", "--grid", "0.1,0.5,1",
        "--calibrate", "--report", page, "--test", folder / "dev.conll",
    )  # fmt: skip
    assert err == ""
    assert said["task"] == "sequence" and said["task_guessed"] and said["converged"]
    assert (said["sequences"], said["classes"]) == (24, 5)
    assert said["dev"]["score"] == said["test"]["score"] == "F1 of segments"
    assert said["dev"]["value"] == said["test"]["value"]
    scores = {step["C"]: step["score"] for step in said["tuned"]}
    assert said["columns"] == [0, 1, 2]
    assert next(iter(scores)) == 0.1 and said["C"] == max(scores, key=scores.get)
    model = mm.load(tmp_path / "m.mm")
    assert said["C"] == model.C
    assert said["temperature"] == model.temperature_
    templates = model.features.get_params()
    assert (templates["window"], templates["affixes"], templates["shape"], templates["pairs"]) == (1, 2, False, False)
    assert templates["lowercase"] and not model.warm_start
    X, Y = read_conll(folder / "dev.conll")
    assert model.score(X, Y) == said["dev"]["value"]
    assert page.exists()


def test_a_path_ends_where_the_development_data_gets_worse(folder, tmp_path, capsys):
    grid = [0.001 * 2**k for k in range(12)]
    said, _ = answer(
        capsys, "train", folder / "train.conll", "-o", tmp_path / "m.mm", "--tune", "C", "--dev", folder / "dev.conll",
        "--grid", ",".join(map(str, grid)),
    )  # fmt: skip
    scores = [step["score"] for step in said["tuned"]]
    assert [step["C"] for step in said["tuned"]] == grid[: len(scores)]
    best = scores.index(max(scores))
    assert said["C"] == grid[best] and len(scores) == min(best + 3, len(grid))


def test_labels_of_segments_are_noticed(folder, tmp_path, capsys):
    for options, noticed in (([], True), (["--segments", "iob2"], False), (["--columns", "0,1"], False)):
        assert main(["train", str(folder / "train.conll"), "-o", str(tmp_path / "m.mm"), *options]) == 0
        assert ("Labels spell segments: --segments iob2" in capsys.readouterr().err) == noticed


def test_columns_of_universal_files_keep_their_names(tmp_path, capsys):
    path = written(tmp_path / "u.conllu", SENTENCES, "1\t{word}\t_\t{label}\t{tag}\t_\t_\t_\t_\t_")
    assert main(["train", str(path), "-o", str(tmp_path / "m.mm")]) == 0
    assert "  FORM; labels: UPOS\n" in capsys.readouterr().err
    assert main(["train", str(path), "-o", str(tmp_path / "m.mm"), "--columns", "FORM,XPOS,UPOS"]) == 0
    assert "  FORM, XPOS; labels: UPOS\n" in capsys.readouterr().err
    names = mm.load(tmp_path / "m.mm").feature_names_
    assert "XPOS[0]=NNP" in names and "word[0]=ada" in names
    assert main(["predict", str(tmp_path / "m.mm"), str(path), "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("Ada\tNNP\tB-PER\tB-PER\n")


@pytest.mark.parametrize("name", ["train.txt", "eng.testa", "train.tsv"])
def test_files_of_tokens_are_known_by_what_is_in_them(tmp_path, capsys, name):
    path = written(
        tmp_path / name, SENTENCES, "{word}\t{tag}\t{label}" if name == "train.tsv" else "{word} {tag} {label}"
    )
    for more in ([], ["--memory", "100MB"]):
        assert main(["train", str(path), "-o", str(tmp_path / "m.mm"), *more]) == 0
        assert f"Task: sequence, because {name} has a token per line" in capsys.readouterr().err
    assert main(["predict", str(tmp_path / "m.mm"), str(path)]) == 0
    assert "6 sentences answered. Accuracy of labels" in capsys.readouterr().err


def test_development_data_is_what_a_report_is_about(folder, tmp_path, capsys):
    page = tmp_path / "r.html"
    arguments = ["train", folder / "train.conll", "-o", tmp_path / "m.mm", "--dev", folder / "dev.conll"]
    answer(capsys, *arguments, "--report", page)
    assert "development data (dev.conll)" in page.read_text()
    assert main([*map(str, arguments)]) == 0
    err = capsys.readouterr().err
    assert "Task: sequence, because DATA is in CoNLL files." in err and "dev accuracy of labels" in err


def test_predictions_are_a_conll_file(folder, tmp_path, capsys):
    said, _ = answer(capsys, "predict", folder / "ner.mm", folder / "dev.conll", "-o", tmp_path / "found.conll")
    model = mm.load(folder / "ner.mm")
    X, Y = read_conll(folder / "dev.conll", [0, -1])
    rows, found = read_conll(tmp_path / "found.conll")
    assert found == model.predict(X).tolist()
    assert rows == [list(zip(x, y, strict=True)) for x, y in zip(X, Y, strict=True)]
    assert said["score"] == "F1 of segments" and said["value"] == pytest.approx(model.score(X, Y))
    assert (said["sequences"], said["tokens"]) == (4, sum(map(len, X)))
    table = model.segment_scores(X, Y)
    assert said["segments"]["PER"] == table.by_type["PER"]._asdict()
    assert (
        main(["predict", str(folder / "ner.mm"), str(folder / "dev.conll"), "-o", str(tmp_path / "again.conll")]) == 0
    )
    assert str(table) in capsys.readouterr().err
    # Without labels the same words get the same answers. The last column may be taken for the label: --columns says.
    for form, options in (("{word}", []), ("{word} {tag}", ["--columns", "0"])):
        bare = written(tmp_path / "bare.conll", SENTENCES[:4], form)
        scored, _ = answer(capsys, "predict", folder / "ner.mm", bare, *options, "-o", tmp_path / "a.conll")
        assert scored["value"] is None
        assert read_conll(tmp_path / "a.conll") == (X, found)


def test_text_is_one_sentence_per_line_and_words_may_be(folder, capsys):
    assert main(["predict", str(folder / "ner.mm"), str(folder / "new.txt")]) == 0
    said = capsys.readouterr()
    assert "Reading new.txt as one sentence per line (--format says otherwise)." in said.err
    assert "3 sentences answered." in said.err
    model = mm.load(folder / "ner.mm")
    words = [line.split() for line in (folder / "new.txt").read_text().splitlines()]
    blocks = [block.splitlines() for block in said.out.split("\n\n")]
    pairs = [[tuple(line.split("\t")) for line in block if line] for block in blocks]
    expected = [list(zip(x, y, strict=True)) for x, y in zip(words, model.predict(words), strict=True) if x]
    assert [block for block in pairs if block] == expected
    assert main(["predict", str(folder / "ner.mm"), str(folder / "words.txt")]) == 0
    said = capsys.readouterr()
    assert "as one token per line" in said.err and "6 sentences answered." in said.err
    assert main(["predict", str(folder / "ner.mm"), str(folder / "words.txt"), "--format", "text", "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("Ada\tB-PER\n\nLovelace\t")


@pytest.mark.parametrize("name", ["new.txt", "dev.conll"])
def test_stdin_is_tagged_as_a_file_is(folder, capsys, monkeypatch, name):
    form = "text" if name == "new.txt" else "conll"
    assert main(["predict", str(folder / "ner.mm"), str(folder / name)]) == 0
    said = capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", (folder / name).open())
    assert main(["predict", str(folder / "ner.mm"), "-", "--format", form]) == 0
    assert capsys.readouterr().out == said


def test_several_labellings_and_probabilities(folder, tmp_path, capsys):
    arguments = ["predict", folder / "ner.mm", folder / "new.txt", "-o", tmp_path / "found.conll", "--k-best", 3]
    answer(capsys, *arguments, "--marginals")
    model = mm.load(folder / "ner.mm")
    lines = (tmp_path / "found.conll").read_text().splitlines()
    heads = [line for line in lines if line.startswith("#")]
    words = [line.split() for line in (folder / "new.txt").read_text().splitlines()]
    found = [model.k_best(x, 3) for x in words]
    likely = [model.sequence_proba([x] * len(best), [y for y, _ in best]) for x, best in zip(words, found, strict=True)]
    assert heads == [
        f"# sentence {i + 1}, labelling {rank + 1} of {len(ranked)}, score {score:.6g}, probability {p:.4f}"
        for i, ranked in enumerate(found)
        for rank, ((_, score), p) in enumerate(zip(ranked, likely[i], strict=True))
    ]
    told = [line.split("\t") for line in lines if line and line[0] != "#"]
    expected = [
        [word, label, f"{share[label]:.4f}"]
        for x, ranked in zip(words, found, strict=True)
        for labels, _ in ranked
        for word, label, share in zip(x, labels, model.predict_marginals_single(x), strict=True)
    ]
    assert told == expected


def test_answers_keep_to_the_scheme(folder, capsys):
    assert main(["predict", str(folder / "ner.mm"), str(folder / "new.txt"), "--k-best", "20", "--quiet"]) == 0
    for block in capsys.readouterr().out.split("\n\n"):
        labels = ["O", *(line.split("\t")[-1] for line in block.splitlines() if line and line[0] != "#")]
        for before, label in pairwise(labels):
            assert not label.startswith("I-") or before in (label, "B" + label[1:])


def test_certify_and_report_read_what_training_read(folder, tmp_path, capsys):
    proved, _ = answer(capsys, "certify", folder / "ner.mm", folder / "train.conll")
    assert proved["proved"] and proved["sequences"] == 24
    answer(capsys, "report", folder / "ner.mm", folder / "dev.conll", "-o", tmp_path / "r.html")
    assert "Which label follows which" in (tmp_path / "r.html").read_text()


def test_a_file_is_streamed_where_memory_is_bounded(folder, tmp_path, capsys):
    said, _ = answer(
        capsys, "train", folder / "train.conll", "-o", tmp_path / "m.mm", "--segments", "iob2", "--memory", "8MB",
        "--columns", "0,-1", "--tune", "C", "--grid", "0.5,1", "--dev", folder / "dev.conll", "--report",
        tmp_path / "r.html",
    )  # fmt: skip
    assert said["sequences"] == 24 and said["converged"]
    proved, _ = answer(capsys, "certify", tmp_path / "m.mm", folder / "train.conll")
    assert proved["certificate"]["lower"] <= said["certificate"]["upper"]
    assert said["certificate"]["lower"] <= proved["certificate"]["upper"]


def test_gazetteers_are_files_of_phrases(folder, tmp_path, capsys):
    (tmp_path / "cities.txt").write_text("Rome\nNew York\n")
    arguments = ["--gazetteers", tmp_path / "cities.txt", "--columns", "0,-1", "--no-lowercase"]
    answer(capsys, "train", folder / "train.conll", "-o", tmp_path / "m.mm", *arguments)
    model = mm.load(tmp_path / "m.mm")
    assert model.features.gazetteers == {"cities": ["Rome", "New York"]} and not model.features.lowercase
    assert "in:cities=B" in model.feature_names_


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tune", "C"], "--tune needs development data"),
        (["--calibrate"], "--calibrate needs development data"),
        (["--calibrate", "--dev", "DEV", "--order", "2"], "--calibrate is for --order 1"),
        (["--grid", "1,2"], "--grid has the values that --tune tries"),
        (["--tune", "C", "--dev", "DEV", "--checkpoint", "run"], "Leave one of them out"),
        (["--tune", "C", "--dev", "DEV", "--grid", "2,1"], "--grid must be ascending"),
        (["--tune", "tol"], "invalid choice: 'tol'"),
        (["--grid", "1,x"], "must be numbers with commas"),
        (["--window", "-1"], "window must be"),
        (["--columns", "0,FORN"], "--columns must be whole numbers, or in CoNLL-U of ID, FORM"),
        (["--columns", "0"], "--columns must name the columns of the tokens"),
        (["--columns", "0,9"], "column 9 was asked for. --columns must"),
        (["--columns", "0,2,-1"], "column -1, the label, is to be a column of the tokens, too"),
        (["--encoding", "utf-16"], "--encoding must be one that keeps ASCII"),
        (["--dev", "missing.conll"], "missing.conll"),
        (["--label", "x"], "--label is for rows of numbers"),
        (["--on-error", "skip"], "--on-error is for rows of numbers"),
        (["--seed", "-1"], "--seed must be"),
    ],
)
def test_wrong_options_are_refused_in_one_line(folder, tmp_path, capsys, options, said):
    options = [str(folder / "dev.conll") if option == "DEV" else option for option in options]
    line = complaint(capsys, "train", folder / "train.conll", "-o", tmp_path / "m.mm", "--columns", "0,-1", *options)
    assert said in line


def test_options_of_tokens_are_refused_for_rows(tmp_path, capsys):
    data = tmp_path / "x.txt"
    data.write_text("1 qid:1 1:1\n2 qid:1 1:2\n1 qid:2 1:1\n")
    train = ["train", data, "-o", tmp_path / "m.mm", "--task", "sequence"]
    assert "--window is for CoNLL files, and x.txt has rows of numbers" in complaint(capsys, *train, "--window", 1)
    said, _ = answer(capsys, *train, "--dev", data, "--tune", "C", "--grid", "1,2")
    assert said["sequences"] == 2 and said["features"] == 1
    line = complaint(capsys, "predict", tmp_path / "m.mm", data, "--k-best", 2)
    assert "--k-best and --marginals are for models of CoNLL files" in line


def test_text_is_refused_where_a_model_needs_more_columns(folder, tmp_path, capsys):
    answer(capsys, "train", folder / "train.conll", "-o", tmp_path / "m.mm")
    line = complaint(capsys, "predict", tmp_path / "m.mm", folder / "new.txt")
    assert "was trained on tokens of 2 columns" in line
    assert "is not calibrated" in complaint(capsys, "predict", tmp_path / "m.mm", folder / "dev.conll", "--marginals")
    assert "--k-best" in complaint(capsys, "predict", tmp_path / "m.mm", folder / "dev.conll", "--k-best", 0)


def test_models_from_python_are_used_in_the_shell(folder, tmp_path, capsys):
    X, Y = read_conll(folder / "train.conll", [0, -1])
    tagger = mm.SequenceSVM(features=mm.features.TokenFeatures(window=1), random_state=0).fit(X, Y)
    tagger.save(tmp_path / "m.mm")
    assert main(["predict", str(tmp_path / "m.mm"), str(folder / "new.txt"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sequences"] == 3
    said, _ = answer(capsys, "certify", tmp_path / "m.mm", folder / "train.conll", "--columns", "0,-1")
    assert said["proved"]


BAD = {
    "too few columns": (b"Ada X B-PER\nflew X\n", 2, "has 2 columns, the lines before have 3"),
    "latin-1": ("Ada X B-PER\nG\xf6del X B-PER\n".encode("latin-1"), 2, "is not UTF-8 text"),
    "UTF-16": ("Ada X B-PER\n".encode("utf-16"), 1, "is UTF-16 text"),
    "UTF-16 without a mark": ("Ada X B-PER\n".encode("utf-16-le"), 1, "a byte that is zero"),
    "an empty file": (b"", None, "has no tokens"),
    "two files of different columns": (b"Ada B-PER\nflew O\n", 1, "has 2 columns, "),
    "carriage returns": (b"Ada X B-PER\rflew X O\r", 1, "has a carriage return inside"),
    "no label": (b"Ada X B-PER\nflew\tX\t\n".replace(b" ", b"\t"), 2, "has nothing in column 2"),
    "only comments": (b"# Ada\n# flew\n", None, "has no tokens"),
    "10 MB": (b"Ada X B-PER\n" + b"x" * (10 << 20) + b" X O\n", 2, "characters, more than"),
    "an unknown label": (b"\n\n\nAda X B-PER\n\nflew X O\nto X B-GPE\n", 7, "'B-GPE'"),
    "against the scheme": (b"Ada X B-PER\nflew X O\nRome X I-LOC\n", 3, "I-LOC"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_one_line_with_file_and_line(folder, tmp_path, capsys, name):
    content, line, said = BAD[name]
    bad = tmp_path / "bad.conll"
    bad.write_bytes(content)
    calls = {
        "certify": ["certify", folder / "ner.mm", bad],
        "train": ["train", bad, "-o", tmp_path / "m.mm", "--segments", "iob2"],
        "dev": ["train", folder / "train.conll", "-o", tmp_path / "m.mm", "--dev", bad, "--calibrate"],
    }
    if name == "an unknown label":
        del calls["train"]
    if name == "two files of different columns":
        calls = {"dev": calls["dev"], "train": ["train", folder / "train.conll", bad, "-o", tmp_path / "m.mm"]}
    if name == "no label":
        del calls["certify"]
    if name == "against the scheme":
        del calls["dev"], calls["certify"]
    for arguments in calls.values():
        told = complaint(capsys, *arguments)
        assert said in told
        assert not (tmp_path / "m.mm").exists(), "said before training"
        assert (f"bad.conll, line {line}" if line else "bad.conll") in told
        assert len(told) < 1000


def test_labels_of_no_scheme_are_named_with_file_and_line_before_answers(folder, tmp_path, capsys):
    """A column that is no label of segments is seen before it is compared with answers, or trained for."""
    bad = written(tmp_path / "bad.conll", SENTENCES[:2], "{word} {tag} {tag}")
    calls = [
        ["predict", folder / "ner.mm", bad],
        ["report", folder / "ner.mm", bad, "-o", tmp_path / "r.html"],
        ["train", folder / "train.conll", "-o", tmp_path / "m.mm", "--segments", "iob2", "--dev", bad],
        ["train", folder / "train.conll", "-o", tmp_path / "m.mm", "--segments", "iob2", "--test", bad],
    ]
    for arguments in calls:
        told = complaint(capsys, *arguments)
        assert "bad.conll, line 1: Y[0] has the label 'NNP' at token 0, which says nothing of segments" in told
        assert not (tmp_path / "m.mm").exists()


def test_what_was_trained_is_written_where_calibration_fails_or_is_interrupted(folder, tmp_path, capsys, monkeypatch):
    model = tmp_path / "m.mm"
    dev = tmp_path / "dev.conll"
    dev.write_text((folder / "dev.conll").read_text() + "Rome NNP B-GPE\n")
    streamed = ["train", folder / "train.conll", "-o", model, "--memory", "8MB", "--dev", dev, "--calibrate"]
    told = complaint(capsys, *streamed)
    assert "'B-GPE'" in told and "m.mm, not calibrated" in told
    assert mm.load(model).n_passes_ > 0 and not hasattr(mm.load(model), "temperature_")

    model.unlink()
    monkeypatch.setattr(mm.SequenceSVM, "calibrate", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    good = ["--dev", folder / "dev.conll"]
    said, _ = answer(capsys, "train", folder / "train.conll", "-o", model, *good, "--calibrate", status=130)
    assert said["interrupted"] and said["temperature"] is None
    assert mm.load(model).n_passes_ > 0

    score, looks = mm.SequenceSVM.score, []

    def second_look(self, *data):
        looks.append(self.C)
        if len(looks) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return score(self, *data)

    monkeypatch.setattr(mm.SequenceSVM, "score", second_look)
    tune = ["--tune", "C", "--grid", "0.1,0.5,1"]
    said, _ = answer(capsys, "train", folder / "train.conll", "-o", model, *good, *tune, status=130)
    assert said["interrupted"] and said["C"] == mm.load(model).C == 0.1 and looks[:2] == [0.1, 0.5]


def test_what_was_learned_is_written_where_the_file_is_changed_meanwhile(folder, tmp_path, capsys, monkeypatch):
    data, model = tmp_path / "train.conll", tmp_path / "m.mm"
    text = (folder / "train.conll").read_text() * 12  # more than one chunk
    fit = mm.SequenceSVM.fit

    def changing(self, *given, **options):
        def change(record):
            data.write_text(text + "Ada X\n")

        return fit(self, *given, **options, callbacks=[change])

    monkeypatch.setattr(mm.SequenceSVM, "fit", changing)
    data.write_text(text)
    told = complaint(capsys, "train", data, "-o", model, "--memory", "8MB", "--tol", "1e-12")
    assert "train.conll, line" in told and "has 2 columns" in told and "What was learned until then is in" in told
    found = mm.load(model)
    assert found.n_passes_ >= 1 and found.origin_["columns"] == [0, 1, 2]


def test_no_input_is_overwritten(folder, capsys):
    for name in ("--dev", "--gazetteers"):
        told = complaint(
            capsys, "train", folder / "train.conll", "-o", folder / "dev.conll", name, folder / "dev.conll"
        )
        assert "dev.conll would be overwritten" in told
    read_conll(folder / "dev.conll")


def test_rows_and_sentences_are_told_apart(folder, tmp_path, capsys):
    rows = tmp_path / "rows.svm"
    rows.write_text("1 1:1\n-1 2:1\n1 1:2\n")
    answer(capsys, "train", rows, "-o", tmp_path / "rows.mm", "--task", "classify")
    for command in ("predict", "certify"):
        told = complaint(capsys, command, tmp_path / "rows.mm", folder / "dev.conll")
        assert "dev.conll is a CoNLL file, whose sentences are for taggers" in told
    for task in ("classify", "bags", "multilabel", "cluster"):
        told = complaint(capsys, "train", folder / "train.conll", "-o", tmp_path / "m.mm", "--task", task)
        assert "train.conll is a CoNLL file, whose sentences are for taggers" in told
    for arguments in (
        ["predict", folder / "ner.mm", rows],
        ["certify", folder / "ner.mm", rows],
        ["train", folder / "train.conll", "-o", tmp_path / "m.mm", "--dev", rows],
    ):
        assert "rows.svm has rows of numbers by its name" in complaint(capsys, *arguments)
    told = complaint(capsys, "predict", folder / "ner.mm", folder / "dev.conll", "--label", "x")
    assert "--label is for rows of numbers" in told
    told = complaint(capsys, "predict", folder / "ner.mm", folder / "dev.conll", "--format", "xml")
    assert "invalid choice: 'xml'" in told


def test_a_model_of_universal_dependencies_reads_their_columns(tmp_path, capsys):
    rows = ["1\tva\tir\tVERB\t_\t_\t0\troot\t_\t_", "2\tal\tal\tADP\t_\t_\t1\tobj\t_\t_"]
    (tmp_path / "es.conllu").write_text("# text = va al\n" + "\n".join(rows) + "\n\n")
    answer(capsys, "train", tmp_path / "es.conllu", "-o", tmp_path / "m.mm")
    said, _ = answer(capsys, "predict", tmp_path / "m.mm", tmp_path / "es.conllu", "-o", tmp_path / "a.conll")
    assert said["value"] == 1.0
    assert read_conll(tmp_path / "a.conll") == ([[("va", "VERB"), ("al", "ADP")]], [["VERB", "ADP"]])
    proved, _ = answer(capsys, "certify", tmp_path / "m.mm", tmp_path / "es.conllu")
    assert proved["proved"]
    (tmp_path / "bare.conllu").write_text("\n".join(rows).replace("VERB", "_").replace("ADP", "_") + "\n\n")
    said, _ = answer(capsys, "predict", tmp_path / "m.mm", tmp_path / "bare.conllu", "-o", tmp_path / "b.conll")
    assert said["value"] is None, "a label that is not known is none"
    assert read_conll(tmp_path / "b.conll") == ([["va", "al"]], [["VERB", "ADP"]])


def test_forms_that_work(folder, tmp_path, capsys):
    """No blank line at the end, another encoding, compressed."""
    import gzip

    text = (folder / "train.conll").read_text()
    forms = {
        "end.conll": (text.rstrip("\n").encode(), []),
        "latin.conll": (text.replace("Ada", "Zo\xeb").encode("latin-1"), ["--encoding", "latin-1"]),
        "small.conll.gz": (gzip.compress(text.encode()), []),
        "train.txt": (text.encode(), ["--task", "sequence"]),
        "noted.conll": (("# from the news\n" + text).encode(), ["--comments"]),
    }
    for name, (content, options) in forms.items():
        (tmp_path / name).write_bytes(content)
        said, _ = answer(capsys, "train", tmp_path / name, "-o", tmp_path / "m.mm", *options)
        assert said["sequences"] == 24

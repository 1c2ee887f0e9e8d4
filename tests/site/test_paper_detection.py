"""Heads of cats in examples/papers: what is trained on and tested on, and how tables are made from results."""

import importlib.util
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "papers"


@pytest.fixture(scope="module")
def script():
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location("paper_detection", FOLDER / "detection.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(FOLDER))
        sys.modules.pop("common", None)


def _names(counts):
    return [f"{breed}_{i}" for breed, n in counts.items() for i in range(1, n + 1)]


COUNTS = {"Bengal": 11, "British_Shorthair": 12, "Sphynx": 5}


def test_names_are_in_the_order_of_texts_and_every_second_one_is_for_testing(script):
    train, test = script.halves(script.by_breed(_names(COUNTS)[::-1]))
    assert train["Bengal"] == ["Bengal_1", "Bengal_11", "Bengal_3", "Bengal_5", "Bengal_7", "Bengal_9"]
    assert test["Bengal"] == ["Bengal_10", "Bengal_2", "Bengal_4", "Bengal_6", "Bengal_8"]
    assert list(train) == list(COUNTS)
    assert sorted(script.everyone(train) + script.everyone(test)) == sorted(_names(COUNTS))


@pytest.mark.parametrize("breed", COUNTS)
def test_a_breed_is_trained_beside_others_without_boxes_and_tested_on_everything_else(script, breed):
    train, test = script.halves(script.by_breed(_names(COUNTS)))
    first, second, own = script.task(train, test, breed, n_background=4)
    assert own == {name for name in _names(COUNTS) if name.startswith(breed)}
    assert [name for name in first if name in own] == train[breed] and len(first) == len(train[breed]) + 4
    assert second == script.everyone(test) and not set(first) & set(second)


def test_dogs_and_heads_without_an_image_are_left_out(script, tmp_path):
    for name in ("Bengal_1", "Bengal_2", "pug_1"):
        (tmp_path / f"{name}.jpg").touch()
    path = tmp_path / "heads.csv"
    rows = ["Bengal_1,cat,1.5,2,3,4", "Bengal_3,cat,1,2,3,4", "pug_1,dog,1,2,3,4", "Bengal_2,cat,5,6,7,8"]
    path.write_text("\n".join(["name,species,xmin,ymin,xmax,ymax", *rows]))
    assert script.read_heads(tmp_path, path) == {
        "Bengal_1": [[1.5, 2.0, 3.0, 4.0]],
        "Bengal_2": [[5.0, 6.0, 7.0, 8.0]],
    }


def _experiment(script, tmp_path, **asked):
    heads = {name: [[0.0, 0.0, 9.0, 9.0]] for name in _names(COUNTS)}
    options = {"breeds": None, "models": list(script.MODELS), "quick": False, "out": tmp_path, "jobs": 1}
    return script.Experiment(Namespace(**options | asked), tmp_path, heads)


def _result(ap):
    return {"ap": ap, "seconds": 2.0, "images_per_second": 10.0, "gap": 0.02, "bounds": 3, "left_out": 0}


def test_tables_have_the_means_of_breeds_and_what_was_published(script, tmp_path):
    experiment = _experiment(script, tmp_path, breeds="Bengal,Sphynx,all cats", models=["DPM6"])
    found = {("Bengal", "DPM6"): (_result(0.2), {}), ("Sphynx", "DPM6"): (_result(0.5), {})}
    found["all cats", "DPM6"] = (_result(0.8), {})
    lines = experiment.tables(found).splitlines()
    assert "| Bengal | 20.0 |  | 22.2 |" in lines  # the first breed of three here, as the first of the thesis
    assert "| mean of 2 | 35.0 |  | 26.8 |" in lines
    assert "| all cats | 80.0 | 85.3 | – |" in lines
    assert not any(line.startswith("| mean of Abyssinian") for line in lines)


def test_known_results_are_not_computed_again(script, tmp_path):
    kept = script.Kept(tmp_path / "detection.json")
    kept.result("a", lambda: _result(0.3))
    assert script.results_of([{"name": "a"}], 1, script.Kept(kept.path)) == {"a": _result(0.3)}


def _run(tmp_path, *arguments, **environment):
    plain = {key: value for key, value in os.environ.items() if key != "MAXMARGIN_DATA"}
    command = [sys.executable, str(FOLDER / "detection.py"), *arguments]
    return subprocess.run(
        command, cwd=tmp_path, env=plain | environment, capture_output=True, text=True, check=False, timeout=120
    )


def test_unknown_models_and_missing_data_are_named(tmp_path):
    done = _run(tmp_path, "--models", "DPM4,DPM5")
    assert done.returncode == 1 and "['DPM5']" in done.stderr and "GDPM4+2" in done.stderr
    done = _run(tmp_path, MAXMARGIN_DATA="no-such-folder")
    assert done.returncode == 1 and "pets_heads.csv" in done.stderr and "no-such-folder" in done.stderr
    assert "Traceback" not in done.stderr


def test_unknown_breeds_are_named(script, tmp_path):
    with pytest.raises(SystemExit, match=r"\['Pug'\]"):
        _experiment(script, tmp_path, breeds="Sphynx,Pug")


@pytest.mark.realdata
def test_the_halves_of_the_real_cats(script, tmp_path):
    folder = script.unpacked("pets_cat_heads.tar", "photographs of cats", tmp_path)
    heads = script.read_heads(folder, script.data_file("pets_heads.csv", "boxes of heads"))
    train, test = script.halves(script.by_breed(heads))
    assert len(train) == len(script.THESIS["DPM4"]) == 12 and set(script.SIX_BREEDS) <= set(train)
    assert len(script.everyone(train)) == 595 and len(script.everyone(test)) == 593
    for breed in train:
        first, second, own = script.task(train, test, breed, script.N_BACKGROUND)
        assert len(first) == len(train[breed]) + 150 and len(second) == 593
        assert len(own & set(second)) == len(test[breed])

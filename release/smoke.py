"""One model of each kind, from data to a reloaded file: the least that an installed package must do.

python release/smoke.py

It uses the package that the interpreter finds, not the checkout it stands in, and only what a plain install brings.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file, load_digits

import maxmargin as mm

CHECKOUT = Path(__file__).resolve().parent.parent


def linear(folder: Path) -> None:
    X, y = load_digits(return_X_y=True)
    svm = mm.LinearSVC(C=0.1, tol=1e-3, random_state=0).fit(X / 16, y)
    assert svm.certificate_.relative_gap <= 1e-3
    assert svm.certify(X / 16, y).relative_gap <= 1.1e-3
    reloaded(svm, folder / "linear.mm", X[:100] / 16)


def sequences(folder: Path) -> None:
    X = [[{"word": word} for word in text.split()] for text in ("the old man", "the boat sails", "a man sails")]
    Y = [["DET", "ADJ", "NOUN"], ["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]]
    tagger = mm.SequenceSVM(C=1.0, random_state=0).fit(X, Y)
    assert tagger.certificate_.relative_gap <= tagger.tol
    reloaded(tagger, folder / "sequence.mm", X)


def latent(folder: Path) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    X = [rng.normal(size=(rng.integers(2, 6), 4)) + 0.0 for _ in y]
    for x, label in zip(X, y, strict=True):
        x[rng.integers(len(x)), 0] += 4.0 * label
    bags = mm.LatentSVC(C=1.0, random_state=0).fit(X, y)
    assert bags.certificate_.relative_gap <= bags.tol
    reloaded(bags, folder / "latent.mm", X)


def command_line(folder: Path) -> None:
    X, y = load_digits(return_X_y=True)
    dump_svmlight_file(X / 16, y % 2, str(folder / "digits.svm"), zero_based=False)
    for command in (
        "train digits.svm -o odd.mm --C 0.1",
        "predict odd.mm digits.svm -o answers.txt",
        "certify odd.mm digits.svm",
        "report odd.mm digits.svm -o report.html",
    ):
        subprocess.run([sys.executable, "-m", "maxmargin", *command.split()], cwd=folder, check=True)
    assert len((folder / "answers.txt").read_text(encoding="utf-8").split("\n")) >= len(y)


def reloaded(estimator: object, path: Path, X: object) -> None:
    """What comes back from a file answers as before."""
    estimator.save(path)  # type: ignore[attr-defined]
    ours, theirs = estimator.predict(X), mm.load(path).predict(X)  # type: ignore[attr-defined]
    assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


def main() -> None:
    place = Path(mm.__file__).resolve()
    assert CHECKOUT / "src" not in place.parents, f"maxmargin is imported from the checkout: {place}"
    with tempfile.TemporaryDirectory() as folder:
        for story in (linear, sequences, latent, command_line):
            story(Path(folder))
            print(f"  {story.__name__}: trained, certified, saved, reloaded")


if __name__ == "__main__":
    main()

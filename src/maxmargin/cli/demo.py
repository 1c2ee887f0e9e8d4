"""maxmargin demo"""

from __future__ import annotations

import argparse
import shlex
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from . import DONE
from .talk import Talk

HELP = "train on handwritten digits and see what comes out; brings its own data"
USAGE = "[--keep FOLDER]"
ABOUT = """\
Write the images of handwritten digits that come with scikit-learn to text files, then train, certify, predict and
report from there, with the same commands that you would use on data of your own.
"""
EXAMPLES = """\
examples:
  maxmargin demo
  maxmargin demo --keep digits

exit status: 0 done.
"""
_TEST_SHARE = 4  # every fourth image is kept back


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", metavar="FOLDER", help="write data, model and report here, and leave them there")
    group = parser.add_argument_group("output")
    group.add_argument("--debug", action="store_true", help="show where in the code an error came from")
    parser.set_defaults(json=False, quiet=False)


def run(args: argparse.Namespace, talk: Talk) -> int:
    from . import main

    place: Any = tempfile.TemporaryDirectory() if args.keep is None else nullcontext(args.keep)
    with place as name:
        folder = Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        _write_digits(folder)
        talk.say(
            f"1797 images of handwritten digits, 8 × 8 pixels, as text in {folder}: every fourth is kept for a test."
        )
        train, test, model, page = (str(folder / n) for n in ("train.svm", "test.svm", "digits.mm", "digits.html"))
        for command in (
            ["train", train, "-o", model, "--C", "0.1", "--test", test],
            ["certify", model, train],
            ["predict", model, test, "-o", str(folder / "answers.txt")],
            ["report", model, test, "-o", page],
        ):
            talk.say(f"\n$ maxmargin {shlex.join(command)}")
            status = main([*command, *(["--debug"] if args.debug else [])])
            if status != DONE:
                return status
        talk.say(_WHAT_NEXT)
        talk.say(f"Everything is in {folder}." if args.keep else "These files are gone now: --keep FOLDER leaves them.")
    return DONE


_WHAT_NEXT = """
What you have seen: a proof of how close to perfect training came, twice; the test says how good the model is on
images it has not seen. What to try next:
  maxmargin demo --keep digits        and open digits/digits.html
  maxmargin train digits/train.svm -o digits.mm --tol 1e-6     how far a proof can go
  maxmargin train YOUR-DATA -o model.mm                        svmlight text, Parquet, NumPy; larger than memory too
  maxmargin train --help                                       all that can be set"""


def _write_digits(folder: Path) -> None:
    import numpy as np
    from sklearn.datasets import dump_svmlight_file, load_digits

    X, y = load_digits(return_X_y=True)
    held_back = np.arange(y.size) % _TEST_SHARE == 0
    for name, rows in (("train.svm", ~held_back), ("test.svm", held_back)):
        dump_svmlight_file(X[rows] / 16.0, y[rows], str(folder / name), zero_based=False)

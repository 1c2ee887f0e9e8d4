"""maxmargin demo [--keep FOLDER]

Write the images of handwritten digits that come with scikit-learn to text files, then train, certify, predict and
report from there, with the same commands that you would use on data of your own.

examples:
  maxmargin demo
  maxmargin demo --keep digits

exit status: 0 done.
"""

from __future__ import annotations

import argparse
import shlex
import tempfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from . import DONE
from .talk import Talk

_TEST_SHARE = 4  # every fourth image is kept back


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", metavar="FOLDER", help="write data, model and report here, and leave them there")
    group = parser.add_argument_group("output")
    group.add_argument("--debug", action="store_true", help="show where in the code an error came from")
    parser.set_defaults(json=False, quiet=False)


def run(args: argparse.Namespace, talk: Talk) -> int:
    from . import main

    place: AbstractContextManager[str] = tempfile.TemporaryDirectory() if args.keep is None else nullcontext(args.keep)
    with place as name:
        folder = Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        _write_digits(folder)
        where = f"in {folder}" if args.keep else "in a temporary folder (--keep FOLDER names one that stays)"
        talk.say(f"1797 images of handwritten digits, 8 × 8 pixels, as text {where}: every fourth is kept for a test.")
        train, test, model, page = (str(folder / n) for n in ("train.svm", "test.svm", "digits.mm", "digits.html"))
        Talk.advises = args.keep is not None  # the next commands need the files of this one
        try:
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
        finally:
            Talk.advises = True
    kept = shlex.quote(args.keep or "digits")
    talk.say(_SEEN)
    if args.keep is None:
        talk.say("The files are gone now. To have them, and to look at the report, digits/digits.html:")
        talk.say("  maxmargin demo --keep digits")
        talk.say("After that, what to try next:")
    else:
        talk.say(f"Everything is in {folder}; open {Path(folder, 'digits.html')} in a browser. What to try next:")
    talk.say(_WHAT_NEXT.format(kept=kept))
    return DONE


_SEEN = """
What you have seen: a proof of how close to perfect training came, twice; the test says how good the model is on
images it has not seen."""
_WHAT_NEXT = """\
  maxmargin train {kept}/train.svm -o {kept}/finer.mm --tol 1e-6     how far a proof can go
  maxmargin train YOUR-DATA -o model.mm     svmlight text, Parquet, NumPy; larger than memory too
  maxmargin train --help                    all that can be set"""


def _write_digits(folder: Path) -> None:
    import numpy as np
    from sklearn.datasets import dump_svmlight_file, load_digits

    X, y = load_digits(return_X_y=True)
    held_back = np.arange(y.size) % _TEST_SHARE == 0
    for name, rows in (("train.svm", ~held_back), ("test.svm", held_back)):
        dump_svmlight_file(X[rows] / 16.0, y[rows], str(folder / name), zero_based=False)

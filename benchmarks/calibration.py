"""Probabilities of taggers: how far they are from frequencies, ours after calibration beside those of CRFsuite.

    python benchmarks/calibration.py [--quick] [--only CoNLL-2000,EWT] [--resume]
    python benchmarks/calibration.py --report

Needs the data folder (see sequence_data.py). Each cell goes to results/calibration.json as soon as it is measured; at
the end, or alone with --report, a table and a figure are made of that file.
"""

import argparse
import functools
import time
from collections.abc import Iterator
from typing import Any

import calibration_report
import numpy as np
import results
from sequence_data import Sentences, sentences
from tagging import SETTINGS

results.PACKAGES = ["numpy", "scipy", "scikit-learn", "numba", "python-crfsuite"]

HELD_OUT = 10  # one sentence in so many calibrates, and is not trained on
BINS = 15
OURS: dict[str, dict[str, Any] | None] = {
    "maxmargin, not calibrated (T = 1)": None,
    "maxmargin": {},
    "maxmargin, offsets": {"offsets": True},
    "maxmargin, by sequence": {"by": "sequence"},
}

Cell = dict[str, Any]


def measure(task: str, limit: int | None) -> Cell:
    train, test = sentences(task, "train", limit), sentences(task, "test", limit)
    runs = {**_ours(task, train, test), "CRFsuite l-bfgs": _crfsuite(train, test)}
    for name, run in runs.items():
        print(f"    {name:36s} error {100 * run['error']:.2f} %  log-loss {run['log_loss']:.4f}", flush=True)
    return {"task": task, "tokens": sum(map(len, test[1])), "runs": runs}


def _ours(task: str, train: Sentences, test: Sentences) -> dict[str, Cell]:
    from maxmargin import SequenceSVM

    held = [i % HELD_OUT == 0 for i in range(len(train[0]))]
    kept, validation = (
        tuple([s for s, h in zip(part, held, strict=True) if h == wanted] for part in train) for wanted in (False, True)
    )
    svm = SequenceSVM(n_jobs=1, random_state=0, **SETTINGS[task]).fit(*kept)
    known = set(svm.classes_.tolist())  # a label in two sentences of all cannot be predicted if both are held out
    fitting = [i for i, y in enumerate(validation[1]) if known.issuperset(y)]
    validation = tuple([part[i] for i in fitting] for part in validation)
    svm.calibrate(*validation)  # loads the compiled kernels
    prepared, runs = svm.prepare(test[0]), {}
    for name, settings in OURS.items():
        start = time.process_time()
        if settings is None:
            svm.temperature_ = 1.0
        else:
            svm.calibrate(*validation, **settings)
        calibrating = time.process_time() - start
        seconds = min(_seconds(svm.predict_proba, prepared) for _ in range(3))
        cell = judged(svm.predict_proba(prepared), svm.classes_, test[1])
        speed = {"tokens_per_second": sum(map(len, test[1])) / seconds, "cpu_calibrating": calibrating}
        runs[name] = cell | speed | {"temperature": svm.temperature_}
    return runs


def _crfsuite(train: Sentences, test: Sentences) -> Cell:
    """It needs no sentences held out: it learns from all of them."""
    from peer_crfsuite import CrfSuite

    model = CrfSuite("CRFsuite l-bfgs")
    model.fit(model.prepare(train))
    labels, items = sorted(model.tagger.labels()), model.items(test[0])
    seconds = _seconds(functools.partial(_marginals, model.tagger, labels), items)
    cell = judged(_marginals(model.tagger, labels, items), labels, test[1])
    return cell | {"tokens_per_second": sum(map(len, test[1])) / seconds}


def _marginals(tagger: Any, labels: list[str], items: list[Any]) -> list[np.ndarray]:
    found = []
    for x in items:
        tagger.set(x)
        found.append(np.array([[tagger.marginal(label, t) for label in labels] for t in range(len(x))]))
    return found


def _seconds(work: Any, argument: Any) -> float:
    start = time.process_time()
    work(argument)
    return time.process_time() - start


def judged(tables: list[np.ndarray], classes: Any, Y: list[list[str]]) -> Cell:
    """What the probabilities of all tokens are worth."""
    from maxmargin.metrics import calibration_error, reliability_bins

    tables = [np.minimum(table, 1.0) for table in tables]  # CRFsuite's exceed it by rounding
    p, truth = np.concatenate(tables), [label for y in Y for label in y]
    number = {label: k for k, label in enumerate(list(classes))}
    y = np.array([number.get(label, -1) for label in truth])
    true = np.where(y >= 0, p[np.arange(y.size), y], 0.0)
    bins = reliability_bins(Y, tables, classes, n_bins=BINS)
    return {
        "accuracy": float(np.mean(p.argmax(axis=1) == y)),
        "confidence": float(p.max(axis=1).mean()),
        "error": calibration_error(Y, tables, classes, n_bins=BINS),
        "error_quantile": calibration_error(Y, tables, classes, n_bins=BINS, strategy="quantile"),
        "log_loss": float(-np.log(np.maximum(true, 1e-12)).mean()),
        "bins": {key: column.tolist() for key, column in bins._asdict().items()},
    }


def plan(args: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    for task in SETTINGS:
        yield task, functools.partial(measure, task, 300 if args.quick else None)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="300 sentences: checks every path")
    parser.add_argument("--only", default="", help="measure only these tasks: CoNLL-2000,EWT")
    parser.add_argument("--resume", action="store_true", help="skip cells that the results already hold")
    parser.add_argument("--report", action="store_true", help="measure nothing, only write the table and the figure")
    return parser.parse_args()


if __name__ == "__main__":
    given = arguments()
    results.measure("calibration", given, plan(given), calibration_report.write)

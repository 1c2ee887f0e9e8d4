"""Training on images: a folder in, a model and what is proved about it out.

What differs between scenes and parts is in ``scene_training`` and ``part_training``. Each has ``WHAT``, ``HELPS`` (what
to do about a goal that was missed), ``classifier`` (from arguments), ``facts`` and ``outcome`` (for programs), ``rows``
and ``proof`` (the same for people), ``line`` (of a record of training) and ``about`` (what a certificate says).
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..files import replacing
from . import DONE, INTERRUPTED, NOT_CONVERGED, interrupts
from .files import check_writable, draw_into_files, named
from .images import answers_of, kind_of, labelled, verdict_on
from .measuring import peak_memory
from .talk import Talk, say_checkpoint


def train(args: argparse.Namespace, talk: Talk, task: str) -> int:
    kind = kind_of(task)
    check_writable(args.output, args.data)
    check_writable(args.report, args.data)
    if args.report is not None:
        from ..vision.pages.pictures import pyplot

        draw_into_files()
        pyplot()  # complain now rather than after training
    classifier = kind.classifier(args, int(talk.progress))
    _check_settings(args, kind)
    folder = labelled(args.data[0])
    for test in args.test or []:
        labelled(test)  # complain now rather than after training
    say_checkpoint(args.checkpoint, talk)
    start = time.perf_counter()
    with interrupts() as seen:
        classifier.fit(folder, **fit_options(args, classifier, kind, talk))
    seconds = time.perf_counter() - start
    with replacing(args.output) as path:
        classifier.save(path)
    # Whoever has interrupted does not want to wait for more images.
    score = _score(classifier, args.test, args.on_error) if args.test and not seen else None
    page = None if seen else args.report
    facts = {
        "task": task, "task_guessed": args.task == "auto", "model": args.output, "data": args.data,
        "images": len(folder) - classifier.left_out_, "left_out": classifier.left_out_,
        "classes": classifier.classes_.size, "training": classifier.training, **kind.facts(classifier),
        **kind.outcome(classifier, bool(seen)), "interrupted": bool(seen), "seconds": seconds,
        "peak_memory": peak_memory(), "test": score, "report": page,
    }  # fmt: skip
    if page is not None:
        _report(page, args, classifier, facts)
    talk.result(command="train", **facts)
    _summary(args, classifier, facts, kind, talk)
    return INTERRUPTED if seen else DONE if facts["converged"] else NOT_CONVERGED


def _check_settings(args: argparse.Namespace, kind: Any) -> None:
    from ..estimators.inputs import check_memory

    check_memory(args.memory)
    if len(args.data) != 1:
        what = kind.WHAT.capitalize()
        raise ValueError(f"{what} are learned from one folder with a sub-folder per class, got {len(args.data)} paths.")


def fit_options(args: argparse.Namespace, classifier: Any, kind: Any, talk: Talk) -> dict[str, Any]:
    """What is handed to ``fit`` besides the data: checkpoints, and who hears of progress."""
    given: dict[str, Any] = {}
    if args.checkpoint is not None:
        given = {"checkpoint": args.checkpoint, "checkpoint_every": args.checkpoint_every}
    if args.progress and not talk.on_terminal:
        given["callbacks"] = (_logging(kind.line, classifier.tol),)
    return given


def _logging(line: Callable[[Any, float], str], tol: float) -> Callable[[Any], None]:
    def log(record: Any) -> None:
        print(line(record, tol), file=sys.stderr, flush=True)

    return log


def _summary(args: argparse.Namespace, classifier: Any, facts: dict[str, Any], kind: Any, talk: Talk) -> None:
    from ..report import numbers

    table = [
        ("task", f"{facts['task']}, {facts['classes']} classes"),
        ("images", numbers.count(facts["images"])),
        *([("images left out", numbers.count(facts["left_out"]))] if facts["left_out"] else []),
        *kind.rows(classifier),
        *kind.proof(classifier, facts),
        ("time", numbers.duration(facts["seconds"])),
        ("peak memory", numbers.size(facts["peak_memory"])),
        ("model", args.output),
    ]
    if facts["test"] is not None:
        table += _scores(facts["test"])
    if facts["report"]:
        table.append(("report", facts["report"]))
    talk.facts("Interrupted: the best model so far" if facts["interrupted"] else "Trained", table)
    if not facts["converged"] and not facts["interrupted"]:
        more = "" if facts["certificate"] is None else f" {kind.HELPS}"
        talk.say(f"\nStopped before the goal.{more}")
    model, data = shlex.quote(args.output), shlex.quote(args.data[0])
    again = "".join(
        f" {option} {shlex.quote(value)}"
        for option, value in (("--cache", args.cache), ("--on-error", args.on_error), ("--device", args.device))
        if value is not None
    )
    steps = [("predict", f"maxmargin predict {model} PHOTOS -o answers.txt")]
    if facts["certificate"] is not None:
        steps.append(("prove it again", f"maxmargin certify {model} {data}{again}"))
    if not facts["report"]:
        steps.append(("look at it", f"maxmargin report {model} {data}{again} -o report.html"))
    if args.checkpoint and not facts["converged"]:
        steps.insert(0, ("go on", "the same command again, it continues from " + shlex.quote(args.checkpoint)))
    talk.next_steps(steps)


def _report(page: str, args: argparse.Namespace, classifier: Any, facts: dict[str, Any]) -> None:
    """A page with answers to the images of ``--test``, or to those that were learned from."""
    from .. import report
    from ..report.story import Data

    folders = [labelled(path) for path in args.test or args.data]
    files, labels = [file for folder in folders for file in folder.paths], [folder.labels for folder in folders]
    known = {
        "title": f"{named([args.output])}: {facts['task']}, trained on {named(args.data)}",
        "seconds": facts["seconds"], "peak_memory": facts["peak_memory"],
    }  # fmt: skip
    name = f"test images ({named(args.test)})" if args.test else "training images"
    report.write(page, classifier, Data(files, np.concatenate(labels), name=name), known)


def bracket(certificate: dict[str, Any], tol: float) -> list[tuple[str, str]]:
    """Both bounds and their gap, as rows of a table."""
    gap = certificate["relative_gap"]
    state = "reached" if gap <= tol else "NOT reached"
    return [
        ("certificate", f"{certificate['lower']:.8g} <= optimum <= {certificate['upper']:.8g}"),
        ("relative gap", f"{gap:.1e}, goal {tol:g} {state}"),
    ]


def _score(classifier: Any, folders: list[str], on_error: str | None) -> dict[str, Any]:
    """Accuracy, and its mean over the classes, on folders of class folders."""
    true, answered, left_out = [], [], 0
    for path in folders:
        folder = labelled(path)
        for _, kept, labels, _ in answers_of(classifier, folder.paths, on_error or "raise", parts=False):
            true.append(folder.labels[kept])
            answered.append(labels)
        left_out += len(folder)
    y, found = np.concatenate(true), np.concatenate(answered)
    return verdict_on(y, found, classifier.classes_) | {"left_out": left_out - y.size}


def _scores(score: dict[str, Any]) -> list[tuple[str, str]]:
    from ..report import numbers

    on = f"on {numbers.count(score['images'])} images"
    left_out = f", {numbers.count(score['left_out'])} left out" if score.get("left_out") else ""
    return [
        ("test accuracy", f"{numbers.share(score['value'])} {on}{left_out}"),
        ("mean over classes", numbers.share(score["per_class"])),
    ]

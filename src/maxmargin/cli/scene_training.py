"""Training on scenes: a folder of images in, a model and what is proved about it out."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from . import DONE, INTERRUPTED, NOT_CONVERGED, interrupts, scene_options
from .files import check_writable, replacing
from .measuring import peak_memory
from .scenes import answers_of, labelled, verdict_on
from .talk import Talk


def train(args: argparse.Namespace, talk: Talk, guessed: bool) -> int:
    from ..vision import SceneClassifier

    check_writable(args.output, args.data)
    if args.report is not None:
        raise ValueError("--report is for rows of a matrix. For scenes: maxmargin report MODEL FOLDER -o FILE.")
    classifier = SceneClassifier(**scene_options.settings(args), verbose=int(talk.progress))
    _check_settings(args)
    folder = labelled(args.data[0])
    for test in args.test or []:
        labelled(test)  # complain now rather than after training
    start = time.perf_counter()
    with interrupts() as seen:
        classifier.fit(folder, **_fit_options(args, classifier, talk))
    seconds = time.perf_counter() - start
    with replacing(args.output) as path:
        classifier.save(path)
    # Whoever has interrupted does not want to wait for more images.
    score = _score(classifier, args.test, args.on_error) if args.test and not seen else None
    facts = {
        "task": "scene", "task_guessed": guessed, "model": args.output, "data": args.data,
        "images": len(folder) - classifier.left_out_, "left_out": classifier.left_out_,
        "classes": classifier.classes_.size, "kind": classifier.kind, "training": classifier.training,
        "grid": list(classifier.grid_), **_outcome(classifier, bool(seen)), "interrupted": bool(seen),
        "seconds": seconds, "peak_memory": peak_memory(), "test": score,
    }  # fmt: skip
    talk.result(command="train", **facts)
    _summary(args, classifier, facts, talk)
    return INTERRUPTED if seen else DONE if facts["converged"] else NOT_CONVERGED


def _check_settings(args: argparse.Namespace) -> None:
    from ..estimators.inputs import check_memory

    check_memory(args.memory)
    if len(args.data) != 1:
        raise ValueError(f"Scenes are learned from one folder with a sub-folder per class, got {len(args.data)} paths.")


def _fit_options(args: argparse.Namespace, classifier: Any, talk: Talk) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if args.checkpoint is not None:
        given = {"checkpoint": args.checkpoint, "checkpoint_every": args.checkpoint_every}
    if args.progress and not talk.on_terminal:
        given["callbacks"] = (_logging(classifier.tol),)
    return given


def _logging(tol: float) -> Callable[[Any], None]:
    from ..solvers.progress import described

    def log(record: Any) -> None:
        line = (
            f"bound {record.number}, objective {record.objective:.6g}, gap {record.gap:.1e}, "
            f"{record.changed:.0%} of the parts changed, {record.seconds:.1f} s"
            if hasattr(record, "changed")
            else described(record, tol)
        )
        print(line, file=sys.stderr, flush=True)

    return log


def _outcome(classifier: Any, interrupted: bool) -> dict[str, Any]:
    """What training can prove, and whether it got where it was to go."""
    from .train import as_json

    if classifier.training == "generative":
        return {"certificate": None, "tol": None, "converged": getattr(classifier.learner_, "converged", True)}
    certificate, history = classifier.certificate_, classifier.history_
    solved = certificate.relative_gap <= classifier.tol
    if not hasattr(history[-1], "changed"):
        found = {"converged": solved, "passes": classifier.learner_.n_passes_}
    else:
        last = history[-1]
        closed = last.gap <= classifier.bound_tol * abs(last.objective)
        # Without an upper bound there is nothing to compare tol with.
        found = {
            "converged": closed and (solved or not certificate.exact) and not interrupted, "bounds": len(history),
            "objective": classifier.learner_.objective_, "passes": classifier.learner_.n_passes_,
        }  # fmt: skip
    return {"certificate": as_json(certificate) | {"exact": certificate.exact}, "tol": classifier.tol, **found}


def _summary(args: argparse.Namespace, classifier: Any, facts: dict[str, Any], talk: Talk) -> None:
    from ..report import numbers

    rows, columns = classifier.grid_
    what = {"bow": "bag of words", "sbow": "one model per region"}.get(
        classifier.kind, f"{classifier.n_parts} parts {'in all' if classifier.parts == 'shared' else 'per class'}"
    )
    table = [
        ("task", f"scene, {facts['classes']} classes"),
        ("images", numbers.count(facts["images"])),
        *([("images left out", numbers.count(facts["left_out"]))] if facts["left_out"] else []),
        ("kind", f"{classifier.kind} ({what}), {classifier.training}"),
        *([("grid", f"{rows} × {columns} regions")] if classifier.kind != "bow" else []),
        ("features", classifier.features + (f", {classifier.n_words}" if classifier.features == "words" else "")),
        *_proof(classifier, facts),
        ("time", numbers.duration(facts["seconds"])),
        ("peak memory", numbers.size(facts["peak_memory"])),
        ("model", args.output),
    ]
    if facts["test"] is not None:
        table += _scores(facts["test"])
    talk.facts("Interrupted: the best model so far" if facts["interrupted"] else "Trained", table)
    if not facts["converged"] and not facts["interrupted"]:
        more = "" if facts["certificate"] is None else " More --max-bounds or --max-passes, or a smaller --C, help."
        talk.say(f"\nStopped before the goal.{more}")
    model, data = shlex.quote(args.output), shlex.quote(args.data[0])
    again = "".join(
        f" {option} {shlex.quote(value)}"
        for option, value in (("--cache", args.cache), ("--on-error", args.on_error)) if value is not None
    )  # fmt: skip
    steps = [("predict", f"maxmargin predict {model} PHOTOS -o answers.txt")]
    if facts["certificate"] is not None:
        steps.append(("prove it again", f"maxmargin certify {model} {data}{again}"))
    steps.append(("look at it", f"maxmargin report {model} {data}{again} -o report.html"))
    if args.checkpoint and not facts["converged"]:
        steps.insert(0, ("go on", "the same command again, it continues from " + shlex.quote(args.checkpoint)))
    talk.next_steps(steps)


def _proof(classifier: Any, facts: dict[str, Any]) -> list[tuple[str, str]]:
    """What is proved, in a few words, and what is not."""
    from ..report import numbers

    certificate = facts["certificate"]
    if certificate is None:
        return [("certificate", "none: generative training minimises no hinge loss")]
    latent = "bounds" in facts
    found = []
    if latent:
        found.append(
            ("objective", f"{facts['objective']:.8g} after {facts['bounds']} bounds, {facts['passes']} passes")
        )
    if certificate["exact"]:
        gap = certificate["relative_gap"]
        state = "reached" if gap <= classifier.tol else "NOT reached"
        found += [
            ("certificate", f"{certificate['lower']:.8g} <= optimum <= {certificate['upper']:.8g}"),
            ("relative gap", f"{gap:.1e}, goal {classifier.tol:g} {state}"),
        ]
    else:
        found += [
            ("certificate", f"{certificate['lower']:.8g} <= optimum, and no upper bound:"),
            ("", f"parts that know their neighbours were searched approximately on this grid ({classifier.kind})"),
        ]
    if latent:
        found.append(("", "of the last convex bound, its parts fixed; about other parts nothing is proved"))
    else:
        found.append(("passes", numbers.count(facts["passes"])))
    return found


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

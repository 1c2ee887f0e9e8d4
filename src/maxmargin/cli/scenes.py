"""What the commands do with scenes: folders of images instead of rows."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np

from . import DONE, INTERRUPTED, NOT_CONVERGED, interrupts, options, scene_options
from .files import answers_to, check_writable, on_one_line, replacing
from .measuring import peak_memory
from .talk import Talk, warn

_AT_A_TIME = 256  # images whose features are held while answering


def is_scenes(model: Any) -> bool:
    return hasattr(model, "predict_regions")


def train(args: argparse.Namespace, talk: Talk, guessed: bool) -> int:
    from ..vision import SceneClassifier

    check_writable(args.output, args.data)
    if args.report is not None:
        raise ValueError("--report is for rows of a matrix. For scenes: maxmargin report MODEL FOLDER -o FILE.")
    classifier = SceneClassifier(**scene_options.settings(args), verbose=int(talk.progress))
    _check_settings(args)
    files, labels, left_out = _training_images(args, classifier)
    for folder in args.test or []:
        _labelled(folder)  # complain now rather than after training
    start = time.perf_counter()
    with interrupts() as seen:
        classifier.fit(files, labels, **_fit_options(args, classifier, talk))
    seconds = time.perf_counter() - start
    with replacing(args.output) as path:
        classifier.save(path)
    # Whoever has interrupted does not want to wait for more images.
    score = _score(classifier, args.test, args.on_error) if args.test and not seen else None
    facts = {
        "task": "scene", "task_guessed": guessed, "model": args.output, "data": args.data, "images": len(files),
        "left_out": left_out, "classes": classifier.classes_.size, "kind": classifier.kind,
        "training": classifier.training, "grid": list(classifier.grid_), **_outcome(classifier, bool(seen)),
        "interrupted": bool(seen), "seconds": seconds, "peak_memory": peak_memory(), "test": score,
    }  # fmt: skip
    talk.result(command="train", **facts)
    _summary(args, classifier, facts, talk)
    return INTERRUPTED if seen else DONE if facts["converged"] else NOT_CONVERGED


def _check_settings(args: argparse.Namespace) -> None:
    from ..estimators.inputs import check_memory

    check_memory(args.memory)
    if len(args.data) != 1:
        raise ValueError(f"Scenes are learned from one folder with a sub-folder per class, got {len(args.data)} paths.")


def _training_images(args: argparse.Namespace, classifier: Any) -> tuple[list[str], np.ndarray, int]:
    """Images that can be read, their classes, and how many others there are."""
    folder = _labelled(args.data[0])
    if args.on_error != "skip":
        return folder.paths, folder.labels, 0
    from ..vision.features.extraction import over_images

    # The library warns of what it leaves out; here the number is wanted, too.
    _, kept = over_images(folder.paths, _Look(), n_jobs=classifier.n_jobs, on_error="skip")
    return [folder.paths[i] for i in kept], folder.labels[kept], len(folder) - kept.size


class _Look:
    """Work that only asks whether an image can be read."""

    color = False
    releases_gil = True

    def __call__(self, image: np.ndarray) -> np.ndarray:
        return np.array(image.shape)


def _labelled(path: str) -> Any:
    from ..vision import ImageFolder

    return ImageFolder(path)


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
        folder = _labelled(path)
        for _, kept, labels, _ in _answered(classifier, folder.paths, on_error or "raise", parts=False):
            true.append(folder.labels[kept])
            answered.append(labels)
        left_out += len(folder)
    y, found = np.concatenate(true), np.concatenate(answered)
    return _judged(y, found, classifier.classes_) | {"left_out": left_out - y.size}


def _judged(true: np.ndarray, answered: np.ndarray, classes: np.ndarray) -> dict[str, Any]:
    unseen = np.setdiff1d(true, classes)
    if unseen.size:
        warn(
            f"{int(np.isin(true, unseen).sum())} images are of classes that were not there in training and count as "
            f"wrong: {', '.join(unseen[:5].tolist())}."
        )
    right = true == answered
    return {
        "score": "accuracy", "value": right.mean(), "images": true.size,
        "per_class": np.mean([right[true == name].mean() for name in np.unique(true)]),
    }  # fmt: skip


def _scores(score: dict[str, Any]) -> list[tuple[str, str]]:
    from ..report import numbers

    on = f"on {numbers.count(score['images'])} images"
    left_out = f", {numbers.count(score['left_out'])} left out" if score.get("left_out") else ""
    return [
        ("test accuracy", f"{numbers.share(score['value'])} {on}{left_out}"),
        ("mean over classes", numbers.share(score["per_class"])),
    ]


def _answered(
    classifier: Any, files: list[str], on_error: str, *, parts: bool
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]]:
    """Answers, some images at a time: scores, positions of the images, classes and (where asked for) parts."""
    for begin in range(0, len(files), _AT_A_TIME):
        kept, scores = _scored(classifier, files, np.arange(begin, min(begin + _AT_A_TIME, len(files))), on_error)
        if not kept.size:
            continue
        labels = classifier.classes_[scores.argmax(axis=1)]
        table = classifier.predict_regions([files[i] for i in kept], labels) if parts else None
        yield scores, kept, labels, table


def _scored(classifier: Any, files: list[str], at: np.ndarray, on_error: str) -> tuple[np.ndarray, np.ndarray]:
    from ..vision import ImageError

    try:
        return at, classifier.decision_function([files[i] for i in at])
    except ImageError:
        if on_error == "raise":
            raise
    found = []
    for i in at:  # one by one, to see which of them
        try:
            found.append((i, classifier.decision_function([files[i]])[0]))
        except ImageError as error:
            warn(f"left out: {error}")
    return np.array([i for i, _ in found], np.int64), np.array([scores for _, scores in found])


def use(model: Any, args: argparse.Namespace, talk: Talk) -> Any:
    """A loaded model, with the means of this machine rather than those of the one that it was trained on."""
    scene_options.refuse_for_scenes(args)
    if isinstance(args.features, str):
        raise ValueError("--features is for maxmargin train; the model knows what describes its images.")
    if model.extractor_ is None:
        raise ValueError(
            f"{args.model} was trained on features of regions and cannot look at images. Use it from Python: "
            "maxmargin.load."
        )
    said = {"cache": args.cache, "n_jobs": args.jobs, "verbose": int(talk.progress)}
    return model.set_params(**said, **({} if args.on_error is None else {"on_error": args.on_error}))


def predict(model: Any, args: argparse.Namespace, talk: Talk) -> int:
    from ..report import numbers
    from ..vision.images import list_images

    use(model, args, talk)
    if args.regions and model.kind == "bow":
        raise ValueError("--regions is for kinds with regions, and this model is a bag of words. Leave it out.")
    files = list_images(options.where(args.data))
    true = _known_labels(args.data, files, model.classes_)
    answered, judged = 0, []
    with ExitStack() as stack:
        file = stack.enter_context(answers_to(args))
        if args.regions and args.cache is None:  # parts are a second look at the features
            model.cache = stack.enter_context(tempfile.TemporaryDirectory())
        counting = stack.enter_context(talk.counting("Answered", "images"))
        model.verbose = 0  # one line that counts is enough
        for scores, kept, labels, parts in _answered(model, files, args.on_error or "raise", parts=args.regions):
            if file is not None:
                for k, i in enumerate(kept):
                    file.write(_line(files[i], labels[k], scores[k] if args.scores else None, parts, k))
            if true is not None:
                judged.append((true[kept], labels))
            answered += kept.size
            counting(answered, done=int(kept[-1]) + 1, total=len(files))
    if not answered:
        raise ValueError(f"None of the {len(files)} images could be read.")
    score = None
    if judged:
        y, found = (np.concatenate(part) for part in zip(*judged, strict=True))
        score = _judged(y, found, model.classes_)
    talk.result(
        command="predict", task="scene", model=args.model, images=answered, left_out=len(files) - answered,
        score=None if score is None else score["score"], value=None if score is None else score["value"],
        per_class=None if score is None else score["per_class"], output=args.output,
    )  # fmt: skip
    verdict = "They are in no folders of known classes to compare answers with."
    if score is not None:
        verdict = f"Accuracy: {numbers.share(score['value'])}, mean over classes {numbers.share(score['per_class'])}."
    talk.say(f"{numbers.count(answered)} images answered. {verdict}")
    return DONE


def _known_labels(data: list[str], files: list[str], classes: np.ndarray) -> np.ndarray | None:
    """The sub-folders that images lie in, if all of these have names of classes."""
    if len(data) != 1 or not os.path.isdir(data[0]):
        return None
    inside = [os.path.relpath(file, data[0]).split(os.sep) for file in files]
    if not all(len(steps) > 1 and steps[0] in classes for steps in inside):
        return None
    return np.array([steps[0] for steps in inside])


def _line(path: str, label: Any, scores: np.ndarray | None, parts: np.ndarray | None, k: int) -> str:
    columns = [on_one_line(path), on_one_line(str(label))]
    if parts is not None:
        columns.append(";".join(",".join(map(str, row)) for row in parts[k].tolist()))
    if scores is not None:
        columns += [f"{score:.9g}" for score in scores.tolist()]
    return "\t".join(columns) + "\n"


def certify(model: Any, args: argparse.Namespace, talk: Talk) -> int:
    from ..report import numbers
    from .train import as_json

    use(model, args, talk)
    if model.training == "generative":
        raise ValueError(f"{args.model} was trained generatively: there is no certificate to prove again.")
    if len(args.data) != 1:
        raise ValueError(f"Scenes are in one folder with a sub-folder per class, got {len(args.data)} paths.")
    folder = _labelled(args.data[0])
    start = time.perf_counter()
    certificate = model.certify(folder.paths, folder.labels)
    seconds = time.perf_counter() - start
    gap = certificate.relative_gap
    proved = gap <= model.tol
    talk.result(
        command="certify", task="scene", model=args.model, data=args.data, images=len(folder),
        certificate=as_json(certificate) | {"exact": certificate.exact}, tol=model.tol, proved=proved,
        seconds=seconds, peak_memory=peak_memory(),
    )  # fmt: skip
    facts = [
        ("certificate", f"{certificate.lower:.8g} <= optimum <= {certificate.upper:.8g}"),
        ("relative gap", f"{gap:.1e}, goal {model.tol:g}"),
    ]
    if not certificate.exact:
        facts = [("certificate", f"{certificate.lower:.8g} <= optimum; the search was approximate: no upper bound")]
    if model.kind not in ("bow", "sbow"):
        facts.append(("", "of the last convex bound, its parts fixed; about other parts nothing is proved"))
    facts += [("images", numbers.count(len(folder))), ("time", numbers.duration(seconds))]
    talk.facts("Proved again" if proved else "Not proved to the model's goal", facts)
    if not proved and certificate.exact:
        if gap > 2.0 * max(model.certificate_.relative_gap, model.tol):
            talk.say("\nThese are likely not the images that the model was trained on, or they come in another order.")
        else:
            talk.say("\nTraining ended before its goal; train longer for a smaller gap.")
    return DONE if proved else NOT_CONVERGED


def report(model: Any, args: argparse.Namespace, talk: Talk) -> int:
    from ..report.summary import settings
    from ..vision.images import list_images
    from .scene_page import page

    facts = settings(use(model, args, talk))
    with ExitStack() as stack:
        if args.cache is None:  # features are asked for several times
            model.cache = stack.enter_context(tempfile.TemporaryDirectory())
        files = list_images(options.where(args.data)) if args.data else []
        true, answered = None, np.empty(0)
        if files:
            true = _known_labels(args.data, files, model.classes_)
            found = list(_answered(model, files, args.on_error or "raise", parts=False))
            if not found:
                raise ValueError(f"None of the {len(files)} images could be read.")
            kept = np.concatenate([at for _, at, _, _ in found])
            answered = np.concatenate([labels for _, _, labels, _ in found])
            files, true = [files[i] for i in kept], None if true is None else true[kept]
        text = page(model, args.title or os.path.basename(args.model), files, true, answered, facts)
        with replacing(args.output) as path:
            path.write_text(text, encoding="utf-8")
    talk.result(command="report", task="scene", model=args.model, data=args.data, output=args.output)
    talk.say(f"Report: {args.output}")
    return DONE

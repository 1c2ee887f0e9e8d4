"""What the commands do with models of scenes and of parts: folders of images instead of rows."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np

from . import DONE, NOT_CONVERGED, image_options, options, part_training, scene_training
from .files import answers_to, draw_into_files, named, on_one_line
from .measuring import peak_memory
from .talk import Talk, warn

_AT_A_TIME = 256  # images whose features are held while answering


def task_of(model: Any) -> str | None:
    """Which kind of images a model is of: "scene", "parts" or "detect"; None if it is of none."""
    marks = {"predict_regions": "scene", "part_responses": "parts", "detect": "detect"}
    return next((task for mark, task in marks.items() if hasattr(model, mark)), None)


def kind_of(task: str) -> Any:
    """What is particular to a task: a module, see ``image_training``."""
    return {"scene": scene_training, "parts": part_training}[task]


def labelled(path: str) -> Any:
    from ..vision import ImageFolder

    return ImageFolder(path)


def verdict_on(true: np.ndarray, answered: np.ndarray, classes: np.ndarray) -> dict[str, Any]:
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


def answers_of(
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
    task = task_of(model)
    image_options.refuse(args, task or "")
    if model.extractor_ is None:
        raise ValueError(
            f"{args.model} was trained on features and cannot look at images. Use it from Python: maxmargin.load."
        )
    said = {"cache": args.cache, "n_jobs": args.jobs, "verbose": int(talk.progress)}
    said |= {"device": args.device} if task == "parts" else {}
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
        for scores, kept, labels, parts in answers_of(model, files, args.on_error or "raise", parts=args.regions):
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
        y, found = y[y != ""], found[y != ""]
        score = verdict_on(y, found, model.classes_)
    talk.result(
        command="predict", task=task_of(model), model=args.model, images=answered, left_out=len(files) - answered,
        score=None if score is None else score["score"], value=None if score is None else score["value"],
        per_class=None if score is None else score["per_class"], output=args.output,
    )  # fmt: skip
    verdict = "They are in no folders of known classes to compare answers with."
    if score is not None:
        verdict = f"Accuracy: {numbers.share(score['value'])}, mean over classes {numbers.share(score['per_class'])}."
    talk.say(f"{numbers.count(answered)} images answered. {verdict}")
    return DONE


def _known_labels(data: list[str], files: list[str], classes: np.ndarray) -> np.ndarray | None:
    """The classes that the folders of images are named by, where there is one folder of such folders."""
    from ..vision.pages.classified import folder_classes

    if len(data) != 1 or not os.path.isdir(data[0]):
        return None
    return folder_classes(data[0], files, classes)


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
        raise ValueError(f"Images are in one folder with a sub-folder per class, got {len(args.data)} paths.")
    folder = labelled(args.data[0])
    start = time.perf_counter()
    certificate = model.certify(folder.paths, folder.labels)
    seconds = time.perf_counter() - start
    gap = certificate.relative_gap
    proved = gap <= model.tol
    talk.result(
        command="certify", task=task_of(model), model=args.model, data=args.data, images=len(folder),
        certificate=as_json(certificate) | {"exact": certificate.exact}, tol=model.tol, proved=proved,
        seconds=seconds, peak_memory=peak_memory(),
    )  # fmt: skip
    facts = [
        ("certificate", f"{certificate.lower:.8g} <= optimum <= {certificate.upper:.8g}"),
        ("relative gap", f"{gap:.1e}, goal {model.tol:g}"),
    ]
    if not certificate.exact:
        facts = [("certificate", f"{certificate.lower:.8g} <= optimum; the search was approximate: no upper bound")]
    about = kind_of(task_of(model) or "").about(model)
    if about:
        facts.append(("", about))
    facts += [("images", numbers.count(len(folder))), ("time", numbers.duration(seconds))]
    talk.facts("Proved again" if proved else "Not proved to the model's goal", facts)
    if not proved and certificate.exact:
        if gap > 2.0 * max(model.certificate_.relative_gap, model.tol):
            talk.say("\nThese are likely not the images that the model was trained on, or they come in another order.")
        else:
            talk.say("\nTraining ended before its goal; train longer for a smaller gap.")
    return DONE if proved else NOT_CONVERGED


def report(model: Any, args: argparse.Namespace, talk: Talk) -> int:
    from .. import report as pages
    from ..report.story import Data

    use(model, args, talk)
    draw_into_files()
    X: Any = None
    if args.data:
        whole = len(args.data) == 1 and os.path.isdir(args.data[0])
        X = args.data[0] if whole else _listed(args.data)
    data = Data(X, name=named(args.data or []) or "these images")
    pages.write(args.output, model, data, {"title": args.title or os.path.basename(args.model)})
    talk.result(command="report", task=task_of(model), model=args.model, data=args.data, output=args.output)
    talk.say(f"Report: {args.output}")
    return DONE


def _listed(data: list[str]) -> list[str]:
    from ..vision.images import list_images

    return list_images(options.where(data))

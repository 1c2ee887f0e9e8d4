"""maxmargin train"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..files import replacing
from . import (
    DONE,
    INTERRUPTED,
    NOT_CONVERGED,
    detect_options,
    image_options,
    interrupts,
    options,
    part_options,
    scene_options,
)
from .clusters import workers
from .files import check_writable, named
from .guess import guess_task
from .measuring import peak_memory
from .talk import Talk, say_checkpoint, say_left_out

HELP = "learn a classifier, numbers or a ranking from data of any size; scenes, parts or a detector from images"
USAGE = "DATA [DATA ...] -o MODEL [options]"
ABOUT = """\
Train a classifier, a regression or a ranking on data that may be larger than memory.

Training minimises a penalty on the weights plus C times the losses of the rows. It ends with a certificate: the
objective that the weights reach (upper bound), and a value that no weights whatever can get below (lower bound). The
relative gap between the two is the most that perfect weights could still gain; --tol is the gap to stop at, and it is
proved, not estimated. A smaller --tol means more passes over the data and a model closer to perfect.

The task is guessed from the labels: rows in groups (qid: in text files, or --group) are ranked; text and few different
whole numbers are classes; anything else is a number to predict. --task says otherwise.

A folder of images, one sub-folder per class, makes a classifier of scenes: images are cut into a grid of regions,
described by visual words or a network, and explained by region models that each class learns. Training with parts is
not convex; its certificate is that of the last convex bound. With --task parts, all classes share parts that may be
anywhere in the image, and weigh them each in its own way; filters of parts and weights are learned together.

With --cluster, workers train together: processes of this machine, or of a Ray cluster. Each holds its own part of the
rows, within --memory, and the certificate is the same. Workers that die are started anew.

With --boxes, images and the boxes of objects in them make a detector (--task detect): a mixture of deformable part
models, for which every window that is no object is a negative example. --boxes is a table with a row for each box
(.csv: image, x_min, y_min, x_max, y_max, label), a COCO file (.json) or a folder of VOC files (.xml); images that a
table does not name show no object. Its certificate is that of the last convex bound, over all windows of all images.
"""
EXAMPLES = """\
examples:
  maxmargin train train.svm -o model.mm
  maxmargin train 'logs/day-*.svm.gz' -o model.mm --C 0.1 --memory 2GB --jobs 4 --checkpoint run1
  maxmargin train clicks.parquet --label clicked --weight n -o model.mm --test held-out.parquet
  maxmargin train shards -o model.mm --cluster local:4 --memory 2GB --checkpoint run1
  maxmargin train prices.svm -o model.mm --task regress --epsilon 0.5 --report prices.html
  maxmargin train photos/ -o scenes.mm --kind rbow --cache features --jobs -1 --test others/
  maxmargin train photos/ -o parts.mm --task parts --n-parts 50 --cache features --jobs -1 --test others/
  maxmargin train photos/ --boxes boxes.csv -o cats.mm --label cat --components 2 --holdout 0.2 --report cats.html

Stopped with Ctrl-C it writes the best model so far; with --checkpoint, the same command goes on where it stopped.

exit status: 0 trained to --tol, 1 stopped earlier (model written, gap said), 2 wrong usage or unusable data,
130 interrupted (best model so far written, if there was one).
"""
_LOSSES = {
    "classify": ("hinge", "squared_hinge"),
    "rank": ("hinge", "squared_hinge"),
    "regress": ("epsilon_insensitive", "squared_epsilon_insensitive"),
}
_DEFAULTS = {"C": 1.0, "tol": 1e-3, "max_passes": 20_000, "memory": "512MB"}
_KINDS = {"classify": "LinearSVC", "regress": "LinearSVR", "rank": "RankingSVM"}
_IMAGES = ("scene", "parts", "detect")


def add(parser: argparse.ArgumentParser) -> None:
    options.add_paths(parser, what="data to learn from")
    parser.add_argument("-o", "--output", required=True, metavar="MODEL", help="model file to write")
    group = parser.add_argument_group("problem")
    group.add_argument(
        "--task",
        choices=("auto", *_KINDS, *_IMAGES),
        default="auto",
        help="what to learn (default: auto, from the data)",
    )
    group.add_argument(
        "-C", "--C", type=options.positive, metavar="C",
        help="price of a unit of loss: larger fits the data more closely (default: 1; scenes: 2; detectors: 0.01)",
    )  # fmt: skip
    losses = sorted({loss for known in _LOSSES.values() for loss in known})
    group.add_argument("--loss", choices=losses, help="default: hinge, or epsilon_insensitive for regression")
    group.add_argument(
        "--epsilon",
        type=options.not_negative,
        metavar="E",
        help="regression: errors below this are free (default: 0.1)",
    )
    group.add_argument(
        "--multi-class", choices=("crammer_singer", "ovr"),
        help="three classes and more: one joint problem (default), or one per class",
    )  # fmt: skip
    group.add_argument("--class-weight", choices=("balanced",), help="let rare classes count as much as frequent ones")
    group.add_argument("--no-intercept", action="store_true", help="learn no intercept")
    group = parser.add_argument_group("training")
    group.add_argument(
        "--tol",
        type=options.positive,
        metavar="GAP",
        help="relative gap to stop at (default: 0.001; images: 0.01; detectors: 0.02)",
    )
    group.add_argument(
        "--max-passes",
        type=options.whole,
        metavar="N",
        help="most passes over the data (default: 20000; images: 1000 for each convex problem; detectors: 100)",
    )
    group.add_argument(
        "--memory", metavar="SIZE",
        help="memory for training, such as 512MB or 4GB (default: 512MB; parts: no limit; detectors: 1.5GB); with "
        "--cluster that of each worker",
    )  # fmt: skip
    options.add_jobs(group)  # type: ignore[arg-type]
    options.add_cluster(group)
    group.add_argument(
        "--seed", type=int, default=0, metavar="N", help="the same seed on one thread gives the same model (default: 0)"
    )
    group.add_argument("--progress", action="store_true", help="one line per pass, where stderr is no terminal")
    group.add_argument("--checkpoint", metavar="FOLDER", help="keep what is needed to go on after an interruption here")
    group.add_argument(
        "--checkpoint-every", metavar="SECONDS", type=options.positive, default=30.0, help="how often (default: 30)"
    )
    group = parser.add_argument_group("afterwards")
    group.add_argument("--test", metavar="FILE", action="append", help="data to score the model on; may be repeated")
    detect_options.add_held_out(group)
    group.add_argument("--report", metavar="FILE", help="write a report as one HTML file")
    options.add_reading(parser, image_options.described_by)
    options.add_talk(parser)
    image_options.add_training(parser)
    scene_options.add_training(parser)
    part_options.add_training(parser)
    detect_options.add_training(parser)


def run(args: argparse.Namespace, talk: Talk) -> int:
    from ..estimators.inputs import check_memory
    from ..report.reading import left_out

    images = _image_task(args, talk)
    if images == "detect":
        from . import detect_training

        return detect_training.train(args, talk)
    if images is not None:
        from . import image_training

        return image_training.train(args, talk, images)
    image_options.refuse(args, "rows")
    for name, value in _DEFAULTS.items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    for path in (args.output, args.report):
        check_writable(path, [*args.data, *(args.test or [])])
    check_memory(args.memory)
    source = options.open_data(args.data, args)
    if args.test:
        options.open_data(args.test, args, n_features=None)  # complain now rather than after training
    task, guessed = _task(args, source, talk)
    estimator = _estimator(task, args)

    say_checkpoint(args.checkpoint, talk)
    start = time.perf_counter()
    with interrupts() as seen, workers(args.cluster) as transport:
        with _progress(estimator, args, talk, transport) as callbacks:
            estimator.fit(source, **_fit_options(args, transport, callbacks))
        n_workers = None if transport is None else transport.n_workers
    seconds = time.perf_counter() - start
    with replacing(args.output) as path:
        estimator.save(path)
    certificate = estimator.certificate_
    converged = certificate.relative_gap <= args.tol
    # Whoever has interrupted does not want to wait for more passes over data.
    test = options.open_data(args.test, args, like=estimator, n_features=None) if args.test and not seen else None
    score = _score(estimator, test) if test is not None else None
    page = None if seen else args.report
    facts = {
        "task": task, "task_guessed": guessed, "model": args.output, "data": args.data, "rows": len(source),
        "features": estimator.n_features_in_, "classes": estimator.classes_.size if task == "classify" else None,
        "certificate": as_json(certificate), "tol": args.tol, "converged": converged, "interrupted": bool(seen),
        "passes": estimator.n_passes_, "seconds": seconds, "peak_memory": peak_memory(),
        "workers": n_workers, "skipped": left_out(source)[0], "test": score, "report": page,
    }  # fmt: skip
    if page is not None:
        _report(args, estimator, source if test is None else test, facts)
    talk.result(command="train", **facts)
    say_left_out(source)
    _summary(args, facts, talk)
    return INTERRUPTED if seen else DONE if converged else NOT_CONVERGED


def as_json(certificate: Any) -> dict[str, Any]:
    return {
        "lower": certificate.lower,
        "upper": certificate.upper,
        "gap": certificate.gap,
        "relative_gap": certificate.relative_gap,
    }


def _image_task(args: argparse.Namespace, talk: Talk) -> str | None:
    """What to learn from images; None where the data are rows."""
    images = len(args.data) == 1 and image_options.is_image_folder(args.data[0])
    if images and args.task in _KINDS:
        raise ValueError(
            f"{args.data[0]} is a folder of images, and --task {args.task} is for rows. Use --task scene, parts "
            "or detect."
        )
    if args.task == "auto" and args.boxes is not None:
        talk.say("Task: detect, because there are --boxes.")
        return "detect"
    if args.task != "auto" or not images:
        return args.task if args.task in _IMAGES else None
    talk.say("Task: scene, because DATA is a folder of images (--task parts for parts that all classes share).")
    return "scene"


def _task(args: argparse.Namespace, source: Any, talk: Talk) -> tuple[str, bool]:
    if args.task != "auto":
        return args.task, False
    guess = guess_task(source)
    others = " or ".join(f"--task {name}" for name in _KINDS if name != guess.task)
    talk.say(f"Task: {guess.task}, because {guess.because} ({others} if that is wrong).")
    return guess.task, True


def _estimator(task: str, args: argparse.Namespace) -> Any:
    """The estimator with its settings. What has no meaning for the task is refused, not ignored."""
    from .. import estimators

    given: dict[str, Any] = {"C": args.C, "tol": args.tol, "max_passes": args.max_passes, "memory": args.memory}
    given |= {"n_jobs": args.jobs, "random_state": args.seed}
    if args.loss is not None:
        if args.loss not in _LOSSES[task]:
            raise ValueError(f"--loss {args.loss} is not for --task {task}, which knows {' and '.join(_LOSSES[task])}.")
        given["loss"] = args.loss
    for option, value, key, tasks in (
        ("--epsilon", args.epsilon, "epsilon", ("regress",)),
        ("--multi-class", args.multi_class, "multi_class", ("classify",)),
        ("--class-weight", args.class_weight, "class_weight", ("classify",)),
        ("--no-intercept", False if args.no_intercept else None, "fit_intercept", ("classify", "regress")),
    ):
        if value is None:
            continue
        if task not in tasks:
            raise ValueError(f"{option} is for --task {' or '.join(tasks)}, and this is --task {task}. Leave it out.")
        given[key] = value
    return getattr(estimators, _KINDS[task])(**given)


def _fit_options(args: argparse.Namespace, transport: Any, callbacks: tuple[Any, ...]) -> dict[str, Any]:
    means = {"cluster": transport, "callbacks": callbacks or None}
    given = {name: value for name, value in means.items() if value is not None}
    if args.checkpoint is not None:
        given |= {"checkpoint": args.checkpoint, "checkpoint_every": args.checkpoint_every}
    return given


@contextmanager
def _progress(estimator: Any, args: argparse.Namespace, talk: Talk, transport: Any) -> Iterator[tuple[Any, ...]]:
    """Callbacks that say how far a fit has come: a line that is rewritten, or where that makes no log, one per pass."""
    from ..solvers.progress import ProgressLine

    who = "" if transport is None else f"{transport.n_workers} worker{'s' * (transport.n_workers > 1)}"
    if talk.progress:
        title = type(estimator).__name__ + (f" on {who}" if who else "")
        with ProgressLine.as_callbacks(title, args.tol) as line:
            yield line
    else:
        yield (_logging(args.tol, who),) if args.progress and not talk.on_terminal else ()


def _logging(tol: float, who: str) -> Callable[[Any], None]:
    from ..solvers.progress import described

    def log(record: Any) -> None:
        print(described(record, tol) + (f", {who}" if who else ""), file=sys.stderr, flush=True)

    return log


def _score(estimator: Any, test: Any) -> dict[str, Any]:
    from ..report.reading import measure

    tally, survey = measure(estimator, test)
    return {"score": tally.name, "value": tally.score, "rows": survey.rows}


def _report(args: argparse.Namespace, estimator: Any, data: Any, facts: dict[str, Any]) -> None:
    from .. import report

    known = {
        "title": f"{named([args.output])}: {facts['task']}, trained on {named(args.data)}",
        "data": f"test data ({named(args.test)})" if args.test else "training data",
        "seconds": facts["seconds"],
        "peak_memory": facts["peak_memory"],
    }
    report.write(args.report, estimator, data, known)


def _summary(args: argparse.Namespace, facts: dict[str, Any], talk: Talk) -> None:
    from ..report import numbers

    bounds = facts["certificate"]
    gap, tol = bounds["relative_gap"], args.tol
    state = "reached" if facts["converged"] else "NOT reached"
    rows = [
        ("task", facts["task"] + (f", {facts['classes']} classes" if facts["classes"] else "")),
        ("rows", numbers.count(facts["rows"])),
        ("features", numbers.count(facts["features"])),
        ("certificate", f"{bounds['lower']:.8g} <= optimum <= {bounds['upper']:.8g}"),
        ("", f"perfect weights would lower the objective by {numbers.share(gap)} at most" if gap < 1 else
         "the lower bound says nothing yet"),
        ("relative gap", f"{gap:.1e}, goal {tol:g} {state}"),
        ("passes", numbers.count(facts["passes"])),
        ("time", numbers.duration(facts["seconds"])),
        ("peak memory", numbers.size(facts["peak_memory"])
         + (f", and up to {args.memory} of rows in each worker" if facts["workers"] else "")),
        ("model", args.output),
    ]  # fmt: skip
    if facts["workers"]:
        rows.insert(-3, ("workers", f"{numbers.count(facts['workers'])} ({args.cluster})"))
    if facts["skipped"]:
        rows.insert(2, ("rows left out", numbers.count(facts["skipped"])))
    if facts["test"] is not None:
        value = facts["test"]["value"]
        rows.append(
            (
                f"test {facts['test']['score']}",
                f"{numbers.score(facts['task'], value)} on {numbers.count(facts['test']['rows'])} rows",
            )
        )
    if facts["report"]:
        rows.append(("report", facts["report"]))
    talk.facts("Interrupted: the best model so far" if facts["interrupted"] else "Trained", rows)
    if not facts["converged"] and not facts["interrupted"]:
        talk.say(
            f"\nStopped before the goal, after {facts['passes']} passes. The certificate is true all the same. "
            "More --max-passes, a smaller --C or features of similar scale help."
        )
    model = shlex.quote(args.output)
    data = shlex.join(args.data) if len(args.data) <= 5 else "DATA..."  # more would fill the screen
    steps = [
        ("predict", f"maxmargin predict {model} NEW-DATA{_same_reading(args)} -o answers.txt"),
        ("prove it again", f"maxmargin certify {model} {data}{_same_reading(args)}"),
    ]
    if not facts["report"]:
        steps.append(("look at it", f"maxmargin report {model} {data}{_same_reading(args)} -o report.html"))
    if args.checkpoint and not facts["converged"]:
        steps.insert(0, ("go on", "the same command again, it continues from " + shlex.quote(args.checkpoint)))
    talk.next_steps(steps)


def _same_reading(args: argparse.Namespace) -> str:
    """How the data was read, to be read the same way again."""
    given = [("--label", args.label), ("--group", args.group), ("--weight", args.weight)]
    given += [("--zero-based", args.zero_based), ("--on-error", args.on_error)]
    return "".join(f" {option} {shlex.quote(value)}" for option, value in given if value is not None)

"""Training a detector: images and boxes in, a model, what is proved about it and how well it does out."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from typing import Any

from ..files import replacing
from . import DONE, INTERRUPTED, NOT_CONVERGED, detect_options, interrupts
from .files import check_writable, draw_into_files, named
from .image_training import bracket, fit_options
from .measuring import peak_memory
from .talk import Talk, say_checkpoint

HELPS = "More --max-bounds or --max-passes, or a smaller --C, help."


def train(args: argparse.Namespace, talk: Talk) -> int:
    from ..vision import DeformablePartDetector
    from ..vision.pages.detector import parts_of

    given = detect_options.settings(args)
    for path in (args.output, args.report):
        check_writable(path, [*args.data, *(args.test or []), *([args.boxes] if args.boxes else [])])
    detector = DeformablePartDetector(**given, verbose=int(talk.progress))
    learned, held_out = _data(args)
    say_checkpoint(args.checkpoint, talk)
    start = time.perf_counter()
    with interrupts() as seen:
        detector.fit(learned, **fit_options(args, detector, sys.modules[__name__], talk))
    seconds = time.perf_counter() - start
    with replacing(args.output) as path:
        detector.save(path)
    # Whoever has interrupted does not want to wait for more images.
    curve = detector.precision_recall(held_out) if held_out is not None and not seen else None
    page = None if seen else args.report
    facts = {
        "task": "detect", "task_guessed": args.task == "auto", "model": args.output, "data": args.data,
        "label": detector.label_, "images": len(learned),
        "boxes": sum(int((~some).sum()) for some in learned.ignored), "left_out": detector.left_out_,
        "components": len(detector.star_.components), **parts_of(detector), **outcome(detector, bool(seen)),
        "interrupted": bool(seen), "seconds": seconds, "peak_memory": peak_memory(),
        "test": None if curve is None else verdict(curve, len(held_out)), "report": page,
    }  # fmt: skip
    if page is not None:
        _report(page, args, detector, held_out, curve, seconds)
    talk.result(command="train", **facts)
    _summary(args, facts, talk)
    return INTERRUPTED if seen else DONE if facts["converged"] else NOT_CONVERGED


def _data(args: argparse.Namespace) -> tuple[Any, Any]:
    """Images to learn from, and images to be judged by, or None."""
    if args.test and args.holdout is not None:
        raise ValueError("--test names images to judge the detector by, --holdout draws some. Leave one of them out.")
    if args.test_boxes is not None and not args.test:
        raise ValueError("--test-boxes are the boxes of the images of --test, which is missing.")
    learned = detect_options.read_boxes(args.data, args.boxes, args.label)
    if args.holdout is not None:
        return detect_options.split(learned, args.holdout)
    if not args.test:
        return learned, None
    own = len(args.test) == 1 and detect_options.is_table(args.test[0])
    boxes = args.test_boxes or (None if own else args.boxes)
    return learned, detect_options.read_boxes(args.test, boxes, learned.label, "--test-boxes")


def line(record: Any, tol: float) -> str:
    """A bound, for the log."""
    return (
        f"bound {record.number}, objective {record.objective:.6g}, gap {record.gap:.1e}, "
        f"{record.changed:.0%} of the placements changed, {record.seconds:.1f} s"
    )


def outcome(detector: Any, interrupted: bool) -> dict[str, Any]:
    """What training can prove, and whether it got where it was to go."""
    from .train import as_json

    certificate, last = detector.certificate_, detector.history_[-1]
    closed = last.gap <= detector.bound_tol * abs(last.objective)
    return {
        "certificate": as_json(certificate) | {"exact": certificate.exact}, "tol": detector.tol,
        "converged": closed and certificate.relative_gap <= detector.tol and not interrupted,
        "bounds": detector.n_bounds_, "objective": detector.objective_, "passes": detector.n_passes_,
    }  # fmt: skip


def verdict(curve: Any, images: int) -> dict[str, Any]:
    """How well objects are found, for programs."""
    recall = float(curve.recall[-1]) if curve.recall.size else 0.0
    return {
        "score": "average precision", "value": curve.average_precision, "recall": recall,
        "objects": curve.n_truths, "images": images,
    }  # fmt: skip


def in_words(score: dict[str, Any]) -> str:
    from ..report import numbers

    objects, images = numbers.count(score["objects"]), numbers.count(score["images"])
    plural = ["s" * (score[what] != 1) for what in ("objects", "images")]
    return f"{numbers.share(score['value'])} on {objects} object{plural[0]} in {images} image{plural[1]}"


def _report(page: str, args: argparse.Namespace, detector: Any, held_out: Any, curve: Any, seconds: float) -> None:
    from .. import report
    from ..report.story import Data

    draw_into_files()
    title = f"{named([args.output])}: {detector.label_ or 'objects'}, trained on {named(args.data)}"
    files = None if held_out is None else held_out.images
    report.write(page, detector, Data(files, curve, name="held-out images"), {"title": title, "seconds": seconds})


def _duration(seconds: float) -> str:
    from ..report import numbers

    return numbers.duration(seconds)


def _summary(args: argparse.Namespace, facts: dict[str, Any], talk: Talk) -> None:
    from ..report import numbers
    from ..vision.pages.detector import ABOUT

    of = f" of {facts['label']}" if facts["label"] else ""
    left_out = f", {numbers.count(facts['left_out'])} left out" if facts["left_out"] else ""
    against = f" and {facts['negative_parts']} negative" if facts["negative_parts"] else ""
    bounds = f"{facts['bounds']} bound{'s' * (facts['bounds'] != 1)}"
    in_all = " in all" if facts["components"] > 1 else ""
    table = [
        ("task", f"detect{of}"),
        ("images", numbers.count(facts["images"])),
        ("boxes", numbers.count(facts["boxes"]) + left_out),
        ("components", f"{facts['components']}, parts: {facts['parts']}{against}{in_all}"),
        ("objective", f"{facts['objective']:.8g} after {bounds}, {facts['passes']} passes"),
        *bracket(facts["certificate"], facts["tol"]),
        ("", ABOUT),
        ("time", _duration(facts["seconds"])),
        ("peak memory", numbers.size(facts["peak_memory"])),
        ("model", args.output),
    ]
    if facts["test"] is not None:
        table.append(("average precision", in_words(facts["test"])))
    if facts["report"]:
        table.append(("report", facts["report"]))
    talk.facts("Interrupted: the best model so far" if facts["interrupted"] else "Trained", table)
    if not facts["converged"] and not facts["interrupted"]:
        talk.say(f"\nStopped before the goal. {HELPS}")
    model, data = shlex.quote(args.output), shlex.join(args.data) if len(args.data) <= 5 else "IMAGES..."
    same = "".join(
        f" {option} {shlex.quote(str(value))}"
        for option, value in (("--boxes", args.boxes), ("--label", args.label), ("--holdout", args.holdout))
        if value is not None
    )
    steps = [
        ("find objects", f"maxmargin detect PHOTO.jpg --model {model} -o found.png"),
        ("in many images", f"maxmargin detect PHOTOS --model {model} -o boxes.csv"),
        ("prove it again", f"maxmargin certify {model} {data}{same}"),
    ]
    if not facts["report"]:
        if args.test:
            data = shlex.join(args.test) if len(args.test) <= 5 else "IMAGES..."
            same = f" --boxes {shlex.quote(args.test_boxes or args.boxes)}" if args.test_boxes or args.boxes else ""
        steps.append(("look at it", f"maxmargin report {model} {data}{same} -o report.html"))
    if args.checkpoint and not facts["converged"]:
        steps.insert(0, ("go on", "the same command again, it continues from " + shlex.quote(args.checkpoint)))
    talk.next_steps(steps)

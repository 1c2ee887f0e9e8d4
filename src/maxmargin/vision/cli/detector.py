"""Detectors on the command line: images with boxes in; models, tables of boxes and pictures out."""

from __future__ import annotations

import argparse
import csv
import json
import os
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...cli.files import answers_to, where
from ...cli.kind import Kind
from ...cli.talk import Talk, warn
from ...estimators.inputs import check_threads
from ...report import numbers
from ...report.content import Data
from ..detection.annotations import Annotated, annotated, is_file_of_boxes
from ..detection.evaluation import PrecisionRecall
from ..detection.finding import Detections
from ..images import ImageError, list_images, read_image
from ..pages.detector import ABOUT, parts_of
from . import pictures

if TYPE_CHECKING:
    from ..detector import DeformablePartDetector

Taker = Callable[[str, np.ndarray, Detections], None]  # of a file, its pixels, and what was found in them


class Detectors(Kind[Annotated]):
    unit = what = "images"
    about = ABOUT
    model: DeformablePartDetector
    _judged: tuple[list[Any] | None, PrecisionRecall | None] = (None, None)
    helps = "More --max-bounds or --max-passes, or a smaller --C, help."
    other = "These are likely not the images and boxes that the model was trained on (--holdout as then?)."

    def prepare(self, settings: dict[str, Any]) -> None:
        args = self.args
        _check_share(args.holdout)
        if args.test and args.holdout is not None:
            raise ValueError("--test names images to judge by, --holdout draws some. Leave one of them out.")

    def training(self) -> tuple[Annotated, Annotated | None]:
        args = self.args
        learned = read_boxes(args.data, args.boxes, args.label)
        if args.holdout is not None:
            return split(learned, args.holdout)
        if not args.test:
            return learned, None
        return learned, read_boxes(args.test, None if _is_table(args.test) else args.boxes, learned.label)

    def open(self, paths: list[str], held_out: bool = False) -> Annotated:
        """What a detector was trained on, or what was held out."""
        args = self.args
        _check_share(args.holdout)
        given = read_boxes(paths, args.boxes, args.label or self.model.label_)
        return given if args.holdout is None else split(given, args.holdout)[held_out]

    def arguments(self, data: Annotated) -> tuple[Annotated]:
        return (data,)

    def page(self, data: Annotated, name: str) -> Data:
        """The curve of the last score, over the images that it was found on; the model alone if there are none."""
        images, curve = self._judged
        return Data(images, curve, name="held-out images")

    def reported(self, name: str) -> tuple[Data, dict[str, Any]]:
        args, score = self.args, None
        if args.boxes is not None or _is_table(args.data):
            score = self.score(self.open(args.data, held_out=True))
        elif args.holdout is not None or args.label is not None:
            option = "--label" if args.holdout is None else "--holdout"
            raise ValueError(f"{option} is for images with boxes, and there are no --boxes. Leave it out.")
        elif args.data:
            self._judged = listed(args.data), None
        return Data(*self._judged, name=name), {"task": "detect", "test": score}

    def facts(self, data: Annotated) -> dict[str, Any]:
        model = self.model
        return {
            "label": model.label_, "boxes": sum(int((~some).sum()) for some in data.ignored),
            "left_out": model.left_out_, "components": len(model.star_.components), **parts_of(model),
        }  # fmt: skip

    def rows(self, facts: dict[str, Any]) -> list[tuple[str, str]]:
        against = f" and {facts['negative_parts']} negative" if facts["negative_parts"] else ""
        in_all = " in all" if facts["components"] > 1 else ""
        left_out = f", {numbers.count(facts['left_out'])} left out" if facts["left_out"] else ""
        return [
            *([("objects", facts["label"])] if facts["label"] else []),
            ("boxes", numbers.count(facts["boxes"]) + left_out),
            ("components", f"{facts['components']}, parts: {facts['parts']}{against}{in_all}"),
        ]

    def score(self, data: Annotated) -> dict[str, Any]:
        curve = self.model.precision_recall(data)
        self._judged = data.images, curve
        return {
            "score": "average precision", "value": curve.average_precision,
            "recall": float(curve.recall[-1]) if curve.recall.size else 0.0,
            "objects": curve.n_truths, "images": len(data),
        }  # fmt: skip

    def in_words(self, score: dict[str, Any]) -> str:
        objects = f"{numbers.count(score['objects'])} object{'s' * (score['objects'] != 1)}"
        return f"{numbers.share(score['value'])} on {objects} in {_images(score['images'])}"

    def use(self, model: DeformablePartDetector) -> None:
        self.model = model.set_params(n_jobs=self.args.jobs)

    def predict(self) -> None:
        args, files = self.args, listed(self.args.data)
        if pictures.are_wanted(args.output):
            find(self.model, files, args, self.talk, pictures.drawing(pictures.places(args.output, files)))
            return
        with table(args, self.model) as take:
            find(self.model, files, args, self.talk, take)


def _check_share(share: float | None) -> None:
    if share is not None and not 0.0 < share < 1.0:
        raise ValueError(f"--holdout must be a number between 0 and 1, got {share:g}.")


def _is_table(paths: list[str]) -> bool:
    """Whether boxes are in a file that stands where images are expected: it names its images itself."""
    return len(paths) == 1 and is_file_of_boxes(paths[0])


def read_boxes(paths: list[str], boxes: str | None, label: str | None) -> Annotated:
    """Images and their boxes, not opened yet."""
    if boxes is None and _is_table(paths):
        return annotated(None, paths[0], label=label)
    if boxes is None:
        raise ValueError(
            "--boxes is missing: a detector needs to know where objects are in the images. It is a table with a row "
            "for each box (.csv: image, x_min, y_min, x_max, y_max), a COCO file (.json) or a folder of VOC files."
        )
    return annotated(paths[0] if len(paths) == 1 else list_images(paths), boxes, label=label)


def split(given: Annotated, share: float) -> tuple[Annotated, Annotated]:
    """Images to learn from, and those held out: of images with objects and of the others the same share.

    A checksum of their names chooses, so that the same images are held out next time, and the same few if others come.
    """

    def turn(i: int) -> tuple[int, int]:
        return zlib.crc32(os.path.basename(given.name(i)).encode("utf-8", "surrogateescape")), i

    held: set[int] = set()
    with_objects = [bool((~given.ignored[i]).any()) for i in range(len(given))]
    for objects in (True, False):
        some = sorted((i for i in range(len(given)) if with_objects[i] is objects), key=turn)
        n = round(share * len(some))
        if objects and not 0 < n < len(some):
            raise ValueError(
                f"--holdout {share:g} of {len(some)} images with objects is {n}: at least one must be held out, and at "
                "least one be left to learn from. Use another share, or more images."
            )
        held.update(some[:n])

    def only(kept: list[int]) -> Annotated:
        boxes, ignored = ([some[i] for i in kept] for some in (given.boxes, given.ignored))
        return Annotated([given.images[i] for i in kept], boxes, ignored, given.label)

    return only([i for i in range(len(given)) if i not in held]), only(sorted(held))


def listed(data: list[str]) -> list[str]:
    return list(dict.fromkeys(list_images(where(data))))


def find(model: DeformablePartDetector, files: list[str], args: argparse.Namespace, talk: Talk, take: Taker) -> None:
    """Find objects in all images, and hand what is found to ``take``."""
    read = objects = empty = 0
    with talk.counting("Searched", "images") as counting:
        for done, (file, pixels, found) in enumerate(_found(model, files, args), 1):
            if isinstance(found, ImageError):
                if len(files) == 1:
                    raise found
                warn(f"left out: {found}" if file in str(found) else f"left out: {file}: {found}")
                continue
            take(file, pixels, found)
            read, objects, empty = read + 1, objects + len(found), empty + (len(found) == 0)
            counting(read, done=done, total=len(files))
        if not read:
            raise ValueError(f"None of the {len(files)} images could be read.")
    left_out = len(files) - read
    talk.result(
        command=args.command, task="detect", model=args.model, label=model.label_, images=read, left_out=left_out,
        objects=objects, images_without=empty, output=args.output,
    )  # fmt: skip
    said = f"{numbers.count(objects)} {model.label_ or 'object' + 's' * (objects != 1)} found in {_images(read)}"
    said += f", none in {numbers.count(empty)} of them" if empty and read > 1 else ""
    said += f"; {_images(left_out)} left out" if left_out else ""
    hint = " A lower --threshold finds more." if not objects else ""
    talk.say(f"{said}.{hint}" + (f" Written: {args.output}" if args.output else ""))


def _images(n: int) -> str:
    return f"{numbers.count(n)} image{'s' * (n != 1)}"


def _found(
    model: DeformablePartDetector, files: list[str], args: argparse.Namespace
) -> Iterator[tuple[str, np.ndarray, Detections | ImageError]]:
    """Pixels and detections of each file, in their order; an error instead where an image cannot be read."""
    said = {name: vars(args)[name] for name in ("threshold", "overlap", "most") if vars(args)[name] is not None}

    def search(file: str) -> tuple[str, np.ndarray, Detections | ImageError]:
        try:
            pixels = read_image(file, color=True)
            return file, pixels, model.detect(pixels, **said)
        except ImageError as error:
            return file, np.empty(0), error

    threads = check_threads(args.jobs)
    if threads == 1:
        yield from map(search, files)
        return
    with ThreadPoolExecutor(threads) as pool:
        for begin in range(0, len(files), 4 * threads):  # no more images in memory than these
            yield from pool.map(search, files[begin : begin + 4 * threads])


@contextmanager
def table(args: argparse.Namespace, model: DeformablePartDetector) -> Iterator[Taker]:
    """Where boxes are written to, a row for each."""
    suffix = os.path.splitext(args.output or "")[1].lower()
    with answers_to(args) as file:
        if file is None:
            yield lambda name, pixels, found: None
            return
        if suffix == ".json":
            results: list[dict[str, Any]] = []
            yield lambda name, pixels, found: results.extend(_coco(name, found))
            json.dump(results, file, ensure_ascii=True)
            file.write("\n")
            return
        writer = csv.writer(file, delimiter=pictures.TABLES.get(suffix, ","), lineterminator="\n")
        own = [] if model.label_ is None else [model.label_]
        head = ["image", "x_min", "y_min", "x_max", "y_max", "score", "component", "mirrored"]
        writer.writerow([*head, *(["label"] if own else [])])

        def write(name: str, pixels: np.ndarray, found: Detections) -> None:
            for box, score, component, mirrored in _entries(found):
                edges = [f"{edge:.2f}" for edge in box]
                writer.writerow([name, *edges, f"{score:.6g}", component, int(mirrored), *own])

        yield write


def _entries(found: Detections) -> Iterator[tuple[list[float], float, int, bool]]:
    columns = (found.boxes, found.scores, found.components, found.mirrored)
    return zip(*(column.tolist() for column in columns), strict=True)


def _coco(name: str, found: Detections) -> list[dict[str, Any]]:
    """What COCO calls results. An image is known by its number if its name is one, as there; by its name if not."""
    stem = os.path.splitext(os.path.basename(name))[0]
    image = int(stem) if stem.isascii() and stem.isdigit() else os.path.basename(name)
    return [
        {
            "image_id": image, "category_id": 1, "file_name": name, "score": score,
            "bbox": [round(edge, 2) for edge in (x0, y0, x1 - x0, y1 - y0)],
        }
        for (x0, y0, x1, y1), score, _, _ in _entries(found)
    ]  # fmt: skip

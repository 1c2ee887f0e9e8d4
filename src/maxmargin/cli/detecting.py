"""What the commands do with a detector: boxes as tables and pictures, its certificate, its page."""

from __future__ import annotations

import argparse
import csv
import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..files import replacing
from . import DONE, NOT_CONVERGED, detect_options, image_options, options
from .files import answers_to, check_writable, draw_into_files, named
from .measuring import peak_memory
from .talk import Talk, warn

Taker = Callable[[str, Any, Any], None]  # of a file, its pixels, and what was found in them
_TABLES = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_KINDS = "a table (.csv, .tsv), a COCO file (.json)"


def predict(model: Any, args: argparse.Namespace, talk: Talk) -> int:
    """Boxes as a table: ``maxmargin predict``."""
    image_options.refuse(args, "detect")
    if args.output is not None and _picture_format(args.output):
        raise ValueError(f"maxmargin predict writes {_KINDS}; pictures come from maxmargin detect.")
    files = _listed(args.data)
    with _table(args, model) as take:
        return _all(model, files, args, talk, take)


def detect(model: Any, args: argparse.Namespace, talk: Talk) -> int:
    """Boxes as a table or in pictures, as the name of the output says: ``maxmargin detect``."""
    files = _listed(args.data)
    target = args.output
    if target == "-":
        raise ValueError("-o names a file or a folder. The table goes to stdout where there is no -o.")
    if args.only_boxes and (target is None or not _draws(target)):
        raise ValueError("--only-boxes is for pictures, and a table has boxes only. Leave it out.")
    if target is None or not _draws(target):
        check_writable(target, [args.model, *files])
        with _table(args, model) as take:
            return _all(model, files, args, talk, take)
    if _picture_format(target):
        if len(files) > 1:
            raise ValueError(
                f"{target} is one picture, and there are {len(files)} images. Name a folder for pictures of all of "
                f"them, or {_KINDS}."
            )
        names = {files[0]: target}
    else:
        names = _within(target, files)
    for name in names.values():
        if Path(name).parent.is_dir():
            check_writable(name, files)
    if _picture_format(target) or not os.path.isdir(target):
        check_writable(target.rstrip("/\\"))
    return _all(model, files, args, talk, _pictures(names, parts=not args.only_boxes))


def _listed(data: list[str]) -> list[str]:
    from ..vision.images import list_images

    return list(dict.fromkeys(list_images(options.where(data))))


def _picture_format(path: str) -> str | None:
    """The format in which Pillow writes a picture of that name; None if it is no name of a picture."""
    from ..vision.images import pillow

    pillow()
    from PIL import Image

    known = Image.registered_extensions().get(os.path.splitext(path)[1].lower())
    return known if known in Image.SAVE and not os.path.isdir(path) else None


def _draws(target: str) -> bool:
    """Whether pictures are to be written: into one file, or into a folder."""
    suffix = os.path.splitext(target)[1].lower()
    if os.path.isdir(target) or target.endswith(("/", os.sep)) or not suffix:
        return True
    if suffix in _TABLES or suffix == ".json":
        return False
    if _picture_format(target):
        return True
    raise ValueError(f"What is to be written to {target}? Name a picture (.png, .jpg), a folder of them, {_KINDS}.")


def _within(folder: str, files: list[str]) -> dict[str, str]:
    """A place in a folder for the picture of each file, in folders like theirs."""
    common = os.path.commonpath([os.path.dirname(os.path.abspath(file)) for file in files])
    inside = [os.path.relpath(os.path.abspath(file), common) for file in files]
    stems = [os.path.splitext(path)[0] for path in inside]
    twice = {stem for stem in stems if stems.count(stem) > 1} if len(set(stems)) < len(stems) else set()
    chosen = [path if stem in twice else stem for path, stem in zip(inside, stems, strict=True)]
    return {file: os.path.join(folder, f"{name}.png") for file, name in zip(files, chosen, strict=True)}


def _all(model: Any, files: list[str], args: argparse.Namespace, talk: Talk, take: Taker) -> int:
    """Find objects in all images, and hand what is found to ``take``."""
    from ..report import numbers

    read = objects = empty = 0
    with talk.counting("Searched", "images") as counting:
        for done, (file, pixels, found) in enumerate(_found(model, files, args), 1):
            if isinstance(found, Exception):
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
    return DONE


def _images(n: int) -> str:
    from ..report import numbers

    return f"{numbers.count(n)} image{'s' * (n != 1)}"


def _found(model: Any, files: list[str], args: argparse.Namespace) -> Iterator[tuple[str, Any, Any]]:
    """Pixels and detections of each file, in their order; an error instead where an image cannot be read."""
    from ..estimators.inputs import check_threads
    from ..vision.images import ImageError, read_image

    said = detect_options.finding(args)

    def search(file: str) -> tuple[str, Any, Any]:
        try:
            pixels = read_image(file, color=True)
            return file, pixels, model.detect(pixels, **said)
        except ImageError as error:
            return file, None, error

    threads = check_threads(args.jobs)
    if threads == 1:
        yield from map(search, files)
        return
    with ThreadPoolExecutor(threads) as pool:
        for begin in range(0, len(files), 4 * threads):  # no more images in memory than these
            yield from pool.map(search, files[begin : begin + 4 * threads])


@contextmanager
def _table(args: argparse.Namespace, model: Any) -> Iterator[Taker]:
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
        writer = csv.writer(file, delimiter=_TABLES.get(suffix, ","), lineterminator="\n")
        own = [] if model.label_ is None else [model.label_]
        head = ["image", "x_min", "y_min", "x_max", "y_max", "score", "component", "mirrored"]
        writer.writerow([*head, *(["label"] if own else [])])

        def write(name: str, pixels: Any, found: Any) -> None:
            for box, score, component, mirrored in _entries(found):
                edges = [f"{edge:.2f}" for edge in box]
                writer.writerow([name, *edges, f"{score:.6g}", component, int(mirrored), *own])

        yield write


def _entries(found: Any) -> Iterator[tuple[list[float], float, int, bool]]:
    columns = (found.boxes, found.scores, found.components, found.mirrored)
    return zip(*(column.tolist() for column in columns), strict=True)


def _coco(name: str, found: Any) -> list[dict[str, Any]]:
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


def _pictures(names: dict[str, str], *, parts: bool) -> Taker:
    """Draws what was found into a copy of each image."""
    from ..vision.detection.drawing import drawn

    def draw(file: str, pixels: Any, found: Any) -> None:
        target = names[file]
        form = _picture_format(target)
        os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
        with replacing(target) as path:
            drawn(pixels, found, parts=parts).save(path, form, **({"quality": 92} if form == "JPEG" else {}))

    return draw


def certify(model: Any, args: argparse.Namespace, talk: Talk) -> int:
    from ..report import numbers
    from ..vision.pages.detector import ABOUT
    from .train import as_json

    image_options.refuse(args, "detect")
    given = detect_options.read_boxes(args.data, args.boxes, args.label or model.label_)
    if args.holdout is not None:
        given = detect_options.split(given, args.holdout)[0]
    start = time.perf_counter()
    certificate = model.set_params(n_jobs=args.jobs).certify(given)
    seconds = time.perf_counter() - start
    gap = certificate.relative_gap
    proved = gap <= model.tol
    talk.result(
        command="certify", task="detect", model=args.model, data=args.data, images=len(given),
        certificate=as_json(certificate) | {"exact": certificate.exact}, tol=model.tol, proved=proved,
        seconds=seconds, peak_memory=peak_memory(),
    )  # fmt: skip
    facts = [
        ("certificate", f"{certificate.lower + 0.0:.8g} <= optimum <= {certificate.upper:.8g}"),  # no -0
        ("relative gap", f"{gap:.1e}, goal {model.tol:g}"),
        ("", ABOUT),
        ("images", numbers.count(len(given))),
        ("time", numbers.duration(seconds)),
    ]
    talk.facts("Proved again" if proved else "Not proved to the model's goal", facts)
    if not proved:
        if gap > 2.0 * max(model.certificate_.relative_gap, model.tol):
            talk.say("\nThese are likely not the images and boxes that the model was trained on (--holdout as then?).")
        else:
            talk.say("\nTraining ended before its goal; train longer for a smaller gap.")
    return DONE if proved else NOT_CONVERGED


def report(model: Any, args: argparse.Namespace, talk: Talk) -> int:
    from .. import report as pages
    from ..report.story import Data
    from .detect_training import in_words, verdict

    image_options.refuse(args, "detect")
    alone = len(args.data) == 1 and detect_options.is_table(args.data[0])
    files, curve = [], None
    if args.boxes is not None or alone:
        given = detect_options.read_boxes(args.data, args.boxes, args.label or model.label_)
        if args.holdout is not None:
            given = detect_options.split(given, args.holdout)[1]
        curve, files = model.precision_recall(given), given.images
    elif args.holdout is not None or args.label is not None:
        option = "--label" if args.holdout is None else "--holdout"
        raise ValueError(f"{option} is for images with boxes, and there are no --boxes. Name them, or leave it out.")
    elif args.data:
        files = _listed(args.data)
    draw_into_files()
    title = args.title or os.path.basename(args.model)
    pages.write(args.output, model, Data(files or None, curve, name=named(args.data) or "these"), {"title": title})
    score = None if curve is None else verdict(curve, len(files))
    talk.result(command="report", task="detect", model=args.model, data=args.data, output=args.output, test=score)
    talk.say(f"Report: {args.output}" + ("" if score is None else f". Average precision: {in_words(score)}."))
    return DONE

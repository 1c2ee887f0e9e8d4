"""maxmargin detect IMAGE [IMAGE ...] --model MODEL [-o PICTURE|FOLDER|TABLE] [options]

Find objects in images with a detector (maxmargin train --task detect). What is written depends on the name after -o:

  found.png    one image with boxes, scores and parts drawn into it (white: parts, violet: negative parts)
  found/       such a picture of every image
  boxes.csv    a table with a row for each box (.tsv with tabs): image, x_min, y_min, x_max, y_max in pixels, score,
               component, mirrored, and the label if the detector has one; maxmargin train --boxes reads it too
  boxes.json   results in the form of COCO

Without -o the table goes to stdout. Images that cannot be read are named, counted and left out.

examples:
  maxmargin detect photo.jpg --model cats.mm -o found.png
  maxmargin detect photos/ --model cats.mm -o found --threshold 0.5 --jobs 4
  maxmargin detect 'photos/*.jpg' --model cats.mm -o boxes.csv

exit status: 0 done, 2 wrong usage or unusable data, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ...cli import DONE, options
from ...cli.files import check_writable, load_any
from ...cli.talk import Talk
from ...cli.tasks import task_of
from ...files import replacing

if TYPE_CHECKING:
    import numpy as np

    from ..detection.finding import Detections
    from .detector import Taker


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="+", metavar="IMAGE", help="images: files, patterns, or folders (at any depth)")
    parser.add_argument("-m", "--model", required=True, metavar="MODEL", help="model file, written by maxmargin train")
    parser.add_argument("-o", "--output", metavar="FILE", help="what to write, see above (default: a table on stdout)")
    parser.add_argument("--only-boxes", action="store_true", help="pictures: draw no parts")
    options.add_jobs(parser)
    options.add_talk(parser)
    options.add_all(parser, "detect")


def run(args: argparse.Namespace, talk: Talk) -> int:
    model = load_any(args.model)
    task = task_of(model, args.model)
    if task.name != "detect":
        raise ValueError(
            f"{args.model} holds a {task.estimator}, which finds no objects. maxmargin train --task detect makes "
            "a detector; for this model: maxmargin predict."
        )
    from . import detector

    options.resolve(args, task)
    files, target = detector.listed(args.data), args.output
    if target == "-":
        raise ValueError("-o names a file or a folder. The table goes to stdout where there is no -o.")
    draws = target is not None and _draws(target)
    if args.only_boxes and not draws:
        raise ValueError("--only-boxes is for pictures, and a table has boxes only. Leave it out.")
    if draws:
        detector.find(model, files, args, talk, _pictures(_places(target, files), parts=not args.only_boxes))
        return DONE
    check_writable(target, [args.model, *files])
    with detector.table(args, model) as take:
        detector.find(model, files, args, talk, take)
    return DONE


def _draws(target: str) -> bool:
    """Whether pictures are to be written: into one file, or into a folder."""
    from .detector import KINDS, TABLES, picture_format

    suffix = os.path.splitext(target)[1].lower()
    if os.path.isdir(target) or target.endswith(("/", os.sep)) or not suffix:
        return True
    if suffix in TABLES or suffix == ".json":
        return False
    if picture_format(target):
        return True
    raise ValueError(f"What is to be written to {target}? Name a picture (.png, .jpg), a folder of them, {KINDS}.")


def _places(target: str, files: list[str]) -> dict[str, str]:
    """Where the picture of each file is written to."""
    from .detector import KINDS, picture_format

    names = _within(target, files)
    if picture_format(target):
        if len(files) > 1:
            raise ValueError(
                f"{target} is one picture, and there are {len(files)} images. Name a folder for pictures of all of "
                f"them, or {KINDS}."
            )
        names = {files[0]: target}
    for name in names.values():
        if Path(name).parent.is_dir():
            check_writable(name, files)
    if not os.path.isdir(target):
        check_writable(target.rstrip("/\\"))
    return names


def _within(folder: str, files: list[str]) -> dict[str, str]:
    """A place in a folder for the picture of each file, in folders like theirs."""
    common = os.path.commonpath([os.path.dirname(os.path.abspath(file)) for file in files])
    inside = [os.path.relpath(os.path.abspath(file), common) for file in files]
    stems = [os.path.splitext(path)[0] for path in inside]
    twice = {stem for stem in stems if stems.count(stem) > 1} if len(set(stems)) < len(stems) else set()
    chosen = [path if stem in twice else stem for path, stem in zip(inside, stems, strict=True)]
    return {file: os.path.join(folder, f"{name}.png") for file, name in zip(files, chosen, strict=True)}


def _pictures(names: dict[str, str], *, parts: bool) -> Taker:
    """Draws what was found into a copy of each image."""
    from ..detection.drawing import drawn
    from .detector import picture_format

    def draw(file: str, pixels: np.ndarray, found: Detections) -> None:
        target = names[file]
        form = picture_format(target)
        os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
        with replacing(target) as path:
            drawn(pixels, found, parts=parts).save(path, form, **({"quality": 92} if form == "JPEG" else {}))

    return draw

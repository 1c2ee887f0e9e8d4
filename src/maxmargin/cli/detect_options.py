"""Options for detectors: which there are, and where the images and boxes that they name come from."""

from __future__ import annotations

import argparse
import math
from typing import Any

from . import image_options, options

_TABLES = (".csv", ".tsv", ".json", ".xml")


def add_training(parser: argparse.ArgumentParser) -> None:
    """Options of ``train`` for detectors. None has a default here: what was not said is the detector's affair."""
    group = parser.add_argument_group("detectors (also --parts, --components, --no-flips, --bound and --max-bounds)")
    _add_boxes(group)
    group.add_argument(
        "--negative-parts", type=options.count, metavar="N",
        help="parts of each component whose best match lowers the score (default: 0)",
    )  # fmt: skip
    group.add_argument("--mirrored", action="store_true", help="search for the mirror image of each component as well")
    group.add_argument(
        "--positive-weight", type=options.positive, metavar="W", help="how much more objects count (default: 1)"
    )
    group.add_argument(
        "--root-area", type=options.positive, metavar="CELLS", help="cells of a root filter (default: from the boxes)"
    )
    group.add_argument("--part-size", type=options.whole, metavar="N", help="sides of a part, in cells (default: 6)")
    group.add_argument(
        "--octave-scales", type=options.whole, metavar="N", help="sizes searched until an image is halved (default: 5)"
    )
    group.add_argument(
        "--finest", type=options.positive, metavar="TIMES",
        help="how much images are enlarged at first (default: from the boxes, at most 2)",
    )  # fmt: skip
    group.add_argument("--no-box-regression", action="store_true", help="answer with the boxes of root filters")


def add_held_out(group: Any) -> None:
    """Options of ``train`` that name images to judge a detector by."""
    group.add_argument(
        "--test-boxes", metavar="FILE", help="detectors: boxes of the images of --test (default: those of --boxes)"
    )
    _add_holdout(group)


def add_boxes(parser: argparse.ArgumentParser) -> None:
    """Options of commands that compare a detector with boxes."""
    group = parser.add_argument_group("detectors")
    _add_boxes(group)
    _add_holdout(group)


def add_finding(parser: argparse.ArgumentParser) -> None:
    """Options of commands that find objects."""
    group = parser.add_argument_group("detectors")
    group.add_argument(
        "--threshold", type=_finite, metavar="SCORE",
        help="least score of what is found (default: the best one in training; lower finds more, and more wrongly)",
    )  # fmt: skip
    group.add_argument(
        "--overlap", type=_overlap, metavar="SHARE",
        help="a box of which more than this lies within a better one is dropped (default: 0.5)",
    )  # fmt: skip
    group.add_argument("--most", type=options.whole, metavar="N", help="most objects in an image (default: 100)")


def _add_boxes(group: Any) -> None:
    group.add_argument(
        "--boxes", metavar="FILE",
        help="where objects are in the images: a table (.csv), a COCO file (.json), or a folder of VOC files (.xml)",
    )  # fmt: skip


def _add_holdout(group: Any) -> None:
    group.add_argument(
        "--holdout", type=options.share, metavar="SHARE",
        help="detectors: share of the images that is kept from training, and that the detector is judged by; which "
        "ones depends on their names alone",
    )  # fmt: skip


def _finite(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}")
    return value


def _overlap(text: str) -> float:
    value = options.not_negative(text)
    if value > 1.0:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, got {text!r}")
    return value


def settings(args: argparse.Namespace) -> dict[str, Any]:
    """What was said, in the words of ``DeformablePartDetector``. What has no meaning for detectors is refused."""
    image_options.refuse(args, "detect")
    if args.components == "all":
        raise ValueError("--components all is for parts (--task parts); for a detector it is a whole number.")
    if args.bound == "coherent":
        raise ValueError("--bound coherent is for scenes (--task scene). Use --bound cccp or gmm.")
    if args.part_size is not None and args.parts == 0 and not args.negative_parts:
        raise ValueError("--part-size is for detectors with parts, and there are --parts 0. Leave it out.")
    if args.mirrored and args.no_flips:
        raise ValueError("--mirrored learns from mirror images, and --no-flips does not. Leave one of them out.")
    return image_options.said(
        n_components=args.components, n_parts=args.parts, n_negative_parts=args.negative_parts, C=args.C,
        positive_weight=args.positive_weight, mirrored=args.mirrored or None, flips=False if args.no_flips else None,
        root_area=args.root_area, part_size=args.part_size, octave_scales=args.octave_scales, finest=args.finest,
        bound=args.bound, box_regression=False if args.no_box_regression else None, tol=args.tol,
        max_bounds=args.max_bounds, max_passes=args.max_passes, memory=args.memory, n_jobs=args.jobs,
        random_state=args.seed,
    )  # fmt: skip


def finding(args: argparse.Namespace) -> dict[str, Any]:
    """What was said about finding, in the words of ``DeformablePartDetector.detect``."""
    return image_options.said(threshold=args.threshold, overlap=args.overlap, most=args.most)


def is_table(path: str) -> bool:
    """Whether boxes are in a file that stands where images are expected: it names its images itself."""
    return path.lower().endswith(_TABLES)


def read_boxes(paths: list[str], boxes: str | None, label: Any, option: str = "--boxes") -> Any:
    """Images and their boxes, not opened yet; ``option`` is the one to name if there are no boxes."""
    from ..vision.detection.annotations import annotated
    from ..vision.images import list_images

    if boxes is None and len(paths) == 1 and is_table(paths[0]):
        return annotated(None, paths[0], label=label)
    if boxes is None:
        raise ValueError(
            f"{option} is missing: a detector needs to know where objects are in the images. It is a table with a row "
            "for each box (.csv: image, x_min, y_min, x_max, y_max), a COCO file (.json) or a folder of VOC files."
        )
    return annotated(paths[0] if len(paths) == 1 else list_images(paths), boxes, label=label)


def split(given: Any, share: float) -> tuple[Any, Any]:
    """Images to learn from, and those held out: of images with objects and of the others the same share.

    A checksum of their names chooses, so that the same images are held out next time, and the same few if others come.
    """
    import os
    import zlib

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
    rest = [i for i in range(len(given)) if i not in held]
    return _of(given, rest), _of(given, sorted(held))


def _of(given: Any, kept: list[int]) -> Any:
    from ..vision.detection.annotations import Annotated

    images, boxes, ignored = ([some[i] for i in kept] for some in (given.images, given.boxes, given.ignored))
    return Annotated(images, boxes, ignored, given.label)

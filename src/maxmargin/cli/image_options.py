"""Options of images: which there are, what each has a meaning for, and what is refused where it has none."""

from __future__ import annotations

import argparse
import os
from typing import Any

from . import options

_TRAININGS = {"scene": ("discriminative", "generative"), "parts": ("random", "selected", "joint")}
_FEATURES = {"scene": ("words", "cnn"), "parts": ("hog", "cnn")}
_SCENE, _PARTS, _BOTH, _ROWS, _DETECT = ("scene",), ("parts",), ("scene", "parts"), ("rows",), ("detect",)
_OF = {
    "--kind": ("kind", _SCENE), "--grid": ("grid", _SCENE), "--parts": ("parts", _SCENE + _DETECT),
    "--shared-parts": ("shared_parts", _SCENE), "--words": ("words", _SCENE), "--init": ("init", _SCENE),
    "--bound": ("bound", _SCENE + _DETECT), "--max-bounds": ("max_bounds", _SCENE + _DETECT),
    "--n-parts": ("n_parts", _PARTS), "--pool": ("pool", _PARTS), "--components": ("components", _PARTS + _DETECT),
    "--no-flips": ("no_flips", _PARTS + _DETECT), "--max-rounds": ("max_rounds", _PARTS),
    "--device": ("device", _PARTS),
    "--training": ("training", _BOTH), "--cache": ("cache", _BOTH),
    "--loss": ("loss", _ROWS), "--epsilon": ("epsilon", _ROWS), "--multi-class": ("multi_class", _ROWS),
    "--class-weight": ("class_weight", _ROWS), "--no-intercept": ("no_intercept", _ROWS),
    "--label": ("label", _ROWS + _DETECT), "--group": ("group", _ROWS), "--weight": ("weight", _ROWS),
    "--zero-based": ("zero_based", _ROWS), "--cluster": ("cluster", _ROWS),
    "--boxes": ("boxes", _DETECT), "--test-boxes": ("test_boxes", _DETECT), "--holdout": ("holdout", _DETECT),
    "--negative-parts": ("negative_parts", _DETECT), "--mirrored": ("mirrored", _DETECT),
    "--positive-weight": ("positive_weight", _DETECT), "--root-area": ("root_area", _DETECT),
    "--part-size": ("part_size", _DETECT), "--octave-scales": ("octave_scales", _DETECT),
    "--finest": ("finest", _DETECT), "--no-box-regression": ("no_box_regression", _DETECT),
    "--threshold": ("threshold", _DETECT), "--overlap": ("overlap", _DETECT), "--most": ("most", _DETECT),
    "--on-error": ("on_error", _ROWS + _BOTH), "--scores": ("scores", _ROWS + _BOTH),
}  # fmt: skip
_REGIONS = {"grids": _PARTS, "regions": _SCENE}  # one option: what to pool over in training, or what to answer
_THESE = {
    "scene": "images of scenes", "parts": "images of parts", "rows": "rows of a matrix",
    "detect": "images of objects in boxes",
}  # fmt: skip
_WHERE = {
    "scene": "scenes (--task scene)", "parts": "parts (--task parts)", "rows": "rows of a matrix",
    "detect": "detectors (--task detect)",
}  # fmt: skip


def add_training(parser: argparse.ArgumentParser) -> None:
    """Options of ``train`` that scenes and parts share. What was not said is the classifier's affair."""
    group = parser.add_argument_group("scenes and parts (DATA is a folder with one sub-folder of images per class)")
    group.add_argument(
        "--training", choices=(*_TRAININGS["scene"], *_TRAININGS["parts"]),
        help="scenes: a (latent) SVM with a certificate (discriminative, the default), or counting and EM; parts: "
        "trained with their weights (joint, the default), selected from random ones, or random",
    )  # fmt: skip
    add_using(group)


def add_using(parser: Any) -> None:
    """Options of all commands that look at images: with what means of this machine."""
    parser.add_argument("--cache", metavar="FOLDER", help="images: keep their features here for the next run")
    parser.add_argument("--device", metavar="NAME", help="parts: where responses are computed, such as cuda")


def described_by(text: str) -> int | str:
    """The value of --features: how many, for rows; or what describes images. For argparse."""
    if any(text in known for known in _FEATURES.values()):
        return text
    try:
        return options.whole(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            f"must be a whole number of at least 1, or for scenes words or cnn, for parts hog or cnn, got {text!r}"
        ) from None


def refuse(args: argparse.Namespace, task: str) -> None:
    """Complain of what has a meaning for other tasks alone; ``task`` is "scene", "parts", "detect" or "rows"."""
    given = [(option, name, tasks) for option, (name, tasks) in _OF.items()]
    given += [("--regions", name, tasks) for name, tasks in _REGIONS.items()]
    for option, name, tasks in given:
        value = getattr(args, name, None)
        if task not in tasks and value is not None and value is not False:
            where = " and ".join(_WHERE[other] for other in tasks)
            raise ValueError(f"{option} is for {where}, and these are {_THESE[task]}. Leave it out.")
    features, training = getattr(args, "features", None), getattr(args, "training", None)
    if task == "rows":
        if isinstance(features, str):
            other = " and ".join(f"--task {name}" for name, known in _FEATURES.items() if features in known)
            raise ValueError(f"--features {features} is for {other}; for rows it is their number of features.")
        return
    if task == "detect":
        if features is not None:
            raise ValueError(f"--features {features} is not for --task detect, which knows gradients. Leave it out.")
        return
    known = " or ".join(_FEATURES[task])
    if isinstance(features, int):
        raise ValueError(f"--features {features} is for rows of a matrix; for {task} it is {known}.")
    if features is not None and features not in _FEATURES[task]:
        raise ValueError(f"--features {features} is not for --task {task}, which knows {known}.")
    if training is not None and training not in _TRAININGS[task]:
        raise ValueError(f"--training {training} is not for --task {task}: {' or '.join(_TRAININGS[task])} is.")


def said(**values: Any) -> dict[str, Any]:
    """What was said, without what was not: that is left to the classifier."""
    return {key: value for key, value in values.items() if value is not None}


def is_image_folder(path: str) -> bool:
    """Whether images lie in a folder, or in a folder in it."""
    if not os.path.isdir(path):
        return False
    from ..vision.images import SUFFIXES

    for entry in _visible(path):
        if entry.is_dir():
            if any(inner.name.lower().endswith(SUFFIXES) for inner in _visible(entry.path)):
                return True
        elif entry.name.lower().endswith(SUFFIXES):
            return True
    return False


def _visible(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if not entry.name.startswith(".")]
    except OSError:
        return []

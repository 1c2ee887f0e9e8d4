"""Images on the command line: options beside the parameters of the estimators, by task and command."""

from __future__ import annotations

import os

from ...cli.signatures import Parameter
from ...cli.tasks import SCORES

_CACHE = Parameter("cache", about="Folder in which features of images are kept for the next run.")
_SKIP = Parameter("on_error", "raise", '{"raise", "skip"}', "What to do with images that cannot be read.")
_DEVICE = Parameter("device", about="Where responses are computed, such as cuda.")
_LABEL = Parameter("label", about="The class to find, where boxes are of several.")
_BOXES = Parameter(
    "boxes", about="Where objects are: a table (.csv), a COCO file (.json), or a folder of VOC files (.xml)."
)
_HOLDOUT = Parameter(
    "holdout", None, "float", "Share of the images that is kept from training, and that the detector is judged by; "
    "which ones depends on their names alone.",
)  # fmt: skip
_FINDING = (
    Parameter("threshold", None, "float", "Least score of what is found, if not the best one in training."),
    Parameter(
        "overlap", None, "float", "A box of which more than this lies within a better one is dropped; default: 0.5."
    ),
    Parameter("most", None, "int", "Most objects in an image; default: 100."),
)
OPTIONS = {
    ("scene", "predict"): (_CACHE, _SKIP, SCORES),
    ("parts", "predict"): (_CACHE, _SKIP, SCORES, _DEVICE),
    ("detect", "predict"): _FINDING,
    **{("scene", command): (_CACHE, _SKIP) for command in ("certify", "report")},
    **{("parts", command): (_CACHE, _SKIP, _DEVICE) for command in ("certify", "report")},
    **{("detect", command): (_LABEL, _BOXES, _HOLDOUT) for command in ("train", "certify", "report")},
}


def is_image_folder(path: str) -> bool:
    """Whether images lie in a folder, or in a folder in it."""
    from ..images import SUFFIXES

    inner = [place for name in _visible(path) if os.path.isdir(place := os.path.join(path, name))]
    return any(name.lower().endswith(SUFFIXES) for place in (path, *inner) for name in _visible(place))


def _visible(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if not name.startswith(".")]
    except OSError:
        return []

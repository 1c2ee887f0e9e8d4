"""Pictures of what a detector finds: where they are written, and what is drawn."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ...cli.files import check_writable
from ...files import replacing
from ..detection.drawing import drawn
from ..images import pillow

if TYPE_CHECKING:
    import numpy as np

    from ..detection.finding import Detections
    from .detector import Taker

TABLES = {".csv": ",", ".tsv": "\t"}
_KINDS = "a table (.csv, .tsv), a COCO file (.json)"


def are_wanted(target: str | None) -> bool:
    """Whether pictures are to be written: into one file, or into a folder."""
    if target is None:
        return False
    suffix = os.path.splitext(target)[1].lower()
    if os.path.isdir(target) or target.endswith(os.sep) or not suffix:
        return True
    if suffix in TABLES or suffix == ".json":
        return False
    if _format(target):
        return True
    raise ValueError(f"What is to be written to {target}? Name a picture (.png, .jpg), a folder of them, {_KINDS}.")


def _format(path: str) -> str | None:
    """The format in which Pillow writes a picture of that name; None if it is no name of a picture."""
    pillow()
    from PIL import Image

    known = Image.registered_extensions().get(os.path.splitext(path)[1].lower())
    return known if known in Image.SAVE and not os.path.isdir(path) else None


def places(target: str, files: list[str]) -> dict[str, str]:
    """Where the picture of each file is written to: of several ones in folders like theirs."""
    if _format(target):
        if len(files) > 1:
            raise ValueError(f"{target} is one picture, and there are {len(files)} images. Name a folder, or {_KINDS}.")
        check_writable(target, files)
        return {files[0]: target}
    if not os.path.isdir(target):
        check_writable(target.rstrip(os.sep))
    common = os.path.commonpath([os.path.dirname(os.path.abspath(file)) for file in files])
    inside = [os.path.relpath(os.path.abspath(file), common) for file in files]
    stems = [os.path.splitext(path)[0] for path in inside]
    names = stems if len(set(stems)) == len(stems) else inside
    found = {file: os.path.join(target, f"{name}.png") for file, name in zip(files, names, strict=True)}
    for name in found.values():
        if Path(name).exists():
            check_writable(name, files)
    return found


def drawing(names: dict[str, str]) -> Taker:
    """Draws what was found into a copy of each image."""

    def draw(file: str, pixels: np.ndarray, found: Detections) -> None:
        target = names[file]
        form = _format(target)
        os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
        with replacing(target) as path:
            drawn(pixels, found).save(path, form, **({"quality": 92} if form == "JPEG" else {}))

    return draw

"""A box as its source wrote it down, where that was, and what it means in edges of pixels; COCO and VOC files of them.

All files and tables of boxes become lists of records (tables: ``tables``). A box is only looked at when its class is
asked for: mistakes in the boxes of other classes are nobody's trouble.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from ...validation import meant, shown
from ..images import some

CORNERS = "x_min, y_min, x_max, y_max"
SIZES = "x, y, width, height"
INCLUSIVE = "xmin, ymin, xmax, ymax, counted from 1, the last row and column included"

_CLASSES = 20  # that a message names
_WRONG = (KeyError, TypeError, AttributeError)  # what reading raises where content is not what the format has there


class Record(NamedTuple):
    """One box of one image; or, with no box, the word that there is such an image."""

    image: str
    """The name of the image, as the source has it."""
    box: Sequence[Any] | None
    """Four numbers, not checked yet."""
    form: str
    """What the numbers are: ``CORNERS``, ``SIZES`` or ``INCLUSIVE``."""
    label: str | None
    """The class of the object, where the source tells classes apart."""
    ignored: bool
    where: str
    """File and line, or the like, for messages."""


def corners(record: Record) -> tuple[float, float, float, float]:
    """The edges of the box of a record, from whatever form it has; a box that has no area or is none is refused.

    Examples
    --------
    >>> from maxmargin.vision.detection.records import INCLUSIVE, SIZES, Record, corners
    >>> corners(Record("a.jpg", [10, 20, 5, 8], SIZES, "cat", False, "boxes.json, annotation 3"))
    (10.0, 20.0, 15.0, 28.0)
    >>> corners(Record("a.jpg", ["1", "1", "4", "2"], INCLUSIVE, "cat", False, "a.xml, object 1"))
    (0.0, 0.0, 4.0, 2.0)
    """
    try:
        a, b, c, d = map(float, record.box or ())
    except (TypeError, ValueError, OverflowError):
        a = b = c = d = math.nan
    if record.form == SIZES:
        c, d = a + c, b + d
    elif record.form == INCLUSIVE:
        a, b = a - 1, b - 1
    if not (-math.inf < a < c < math.inf and -math.inf < b < d < math.inf):
        raise ValueError(
            f"{record.where}: {shown(record.box)} is no box. A box is four finite numbers, {record.form}, with an area "
            "above zero. Mend this box, or take it out."
        )
    return a, b, c, d


def chosen(records: list[Record], label: object, source: str) -> tuple[list[Record], str | None]:
    """The records of one class, and its name; those of others keep their image, but lose their box.

    Images without an object of this class are background, whatever else they show.
    """
    counts = Counter(record.label for record in records if record.box is not None and record.label is not None)
    wanted = None if label is None else str(label)
    if not counts:
        return records, wanted
    listed = some([f"{name} ({count})" for name, count in counts.most_common()], most=_CLASSES)
    if wanted is None:
        first = counts.most_common(1)[0][0]
        if len(counts) > 1:
            raise ValueError(
                f"{source} has boxes of {len(counts)} classes: {listed}. A detector finds one: choose with "
                f"label={first!r}. The others are then background."
            )
        wanted = first
    elif wanted not in counts:
        hint = meant(wanted, filter(None, counts)) or " Give label one of these."
        raise ValueError(f"{source} has no boxes of the class {wanted!r}; it has {listed}.{hint}")
    return [
        record if record.box is None or record.label == wanted else record._replace(box=None) for record in records
    ], wanted


def read_coco(path: str) -> list[Record]:
    """First a record without a box for each image, then the boxes. Crowds, and what is marked ``ignore``, are ignored.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from maxmargin.vision.detection.records import read_coco
    >>> content = {
    ...     "images": [{"id": 7, "file_name": "a.jpg"}],
    ...     "annotations": [{"id": 1, "image_id": 7, "category_id": 2, "bbox": [3, 4, 10, 20]}],
    ...     "categories": [{"id": 2, "name": "cat"}],
    ... }
    >>> with tempfile.TemporaryDirectory() as root:
    ...     file = pathlib.Path(root, "boxes.json")
    ...     _ = file.write_text(json.dumps(content))
    ...     listed, box = read_coco(str(file))
    >>> listed.box, box.image, box.box, box.label
    (None, 'a.jpg', [3, 4, 10, 20], 'cat')
    """
    where = path
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8-sig"))
        # Ids are numbers, or the text of numbers, and not always the same in all lists.
        images = {str(entry["id"]): str(entry["file_name"]) for entry in content["images"]}
        classes = {str(entry["id"]): str(entry["name"]) for entry in content.get("categories", [])}
        records = [Record(name, None, SIZES, None, False, path) for name in images.values()]
        for i, entry in enumerate(content["annotations"]):
            where = f"{path}, annotations[{i}]"
            image, box = images[str(entry["image_id"])], list(entry["bbox"])
            label = classes[str(entry["category_id"])] if classes else None
            ignored = bool(entry.get("iscrowd") or entry.get("ignore"))
            records.append(Record(image, box, SIZES, label, ignored, where))
    except _WRONG as error:
        raise ValueError(
            f"{where}: something is missing or wrong here: {type(error).__name__}: {error}. A COCO file has lists "
            '"images" (id, file_name), "annotations" (image_id and category_id of those listed, bbox) and "categories" '
            "(id, name)."
        ) from None
    except (ValueError, RecursionError) as error:  # cut short, no UTF-8, numbers of thousands of digits
        raise ValueError(f"{path} is not JSON that can be read: {error}. Is it cut short?") from None
    return records


# PASCAL VOC: an XML file for each image.


def read_voc(paths: list[str]) -> list[Record]:
    """For each file a record without a box, then its boxes. Objects marked difficult are ignored.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from maxmargin.vision.detection.records import read_voc
    >>> with tempfile.TemporaryDirectory() as root:
    ...     file = pathlib.Path(root, "a.xml")
    ...     _ = file.write_text(
    ...         "<annotation><filename>a.jpg</filename><object><name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin>"
    ...         "<xmax>9</xmax><ymax>5</ymax></bndbox></object></annotation>"
    ...     )
    ...     listed, box = read_voc([str(file)])
    >>> listed.box, box.image, box.box, box.label
    (None, 'a.jpg', ['1', '1', '9', '5'], 'cat')
    """
    return [record for path in paths for record in _of_voc(path)]


def folder_of_images(path: str) -> str:
    """Where the images of an XML file are: ``JPEGImages`` beside its folder, or the folder itself."""
    here = os.path.dirname(os.path.abspath(path))
    beside = os.path.join(os.path.dirname(here), "JPEGImages")
    return beside if os.path.isdir(beside) else here


def _of_voc(path: str) -> list[Record]:
    try:
        root = ElementTree.parse(path).getroot()
    except (ElementTree.ParseError, ValueError, LookupError) as error:  # or an encoding that nobody knows
        raise ValueError(f"{path} is not XML that can be read: {error}. Is it cut short?") from None
    if root.tag != "annotation":
        raise ValueError(f"{path} is no VOC file: <annotation> is needed at its top, got <{root.tag}>.")
    image = root.findtext("filename", "").strip() or Path(path).stem
    records = [Record(image, None, INCLUSIVE, None, False, path)]
    for i, thing in enumerate(root.findall("object"), 1):
        where = f"{path}, object {i}"
        label = thing.findtext("name", "").strip()
        if not label:
            raise ValueError(f"{where}: <name> is missing, the class of the object. Put it in, or take it out.")
        # Parts of an object, such as heads and hands, have boxes of their own within it: those are not meant.
        box = [thing.findtext(f"bndbox/{edge}") for edge in ("xmin", "ymin", "xmax", "ymax")]
        difficult = thing.findtext("difficult", "").strip().lower() in ("1", "true")
        records.append(Record(image, box, INCLUSIVE, label, difficult, where))
    return records

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

from ...validation import meant
from ..images import some

CORNERS = "x_min, y_min, x_max, y_max"
SIZES = "x, y, width, height"
INCLUSIVE = "xmin, ymin, xmax, ymax, counted from 1, the last row and column included"

_EDGES = ("xmin", "ymin", "xmax", "ymax")
_CLASSES = 20  # that a message names


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


def corners(box: Sequence[Any], form: str, where: str) -> tuple[float, float, float, float]:
    """The edges of a box, from whatever form it has; a box that has no area or is none is refused.

    Examples
    --------
    >>> from maxmargin.vision.detection.records import INCLUSIVE, SIZES, corners
    >>> corners([10, 20, 5, 8], SIZES, "boxes.json, annotation 3")
    (10.0, 20.0, 15.0, 28.0)
    >>> corners(["1", "1", "4", "2"], INCLUSIVE, "a.xml, object 1")
    (0.0, 0.0, 4.0, 2.0)
    """
    if isinstance(box, str | bytes) or not hasattr(box, "__len__") or len(box) != 4:
        raise ValueError(f"{where}: a box is four numbers, {form}; got {_shown(box)}.")
    numbers = [_number(value, box, where) for value in box]
    if not all(map(math.isfinite, numbers)):
        raise ValueError(
            f"{where}: the box {_shown(numbers)} has a NaN or an infinity in it. Mend this box, or take it out."
        )
    a, b, c, d = numbers
    if form == SIZES:
        if c <= 0 or d <= 0:
            raise ValueError(
                f"{where}: the box {_shown(numbers)} has no area: its width is {c:g}, its height {d:g}. Both must be "
                f"positive, and the numbers mean {SIZES}. Mend this box, or take it out."
            )
        return a, b, a + c, b + d
    if form == INCLUSIVE:
        a, b = a - 1, b - 1
    for axis, low, high in (("x", a, c), ("y", b, d)):
        if high <= low:
            raise ValueError(
                f"{where}: the box {_shown(numbers)} has no area: {axis}_max is not greater than {axis}_min. The "
                f"numbers must be {form}. Are they {SIZES}? Then add: x_max = x + width, y_max = y + height."
            )
    return a, b, c, d


def _number(value: Any, box: Sequence[Any], where: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        comma = isinstance(value, str) and "," in value
        todo = "Write decimals with a point, not a comma." if comma else "Mend this box, or take it out."
        raise ValueError(
            f"{where}: {value!r} is not a number, in the box {_shown(box)}. A box is four numbers. {todo}"
        ) from None


def _shown(box: Any) -> str:
    if isinstance(box, str | bytes) or not hasattr(box, "__len__"):
        return repr(box)
    return "(" + ", ".join(f"{x:g}" if isinstance(x, float) else repr(x) for x in box) + ")"


def chosen(records: list[Record], label: Any, source: str) -> tuple[list[Record], str | None]:
    """The records of one class, and its name; those of others keep their image, but lose their box.

    Images without an object of this class are background, whatever else they show.
    """
    counts = Counter(record.label for record in records if record.box is not None and record.label is not None)
    wanted = None if label is None else str(label)
    if not counts:
        return records, wanted
    if wanted is None:
        if len(counts) > 1:
            first = counts.most_common(1)[0][0]
            raise ValueError(
                f"{source} has boxes of {len(counts)} classes: {_listed(counts)}. A detector finds one: choose with "
                f"label={first!r}. The others are then background."
            )
        wanted = next(iter(counts))
    elif wanted not in counts:
        hint = meant(wanted, filter(None, counts)) or " Give label one of these."
        raise ValueError(f"{source} has no boxes of the class {wanted!r}; it has {_listed(counts)}.{hint}")
    return [
        record if record.box is None or record.label == wanted else record._replace(box=None) for record in records
    ], wanted


def _listed(counts: Counter[str]) -> str:
    return some([f"{name} ({count})" for name, count in counts.most_common()], most=_CLASSES)


# COCO: a JSON file with a list of images, one of annotations, one of categories.


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
    content = _parsed(path)
    if not isinstance(content, dict):
        raise ValueError(f"{path} is no COCO file: an object is needed at its top, got a {type(content).__name__}.")
    if not isinstance(content.get("categories", []), list):
        raise ValueError(f'{path} is no COCO file: "categories" must be a list, if it is there.')
    lacking = [key for key in ("images", "annotations") if not isinstance(content.get(key), list)]
    if lacking:
        raise ValueError(
            f"{path} is no COCO file of boxes: it has no list {' and no list '.join(map(repr, lacking))}; its keys are "
            f"{', '.join(map(repr, list(content)[:10])) or 'none'}."
        )
    names, categories = _named(content, "images", "file_name", path), _named(content, "categories", "name", path)
    records = [Record(name, None, SIZES, None, False, path) for name in names.values()]
    for i, annotation in enumerate(content["annotations"]):
        where = f"{path}, annotations[{i}]"
        image, box = str(_of(annotation, "image_id", where)), _of(annotation, "bbox", where)
        if image not in names:
            raise ValueError(f'{where}: image_id is {image}, but no image in "images" has this id. Take it out.')
        label = None
        if categories:
            category = str(_of(annotation, "category_id", where))
            if category not in categories:
                raise ValueError(
                    f'{where}: category_id is {category}, but "categories" has only the ids '
                    f"{', '.join(list(categories)[:10])}. Mend it, or take it out."
                )
            label = categories[category]
        ignored = bool(annotation.get("iscrowd") or annotation.get("ignore"))
        records.append(Record(names[image], box, SIZES, label, ignored, where))
    return records


def _parsed(path: str) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}. Is it cut short?"
        ) from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not JSON: byte {error.start} is no UTF-8. Save it as UTF-8.") from None
    except ValueError as error:  # numbers of thousands of digits
        raise ValueError(f"{path} is not JSON that can be read: {error}.") from None
    except RecursionError:
        raise ValueError(f"{path} is no COCO file: its lists lie too deep within each other.") from None


def _of(entry: Any, key: str, where: str) -> Any:
    if not isinstance(entry, dict) or entry.get(key) is None:
        raise ValueError(f"{where}: {key!r} is missing. Put it in, or take this entry out.")
    return entry[key]


def _named(content: Any, part: str, name: str, path: str) -> dict[str, str]:
    """Names by ids. These are numbers, or the text of numbers, and not always the same in all lists."""
    found = {}
    for i, entry in enumerate(content.get(part, [])):
        where = f"{path}, {part}[{i}]"
        found[str(_of(entry, "id", where))] = str(_of(entry, name, where))
    return found


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
    return [record for path in paths for record in _records(path)]


def folder_of_images(path: str) -> str:
    """Where the images of an XML file are: ``JPEGImages`` beside its folder, or the folder itself."""
    here = os.path.dirname(os.path.abspath(path))
    beside = os.path.join(os.path.dirname(here), "JPEGImages")
    return beside if os.path.isdir(beside) else here


def _records(path: str) -> list[Record]:
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        line, column = error.position
        raise ValueError(f"{path} is not XML: line {line}, column {column}: {error}. Is it cut short?") from None
    except (ValueError, LookupError) as error:  # an encoding that nobody knows
        raise ValueError(f"{path} is not XML that can be read: {error}. Save it as UTF-8.") from None
    if root.tag != "annotation":
        raise ValueError(f"{path} is no VOC file: <annotation> is needed at its top, got <{root.tag}>.")
    stem = os.path.splitext(os.path.basename(path))[0]
    image = (root.findtext("filename") or "").strip() or stem
    records = [Record(image, None, INCLUSIVE, None, False, path)]
    for i, thing in enumerate(root.findall("object"), 1):
        where = f"{path}, object {i}"
        label = (thing.findtext("name") or "").strip()
        if not label:
            raise ValueError(f"{where}: <name> is missing, the class of the object. Put it in, or take it out.")
        # Parts of an object, such as heads and hands, have boxes of their own within it: those are not meant.
        box = [(thing.findtext(f"bndbox/{edge}") or "").strip() for edge in _EDGES]
        lacking = [edge for edge, text in zip(_EDGES, box, strict=True) if not text]
        if lacking:
            raise ValueError(f"{where}: <bndbox> has no <{'>, <'.join(lacking)}>. Put it in, or take the object out.")
        difficult = (thing.findtext("difficult") or "").strip().lower() in ("1", "true")
        records.append(Record(image, box, INCLUSIVE, label, difficult, where))
    return records

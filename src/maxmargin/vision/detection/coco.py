"""Boxes from a JSON file as COCO has them: a list of images, one of annotations, one of categories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .records import SIZES, Record


def read_coco(path: str) -> list[Record]:
    """First a record without a box for each image, then the boxes. Crowds, and what is marked ``ignore``, are ignored.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from maxmargin.vision.detection.coco import read_coco
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

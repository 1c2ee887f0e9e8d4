"""Boxes from tables with a row for each box: CSV files, data frames, Arrow tables, lists of dictionaries."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from typing import Any

from ...estimators.tables import is_frame, records
from ...validation import shown
from .records import CORNERS, SIZES, Record

# Names are compared in lower case, without blanks, lines and dots in them. The first that is there is taken.
_IMAGE = ("filename", "file", "filepath", "imagename", "imagefile", "imagepath", "path", "image", "imageid", "name")
_LABEL = ("label", "class", "category", "classname", "labelname", "categoryname")
_IGNORED = ("ignored", "ignore", "difficult", "iscrowd", "crowd")
_EDGES = (("xmin", "x1", "left", "x"), ("ymin", "y1", "top", "y"), ("xmax", "x2", "right"), ("ymax", "y2", "bottom"))
_SIZES = (*_EDGES[:2], ("width", "w", "boxwidth"), ("height", "h", "boxheight"))

_EMPTY = ("", "nan", "na", "none", "null")
_YES, _NO = ("1", "true", "yes", "y", "t"), ("0", "false", "no", "n", "f", "")


def is_table(source: object) -> bool:
    """Whether something in memory has rows with named columns."""
    if isinstance(source, list | tuple):
        return len(source) > 0 and all(isinstance(row, Mapping) for row in source)
    return is_frame(source)


def read_table(source: Any) -> list[Record]:
    """The records of a table in memory.

    Examples
    --------
    >>> from maxmargin.vision.detection.tables import read_table
    >>> rows = [{"file": "a.jpg", "x": 3, "y": 4, "w": 10, "h": 20, "label": "cat"}, {"file": "b.jpg", "x": None}]
    >>> first, second = read_table(rows)
    >>> first.box, first.form, second.box is None
    ([3, 4, 10, 20], 'x, y, width, height', True)
    """
    rows = records(source) if is_frame(source) else source
    columns = _columns(dict.fromkeys(name for row in rows for name in row), "The table of boxes")
    return [_record(row, columns, f"row {i} of the table of boxes") for i, row in enumerate(rows)]


def read_csv(path: str) -> list[Record]:
    """The records of a CSV file, whose first line names the columns; commas, semicolons or tabs part them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from maxmargin.vision.detection.tables import read_csv
    >>> with tempfile.TemporaryDirectory() as root:
    ...     file = pathlib.Path(root, "boxes.csv")
    ...     _ = file.write_text("image;xmin;ymin;xmax;ymax\\na.jpg;1;2;30;40\\nb.jpg;;;;\\n")
    ...     first, second = read_csv(str(file))
    >>> first.image, first.box, second.image, second.box
    ('a.jpg', ['1', '2', '30', '40'], 'b.jpg', None)
    """
    records = []
    with open(path, encoding="utf-8-sig", newline="") as file:
        try:
            delimiter = max(",;\t", key=file.readline().count)
            file.seek(0)
            reader = csv.DictReader(file, delimiter=delimiter, strict=True)
            columns = _columns(reader.fieldnames or (), f"{path}, line 1,")
            for row in reader:
                where = f"{path}, line {reader.line_num}"
                if None in row or None in row.values():
                    raise ValueError(
                        f"{where} has not as many fields as the first line has columns. Mend this line; text with a "
                        "delimiter in it must stand in quotes."
                    )
                if any(row.values()):
                    records.append(_record(row, columns, where))
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not CSV in UTF-8: {error}. Mend it, or save it anew.") from None
    return records


def _columns(names: Iterable[Any], source: str) -> dict[str, Any]:
    """Which columns have the name of the image, the edges (or sizes) of the box, the class, and whether it counts."""
    plain: dict[str, Any] = {}
    for name in names:
        plain.setdefault("".join(c for c in str(name).lower() if c not in " _-."), name)

    def first(aliases: Iterable[str]) -> Any:
        return next((plain[alias] for alias in aliases if alias in plain), None)

    # A table with both has the width and the height of the image in the others.
    corners, sizes = ([first(aliases) for aliases in four] for four in (_EDGES, _SIZES))
    found = {"image": first(_IMAGE), "label": first(_LABEL), "ignored": first(_IGNORED)}
    found |= {"box": sizes, "form": SIZES} if None in corners else {"box": corners, "form": CORNERS}
    if found["image"] is None or None in found["box"]:
        raise ValueError(
            f"{source} has the columns {shown(list(plain.values()), 200)}. There must be one for the name of the image "
            f"(image, file, filename, path or name) and four for the box ({CORNERS}; or {SIZES})."
        )
    return found


def _record(row: Mapping[Any, Any], columns: Mapping[str, Any], where: str) -> Record:
    def text(what: str, needed: bool = True) -> str:
        column = columns[what]
        value = row.get(column, "")
        if isinstance(value, float) and value.is_integer():  # whole numbers, in a column that has gaps
            value = int(value)
        found = "" if not isinstance(value, str) and str(value).lower() in _EMPTY else str(value)
        if needed and not found.strip():
            raise ValueError(f"{where}: the column {column!r} is empty: the {what} is needed.")
        return found

    image, box = text("image"), [row.get(name) for name in columns["box"]]
    if all(str(value).strip().lower() in _EMPTY for value in box):
        return Record(image, None, columns["form"], None, False, where)
    label = None if columns["label"] is None else text("label").strip()
    ignored = "" if columns["ignored"] is None else text("ignored", needed=False).strip().lower()
    if ignored not in _YES + _NO:
        raise ValueError(f"{where}: the column {columns['ignored']!r} is {ignored!r}, but must be 0 or 1.")
    return Record(image, box, columns["form"], label, ignored in _YES, where)

"""Boxes from tables with a row for each box: CSV files, data frames, Arrow tables, lists of dictionaries."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .records import CORNERS, SIZES, Record

# Names are compared in lower case, without blanks, lines and dots in them. The first that is there is taken.
_IMAGE = ("filename", "file", "filepath", "imagename", "imagefile", "imagepath", "path", "image", "imageid", "name")
_LABEL = ("label", "class", "category", "classname", "labelname", "categoryname")
_IGNORED = ("ignored", "ignore", "difficult", "iscrowd", "crowd")
_LOW = {"x": ("xmin", "x0", "x1", "left", "x"), "y": ("ymin", "y0", "y1", "top", "y")}
_HIGH = {"x": ("xmax", "x2", "right"), "y": ("ymax", "y2", "bottom")}
_SIZE = {"x": ("width", "w", "boxwidth"), "y": ("height", "h", "boxheight")}

_DELIMITERS = ",;\t"
_YES, _NO = ("1", "true", "yes", "y", "t"), ("0", "false", "no", "n", "f", "")


def is_table(source: Any) -> bool:
    """Whether something in memory has rows with named columns."""
    if hasattr(source, "to_pylist") or hasattr(source, "to_dicts") or hasattr(source, "to_dict"):
        return hasattr(source, "columns")  # and a column alone has none
    return (
        isinstance(source, Sequence)
        and not isinstance(source, str | bytes)
        and len(source) > 0
        and all(isinstance(row, Mapping) for row in source)
    )


def read_table(source: Any) -> list[Record]:
    """The records of a table in memory.

    Examples
    --------
    >>> from maxmargin.vision.detection.tables import read_table
    >>> rows = [{"file": "a.jpg", "x": 3, "y": 4, "w": 10, "h": 20, "label": "cat"}, {"file": "b.jpg", "x": None}]
    >>> first, second = read_table(rows)
    >>> first.box, first.form, second.box is None
    ((3, 4, 10, 20), 'x, y, width, height', True)
    """
    if hasattr(source, "to_pylist"):
        source = source.to_pylist()
    elif hasattr(source, "to_dicts"):
        source = source.to_dicts()
    elif hasattr(source, "to_dict"):
        source = source.to_dict("records")
    rows: list[Mapping] = list(source)
    if not rows:
        raise ValueError("The table of boxes has no rows. One row for each box is needed.")
    columns = _columns(list(dict.fromkeys(str(name) for row in rows for name in row)), "The table of boxes")
    return [
        _record({str(name): value for name, value in row.items()}, columns, f"row {i} of the table of boxes")
        for i, row in enumerate(rows)
    ]


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
    ('a.jpg', ('1', '2', '30', '40'), 'b.jpg', None)
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not text in UTF-8: byte {error.start} is none of it. Save the table as CSV in UTF-8."
        ) from None
    if not text.strip():
        raise ValueError(
            f"{path} is empty. A table with a row for each box is needed; its first line names the columns."
        )
    head = next(line for line in text.splitlines() if line.strip())
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(_DELIMITERS, key=head.count), strict=True)
    columns, names, records, line = None, [], [], 1
    try:
        for row in reader:
            where, line = f"{path}, line {line}", reader.line_num + 1
            if not any(field.strip() for field in row):
                continue
            if columns is None:
                names, columns = row, _columns(row, f"{where},")
                continue
            if len(row) != len(names):
                raise ValueError(
                    f"{where}: {len(row)} fields, but the first line names {len(names)} columns. "
                    "Mend this line; text with a delimiter in it must stand in quotes."
                )
            records.append(_record(dict(zip(reversed(names), reversed(row), strict=True)), columns, where))
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: this is not CSV: {error}. Mend this line.") from None
    if not records:
        raise ValueError(f"{path} names columns, but has no rows. One row for each box is needed.")
    return records


class _Columns(NamedTuple):
    """The columns of a table by what they hold."""

    image: str
    box: tuple[str, str, str, str]
    form: str
    label: str | None
    ignored: str | None


def _columns(names: list[str], source: str) -> _Columns:
    plain: dict[str, str] = {}
    for name in names:
        plain.setdefault(_plain(name), name)

    def first(aliases: Iterable[str]) -> str | None:
        return next((plain[alias] for alias in aliases if alias in plain), None)

    low, high, size = ({axis: first(aliases[axis]) for axis in "xy"} for aliases in (_LOW, _HIGH, _SIZE))
    for axis in "xy":  # x0 to x1, where others have x1 to x2
        if low[axis] is not None and low[axis] == plain.get(f"{axis}0"):
            high[axis] = high[axis] or plain.get(f"{axis}1")
    # A table with both has the width and the height of the image in the others.
    end, form = (high, CORNERS) if high["x"] and high["y"] else (size, SIZES)
    image = first(_IMAGE)
    box = (low["x"], low["y"], end["x"], end["y"])
    lacking = ["one for the name of the image (image, file, filename, path or name)"] if image is None else []
    if None in box:
        lacking.append("four for the box (x_min, y_min, x_max, y_max; or x, y, width, height)")
    if lacking:
        given = ", ".join(map(repr, names[:12])) or "none"
        raise ValueError(f"{source} has the columns {given}. Of these columns there must be {' and '.join(lacking)}.")
    return _Columns(image, box, form, first(_LABEL), first(_IGNORED))  # type: ignore[arg-type]


def _plain(name: str) -> str:
    return "".join(c for c in name.lower() if c not in " _-.")


def _record(row: Mapping[str, Any], columns: _Columns, where: str) -> Record:
    image = _text(row.get(columns.image))
    if not image:
        raise ValueError(f"{where}: the column {columns.image!r} is empty: the name of the image is needed.")
    box = tuple(row.get(name) for name in columns.box)
    empty = [_empty(value) for value in box]
    if all(empty):
        return Record(image, None, columns.form, None, False, where)
    if any(empty):
        name = columns.box[empty.index(True)]
        raise ValueError(
            f"{where}: the column {name!r} is empty, but others of the box are not. A box needs all four numbers; an "
            "image without an object has none of them."
        )
    label = None
    if columns.label is not None:
        label = _text(row.get(columns.label)).strip()
        if not label:
            raise ValueError(f"{where}: the column {columns.label!r} is empty, but there is a box. Name its class.")
    ignored = columns.ignored is not None and _said(row.get(columns.ignored), columns.ignored, where)
    return Record(image, box, columns.form, label, ignored, where)


def _empty(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in ("", "nan", "na", "null", "none")
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and math.isnan(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if _empty(value):
        return ""
    if isinstance(value, float | np.floating) and value.is_integer():  # whole numbers, in a column that has gaps
        return str(int(value))
    return str(value)


def _said(value: Any, column: str, where: str) -> bool:
    text = _text(value).strip().lower()
    if text not in _YES + _NO:
        raise ValueError(f"{where}: the column {column!r} is {value!r}, but must be 0 or 1, true or false.")
    return text in _YES

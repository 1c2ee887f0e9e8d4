"""Boxes from XML files as PASCAL VOC has them: one file for each image."""

from __future__ import annotations

import os
from xml.etree import ElementTree

from .records import INCLUSIVE, Record

_EDGES = ("xmin", "ymin", "xmax", "ymax")


def read_voc(paths: list[str]) -> list[Record]:
    """For each file a record without a box, then its boxes. Objects marked difficult are ignored.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from maxmargin.vision.detection.voc import read_voc
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

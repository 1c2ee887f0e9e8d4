"""Images and the boxes of the objects in them, as users have them: arrays, COCO, VOC, tables; all become one thing."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...validation import shown
from ..images import ImageError, ImageFolder, ImageSource, list_images, said_of, some
from .boxes import as_boxes
from .image_names import ImageNames
from .records import Record, chosen, corners, folder_of_images, read_coco, read_voc
from .tables import is_table, read_csv, read_table

_TABLES = (".csv", ".tsv", ".txt")

_FORMS = (
    "a list with the boxes of each image, a COCO file (.json), VOC files (.xml, or a folder of them), or a table with "
    "a row for each box (.csv, data frame, list of dictionaries)"
)


@dataclass(frozen=True, eq=False)
class Annotated:
    """Images with the boxes of the objects of one class.

    Parameters
    ----------
    images : list
        Paths, arrays or Pillow images: what ``read_image`` takes. They have not been opened.
    boxes : list of ndarray, shape (n_i, 4)
        For each image x_min, y_min, x_max, y_max of its objects, in edges of pixels. No box: background.
    ignored : list of ndarray of bool, shape (n_i,)
        Boxes that are neither object nor background: difficult objects, and crowds.
    label : str, optional
        The class of the objects, where it has a name.
    """

    images: list[ImageSource]
    boxes: list[np.ndarray]
    ignored: list[np.ndarray]
    label: str | None = None

    def __len__(self) -> int:
        return len(self.images)

    def name(self, i: int) -> str:
        """What messages call an image: its path, or its number."""
        image = self.images[i]
        return os.fspath(image) if isinstance(image, str | os.PathLike) else f"image {i}"


def annotated(images: object, boxes: object = None, *, label: object = None) -> Annotated:
    """Images and boxes in any of the forms that they come in.

    Parameters
    ----------
    images : list, array, path or None
        Images; or files, by a list, a folder or a pattern such as ``"photos/*.jpg"``. None: those that ``boxes`` names,
        looked for in the folder of its file (VOC: in ``JPEGImages`` beside the folder of the XML files). A file or
        table of boxes may also stand here alone.
    boxes : list, path or table
        - A list with one entry for each image: n boxes (n, 4), one box (4,), or None, each x_min, y_min, x_max, y_max.
        - A COCO file. Of a folder ``images`` only those that it lists are used.
        - A VOC file, or a folder of them. Likewise.
        - A CSV file, a data frame, an Arrow table or a list of dictionaries with a row for each box: columns ``image``
          (``file``, ``filename``, ``path``, ``name``), ``x_min``, ``y_min``, ``x_max``, ``y_max`` (``left``, ``x1``, …;
          or ``x``, ``y``, ``width``, ``height``), and where wanted ``label`` (``class``, ``category``) and ``ignored``
          (``difficult``, ``iscrowd``). A row without coordinates is an image without objects. So are images of
          the list or folder ``images`` that have no row.
    label : str, optional
        The class whose boxes are taken. Needed if there are several; objects of the others are background.

    Raises
    ------
    ValueError
        With the file and line, or the number of the image, and what to do. If images that ``boxes`` names are not
        found, a warning names them, and the others are used.

    Notes
    -----
    Boxes are in pixels of the image as it is seen: cameras write into a file how it is to be turned, and ``read_image``
    does so. Names in a file must not lead out of the folder of the images.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.vision.detection.annotations import annotated
    >>> images = np.zeros((3, 40, 60), np.uint8)
    >>> given = annotated(images, [[10, 5, 30, 25], None, [[0, 0, 8, 8], [20, 20, 40, 40]]])
    >>> [len(one) for one in given.boxes]
    [1, 0, 2]
    """
    if isinstance(images, Annotated):
        if boxes is not None:
            raise ValueError("images is Annotated already and has its boxes; leave boxes out.")
        return images
    if boxes is None and (is_table(images) or is_file_of_boxes(images)):
        images, boxes = None, images
    if boxes is None:
        raise ValueError(f"boxes is missing. It is {_FORMS}.")
    if isinstance(boxes, str | os.PathLike):
        return _of_file(images, os.fspath(boxes), label)
    if is_table(boxes):
        return _of_records(images, read_table(boxes), label, "The table of boxes", None, True)
    return _of_list(images, boxes, label)


def is_file_of_boxes(source: object) -> bool:
    """Whether boxes stand where images are expected: such a file names its images itself."""
    return isinstance(source, str | os.PathLike) and os.fspath(source).lower().endswith((".json", ".xml", *_TABLES[:2]))


def _of_file(images: object, path: str, label: object) -> Annotated:
    if not os.path.exists(path):
        raise ValueError(f"The boxes {path} do not exist. Relative paths start at {os.getcwd()}; is it another folder?")
    files = sorted(map(str, Path(path).glob("*.[xX][mM][lL]"))) if os.path.isdir(path) else [path]
    end = os.path.splitext(files[0])[1].lower() if files else ""
    here = os.path.dirname(path)
    if end == ".xml":
        return _of_records(images, read_voc(files), label, path, folder_of_images(files[0]), False)
    if end == ".json":
        return _of_records(images, read_coco(path), label, path, here, False)
    if end in _TABLES:
        return _of_records(images, read_csv(path), label, path, here, True)
    raise ValueError(f"{path} is no file of boxes, and no folder with XML files. boxes must be {_FORMS}.")


def _of_list(images: object, boxes: Any, label: object) -> Annotated:
    """Images and boxes that belong together by their order."""
    if images is None:
        raise ValueError("images is missing: a list of boxes needs a list of as many images.")
    sources = _sources(images)
    if not _many(boxes):
        raise ValueError(f"boxes is of type {type(boxes).__name__}. It must be {_FORMS}.")
    if len(boxes) != len(sources):
        raise ValueError(
            f"There are {len(sources)} images, but boxes has {len(boxes)} entries. One entry for each image is "
            "needed, None for images without an object; of one image with several boxes [boxes]."
        )
    rows = [_rows(entry, f"boxes[{i}]") for i, entry in enumerate(boxes)]
    ignored = [np.zeros(len(some), bool) for some in rows]
    return _with_positives(sources, rows, ignored, None if label is None else str(label), "boxes")


def _rows(entry: object, where: str) -> np.ndarray:
    """The boxes of one image: none, one, or a list of them."""
    try:
        array = np.asarray([] if entry is None else entry, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{where}: the boxes of an image are an array (n, 4) of numbers; got {shown(entry)}."
        ) from None
    return as_boxes(where, array[None] if array.shape == (4,) else array)


def _sources(images: Any) -> list[Any]:
    """What ``images`` lists, one by one."""
    if isinstance(images, str | os.PathLike):
        return list_images(images)
    if isinstance(images, ImageFolder):
        return list(images.paths)
    one = isinstance(images, np.ndarray) and (images.ndim == 2 or images.shape[2:] in ((3,), (4,)))
    if one or not _many(images):
        raise ImageError(
            f"images must be a folder, a list of files or of images, or an array of them, also of one: [image]; got "
            f"{said_of(images)}."
        )
    sources = [os.fspath(one) if isinstance(one, os.PathLike) else one for one in images]
    if not sources:
        raise ImageError("There are no images: the list is empty.")
    for i, source in enumerate(sources):
        if not isinstance(source, str | np.ndarray) and not hasattr(source, "getexif"):
            raise ImageError(
                f"image {i} is of type {type(source).__name__}. An image is a path, an array or a Pillow image."
            )
    return sources


def _many(given: object) -> bool:
    listed = isinstance(given, Sized) and isinstance(given, Iterable) and getattr(given, "ndim", 1) > 0
    return listed and not isinstance(given, str | bytes | Mapping) and not is_table(given)


def _of_records(
    images: Any, records: list[Record], label: object, source: str, beside: str | None, others: bool
) -> Annotated:
    """Images and boxes that belong together by their names.

    ``beside`` is the folder of the images if none is given; None: the names are the user's own. With ``others``, images
    of a folder that no record names are background; without, they are nothing.
    """
    records, name = chosen(records, label, source)
    folder: str | None = beside or ""
    listed = None
    if images is not None:
        is_folder = isinstance(images, str | os.PathLike) and os.path.isdir(images)
        folder = os.fspath(images) if is_folder else None
        sources = [] if is_folder and not others else _sources(images)
        if not all(isinstance(one, str) for one in sources):
            raise ImageError("boxes names its images: give images as paths, or boxes as a list in the order of images.")
        listed = list(map(os.path.normpath, sources)) or None
    names = ImageNames(folder, listed, deep=images is not None, trusted=images is None and beside is None)
    boxes, missing = _by_path(records, names)
    place = "among the images given" if folder is None else f"in the folder {folder or os.getcwd()}"
    if missing and not boxes:
        raise ImageError(
            f"None of the {len(missing)} images that {source} names is {place}: {some(missing)}. Name the folder of "
            "the images with images."
        )
    if missing:
        warnings.warn(
            f"{len(missing)} of {len(missing) + len(boxes)} images that {source} names are not {place}: "
            f"{some(missing)}. They are left out.",
            stacklevel=4,
        )
    # What a table names outright is used even if its suffix is not that of an image, and so it was not listed.
    paths = list(dict.fromkeys([*(listed or ()), *boxes]))
    given = [boxes.get(path, []) for path in paths]
    edges = [np.array([box for box, _ in some], np.float64).reshape(-1, 4) for some in given]
    return _with_positives(paths, edges, [np.array([flag for _, flag in some], bool) for some in given], name, source)


def _by_path(records: list[Record], names: ImageNames) -> tuple[dict[str, list[Any]], list[str]]:
    """The boxes of each image, and whether they are ignored; and the names of images that are not there."""
    boxes: dict[str, list[Any]] = {}
    found: dict[str, str | None] = {}
    for record in records:
        if record.image not in found:
            found[record.image] = names.find(record.image, record.where)
        path = found[record.image]
        # A box is checked even if its image is not there: it is wrong all the same.
        box = [] if record.box is None else [(corners(record), record.ignored)]
        if path is not None:
            boxes.setdefault(path, []).extend(box)
    return boxes, [name for name, path in found.items() if path is None]


def _with_positives(
    images: Sequence[ImageSource], boxes: list[np.ndarray], ignored: list[np.ndarray], label: str | None, source: str
) -> Annotated:
    of_class = "" if label is None else f" of the class {label}"
    if all(flags.all() for flags in ignored):
        raise ValueError(
            f"There are no positives: {source} has no box{of_class} in any of the {len(images)} images, but "
            f"{sum(map(len, boxes))} that are difficult or crowds, which are ignored. A detector learns from images "
            "with boxes around the objects."
        )
    if all((one >= 0).all() and (one <= 1).all() for one in boxes):
        raise ValueError(
            f"All boxes in {source} lie between 0 and 1: they seem to be parts of the width and the height. Pixels are "
            "needed: multiply x by the width and y by the height of the image."
        )
    return Annotated(list(images), boxes, ignored, label)

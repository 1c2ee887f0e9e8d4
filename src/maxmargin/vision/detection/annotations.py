"""Images and the boxes of the objects in them, as users have them: arrays, COCO, VOC, tables; all become one thing."""

from __future__ import annotations

import glob
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..images import ImageError, ImageFolder, ImageSource, list_images, some
from .image_names import ImageNames
from .records import CORNERS, Record, chosen, corners, folder_of_images, read_coco, read_voc
from .tables import is_table, read_csv, read_table

_TABLES = (".csv", ".tsv", ".txt")

Boxes = list[tuple[tuple[float, float, float, float], bool]]
"""Of one image: their edges, and whether they are ignored."""

_FORMS = (
    "a list with the boxes of each image, a dictionary from names of images to boxes, a COCO file (.json), VOC files "
    "(.xml, or a folder of them), or a table with a row for each box (.csv, data frame, list of dictionaries)"
)


@dataclass(frozen=True, eq=False, repr=False)
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

    def __repr__(self) -> str:
        counted = sum(map(len, self.boxes))
        label = "" if self.label is None else f" of {self.label}"
        ignored = sum(int(flags.sum()) for flags in self.ignored)
        return f"Annotated: {counted} boxes{label} in {len(self)} images, {ignored} of them ignored"

    def name(self, i: int) -> str:
        """What messages call an image: its path, or its number."""
        image = self.images[i]
        return os.fspath(image) if isinstance(image, str | os.PathLike) else f"image {i}"


def annotated(
    images: Any, boxes: Any = None, *, label: Any = None, root: str | os.PathLike[str] | None = None
) -> Annotated:
    """Images and boxes in any of the forms that they come in.

    Parameters
    ----------
    images : list, array, path or None
        Images; or files, by a list, a folder or a pattern such as ``"photos/*.jpg"``. None: those that ``boxes`` names,
        looked for beside its file (VOC: in ``JPEGImages`` beside the folder of the XML files). A file or table of boxes
        may also stand here alone.
    boxes : list, dict, path or table
        - A list with one entry for each image: n boxes (n, 4), one box (4,), or None, each x_min, y_min, x_max, y_max.
        - A dictionary from names of images to such entries.
        - A COCO file. Only images that it lists are used, or those of them that a list ``images`` has.
        - A VOC file, a folder or a pattern of them. Likewise.
        - A CSV file, a data frame, an Arrow table or a list of dictionaries with a row for each box: columns ``image``
          (``file``, ``filename``, ``path``, ``name``), ``x_min``, ``y_min``, ``x_max``, ``y_max`` (``left``, ``x1``, …;
          or ``x``, ``y``, ``width``, ``height``), and where wanted ``label`` (``class``, ``category``) and ``ignored``
          (``difficult``, ``iscrowd``). A row without coordinates is an image without objects. So are images of
          the list or folder ``images`` that have no row.
    label : str, optional
        The class whose boxes are taken. Needed if there are several; objects of the others are background.
    root : path, optional
        The folder where relative names of images start. Names in a file must not lead out of it, nor out of the folder
        of the images if there is no root; ``root="/"`` allows any. Tables in memory without a root may name any file.

    Raises
    ------
    ValueError
        With the file and line, or the number of the image, and what to do. If images that ``boxes`` names are not
        found, a warning names them, and the others are used.

    Notes
    -----
    Boxes are in pixels of the image as it is seen: cameras write into a file how it is to be turned, and ``read_image``
    does so.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.vision.detection.annotations import annotated
    >>> images = np.zeros((3, 40, 60), np.uint8)
    >>> given = annotated(images, [[10, 5, 30, 25], None, [[0, 0, 8, 8], [20, 20, 40, 40]]])
    >>> given
    Annotated: 3 boxes in 3 images, 0 of them ignored
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
    base = None if root is None else os.fspath(root)
    if isinstance(boxes, str | os.PathLike):
        return _of_file(images, os.fspath(boxes), label, base)
    if is_table(boxes):
        return _of_records(images, read_table(boxes), label, "The table of boxes", None, base, True)
    if isinstance(boxes, Mapping):
        if not boxes:
            raise ValueError("boxes is an empty dictionary. It needs an entry for each image that has objects.")
        records = []
        for name, entry in boxes.items():
            where = f"boxes[{str(name)!r}]"
            rows = _rows(entry, where)
            records += [Record(str(name), row, CORNERS, None, False, f"{where}, box {j}") for j, row in enumerate(rows)]
            records += [] if rows else [Record(str(name), None, CORNERS, None, False, where)]
        return _of_records(images, records, label, "The dictionary of boxes", None, base, True)
    return _of_list(images, boxes, label, base)


def is_file_of_boxes(source: Any) -> bool:
    """Whether boxes stand where images are expected: such a file names its images itself."""
    ends = (".json", ".xml", ".csv", ".tsv")
    return isinstance(source, str | os.PathLike) and os.fspath(source).lower().endswith(ends)


def _of_file(images: Any, path: str, label: Any, root: str | None) -> Annotated:
    if os.path.isdir(path):
        files = sorted(map(str, Path(path).glob("*.[xX][mM][lL]")))
        if not files:
            raise ValueError(f"There are no XML files in the folder {path}. boxes must be {_FORMS}.")
    elif os.path.isfile(path):
        files = [path]
    elif glob.has_magic(path):
        files = sorted(filter(os.path.isfile, glob.glob(path, recursive=True)))
        if not files:
            raise ValueError(f"No file fits the pattern {path}. Relative patterns start at {os.getcwd()}.")
    else:
        raise ValueError(f"The boxes {path} do not exist. Relative paths start at {os.getcwd()}; is it another folder?")
    ends = {os.path.splitext(file)[1].lower() for file in files}
    here = os.path.dirname(files[0])
    if ends == {".xml"}:
        return _of_records(images, read_voc(files), label, path, folder_of_images(files[0]), root, False)
    if len(files) > 1:
        raise ValueError(f"{path} means {len(files)} files, such as {files[0]}. Only XML files may be many; name one.")
    if ends == {".json"}:
        return _of_records(images, read_coco(path), label, path, here, root, False)
    if ends <= set(_TABLES):
        return _of_records(images, read_csv(files[0]), label, path, here, root, True)
    raise ValueError(f"{path} ends in {ends.pop() or 'nothing'!r}, which is no file of boxes. boxes must be {_FORMS}.")


def _of_list(images: Any, boxes: Any, label: Any, root: str | None) -> Annotated:
    """Images and boxes that belong together by their order."""
    if images is None:
        raise ValueError("images is missing: a list of boxes needs a list of as many images.")
    sources = _sources(images, root)
    if isinstance(boxes, bytes) or not _many(boxes):
        raise ValueError(f"boxes is of type {type(boxes).__name__}. It must be {_FORMS}.")
    entries = list(boxes)
    if len(entries) != len(sources):
        todo = " If all of them are of this image, give [boxes]." if len(sources) == 1 else ""
        raise ValueError(
            f"There are {len(sources)} images, but boxes has {len(entries)} entries. One entry for each image is "
            f"needed, None for images without an object.{todo}"
        )
    boxes_of = [
        [(corners(row, CORNERS, f"boxes[{i}], box {j}"), False) for j, row in enumerate(_rows(entry, f"boxes[{i}]"))]
        for i, entry in enumerate(entries)
    ]
    return _with_positives(sources, boxes_of, None if label is None else str(label), "boxes")


def _rows(entry: Any, where: str) -> list[list[float]]:
    """The boxes of one image: none, one, or a list of them."""
    try:
        array = np.asarray([] if entry is None else entry, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = None
    if array is not None and array.size == 0:
        return []
    if array is not None and array.shape == (4,):
        return [array.tolist()]
    if array is not None and array.ndim == 2 and array.shape[1] == 4:
        return array.tolist()
    got = f"an array of shape {array.shape}" if array is not None else f"{type(entry).__name__} {entry!r:.80}"
    raise ValueError(
        f"{where}: the boxes of an image are an array (n, 4) with columns {CORNERS}, a single box of four numbers, or "
        f"None; got {got}."
    )


def _sources(images: Any, root: str | None) -> list[Any]:
    """What ``images`` lists, one by one."""
    if isinstance(images, str | os.PathLike):
        return list_images(_below(root, os.fspath(images)))
    if isinstance(images, ImageFolder):
        return list(images.paths)
    if isinstance(images, np.ndarray) and (images.ndim == 2 or (images.ndim == 3 and images.shape[-1] in (3, 4))):
        raise ImageError(f"images has shape {images.shape}, which is one image. Give a list of images: [image].")
    if hasattr(images, "getexif"):
        raise ImageError("images is one image. Give a list of images: [image].")
    if not _many(images) or is_table(images) or isinstance(images, Mapping | bytes):
        raise ImageError(
            f"images must be a folder, a list of files or of images, or an array of them; got {type(images).__name__}."
        )
    sources = list(images)
    if not sources:
        raise ImageError("There are no images: the list is empty.")
    for i, source in enumerate(sources):
        if isinstance(source, str | os.PathLike):
            sources[i] = _below(root, os.fspath(source))
        elif not isinstance(source, np.ndarray) and not hasattr(source, "getexif"):
            raise ImageError(
                f"image {i} is of type {type(source).__name__}. An image is a path, an array or a Pillow image."
            )
    return sources


def _many(given: Any) -> bool:
    return hasattr(given, "__len__") and hasattr(given, "__iter__") and getattr(given, "ndim", 1) > 0


def _below(root: str | None, path: str) -> str:
    return path if root is None else os.path.join(root, path)


def _of_records(
    images: Any, records: list[Record], label: Any, source: str, beside: str | None, root: str | None, others: bool
) -> Annotated:
    """Images and boxes that belong together by their names.

    ``beside`` is the folder of the images if none is given; None: the names are the user's own. With ``others``, images
    of a folder that no record names are background; without, they are nothing.
    """
    records, name = chosen(records, label, source)
    folder, listed = None, None
    if images is None:
        folder = (beside or "") if root is None else root
    elif isinstance(images, str | os.PathLike) and os.path.isdir(_below(root, os.fspath(images))):
        folder = _below(root, os.fspath(images))
        listed = list(map(os.path.normpath, list_images(folder))) if others else None
    else:
        listed = _sources(images, root)
        pixels = next((i for i, one in enumerate(listed) if not isinstance(one, str)), None)
        if pixels is not None:
            raise ImageError(
                f"boxes names its images, but image {pixels} has no name: it is of type "
                f"{type(listed[pixels]).__name__}. Give paths; or boxes as a list, in the order of the images."
            )
    within = root if root is not None else folder if images is not None or beside is not None else None
    names = ImageNames(folder, listed, deep=images is not None and not others, root=within)
    boxes, missing = _by_path(records, names)
    place = "among the images given" if folder is None else f"in the folder {folder or os.getcwd()}"
    if not boxes:
        raise ImageError(
            f"None of the {len(missing)} images that {source} names is {place}: {some(missing)}. Name the folder of "
            "the images with images or root."
        )
    if missing:
        warnings.warn(
            f"{len(missing)} of {len(missing) + len(boxes)} images that {source} names are not {place}: "
            f"{some(missing)}. They are left out.",
            stacklevel=4,
        )
    # What a table names outright is used even if its suffix is not that of an image, and so it was not listed.
    known = set(listed or ())
    paths = [*(listed or ()), *(path for path in boxes if path not in known)]
    return _with_positives(paths, [boxes.get(path, []) for path in paths], name, source)


def _by_path(records: list[Record], names: ImageNames) -> tuple[dict[str, Boxes], list[str]]:
    """The boxes of each image, and the names of images that are not there."""
    boxes: dict[str, Boxes] = {}
    found: dict[str, str | None] = {}
    for record in records:
        if record.image not in found:
            found[record.image] = names.find(record.image, record.where)
        path = found[record.image]
        # A box is checked even if its image is not there: it is wrong all the same.
        box = [] if record.box is None else [(corners(record.box, record.form, record.where), record.ignored)]
        if path is not None:
            boxes.setdefault(path, []).extend(box)
    return boxes, [name for name, path in found.items() if path is None]


def _with_positives(images: Sequence[ImageSource], given: list[Boxes], label: str | None, source: str) -> Annotated:
    boxes = [np.array([box for box, _ in some], dtype=np.float64).reshape(-1, 4) for some in given]
    ignored = [np.array([flag for _, flag in some], dtype=bool) for some in given]
    counted = sum(map(len, boxes))
    of_class = "" if label is None else f" of the class {label}"
    if not counted:
        raise ValueError(
            f"There are no positives: {source} has no box{of_class} in any of the {len(images)} images. A detector "
            "learns from images with boxes around the objects."
        )
    if all(flags.all() for flags in ignored):
        raise ValueError(
            f"There are no positives: all {counted} boxes{of_class} in {source} are difficult or crowds, which are "
            "ignored."
        )
    if all((one >= 0).all() and (one <= 1).all() for one in boxes):
        raise ValueError(
            f"All {counted} boxes in {source} lie between 0 and 1: they seem to be parts of the width and the height. "
            "Pixels are needed: multiply x by the width and y by the height of the image."
        )
    return Annotated(list(images), boxes, ignored, label)

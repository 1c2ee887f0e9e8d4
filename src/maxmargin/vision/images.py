"""Images as arrays of bytes, and folders of them: one sub-folder per class."""

from __future__ import annotations

import contextlib
import glob
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

ImageSource: TypeAlias = "str | os.PathLike[str] | np.ndarray | PillowImage"

SUFFIXES = (
    ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pbm", ".pnm",
    ".jp2", ".avif", ".tga",
)  # fmt: skip
"""How the names of image files end, in lower case. Only listings ask for it; a file is read whatever its name."""


class ImageError(ValueError):
    """An image, or a folder of images, that cannot be used: the message says which, what is wrong and what to do."""


def read_image(source: ImageSource, *, color: bool = False) -> np.ndarray:
    """An image as unsigned bytes, grey (h, w) or, with ``color``, RGB (h, w, 3).

    Parameters
    ----------
    source : path, array or Pillow image
        Arrays are (h, w), (h, w, 1), (h, w, 3) or (h, w, 4), the last one RGB with alpha, and hold unsigned bytes,
        unsigned 16-bit numbers, floats from 0 to 1, or booleans. Files are read by Pillow; the orientation that a
        camera wrote into them is honoured, and of a moving picture the first one is taken.
    color : bool, default False
        RGB. Otherwise colours become grey by their luminance, 0.299 R + 0.587 G + 0.114 B.

    Raises
    ------
    ImageError
        With the name of the file and the reason.

    Notes
    -----
    What is transparent is shown before white.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.vision.images import read_image
    >>> red = np.zeros((2, 3, 3), np.uint8)
    >>> red[..., 0] = 255
    >>> read_image(red)
    array([[76, 76, 76],
           [76, 76, 76]], dtype=uint8)
    """
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        return decode(read_bytes(path), path, color=color)
    if isinstance(source, np.ndarray):
        if np.ma.is_masked(source):
            raise ImageError("The image is a masked array with masked pixels. Fill them in: image.filled(value).")
        return _of_array(source, color)
    if hasattr(source, "getexif"):
        return _of_pillow(source, color)
    raise ImageError(
        f"An image is a path, an array or a Pillow image, got {type(source).__name__}. "
        "Write bytes to a file first, and turn tensors into NumPy arrays of shape (h, w, 3)."
    )


def read_bytes(path: str) -> bytes:
    """The bytes of an image file."""
    if not os.path.isfile(path):  # nor a pipe, which would be waited for
        raise _not_there(path)
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ImageError(f"{path} cannot be read: {error.strerror or error}. Check its permissions.") from None


def _not_there(path: str) -> ImageError:
    if os.path.exists(path):
        return ImageError(f"{path} is no file, but a folder or a device. list_images lists the images in a folder.")
    return ImageError(f"{path} does not exist. Relative paths start at {os.getcwd()}; is it another folder?")


def decode(data: bytes, path: str, *, color: bool) -> np.ndarray:
    """The image in the bytes of a file; its path is for messages."""
    Image = pillow()
    try:
        with Image.open(io.BytesIO(data)) as image:
            return _of_pillow(image, color, path)
    except (ImportError, MemoryError, ImageError):
        raise
    except Exception as error:  # Pillow's readers fail in many ways on damaged files
        told = (
            ""
            if isinstance(error, Image.UnidentifiedImageError)
            else f": {str(error).rstrip('.') or type(error).__name__}"
        )
        raise ImageError(
            f"{path} is not an image that Pillow can read ({len(data)} bytes){told}. Fetch it again, make it PNG or "
            "JPEG, or remove it."
        ) from None


def pillow() -> Any:
    """The module ``PIL.Image``, imported when it is first needed."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError('Reading images needs Pillow: pip install "maxmargin[vision]".') from error
    return Image


def said_of(image: object) -> str:
    """What was given where an image is needed, for messages."""
    return f"shape {image.shape} of {image.dtype}" if isinstance(image, np.ndarray) else type(image).__name__


def _of_pillow(image: PillowImage, color: bool, name: str = "The image") -> np.ndarray:
    from PIL import ImageOps

    if 0 in image.size:
        raise ImageError(f"{name} has no pixels: it is {image.size[0]} × {image.size[1]}. Remove it.")
    image.load()
    with contextlib.suppress(Exception):  # a damaged tag is no reason to lose the pixels
        image = ImageOps.exif_transpose(image)
    if image.mode == "F" or image.mode.startswith("I"):
        values = np.asarray(image)
        if image.mode == "I" and values.min() >= 0 and values.max() < 2**16:
            values = values.astype(np.uint16)  # how some versions of Pillow hold 16-bit files
        return _of_array(values, color, name)
    if image.mode in ("LA", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        return _of_array(np.asarray(image.convert("RGBA")), color, name)
    return np.array(image.convert("RGB" if color else "L"))


def _of_array(values: np.ndarray, color: bool, name: str = "The array") -> np.ndarray:
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[:, :, 0]
    if values.size == 0 or values.ndim not in (2, 3) or (values.ndim == 3 and values.shape[2] not in (3, 4)):
        raise ImageError(
            f"{name} has shape {values.shape}, but an image is (height, width), (height, width, 3) or (height, width, "
            "4), and has pixels. Colours that come first are moved by np.moveaxis(image, 0, -1)."
        )
    pixels = _as_bytes(values, name)
    if pixels.ndim == 3 and pixels.shape[2] == 4:
        alpha = pixels[:, :, 3:].astype(np.uint32)
        pixels = ((pixels[:, :, :3] * alpha + 255 * (255 - alpha) + 127) // 255).astype(np.uint8)
    if pixels.ndim == 2:
        return np.repeat(pixels[:, :, None], 3, axis=2) if color else np.array(pixels)
    if color:
        return np.array(pixels)
    # Pillow's rounding, so that an array and the file it came from are the same image.
    r, g, b = np.moveaxis(pixels.astype(np.uint32), 2, 0)
    return ((19595 * r + 38470 * g + 7471 * b + 0x8000) >> 16).astype(np.uint8)


def _as_bytes(values: np.ndarray, name: str) -> np.ndarray:
    if values.dtype == np.uint8:
        return values
    if values.dtype == np.bool_:
        return values.astype(np.uint8) * np.uint8(255)
    if (values.dtype.kind, values.dtype.itemsize) == ("u", 2):  # in either byte order
        return ((values.astype(np.uint32) + 128) // 257).astype(np.uint8)
    if values.dtype.kind == "f" and values.min() >= -1e-6 and values.max() <= 1 + 1e-6:  # resizing may overshoot
        return np.rint(np.clip(values, 0, 1) * 255).astype(np.uint8)
    held = f" from {values.min():g} to {values.max():g}" if values.dtype.kind in "iuf" else ""
    raise ImageError(
        f"{name} holds {values.dtype}{held}, but pixels are uint8, uint16, or floats from 0 to 1. If the values lie "
        "between 0 and 255, use image.astype(np.uint8)."
    )


class ImageFolder:
    """A folder with one sub-folder per class, and images in it, at any depth.

    Parameters
    ----------
    path : path
        The folder. Hidden files and folders are passed over.

    Attributes
    ----------
    paths : list of str
        The images, sorted by class and then by name. Files beside the sub-folders, and those whose names are not those
        of images, are left out.
    labels : ndarray of str, shape (n_images,)
        The class of each image: the name of its sub-folder.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from maxmargin.vision.images import ImageFolder
    >>> with tempfile.TemporaryDirectory() as root:
    ...     for name in ["coast/1.png", "coast/2.png", "forest/1.png"]:
    ...         file = pathlib.Path(root, name)
    ...         file.parent.mkdir(exist_ok=True)
    ...         file.touch()
    ...     folder = ImageFolder(root)
    >>> folder.labels.tolist()
    ['coast', 'coast', 'forest']
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, str | os.PathLike) or not os.path.isdir(path):
            raise ImageError(f"path must be a folder that exists, with one sub-folder per class; got {path}.")
        self.path = os.fspath(path)
        places = sorted(place for place in Path(path).iterdir() if place.is_dir() and not place.name.startswith("."))
        found = {place.name: images_below(str(place)) for place in places}
        empty = [name for name, images in found.items() if not images]
        if empty or not found:
            none = (
                f"{len(empty)} of {len(found)} have none: {some(empty, most=10)}" if empty else "it has no sub-folders"
            )
            raise ImageError(
                f"{self.path} must have one sub-folder per class, with images in it, but {none}. Move the images of "
                "each class into a folder that has the name of the class, and remove other folders."
            )
        self.paths = [image for images in found.values() for image in images]
        self.labels = np.repeat(list(found), [len(images) for images in found.values()])

    def __len__(self) -> int:
        return len(self.paths)


def list_images(path: object) -> list[str]:
    """The images that are meant by a file, a folder (at any depth), a pattern such as ``"photos/*.jpg"``, or a list.

    A file that is named outright is listed whatever its name; in folders and patterns names decide, and hidden files
    are passed over. What a folder or a pattern gives is sorted.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from maxmargin.vision.images import list_images
    >>> with tempfile.TemporaryDirectory() as root:
    ...     for name in ["b.jpg", "a.png", "notes.txt"]:
    ...         pathlib.Path(root, name).touch()
    ...     [pathlib.Path(found).name for found in list_images(root)]
    ['a.png', 'b.jpg']
    """
    if isinstance(path, str | os.PathLike):
        name = os.fspath(path)
        if os.path.isfile(name):
            return [name]
        if os.path.isdir(name):
            found = images_below(name)
        elif glob.has_magic(name):
            found = sorted(file for file in glob.glob(name, recursive=True) if _is_image(file) and os.path.isfile(file))
        else:
            raise _not_there(name)
    elif isinstance(path, Iterable):
        found = [image for one in path for image in list_images(one)]
    else:
        raise ImageError(f"list_images takes a path or a list of paths, got {type(path).__name__}.")
    if not found:
        place = path if isinstance(path, str | os.PathLike) else "an empty list"
        raise ImageError(f"There are no images in {place}. Names of images end in one of: {' '.join(SUFFIXES)}.")
    return found


def images_below(folder: str, deep: bool = True) -> list[str]:
    """The images in a folder, at any depth or not, sorted."""
    files = _files(folder) if deep else (entry.path for entry in os.scandir(folder) if entry.is_file())
    return sorted(filter(_is_image, files))


def _is_image(path: str) -> bool:
    return os.path.splitext(path)[1].lower() in SUFFIXES


def _files(folder: str) -> Iterator[str]:
    """All files below a folder that are not hidden. Links are followed, in circles once."""
    seen = set()
    for here, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(here)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (os.path.join(here, name) for name in files if not name.startswith("."))


def some(names: Sequence[str], most: int = 5, between: str = ", ") -> str:
    """The first of many names, and how many more there are.

    >>> some(["a.jpg", "b.jpg", "c.jpg"], most=2)
    'a.jpg, b.jpg, and 1 more'
    """
    more = [f"and {len(names) - most} more"] if len(names) > most else []
    return between.join([*names[:most], *more])

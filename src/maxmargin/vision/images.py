"""Images as arrays of bytes, and folders of them: one sub-folder per class."""

from __future__ import annotations

import glob
import io
import os
import stat
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

_ORIENTATION = 0x0112  # the EXIF tag


class ImageError(ValueError):
    """An image, or a folder of images, that cannot be used: the message says which, what is wrong and what to do.

    ``path`` is the file or folder, where there is one.
    """

    def __init__(self, message: str, path: str | None = None) -> None:
        super().__init__(message)
        self.path = path

    def __reduce__(self) -> tuple[type[ImageError], tuple[str, str | None]]:
        return ImageError, (str(self), self.path)  # errors travel between processes, and the usual way loses the path


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
    """The bytes of an image file that is there and not empty."""
    if os.path.isdir(path):
        raise ImageError(f"{path} is a folder, not an image. list_images({path!r}) lists the images in it.", path)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ImageError(f"{path} is no file but a pipe or a device. Remove it.", path)
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise _not_there(path) from None
    except OSError as error:
        raise ImageError(f"{path} cannot be read: {error.strerror or error}. Check its permissions.", path) from None
    if not data:
        raise ImageError(f"{path} is empty (0 bytes). Fetch it again, or remove it.", path)
    return data


def _not_there(path: str) -> ImageError:
    return ImageError(f"{path} does not exist. Relative paths start at {os.getcwd()}; is it another folder?", path)


def decode(data: bytes, path: str, *, color: bool) -> np.ndarray:
    """The image in the bytes of a file; its path is for messages."""
    Image = pillow()
    try:
        with Image.open(io.BytesIO(data)) as image:
            return _of_pillow(image, color, path)
    except (ImportError, MemoryError):
        raise
    except ImageError as error:
        error.path = path
        raise
    except Image.UnidentifiedImageError:
        wrong = f"is not an image that Pillow can read ({len(data)} bytes). Make it PNG or JPEG, or remove it."
    except Image.DecompressionBombError:
        wrong = (
            f"has more than {2 * (Image.MAX_IMAGE_PIXELS or 0):,} pixels, which may be an attack on memory. "
            "If it is not, make it smaller, or set PIL.Image.MAX_IMAGE_PIXELS higher."
        )
    except Exception as error:  # Pillow's readers fail in many ways on damaged files
        wrong = f"is damaged or cut short: {error or type(error).__name__}. Fetch it again, or remove it."
    raise ImageError(f"{path} {wrong}", path)


def pillow() -> Any:
    """The module ``PIL.Image``, imported when it is first needed."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError('Reading images needs Pillow: pip install "maxmargin[vision]".') from error
    return Image


def said_of(image: Any) -> str:
    """What was given where an image is needed, for messages."""
    return f"shape {image.shape} of {image.dtype}" if isinstance(image, np.ndarray) else type(image).__name__


def _of_pillow(image: PillowImage, color: bool, name: str = "The image") -> np.ndarray:
    if 0 in image.size:
        raise ImageError(f"{name} has no pixels: it is {image.size[0]} × {image.size[1]}. Remove it.")
    image.load()
    image = _upright(image)
    if image.mode == "F" or image.mode.startswith("I"):
        values = np.asarray(image)
        if image.mode == "I" and values.min() >= 0 and values.max() < 2**16:
            values = values.astype(np.uint16)  # how some versions of Pillow hold 16-bit files
        return _of_array(values, color, name)
    if image.mode in ("LA", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        return _of_array(np.asarray(image.convert("RGBA")), color, name)
    return np.array(image.convert("RGB" if color else "L"))


def _upright(image: PillowImage) -> PillowImage:
    """The image as its EXIF orientation says it should be seen."""
    way = pillow().Transpose
    turns = {
        2: way.FLIP_LEFT_RIGHT, 3: way.ROTATE_180, 4: way.FLIP_TOP_BOTTOM, 5: way.TRANSPOSE,
        6: way.ROTATE_270, 7: way.TRANSVERSE, 8: way.ROTATE_90,
    }  # fmt: skip
    try:
        turn = turns.get(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # a damaged tag is no reason to lose the pixels
        return image
    if turn is None:
        return image
    turned = image.transpose(turn)
    turned.info = image.info
    return turned


def _of_array(values: np.ndarray, color: bool, name: str = "The array") -> np.ndarray:
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[:, :, 0]
    if values.ndim not in (2, 3) or (values.ndim == 3 and values.shape[2] not in (3, 4)):
        swapped = values.ndim == 3 and values.shape[0] in (1, 3, 4)
        todo = " The colours must come last: np.moveaxis(image, 0, -1)." if swapped else ""
        raise ImageError(
            f"{name} has shape {values.shape}, but an image is (height, width), (height, width, 3) or "
            f"(height, width, 4).{todo}"
        )
    if values.size == 0:
        raise ImageError(f"{name} has no pixels: its shape is {values.shape}. Leave it out.")
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
    if values.dtype.kind == "f":
        low, high = float(values.min()), float(values.max())
        if not (low >= -1e-6 and high <= 1 + 1e-6):  # NaN fails too; what resizing overshoots is let through
            raise ImageError(
                f"{name} holds floats from {low:g} to {high:g}, but floats must lie between 0 and 1. "
                "Divide by the value of white, or give unsigned bytes."
            )
        return np.rint(np.clip(values, 0, 1) * 255).astype(np.uint8)
    raise ImageError(
        f"{name} holds {values.dtype}, but pixels are uint8, uint16, or floats from 0 to 1. "
        "If the values lie between 0 and 255, use image.astype(np.uint8)."
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
        The images, sorted by class and then by name.
    labels : ndarray of str, shape (n_images,)
        The class of each image: the name of its sub-folder.
    classes : ndarray of str, shape (n_classes,)
        The names, sorted.
    ignored : int
        Files that were left out: those whose names are not those of images, and all that lie beside the sub-folders.

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

    path: str
    ignored: int
    labels: np.ndarray
    classes: np.ndarray

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, str | os.PathLike):
            raise ImageError(f"path must be a folder with one sub-folder per class, got {type(path).__name__}.")
        self.path = os.fspath(path)
        if not os.path.isdir(self.path):
            given = "is a file, not a folder" if os.path.exists(self.path) else "does not exist"
            raise ImageError(f"{path} {given}. A folder with one sub-folder per class is needed.", self.path)
        entries = sorted(name for name in os.listdir(self.path) if not name.startswith("."))
        names = [name for name in entries if os.path.isdir(os.path.join(self.path, name))]
        beside = [name for name in entries if name not in names]
        if not names:
            loose = sum(map(_is_image, beside))
            found = f"{loose} images lie in it directly" if loose else "there are no folders in it"
            raise ImageError(
                f"{self.path} must have one sub-folder per class, but {found}. Move the images of each class into "
                "a folder that has the name of the class.",
                self.path,
            )
        self.ignored = len(beside)
        self.paths: list[str] = []
        labels: list[str] = []
        empty = []
        for name in names:
            files = list(_files(os.path.join(self.path, name)))
            images = sorted(filter(_is_image, files))
            self.ignored += len(files) - len(images)
            self.paths += images
            labels += [name] * len(images)
            if not images:
                empty.append(name)
        if empty:
            raise ImageError(
                f"{len(empty)} of the {len(names)} class folders in {self.path} have no images: "
                f"{some(empty, most=10)}. Put images into them, or remove them.",
                self.path,
            )
        self.labels = np.array(labels)
        self.classes = np.array(names)

    def __len__(self) -> int:
        return len(self.paths)

    def __repr__(self) -> str:
        return f"ImageFolder({self.path!r}): {len(self)} images of {len(self.classes)} classes"


def list_images(path: Any) -> list[str]:
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
    if not isinstance(path, str | os.PathLike):
        if not isinstance(path, Iterable):
            raise ImageError(f"list_images takes a path or a list of paths, got {type(path).__name__}.")
        found = [image for one in path for image in list_images(one)]
        if not found:
            raise ImageError("There are no images in an empty list of paths. Name at least one.")
        return found
    name = os.fspath(path)
    if os.path.isfile(name):
        return [name]
    if os.path.isdir(name):
        files, what = list(_files(name)), "folder"
    elif glob.has_magic(name):
        files, what = [file for file in glob.glob(name, recursive=True) if os.path.isfile(file)], "pattern"
    else:
        raise _not_there(name)
    images = sorted(filter(_is_image, files))
    if not images:
        raise ImageError(
            f"There are no images in the {what} {name} ({len(files)} other files). The names of images end in one of: "
            f"{' '.join(SUFFIXES)}.",
            name,
        )
    return images


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

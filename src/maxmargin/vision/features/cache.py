"""Features on disk: one small file per image, found by what the image is."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from collections.abc import Iterator

import numpy as np
from numpy.lib import format as npy

from ...files import replacing

_VERSION = "1"  # of the files; older ones are not found any more
_DIGEST = 16  # bytes at the end of an entry, by which damage is seen


@contextlib.contextmanager
def writing(folder: str) -> Iterator[None]:
    """Whoever writes into the folder of a cache: where that fails the error says what can be done."""
    try:
        yield
    except OSError as error:
        raise OSError(
            f"cache={folder!r} cannot be written: {error.strerror or error}. Make room, and what is in it will not be "
            "computed again; or leave the cache out."
        ) from error


class FeatureCache:
    """Features of single images in a folder, under a key made of the image's content and the settings.

    Another process sees a whole entry or none. An entry that was damaged is as good as none.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from maxmargin.vision.features.cache import FeatureCache
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = FeatureCache(folder, "mean of the pixels")
    ...     key = cache.key(b"the bytes of a file")
    ...     cache.store(key, np.ones(3))
    ...     cache.load(key)
    array([1., 1., 1.])
    """

    def __init__(self, folder: str | os.PathLike[str], settings: str) -> None:
        self.folder = os.fspath(folder)
        try:
            os.makedirs(self.folder, exist_ok=True)
        except OSError as error:
            raise ValueError(
                f"cache={self.folder!r} cannot be used as a folder: {error.strerror or error}. Name one that can be "
                "made, or leave the cache out."
            ) from None
        self._settings = f"{_VERSION}\0{settings}\0".encode()

    def key(self, image: bytes | np.ndarray) -> str:
        """The name for an image: the bytes of its file, or its pixels."""
        found = hashlib.blake2b(self._settings, digest_size=20)
        if isinstance(image, bytes):
            found.update(b"file\0")
            found.update(image)
        else:
            found.update(f"{image.dtype.str}{image.shape}\0".encode())
            found.update(np.ascontiguousarray(image).data)
        return found.hexdigest()

    def load(self, key: str) -> np.ndarray | None:
        """The entry, or None if there is none that can be trusted."""
        try:
            with open(self._path(key), "rb") as file:
                content = file.read()
        except OSError:
            return None
        body, digest = content[:-_DIGEST], content[-_DIGEST:]
        if _digest(body) != digest:
            return None
        return npy.read_array(io.BytesIO(body), allow_pickle=False)

    def store(self, key: str, value: np.ndarray) -> None:
        """Write an entry. OSError if the disk does not take it; nothing is left behind then."""
        buffer = io.BytesIO()
        npy.write_array(buffer, value, allow_pickle=False)
        body = buffer.getvalue()
        path = self._path(key)
        with writing(self.folder):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with replacing(path, flush=False) as new, open(new, "wb") as file:
                file.write(body)
                file.write(_digest(body))

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, key[:2], key[2:] + ".feature")


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST).digest()

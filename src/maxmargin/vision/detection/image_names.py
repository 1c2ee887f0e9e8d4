"""Which file is meant by the name that a table has for an image."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from ..images import images_below

_UPWARDS = re.compile(r"^(\.{0,2}/)+")  # what stands before the names of folders and files


class ImageNames:
    """Finds images by name: with or without the suffix, with as much of the path as the table has.

    Parameters
    ----------
    folder : str, optional
        Names are looked for in it first, and those that are not found like that, such as those without a suffix, among
        its images.
    listed : sequence of str, optional
        Images that may be meant, instead of those in the folder.
    deep : bool, default True
        Whether images at any depth of the folder may be meant.
    trusted : bool, default False
        Whether names may lead out of the folder, by ``..`` or as an absolute path. Those of files may not.

    Notes
    -----
    A name must be the end of a path, whole folders of it: ``b/1.jpg`` is never ``a/1.jpg``. Names are compared as text:
    links that lie in the folder are followed, whoever made the folder wanted them.
    """

    def __init__(
        self, folder: str | None, listed: Sequence[str] | None = None, *, deep: bool = True, trusted: bool = False
    ) -> None:
        self.folder, self.deep, self.trusted = folder, deep, trusted
        self._listed = None if listed is None else dict.fromkeys(listed)

    def find(self, name: str, where: str) -> str | None:
        """The path, None if there is no such image; an error if two images may be meant."""
        ways = [name, name.strip().replace("\\", "/")]
        for way in filter(None, ways):
            if self._listed is not None and way in self._listed:
                return way
            path = os.path.normpath(os.path.join(self.folder or "", way))
            if self.folder is not None and os.path.isfile(path):
                return self._allowed(path, name, where)
        for way in (_UPWARDS.sub("", os.path.normpath(way).replace(os.sep, "/")) for way in ways):
            found = [path for path in self._by_end[way.rsplit("/", 1)[-1]] if _is_end(way, path)]
            # Only where no name with a suffix fits is one without it looked for.
            found = [path for path in found if path.endswith(way)] or found
            if len(found) > 1:
                raise ValueError(
                    f"{where}: {name!r} may be {' or '.join(found[:3])}. Write more of its path, so that one is meant."
                )
            if found:
                return found[0]
        return None

    def _allowed(self, path: str, name: str, where: str) -> str:
        """The path, if it may be meant: what was listed by the user may be anywhere."""
        inside = Path(os.path.abspath(path)).is_relative_to(os.path.abspath(self.folder or ""))
        if self.trusted or inside or (self._listed is not None and path in self._listed):
            return path
        raise ValueError(
            f"{where}: {name!r} lies outside of {self.folder}, and files may name images in that folder only. If this "
            "image is meant, give as images a folder that holds all of them, or list them: images=[…]."
        )

    @cached_property
    def _by_end(self) -> dict[str, list[str]]:
        """Images by their last name, with and without its suffix."""
        found: dict[str, list[str]] = defaultdict(list)
        paths = self._listed
        if paths is None and self.folder is not None:
            paths = dict.fromkeys(map(os.path.normpath, images_below(self.folder or ".", self.deep)))
        for path in paths or ():
            name = os.path.basename(path)
            for way in {name, os.path.splitext(name)[0]}:
                found[way].append(path)
        return found


def _is_end(name: str, path: str) -> bool:
    full = os.path.abspath(path).replace(os.sep, "/")
    return any(f"/{full}".endswith(f"/{name}") for full in (full, os.path.splitext(full)[0]))

"""Which file is meant by the name that a table has for an image."""

from __future__ import annotations

import os
import re
from collections import defaultdict

from ..images import SUFFIXES, list_images

_ABSOLUTE = re.compile(r"/|\\\\|[A-Za-z]:[\\/]")


class ImageNames:
    """Finds images by name: with or without the suffix, with as much of the path as the table has.

    Parameters
    ----------
    folder : str, optional
        Names are looked for in it first.
    paths : list of str, optional
        Images that may be meant. None: the folder alone, and not what is below it.
    deep : bool, default False
        Images at any depth of the folder may be meant too. They are listed when a name is not found otherwise.
    root : str, optional
        What no name may lead out of, by ``..`` or as an absolute path. None: anywhere.

    Notes
    -----
    A relative name must be the end of a path, whole folders of it: ``b/1.jpg`` is never ``a/1.jpg``. An absolute one
    may have been written on another machine. If it does not exist, the image with the longest common end is taken.
    Names are compared as text: links that lie in the folder are followed, whoever made the folder wanted them.
    """

    def __init__(
        self, folder: str | None, paths: list[str] | None = None, *, deep: bool = False, root: str | None = None
    ) -> None:
        self.folder = folder
        self._root = None if root is None else os.path.abspath(root)
        self._deep = deep
        self._exact = set(paths or ())
        self._ends: dict[str, list[str]] | None = None
        self._moved: dict[str, str] = {}

    def find(self, name: str, where: str) -> str | None:
        """The path, None if there is no such image; an error if two images may be meant."""
        variants = dict.fromkeys(_tidy(way) for way in (name, name.strip(), name.replace("\\", "/")))
        for variant in filter(None, variants):
            if variant in self._exact:
                return variant
            if self.folder is not None:
                path = os.path.normpath(os.path.join(self.folder, variant))
                if os.path.isfile(path):
                    return self._inside(path, name, where)
        for variant in filter(None, variants):
            if found := self._ending(variant):
                return self._inside(_only(found, name, where), name, where)
        if _ABSOLUTE.match(name) and not os.path.isfile(name):  # else it is another image, and not meant
            return self._elsewhere(name, where)
        return None

    def _inside(self, path: str, name: str, where: str) -> str:
        """The path, if it may be meant: what was listed by the user may be anywhere."""
        if self._root is None or path in self._exact or _is_below(os.path.abspath(path), self._root):
            return path
        raise ValueError(
            f"{where}: {name!r} lies outside of {self._root}, and files may name images in that folder only. If this "
            "image is meant, give as root a folder that holds all images, or list them: images=[…]."
        )

    def _ending(self, name: str) -> list[str]:
        if self._ends is None and not self._exact and not self._deep:
            paths = [os.path.normpath(os.path.join(self.folder or "", name + suffix)) for suffix in _BOTH_CASES]
            return list(filter(os.path.isfile, paths))[:1]
        with_suffix, without = [], []
        for path in self._named(name):
            full = os.path.abspath(path).replace(os.sep, "/")
            if full == name or full.endswith("/" + name):
                with_suffix.append(path)
            elif os.path.splitext(full)[0].endswith("/" + name):
                without.append(path)
        return with_suffix or without

    def _named(self, name: str) -> list[str]:
        """Images whose last name is that of ``name``, or would be without its suffix."""
        if self._ends is None:
            self._ends = defaultdict(list)
            more = map(os.path.normpath, list_images(self.folder)) if self._deep and self.folder else ()
            for path in dict.fromkeys([*sorted(self._exact), *more]):
                last = os.path.basename(path)
                stem, suffix = os.path.splitext(last)
                self._ends[last].append(path)
                if suffix.lower() in SUFFIXES:
                    self._ends[stem].append(path)
        return self._ends.get(name.rsplit("/", 1)[-1], [])

    def _elsewhere(self, name: str, where: str) -> str | None:
        parts = re.split(r"[\\/]", name)
        for start in range(1, len(parts)):
            if found := self._ending("/".join(parts[start:])):
                path = _only(found, name, where)
                other = self._moved.setdefault(path, name)
                if other != name:
                    raise ValueError(
                        f"{where}: neither {other} nor {name} exists, and {path} may be either. Write names that start "
                        "at the folder of the images."
                    )
                return path
        return None


_BOTH_CASES = [way for suffix in SUFFIXES for way in (suffix, suffix.upper())]


def _is_below(path: str, root: str) -> bool:
    try:
        return os.path.commonpath([path, root]) == root
    except ValueError:  # on another drive
        return False


def _tidy(name: str) -> str:
    while name.startswith("./"):
        name = name[2:].lstrip("/")
    return name


def _only(paths: list[str], name: str, where: str) -> str:
    if len(paths) > 1:
        raise ValueError(
            f"{where}: {name!r} may be {' or '.join(paths[:3])}. Write more of its path, so that one is meant."
        )
    return paths[0]

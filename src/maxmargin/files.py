"""The one way to write a file or a folder: it is there whole, or what was there before still is.

It is written in a hidden *scratch folder* beside its place, flushed to disk and renamed. The writer holds a lock in
that folder, which the operating system takes back when a process ends, however it ends: what a killed process left
behind is known by its free lock, and the next one that writes there removes it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_SUFFIX = ".maxmargin-tmp"
_LOCK, _BEFORE = "lock", "before"


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, flush: bool = True) -> Iterator[Path]:
    """A name to write a file or a folder under; where the block ends without an error, it takes the place of ``path``.

    A link stays a link, and what it leads to is replaced. The new file has the permissions of the old one. What is
    no plain file (a pipe, /dev/null) stays what it is and gets the bytes. Without ``flush`` a power failure may leave
    an empty file: for what is checked when it is read.
    """
    if not os.fspath(path):
        raise ValueError("The name of the file to write is empty. Name a file.")
    target = Path(path)
    if target.exists() and not (target.is_file() or target.is_dir()):
        # Written elsewhere first: libraries that write whole files may rename them into place, too.
        with tempfile.TemporaryDirectory() as folder:
            new = Path(folder) / target.name
            yield new
            with open(new, "rb") as made, open(target, "wb") as out:
                shutil.copyfileobj(made, out)
        return
    target = Path(os.path.realpath(target))
    if target.is_file() and not os.access(target, os.W_OK):
        raise PermissionError(f"Cannot write {path}: it is write-protected. Name another file.")
    scratch = Scratch(target.parent, target.name)
    try:
        new = scratch.folder / target.name
        yield new
        if flush:
            _flush_all(new)
        if target.exists() or not new.is_dir():
            os.chmod(new, stat.S_IMODE(os.stat(target if target.exists() else scratch.folder / _LOCK).st_mode))
        _put_in_place(new, target, scratch.folder / _BEFORE)
        if flush:
            _flush_folder(target.parent)
    finally:
        scratch.remove()


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Complain about a place that cannot be written to before any work is done."""
    target = Path(path)
    if not target.name:
        raise ValueError(f"path must name the file to write, got {os.fspath(path)!r}.")
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file to write.")
    folder = Path(os.path.realpath(target)).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"Cannot write {path}: there is no folder {target.parent}. Create it first.")
    if not os.access(folder, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise PermissionError(f"Cannot write {path}: no permission to. Name another file.")
    return target


class Scratch:
    """A hidden folder for what is not finished, which only this object uses. ``remove`` it in the end.

    Parameters
    ----------
    parent : path
        The folder that it is made in; what dead processes left there is removed first.
    name : str
        What it is for, as those who find it will read it.
    """

    folder: Path

    def __init__(self, parent: str | os.PathLike[str], name: str) -> None:
        remove_leftovers(parent)
        for tries_left in (2, 1, 0):  # as long as there is no lock, another process may take it for a leftover
            self.folder = Path(tempfile.mkdtemp(_SUFFIX, f".{name[:40]}.", parent))
            try:
                self._lock = open(self.folder / _LOCK, "x")  # noqa: SIM115  # held until ``remove``
            except FileNotFoundError:
                if not tries_left:
                    raise
                continue
            if (locked(self._lock) and (self.folder / _LOCK).exists()) or not tries_left:
                return  # in the end without a lock: some file systems have none, and leftovers stay there
            self.remove()

    def remove(self) -> None:
        self._lock.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def remove_leftovers(folder: str | os.PathLike[str]) -> None:
    """Remove the scratch folders of dead processes; a folder that one of them had set aside goes back to its place."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        left = [Path(entry.path) for entry in entries if entry.name.endswith(_SUFFIX)]
        for scratch in left:
            with contextlib.suppress(OSError):
                _remove_if_dead(scratch)


def _remove_if_dead(scratch: Path) -> None:
    try:
        lock = open(scratch / _LOCK, "r+")  # noqa: SIM115  # Windows removes no open file
    except FileNotFoundError:
        scratch.rmdir()  # nothing else is in it
        return
    dead = locked(lock)
    if dead and (scratch / _BEFORE).is_dir():
        for before in (scratch / _BEFORE).iterdir():
            if not (scratch.parent / before.name).exists():
                before.rename(scratch.parent / before.name)
    lock.close()
    if dead:
        shutil.rmtree(scratch, ignore_errors=True)


def _put_in_place(new: Path, target: Path, aside: Path) -> None:
    """Rename, and where a folder is replaced, which takes two steps, set the old one aside for their time."""
    if target.is_dir() and not new.is_dir():
        raise IsADirectoryError(f"Cannot write the file {target}: it is a folder. Name a file.")
    if not target.is_dir() or not any(target.iterdir()):
        os.replace(new, target)
        return
    aside.mkdir()
    target.rename(aside / target.name)
    try:
        new.rename(target)
    except BaseException:
        (aside / target.name).rename(target)
        raise


def _flush_folder(folder: str | os.PathLike[str]) -> None:
    """Make the names of its files last, where folders can be flushed."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _flush_all(path: Path) -> None:
    if path.is_dir():
        for held in path.iterdir():
            _flush_all(held)
        _flush_folder(path)
        return
    with open(path, "r+b") as file:
        os.fsync(file.fileno())


def locked(file: IO[str]) -> bool:
    """Take the lock on a file, if nobody has it. It is given back when the file is closed, or the process ends."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True

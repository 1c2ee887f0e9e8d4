"""Runs that can be killed: a folder that holds the last state that was saved whole.

Each state is a folder of its own, which is there whole or not at all (``files.replacing``); only then does the file
``CURRENT`` name it, and the one before is removed. Whatever moment a process ends at, ``CURRENT`` names
a complete state. A lock that the operating system takes back when a process dies keeps a second one out.
"""

from __future__ import annotations

import json
import re
import shutil
import time
import warnings
import zlib
from pathlib import Path
from tokenize import TokenError  # NumPy reads headers of arrays as Python
from typing import IO, Any

import numpy as np

from .files import locked, replacing
from .persistence import decode, encode

VERSION = 3
_SHARE = 20  # saving may take this part of the time: one twentieth


class CheckpointError(ValueError):
    """A folder that this run cannot save to or go on from."""


class CheckpointFolder:
    """A folder to save a run in; use it as a context manager, which locks it.

    Parameters
    ----------
    folder : path
    identity : dict of texts
        What the run is about: settings and data. A state saved for another identity is refused.
    every : float
        Seconds between two savings, at least; more where saving takes long.
    """

    def __init__(self, folder: str | Path, identity: dict[str, str], every: float = 30.0) -> None:
        self.folder = Path(folder)
        self.identity = identity
        self.every = every
        self._lock: IO[str] | None = None
        self._last = time.monotonic()
        self._took = 0.0
        self._number = 0
        self._warned = False

    def __enter__(self) -> CheckpointFolder:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = open(self.folder / "lock", "a+")
        except OSError as error:
            raise CheckpointError(
                f"Cannot save to the checkpoint folder {self.folder}: {error.strerror}. Name a folder that may be "
                "written to."
            ) from None
        if not locked(self._lock):
            self._lock.close()
            raise CheckpointError(
                f"Another process is training with the checkpoint folder {self.folder}. Wait for it, or name another "
                "folder."
            )
        self._last = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.close()  # and with it the lock

    def due(self) -> bool:
        return time.monotonic() - self._last >= max(self.every, _SHARE * self._took)

    @property
    def holds_a_state(self) -> bool:
        """Whether anything was saved here."""
        return (self.folder / "CURRENT").exists()

    def load(self) -> dict[str, Any] | None:
        """The last state, if there is one and it belongs to this run."""
        current = self.folder / "CURRENT"
        if not self.holds_a_state:
            return None
        name = ""
        try:
            name = current.read_text().strip()
            with open(self.folder / name / "state.json") as file:
                outer = json.load(file)
            if zlib.crc32(outer["content"].encode()) != outer["checksum"]:
                raise ValueError("its checksum is wrong")
            content = json.loads(outer["content"])
            if content["version"] != VERSION:
                raise ValueError(f"it has version {content['version']}, this release reads version {VERSION}")
            self._check_identity(content["identity"])
            arrays = {}
            for i, (key, checksum) in enumerate(content["arrays"]):
                array = np.load(self.folder / name / f"{i}.npy", mmap_mode="r", allow_pickle=False)
                if _checksum(array) != checksum:
                    raise ValueError(f"the checksum of {key} is wrong")
                arrays[key] = array
            self._number = int(name)
            return decode(content["state"], arrays)
        except CheckpointError:
            raise
        except (OSError, KeyError, TypeError, ValueError, SyntaxError, TokenError) as error:
            raise CheckpointError(
                f"The state saved in {self.folder / name} cannot be read: {error}. Delete the folder {self.folder} to "
                "start anew."
            ) from None

    def save(self, content: dict[str, Any]) -> None:
        """Save a state. A full disk does not end the run: the state before stays, and a warning is given once."""
        started = time.monotonic()
        try:
            self._write(content)
        except OSError as error:
            if not self._warned:
                warnings.warn(
                    f"The run could not be saved in {self.folder}: {error.strerror}. Training goes on; what was saved "
                    "before is still there.",
                    RuntimeWarning,
                    stacklevel=2,
                )
            self._warned = True
        self._last = time.monotonic()
        self._took = self._last - started

    def _write(self, content: dict[str, Any]) -> None:
        arrays: dict[str, np.ndarray] = {}
        state = encode(content, "state", arrays)
        name = f"{self._number + 1:08d}"
        _remove(self.folder / name)  # of a process that was killed before ``CURRENT`` named it
        if (self.folder / name).exists():
            raise FileExistsError(0, f"{self.folder / name} is in the way, and is no state of a run")
        text = json.dumps(
            {
                "version": VERSION,
                "identity": self.identity,
                "arrays": [[key, _checksum(array)] for key, array in arrays.items()],
                "state": state,
            }
        )
        with replacing(self.folder / name) as new:
            new.mkdir()
            for i, array in enumerate(arrays.values()):
                with open(new / f"{i}.npy", "wb") as file:
                    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
                    file.write(_bytes(array))  # NumPy's own writing does not say why it failed
            (new / "state.json").write_text(json.dumps({"checksum": zlib.crc32(text.encode()), "content": text}))
        with replacing(self.folder / "CURRENT") as new:
            new.write_text(name)
        self._number += 1
        for other in self.folder.iterdir():
            if other.name != name:
                _remove(other)

    def _check_identity(self, saved: dict[str, str]) -> None:
        names = [k for k in {**saved, **self.identity} if saved.get(k) != self.identity.get(k)]
        if names:
            names = ["estimator"] if "estimator" in names else names  # whose settings need not be compared
            told = "; ".join(f"{k} was {saved.get(k)}, now it is {self.identity.get(k)}" for k in names)
            raise CheckpointError(
                f"The checkpoint folder {self.folder} belongs to another run: {told}. Name another folder, or delete "
                "this one to start anew."
            )


def _remove(path: Path) -> None:
    """Remove a folder that ``save`` has written. Others are the user's and stay."""
    if re.fullmatch(r"\d{8}", path.name) and path.is_dir():
        held = [entry.name for entry in path.iterdir()]
        if "state.json" in held and all(re.fullmatch(r"\d+\.npy|state\.json", name) for name in held):
            shutil.rmtree(path, ignore_errors=True)


def _bytes(array: np.ndarray) -> Any:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else b""


def _checksum(array: np.ndarray) -> int:
    return zlib.crc32(_bytes(array))

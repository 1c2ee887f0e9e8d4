"""Files that are read from beginning to end, again and again: what text and Parquet have in common."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from .errors import DataError
from .stores import Disk

MESSAGES = 10
"""Lines or rows that cannot be used, of which it is described why; the others are counted."""


class InOrder:
    """Files by name, known by their stamps. A subclass reads all of them in ``_read``.

    Parameters
    ----------
    paths : paths of the files
    n_features : int, optional
        Columns, if they are known; else they are found by reading everything once.
    on_error : "raise" or "skip"
        Whether what cannot be used is an error, or left out and counted (``n_skipped``), with descriptions of the
        first (``skipped``); both are of the last pass.
    store : Disk or Store
        Where the paths are.
    """

    kind: str

    def __init__(self, paths: Sequence[Any], n_features: int | None, on_error: str, store: Disk) -> None:
        self.paths = [os.fspath(path) for path in paths]
        self.on_error = on_error
        self.skipped: list[str] = []
        self.n_skipped = 0
        self._store = store
        self._stamps = [store.stamp(path) for path in self.paths]
        self._declared = n_features
        self._width = n_features or 0  # as far as it was seen
        self._length: int | None = None  # until everything was read once

    @property
    def n_features(self) -> int:
        """Columns; reads everything once if nothing has told yet."""
        if self._declared is None:
            len(self)
        return self._width

    def __len__(self) -> int:
        if self._length is None:
            for _ in self._read():
                pass
        assert self._length is not None
        return self._length

    def _said_of_files(self) -> list[tuple[str, int, int]]:
        """What a fingerprint says of the files: their names, sizes and times."""
        return [(os.path.basename(p), s.size, s.changed) for p, s in zip(self.paths, self._stamps, strict=True)]

    def _refuse_order(self, order: np.ndarray | None) -> None:
        if order is not None:
            raise DataError(
                f"{self.kind} can only be read from beginning to end. Convert it first to read it in any order."
            )

    def _read(self) -> Generator[Any, None, None]:
        """A whole pass, which sets ``_length`` and ``_width`` in the end."""
        raise NotImplementedError

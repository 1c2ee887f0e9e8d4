"""What was learned about the regions of each class, as arrays to look at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, repr=False)
class RegionModels:
    """The region models ("parts") of every class: what each looks like, and where it likes to be.

    Attributes
    ----------
    classes : array (n_classes,)
    appearance : array (n_classes, n_parts, n_features)
        Weights of the features; logarithms of probabilities of words in generative models.
    preference : array (n_classes, rows, columns, n_parts)
        How much each region of the grid likes each part.
    horizontal, vertical : arrays (n_classes, n_parts, n_parts) or None
        Scores of neighbours: part of the left (upper) region × part of the right (lower) one.
    """

    classes: np.ndarray
    appearance: np.ndarray
    preference: np.ndarray
    horizontal: np.ndarray | None = None
    vertical: np.ndarray | None = None

    def __repr__(self) -> str:
        N, M, D = self.appearance.shape
        rows, cols = self.preference.shape[1:3]
        pairs = "" if self.horizontal is None else ", with neighbours"
        return f"RegionModels({N} classes × {M} parts of {D} features, on {rows} × {cols} regions{pairs})"

    def __len__(self) -> int:
        return self.classes.size

    def of(self, name: object) -> RegionModels:
        """Those of one class only."""
        at = np.flatnonzero(self.classes == name)
        if at.size != 1:
            raise ValueError(f"There is no class {name!r}; the classes are {self.classes.tolist()}.")
        tables = [None if table is None else table[at] for table in (self.horizontal, self.vertical)]
        return RegionModels(self.classes[at], self.appearance[at], self.preference[at], *tables)

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
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

    def __len__(self) -> int:
        return self.classes.size

    def of(self, name: Any) -> RegionModels:
        """Those of one class only."""
        at = np.flatnonzero(self.classes == name)
        if at.size != 1:
            raise ValueError(f"There is no class {name!r}; the classes are {self.classes.tolist()}.")
        tables = [None if table is None else table[at] for table in (self.horizontal, self.vertical)]
        return RegionModels(self.classes[at], self.appearance[at], self.preference[at], *tables)

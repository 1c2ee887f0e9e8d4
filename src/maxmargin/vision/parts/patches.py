from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Patches:
    """Features of all places where a part may be, of all images, one image after the other.

    An image has one view or several, such as itself and its mirror image; what parts respond is averaged over them.

    Parameters
    ----------
    values : array (n_patches, n_features)
        float16, float32 or float64; in memory, or a map of a file.
    first : int array (n_images·n_views + 1,)
        Where the patches of each view begin, the views of an image one after the other.
    windows : float array (n_patches, 4) or None
        Left, top, right and bottom of each patch as shares of the width and the height of its view. None: nobody knows.
    n_views : int
        Views of an image. The second of two is the first seen in a mirror.
    """

    values: np.ndarray
    first: np.ndarray
    windows: np.ndarray | None = None
    n_views: int = 1

    def __len__(self) -> int:
        return (self.first.size - 1) // self.n_views

    @property
    def n_features(self) -> int:
        return int(self.values.shape[1])

    def of(self, i: int) -> slice:
        """All patches of an image."""
        return slice(int(self.first[i * self.n_views]), int(self.first[(i + 1) * self.n_views]))

    def windows_of(self, some: slice) -> np.ndarray | None:
        return None if self.windows is None else self.windows[some]

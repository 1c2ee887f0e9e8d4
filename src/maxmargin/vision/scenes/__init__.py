"""Models of scenes over counts of words by region."""

from __future__ import annotations

from .em import ReconfigurableBagOfWords
from .multinomial import SpatialBagOfWords

__all__ = ["ReconfigurableBagOfWords", "SpatialBagOfWords"]

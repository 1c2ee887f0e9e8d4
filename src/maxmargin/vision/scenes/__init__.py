"""Models of scenes over counts of words by region."""

from __future__ import annotations

from .em import ReconfigurableBagOfWords
from .multinomial import BagOfWords, SpatialBagOfWords

__all__ = ["BagOfWords", "ReconfigurableBagOfWords", "SpatialBagOfWords"]

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .situation import Situation


@dataclass(frozen=True)
class CCCP:
    """The concave-convex procedure: the next bound touches F at the last minimiser.

    F itself never rises then; and the search never leaves the valley it begins in.
    """

    def choose(self, situation: Situation, rng: np.random.Generator) -> Any:
        return situation.touching()

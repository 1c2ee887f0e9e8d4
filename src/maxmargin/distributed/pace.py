"""How long calls and work take, and what follows from it for the size of a round."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .work import Report

_SWEEPS = 8  # in a round, at most: what is fitted ever better to a part of the examples does not suit the others
_PARTS = 16  # of a pass, at most: more of them save hardly any visits
_WORTH = 3  # parts of a pass, at least, where workers go on to the end


@dataclass
class Pace:
    """What rounds have taken so far."""

    wait: float = math.inf
    """Seconds of a round beside its sweeps, at the least: other programs can only add to them."""
    each: float = 0.0
    """Seconds of the slowest worker's sweeps, for each example that all have visited."""

    def note(self, seconds: float, reports: list[Report]) -> None:
        """A round has taken so long."""
        swept = max((report.swept for report in reports), default=0.0)
        visited = sum(report.visited for report in reports)
        if swept > 0.0 and visited:
            self.wait = min(self.wait, seconds - swept)
            self.each = swept / visited

    def rounds(self, examples: int) -> tuple[int, int]:
        """In how many parts to go over so many examples, and how often over each.

        Every doubling of the parts saves a smaller share of the visits, and costs twice the waits of before.
        """
        work = self.each * examples
        if work <= 0.0:
            return 1, 1
        parts = int(math.sqrt(0.5 * work / self.wait)) if self.wait > 0.0 else _PARTS
        sweeps = int(self.wait / work)
        return min(max(parts, 1), _PARTS), min(max(sweeps, 1), _SWEEPS)

    def centre_pays(self, examples: int) -> bool:
        """Whether the examples are too few to be gone over in several rounds: then the way is shorter at the centre."""
        return self.rounds(examples)[0] < _WORTH

"""The progress line of a search over convex bounds."""

from __future__ import annotations

from ..problem import BoundRecord
from ..solvers.progress import NestedLine


class SearchLine(NestedLine):
    """A progress line for a search over bounds: what the last bound has reached, and the passes of the one at hand."""

    def __enter__(self) -> SearchLine:
        super().__enter__()
        return self

    def bound(self, record: BoundRecord) -> None:
        """Callback for ``minimise``."""
        self._reached(
            f"bound {record.number}, objective {record.objective:.6g}, bound {record.bound:.6g}, gap {record.gap:.2g}, "
            f"{record.changed:.0%} of the latent values changed, {record.seconds:.1f} s"
        )

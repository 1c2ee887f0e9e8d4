from __future__ import annotations

from typing import Any

from ..problem import BoundRecord
from ..solvers.progress import ProgressLine


class SearchLine(ProgressLine):
    """A progress line for a search over bounds: what the last bound has reached, and the passes of the one at hand."""

    _after = ""

    def __enter__(self) -> SearchLine:
        super().__enter__()
        return self

    def __call__(self, record: Any) -> None:
        super().__call__(record)
        self._status.update(self._last + self._after)

    def bound(self, record: BoundRecord) -> None:
        """Callback for ``minimise``."""
        said = (
            f"bound {record.number}, objective {record.objective:.6g}, bound {record.bound:.6g}, gap {record.gap:.2g}, "
            f"{record.changed:.0%} of the latent values changed, {record.seconds:.1f} s"
        )
        self._after = f" ({said})"
        self._last = f"{self.title}: {said}"
        self._status.update(self._last)

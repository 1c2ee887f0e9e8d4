"""What the progress line of a search over convex bounds says."""

from __future__ import annotations

from ..problem import BoundRecord


def described(record: BoundRecord) -> str:
    """A bound in one line."""
    return (
        f"bound {record.number}, objective {record.objective:.6g}, bound {record.bound:.6g}, gap {record.gap:.2g}, "
        f"{record.changed:.0%} of the latent values changed, {record.seconds:.1f} s"
    )

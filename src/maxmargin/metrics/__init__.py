"""How good predicted segments are, such as named entities or chunks, and how far probabilities can be trusted."""

from .calibration import Bins, calibration_error, reliability_bins
from .tagging import Score, SegmentCounts as SegmentCounts, SegmentScores, segment_scores, segments

__all__ = [
    "Bins", "Score", "SegmentScores", "calibration_error", "reliability_bins", "segment_scores", "segments",
]  # fmt: skip

"""How good predicted segments and trees are, and how far probabilities can be trusted."""

from .calibration import Bins, calibration_error, reliability_bins
from .tagging import Score, SegmentCounts as SegmentCounts, SegmentScores, segment_scores, segments
from .trees import AttachmentScores, attachment_scores

__all__ = [
    "AttachmentScores", "Bins", "Score", "SegmentScores", "attachment_scores", "calibration_error", "reliability_bins",
    "segment_scores", "segments",
]  # fmt: skip

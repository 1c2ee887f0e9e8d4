"""Data on its way in: user arrays become ``Rows`` without a copy where that is possible."""

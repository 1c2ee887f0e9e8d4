"""Reports: what was learned, how sure that is and how well it does, as one HTML file without anything around it."""

from .page import page, write

__all__ = ["page", "write"]

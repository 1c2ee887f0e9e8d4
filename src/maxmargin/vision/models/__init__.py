"""Models of images: parts that are arranged anew in each of them."""

from .reconfigurable import Reconfigurable

__all__ = ["Reconfigurable"]

"""Constraints as solvers see them: closed (all known, in memory or in blocks), or searched for by an oracle."""

from .blocked import Blocked
from .cache import Cache
from .classes import Classes
from .oracle import oracle_for
from .scalar import Scalar
from .searched import Searched
from .shared import SharedSlack
from .sorted_pairs import SortedPairs

__all__ = ["Blocked", "Cache", "Classes", "Scalar", "Searched", "SharedSlack", "SortedPairs", "oracle_for"]

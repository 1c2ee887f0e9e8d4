"""Closed problems as the solver sees them: rows, margins, budgets, and compiled steps over dual variables."""

from .blocked import Blocked
from .cache import Cache
from .classes import Classes
from .scalar import Scalar
from .searched import Searched
from .shared import SharedSlack

__all__ = ["Blocked", "Cache", "Classes", "Scalar", "Searched", "SharedSlack"]

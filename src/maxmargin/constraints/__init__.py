"""Closed problems as the solver sees them: rows, margins, budgets, and compiled steps over dual variables."""

from .classes import Classes
from .scalar import Scalar
from .shared import SharedSlack

__all__ = ["Classes", "Scalar", "SharedSlack"]

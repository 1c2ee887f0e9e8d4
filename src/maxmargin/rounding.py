"""What rounding may have changed in a sum: certificates hold in exact arithmetic because their bounds allow for it.

IEEE arithmetic returns the exact result of one operation, changed by a share of at most ``UNIT``. A sum of n products
therefore differs from its exact value by at most γ(n)·Σ|terms|, in whatever order it is formed (Higham, *Accuracy and
Stability of Numerical Algorithms*, chapter 3). Every bound of a certificate is computed together with such a bound of
its own error: the lower one is moved down by it, the upper one up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

UNIT = 2.0**-53
SINGLE = 2.0**-24  # the same for float32


def gamma(n: float, unit: float = UNIT) -> float:
    """By which share of Σ|terms| the result of n operations in a row may be off; sound up to n·unit = 1/200.

    The percent on top also pays for rounding in the error bounds themselves.

    >>> gamma(100) / 2**-53
    101.0
    """
    return 1.01 * n * unit


def rounded_down(*terms: float) -> float:
    """The largest number that is not above the exact sum.

    >>> rounded_down(0.5, 0.25), rounded_down(1.0, -1e-30)
    (0.75, 0.9999999999999999)
    """
    total = math.fsum(terms)  # the exact sum, rounded once
    if math.isfinite(total) and math.fsum((*terms, -total)) < 0.0:
        return math.nextafter(total, -math.inf)
    return total


def rounded_up(*terms: float) -> float:
    """The smallest number that is not below the exact sum."""
    return -rounded_down(*(-term for term in terms))


def bounded_sum(values: Iterable[float]) -> tuple[float, float]:
    """The sum, and by how much it may be off."""
    total = math.fsum(values)
    return total, gamma(1) * abs(total)

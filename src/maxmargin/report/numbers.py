"""Numbers as people read them."""

from __future__ import annotations

import math

import numpy as np


def count(n: float) -> str:
    """
    >>> count(1234567)
    '1 234 567'
    """
    return f"{int(n):,}".replace(",", " ")


def share(part: float) -> str:
    """A share in percent, with as many digits as its size deserves.

    >>> share(0.98765), share(0.00052), share(1e-9), share(0.0)
    ('98.8 %', '0.052 %', '1e-07 %', '0 %')
    """
    percent = 100.0 * part
    if not math.isfinite(percent):
        return "an unknown share"
    if percent == 0.0:
        return "0 %"
    if abs(percent) < 1e-4:
        return f"{percent:.0e} %"
    digits = 1 if abs(percent) >= 1.0 else 1 - math.floor(math.log10(abs(percent)))
    return f"{percent:.{digits}f} %"


def size(n: float | None) -> str:
    """Bytes, in the units that ``memory=`` reads.

    >>> size(3 * 2**20), size(None)
    ('3.0 MB', 'not known')
    """
    if n is None:
        return "not known"
    value, unit = float(n), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000.0:
            break
        value, unit = value / 1024.0, larger
    return f"{value:.0f} {unit}" if unit == "bytes" or value >= 100.0 else f"{value:.1f} {unit}"


def duration(seconds: float) -> str:
    """
    >>> duration(0.0123), duration(75.0), duration(7384)
    ('0.012 s', '1 min 15 s', '2 h 3 min')
    """
    if seconds < 10.0:
        return f"{seconds:.2g} s"
    if seconds < 60.0:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def number(value: float) -> str:
    """Five significant digits.

    >>> number(28.677425), number(float("inf"))
    ('28.677', '∞')
    """
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.5g}".replace("-", "−")


def score(task: str, value: float | None) -> str:
    """A score of answers: R² as a number, shares in percent.

    >>> score("regress", 0.5), score("classify", 0.5), score("rank", None)
    ('0.5', '50.0 %', 'nothing to judge')
    """
    if value is None:
        return "nothing to judge"
    return number(value) if task == "regress" else share(value)


def label(value: object) -> str:
    """A class label: whole numbers without a decimal point, whatever type they are stored in.

    >>> label(np.float64(3.0)), label("spam")
    ('3', 'spam')
    """
    if isinstance(value, float | np.floating) and math.isfinite(value) and value == int(value):
        return str(int(value))
    return str(value)

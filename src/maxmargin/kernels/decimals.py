"""Decimal numbers in text and the floats nearest to them, exactly.

m·10^q for whole m is a single rounded operation, hence exact, while m < 2^53 and |q| ≤ 22 (Clinger, "How to
read floating point numbers accurately", 1990). Beyond that the upper 128 bits of 5^q decide (Lemire, "Number parsing
at a gigabyte per second", 2021, algorithm 1). What neither settles, and what has more than 18 digits besides zeros in
front, is left to the caller, who has Python's ``float``.
"""

import numpy as np
from numpy import int64, uint64

from . import compiled, inlined

FOUND, UNSETTLED, NOT_A_NUMBER = 0, 1, 2
"""What ``read`` made of a text; ``UNSETTLED`` ones are well formed, but need more care than is worth compiling."""

_REACH = 200  # exponents of ten in the table: beyond subnormal numbers and overflow on either side
_EXACT = 2**53
_DIGITS = 18  # what int64 holds for certain
_TEN = np.array([10.0**k for k in range(23)])
_HALF = uint64(0xFFFFFFFF)
_ALL = uint64(0xFFFFFFFFFFFFFFFF)


def _powers_of_five():
    """The upper 128 bits of 5^q, q = −200 … 200: what follows is cut off, but for −27 ≤ q < 0, where the proof of exact
    ties wants it rounded up."""
    halves = np.empty((2 * _REACH + 1, 2), np.uint64)
    for q in range(-_REACH, _REACH + 1):
        power = 5 ** abs(q)
        if q < 0:
            power = 2 ** (power.bit_length() + 127) // power + (q >= -27)
        power = power << 128 >> power.bit_length()
        halves[q + _REACH] = power >> 64, power & int(_ALL)
    return halves


_FIVE = _powers_of_five()


@inlined
def _product(a, b):
    """Upper and lower half of a·b."""
    a0, a1, b0, b1 = a & _HALF, a >> uint64(32), b & _HALF, b >> uint64(32)
    low = a0 * b0
    middle = a1 * b0 + (low >> uint64(32))
    other = a0 * b1 + (middle & _HALF)
    high = a1 * b1 + (middle >> uint64(32)) + (other >> uint64(32))
    return high, (other << uint64(32)) | (low & _HALF)


@compiled
def nearest(m, q):
    """The float64 nearest to m·10^q for 0 < m < 2^63, ties to even; −1 where that is not settled here."""
    if q < -_REACH or q > _REACH:
        return -1.0
    w = uint64(m)
    zeros = 0
    for step in (32, 16, 8, 4, 2, 1):
        if w >> uint64(64 - step) == uint64(0):
            w <<= uint64(step)
            zeros += step
    high, low = _product(w, _FIVE[q + _REACH, 0])
    if high & uint64(0x1FF) == uint64(0x1FF):  # the bits that decide may still change by what was cut off
        more, _ = _product(w, _FIVE[q + _REACH, 1])
        before = low
        low = (low + more) & _ALL
        if low < before:
            high += uint64(1)
    if low == _ALL and (q < -27 or q > 55):
        return -1.0
    upper = high >> uint64(63)
    shift = upper + uint64(9)
    mantissa = high >> shift
    if low <= uint64(1) and -4 <= q <= 23 and mantissa & uint64(3) == uint64(1) and mantissa << shift == high:
        mantissa &= ~uint64(1)  # exactly halfway: to even
    mantissa = (mantissa + (mantissa & uint64(1))) >> uint64(1)
    exponent = ((217706 * q) >> 16) + 63 + int64(upper) - zeros + 1023
    if mantissa >= uint64(_EXACT):
        mantissa = uint64(_EXACT // 2)
        exponent += 1
    return np.uint64((mantissa & uint64(_EXACT // 2 - 1)) | (uint64(exponent) << uint64(52))).view(np.float64)


@inlined
def read(text, p):
    """(what it is, its value, where it ends) of the number that begins at p.

    Reading ends at the first character that cannot belong to a number; ``text`` must have one.
    """
    c = text[p]
    negative = c == 45
    if negative or c == 43:
        p += 1
    first = p
    m = 0
    d = int64(text[p]) - 48
    while 0 <= d <= 9:
        m = m * 10 + d
        p += 1
        d = int64(text[p]) - 48
    digits = p - first
    exponent = 0
    if d == 46 - 48:
        p += 1
        point = p
        d = int64(text[p]) - 48
        while 0 <= d <= 9:
            m = m * 10 + d
            p += 1
            d = int64(text[p]) - 48
        exponent = point - p
        digits += p - point
    given = 0
    if d == 101 - 48 or d == 69 - 48:
        p += 1
        c = text[p]
        if c == 45 or c == 43:
            p += 1
        start = p
        d = int64(text[p]) - 48
        while 0 <= d <= 9:
            if given < 10**15:  # no text has that many digits to make up for it
                given = given * 10 + d
            p += 1
            d = int64(text[p]) - 48
        if p == start:
            digits = 0
        if c == 45:
            given = -given
    if digits == 0:
        return NOT_A_NUMBER, 0.0, p
    if digits > _DIGITS:  # but for zeros in front, m is wrong
        while text[first] == 48 or text[first] == 46:
            digits -= text[first] == 48
            first += 1
    exponent += given
    if digits > _DIGITS:
        value = -1.0
    elif exponent == 0 or m == 0:
        value = float(m)
    elif m < _EXACT and -22 <= exponent <= 22:
        value = m / _TEN[-exponent] if exponent < 0 else m * _TEN[exponent]
    else:
        value = nearest(m, exponent)
    if value < 0:
        return UNSETTLED, 0.0, p
    return FOUND, -value if negative else value, p

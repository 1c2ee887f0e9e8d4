"""Rows in svmlight text: ``label [qid:n] index:value … [# comment]``, one per line.

The reader looks at each byte once or twice and at nothing behind the last line end, so no loop needs to ask whether
the text is over. A malformed line is noted and left out; whether that is an error is for others to say.
"""

import numpy as np
from numpy import int64

from . import compiled, inlined
from .decimals import NOT_A_NUMBER, UNSETTLED, read

BAD_LABEL, BAD_GROUP, NO_GROUP, NEW_GROUP, BAD_PAIR, LOW_INDEX, HIGH_INDEX, BAD_VALUE, REPEATED = range(1, 10)

_TAB, _NEWLINE, _RETURN, _BLANK, _COMMENT, _COLON = 9, 10, 13, 32, 35, 58


@inlined
def _past_blanks(text, p):
    c = text[p]
    while c in (_BLANK, _TAB, _RETURN):
        p += 1
        c = text[p]
    return p


@inlined
def _ends(c):
    return c in (_BLANK, _NEWLINE, _TAB, _RETURN, _COMMENT)


@inlined
def _whole(text, p, most):
    """A whole number without sign and where it ends; anything above ``most`` comes back as ``most + 1``."""
    start = p
    n = 0
    d = int64(text[p]) - 48
    while 0 <= d <= 9:
        n = n * 10 + d
        p += 1
        d = int64(text[p]) - 48
    if p - start > 18:
        n = 0
        for i in range(start, p):
            d = int64(text[i]) - 48
            n = n * 10 + d if n <= (most - d) // 10 else most + 1
    return min(n, most + 1), p


@compiled
def _sort(indices, values, start, stop):
    """Heap sort of a row by index: in place, and never slow whatever the order was."""
    n = stop - start
    half = n // 2
    while n > 1:
        if half > 0:
            half -= 1
            index, value = indices[start + half], values[start + half]
        else:
            n -= 1
            index, value = indices[start + n], values[start + n]
            indices[start + n], values[start + n] = indices[start], values[start]
        i = half
        child = 2 * i + 1
        while child < n:
            if child + 1 < n and indices[start + child + 1] > indices[start + child]:
                child += 1
            if indices[start + child] <= index:
                break
            indices[start + i], values[start + i] = indices[start + child], values[start + child]
            i = child
            child = 2 * i + 1
        indices[start + i], values[start + i] = index, value


@compiled
def _noted(table, n, a, b, c):
    """``table`` with one more line, in twice the space where it is full."""
    if n == len(table):
        wider = np.empty((2 * n, 3), np.int64)
        for i in range(n):  # an assignment of slices would take seconds to compile
            for j in range(3):
                wider[i, j] = table[i, j]
        table = wider
    table[n, 0] = a
    table[n, 1] = b
    table[n, 2] = c
    return table


@compiled
def parse(text, end, lowest, highest, grouped, limit, indptr, indices, values, labels, groups, faults):
    """Read all lines of ``text[:end]``, whose last character is a line end.

    Parameters
    ----------
    lowest, highest : int
        Indices that are allowed.
    grouped : 1, 0 or −1
        Whether rows have a qid: all, none, or as the first one.
    limit : float
        Values beyond it are left to the caller, together with numbers that need more care.
    indptr, indices, values, labels, groups : arrays
        Room for as many rows as there are line ends, and as many entries as there are colons.
    faults : int array (n, 2)
        Room for what is wrong with the first n malformed lines, and where.

    Returns
    -------
    rows, entries, least index, greatest index, grouped, malformed lines, numbers left over : the last as lines
        (row, index or −1 for the label, place), the others as numbers.
    """
    p = 0
    rows = 0
    entries = 0
    least = highest
    greatest = -1
    n_faults = 0
    left = np.empty((16, 3), np.int64)
    n_left = 0
    indptr[0] = 0
    while p < end:
        p = _past_blanks(text, p)
        fault = 0
        if text[p] != _NEWLINE and text[p] != _COMMENT:
            start = entries
            left_before = n_left
            place = p
            kind, value, p = read(text, p)
            if kind == NOT_A_NUMBER or not _ends(text[p]):
                fault = BAD_LABEL
            else:
                if kind == UNSETTLED:
                    left = _noted(left, n_left, rows, -1, place)
                    n_left += 1
                labels[rows] = value
                p = _past_blanks(text, p)
                place = p
                has_group = text[p] == 113 and text[p + 1] == 105 and text[p + 2] == 100 and text[p + 3] == _COLON
                if has_group:
                    group, p = _whole(text, p + 4, 10**18 - 1)
                    if p == place + 4 or group == 10**18 or not _ends(text[p]):
                        fault = BAD_GROUP
                    elif grouped == 0:
                        fault = NEW_GROUP
                    else:
                        groups[rows] = group
                elif grouped == 1:
                    fault = NO_GROUP
            previous = int64(-1)
            ordered = True
            while fault == 0:
                p = _past_blanks(text, p)
                c = text[p]
                if c in (_NEWLINE, _COMMENT):
                    break
                place = p
                index, p = _whole(text, p, highest)
                if p == place or text[p] != _COLON:
                    fault = BAD_PAIR
                    break
                p += 1
                kind, value, p = read(text, p)
                if kind == NOT_A_NUMBER or not _ends(text[p]):
                    fault = BAD_VALUE
                    break
                if index > highest:
                    fault = HIGH_INDEX
                    break
                if index <= previous:
                    ordered = False
                    if index == previous:
                        fault = REPEATED
                        break
                if index < lowest:
                    fault = LOW_INDEX
                    break
                if kind == UNSETTLED or abs(value) > limit:
                    left = _noted(left, n_left, rows, index, place)
                    n_left += 1
                    value = 0.0
                indices[entries] = index
                values[entries] = value
                previous = index
                entries += 1
            if fault == 0 and not ordered:
                _sort(indices, values, start, entries)
                for i in range(start + 1, entries):
                    if indices[i] == indices[i - 1]:
                        fault = REPEATED
                        place = _second(text, place, indices[i])
                        break
            if fault:
                if n_faults < len(faults):
                    faults[n_faults, 0] = fault
                    faults[n_faults, 1] = place
                n_faults += 1
                entries = start
                n_left = left_before
            else:
                if entries > start:
                    least = min(least, int64(indices[start]))
                    greatest = max(greatest, int64(indices[entries - 1]))
                if grouped < 0:
                    grouped = 1 if has_group else 0
                rows += 1
                indptr[rows] = entries
        while text[p] != _NEWLINE:
            p += 1
        p += 1
    return rows, entries, least, greatest, grouped, n_faults, left[:n_left]


@compiled
def _second(text, place, index):
    """Where ``index`` stands for the last time in the line of ``place``, which is known to be well formed."""
    while place > 0 and text[place - 1] != _NEWLINE:
        place -= 1
    found = place
    while True:
        place = _past_blanks(text, place)
        c = text[place]
        if c in (_NEWLINE, _COMMENT):
            return found
        n, p = _whole(text, place, int64(index))
        if p > place and text[p] == _COLON and n == index:
            found = place
        while not _ends(text[place]):
            place += 1

"""What kind of problem the labels are about, when nobody has said."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data.errors import DataError
from ..protocols import Source

# As many rows tell as much about the kind of labels as all of them would.
_LOOKED_AT = 100_000
_FEW = 10
_ROWS_PER_CLASS = 5
_MOST_CLASSES = 1000


class Guess(NamedTuple):
    task: str
    because: str


def guess_task(source: Source) -> Guess:
    """Look at the first labels.

    - Rows in groups are to be ranked: nothing else uses groups.
    - Text names classes. So do whole numbers, if they are few: up to ten different ones (digits, grades, −1 and 1),
      or more with at least five rows each on average. Fewer rows could not teach a class, and are what counts of
      things look like. Beyond a thousand a weight vector each would be a waste on what is likely a measurement.
    - Anything else is a number to predict.
    """
    rows, values = 0, np.empty(0)
    chunks = source.chunks()
    try:
        for chunk in chunks:
            if chunk.group is not None:
                return Guess("rank", "its rows are in groups")
            if chunk.y is None:
                raise DataError("The data has no labels to learn from. Name their column with --label.")
            y = np.asarray(chunk.y)
            if y.dtype.kind not in "biuf":
                return Guess("classify", "labels are text")
            if not (np.isfinite(y).all() and (y == np.floor(y)).all()):
                return Guess("regress", "labels are not whole numbers")
            rows += y.size
            values = np.union1d(values, y)
            if rows >= _LOOKED_AT:
                break
    finally:
        if hasattr(chunks, "close"):
            chunks.close()
    if rows == 0:
        return Guess("classify", "there are no rows")
    if values.size <= min(_MOST_CLASSES, max(_FEW, rows // _ROWS_PER_CLASS)):
        return Guess("classify", f"labels are {values.size} different whole number{'s' * (values.size > 1)}")
    return Guess("regress", f"labels are {values.size} different numbers in {rows} rows, too many for classes")

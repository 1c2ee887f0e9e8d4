"""Of boxes that overlap, only the best remain: non-maximum suppression.

Boxes are gone through by falling score, and one is dropped if more than a given part of it lies within a kept one: so
are boxes of a detail of something that was found already. Boxes that were dropped drop no others, so that each is
compared with the kept ones alone. (Felzenszwalb et al. 2010, §7.)
"""

import numpy as np

from ...kernels import compiled

_BLOCK = 64


@compiled
def kept_boxes(boxes, areas, overlap):
    """Which of the boxes, an array (4, n) by falling score, are kept.

    Each is held against those that are kept already, a block of them at a time: within a block there is no branch, so
    that several comparisons are one instruction, and after a block that drops the box no other is looked at.
    """
    n = boxes.shape[1]
    left, top, right, bottom = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    rows = np.empty(n, np.int64)
    count = 0
    for r in range(n):
        x_min, y_min, x_max, y_max = boxes[0, r], boxes[1, r], boxes[2, r], boxes[3, r]
        dropped = 0
        start = 0
        while start < count and dropped == 0:
            end = min(start + _BLOCK, count)
            for k in range(np.uint64(start), np.uint64(end)):
                width = (x_max if x_max < right[k] else right[k]) - (x_min if x_min > left[k] else left[k])
                height = (y_max if y_max < bottom[k] else bottom[k]) - (y_min if y_min > top[k] else top[k])
                width = width if width > 0.0 else 0.0
                common = width * height  # negative, if there is none
                dropped += common > overlap * areas[r]
            start = end
        if dropped == 0:
            left[count], top[count], right[count], bottom[count] = x_min, y_min, x_max, y_max
            rows[count] = r
            count += 1
    return rows[:count]

"""Cases of several axes without their whole product."""

from itertools import product


def rotating(first, *others, times=1):
    """Every value of the first axis so many times, each time beside the next combination of the others.

    All combinations of the others occur where there are enough cases; not with every value of the first axis.
    """
    combinations = list(product(*others))
    shift = max(len(combinations) // times, 1)
    return [
        (value, *combinations[(i + t * shift) % len(combinations)])
        for i, value in enumerate(first)
        for t in range(times)
    ]

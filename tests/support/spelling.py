"""Segments, and the labels that spell them, written out one by one: slow, and plain enough to be believed."""

LETTERS = {"iob1": "BIIB", "iob2": "BIIB", "iobes": "BIES", "bilou": "BILU", "bmewo": "BMEW"}
"""How the first, an inner, the last and the only token of a segment are marked."""


def segmentations(n, types=("X", "Y")):
    """All ways to lay segments (start, end, type) on n tokens."""
    if n == 0:
        yield []
        return
    for rest in segmentations(n - 1, types):
        yield rest
    for start in range(n):
        for rest in segmentations(start, types):
            for kind in types:
                yield [*rest, (start, n, kind)]


def spelled(segments, n, scheme):
    first, inner, last, only = LETTERS[scheme]
    labels, before = ["O"] * n, None
    for start, end, kind in segments:
        marks = [only] if end - start == 1 else [first, *[inner] * (end - start - 2), last]
        if scheme == "iob1" and before != (start, kind):
            marks[0] = inner
        labels[start:end] = [f"{mark}-{kind}" if kind != "_" else mark for mark in marks]
        before = end, kind
    return labels


def spellings(n, scheme, types=("X", "Y")):
    """Every sequence of labels that the scheme allows, with its segments."""
    return {tuple(spelled(segments, n, scheme)): segments for segments in segmentations(n, types)}


def labels_of(scheme, types=("X", "Y")):
    return sorted({"O", *(mark if kind == "_" else f"{mark}-{kind}" for mark in LETTERS[scheme] for kind in types)})

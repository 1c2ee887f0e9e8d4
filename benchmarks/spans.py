"""Quality of tags: the F1 score of whole spans, by the rules of the CoNLL shared tasks, and plain accuracy.

A span is right when its type, its first and its last token are. Tags that break the B/I scheme are read as the
shared tasks read them: an I without a span of its type before it begins one.

>>> list(spans(["B-NP", "I-NP", "O", "B-VP", "B-VP"]))
[(0, 2, 'NP'), (3, 4, 'VP'), (4, 5, 'VP')]
>>> list(spans(["I-NP", "I-VP", "I-VP", "O", "I-NP"]))
[(0, 1, 'NP'), (1, 3, 'VP'), (4, 5, 'NP')]
>>> list(spans([]))
[]

One of two spans found, nothing wrong in between: precision 1/1, recall 1/2.

>>> round(span_f1([["B-NP", "I-NP", "B-VP"]], [["B-NP", "I-NP", "O"]]), 4)
0.6667

A span that is too short is wrong altogether, although one of its tokens is right.

>>> span_f1([["B-NP", "I-NP"]], [["B-NP", "O"]])
0.0
>>> accuracy([["N", "V"], ["N", "V"]], [["N", "V"], ["N", "N"]])
0.75
"""

from collections.abc import Iterator, Sequence

Tags = Sequence[Sequence[str]]


def spans(tags: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """(first token, token behind the last, type) of every span."""
    first, inside = 0, ""
    for t, tag in enumerate([*tags, "O"]):
        mark, _, kind = tag.partition("-")
        if inside and (mark != "I" or kind != inside):
            yield first, t, inside
            inside = ""
        if mark != "O" and not inside:
            first, inside = t, kind


def span_f1(truth: Tags, found: Tags) -> float:
    right = asked = given = 0
    for y, z in zip(truth, found, strict=True):
        true, claimed = set(spans(y)), set(spans(z))
        right += len(true & claimed)
        asked += len(true)
        given += len(claimed)
    return 2 * right / max(asked + given, 1)


def accuracy(truth: Tags, found: Tags) -> float:
    pairs = [a == b for y, z in zip(truth, found, strict=True) for a, b in zip(y, z, strict=True)]
    return sum(pairs) / max(len(pairs), 1)

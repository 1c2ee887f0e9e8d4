"""Chunks as labelled segments: `models.SemiMarkov` behind the steps of a tagger.

>>> segments(["B-NP", "I-NP", "O", "B-VP"], {"NP": 1, "VP": 2})
[(0, 2, 1), (3, 4, 2)]
>>> tags(np.array([[0, 2, 1], [3, 4, 2]]), 4, ["", "NP", "VP"])
['B-NP', 'I-NP', 'O', 'B-VP']
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import spans
from sequence_data import Sentences

import maxmargin as mm
from maxmargin.data.attributes import Attributes
from maxmargin.data.sequences import Sequences

OUTSIDE = 0


class SegmentTagger:
    """`fit` begins with lists of strings and tags; tokens outside of chunks are segments of their own."""

    def __init__(self, settings: dict[str, Any]):
        model = mm.models.SemiMarkov(outside=OUTSIDE, loss="segments")
        self.svm = mm.StructuralSVM(model, n_jobs=1, random_state=0, **settings)

    def prepare(self, train: Sentences) -> Any:
        return train

    def fit(self, prepared: Any) -> None:
        X, Y = prepared
        self.kinds = ["", *sorted({tag.partition("-")[2] for y in Y for tag in y} - {""})]
        number = {kind: k for k, kind in enumerate(self.kinds)}
        self.attributes = Attributes()
        self.svm.fit(self.attributes.learn(X), [segments(y, number) for y in Y])

    def items(self, X: list[Any]) -> Sequences:
        return self.attributes.encode(X)

    def predict(self, X: Any) -> list[list[str]]:
        items = X if isinstance(X, Sequences) else self.items(X)
        length = np.diff(items.offsets).tolist()
        return [tags(y, n, self.kinds) for y, n in zip(self.svm.predict(items), length, strict=True)]


def segments(y: Sequence[str], number: dict[str, int]) -> list[tuple[int, int, int]]:
    return [(start, end, number[kind]) for start, end, kind in spans.spans(y)]


def tags(y: np.ndarray, n_tokens: int, kinds: list[str]) -> list[str]:
    out = ["O"] * n_tokens
    for start, end, k in y.tolist():
        out[start:end] = [f"B-{kinds[k]}", *[f"I-{kinds[k]}"] * (end - start - 1)]
    return out

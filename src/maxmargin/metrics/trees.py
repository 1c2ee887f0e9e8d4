"""How many words of dependency trees have the right head, and the right relation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class AttachmentScores(NamedTuple):
    """Shares of words: ``unlabelled`` with the right head (UAS), ``labelled`` with the right relation besides (LAS).

    ``labelled`` is None where trees are heads alone. ``support`` counts the words.
    """

    unlabelled: float
    labelled: float | None
    support: int


def attachment_scores(Y_true: Sequence[Any], Y_pred: Sequence[Any]) -> AttachmentScores:
    """How many words have the right head, and how many the right head and relation. Punctuation counts.

    Parameters
    ----------
    Y_true, Y_pred : lists of trees
        A tree has for each word its head, or a pair of head and relation.

    Examples
    --------
    >>> attachment_scores([[(2, "nsubj"), (0, "root")]], [[(2, "obj"), (0, "root")]])
    AttachmentScores(unlabelled=1.0, labelled=0.5, support=2)
    """
    if len(Y_true) != len(Y_pred):
        raise ValueError(f"Y_true has {len(Y_true)} trees, Y_pred has {len(Y_pred)}. Give one for each sentence.")
    heads = both = n = 0
    labelled = True
    for i, (y, z) in enumerate(zip(Y_true, Y_pred, strict=True)):
        if len(y) != len(z):
            raise ValueError(f"Y_true[{i}] has {len(y)} words, Y_pred[{i}] has {len(z)}. Give the same sentences.")
        for a, b in zip(y, z, strict=True):
            (head, *relation), (other, *named) = _listed(a), _listed(b)
            heads += int(head == other)
            both += int(head == other and relation == named)
            labelled = labelled and bool(relation) and bool(named)
        n += len(y)
    return AttachmentScores(heads / max(n, 1), both / max(n, 1) if labelled and n else None, n)


def _listed(arc: Any) -> list[Any]:
    """A head, and its relation if there is one."""
    return list(arc) if isinstance(arc, tuple | list | np.ndarray) else [arc]

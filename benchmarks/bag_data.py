"""Generated bags of instances, of which one instance in every second bag is of another kind.

Every number comes from the seed: two processes make the same bags.
"""

import itertools
from typing import Any

import numpy as np
import scipy.sparse as sp

SMALLEST, LARGEST = 5, 50


def _sizes(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where bags begin, which are positive, and the row in each positive one that tells."""
    sizes = rng.integers(SMALLEST, LARGEST + 1, size=n)
    first = np.concatenate([[0], np.cumsum(sizes)])
    positive = np.arange(n) % 2 == 1
    telling = first[:-1] + rng.integers(0, sizes)
    return first, positive, telling[positive]


def dense(n: int = 2000, d: int = 100, shift: float = 4.0, seed: int = 0) -> tuple[list[Any], np.ndarray]:
    """Normal noise; the telling instance is moved by ``shift`` in a direction that is the same for all."""
    rng = np.random.default_rng(seed)
    first, positive, telling = _sizes(rng, n)
    table = rng.normal(size=(first[-1], d))
    direction = rng.normal(size=d)
    table[telling] += shift * direction / np.linalg.norm(direction)
    return np.split(table, first[1:-1]), positive


def text(
    n: int = 2000, d: int = 20_000, length: int = 30, topic: int = 100, told: int = 5, seed: int = 0
) -> tuple[list[Any], np.ndarray]:
    """Sentences of words of Zipf's popularity, as rows of unit norm; a telling one has some words of a topic.

    Every bag has one sentence with a single word of the topic besides.
    """
    rng = np.random.default_rng(seed)
    first, positive, telling = _sizes(rng, n)
    popularity = np.cumsum(1.0 / np.arange(1, d + 1))
    words = np.searchsorted(popularity / popularity[-1], rng.random((first[-1], length)))
    subject = rng.choice(d, size=topic, replace=False)
    words[telling, :told] = rng.choice(subject, size=(telling.size, told))
    decoys = first[:-1] + rng.integers(0, np.diff(first))
    words[decoys, -1] = rng.choice(subject, size=n)
    pointers = np.arange(first[-1] + 1) * length
    table = sp.csr_matrix((np.ones(words.size), words.ravel(), pointers), shape=(first[-1], d))
    table.sum_duplicates()
    norms = np.sqrt(np.asarray(table.multiply(table).sum(axis=1)).ravel())
    table = (sp.diags(1.0 / norms) @ table).tocsr()
    return [table[a:b] for a, b in itertools.pairwise(first)], positive


DATA = {"dense": dense, "text": text}

"""Losses of whole groups beside losses of pairs, on queries of a search engine.

``python benchmarks/ranking_measures.py``

LightGBM's example data for ranking (201 training and 50 test queries, 301 features, grades 0 to 4), in the folder named
by MAXMARGIN_DATA. C is chosen on the training queries alone, by five-fold cross-validation of the measure; MAP counts
grades above 0 as relevant. In brackets the best of all C on the test queries, which nobody knows beforehand.
"""

import gzip
import os
from pathlib import Path

import numpy as np
from report import markdown_table
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import average_precision_score, ndcg_score
from sklearn.model_selection import GroupKFold

import maxmargin as mm

GRID = [1e-4, 1e-3, 1e-2, 1e-1, 1.0]
LOSSES = {
    "pairs, `hinge`": ("hinge", False),
    "pairs of relevant and others, `hinge`": ("hinge", True),
    "`map`": ("map", True),
    "`ndcg`": ("ndcg", False),
}


def queries(split):
    folder = Path(os.environ["MAXMARGIN_DATA"])
    with gzip.open(folder / f"lgbm_rank.{split}.libsvm.gz") as file:
        X, y = load_svmlight_file(file, n_features=301)
    sizes = np.loadtxt(folder / f"lgbm_rank.{split}.query", dtype=int)
    return X, y, np.repeat(np.arange(sizes.size), sizes)


def measured(ranker, X, y, query):
    """MAP and NDCG."""
    score = ranker.predict(X)
    each = [(y[query == q], score[query == q]) for q in np.unique(query)]
    precision = [average_precision_score(grade > 0, found) for grade, found in each if grade.any()]
    gain = [ndcg_score([2.0**grade - 1.0], [found]) for grade, found in each if grade.any()]
    return np.array([np.mean(precision), np.mean(gain)])


def main():
    X, y, query = queries("train")
    test = queries("test")
    table = []
    for name, (loss, binary) in LOSSES.items():
        target = (y > 0).astype(int) if binary else y

        def fitted(C, rows, loss=loss, target=target):
            return mm.RankingSVM(C=C, loss=loss, random_state=0).fit(X[rows], target[rows], groups=query[rows])

        validated = np.zeros((len(GRID), 2))
        for rows, rest in GroupKFold(5).split(X, y, query):
            validated += [measured(fitted(C, rows), X[rest], y[rest], query[rest]) for C in GRID]
        found = np.array([measured(fitted(C, slice(None)), *test) for C in GRID])
        best = validated.argmax(axis=0)
        cells = [f"{found[best[k], k]:.3f} at C = {GRID[best[k]]:g} ({found[:, k].max():.3f})" for k in range(2)]
        table.append([name, *cells])
        print("  ".join(table[-1]), flush=True)
    print(markdown_table(["loss", "MAP", "NDCG"], table))


if __name__ == "__main__":
    main()

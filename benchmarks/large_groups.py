"""One large group of rows to be ranked: ``python benchmarks/large_groups.py``. Prints a table; needs no data.

CPU seconds of a fit, and what it adds to the peak memory of a fresh process that has fitted a few rows before. The rows
have 20 normal features and two or five grades. dlib's `svm_rank_trainer` knows two grades only; its C is ours times the
number of pairs, and its objective is computed here from its weights.
"""

import time

import numpy as np
from own_process import answer, fresh
from resident import resident_peak

import maxmargin as mm
from maxmargin.data.arrays import as_rows
from maxmargin.models.ranking import sorted_ranking

C = 1e-4
TOL = 1e-3
DLIB_EPSILON = 1e-4  # of the mean loss; the default of 1e-3 ends up to 3e-3 above the optimum


def rows(n, grades):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(n, 20)), rng.normal(size=20)
    quality = X @ w / np.sqrt(20) + rng.normal(size=n)
    return X, np.digitize(quality, np.quantile(quality, np.linspace(0, 1, grades + 1)[1:-1]))


def ours(n, grades, solver):
    mm.RankingSVM(C=C, tol=TOL, solver=solver).fit(*rows(300, grades))
    X, y = rows(n, grades)
    begun, before = time.process_time(), resident_peak()
    ranker = mm.RankingSVM(C=C, tol=TOL, solver=solver, random_state=0).fit(X, y)
    seconds = time.process_time() - begun
    found = ranker.certificate_
    return {"seconds": seconds, "bytes": resident_peak() - before, "gap": found.relative_gap, "lower": found.lower}


def dlib(n, lower):
    import dlib

    X, y = rows(n, 2)
    pair = dlib.ranking_pair()
    for x, grade in zip(X, y, strict=True):
        (pair.relevant if grade else pair.nonrelevant).append(dlib.vector(x))
    trainer = dlib.svm_rank_trainer()
    trainer.c = C * float((y == 0).sum()) * float((y == 1).sum())
    trainer.epsilon = DLIB_EPSILON
    begun, before = time.process_time(), resident_peak()
    w = np.array(trainer.train(pair).weights)
    seconds, peak = time.process_time() - begun, resident_peak()
    upper = 0.5 * w @ w + sorted_ranking(as_rows(X), y, np.zeros(n), C).evaluate(w).total
    return {"seconds": seconds, "bytes": peak - before, "gap": 1.0 - lower / upper}


def shown(found):
    return f"{found['seconds']:.2f} s, {found['bytes'] / 2**20:.0f} MB, {found['gap']:.0e}"


def main():
    from report import markdown_table  # which draws, and would count as memory of the jobs

    table = []
    for n in (2_000, 5_000, 10_000, 30_000, 100_000):
        cells = [f"{n:,}"]
        for grades in (2, 5):
            newton = fresh(__file__, "ours", n=n, grades=grades, solver="auto")
            pairs = shown(fresh(__file__, "ours", n=n, grades=grades, solver="dual_coordinate")) if n <= 10_000 else "–"
            cells += [shown(newton), pairs]
            cells += [shown(fresh(__file__, "dlib", n=n, lower=newton["lower"]))] if grades == 2 else []
        print("  ".join(cells), flush=True)
        table.append(cells)
    names = ["rows", "two grades", "pairs written down", "dlib", "five grades", "pairs written down"]
    print(markdown_table(names, table))


if __name__ == "__main__":
    import sys

    if len(sys.argv) > 1:
        answer({"ours": ours, "dlib": dlib})
    else:
        main()

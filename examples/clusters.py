"""Training over two processes, one of which is killed in the midst of it.

python examples/clusters.py

Generates its data (20 000 rows of text-like counts); writes clusters.png.
"""

import os
import signal

import matplotlib

matplotlib.use("agg")

import numpy as np
import scipy.sparse as sp
from matplotlib import pyplot

import maxmargin as mm
from maxmargin.distributed import transport_of

N_ROWS, N_FEATURES, PER_ROW = 20_000, 5_000, 30
KILL_AFTER = 6


def rows(rng):
    """Rows with features of very unequal popularity, and labels that a linear model can mostly tell."""
    words = ((N_FEATURES + 1) ** rng.random((N_ROWS, PER_ROW)) - 1).astype(int).clip(0, N_FEATURES - 1)
    ends = np.arange(0, words.size + 1, PER_ROW)
    X = sp.csr_matrix((np.ones(words.size, np.float32), words.ravel(), ends), (N_ROWS, N_FEATURES))
    X.sum_duplicates()
    X = X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1))).tocsr().astype(np.float32)
    scores = X @ rng.normal(size=N_FEATURES)
    return X, np.where(scores + 0.3 * rng.normal(size=N_ROWS) > 0, 1, -1)


def fit(X, y, kill=False):
    """Train on two workers; with ``kill``, the second of them does not live to see the end."""
    svm = mm.LinearSVC(C=1.0, tol=1e-4, solver="dual_coordinate", random_state=0)
    with transport_of("local:2") as workers:

        def kill_one(record):
            if record.number == KILL_AFTER:
                victim = workers.pid(1)
                os.kill(victim, signal.SIGKILL)
                print(f"  after round {record.number}: process {victim} was killed")

        svm.fit(X, y, cluster=workers, callbacks=[kill_one] if kill else [])
        print(f"  {svm.n_passes_} rounds, {svm.certificate_}")
    return svm


def main():
    X, y = rows(np.random.default_rng(0))
    # Whoever dies loses the dual variables that were not saved. A few rounds win them back, and the bounds, which are
    # sums over all rows, are as true as before.
    print(f"{N_ROWS} rows, {N_FEATURES} features, two workers")
    print("Nothing happens:")
    calm = fit(X, y)
    print("A worker dies:")
    shaken = fit(X, y, kill=True)
    print(f"Proved again in this process, without workers: {shaken.certify(X, y)}")

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    best = max(calm.certificate_.lower, shaken.certificate_.lower)
    for svm, colour, name in ((calm, "0.6", "nothing happens"), (shaken, "tab:blue", "a worker dies")):
        lower = [(record.number, record.lower / best) for record in svm.history_]
        upper = [(record.number, record.upper / best) for record in svm.history_ if np.isfinite(record.upper)]
        axes.plot(*zip(*lower, strict=True), "o-", ms=4, color=colour, label=f"lower bound, {name}")
        axes.plot(*zip(*upper, strict=True), "v", ms=8, mfc="none", color=colour, label=f"upper bound, {name}")
    axes.axhline(1.0, color="0.85", lw=1, zorder=0)
    axes.axvline(KILL_AFTER + 0.5, color="tab:red", lw=1, ls="--")
    axes.annotate("killed", (KILL_AFTER + 0.6, 0.4), color="tab:red")
    axes.set(xlabel="rounds", ylabel="bounds, as shares of the optimum", title="Two workers, C = 1, gap 1e-4")
    axes.legend(frameon=False, loc="lower right")
    figure.savefig("clusters.png", dpi=110)
    print("Picture: clusters.png")


if __name__ == "__main__":
    main()

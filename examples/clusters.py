"""
Two workers, one of which dies
==============================

Training can be spread over processes, on one machine or on many. Each worker holds a share of the rows and the dual
variables that belong to them. If one is killed, another takes its place, a few rounds win back what was not saved, and
the bounds, which are sums over all rows, are as true as before. Data is generated; Linux or macOS.
"""

import os
import signal

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

from maxmargin import LinearSVC
from maxmargin.distributed import transport_of

ROWS, FEATURES, PER_ROW, KILL_AFTER = 20_000, 5_000, 30, 6
rng = np.random.default_rng(0)
words = ((FEATURES + 1) ** rng.random((ROWS, PER_ROW)) - 1).astype(int).clip(0, FEATURES - 1)
X = sp.csr_matrix((np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, PER_ROW)), (ROWS, FEATURES))
X.sum_duplicates()
X = sp.csr_matrix(X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1)))).astype(np.float32)
y = np.where(X @ rng.normal(size=FEATURES) + 0.3 * rng.normal(size=ROWS) > 0, 1, -1)

# %%
# ``cluster="local:2"`` would be enough; the transport is opened here to learn whom to kill. A callback sees every
# round.


def fit(kill):
    svm = LinearSVC(C=1.0, tol=1e-4, solver="dual_coordinate", random_state=0)
    with transport_of("local:2") as workers:

        def kill_one(record):
            if kill and record.number == KILL_AFTER:
                os.kill(workers.pid(1), signal.SIGKILL)

        svm.fit(X, y, cluster=workers, callbacks=[kill_one])
    return svm


calm, shaken = fit(kill=False), fit(kill=True)
print(f"nothing happens: {calm.n_passes_} rounds, {calm.certificate_}")
print(f"a worker dies:   {shaken.n_passes_} rounds, {shaken.certificate_}")
print(f"proved again in this process, without workers: {shaken.certify(X, y)}")

# %%
# Lower bounds, round by round, as their distance from the best weights that were found. The one of the second run falls
# back when dual variables are lost, and rises again.

figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
best = min(calm.certificate_.upper, shaken.certificate_.upper)
for svm, colour, name in ((calm, "0.6", "nothing happens"), (shaken, "#1b6ca8", "a worker dies")):
    below = [(record.number, 1 - record.lower / best) for record in svm.history_]
    axes.semilogy(*zip(*below, strict=True), "o-", markersize=4, color=colour, label=name)
axes.axvline(KILL_AFTER + 0.5, color="#c8553d", linewidth=1, linestyle="--")
axes.annotate("killed", (KILL_AFTER + 0.7, 0.5), color="#c8553d")
axes.set(xlabel="rounds", ylabel="lower bound, below the best weights", title="Two workers")
axes.legend(frameon=False)
plt.savefig("clusters.png", dpi=110)

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
# ``cluster="local:2"`` would be enough; the transport is opened here to learn whom to kill. A callback sees every round.


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
# Both runs, round by round.

figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
best = max(calm.certificate_.lower, shaken.certificate_.lower)
for svm, colour, name in ((calm, "0.6", "nothing happens"), (shaken, "#1b6ca8", "a worker dies")):
    lower = [(record.number, record.lower / best) for record in svm.history_]
    upper = [(record.number, record.upper / best) for record in svm.history_ if np.isfinite(record.upper)]
    axes.plot(*zip(*lower, strict=True), "o-", markersize=4, color=colour, label=f"lower bound, {name}")
    axes.plot(*zip(*upper, strict=True), "v", markersize=8, mfc="none", color=colour, label=f"upper bound, {name}")
axes.axhline(1.0, color="0.85", linewidth=1, zorder=0)
axes.axvline(KILL_AFTER + 0.5, color="#c8553d", linewidth=1, linestyle="--")
axes.annotate("killed", (KILL_AFTER + 0.6, 0.4), color="#c8553d")
axes.set(xlabel="rounds", ylabel="bounds, as shares of the optimum", title="Two workers, C = 1, gap 1e-4")
axes.legend(frameon=False, loc="lower right")
plt.savefig("clusters.png", dpi=110)

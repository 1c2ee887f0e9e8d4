"""
Files larger than memory, and streams
=====================================

Rows lie in files and are read piece by piece; ``memory`` says how much of them, and of everything that belongs to them,
may be held at a time. The gap that is proved in the end is the same as in memory. A run that was cut short goes on
where it stopped, and a stream can be learned from as it passes by. Data is generated, in a temporary folder.
"""

import gzip
import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from maxmargin import LinearSVC
from maxmargin.data import convert

ROWS, FEATURES, PER_ROW = 30_000, 10_000, 40
rng = np.random.default_rng(0)

# %%
# Text-like rows, with features of very unequal popularity, go into four compressed files in the format of LIBSVM, and
# these into shards, which are quick to read.

words = ((FEATURES + 1) ** rng.random((ROWS, PER_ROW)) - 1).astype(int).clip(0, FEATURES - 1)
X = sp.csr_matrix((np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, PER_ROW)), (ROWS, FEATURES))
X.sum_duplicates()
X = sp.csr_matrix(X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1)))).astype(np.float32)
y = np.where(X @ rng.normal(size=FEATURES) + 0.5 * rng.normal(size=ROWS) > 0, 1, -1)

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
for i, rows in enumerate(np.array_split(np.arange(ROWS), 4)):
    with gzip.open(folder / f"part-{i}.svm.gz", "wb", compresslevel=1) as file:
        dump_svmlight_file(X[rows], y[rows], file, zero_based=False)
shards = convert(str(folder / "part-*.svm.gz"), folder / "shards", batch_bytes=2**18)
size = sum(file.stat().st_size for file in (folder / "shards").iterdir())
print(f"{len(shards)} rows, {shards.n_features} features, {size / 2**20:.0f} MB of shards")

# %%
# With less memory there are more readings, to the same gap.

fits = {}
for share, name in ((1, "all"), (2, "half"), (4, "a quarter")):
    svm = LinearSVC(C=1.0, tol=1e-4, memory=size // share, random_state=0).fit(shards)
    fits[f"{name} of the data in memory"] = svm
    print(f"memory {size / share / 2**20:4.1f} MB: {svm.n_passes_:2d} readings, {svm.certificate_}")

# %%
# A run that is cut short, here by a callback that says so after three readings, and the same call again.

svm = LinearSVC(C=1.0, tol=1e-4, memory=size // 4, random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it says that the goal was not reached, which is the point
    svm.fit(shards, checkpoint=folder / "run", callbacks=[lambda record: record.number == 3])
print(f"stopped after {svm.n_passes_} readings: {svm.certificate_}")
svm.fit(shards, checkpoint=folder / "run")
print(f"gone on to {svm.n_passes_} readings:   {svm.certificate_}")
temporary.cleanup()

# %%
# A stream is seen once. Nobody can prove anything about rows that are gone, but here they are still at hand.

stream = LinearSVC(C=1.0, memory=size // 4, random_state=0)
seen, excess = np.arange(3000, ROWS + 1, 3000), []
for end in seen:
    stream.partial_fit(X[end - 3000 : end], y[end - 3000 : end])
    excess.append(stream.certify(X, y).upper / svm.certificate_.lower - 1)
print(f"one pass over a stream: {100 * excess[-1]:.2f} % above the optimum")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for (label, fit), colour in zip(fits.items(), ("0.65", "#6da7d0", "#1b6ca8"), strict=True):
    gaps = [(record.number, max(record.estimate, 1e-6)) for record in fit.history_]
    left.semilogy(*zip(*gaps, strict=True), "o-", markersize=4, color=colour, label=label)
left.axhline(1e-4, color="0.6", linewidth=1)
left.set(xlabel="readings of the data", ylabel="relative gap as seen by the solver", title="Files")
left.legend(frameon=False)
right.semilogy(seen, excess, "o-", color="#c8553d")
right.set(xlabel="rows seen", ylabel="objective on all rows, above the optimum", title="A stream, seen once")
plt.savefig("out_of_core.png", dpi=110)

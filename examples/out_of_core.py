"""Training on files with less memory than they take, and from a stream that passes by once.

python examples/out_of_core.py

Generates its data (80 000 rows of text-like counts) in a temporary folder; writes out_of_core.png.
"""

import tempfile
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import numpy as np
import scipy.sparse as sp
from matplotlib import pyplot

import maxmargin as mm
from maxmargin.data import write_svmlight

N_ROWS, N_FEATURES, N_FILES = 80_000, 20_000, 4


def rows(rng, truth):
    """Some rows with features of very unequal popularity, and labels that a linear model can mostly tell."""
    n, per_row = N_ROWS // N_FILES, 40
    words = ((N_FEATURES + 1) ** rng.random((n, per_row)) - 1).astype(int).clip(0, N_FEATURES - 1)
    X = sp.csr_matrix((np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, per_row)), (n, N_FEATURES))
    X.sum_duplicates()
    X = sp.csr_matrix(X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1)))).astype(np.float32)
    return X, np.where(X @ truth + 0.5 * rng.normal(size=n) > 0, 1, -1)


def main():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=N_FEATURES)
    parts = [rows(rng, truth) for _ in range(N_FILES)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for i, (X, y) in enumerate(parts):
            write_svmlight(folder / f"part-{i}.svm.gz", X, y)
        shards = mm.data.convert(str(folder / "part-*.svm.gz"), folder / "shards", batch_bytes=2**18)
        size = sum(file.stat().st_size for file in (folder / "shards").iterdir())
        print(f"{len(shards)} rows, {shards.n_features} features, {size / 2**20:.0f} MB of shards")

        fits = {}
        for share in (1, 2, 5):
            memory = size // share
            svm = mm.LinearSVC(C=1.0, tol=1e-4, memory=memory, random_state=0).fit(shards)
            fits[f"1/{share} of the data in memory"] = svm
            print(f"memory {memory / 2**20:5.1f} MB: {svm.n_passes_} readings, {svm.certificate_}")

        # A run that is cut short, and the same call again.
        svm = mm.LinearSVC(C=1.0, tol=1e-4, memory=size // 5, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says that the goal was not reached, which is the point
            svm.fit(shards, checkpoint=folder / "run", callbacks=[lambda record: record.number == 3])
        print(f"Stopped after {svm.n_passes_} readings: {svm.certificate_}")
        svm.fit(shards, checkpoint=folder / "run")
        print(f"Gone on to {svm.n_passes_}:            {svm.certificate_}")
        best = svm.certificate_.lower

    stream = mm.LinearSVC(C=1.0, memory=size // 5, random_state=0)
    seen, excess = [], []
    X, y = sp.vstack([X for X, _ in parts], format="csr"), np.concatenate([y for _, y in parts])
    for start in range(0, N_ROWS, 2000):
        stream.partial_fit(X[start : start + 2000], y[start : start + 2000])
        if start % 8000 == 6000:
            seen.append(start + 2000)
            excess.append(stream.certify(X, y).upper / best - 1)
    print(f"One pass over a stream: {100 * excess[-1]:.2f} % above the optimum")

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for label, svm in fits.items():
        gaps = [(r.number, max(r.estimate, 1e-6)) for r in svm.history_]
        left.semilogy(*zip(*gaps, strict=True), "o-", label=label)
    left.axhline(1e-4, color="0.6", lw=1)
    left.set(xlabel="readings of the data", ylabel="relative gap as seen by the solver", title="Files")
    left.legend(frameon=False)
    right.semilogy(seen, excess, "o-")
    right.set(xlabel="rows seen", ylabel="objective on all rows, above the optimum", title="A stream, seen once")
    figure.savefig("out_of_core.png", dpi=110)
    print("Picture: out_of_core.png")


if __name__ == "__main__":
    main()

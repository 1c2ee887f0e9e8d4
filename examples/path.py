"""Which C? A path of fits, each started from the dual variables of the one before, each with its certificate.

python examples/path.py

Uses data that comes with scikit-learn; writes path.png.
"""

import time

import matplotlib

matplotlib.use("agg")

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import maxmargin as mm


def main():
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, test_size=0.4, stratify=y, random_state=0)
    model = mm.LinearSVC(tol=1e-4, random_state=0)
    values = np.logspace(-2, 1, 25)
    model.fit(X_train, y_train)  # compiles, so that the timings below do not

    start = time.perf_counter()
    steps = mm.path(model, X_train, y_train, C=values)
    hot = time.perf_counter() - start
    start = time.perf_counter()
    cold = [mm.LinearSVC(C=C, tol=1e-4, random_state=0).fit(X_train, y_train) for C in values]
    seconds = time.perf_counter() - start

    accuracy = [step.score(X_test, y_test) for step in steps]
    print("     C   passes (alone)   relative gap   accuracy")
    for step, alone, score in zip(steps, cold, accuracy, strict=True):
        gap = step.certificate_.relative_gap
        print(f"{step.C:8.3g} {step.n_passes_:6d} ({alone.n_passes_:d})   {gap:12.1e}   {100 * score:6.1f} %")
    passes, alone = sum(s.n_passes_ for s in steps), sum(s.n_passes_ for s in cold)
    print(f"\nAs a path: {passes} passes, {hot:.2f} s. Each fit alone: {alone} passes, {seconds:.2f} s.")
    print(f"Best on held-out images: C = {values[np.argmax(accuracy)]:.3g}.")

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
    left.semilogx(values, [step.score(X_train, y_train) for step in steps], "o-", label="training images")
    left.semilogx(values, accuracy, "o-", label="held-out images")
    left.set(xlabel="C", ylabel="accuracy", title="Accuracy along the path")
    left.legend(frameon=False)
    right.loglog(values, [s.n_passes_ for s in cold], "o-", color="0.7", label="each fit alone")
    right.loglog(values, [s.n_passes_ for s in steps], "o-", label="started from the last one")
    right.set(xlabel="C", ylabel="passes to relative gap 1e-4", title="Work along the path")
    right.legend(frameon=False)
    figure.savefig("path.png", dpi=110)
    print("Picture: path.png")


if __name__ == "__main__":
    main()

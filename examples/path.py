"""
Which C? A path of fits
=======================

How strongly to regularise is found by trying many values of C. ``path`` starts each fit from the dual variables of the
one before, which saves passes, and every step has its own certificate.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from maxmargin import LinearSVC, path

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, test_size=0.4, stratify=y, random_state=0)
values = np.logspace(-2, 1, 16)
LinearSVC(random_state=0).fit(X_train, y_train)  # compiles, so that the times below do not

# %%
# Sixteen values, once as a path and once each on its own.

start = time.perf_counter()
steps = path(LinearSVC(tol=1e-4, random_state=0), X_train, y_train, C=values)
as_path = time.perf_counter() - start
start = time.perf_counter()
alone = [LinearSVC(C=C, tol=1e-4, random_state=0).fit(X_train, y_train) for C in values]
one_by_one = time.perf_counter() - start

accuracy = [step.score(X_test, y_test) for step in steps]
print("       C   passes (alone)   relative gap   accuracy")
for step, single, score in zip(steps, alone, accuracy, strict=True):
    gap = step.certificate_.relative_gap
    print(f"{step.C:8.3g}   {step.n_passes_:6d} ({single.n_passes_:5d})   {gap:12.1e}   {100 * score:6.1f} %")
print(f"\nAs a path {as_path:.2f} s, one by one {one_by_one:.2f} s.")
best = steps[np.argmax(accuracy)]
print(f"Best on held-out images: C = {best.C:.3g}, {best.certificate_}")

# %%
# Small C underfits, large C costs more passes and gains nothing here.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.semilogx(values, [step.score(X_train, y_train) for step in steps], "o-", color="0.65", label="training images")
left.semilogx(values, accuracy, "o-", color="#1b6ca8", label="held-out images")
left.set(xlabel="C", ylabel="accuracy", title="Accuracy along the path")
right.loglog(values, [single.n_passes_ for single in alone], "o-", color="0.65", label="each fit alone")
right.loglog(values, [step.n_passes_ for step in steps], "o-", color="#1b6ca8", label="started from the last one")
right.set(xlabel="C", ylabel="passes to a gap of 1e-4", title="Work along the path")
for panel in (left, right):
    panel.legend(frameon=False)
plt.savefig("path.png", dpi=110)

"""
Judging any solver's weights
============================

A certificate is a pair of numbers between which the best possible training objective lies. The lower one does not care
who asks: no weights whatever get below it, so it also says how far another library's weights can still be from the
best ones. Here stochastic gradient descent is watched while it learns.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

from maxmargin import LinearSVC

# %%
# One problem: ½‖w‖² + C Σ max(0, 1 − y w·x), for benign and malignant tumours, solved to a relative gap of 1e-6. Both
# bounds at every pass are kept in ``history_``.

X, y = load_breast_cancer(return_X_y=True)
X, y, C = StandardScaler().fit_transform(X), 2 * y - 1, 1.0
svm = LinearSVC(C=C, tol=1e-6, fit_intercept=False, solver="dual_coordinate", random_state=0)
svm.fit(X, y)  # compiles, so that the times below do not
svm.fit(X, y)
print(svm.certificate_)

# %%
# The same problem in the words of ``SGDClassifier``, where ``alpha`` is 1 / (C n). After each of its passes the
# objective is computed in NumPy.


def objective(w):
    return 0.5 * w @ w + C * np.maximum(0.0, 1.0 - y * (X @ w)).sum()


solvers = {}
for name, average in (("SGDClassifier", False), ("SGDClassifier, averaged", True)):
    sgd = SGDClassifier(alpha=1 / (C * len(y)), fit_intercept=False, average=average, random_state=0)
    seconds, values = 0.0, []
    for _ in range(300):
        start = time.perf_counter()
        sgd.partial_fit(X, y, classes=[-1, 1])
        seconds += time.perf_counter() - start
        values.append((seconds, objective(sgd.coef_[0])))
    solvers[name] = np.array(values)
    print(
        f"{name:24s} is above the optimum by {values[-1][1] / svm.certificate_.lower - 1:.1e} at most, after 300 passes"
    )

# %%
# Without a lower bound the left picture would be all there is: curves that have become flat. With it, the right one:
# how much can be left, at most.

lower = svm.certificate_.lower
own = np.array([(r.seconds, r.upper, r.lower) for r in svm.history_ if np.isfinite(r.upper)])
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for (name, values), colour in zip(solvers.items(), ("0.65", "0.35"), strict=True):
    left.plot(*values.T, color=colour, label=name)
    right.loglog(values[:, 0], values[:, 1] / lower - 1, color=colour, label=name)
left.plot(own[:, 0], own[:, 1], ".-", color="#c8553d", label="maxmargin, upper bound")
left.plot(own[:, 0], own[:, 2], ".-", color="#1b6ca8", label="maxmargin, lower bound")
right.loglog(own[:, 0], own[:, 1] / lower - 1, ".-", color="#c8553d", label="maxmargin")
left.set(
    xscale="log", ylim=(0.8 * lower, 1.6 * lower), xlabel="seconds", ylabel="objective", title="What solvers reach"
)
right.set(xlabel="seconds", ylabel="share above the lower bound", title="What is left, at most")
left.legend(frameon=False, fontsize=8)
right.legend(frameon=False, fontsize=8)
plt.savefig("certificate.png", dpi=110)

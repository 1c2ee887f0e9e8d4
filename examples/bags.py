"""
Bags of which one instance decides
==================================

Every bag is a handful of points; a bag is positive if one of its points is, and nobody says which. The point that
decides is a latent variable: ``LatentSVC`` chooses it while learning, and can name it afterwards. The problem is not
convex, so it matters where the search begins. Data is generated.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import LatentSVC, LinearSVC

rng = np.random.default_rng(0)


def bags(n=300):
    """Bags of 3 to 15 points, labels, and the point that tells, which in positive bags lies in a corner of its own."""
    X, y = [rng.normal(size=(rng.integers(3, 16), 2)) for _ in range(n)], np.arange(n) % 2
    telling = np.array([rng.integers(len(x)) for x in X])
    for i in np.flatnonzero(y):
        X[i][telling[i]] = np.array([2.7, 2.1]) + 0.35 * rng.normal(size=2)
    return X, y, telling


X, y, _ = bags()
X_test, y_test, telling = bags()

# %%
# The mean of a bag hides the point that tells. A latent variable finds it, unless the search begins badly: most first
# instances of positive bags look just like those of negative ones.

plain = LinearSVC(random_state=0).fit([x.mean(axis=0) for x in X], y)
print("                                 accuracy   telling point found   objective")
print(f"{'LinearSVC of the means':32s} {100 * plain.score([x.mean(axis=0) for x in X_test], y_test):6.1f} %")
for name, settings in {
    "LatentSVC from first instances": {"init": lambda x, label: 0},
    'LatentSVC(bound="gmm")': {"bound": "gmm"},
    "LatentSVC": {},
}.items():
    svm = LatentSVC(random_state=0, **settings).fit(X, y)
    found = np.mean((svm.predict_latent(X_test) == telling)[y_test == 1])
    accuracy = svm.score(X_test, y_test)
    print(f"{name:32s} {100 * accuracy:6.1f} %   {100 * found:17.1f} %   {svm.objective_:9.2f}")
print(f"\nThe last convex bound of the last search: {svm.certificate_}")

# %%
# The certificate is about that bound: with these points fixed, no weights are better by more than the gap. That no
# other points would be better is more than anybody can promise; the objective is what searches are compared by.

points, label = np.concatenate(X_test), np.repeat(y_test, [len(x) for x in X_test])
decided = np.array([x[z] for x, z, k in zip(X_test, svm.predict_latent(X_test), y_test, strict=True) if k])
(a, b), c = svm.coef_[0], svm.intercept_[0]
across = np.array([-3.5, 4.0])
figure, axes = plt.subplots(figsize=(7, 4.8), layout="constrained")
axes.scatter(*points[label == 0].T, s=6, color="0.7", label="in negative bags")
axes.scatter(*points[label == 1].T, s=6, color="#1b6ca8", label="in positive bags")
axes.scatter(*decided.T, s=30, facecolors="none", edgecolors="#c8553d", label="decided for its bag")
axes.plot(across, -(c + a * across) / b, color="black", linewidth=1)
axes.set(xlim=across, ylim=across, title="New bags: a bag is positive if one of its points is")
axes.legend(frameon=False, fontsize=9, loc="lower left")
plt.savefig("bags.png", dpi=110)

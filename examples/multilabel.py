"""
Labels that know of each other
==============================

A photograph can have several labels, and they are not independent: the beach comes with the sea, a city rules out a
forest. Besides its features, the model weighs pairs of labels, all of them or a tree, and looks for the best set.
Data is generated.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import MultilabelSVM

LABELS = ["beach", "sea", "boat", "city", "night", "forest"]
SETS = ["beach sea", "beach sea boat", "sea boat", "city", "city night", "forest", "forest night"]
rng = np.random.default_rng(0)


def photographs(n):
    """One of seven sets of labels, a fifth of the time with a label more or less; features hint at single labels."""
    usual = np.array([[label in names.split() for label in LABELS] for names in SETS])
    Y = usual[rng.integers(len(SETS), size=n)]
    odd = np.flatnonzero(rng.random(n) < 0.2)
    Y[odd, rng.integers(len(LABELS), size=odd.size)] ^= True
    return np.hstack([Y + 0.7 * rng.normal(size=Y.shape), rng.normal(size=(n, 4))]), Y.astype(int)


# %%
# No pairs, a tree of pairs, all pairs: the share of photographs whose whole set is right rises.

X, Y = photographs(500)
X_test, Y_test = photographs(2000)
print("pairs of labels   all labels right   labels right   certificate")
for edges in ("none", "tree", "full"):
    svm = MultilabelSVM(C=0.1, edges=edges, random_state=0).fit(X, Y)
    single = np.mean(svm.predict(X_test) == Y_test)
    print(f"{edges:17s} {100 * svm.score(X_test, Y_test):14.1f} % {100 * single:12.1f} %   {svm.certificate_}")

# %%
# What the model with all pairs has learned: the weight of two labels being both there or both missing, less that of one
# without the other.

together = np.zeros((6, 6))
for (a, b), table in zip(svm.edges_, svm.pair_coef_, strict=True):
    together[a, b] = together[b, a] = table[1, 1] + table[0, 0] - table[0, 1] - table[1, 0]
limit = np.abs(together).max()
figure, axes = plt.subplots(figsize=(6, 4.8), layout="constrained")
image = axes.imshow(together, cmap="RdBu_r", vmin=-limit, vmax=limit)
axes.set_xticks(range(6), LABELS, rotation=45)
axes.set_yticks(range(6), LABELS)
axes.set_title("red: come together, blue: exclude each other", fontsize=11)
figure.colorbar(image, ax=axes, shrink=0.8)
plt.savefig("multilabel.png", dpi=110)

"""Labels that know of each other: some come together, some never do.

python examples/multilabel.py

Data is generated; writes multilabel.png.
"""

import matplotlib

matplotlib.use("agg")

import numpy as np
from matplotlib import pyplot

from maxmargin import MultilabelSVM
from maxmargin.plots import convergence

LABELS = ["beach", "sea", "boat", "city", "night", "forest"]


def photos(rng, n):
    """Features hint at single labels; beach and sea come together, city and forest do not, boats need the sea."""
    score = rng.normal(size=(n, 6))
    score[:, 1] += np.where(score[:, 0] > 0, 1.5, -1.5)
    score[:, 2] += np.where(score[:, 1] > 0, 0.5, -2.5)
    score[:, 5] -= 2.0 * (score[:, 3] > 0)
    Y = (score > 0).astype(int)
    noise = np.array([0.4, 1.5, 0.8, 0.4, 0.8, 1.5]) * rng.normal(size=(n, 6))  # sea and forest are hard to see
    X = np.hstack([Y + noise, rng.normal(size=(n, 10))])
    return X, Y


def main():
    rng = np.random.default_rng(0)
    X, Y = photos(rng, 800)
    X_test, Y_test = photos(rng, 2000)
    print("pairs of labels   all labels right   labels right   certificate")
    fitted = {}
    for edges in ("none", "tree", "full"):
        svm = fitted[edges] = MultilabelSVM(C=0.1, edges=edges, random_state=0)
        for _ in range(2):  # the first fit compiles, the second one is drawn
            svm.fit(X, Y)
        single = np.mean(svm.predict(X_test) == Y_test)
        print(f"{edges:17s} {100 * svm.score(X_test, Y_test):14.1f} % {100 * single:12.1f} %   {svm.certificate_}")

    figure, panels = pyplot.subplots(1, 3, figsize=(14, 4.2), layout="constrained")
    convergence(fitted["full"], ax=panels[:2])
    together = np.zeros((6, 6))
    for (a, b), table in zip(fitted["full"].edges_, fitted["full"].pair_coef_, strict=True):
        together[a, b] = together[b, a] = table[1, 1] + table[0, 0] - table[0, 1] - table[1, 0]
    limit = np.abs(together).max()
    image = panels[2].imshow(together, cmap="RdBu_r", vmin=-limit, vmax=limit)
    panels[2].set_xticks(range(6), LABELS, rotation=45)
    panels[2].set_yticks(range(6), LABELS)
    panels[2].set_title("red: come together, blue: exclude each other")
    figure.colorbar(image, ax=panels[2], shrink=0.8)
    figure.savefig("multilabel.png", dpi=110)
    print("\nPicture: multilabel.png")


if __name__ == "__main__":
    main()

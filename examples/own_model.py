"""A model of your own in thirty lines: learning to match, when the answer is a whole assignment.

python examples/own_model.py

Points of a cloud are to be found again in a second cloud, moved and shaken. Which features tell who is who is
learned; the best assignment is found by SciPy. Data is generated; writes own_model.png.
"""

import matplotlib

matplotlib.use("agg")

import numpy as np
from matplotlib import pyplot
from scipy.optimize import linear_sum_assignment

from maxmargin import StructuralSVM
from maxmargin.checks import check_model
from maxmargin.plots import convergence

POINTS, FEATURES = 12, 4


class Matching:
    """x is a table of differences (points × points × features), y says which point of the second cloud is whose."""

    n_weights = FEATURES

    def features(self, x, y):
        return x[np.arange(len(y)), y].sum(axis=0)

    def loss(self, y, y_hat):
        return float(np.mean(y != y_hat))

    def predict(self, x, w):
        return linear_sum_assignment(x @ w, maximize=True)[1]

    def most_violated(self, x, y, w):
        wrong = np.full((len(y), len(y)), 1.0 / len(y))
        wrong[np.arange(len(y)), y] = 0.0
        return linear_sum_assignment(x @ w + wrong, maximize=True)[1]


def clouds(rng, n):
    """Two of the four features are kept by the points on their way, two are not."""
    X, Y, places = [], [], []
    for _ in range(n):
        before = rng.normal(size=(POINTS, FEATURES))
        shaken = np.array([0.3, 0.5, 2.0, 2.0]) * rng.normal(size=before.shape)
        y = rng.permutation(POINTS)
        after = np.empty_like(before)
        after[y] = before + shaken
        X.append(-((before[:, None] - after) ** 2))
        Y.append(y)
        places.append((before, after))
    return X, Y, places


def main():
    rng = np.random.default_rng(0)
    X, Y, _ = clouds(rng, 100)
    X_test, Y_test, places = clouds(rng, 100)
    check_model(Matching(), X, Y)  # says in plain words what is wrong with a model
    svm = StructuralSVM(Matching(), C=1.0, tol=1e-3, random_state=0).fit(X, Y)
    print(f"{len(X)} pairs of clouds, {POINTS}! answers to each. {svm.certificate_}\n")
    print("weights of the four features:", np.round(svm.coef_, 2))
    found = [Matching().predict(x, np.ones(FEATURES)) for x in X_test]
    plain = np.mean([Matching().loss(y, z) for y, z in zip(Y_test, found, strict=True)])
    print(f"points found again, all features alike   {100 - 100 * plain:.1f} %")
    print(f"points found again, learned              {100 + 100 * svm.score(X_test, Y_test):.1f} %")

    figure, panels = pyplot.subplots(1, 3, figsize=(14, 4), layout="constrained")
    convergence(svm, ax=panels[:2], against="oracle_calls")
    (before, after), answer = places[0], svm.predict(X_test[:1])[0]
    for a, b, true in zip(before, answer, Y_test[0], strict=True):
        panels[2].plot(*np.stack([a, after[b]])[:, :2].T, color="0.6" if b == true else "#c8553d")
    panels[2].plot(*before[:, :2].T, "o", label="before")
    panels[2].plot(*after[:, :2].T, "s", label="after")
    panels[2].set(title="Who is who (red: mistaken)", xlabel="feature 1", ylabel="feature 2")
    panels[2].legend(frameon=False)
    figure.savefig("own_model.png", dpi=110)
    print("\nPicture: own_model.png")


if __name__ == "__main__":
    main()

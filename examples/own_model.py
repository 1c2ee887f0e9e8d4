"""
A model of your own
===================

If you can search for the best answer, you can learn what makes it the best. Here an answer is a whole assignment:
points of a cloud are to be found again in a second cloud, moved and shaken, by four features of which two are of no
use. SciPy searches, the library learns the weights, and the certificate covers all 12! assignments. Data is generated.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from maxmargin import StructuralSVM
from maxmargin.checks import check_model

POINTS, FEATURES = 12, 4

# %%
# A model is the number of weights and four methods. ``most_violated`` searches for the answer with the highest loss
# plus score: here the same search, with the loss of each wrong pair added to its score.


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


# %%
# Pairs of clouds. Features 0 and 1 are kept by the points on their way, 2 and 3 are not.

rng = np.random.default_rng(0)


def clouds(n):
    before = rng.normal(size=(n, POINTS, FEATURES))
    moved = before + np.array([0.3, 0.5, 2.0, 2.0]) * rng.normal(size=before.shape)
    Y = [rng.permutation(POINTS) for _ in range(n)]
    after = [points[np.argsort(y)] for points, y in zip(moved, Y, strict=True)]
    X = [-((a[:, None] - b) ** 2) for a, b in zip(before, after, strict=True)]
    return X, Y, before, after


X, Y, *_ = clouds(100)
X_test, Y_test, before, after = clouds(100)

# %%
# ``check_model`` says in plain words what is wrong with a model; here, nothing. Then learn.

check_model(Matching(), X, Y)
svm = StructuralSVM(Matching(), C=1.0, tol=1e-3, random_state=0).fit(X, Y)
print(svm.certificate_)
print("weights of the four features:", np.round(svm.coef_, 2))
plain = np.mean([np.mean(Matching().predict(x, np.ones(FEATURES)) == y) for x, y in zip(X_test, Y_test, strict=True)])
print(f"points found again, all features alike   {100 * plain:.1f} %")
print(f"points found again, learned              {100 + 100 * svm.score(X_test, Y_test):.1f} %")

# %%
# A pair of new clouds in which points were mistaken for each other.

answers = svm.predict(X_test)
shown = next(i for i, answer in enumerate(answers) if (answer != Y_test[i]).any())
first, second = before[shown][:, :2], after[shown][:, :2]
figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
for start, found, true in zip(first, answers[shown], Y_test[shown], strict=True):
    axes.plot(*np.stack([start, second[found]]).T, color="0.6" if found == true else "#c8553d", zorder=0)
axes.plot(*first.T, "o", color="#1b6ca8", label="before")
axes.plot(*second.T, "s", color="#1b6ca8", markerfacecolor="white", label="after")
axes.set(title="Who is who (red: mistaken)", xlabel="feature 0", ylabel="feature 1")
axes.legend(frameon=False)
plt.savefig("own_model.png", dpi=110)

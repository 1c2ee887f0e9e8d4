"""
Learning an order
=================

Documents of a query have grades from 0 to 3, and the better ones should come first. Grades mean something inside a
query only: in an easy query everything is graded high. A ranking SVM compares pairs of documents of the same query (it
never writes the pairs out), and is not misled by that; a regression on the grades is.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import ndcg_score

from maxmargin import LinearSVR, RankingSVM

QUERIES, DOCUMENTS = 200, 15
rng = np.random.default_rng(0)
weights = np.concatenate([[1.5], rng.normal(scale=0.5, size=19)])


def graded():
    """Feature 0 makes a document better, but all documents of hard queries have more of it."""
    X = rng.normal(size=(QUERIES, DOCUMENTS, weights.size))
    difficulty = rng.normal(scale=3.0, size=(QUERIES, 1))
    X[:, :, 0] += difficulty
    quality = X @ weights - 3.0 * difficulty + 0.5 * rng.normal(size=(QUERIES, DOCUMENTS))
    grade = np.digitize(quality, [-1.0, 1.0, 3.0])
    return X.reshape(-1, weights.size), grade.ravel(), np.repeat(np.arange(QUERIES), DOCUMENTS)


def ndcg(scores, grade):
    """Mean NDCG at 5 over the queries in which not all grades are the same."""
    tables = zip(grade.reshape(QUERIES, -1), scores.reshape(QUERIES, -1), strict=True)
    return np.mean([ndcg_score([g], [s], k=5) for g, s in tables if np.ptp(g) > 0])


# %%
# Both learn from 200 queries. The quality of an order is measured on 200 others.

X, grade, query = graded()
ranker = RankingSVM(C=0.01, tol=1e-4, random_state=0).fit(X, grade, groups=query)
regression = LinearSVR(C=0.01, random_state=0).fit(X, grade)
X_test, grade_test, _ = graded()
print(ranker.certificate_)
print(f"NDCG at 5 of RankingSVM                 {ndcg(ranker.predict(X_test), grade_test):.3f}")
print(f"NDCG at 5 of a regression on the grades {ndcg(regression.predict(X_test), grade_test):.3f}")

# %%
# The loss may be that of the whole order of a query instead of that of its pairs.

whole = RankingSVM(C=0.1, loss="ndcg", tol=1e-4, random_state=0).fit(X, grade, groups=query)
print(f"NDCG at 5 of RankingSVM(loss='ndcg')    {ndcg(whole.predict(X_test), grade_test):.3f}")

# %%
# Without queries, all rows are one group of millions of pairs, none of which is written down. The order of documents of
# different queries is what the regression learns, and it suffers in the same way.

together = RankingSVM(C=1e-6, random_state=0).fit(X, grade)
print(together.certificate_)
print(f"NDCG at 5 of RankingSVM without queries {ndcg(together.predict(X_test), grade_test):.3f}")

# %%
# Feature 0, on the right, is what the regression gets wrong.

figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
axes.axhline(0.0, color="0.85", linewidth=1)
for model, colour, name in ((regression, "0.6", "regression on the grades"), (ranker, "#1b6ca8", "RankingSVM")):
    axes.plot(weights, model.coef_ / np.linalg.norm(model.coef_), "o", color=colour, label=name)
axes.annotate("feature 0", (weights[0], regression.coef_[0] / np.linalg.norm(regression.coef_)), (-8, 0),
              textcoords="offset points", ha="right", va="center", color="#c8553d")  # fmt: skip
axes.set(xlabel="true weight", ylabel="learned weight, scaled", title="Comparing inside queries only")
axes.legend(frameon=False)
plt.savefig("ranking.png", dpi=110)

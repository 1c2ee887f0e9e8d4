"""Learning an order: documents of a query, graded 0 to 3, and weights that put the better ones first.

python examples/ranking.py

Data is generated; writes ranking.png.
"""

import matplotlib

matplotlib.use("agg")

import numpy as np
from matplotlib import pyplot
from sklearn.metrics import ndcg_score

from maxmargin import LinearSVR, RankingSVM
from maxmargin.plots import convergence

N_QUERIES, N_DOCUMENTS = 200, 15


def queries(rng, weights):
    """Documents with grades that say something only inside a query: some queries are hard, some are easy."""
    X = rng.normal(size=(N_QUERIES, N_DOCUMENTS, weights.size))
    difficulty = rng.normal(scale=3.0, size=(N_QUERIES, 1))
    X[:, :, 0] += difficulty  # this feature rises with the difficulty, the grades fall with it
    quality = X @ weights - 3.0 * difficulty + 0.5 * rng.normal(size=(N_QUERIES, N_DOCUMENTS))
    grade = np.digitize(quality, [-1.0, 1.0, 3.0])
    return X.reshape(-1, weights.size), grade.ravel(), np.repeat(np.arange(N_QUERIES), N_DOCUMENTS)


def ndcg(scores, grade):
    """Mean NDCG at 5 over the queries in which not all grades are the same."""
    tables = zip(grade.reshape(N_QUERIES, -1), scores.reshape(N_QUERIES, -1), strict=True)
    return np.mean([ndcg_score([g], [s], k=5) for g, s in tables if np.ptp(g) > 0])


def in_order(scores, grade, query):
    """Share of the pairs of one query with different grades that the scores put in the right order."""
    right = total = 0
    for q in np.unique(query):
        g, s = grade[query == q], scores[query == q]
        better = g[:, None] > g
        right += np.sum(better & (s[:, None] > s))
        total += np.sum(better)
    return right / total


def main():
    rng = np.random.default_rng(0)
    weights = np.concatenate([[1.5], rng.normal(scale=0.5, size=19)])
    X, grade, query = queries(rng, weights)
    X_test, grade_test, query_test = queries(rng, weights)

    ranker = RankingSVM(C=0.01, tol=1e-6, random_state=0)
    for _ in range(2):  # the first fit compiles, the second one is drawn
        ranker.fit(X, grade, groups=query)
    regression = LinearSVR(C=0.01, random_state=0).fit(X, grade)
    print(f"{len(X)} documents in {N_QUERIES} queries. {ranker.certificate_}\n")
    print("                            pairs in order   NDCG at 5   (on new queries)")
    for name, model in (("RankingSVM", ranker), ("regression on the grades", regression)):
        scores = model.predict(X_test)
        pairs = in_order(scores, grade_test, query_test)
        print(f"{name:26s}  {100 * pairs:11.1f} %   {ndcg(scores, grade_test):9.3f}")

    figure, panels = pyplot.subplots(1, 3, figsize=(14, 4), layout="constrained")
    convergence(ranker, ax=panels[:2])
    panels[2].plot(weights, ranker.coef_ / np.linalg.norm(ranker.coef_), "o", label="RankingSVM")
    panels[2].plot(weights, regression.coef_ / np.linalg.norm(regression.coef_), "+", label="regression", markersize=9)
    panels[2].set(xlabel="true weight", ylabel="learned weight, scaled", title="Comparing only inside queries")
    panels[2].legend(frameon=False)
    figure.savefig("ranking.png", dpi=110)
    print("\nPicture: ranking.png")


if __name__ == "__main__":
    main()

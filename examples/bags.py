"""Bags of instances: labels belong to bags, one instance decides, and the classifier finds out which.

python examples/bags.py

Data is generated: every bag is a handful of points in the plane, and positive bags have one point in a corner of their
own. Nobody says which point it is. Writes bags.png.
"""

import matplotlib

matplotlib.use("agg")

import numpy as np
from matplotlib import pyplot

import maxmargin as mm

N_BAGS, CORNER = 300, np.array([1.8, 1.2])


def bags(rng):
    """Bags of 3 to 15 points, labels, and the point that tells (of positive bags)."""
    X, y = [rng.normal(size=(rng.integers(3, 16), 2)) for _ in range(N_BAGS)], np.arange(N_BAGS) % 2
    telling = np.array([rng.integers(len(x)) for x in X])
    for x, label, z in zip(X, y, telling, strict=True):
        if label:
            x[z] = CORNER + 0.9 + 0.35 * rng.normal(size=2)
    return X, y, telling


def draw(svm, X, y):
    figure, (plane, score) = pyplot.subplots(1, 2, figsize=(12, 5), layout="constrained")
    points, label = np.concatenate(X), np.repeat(y, [len(x) for x in X])
    plane.scatter(*points[label == 0].T, s=6, color="0.7", label="instances of negative bags")
    plane.scatter(*points[label == 1].T, s=6, color="tab:blue", label="instances of positive bags")
    chosen = np.array([x[z] for x, z, k in zip(X, svm.predict_latent(X), y, strict=True) if k])
    plane.scatter(*chosen.T, s=30, facecolors="none", edgecolors="tab:red", label="those that decided")
    (a, b), c = svm.coef_[0], svm.intercept_[0]
    across = np.array([-3.5, 4.0])
    plane.plot(across, -(c + a * across) / b, color="black", linewidth=1)
    plane.set(xlim=(-3.5, 4.0), ylim=(-3.5, 4.0), title="A bag is positive if one of its instances is")
    plane.legend(frameon=False, fontsize=8, loc="lower left")
    scores = svm.decision_function(X)
    bins = np.linspace(scores.min(), scores.max(), 40)
    for label, colour, name in ((0, "0.7", "negative"), (1, "tab:blue", "positive")):
        score.hist(scores[y == label], bins, color=colour, alpha=0.8, label=f"{name} bags")
    score.axvline(0.0, color="black", linewidth=1)
    score.set(xlabel="score of the highest instance", ylabel="bags", title="New bags")
    score.legend(frameon=False)
    figure.savefig("bags.png", dpi=110)


def main():
    rng = np.random.default_rng(0)
    X, y, _ = bags(rng)
    X_test, y_test, telling_test = bags(rng)
    print(f"{N_BAGS} bags of 3 to 15 points. On new bags:\n")

    means = np.array([x.mean(axis=0) for x in X])
    plain = mm.LinearSVC(random_state=0).fit(means, y)
    accuracy = plain.score(np.array([x.mean(axis=0) for x in X_test]), y_test)
    print("                                      accuracy   telling point found   objective")
    print(f"{'LinearSVC of the means':36s} {100 * accuracy:7.1f} %")
    models = {}
    for name, settings in {
        "LatentSVC": {},
        'LatentSVC(bound="gmm")': {"bound": "gmm"},
        "LatentSVC from first instances": {"init": lambda x, label: 0},
    }.items():
        svm = models[name] = mm.LatentSVC(random_state=0, **settings).fit(X, y)
        found = svm.predict_latent(X_test)[y_test == 1] == telling_test[y_test == 1]
        accuracy = svm.score(X_test, y_test)
        print(f"{name:36s} {100 * accuracy:7.1f} %   {100 * found.mean():17.1f} %   {svm.objective_:9.2f}")

    svm = models["LatentSVC"]
    print(
        "\nMost first instances of positive bags look like those of negative ones: it matters where a search begins.\n"
        "By default it begins with weights that tell the means of the bags apart."
    )
    print(f"\nThe last bound of the first search: {svm.certificate_}")
    draw(svm, X_test, y_test)
    print("Picture: bags.png")


if __name__ == "__main__":
    main()

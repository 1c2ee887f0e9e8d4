"""Clusters from a poor start: Lloyd's algorithm stays in the nearest minimum, other bounds lead out of it.

python examples/clustering.py

Data is generated; writes clustering.png.
"""

import matplotlib

matplotlib.use("agg")

import numpy as np
from matplotlib import pyplot

from maxmargin import GMMKMeans

K, N_STARTS = 25, 20
NAMES = {
    "kmeans": "Lloyd (k-means)",
    "random": "random bounds",
    "gmme": "maximum entropy",
    "balanced": "balanced bounds",
    "merge": "merging bounds",
}


def grid(rng):
    """Twenty-five round clusters of 80 points on a grid that was shaken a little."""
    side = np.arange(5.0)
    centres = np.stack(np.meshgrid(side, side), axis=2).reshape(-1, 2) + 0.15 * rng.normal(size=(K, 2))
    return np.repeat(centres, 80, axis=0) + 0.14 * rng.normal(size=(80 * K, 2))


def main():
    X = grid(np.random.default_rng(0))
    fits = {
        bound: [GMMKMeans(K, bound=bound, init="forgy", random_state=seed).fit(X) for seed in range(N_STARTS)]
        for bound in NAMES
    }
    print(f"{len(X)} points, {K} clusters, {N_STARTS} starts from random points: objective\n")
    print("                     mean      best     worst   bounds")
    for bound, name in NAMES.items():
        found = [km.inertia_ for km in fits[bound]]
        bounds = np.mean([km.n_iter_ for km in fits[bound]])
        print(f"{name:16s} {np.mean(found):8.2f}  {min(found):8.2f}  {max(found):8.2f}  {bounds:7.1f}")

    figure, panels = pyplot.subplots(1, 3, figsize=(14, 4.4), layout="constrained")
    for panel, bound in zip(panels, ("kmeans", "merge"), strict=False):
        km = fits[bound][0]
        panel.scatter(*X.T, c=km.labels_ * 7 % K, s=3, cmap="nipy_spectral")
        panel.scatter(*km.cluster_centers_.T, marker="X", s=70, color="white", edgecolor="black")
        panel.set(title=f"{NAMES[bound]}: {km.inertia_:.1f}", xticks=[], yticks=[], aspect="equal")
    history = fits["merge"][0].history_
    number = [record.number for record in history]
    panels[2].plot(number, [record.bound for record in history], label="bound, merging")
    panels[2].plot(number, [record.objective for record in history], label="objective, merging")
    lloyd = fits["kmeans"][0].history_
    panels[2].plot([record.number for record in lloyd], [record.objective for record in lloyd], ".-", label="Lloyd")
    panels[2].set(xlabel="bound number", ylabel="value", yscale="log", title="Bounds, and the objective below them")
    panels[2].legend(frameon=False)
    figure.savefig("clustering.png", dpi=110)
    print("\nPicture: clustering.png")


if __name__ == "__main__":
    main()

"""
Clusters from a poor start
==========================

k-means stays in the minimum next to where it begins. Seen as a sequence of upper bounds on its objective, Lloyd's
algorithm always takes the bound that touches the objective; other bounds make progress, too, and lead out of poor
minima. ``GMMKMeans`` has several ways to choose them. Data is generated.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import GMMKMeans

K, STARTS = 25, 10
BOUNDS = {
    "kmeans": "Lloyd (k-means)",
    "random": "random bounds",
    "gmme": "maximum entropy",
    "merge": "merging bounds",
}
rng = np.random.default_rng(0)
centres = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), axis=2).reshape(-1, 2) + 0.15 * rng.normal(size=(K, 2))
X = np.repeat(centres, 80, axis=0) + 0.14 * rng.normal(size=(80 * K, 2))

# %%
# Ten starts from random points, the same for all. Lower is better.

fits = {
    bound: [GMMKMeans(K, bound=bound, init="forgy", random_state=seed).fit(X) for seed in range(STARTS)]
    for bound in BOUNDS
}
print("sum of squared distances     mean      best     worst   bounds until the end")
for bound, name in BOUNDS.items():
    found = [km.inertia_ for km in fits[bound]]
    steps = np.mean([km.n_iter_ for km in fits[bound]])
    print(f"{name:24s} {np.mean(found):8.2f}  {min(found):8.2f}  {max(found):8.2f}  {steps:7.1f}")

# %%
# The first start: where Lloyd's algorithm ends, and where merging bounds end, which give up clusters that are cheap to
# hand to their neighbours.

figure, panels = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
for panel, bound in zip(panels, ("kmeans", "merge"), strict=True):
    km = fits[bound][0]
    panel.scatter(*X.T, c=km.labels_ * 7 % K, s=3, cmap="nipy_spectral")
    panel.scatter(*km.cluster_centers_.T, marker="X", s=70, color="white", edgecolor="black")
    panel.set(title=f"{BOUNDS[bound]}: {km.inertia_:.1f}", xticks=[], yticks=[], aspect="equal")
plt.savefig("clustering.png", dpi=110)

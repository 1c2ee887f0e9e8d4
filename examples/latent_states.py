"""
Which views are needed?
=======================

Every object is seen in eleven views, and which one tells its class differs from object to object: the view is a latent
variable, with weights of its own for each class. The group norm gives whole views weights of exactly zero. Along a
path of strengths fewer and fewer remain, and what is gone need never be computed for new objects. Data is generated.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import LatentStructuralSVM, path
from maxmargin.models import Bags

VIEWS = 11
rng = np.random.default_rng(0)


def objects(n):
    """Two classes. Half of the objects show it in view 2, the others in view 5 or 8; the rest is noise."""
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, VIEWS, 6))
    telling = rng.choice([2, 5, 8], n, p=[0.5, 0.3, 0.2])
    X[np.arange(n), telling, 3 * y] += 2.5
    X[np.arange(n), telling, 3 * y + 1] -= 2.5
    return X, y


X, y = objects(400)
X_test, y_test = objects(2000)

# %%
# Each step begins from the weights and dual variables of the one before. A step's certificate is about its last convex
# bound, the one that fixes the views.

strengths = [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 96.0, 128.0, 192.0, 256.0]
steps = path(LatentStructuralSVM(Bags(states="separate"), random_state=0), X, y, group_norm=strengths)
for step in steps:
    views = sorted({int(view) for _, view in step.selected_states_})
    print(f"{step.group_norm:5.1f}: {100 + 100 * step.score(X_test, y_test):.1f} % right with views {views}")
    print(f"       {step.certificate_}")

# %%
# The norms of the weights of each view, over both classes, and the accuracy on new objects.

norms = np.array([np.linalg.norm(step.coef_.reshape(2, VIEWS, -1), axis=(0, 2)) for step in steps])
figure, (top, bottom) = plt.subplots(2, 1, figsize=(7, 5.5), height_ratios=[2, 1], sharex=True, layout="constrained")
for view in range(VIEWS):
    telling = view in (2, 5, 8)
    colour = "#1b6ca8" if telling else "0.7"
    top.semilogx(strengths, norms[:, view], "o-", markersize=4, color=colour, zorder=2 + telling)
    if telling:
        top.annotate(
            f"view {view}",
            (strengths[0], norms[0, view]),
            (-6, 0),
            textcoords="offset points",
            color=colour,
            ha="right",
            va="center",
        )
top.set(xlim=(0.035, 350), ylabel="norm of a view's weights", title="Views that do not tell go first (grey)")
bottom.semilogx(strengths, [100 + 100 * step.score(X_test, y_test) for step in steps], "o-", color="#c8553d")
bottom.set(xlabel="strength of the group norm", ylabel="accuracy, %")
plt.savefig("latent_states.png", dpi=110)

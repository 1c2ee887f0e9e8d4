"""
Signs, priors and groups
========================

What is known about the weights before training can be said by a regularizer: signs that are known, weights of a related
task, groups of features of which most are useless. Three small problems with generated data, each beside plain l2.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import LinearSVC
from maxmargin.regularizers import Bounded, GaussianPrior, GroupNorm

PLAIN, INFORMED = "0.6", "#1b6ca8"
rng = np.random.default_rng(0)


def labelled(weights, n, noise):
    """n points on the two sides of the hyperplane of ``weights``, some of them pushed across."""
    X = rng.normal(size=(n, weights.size))
    return X, np.where(X @ weights + noise * rng.normal(size=n) > 0, 1, -1)


def fit(X, y, regularizer=None, C=1.0):
    return LinearSVC(C=C, regularizer=regularizer, tol=1e-4, random_state=0).fit(X, y)


# %%
# Signs that are known
# --------------------
# More of any ingredient can only help, so no weight may be negative. There are 80 examples of 60 features.

truth = rng.exponential(size=60) * (rng.random(60) < 0.3)
X, y = labelled(truth, 80, noise=1.0)
X_test, y_test = labelled(truth, 5000, noise=0.0)
figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
axes.axhline(0.0, color="0.85", linewidth=1)
for name, regularizer, colour in (("l2", None, PLAIN), ("l2, not negative", Bounded(lower=0.0), INFORMED)):
    model = fit(X, y, regularizer)
    accuracy = model.score(X_test, y_test)
    print(f"{name:18s} accuracy {accuracy:.3f}, smallest weight {model.coef_.min():6.3f}, {model.certificate_}")
    axes.plot(truth, model.coef_[0], "o", color=colour, alpha=0.8, label=f"{name}: accuracy {accuracy:.3f}")
axes.set(title="Weights that may not be negative", xlabel="true weight", ylabel="learned weight")
axes.legend(frameon=False)
plt.savefig("regularizers_signs.png", dpi=110)

# %%
# A prior from a related task
# ---------------------------
# A task with plenty of data says where the weights of a new one should be. The fewer examples the new task has, the
# more that is worth.

old_task = rng.normal(size=40)
new_task = old_task + 0.4 * rng.normal(size=40)
mean = fit(*labelled(old_task, 4000, noise=1.0)).coef_[0]
X_test, y_test = labelled(new_task, 5000, noise=0.0)
sizes = [5, 10, 20, 40, 80, 160, 320, 640]
X, y = labelled(new_task, sizes[-1], noise=1.0)
figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
for name, regularizer, colour in (("l2", None, PLAIN), ("Gaussian prior", GaussianPrior(mean, 1.0), INFORMED)):
    models = [fit(X[:n], y[:n], regularizer, C=0.1) for n in sizes]
    print(f"{name:18s} with {sizes[-1]} examples: {models[-1].certificate_}")
    axes.semilogx(sizes, [model.score(X_test, y_test) for model in models], "o-", color=colour, label=name)
unchanged = np.mean(np.where(X_test @ mean > 0, 1, -1) == y_test)
axes.axhline(unchanged, color="#c8553d", linestyle="--", label="the old task's weights as they are")
axes.set(title="A prior from a related task", xlabel="examples of the new task", ylabel="test accuracy")
axes.legend(frameon=False)
plt.savefig("regularizers_prior.png", dpi=110)

# %%
# Groups that vanish
# ------------------
# Twenty sensors of five readings each, of which three matter. The group norm gives most others weights of exactly zero,
# so that nobody has to read them.

truth = np.zeros((20, 5))
truth[[3, 8, 15]] = rng.choice([-1.0, 1.0], size=(3, 5))
X, y = labelled(truth.ravel(), 400, noise=0.5)
sensors = list(np.arange(100).reshape(20, 5))
figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
for name, model, colour, side in (
    ("l2", fit(X, y, C=0.1), PLAIN, -0.2),
    ("group norm", fit(X, y, GroupNorm(sensors, weights=60.0)), INFORMED, 0.2),
):
    norms = np.linalg.norm(model.coef_.reshape(20, 5), axis=1)
    print(f"{name:18s} {np.sum(norms == 0.0)} of 20 sensors exactly zero, {model.certificate_}")
    axes.bar(np.arange(20) + side, norms, 0.4, color=colour, label=f"{name}: {np.sum(norms == 0.0)} exact zeros")
axes.set(title="Whole groups vanish", xlabel="sensor (3, 8 and 15 matter)", ylabel="norm of its weights")
axes.set_xticks([0, 3, 8, 15, 19])
axes.legend(frameon=False)
plt.savefig("regularizers_groups.png", dpi=110)

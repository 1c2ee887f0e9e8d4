"""Three regularizers, each where it belongs: signs that are known, a prior from elsewhere, groups that vanish.

python examples/regularizers.py

Data is generated; writes regularizers.png.
"""

import matplotlib

matplotlib.use("agg")

import numpy as np
from matplotlib import pyplot

from maxmargin import LinearSVC
from maxmargin.regularizers import Bounded, GaussianPrior, GroupNorm

rng = np.random.default_rng(0)


def labelled(weights, n, noise):
    """n points on the two sides of the hyperplane of ``weights``, some of them pushed across."""
    X = rng.normal(size=(n, weights.size))
    return X, np.where(X @ weights + noise * rng.normal(size=n) > 0, 1, -1)


def fit(X, y, regularizer=None, C=1.0):
    return LinearSVC(C=C, regularizer=regularizer, tol=1e-4, random_state=0).fit(X, y)


def known_signs(panel):
    """More of any ingredient can only help: no weight may be negative. Few examples, many features."""
    truth = rng.exponential(size=60) * (rng.random(60) < 0.3)
    X, y = labelled(truth, 80, noise=1.0)
    X_test, y_test = labelled(truth, 5000, noise=0.0)
    for name, regularizer, marker in (("l2", None, "."), ("l2, not negative", Bounded(lower=0.0), "+")):
        model = fit(X, y, regularizer)
        accuracy = model.score(X_test, y_test)
        print(f"  {name:20s} accuracy {accuracy:.3f}, smallest weight {model.coef_.min():6.3f}, {model.certificate_}")
        panel.plot(truth, model.coef_[0], marker, markersize=8, label=f"{name}: accuracy {accuracy:.3f}")
    panel.axhline(0.0, color="0.7", linewidth=1)
    panel.set(title="Weights that may not be negative", xlabel="true weight", ylabel="learned weight")
    panel.legend(frameon=False)


def prior(panel):
    """A related task with plenty of data says where the weights should be; the new task has little data."""
    old_task = rng.normal(size=40)
    new_task = old_task + 0.4 * rng.normal(size=40)
    mean = fit(*labelled(old_task, 4000, noise=1.0)).coef_[0]
    X_test, y_test = labelled(new_task, 5000, noise=0.0)
    sizes = [5, 10, 20, 40, 80, 160, 320, 640]
    X, y = labelled(new_task, sizes[-1], noise=1.0)
    for name, regularizer in (("l2", None), ("Gaussian prior", GaussianPrior(mean, covariance=1.0))):
        scores = [fit(X[:n], y[:n], regularizer, C=0.1).score(X_test, y_test) for n in sizes]
        print(f"  {name:20s} accuracy {', '.join(f'{s:.3f}' for s in scores)} for {sizes[0]} … {sizes[-1]} examples")
        panel.semilogx(sizes, scores, "o-", label=name)
    unchanged = np.mean(np.where(X_test @ mean > 0, 1, -1) == y_test)
    panel.axhline(unchanged, color="0.6", linestyle="--", label="the old task's weights as they are")
    panel.set(title="A prior from a related task", xlabel="examples of the new task", ylabel="test accuracy")
    panel.legend(frameon=False)


def groups(panel):
    """Twenty sensors of five readings each, three of them matter: the others get weights of exactly zero."""
    truth = np.zeros((20, 5))
    truth[[3, 8, 15]] = rng.choice([-1.0, 1.0], size=(3, 5))
    X, y = labelled(truth.ravel(), 400, noise=0.5)
    sensors = np.arange(100).reshape(20, 5)
    for name, regularizer in (("l2", None), ("group norm", GroupNorm(list(sensors), weights=60.0))):
        model = fit(X, y, regularizer, C=0.1 if regularizer is None else 1.0)
        norms = np.linalg.norm(model.coef_.reshape(20, 5), axis=1)
        print(f"  {name:20s} {np.sum(norms == 0.0)} of 20 sensors exactly zero, {model.certificate_}")
        offset = -0.2 if regularizer is None else 0.2
        panel.bar(np.arange(20) + offset, norms, width=0.4, label=f"{name}: {np.sum(norms == 0.0)} exact zeros")
    panel.set(title="Whole groups vanish", xlabel="sensor (3, 8 and 15 matter)", ylabel="norm of its weights")
    panel.set_xticks([0, 3, 8, 15, 19])
    panel.margins(y=0.3)
    panel.legend(frameon=False)


def main():
    figure, panels = pyplot.subplots(1, 3, figsize=(15, 4.4), layout="constrained")
    for draw, panel in zip((known_signs, prior, groups), panels, strict=True):
        print(draw.__doc__)
        draw(panel)
    figure.savefig("regularizers.png", dpi=110)
    print("\nPicture: regularizers.png")


if __name__ == "__main__":
    main()

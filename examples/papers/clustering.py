"""Clustering as in chapter 5 of Naderi Parizi's thesis: tables 5.1 and 5.4, figures 5-4 and 5-5, and scikit-learn.

MAXMARGIN_DATA=folder python examples/papers/clustering.py [--out FOLDER] [--trials 50] [--quick] [--jobs 2]

Needs clustering.npz in the folder named by MAXMARGIN_DATA, with the arrays Aggregation_X, D31_X, D31_y, Cloud_X and
Norm25new_X. GMM-200 is generated. Writes clustering.md, clustering_eta.png and clustering_d31.png.

Where this differs from the thesis: clusters that lose all their points are moved to a point drawn as k-means++ draws
it, by all methods (there they fall onto the origin), so k-means from a random partition does far better here; Norm-25
is a new draw of the same recipe. "G-MM" are the thesis' random bounds alone; the estimator also runs k-means from each
start and keeps the better end, and its default are bounds that merge clusters.
"""

import argparse
import os
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import numpy as np
from matplotlib import pyplot
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from maxmargin import GMMKMeans
from maxmargin.clustering.kmeans import Settings, cluster
from maxmargin.clustering.points import Points
from maxmargin.clustering.starts import STARTS as DRAWN

CLUSTERS = {"Aggregation": 7, "Norm-25": 25, "D31": 31, "Cloud": 50, "GMM-200": 200}
STARTS = ("forgy", "random partition", "k-means++")
# Table 5.1: mean, best of k-means, then of G-MM.
PRINTED = {
    "Aggregation": {"forgy": "14.93, 13.96; 14.34, 13.96", "random partition": "55.81, 14.47; 14.31, 13.96",
                    "k-means++": "14.81, 13.96; 14.43, 13.96"},
    "Norm-25": {"forgy": "1.9e5, 70000; 9.7e3, 1.5", "random partition": "5.8e5, 220000; 2.0e4, 20000",
                "k-means++": "5.3e3, 1.5; 4.5e3, 1.5"},
    "D31": {"forgy": "1.69, 1.21; 1.43, 1.10", "random partition": "52.61, 4.00; 1.21, 1.10",
            "k-means++": "1.55, 1.10; 1.45, 1.10"},
    "Cloud": {"forgy": "1929, 1293; 1465, 1246", "random partition": "44453, 3026; 1470, 1444",
              "k-means++": "1237, 1117; 1162, 1067"},
    "GMM-200": {"forgy": "2.25, 2.07; 2.04, 1.90", "random partition": "11.20, 9.77; 1.85, 1.80",
                "k-means++": "2.12, 1.99; 1.98, 1.89"},
}  # fmt: skip
# Table 5.4: iterations of k-means and of G-MM.
ITERATIONS = {
    "GMM-200": {"forgy": "35.8; 91.5", "random partition": "115; 242", "k-means++": "32.9; 80.8"},
    "Cloud": {"forgy": "37.2; 87.7", "random partition": "65.1; 139", "k-means++": "21.3; 44.1"},
}


def gmm_200(rng):
    """§5.5.1: 200 Gaussians of σ = 1 on a square of 70 × 70, means at least 2.5 apart, 50 points each."""
    means = []
    while len(means) < 200:
        mean = rng.uniform(0.0, 70.0, size=2)
        if all(np.linalg.norm(mean - other) >= 2.5 for other in means):
            means.append(mean)
    return np.repeat(means, 50, axis=0) + rng.normal(size=(10_000, 2))


def data_sets():
    path = Path(os.environ.get("MAXMARGIN_DATA", "")) / "clustering.npz"
    if not os.environ.get("MAXMARGIN_DATA") or not path.is_file():
        sys.exit(
            "This reads clustering.npz (arrays Aggregation_X, D31_X, D31_y, Cloud_X, Norm25new_X) from the folder "
            f"named by MAXMARGIN_DATA, which is {os.environ.get('MAXMARGIN_DATA') or 'not set'}. Set it and try again."
        )
    stored = np.load(path)
    sets = {name: stored[f"{name}_X"] for name in ("Aggregation", "D31", "Cloud")}
    sets |= {"Norm-25": stored["Norm25new_X"], "GMM-200": gmm_200(np.random.default_rng(0))}
    return {name: sets[name] for name in CLUSTERS}, stored["D31_y"]


def plain_plus_plus(X, n_clusters, random_state):
    """k-means++ as published: one draw per centre. (The library's own takes the best of several.)"""
    chosen = [random_state.randint(len(X))]
    closest = np.full(len(X), np.inf)
    while len(chosen) < n_clusters:
        closest = np.minimum(closest, ((X - X[chosen[-1]]) ** 2).sum(axis=1))
        chosen.append(random_state.choice(len(X), p=closest / closest.sum()))
    return X[chosen]


INIT = {"forgy": "forgy", "random partition": "random_partition", "k-means++": plain_plus_plus}


def pure(X, k, init, seed, **options):
    """Bounds of one kind alone, from the same start as an estimator of this seed: objective and number of bounds."""

    def start(points, rng):
        if callable(init):
            return init(points.X, k, random_state=np.random.RandomState(int(rng.integers(2**32))))
        return DRAWN[init](points, rng)

    found = cluster(Points(X, np.ones(len(X)), k), start, Settings(**options), np.random.default_rng(seed))
    return found.objective, len(found.history)


def estimated(X, k, init, seed, **options):
    """The estimator: never worse than k-means."""
    km = GMMKMeans(k, init=init, random_state=seed, **options).fit(X)
    return km.inertia_, km.n_iter_


def trials(X, k, start, n, jobs, fit=pure, **options):
    """Objective per point, number of bounds, and seconds, of n fits; the same seeds give the same starts."""

    def one(seed):
        clock = time.thread_time()
        objective, bounds = fit(X, k, INIT[start], seed, **options)
        return objective / len(X), bounds, time.thread_time() - clock

    with ThreadPoolExecutor(jobs) as pool:
        return np.array(list(pool.map(one, range(n)))).T


METHODS = {
    "k-means": (pure, {"bound": "kmeans"}),
    "G-MM, η = 0.02": (pure, {"bound": "random"}),
    "GMMKMeans(bound='random')": (estimated, {"bound": "random"}),
    "GMMKMeans()": (estimated, {}),
}


def tables(sets, n, jobs):
    """Tables 5.1 and 5.4."""
    rule = " | ".join("---" for _ in METHODS)
    first = [
        f"Table 5.1: objective per point, mean ± deviation and best of {n} trials, the same starts for all "
        "(last column: the thesis, mean and best of k-means; of G-MM)\n",
        f"| data | k | start | {' | '.join(METHODS)} | thesis |",
        f"| --- | --- | --- | {rule} | --- |",
    ]
    second = [
        "\nTable 5.4: bounds until the end (Lloyd's at the end of G-MM among them; of the kept run), and processor "
        "seconds per fit (of both runs)\n",
        f"| data | start | {' | '.join(METHODS)} | thesis: k-means; G-MM |",
        f"| --- | --- | {rule} | --- |",
    ]
    for name, X in sets.items():
        for start in STARTS:
            runs = [trials(X, CLUSTERS[name], start, n, jobs, fit, **options) for fit, options in METHODS.values()]
            cells = [f"{r[0].mean():.5g} ± {r[0].std():.2g}, {r[0].min():.5g}" for r in runs]
            first.append(f"| {name} | {CLUSTERS[name]} | {start} | {' | '.join(cells)} | {PRINTED[name][start]} |")
            print(first[-1], f"({sum(r[2].sum() for r in runs):.0f} s)", flush=True)
            cells = [f"{r[1].mean():.1f} ± {r[1].std():.1f}, {r[2].mean():.3f} s" for r in runs]
            thesis = ITERATIONS.get(name, {}).get(start, "–")
            second.append(f"| {name} | {start} | {' | '.join(cells)} | {thesis} |")
    return first + second


def fit_in(seconds, X, k, seed, **options):
    """Objective per point and seconds of one fit with as many starts as the time allows, one at least."""

    def fit(n_init, seed):
        clock = time.process_time()
        km = GMMKMeans(k, n_init=n_init, random_state=seed, **options).fit(X)
        return km.inertia_ / len(X), time.process_time() - clock

    if seconds == 0.0:
        return fit(1, seed)
    one, five = (fit(n, seed + 1000)[1] for n in (1, 5))  # on other seeds: only to learn what a start takes
    return fit(max(1, int(1 + (seconds - one) / max((five - one) / 4, 1e-9))), seed)


def against_scikit_learn(sets, n):
    """The best of ten starts of KMeans, and what GMMKMeans reaches in the same time on one thread.

    Seconds are the processor's, so that whoever else uses the machine does not matter.
    """
    variants = {
        "GMMKMeans()": {},
        "bound='random', eta=0.1, tol=0.01, sweeps=1": {"bound": "random", "eta": 0.1, "tol": 0.01, "sweeps": 1},
    }
    lines = [
        "\nscikit-learn's KMeans(n_init=10), and GMMKMeans with one start and with as many as fit into the same time: "
        f"objective per point and processor seconds, mean of {n} trials\n",
        f"| data | start | KMeans | GMMKMeans(n_init=1) | {' | '.join(f'{name}, equal time' for name in variants)} |",
        f"| --- | --- | --- | --- | {' | '.join('---' for _ in variants)} |",
    ]
    for name, X in sets.items():
        k = CLUSTERS[name]
        for ours, theirs in (("k-means++", "k-means++"), ("forgy", "random")):
            found, spent = [], []
            for seed in range(n):
                clock = time.process_time()
                found.append(KMeans(k, init=theirs, n_init=10, random_state=seed).fit(X).inertia_ / len(X))
                spent.append(time.process_time() - clock)
            cells = [f"{np.mean(found):.5g}, {np.mean(spent):.3f} s"]
            for limit, options in [(0.0, {}), *((np.mean(spent), options) for options in variants.values())]:
                reached = [fit_in(limit, X, k, seed, init=ours, **options) for seed in range(n)]
                mean, seconds = np.mean(reached, axis=0)
                cells.append(f"{mean:.5g}, {seconds:.3f} s")
            lines.append(f"| {name} | {ours} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return lines


def draw_eta(sets, n, jobs, path):
    """Figure 5-4: the effect of η."""
    etas = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
    figure, panels = pyplot.subplots(1, 3, figsize=(14, 4), layout="constrained")
    for panel, name in zip(panels, ("Aggregation", "D31", "Cloud"), strict=True):
        for start in STARTS:
            found = np.array(
                [trials(sets[name], CLUSTERS[name], start, n, jobs, bound="random", eta=eta)[0] for eta in etas]
            )
            mean, deviation = found.mean(axis=1), found.std(axis=1)
            (line,) = panel.plot(etas, mean, label=start)
            panel.plot(etas, found.min(axis=1), "--", color=line.get_color())
            panel.fill_between(etas, mean - deviation, mean + deviation, alpha=0.2, color=line.get_color())
        panel.set(xscale="log", xlabel="η", title=f"{name}, k = {CLUSTERS[name]}")
    panels[0].set_ylabel(f"objective per point, {n} trials\n(line: mean, band: deviation, dashed: best)")
    panels[0].legend(frameon=False)
    figure.savefig(path, dpi=110)


def draw_d31(X, truth, path):
    """Figure 5-5: the truth, k-means, and G-MM from the same random partition."""
    fits = [GMMKMeans(31, bound=b, init="random_partition", random_state=0).fit(X) for b in ("kmeans", "random")]
    centres = np.array([X[truth == z].mean(axis=0) for z in np.unique(truth)])
    labels = [truth - 1] + [km.labels_ for km in fits]
    titles = ["truth"] + [
        f"{name}, {km.inertia_ / len(X):.3f}" for name, km in zip(("k-means", "G-MM"), fits, strict=True)
    ]
    figure, panels = pyplot.subplots(1, 3, figsize=(14, 4.8), layout="constrained")
    for panel, z, mu, title in zip(
        panels, labels, [centres] + [km.cluster_centers_ for km in fits], titles, strict=True
    ):
        panel.scatter(*X.T, c=z * 7 % 31, s=3, cmap="nipy_spectral")
        panel.scatter(*mu.T, marker="X", s=70, color="white", edgecolor="black")
        panel.set(title=title, xticks=[], yticks=[], aspect="equal")
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the table and the figures")
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--quick", action="store_true", help="few trials, without the large sets")
    parser.add_argument("--jobs", type=int, default=2, help="trials side by side (the comparison runs on one thread)")
    arguments = parser.parse_args()
    sets, truth = data_sets()
    if arguments.quick:
        arguments.trials = min(arguments.trials, 5)
        sets = {name: X for name, X in sets.items() if name not in ("Norm-25", "GMM-200")}
    warnings.simplefilter("error", ConvergenceWarning)
    arguments.out.mkdir(parents=True, exist_ok=True)
    draw_d31(sets["D31"], truth, arguments.out / "clustering_d31.png")  # compiles, too: no trial pays for that
    with threadpool_limits(1):
        lines = tables(sets, arguments.trials, arguments.jobs)
        lines += against_scikit_learn(sets, min(arguments.trials, 10))
        draw_eta(sets, arguments.trials, arguments.jobs, arguments.out / "clustering_eta.png")
    text = "\n".join(lines) + "\n"
    (arguments.out / "clustering.md").write_text(text, encoding="utf8")
    print("\n" + text)


if __name__ == "__main__":
    main()

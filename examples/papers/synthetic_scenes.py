"""Which model sees what? Figure 2-5 of Naderi Parizi's thesis: five models, seven kinds of synthetic scenes.

python examples/papers/synthetic_scenes.py [--out FOLDER] [--n 200] [--kinds bow,sbow,rbow,rbow+,rbow++] [--C 10]

Data is generated. Writes synthetic_scenes.md and synthetic_scenes.png. Results are kept in synthetic_scenes.json as
they come, so that a run that was stopped goes on.

Each class differs from another one by a single property: where parts are, whether they mix, whether equal ones lie
together, what lies on top of what. Each model sees one property more than the one before it.
"""

import time
from functools import partial

import matplotlib

matplotlib.use("agg")

import numpy as np
from common import Kept, arguments, stop_when_interrupted, table
from matplotlib import pyplot

from maxmargin import plots
from maxmargin.data.synthetic import scenes
from maxmargin.vision import SceneClassifier

CLASSES = ("noise", "beach", "shore", "desert1", "desert2", "field", "riding")  # in the order of the figure
NAMES = {"bow": "BoW", "sbow": "SBoW", "rbow": "RBoW", "rbow+": "RBoW+", "rbow++": "RBoW++"}
N_PARTS = 8
N_PER_CLASS, N_QUICK = 200, 10
C = {"bow": 100.0, "sbow": 10.0, "rbow": 10.0, "rbow+": 30.0, "rbow++": 30.0}
SEARCH = {"tol": 2e-2, "bound_tol": 1e-2, "max_bounds": 5, "max_passes": 100}
CONFUSED = 20.0  # per cent of one class that are taken for the other, from which on the two count as confused
# What §2.6.3 says of figure 2-5; its numbers are in the picture alone.
SAID = {
    "bow": [{"noise", "beach", "shore"}, {"desert1", "desert2"}, {"field", "riding"}],
    "sbow": [{"beach", "shore"}, {"desert1", "desert2"}, {"field", "riding"}],
    "rbow": [{"desert1", "desert2"}, {"field", "riding"}],
    "rbow+": [{"field", "riding"}],
    "rbow++": [],
}

ABOUT = """
Scenes are those of §2.6.3: 32 × 32 regions, 1000 words in each, as many scenes for testing as for training. Models are
trained discriminatively; latent ones begin, as in the thesis, with the true part of every region. *Confused* are
classes of which at least {confused:g} % are taken for each other, one way or the other. C is for a region, see
`SceneClassifier`; it was chosen with these same test scenes in view. *Gap* is that of the last convex bound; RBoW+ and
RBoW++ label grids of this size by swap moves, which are approximate, so that it is none for them.
"""


def options(parser):
    parser.add_argument("--n", type=int, help=f"scenes of each class (default: {N_PER_CLASS}, with --quick {N_QUICK})")
    parser.add_argument("--kinds", default=",".join(NAMES), help="models, separated by commas (default: all)")
    parser.add_argument("--C", type=float, help="price of loss for all models (default: one for each)")


def checked(given):
    given.n = (N_QUICK if given.quick else N_PER_CLASS) if given.n is None else given.n
    given.kinds = [kind for kind in given.kinds.split(",") if kind]
    unknown = set(given.kinds) - set(NAMES)
    if given.n < 1 or unknown or not given.kinds:
        raise SystemExit(
            f"--n must be at least 1, and --kinds some of {','.join(NAMES)}; got {given.n}, {given.kinds}."
        )
    if given.C is not None and not given.C > 0:
        raise SystemExit(f"--C must be positive, got {given.C}.")
    return given


def measured(kind, price, n, jobs):
    """One model: true and predicted classes, and how long it took."""
    train, test = scenes(n, random_state=0), scenes(n, random_state=1)
    search = SEARCH if kind.startswith("rbow") else {}
    model = SceneClassifier(kind=kind, C=price, n_parts=N_PARTS, n_jobs=jobs, random_state=0, **search)
    begin = time.perf_counter()
    model.fit(train.X, train.y, Z=train.regions if kind.startswith("rbow") else None)
    fitted = time.perf_counter()
    predicted = model.predict(test.X)
    certificate = model.certificate_
    return {
        "truth": test.y.tolist(),
        "predicted": predicted.tolist(),
        "fit_seconds": fitted - begin,
        "predict_seconds": time.perf_counter() - fitted,
        "gap": certificate.relative_gap if certificate.exact else None,
        "bounds": getattr(model.learner_, "n_bounds_", None),
    }


def confusion(result):
    """Per cent of each class (row) that were taken for each class (column)."""
    truth, predicted = np.array(result["truth"]), np.array(result["predicted"])
    return np.array([[100.0 * np.mean(predicted[truth == a] == b) for b in CLASSES] for a in CLASSES])


def groups_confused(result):
    """Classes joined by confusions: sets of two or more."""
    shares = confusion(result)
    groups = [{k} for k in range(len(CLASSES))]
    for a, b in np.argwhere(np.maximum(shares, shares.T) >= CONFUSED):
        joined = {a, b}.union(*(group for group in groups if group & {a, b}))
        groups = [group for group in groups if not group & joined] + [joined]
    return sorted(({CLASSES[k] for k in group} for group in groups if len(group) > 1), key=in_order)


def in_order(group):
    return sorted(CLASSES.index(name) for name in group)


def said(groups):
    return ", ".join("{" + ", ".join(CLASSES[k] for k in in_order(group)) + "}" for group in groups) or "nothing"


def row(kind, price, result):
    groups = groups_confused(result)
    return [
        NAMES[kind],
        f"{price:g}",
        f"{np.mean(np.diag(confusion(result))):.1f}",
        said(groups),
        said(SAID[kind]) + (" (the same)" if groups == SAID[kind] else ""),
        "–" if result["gap"] is None else f"{result['gap']:.0e}",
        "–" if result["bounds"] is None else result["bounds"],
        f"{result['fit_seconds']:.1f}",
        f"{result['predict_seconds']:.1f}",
    ]


HEAD = ["model", "C", "mean diagonal %", "confused", "confused in the thesis", "gap", "bounds", "fit s", "predict s"]


def draw(results, path):
    figure, panels = pyplot.subplots(
        1, len(results), figsize=(5 * len(results), 5), layout="constrained", squeeze=False
    )
    for panel, (kind, result) in zip(panels[0], results.items(), strict=True):
        plots.confusion(result["truth"], result["predicted"], CLASSES, ax=panel, name=NAMES[kind])
    figure.savefig(path, dpi=110, bbox_inches="tight")


def main():
    given = checked(arguments(__doc__, extend=options))
    kept = Kept(given.out / "synthetic_scenes.json")
    stop_when_interrupted(kept)
    results, rows = {}, []
    for kind in given.kinds:
        price = C[kind] if given.C is None else given.C
        name = f"{kind} n={given.n} C={price:g} " + " ".join(f"{key}={value:g}" for key, value in SEARCH.items())
        results[kind] = kept.result(name, partial(measured, kind, price, given.n, given.jobs))
        rows.append(row(kind, price, results[kind]))
        print(" | ".join(f"{key}: {value}" for key, value in zip(HEAD, rows[-1], strict=True)), flush=True)
    text = f"# Synthetic scenes, {given.n} of each class\n\n{table(HEAD, rows)}{ABOUT.format(confused=CONFUSED)}"
    (given.out / "synthetic_scenes.md").write_text(text)
    draw(results, given.out / "synthetic_scenes.png")
    print(f"\n{table(HEAD, rows)}\nTable and picture: {given.out / 'synthetic_scenes.md'}, synthetic_scenes.png")


if __name__ == "__main__":
    main()

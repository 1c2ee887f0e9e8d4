"""Scenes in fifteen classes: table 2.1 of Naderi Parizi's thesis, and figure 2-3 on these classes.

MAXMARGIN_DATA=folder python examples/papers/scenes.py [--out FOLDER] [--splits 5] [--rows bow,sbow,…] [--cache FOLDER]

Needs scene15.tar (photographs as train/CLASS/NAME.jpg and test/CLASS/NAME.jpg) in the folder named by MAXMARGIN_DATA,
and the packages of pip install 'maxmargin[papers]'. --cnn adds models on features of a network (maxmargin[cnn]),
--beyond models on more words than the thesis has. Writes scenes.md and pictures. Results are kept in scenes.json as
they come, so that a run that was stopped goes on; with --cache images and their features are kept, too.
"""

import sys
import tempfile
import time
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import numpy as np
from common import Kept, arguments, stop_when_interrupted, table, unpacked
from matplotlib import pyplot
from sklearn.model_selection import StratifiedKFold

import maxmargin
from maxmargin import plots
from maxmargin.vision import CNNRegions, DenseSIFT, SceneClassifier, WordHistograms, read_image
from maxmargin.vision.features.extraction import over_images

SPLITS, N_TRAIN, N_QUICK, GRID, N_PARTS = 5, 100, 15, 4, 16
SEARCH = {"tol": 1e-2, "bound_tol": 1e-2, "max_bounds": 100}
FOLDS = 3
# Prices of loss to choose from; a single one is taken as it is.
PRICES = {
    "bow": (1.0, 2.0, 4.0, 8.0),
    "sbow": (1.0, 2.0, 4.0, 8.0),
    "rbow": (1.0, 2.0, 4.0),
    "cnn": (0.5, 2.0, 8.0),
    "bow-cnn": (32.0,),
    "rbow-cnn": (2.0,),
    "many": (1.0, 2.0, 4.0),
    "rbow-many": (2.0,),
}
SHOWN = ("Coast", "Street", "Kitchen")  # classes whose region models are drawn
N_LABELLED = 8


@dataclass(frozen=True)
class Described:
    """How regions are described. ``words`` are learned for every split from its training images."""

    n_words: int = 200
    sift: DenseSIFT = field(default_factory=DenseSIFT)
    max_iter: int = 100  # of k-means
    cnn: bool = False

    def extractor(self, split, quick):
        if self.cnn:
            return CNNRegions(GRID)
        learning = {"n_sampled": 10_000 if quick else 100_000, "max_iter": self.max_iter, "random_state": split}
        return WordHistograms(GRID, self.n_words, self.sift, **learning)


FEATURES = {
    "words": Described(),
    "many words": Described(1000, DenseSIFT(step=8, scales=(1.0, 1.5, 2.0)), max_iter=30),
    "cnn": Described(cnn=True),
}


@dataclass(frozen=True)
class Row:
    name: str
    printed: str
    settings: dict
    price: str = ""  # which of PRICES; none for generative models
    features: str = "words"


GENERATIVE = {"training": "generative"}
ROWS = {
    "bow-gen": Row("BoW, generative", "62.1 ± 2.4", {"kind": "bow", **GENERATIVE}),
    "bow": Row("BoW", "71.7 ± 0.2", {"kind": "bow"}, "bow"),
    "sbow-gen": Row("SBoW, generative", "74.3 ± 0.5", {"kind": "sbow", **GENERATIVE}),
    "sbow": Row("SBoW", "77.7 ± 0.9", {"kind": "sbow"}, "sbow"),
    "rbow-gen": Row("RBoW, generative", "76.1 ± 0.5", {"kind": "rbow", **GENERATIVE}),
    "rbow-random": Row("RBoW, from random parts", "74.5 ± 0.4", {"kind": "rbow", "init": "random"}, "rbow"),
    "rbow-fixed": Row("RBoW, from fixed parts", "78.5 ± 1.1", {"kind": "rbow", "init": "fixed"}, "rbow"),
    "rbow-em": Row("RBoW, from EM", "78.6 ± 0.7", {"kind": "rbow", "init": "em"}, "rbow"),
}
BEYOND = {
    "sbow-many": Row("SBoW, 1000 words, three sizes", "–", {"kind": "sbow"}, "many", "many words"),
    "rbow-many": Row("RBoW, 1000 words, three sizes", "–", {"kind": "rbow", "init": "em"}, "rbow-many", "many words"),
}
CNN = {
    "sbow-cnn": Row("SBoW, network", "–", {"kind": "sbow"}, "cnn", "cnn"),
    "bow-cnn": Row("BoW, network", "–", {"kind": "bow"}, "bow-cnn", "cnn"),
    "rbow-cnn": Row("RBoW, network, from fixed parts", "–", {"kind": "rbow", "init": "fixed"}, "rbow-cnn", "cnn"),
}
EVERY = ROWS | BEYOND | CNN
CHOSEN_BY = {"bow": "bow", "sbow": "sbow", "rbow": "rbow-em", "cnn": "sbow-cnn", "many": "sbow-many"}
TEACHER = "rbow-em"  # the model that is drawn

HEAD = ["model", "mean diagonal %", "in the thesis", "C", "objective", "bounds", "gap", "fit s", "images/s", "splits"]
ABOUT = """
Mean ± deviation over random splits, {n_train} images of each class for training and the others for testing. The measure
is the mean of the diagonal of the confusion matrix. {grid} × {grid} regions, {n_parts} region models for each class,
{n_words} words, learned for every split from its training images. *Objective*, *bounds* and *gap* (of the last convex
bound) are means, *images/s* are for classification from histograms with {jobs} threads.

- C (for a region, see `SceneClassifier`) was chosen by {folds}-fold cross-validation within the training images of the
  first split, with words learned from all of these: {chosen}.
- Descriptors: {sift}. The thesis says no more than "densely sampled SIFT".
- Generative models see the square roots of counts, which temper words that come in bursts; the thesis has the counts.
- The set has 11 pairs of equal images. A pair may have one image on each side of a split.
"""


def options(parser):
    parser.add_argument("--splits", type=int, default=SPLITS, help=f"random splits (default: {SPLITS})")
    parser.add_argument("--rows", help=f"rows of the table, separated by commas, of {','.join(EVERY)}")
    parser.add_argument(
        "--C", default="", help=f"prices that are not to be chosen, as in sbow=1,rbow=0.5 ({','.join(PRICES)})"
    )
    parser.add_argument("--cache", type=Path, help="folder for images and features (default: a temporary one)")
    parser.add_argument("--beyond", action="store_true", help="also models on more words")
    parser.add_argument("--cnn", action="store_true", help="also models on features of a network")


def checked(given):
    rows = ROWS | (BEYOND if given.beyond else {}) | (CNN if given.cnn else {})
    names = list(rows) if given.rows is None else given.rows.split(",")
    unknown = [name for name in names if name not in EVERY]
    if unknown or given.splits < 1:
        sys.exit(f"--splits must be at least 1, got {given.splits}; --rows has these unknown names: {unknown}.")
    given.rows = {name: EVERY[name] for name in names}
    try:
        prices = {name: float(value) for name, value in (pair.split("=") for pair in given.C.split(",") if pair)}
    except ValueError:
        prices = {"": 0.0}
    if not set(prices) <= set(PRICES) or not all(value > 0 for value in prices.values()):
        sys.exit(f"--C must be pairs such as sbow=1,rbow=0.5 with names of {','.join(PRICES)}; got {given.C!r}.")
    given.prices = PRICES | {name: (value,) for name, value in prices.items()}
    given.splits = 1 if given.quick else given.splits
    return given


class Photographs:
    """All images of the set, those of each class in the order of their names, and their features."""

    def __init__(self, cache, quick, jobs):
        self.cache, self.quick, self.jobs = cache, quick, jobs
        self.n_train = N_QUICK if quick else N_TRAIN
        self.last = None, None

    @cached_property
    def paths(self):
        paths = sorted(self._unpacked().glob("t*/*/*.jpg"), key=lambda path: (path.parent.name, path.name))
        if not self.quick:
            return np.array([str(path) for path in paths])
        classes = np.unique([path.parent.name for path in paths])
        return np.array(
            [str(p) for name in classes for p in [q for q in paths if q.parent.name == name][: 2 * N_QUICK]]
        )

    @cached_property
    def y(self):
        return np.array([Path(path).parent.name for path in self.paths])

    def _unpacked(self):
        return unpacked("scene15.tar", "photographs as train/CLASS/NAME.jpg and test/CLASS/NAME.jpg", self.cache)

    def training(self, split):
        """Which images the models of a split learn from."""
        y, rng = self.y, np.random.default_rng(split)
        train = np.zeros(len(y), bool)
        for name in np.unique(y):
            train[rng.permutation(np.flatnonzero(y == name))[: self.n_train]] = True
        return train

    def described(self, features, split):
        """Features of all images, and what made them. The last ones are kept: rows come in the order of features."""
        if self.last[0] != (features, split):
            self.last = (features, split), self._described(features, split)
        return self.last[1]

    def _described(self, features, split):
        begin = time.perf_counter()
        extractor = FEATURES[features].extractor(split, self.quick)
        if hasattr(extractor, "fit"):
            self._learn_words(extractor, split)
        kept = {"settings": extractor.settings(), "cache": self.cache / "features", "n_jobs": self.jobs}
        X = over_images(list(self.paths), extractor, **kept)[0]
        X = X.astype(np.float32 if FEATURES[features].cnn else np.uint16)
        print(f"{features}, split {split}: {len(X)} images described, {time.perf_counter() - begin:.0f} s", flush=True)
        return X, extractor

    def _learn_words(self, extractor, split):
        """From the training images of the split, or as an earlier run has learned them from the same ones."""
        train = self.paths[self.training(split)].tolist()
        said = f"{extractor.n_words} {extractor.sift} {extractor.n_sampled} {extractor.max_iter} {split} {len(train)}"
        file = self.cache / f"words_{sha256(said.encode()).hexdigest()[:16]}.npy"
        if file.exists():
            extractor.vocabulary_ = np.load(file)
            return
        extractor.fit(train, n_jobs=self.jobs)
        with file.with_suffix(".part").open("wb") as aside:
            np.save(aside, extractor.vocabulary_)
        file.with_suffix(".part").replace(file)


def classifier(row, price, jobs):
    price = {"C": price} if price else {}
    settings = {"n_parts": N_PARTS, **row.settings}
    return SceneClassifier(grid=GRID, n_jobs=jobs, random_state=0, **settings, **price, **SEARCH)


def per_class(truth, predicted):
    """The mean of the diagonal of the confusion matrix, in per cent."""
    return 100.0 * float(np.mean([np.mean(predicted[truth == name] == name) for name in np.unique(truth)]))


def choose(photographs, row, prices, jobs):
    """The price of loss, by cross-validation within the training images of the first split."""
    X, y, train = photographs.described(row.features, 0)[0], photographs.y, photographs.training(0)
    X, y = X[train], y[train]
    begin = time.perf_counter()
    scores = {}
    for price in prices:
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(y, y)
        found = [per_class(y[b], classifier(row, price, jobs).fit(X[a], y[a]).predict(X[b])) for a, b in folds]
        scores[f"{price:g}"] = float(np.mean(found))
        print(f"  {row.name}, C = {price:g}: {scores[f'{price:g}']:.2f} % in cross-validation", flush=True)
    best = max(prices, key=lambda price: scores[f"{price:g}"])
    return {"chosen": best, "scores": scores, "seconds": time.perf_counter() - begin}


def measured(photographs, row, price, split, jobs, save=None):
    """One fit: how well it does, how long it takes."""
    X, extractor = photographs.described(row.features, split)
    y, train = photographs.y, photographs.training(split)
    model = classifier(row, price, jobs)
    begin = time.perf_counter()
    model.fit(X[train], y[train])
    fitted = time.perf_counter()
    predicted = model.predict(X[~train])
    ended = time.perf_counter()
    if save is not None:
        model.extractor_ = extractor  # so that the saved model takes images
        model.save(save)
    generative = model.training == "generative"
    return {
        "mean_diagonal": per_class(y[~train], predicted),
        "fit_seconds": fitted - begin,
        "images_per_second": len(predicted) / (ended - fitted),
        "objective": None if generative else model.certificate_.upper,
        "gap": None if generative else model.certificate_.relative_gap,
        "bounds": getattr(model.learner_, "n_bounds_", None),
    }


def name_of(row, split, price, quick):
    """All that a result depends on."""
    how = FEATURES[row.features]
    words = "" if how.cnn else f" {how.n_words} words {how.sift}"
    search = " ".join(f"{key}={value:g}" for key, value in SEARCH.items())
    return (
        f"{row.name}, split {split}{', quick' if quick else ''}: C={price} grid={GRID} parts={N_PARTS} {search}{words}"
    )


def price_for(name, given, photographs, kept):
    """The price of loss that rows of this name share, with what it was chosen from."""
    among = given.prices[name]
    if len(among) == 1:
        return {"chosen": among[0], "scores": {}}
    row = EVERY[CHOSEN_BY[name]]
    work = partial(choose, photographs, row, among, given.jobs)
    return kept.result("C of " + name_of(row, 0, among, given.quick), work)


def said(name, choice):
    among = ", ".join(f"{price}: {score:.1f} %" for price, score in choice["scores"].items())
    return f"{choice['chosen']:g} for {name} ({among or 'given'})"


def line(row, price, results):
    def mean(key, form):
        return "–" if results[0][key] is None else format(float(np.mean([result[key] for result in results])), form)

    rates = [result["mean_diagonal"] for result in results]
    deviation = f" ± {np.std(rates, ddof=1):.1f}" if len(rates) > 1 else ""
    cells = [mean(*cell) for cell in (("objective", ".4g"), ("bounds", ".1f"), ("gap", ".0e"), ("fit_seconds", ".1f"))]
    speed = mean("images_per_second", ".0f")
    return [row.name, f"{np.mean(rates):.1f}{deviation}", row.printed, price or "–", *cells, speed, len(rates)]


def tables(given, photographs, kept):
    chosen = {"": {"chosen": None}}
    results = {name: [] for name in given.rows}
    # Split by split and feature by feature: features are made once and then dropped.
    for split in range(given.splits):
        for name, row in sorted(given.rows.items(), key=lambda item: list(FEATURES).index(item[1].features)):
            if row.price not in chosen:
                chosen[row.price] = price_for(row.price, given, photographs, kept)
            price = chosen[row.price]["chosen"]
            save = model_file(given) if (name, split) == (TEACHER, 0) else None
            work = partial(measured, photographs, row, price, split, given.jobs, save)
            result = kept.result(name_of(row, split, price, given.quick), work)
            results[name].append(result)
            seconds = f"fit {result['fit_seconds']:.1f} s"
            print(f"split {split}, {row.name}: {result['mean_diagonal']:.2f} %, {seconds}", flush=True)
    rows = [line(r, chosen[r.price]["chosen"], results[name]) for name, r in given.rows.items()]
    text = ABOUT.format(
        n_train=photographs.n_train, grid=GRID, n_parts=N_PARTS, n_words=FEATURES["words"].n_words,
        jobs=given.jobs, folds=FOLDS,
        chosen="; ".join(said(name, choice) for name, choice in chosen.items() if name) or "–",
        sift=FEATURES["words"].sift,
    )  # fmt: skip
    if any(row.features == "cnn" for row in given.rows.values()):
        text += "- On the given split a linear SVM on the network's features of whole images has 93.0 %.\n"
    return f"# Fifteen scenes\n\n{table(HEAD, rows)}{text}"


def model_file(given):
    return given.out / ("scenes_rbow_quick.mm" if given.quick else "scenes_rbow.mm")


def pictures(given, photographs):
    """The confusion matrix, region models and labelled images of the model of the first split."""
    if not model_file(given).exists():
        print(f"No pictures: they need the row {TEACHER}, whose model is not in {model_file(given)}.")
        return
    model = maxmargin.load(model_file(given)).set_params(cache=photographs.cache / "features", n_jobs=given.jobs)
    test = ~photographs.training(0)
    paths, y = photographs.paths[test], photographs.y[test]
    predicted = model.predict(paths.tolist())
    figure, panel = pyplot.subplots(figsize=(10, 9), layout="constrained")
    plots.confusion(y, predicted, ax=panel, name="RBoW")
    figure.savefig(given.out / "scenes_confusion.png", dpi=110)
    for name in SHOWN:
        figure = plots.region_models(model, name, images=paths[y == name].tolist())
        figure.savefig(given.out / f"scenes_parts_{name}.png", dpi=110)
    some = np.random.default_rng(0).choice(np.flatnonzero(predicted == y), N_LABELLED, replace=False)
    figure, panels = pyplot.subplots(2, N_LABELLED // 2, figsize=(16, 8), layout="constrained")
    for panel, i, regions in zip(panels.ravel(), some, model.predict_regions(paths[some].tolist()), strict=True):
        plots.labelled_regions(read_image(paths[i]), regions, ax=panel, legend=False).set_title(y[i])
    figure.savefig(given.out / "scenes_labelled.png", dpi=110)
    print(f"Pictures: {given.out}/scenes_*.png")


def main():
    given = checked(arguments(__doc__, extend=options))
    kept = Kept(given.out / ("scenes_quick.json" if given.quick else "scenes.json"))
    stop_when_interrupted(kept)
    with tempfile.TemporaryDirectory() as aside:
        cache = given.cache or Path(aside)
        cache.mkdir(parents=True, exist_ok=True)
        photographs = Photographs(cache, given.quick, given.jobs)
        text = tables(given, photographs, kept)
        (given.out / "scenes.md").write_text(text)
        print(f"\n{text}")
        pictures(given, photographs)


if __name__ == "__main__":
    main()

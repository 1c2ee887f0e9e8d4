"""Accuracy against the number of parts: figures 3-4 to 3-9 of Naderi Parizi's thesis, on fifteen classes of scenes.

MAXMARGIN_DATA=folder python examples/papers/parts.py [--features hog,cnn,cnn160] [--out FOLDER] [--device cuda]

Needs scene15.tar (photographs as train/CLASS/NAME.jpg and test/CLASS/NAME.jpg) in the folder named by MAXMARGIN_DATA,
and the packages of pip install 'maxmargin[papers]'; maxmargin[cnn] for features of a network, maxmargin[torch] for a
GPU. Writes parts.md and pictures. Results are kept in parts.json as they come, so that a run that was stopped goes on;
with --cache images and their features are kept, too.
"""

import sys
import tempfile
import time
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import numpy as np
from common import Kept, arguments, stop_when_interrupted, table, unpacked
from matplotlib import pyplot

from maxmargin import plots
from maxmargin.vision import CNNPatches, HOGPatches, ImageFolder, PartClassifier, ReducedPatches
from maxmargin.vision.parts.patches import gather_patches

# Names, and how many leading directions of the features are kept: the thesis has 60 of a network's.
FEATURES = {"hog": ("HOG, 6 × 6 cells", 128), "cnn": ("EfficientNet-lite0", 60), "cnn160": ("EfficientNet-lite0", 160)}
PARTS = {"hog": (16, 32, 64, 128, 256, 512), "cnn": (8, 16, 32, 64, 128, 256), "cnn160": (16, 32, 64)}
SELECTED, JOINT = 4, 3  # so many of the first of them
POOL = 1000
ROUNDS = 20
# To choose from, on a part of the training images: the price of loss, and for joint training that of long filters.
PRICES = (0.3, 1.0, 3.0, 10.0)
BALANCES = (1.0, 3.0)
CHOSEN_AT = 32  # parts
METHODS = {
    "without": ("random, without mirror images", {"training": "random"}),
    "random": ("random", {"training": "random"}),
    "selected": ("selected", {"training": "selected"}),
    "joint": ("jointly trained", {"training": "joint"}),
}
SHOWN = 6  # parts in pictures
ABOUT = """
Mean per-class accuracy (%) on the {n_test} test images after training on {n_train}, mean over {seeds} pools of random
parts. *Selected* and *jointly trained* parts come from a pool of {pool}.

- C, and for joint training the price of long filters, were chosen with {chosen_at} parts on three tenths of the
  training images after training on the others: {chosen}.
- Joint training ends with a round that lowers the objective by 1 % or less, or after {rounds} rounds.
"""


def options(parser):
    parser.add_argument("--features", default="hog", help="some of hog,cnn,cnn160 (default: hog)")
    parser.add_argument("--seeds", type=int, default=3, help="pools of random parts (default: 3)")
    parser.add_argument(
        "--device", help="where responses are computed, such as cuda (default: this machine's processors)"
    )
    parser.add_argument("--cache", type=Path, help="folder for images and features (default: a temporary one)")


def checked(given):
    given.features = given.features.split(",")
    unknown = [name for name in given.features if name not in FEATURES]
    if unknown or given.seeds < 1:
        sys.exit(f"--seeds must be at least 1, got {given.seeds}; --features has these unknown names: {unknown}.")
    return given


class Scenes:
    """Patches of all photographs, described in one way."""

    def __init__(self, given, kind, cache):
        begin = time.perf_counter()
        folder = unpacked("scene15.tar", "photographs as train/CLASS/NAME.jpg and test/CLASS/NAME.jpg", cache)
        self.paths, self.labels = {}, {}
        for half in ("train", "test"):
            images = ImageFolder(folder / half)
            some = slice(None, None, 20) if given.quick else slice(None)
            self.paths[half], self.labels[half] = list(images.paths)[some], np.asarray(images.labels)[some]
        plain = HOGPatches(color=False) if kind == "hog" else CNNPatches()
        run = {"n_jobs": given.jobs, "cache": None if given.cache is None else cache / "features"}
        self.extractor = ReducedPatches(plain, FEATURES[kind][1]).fit(self.paths["train"], **run)
        self.patches = {half: gather_patches(paths, self.extractor, **run)[0] for half, paths in self.paths.items()}
        print(f"{kind}: patches of all images after {time.perf_counter() - begin:.0f} s", flush=True)


class Experiment:
    def __init__(self, given, kind, scenes, kept):
        self.given, self.kind, self.scenes, self.kept = given, kind, scenes, kept
        self.parts = PARTS[kind] if not given.quick else PARTS[kind][:2]

    def model(self, method, n_parts, seed, C, balance=1.0):
        how = dict(METHODS[method][1])
        if how["training"] != "random":
            how["pool_size"] = max(n_parts, 100 if self.given.quick else POOL)
        run = {"device": self.given.device, "n_jobs": self.given.jobs, "random_state": seed}
        return PartClassifier(n_parts, C=C, balance=balance, max_rounds=ROUNDS, **how, **run)

    def scored(self, model, train, y, test, truth):
        begin = time.perf_counter()
        model.fit(train, y)
        seconds = time.perf_counter() - begin
        predicted = model.predict(test)
        right = np.mean([(predicted[truth == name] == name).mean() for name in np.unique(truth)])
        rounds = model.history_[-1].round
        return {"right": float(right), "seconds": seconds, "objective": model.objective_, "rounds": rounds}

    def chosen(self, method):
        """Prices for a method, by a part of the training images."""

        def choose():
            patches, y = self.scenes.patches["train"], self.scenes.labels["train"]
            held_out = np.zeros(len(y), bool)
            for name in np.unique(y):
                of_class = np.flatnonzero(y == name)
                chosen = np.random.default_rng(0).permutation(of_class)[: max(1, round(0.3 * of_class.size))]
                held_out[chosen] = True
            train, test = (patches.take(np.flatnonzero(mask)) for mask in (~held_out, held_out))
            grid = [(C, b) for C in PRICES[:2] for b in BALANCES] if method == "joint" else [(C, 1.0) for C in PRICES]
            found = []
            for C, balance in grid[: 1 if self.given.quick else None]:
                model = self.model(method, min(CHOSEN_AT, self.parts[-1]), 0, C, balance)
                result = self.scored(model, train, y[~held_out], test, y[held_out])
                found.append((result["right"], -C, balance))
                print(f"{self.kind} {method}: C={C}, balance={balance}: {100 * result['right']:.2f}", flush=True)
            best = max(found)
            return {"C": -best[1], "balance": best[2]}

        return self.kept.result(f"{self.kind} {method} chosen", choose)

    def run(self):
        sets = {flips: [self._patches(half, flips) for half in ("train", "test")] for flips in (False, True)}
        y, truth = self.scenes.labels["train"], self.scenes.labels["test"]
        curves = {}
        for method in METHODS:
            price = self.chosen("random" if method in ("without", "selected") else method)
            many = {"selected": SELECTED, "joint": JOINT}.get(method)
            for n_parts in self.parts[:many]:
                for seed in range(self.given.seeds):
                    train, test = sets[method != "without"]
                    model = self.model(method, n_parts, seed, **price)
                    name = f"{self.kind} {method} {n_parts} {seed}"
                    work = lambda: self.scored(model, train, y, test, truth)  # noqa: E731
                    result = self.kept.result(name, work)
                    curves.setdefault(method, {}).setdefault(n_parts, []).append(result)
                    print(f"{name}: {100 * result['right']:.2f} %, {result['seconds']:.0f} s", flush=True)
        return curves

    def _patches(self, half, flips):
        patches = self.scenes.patches[half]
        return patches if flips else patches.take(np.arange(len(patches)), 1)

    def tables(self, curves):
        head = ["parts", *[METHODS[m][0] for m in METHODS], "joint: seconds", "rounds"]
        rows = []
        for n_parts in self.parts:
            cells = [str(n_parts)]
            for method in METHODS:
                found = [100 * r["right"] for r in curves[method].get(n_parts, [])]
                cells.append(f"{np.mean(found):.1f} ± {np.std(found):.1f}" if found else "–")
            joint = curves["joint"].get(n_parts, [])
            cells += [f"{np.mean([r[k] for r in joint]):.0f}" if joint else "–" for k in ("seconds", "rounds")]
            rows.append(cells)
        name, components = FEATURES[self.kind]
        prices = [(m, self.chosen(m)) for m in ("random", "joint")]
        about = ABOUT.format(
            n_train=len(self.scenes.labels["train"]), n_test=len(self.scenes.labels["test"]), seeds=self.given.seeds,
            pool=POOL, rounds=ROUNDS,
            chosen_at=CHOSEN_AT, chosen="; ".join(f"{m} C = {p['C']:g}, × {p['balance']:g}" for m, p in prices),
        )  # fmt: skip
        return f"## {name}, {components} directions\n{about}\n{table(head, rows)}"

    def pictures(self, curves):
        kind, out = self.kind, self.given.out
        axes = plots.part_curve(
            {METHODS[m][0]: {n: [r["right"] for r in rs] for n, rs in c.items()} for m, c in curves.items()}
        )
        axes.figure.savefig(out / f"parts_{kind}_curve.png", dpi=110)
        y, n_parts = self.scenes.labels["train"], self.parts[min(1, len(self.parts) - 1)]
        train, test = self.scenes.patches["train"], self.scenes.patches["test"]
        models = {
            "before joint training": self.model("selected", n_parts, 0, **self.chosen("joint")).fit(train, y),
            "after": self.model("joint", n_parts, 0, **self.chosen("joint")).fit(train, y),
        }
        model = models["after"]
        figure, axes = pyplot.subplots(figsize=(9, 9), layout="constrained")
        plots.part_weights(model, ax=axes)
        figure.savefig(out / f"parts_{kind}_weights.png", dpi=110)
        shown = np.argsort(-np.abs(model.part_weights_).max(axis=(0, 2)))[:SHOWN].tolist()
        figure = plots.top_detections(models, self.scenes.paths["test"], shown, features=test)
        figure.savefig(out / f"parts_{kind}_detections.png", dpi=110)
        if kind == "hog":
            filters = self.scenes.extractor.unreduced(model.filters_[shown])
            figure, panels = pyplot.subplots(1, len(shown), figsize=(2 * len(shown), 2), layout="constrained")
            for panel, part, filter_ in zip(panels, shown, filters, strict=True):
                plots.hog_glyphs(filter_, ax=panel)
                panel.set_title(f"part {part}")
            figure.savefig(out / "parts_hog_filters.png", dpi=110)


def main(argv=None):
    given = checked(arguments(__doc__, argv, options))
    kept = Kept(given.out / ("parts_quick.json" if given.quick else "parts.json"))
    stop_when_interrupted(kept)
    text = ""
    with tempfile.TemporaryDirectory() as aside:
        cache = given.cache or Path(aside)
        cache.mkdir(parents=True, exist_ok=True)
        for kind in given.features:
            experiment = Experiment(given, kind, Scenes(given, kind, cache), kept)
            curves = experiment.run()
            text += experiment.tables(curves)
            (given.out / "parts.md").write_text(text)
            experiment.pictures(curves)
    print(f"\n{text}")


if __name__ == "__main__":
    main()

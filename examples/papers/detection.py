"""Heads of cats: table 4.2 of Naderi Parizi's thesis, detectors with negative parts beside detectors without.

MAXMARGIN_DATA=folder python examples/papers/detection.py [--breeds Birman,Siamese] [--models DPM6,GDPM4+2] [--jobs 2]
MAXMARGIN_DATA=folder python examples/papers/detection.py --choose [--breeds …] [--models …]

Needs pets_cat_heads.tar (photographs as BREED_NUMBER.jpg) and pets_heads.csv (columns name, species, xmin, ymin, xmax,
ymax) in the folder named by MAXMARGIN_DATA. Writes detection.md, pictures, and the detectors themselves. Results are
kept in detection.json as they come, so that a run that was stopped goes on. With --choose settings are compared on the
training half alone, and nothing but that is done.
"""

import csv
import multiprocessing
import signal
import sys
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
from common import Kept, arguments, data_file, stop_when_interrupted, table, unpacked
from threadpoolctl import threadpool_limits

import maxmargin
from maxmargin.vision import DeformablePartDetector
from maxmargin.vision.detection.evaluation import PrecisionRecall

# The models of the thesis, one component each: positive parts, and negative ones.
MODELS = {
    "DPM4": {"n_parts": 4},
    "DPM6": {"n_parts": 6},
    "GDPM2+2": {"n_parts": 2, "n_negative_parts": 2},
    "GDPM4+2": {"n_parts": 4, "n_negative_parts": 2},
}
SETTINGS = {"C": 0.01, "root_area": 64, "max_bounds": 4}  # of all models
# What --choose compares; settings that it finds best belong into SETTINGS.
CHOICES = tuple(
    {**SETTINGS, **change}
    for change in ({}, {"C": 0.003}, {"C": 0.03}, {"root_area": 100}, {"stiffness": 0.01}, {"stiffness": 0.1})
)
N_BACKGROUND = 150  # images of other breeds, without boxes
N_BACKGROUND_OF_A_FOLD = 110
# All breeds as one class: a mixture, on so many images of either half.
ALL_CATS = "all cats"
N_ALL_CATS = 300
ALL_CATS_MODELS = ("DPM6",)
ALL_CATS_SETTINGS = {"n_components": 2, "mirrored": True}

# Average precision in the thesis (%), in the order of the breeds' names. It has dogs among the background, too, more
# than twenty times as many background images, and other sizes of images: a neighbour, not a peer.
THESIS = {
    "DPM4": (21.3, 12.8, 34.5, 23.3, 32.2, 15.8, 21.6, 28.0, 19.4, 24.0, 29.4, 22.7),
    "DPM6": (22.2, 12.8, 31.4, 21.5, 31.3, 16.5, 26.0, 29.0, 20.6, 25.0, 30.9, 22.0),
    "GDPM2+2": (24.3, 11.9, 38.4, 23.9, 31.0, 19.7, 27.7, 29.7, 24.5, 29.9, 35.9, 27.4),
    "GDPM4+2": (25.5, 13.7, 34.0, 23.0, 33.5, 20.9, 24.5, 30.0, 21.9, 25.3, 30.6, 23.2),
}
# dlib's train_simple_object_detector (a root filter without parts) on the same images and boxes, evaluated alike: the
# mean of these six breeds, and all cats.
SIX_BREEDS = ("Abyssinian", "Birman", "British_Shorthair", "Persian", "Ragdoll", "Siamese")
DLIB = {"six": 45.5, ALL_CATS: 85.3}

SHOWN = 3  # breeds in pictures
ABOUT = """\
# Heads of cats

Average precision (%), boxes right from an overlap of ½ on. A breed's detector is trained on its half of the images and
{n_background} images of other breeds' halves without their boxes, and tested on the {n_test} images of the other half,
where only heads of its own breed are to be found: those of other breeds are mistakes. *{all_cats}* is one detector of
heads of any breed, with {mixture}, trained on {n_all} images and tested on as many.

Settings: {settings}; everything else as it is by default. The columns of the thesis were measured with more background
images, dogs among them. dlib's detector is a root filter without parts, on the same images as ours.

"""


def options(parser):
    parser.add_argument(
        "--breeds", help=f'some breeds, or "{ALL_CATS}", with commas between them (default: everything)'
    )
    parser.add_argument("--models", help=f"some of {','.join(MODELS)} (default: all)")
    parser.add_argument("--choose", action="store_true", help="compare settings on two folds of the training half")
    parser.add_argument("--cache", type=Path, help="folder for unpacked images (default: a temporary one)")


# The data.


def read_heads(folder, path):
    """The box of every cat's head, by the name of its image: those whose image is in the folder."""
    there = {file.stem for file in folder.iterdir()}
    heads = {}
    with open(path, newline="") as lines:
        for row in csv.DictReader(lines):
            if row["species"] == "cat" and row["name"] in there:
                heads[row["name"]] = [[float(row[side]) for side in ("xmin", "ymin", "xmax", "ymax")]]
    return heads


def by_breed(names):
    """Names in their order as texts, by breed."""
    breeds = {}
    for name in sorted(names):
        breeds.setdefault(name.rpartition("_")[0], []).append(name)
    return breeds


def halves(breeds):
    """For training and for testing: the first, third … of every breed, and the others."""
    return {breed: names[0::2] for breed, names in breeds.items()}, {b: names[1::2] for b, names in breeds.items()}


def evenly(names, n):
    """So many of them, from the first to the last."""
    return [names[i] for i in np.linspace(0, len(names) - 1, min(n, len(names))).round().astype(int)]


def everyone(breeds):
    return sorted(name for names in breeds.values() for name in names)


def task(train, test, breed, n_background):
    """Images to train on, images to test on, and those among them whose boxes count."""
    if breed == ALL_CATS:
        chosen = [evenly(everyone(half), N_ALL_CATS) for half in (train, test)]
        return *chosen, {name for half in chosen for name in half}
    others = everyone({b: names for b, names in train.items() if b != breed})
    own = [*train[breed], *test[breed]]
    return train[breed] + evenly(others, n_background), everyone(test), set(own)


# One detector, in a process of its own.


def learned(job):
    """Trains and tests; also says how long it took."""
    train, test = job["train"], job["test"]
    begin = time.perf_counter()
    detector = DeformablePartDetector(**job["settings"], random_state=0, n_jobs=1).fit(*train)
    trained = time.perf_counter()
    curve = detector.precision_recall(*test)
    tested = time.perf_counter()
    if job["file"] is not None:
        detector.save(job["file"])
    rises = np.diff(curve.recall, prepend=0.0) > 0.0  # the best points: at each object that is found
    return {
        "ap": curve.average_precision,
        "n_truths": curve.n_truths,
        "curve": [np.round(some[rises], 5).tolist() for some in (curve.precision, curve.recall, curve.scores)],
        "seconds": trained - begin,
        "images_per_second": len(test[0]) / (tested - trained),
        "objective": detector.objective_,
        "gap": detector.certificate_.relative_gap,
        "bounds": detector.n_bounds_,
        "left_out": detector.left_out_,
    }


def _alone():
    # A fit that is interrupted ends with its best so far, which would pass for a result; what is left out is counted.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    threadpool_limits(1)


def results_of(jobs, processes, kept):
    """What is not known yet, side by side; each is kept as soon as it is there."""
    missing = [job for job in jobs if job["name"] not in kept.values]
    pool = ProcessPoolExecutor(processes, initializer=_alone)
    try:
        names = {pool.submit(learned, job): job["name"] for job in missing}
        for done in as_completed(names):
            kept.result(names[done], done.result)
            print(told(names[done], kept.values[names[done]]), flush=True)
    except BaseException:
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return {job["name"]: kept.values[job["name"]] for job in jobs}


def told(name, result):
    return (
        f"{name}: {100 * result['ap']:.1f}, {result['seconds']:.0f} s, {result['images_per_second']:.0f} images/s, "
        f"gap {result['gap']:.0e} after {result['bounds']} bounds, {result['left_out']} boxes left out"
    )


class Experiment:
    """All that is asked for on the command line, on images that are unpacked."""

    def __init__(self, given, folder, heads):
        self.given, self.folder, self.heads = given, folder, heads
        breeds = by_breed(heads)
        self.all_breeds = list(breeds)
        if given.quick:
            breeds = {breed: names[:10] for breed, names in breeds.items()}
        self.train, self.test = halves(breeds)
        asked = given.breeds.split(",") if given.breeds else [*breeds, ALL_CATS]
        unknown = [name for name in asked if name not in breeds and name != ALL_CATS]
        if unknown:
            sys.exit(f'--breeds has these unknown names: {unknown}. There are {", ".join(breeds)}, and "{ALL_CATS}".')
        if given.quick and not given.breeds:
            asked = asked[:2]
        self.breeds = asked

    def job(self, model, breed, train, test, settings, n_background, name, file=None):
        first, second, own = task(train, test, breed, n_background)
        settings = MODELS[model] | settings | (ALL_CATS_SETTINGS if breed == ALL_CATS else {})
        if self.given.quick:
            settings |= {"max_bounds": 2, "tol": 0.1}
        sets = [
            ([str(self.folder / f"{n}.jpg") for n in some], [self.heads[n] if n in own else None for n in some])
            for some in (first, second)
        ]
        spelled = " ".join(f"{key}={value}" for key, value in sorted(settings.items()))
        return {"name": f"{name}: {spelled}", "settings": settings, "train": sets[0], "test": sets[1], "file": file}

    def asked(self):
        """Pairs of breed and model."""
        return [
            (breed, model)
            for breed in self.breeds
            for model in self.given.models
            if breed != ALL_CATS or model in ALL_CATS_MODELS
        ]

    def choose(self, kept):
        """Mean average precision of every choice of settings over breeds and two folds of the training half."""
        first, second = halves(self.train)
        jobs = {}
        for breed, model in self.asked():
            for k, choice in enumerate(CHOICES):
                for fold, (train, test) in enumerate(((first, second), (second, first))):
                    name = f"{breed} {model} fold {fold}"
                    job = self.job(model, breed, train, test, SETTINGS | choice, N_BACKGROUND_OF_A_FOLD, name)
                    jobs.setdefault((model, k), []).append(job)
        found = results_of([job for some in jobs.values() for job in some], self.given.jobs, kept)
        rows = []
        for k, choice in enumerate(CHOICES):
            cells = [", ".join(f"{key} = {value}" for key, value in choice.items())]
            for model in self.given.models:
                some = [100 * found[job["name"]]["ap"] for job in jobs.get((model, k), [])]
                cells.append(f"{np.mean(some):.1f}" if some else "–")
            rows.append(cells)
        print("\n" + table(["settings", *self.given.models], rows))

    def run(self, kept):
        """Results by breed and model."""
        models = self.given.out / "detectors"
        models.mkdir(exist_ok=True)
        jobs = {}
        for breed, model in self.asked():
            file = models / f"{breed}_{model}.mm".replace(" ", "_")
            jobs[breed, model] = self.job(
                model, breed, self.train, self.test, SETTINGS, N_BACKGROUND, f"{breed} {model}", file
            )
        found = results_of(list(jobs.values()), self.given.jobs, kept)
        return {key: (found[job["name"]], job) for key, job in jobs.items()}

    def tables(self, found):
        models = self.given.models
        about = ABOUT.format(
            n_background=N_BACKGROUND, n_test=sum(map(len, self.test.values())), all_cats=ALL_CATS.capitalize(),
            mixture=", ".join(f"{key}={value}" for key, value in ALL_CATS_SETTINGS.items()), n_all=N_ALL_CATS,
            settings=", ".join(f"{key} = {value}" for key, value in SETTINGS.items()),
        )  # fmt: skip

        def ours(breeds):
            some = [[100 * found[b, m][0]["ap"] for b in breeds if (b, m) in found] for m in models]
            return [f"{np.mean(each):.1f}" if breeds and len(each) == len(breeds) else "–" for each in some]

        def theirs(breeds):
            at = [self.all_breeds.index(b) for b in breeds]
            return [f"{np.mean([THESIS[m][i] for i in at]):.1f}" if at else "–" for m in models]

        single = [b for b in self.breeds if b != ALL_CATS]
        rows = [[b.replace("_", " "), *ours([b]), "", *theirs([b])] for b in single]
        if len(single) > 1:
            rows.append([f"mean of {len(single)}", *ours(single), "", *theirs(single)])
        if set(SIX_BREEDS) <= set(single):
            names = "mean of " + ", ".join(b.replace("_", " ") for b in SIX_BREEDS)
            rows.append([names, *ours(SIX_BREEDS), str(DLIB["six"]), *theirs(SIX_BREEDS)])
        if ALL_CATS in self.breeds:
            rows.append([ALL_CATS, *ours([ALL_CATS]), str(DLIB[ALL_CATS]), *["–"] * len(models)])
        text = about + table(["", *models, "dlib", *[f"thesis: {m}" for m in models]], rows)
        rows = []
        for model in models:
            some = [result for (b, m), (result, _) in found.items() if m == model and b != ALL_CATS]
            if some:
                rows.append([model, *_costs(some)])
        rows += [[f"{b}, {m}", *_costs([result])] for (b, m), (result, _) in found.items() if b == ALL_CATS]
        head = ["", "training s", "test images/s", "largest gap", "bounds", "boxes left out"]
        return text + "\nMeans over breeds, one thread each:\n\n" + table(head, rows)

    def pictures(self, found):
        import matplotlib

        matplotlib.use("agg")
        from maxmargin import plots

        out = self.given.out
        for breed in self.breeds[:SHOWN]:
            name = breed.replace(" ", "_")
            curves = {model: _curve(result) for (b, model), (result, _) in found.items() if b == breed}
            if not curves:
                continue
            _save(plots.precision_recall_curves(curves), out / f"detection_{name}_curves.png")
            model = max(curves, key=lambda model: curves[model].average_precision)
            job = found[breed, model][1]
            if not job["file"].is_file():
                continue  # moved away since it was trained
            detector = maxmargin.load(job["file"])
            _save(plots.detector_filters(detector), out / f"detection_{name}_model.png")
            image = next(path for path, boxes in zip(*job["test"], strict=True) if boxes is not None)
            drawn = plots.detected(image, detector.detect(image), most=3)
            _save(drawn, out / f"detection_{name}_found.png")


def _costs(results):
    seconds, speed, bounds, missed = (
        np.mean([result[key] for result in results]) for key in ("seconds", "images_per_second", "bounds", "left_out")
    )
    gap = max(result["gap"] for result in results)
    return [f"{seconds:.0f}", f"{speed:.0f}", f"{gap:.0e}", f"{bounds:.1f}", f"{missed:.1f}"]


def _curve(result):
    return PrecisionRecall(*map(np.array, result["curve"]), result["ap"], result["n_truths"])


def _save(drawn, path):
    figure = drawn if hasattr(drawn, "savefig") else drawn.figure
    figure.savefig(path, dpi=110)


def checked(given):
    given.models = given.models.split(",") if given.models else list(MODELS)
    unknown = [name for name in given.models if name not in MODELS]
    if unknown:
        sys.exit(f"--models has these unknown names: {unknown}. There are {', '.join(MODELS)}.")
    return given


def main(argv=None):
    given = checked(arguments(__doc__, argv, options))
    boxes = data_file("pets_heads.csv", "boxes of heads")
    name = "detection_choices" if given.choose else "detection"
    kept = Kept(given.out / f"{name}{'_quick' * given.quick}.json")
    stop_when_interrupted(kept)
    with tempfile.TemporaryDirectory() as aside:
        cache = given.cache or Path(aside)
        cache.mkdir(parents=True, exist_ok=True)
        folder = unpacked("pets_cat_heads.tar", "photographs of cats", cache)
        experiment = Experiment(given, folder, read_heads(folder, boxes))
        if given.choose:
            experiment.choose(kept)
            return
        found = experiment.run(kept)
        text = experiment.tables(found)
        (given.out / "detection.md").write_text(text)
        print(f"\n{text}")
        experiment.pictures(found)


if __name__ == "__main__":
    main()

"""Parts that nobody labelled: small shapes in photographs, found because they tell classes apart.

python examples/parts.py

The backgrounds are cut out of two photographs that come with scikit-learn; writes parts.png.
"""

import time

import matplotlib

matplotlib.use("agg")

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_sample_images

from maxmargin.plots import filter_glyphs, part_weights, top_detections
from maxmargin.vision import HOGPatches, PartClassifier, ReducedPatches

SIDE, SHAPE = 96, 28
CLASSES = {"none": (), "rings": ("ring",), "crosses": ("cross",), "both": ("ring", "cross")}
N_PARTS = 8
ABOUT = """
The certificate is about the weights, for the filters that were found; about other filters nothing is proved. Nobody has
told what a ring or a cross looks like, nor where one is. Random patches are mostly of the background; selection finds
those that tell, among many; training makes them tell more.
"""
NEXT = """\
Next: a folder of photographs, one sub-folder per class, goes into PartClassifier().fit(folder) as it is, or from a
terminal: maxmargin train --task parts folder -o parts.mm"""


def shape(name, rng):
    """Where a shape is drawn, in a square of SHAPE pixels: a ring or a cross of about the same size and ink."""
    y, x = np.mgrid[:SHAPE, :SHAPE] - 0.5 * (SHAPE - 1)
    reach = rng.uniform(9.0, 11.0)
    if name == "ring":
        return np.abs(np.hypot(x, y) - reach) < 2.0
    return (np.minimum(np.abs(x + y), np.abs(x - y)) < 2.5) & (np.maximum(np.abs(x), np.abs(y)) < reach)


def photograph(name, scenes, rng):
    """A piece of a photograph with the shapes of its class, brighter or darker, each somewhere in its own quarter."""
    scene = scenes[rng.integers(len(scenes))]
    top, left = (rng.integers(0, side - SIDE) for side in scene.shape)
    image = scene[top : top + SIDE, left : left + SIDE].copy()
    quarters = rng.permutation(4)
    for kind, quarter in zip(CLASSES[name], quarters, strict=False):
        inside = rng.integers(0, SIDE // 2 - SHAPE + 1, 2) + np.array(divmod(quarter, 2)) * (SIDE // 2)
        place = image[inside[0] : inside[0] + SHAPE, inside[1] : inside[1] + SHAPE]
        away = rng.choice([-1.0, 1.0]) * rng.uniform(60.0, 110.0)
        place[shape(kind, rng)] = np.clip(place.mean() + away, 0.0, 255.0)
    return image.astype(np.uint8)


def photographs(n, seed):
    scenes = [photo.mean(axis=2) for photo in load_sample_images().images]
    rng = np.random.default_rng(seed)
    y = np.array(list(CLASSES) * n)
    return [photograph(name, scenes, rng) for name in y], y


def main():
    X, y = photographs(150, seed=0)
    X_test, y_test = photographs(100, seed=1)
    print(f"{len(X)} photographs of {len(CLASSES)} classes: {', '.join(CLASSES)}; {N_PARTS} parts.\n")
    patches = HOGPatches(size=5, cell=6, octave_scales=1, flips=False, color=False)
    models = {}
    for training in ("random", "selected", "joint"):
        begin = time.perf_counter()
        features = ReducedPatches(patches, 64)
        model = PartClassifier(N_PARTS, training, features=features, regions=(1,), C=1.0, random_state=0).fit(X, y)
        models[training] = model
        print(f"{training:9s} {100 * model.score(X_test, y_test):.1f} % right, {time.perf_counter() - begin:.1f} s")
        print(f"{'':9s} {model.certificate_}")
    print(ABOUT)
    joint = models["joint"]
    found = joint.compare("rings", "crosses")
    print(
        f"Parts that speak for rings rather than crosses: {found.positive.tolist()}, against: {found.negative.tolist()}"
    )

    shown = [*found.positive[:2].tolist(), *found.negative[:2].tolist()]
    figure = pyplot.figure(figsize=(13, 9.5), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 2.6])
    above, below = left.subfigures(2, 1, height_ratios=[1.2, 1])
    part_weights(joint, ax=above.subplots())
    filter_glyphs(joint, shown, columns=2, fig=below)
    two = {"selected": models["selected"], "trained": joint}
    top_detections(two, X_test, shown, n=8, labels=y_test, fig=right)
    right.suptitle("What parts respond to in new photographs, and the classes of these", fontsize=10)
    figure.savefig("parts.png", dpi=90)
    print("Picture: parts.png")
    print(NEXT)


if __name__ == "__main__":
    main()

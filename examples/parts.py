"""
Parts that nobody labelled
==========================

Rings and crosses are drawn somewhere into pieces of photographs. Labels say which kinds of shape an image has, but not
where, nor what a shape looks like. The classifier finds patches that tell the classes apart, and trains them further.
The photographs come with scikit-learn. This example takes about a minute.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_images

from maxmargin.plots import part_weights, top_detections
from maxmargin.vision import HOGPatches, PartClassifier, ReducedPatches

SIDE, SHAPE = 96, 28
CLASSES = {"none": (), "rings": ("ring",), "crosses": ("cross",), "both": ("ring", "cross")}
rng = np.random.default_rng(0)
scenes = [photograph.mean(axis=2) for photograph in load_sample_images().images]


def shape(name):
    """Where a shape is drawn, in a square of SHAPE pixels: a ring or a cross of about the same size and ink."""
    y, x = np.mgrid[:SHAPE, :SHAPE] - 0.5 * (SHAPE - 1)
    reach = rng.uniform(9.0, 11.0)
    if name == "ring":
        return np.abs(np.hypot(x, y) - reach) < 2.0
    return (np.minimum(np.abs(x + y), np.abs(x - y)) < 2.5) & (np.maximum(np.abs(x), np.abs(y)) < reach)


def photograph(name):
    """A piece of a photograph with the shapes of its class, brighter or darker, each somewhere in its own quarter."""
    scene = scenes[rng.integers(len(scenes))]
    top, left = (rng.integers(0, side - SIDE) for side in scene.shape)
    image = scene[top : top + SIDE, left : left + SIDE].copy()
    for kind, quarter in zip(CLASSES[name], rng.permutation(4), strict=False):
        y, x = rng.integers(0, SIDE // 2 - SHAPE + 1, 2) + np.array(divmod(quarter, 2)) * (SIDE // 2)
        place = image[y : y + SHAPE, x : x + SHAPE]
        away = rng.choice([-1.0, 1.0]) * rng.uniform(60.0, 110.0)
        place[shape(kind)] = np.clip(place.mean() + away, 0.0, 255.0)
    return image.astype(np.uint8)


y, y_test = np.array(list(CLASSES) * 100), np.array(list(CLASSES) * 50)
X, X_test = [photograph(name) for name in y], [photograph(name) for name in y_test]

# %%
# Eight parts, found in three ways. Random patches are mostly of the background; selection picks those that tell, among
# many; joint training makes them tell more. A certificate is about the weights, for the filters that were found; about
# other filters nothing is proved.

patches = HOGPatches(size=5, cell=6, octave_scales=1, flips=False, color=False)
for training in ("random", "selected", "joint"):
    begin = time.perf_counter()
    features = ReducedPatches(patches, 64)
    model = PartClassifier(8, training, features=features, regions=(1,), C=1.0, random_state=0).fit(X, y)
    print(f"{training:9s} {100 * model.score(X_test, y_test):.1f} % right, {time.perf_counter() - begin:.1f} s")
    print(f"{'':9s} {model.certificate_}")

# %%
# Where four of the trained parts respond most in new photographs, and the classes of these: two that speak for rings
# rather than crosses, and two that speak against.

found = model.compare("rings", "crosses")
shown = [*found.positive[:2].tolist(), *found.negative[:2].tolist()]
figure = plt.figure(figsize=(8, 5.6), layout="constrained")
top_detections(model, X_test, shown, n=6, labels=y_test, fig=figure)
plt.savefig("parts.png", dpi=110)

# %%
# All classes share the parts; what each makes of them are its weights.

part_weights(model)
plt.savefig("parts_weights.png", dpi=110)

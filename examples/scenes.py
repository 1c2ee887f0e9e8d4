"""
Scenes whose parts move about
=============================

A scene is a grid of regions, each a bag of visual words. A model with fixed places learns what each place looks like; a
reconfigurable one has a few region models and arranges them anew in every image, as latent variables. Only the second
can know a shore, whose land is now rock and now vegetation. Data is generated, no images are needed.
"""

import time

import matplotlib.pyplot as plt

from maxmargin.data.synthetic import scenes
from maxmargin.plots import confusion, labelled_regions
from maxmargin.vision import SceneClassifier

CLASSES = ("noise", "beach", "shore", "desert1", "desert2", "field", "riding")
GRID, PARTS = 8, 8
train, test = scenes(30, random_state=0), scenes(30, random_state=1)


def coarse(X):
    """Bags of words of a coarser grid: those of 4 × 4 regions together."""
    n, rows, columns, words = X.shape
    return X.reshape(n, GRID, rows // GRID, GRID, columns // GRID, words).sum(axis=(2, 4), dtype="uint32")


X, X_test = coarse(train.X), coarse(test.X)

# %%
# As in the thesis that this is from, learning begins with the true parts of the training scenes; left out, the parts
# come from EM. The first certificate is about the optimum itself, the second about the last convex bound of a problem
# that is not convex.

models = {}
for kind, name, parts in (
    ("sbow", "a model for each place", ()),
    ("rbow", f"{PARTS} models to arrange", (train.regions[:, 2::4, 2::4],)),
):
    begin = time.perf_counter()
    model = SceneClassifier(kind=kind, C=10.0, n_parts=PARTS, tol=2e-2, random_state=0).fit(X, train.y, *parts)
    models[kind] = model
    print(f"{name:24s} {100 * model.score(X_test, test.y):.1f} % right, {time.perf_counter() - begin:.1f} s")
    print(f"{'':24s} {model.certificate_}")

# %%
# Which region model was chosen where, in three new scenes: nobody labelled these.

figure, panels = plt.subplots(2, 3, figsize=(9, 6), layout="constrained")
for column, name in enumerate(("shore", "desert1", "riding")):
    shown = list(test.y).index(name)
    seen = models["rbow"].predict_regions(X_test[shown : shown + 1])[0]
    for panel, regions, what in ((panels[0, column], test.regions[shown], "truth"), (panels[1, column], seen, "seen")):
        labelled_regions(None, regions, ax=panel, names=test.parts).set_title(f"{name}: {what}", fontsize=10)
plt.savefig("scenes.png", dpi=110)

# %%
# Beach and shore are told apart only by models that can be exchanged. What tells moon from stars (desert1, desert2),
# and riders from walkers, is in the neighbours of a region: ``kind="rbow+"`` and ``"rbow++"`` look at these.

figure, panels = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained")
for panel, (kind, model) in zip(panels, models.items(), strict=True):
    confusion(test.y, model.predict(X_test), CLASSES, ax=panel, name=kind)
plt.savefig("scenes_confusion.png", dpi=110)

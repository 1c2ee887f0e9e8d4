"""Scenes whose parts move about: region models that are arranged anew in every image, against fixed ones.

python examples/scenes.py

Data is generated, no images are needed; writes scenes.png.
"""

import time

import matplotlib

matplotlib.use("agg")

from matplotlib import pyplot

from maxmargin.data.synthetic import scenes
from maxmargin.plots import confusion, labelled_regions
from maxmargin.vision import SceneClassifier

CLASSES = ("noise", "beach", "shore", "desert1", "desert2", "field", "riding")
SHOWN = ("shore", "desert1", "riding")
GRID, N_PARTS = 8, 8
ABOUT = """
The first certificate is about the optimum itself; the second about the last convex bound of a problem that is not
convex. Land is rock or vegetation in a shore, and their mean, sand, on a beach: only models that can be exchanged tell
the two apart. What tells moon from stars, and riders from walkers, is in the neighbours.
"""
NEXT = """\
Next: kind='rbow+' and 'rbow++' see neighbours (examples/papers/synthetic_scenes.py); a folder of photographs, one
sub-folder per class, goes into SceneClassifier().fit(folder) as it is (pip install 'maxmargin[vision]')."""


def coarse(X):
    """Bags of words of a coarser grid: those of 4 × 4 regions together."""
    n, rows, columns, words = X.shape
    return X.reshape(n, GRID, rows // GRID, GRID, columns // GRID, words).sum(axis=(2, 4), dtype="uint32")


def main():
    train, test = scenes(30, random_state=0), scenes(30, random_state=1)
    X, X_test = coarse(train.X), coarse(test.X)
    print(f"{len(X)} scenes of {len(CLASSES)} classes, {GRID}×{GRID} bags of words each.\n")
    # As in the thesis that this is from, learning begins with the true parts; without Z it would begin with EM.
    parts = train.regions[:, 2::4, 2::4]
    models = {}
    for kind, name in (("sbow", "a model for each region"), ("rbow", f"{N_PARTS} models to choose from")):
        begin = time.perf_counter()
        model = SceneClassifier(kind=kind, C=10.0, n_parts=N_PARTS, tol=2e-2, random_state=0).fit(X, train.y, parts)
        models[kind] = model
        print(f"{name:26s} {100 * model.score(X_test, test.y):.1f} % right, {time.perf_counter() - begin:.1f} s")
        print(f"{'':26s} {model.certificate_}")
    print(ABOUT)

    figure, panels = pyplot.subplots(2, 3, figsize=(15, 10), layout="constrained")
    for panel, (kind, model) in zip(panels[0, :2], models.items(), strict=True):
        confusion(test.y, model.predict(X_test), CLASSES, ax=panel, name=kind)
    first = list(test.y).index(SHOWN[0])
    labelled_regions(None, test.regions[first], ax=panels[0, 2], names=test.parts).set_title(f"{SHOWN[0]}: the truth")
    for panel, name in zip(panels[1], SHOWN, strict=True):
        first = list(test.y).index(name)
        regions = models["rbow"].predict_regions(X_test[first : first + 1])[0]
        labelled_regions(None, regions, ax=panel, names=test.parts).set_title(f"{name}: what was seen")
    figure.savefig("scenes.png", dpi=110)
    print("Picture: scenes.png")
    print(NEXT)


if __name__ == "__main__":
    main()

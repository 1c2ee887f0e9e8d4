"""Pictures cut into regions: a grid model that learns how much neighbours agree, against pixels on their own.

python examples/segmentation.py

Data is generated; writes segmentation.png.
"""

import matplotlib

matplotlib.use("agg")

import numpy as np
from matplotlib import pyplot

from maxmargin import StructuralSVM
from maxmargin.models import Graph, grid
from maxmargin.plots import convergence, segmentation

SIZE = 24


def pictures(rng, n):
    """A disc or a bar on a ground, in noise so strong that a single pixel says little."""
    row, column = np.mgrid[:SIZE, :SIZE]
    images, truths = [], []
    for _ in range(n):
        r, c = rng.uniform(6, SIZE - 6, size=2)
        radius = rng.uniform(4, 7)
        if rng.random() < 0.5:
            inside = (row - r) ** 2 + (column - c) ** 2 < radius**2
        else:
            inside = (abs(row - r) < radius / 2) & (abs(column - c) < 2 * radius)
        images.append(inside + 0.7 * rng.normal(size=(SIZE, SIZE)))
        truths.append(inside.astype(int))
    return images, truths


def as_graph(image):
    return grid(np.stack([image, np.ones_like(image)], axis=2))


def main():
    rng = np.random.default_rng(0)
    images, truths = pictures(rng, 30)
    test_images, test_truths = pictures(rng, 30)
    X, Y = [as_graph(image) for image in images], [truth.ravel() for truth in truths]
    X_test, Y_test = [as_graph(image) for image in test_images], [truth.ravel() for truth in test_truths]

    svm = StructuralSVM(Graph(symmetric=True, loss="normalized_hamming"), C=10.0, tol=1e-3, random_state=0).fit(X, Y)
    alone = [(nodes, edges[:0]) for nodes, edges, _ in X]  # the same pixels, without neighbours
    pixels = StructuralSVM(Graph(loss="normalized_hamming"), C=10.0, tol=1e-3, random_state=0).fit(alone, Y)
    print(f"{len(X)} pictures of {SIZE}×{SIZE} pixels. {svm.certificate_}")
    print("With two labels that would rather agree, a cut finds the best regions: the certificate is exact.\n")
    alone_test = [(nodes, edges[:0]) for nodes, edges, _ in X_test]
    print(f"pixels right, each on its own    {100 + 100 * pixels.score(alone_test, Y_test):.1f} %")
    print(f"pixels right, as regions         {100 + 100 * svm.score(X_test, Y_test):.1f} %")

    figure, panels = pyplot.subplots(2, 4, figsize=(14, 7), layout="constrained")
    for row, k in zip(panels[:, :2], (0, 1), strict=True):
        for panel, model, x, name in ((row[0], pixels, alone_test[k], "pixels"), (row[1], svm, X_test[k], "regions")):
            labels = model.predict([x])[0].reshape(SIZE, SIZE)
            segmentation(labels, test_images[k], ax=panel).set_title(name)
    for panel, k in zip(panels[:, 2], (0, 1), strict=True):
        segmentation(test_truths[k], ax=panel).set_title("truth")
    convergence(svm, ax=panels[:, 3], against="oracle_calls")
    figure.savefig("segmentation.png", dpi=110)
    print("\nPicture: segmentation.png")


if __name__ == "__main__":
    main()

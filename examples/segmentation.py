"""
Cutting pictures into regions
=============================

In strong noise a single pixel says little. A graph model over the grid of pixels learns two things at once: what the
pixels of a region look like, and how much neighbours agree. With two labels that would rather agree, a graph cut finds
the best regions, and the certificate is exact. Data is generated.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import StructuralSVM
from maxmargin.models import Graph, grid
from maxmargin.plots import segmentation

SIZE = 24
rng = np.random.default_rng(0)


def pictures(n):
    """A disc or a bar on a ground, in noise."""
    row, column = np.mgrid[:SIZE, :SIZE]
    images, truths = [], []
    for _ in range(n):
        r, c = rng.uniform(6, SIZE - 6, size=2)
        radius = rng.uniform(4, 7)
        disc = np.hypot(row - r, column - c) < radius
        bar = (abs(row - r) < radius / 2) & (abs(column - c) < 2 * radius)
        inside = disc if rng.random() < 0.5 else bar
        images.append(inside + 0.7 * rng.normal(size=(SIZE, SIZE)))
        truths.append(inside.astype(int))
    return images, truths


# %%
# ``grid`` turns an image with features for each pixel, here its brightness and a constant, into nodes and edges.
# Without the edges the same model looks at every pixel on its own.


def graphs(images, neighbours=True):
    found = [grid(np.stack([image, np.ones_like(image)], axis=2)) for image in images]
    return found if neighbours else [(nodes, edges[:0]) for nodes, edges, _ in found]


images, truths = pictures(30)
new_images, new_truths = pictures(30)
Y, Y_new = [truth.ravel() for truth in truths], [truth.ravel() for truth in new_truths]
answers = {}
for name, neighbours in (("each pixel on its own", False), ("with neighbours", True)):
    model = Graph(symmetric=neighbours, loss="normalized_hamming")
    svm = StructuralSVM(model, C=10.0, tol=1e-3, random_state=0).fit(graphs(images, neighbours), Y)
    X_new = graphs(new_images, neighbours)
    answers[name] = svm.predict(X_new[:3])
    print(f"{name:22s} {100 + 100 * svm.score(X_new, Y_new):.1f} % of pixels right, {svm.certificate_}")

# %%
# Three new pictures.

figure, panels = plt.subplots(3, 4, figsize=(8, 6.2), layout="constrained")
for k, row in enumerate(panels):
    row[0].imshow(new_images[k], cmap="gray")
    row[0].set(xticks=[], yticks=[])
    for panel, labels in zip(row[1:], (*(found[k] for found in answers.values()), new_truths[k]), strict=True):
        segmentation(np.reshape(labels, (SIZE, SIZE)), new_images[k], ax=panel, opacity=0.6)
for panel, name in zip(panels[0], ("picture", *answers, "truth"), strict=True):
    panel.set_title(name, fontsize=10)
plt.savefig("segmentation.png", dpi=110)

"""Pets cut out of 1 000 photographs: seconds, what is certified, and the share of pixels that are right.

    python benchmarks/segmentation.py [--figure pets.png]

Reads pets_seg64_1200.npz from MAXMARGIN_DATA. The table goes to results/segmentation.md; the figure, which shows some
of the photographs, wherever it is wanted.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from datasets import folder
from report import environment_text, markdown_table
from results import FOLDER, environment

import maxmargin as mm
from maxmargin.models import Segmentation2D
from maxmargin.plots import segmentation

_TRAINING = 1000
_BINS = 4  # of each colour
_SHOWN = (3, 10, 29, 41, 58)


class Setting(NamedTuple):
    name: str
    labels: int
    model: Segmentation2D


def settings() -> list[Setting]:
    def model(cell: int, inference: str = "auto") -> Segmentation2D:
        return Segmentation2D(cell=cell, inference=inference, loss="normalized_hamming")

    return [
        Setting("cells of 4, by default", 2, model(4)),
        Setting("cells of 4, expansion moves", 2, model(4, "expansion")),
        Setting("cells of 2, by default", 2, model(2)),
        Setting("cells of 4, three labels, by default", 3, model(4)),
        Setting("cells of 4, three labels, expansion moves", 3, model(4, "expansion")),
    ]


def features(picture: np.ndarray) -> np.ndarray:
    """Of each pixel: its colour, also as one of 64 bins, and its place up to squares."""
    height, width, _ = picture.shape
    colour = picture / 255.0
    bins = np.minimum((colour * _BINS).astype(int), _BINS - 1) @ _BINS ** np.arange(3)
    r, c = np.mgrid[:height, :width] / (height - 1.0) - 0.5
    place = np.stack([r, c, r * r, c * c, r * c], axis=2)
    return np.concatenate([colour, place, np.eye(_BINS**3)[bins]], axis=2).astype(np.float16)


def pets() -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """Photographs, and labels: the pet with its border or not; and pet, ground, border."""
    with np.load(folder() / "pets_seg64_1200.npz") as archive:
        trimap = archive["trimap"].astype(int)
        return archive["rgb"], {2: (trimap != 2).astype(int), 3: trimap - 1}


def draw(path: str, pictures: np.ndarray, answers: np.ndarray, truth: np.ndarray) -> None:
    figure, panels = plt.subplots(3, len(_SHOWN), figsize=(8, 4.9), layout="constrained")
    for column, k in zip(panels.T, _SHOWN, strict=True):
        column[0].imshow(pictures[k])
        for panel, labels in zip(column[1:], (answers[k], truth[k]), strict=True):
            segmentation(labels, pictures[k], ax=panel, opacity=0.6)
        for panel in column:
            panel.set(xticks=[], yticks=[])
    for panel, name in zip(panels[:, 0], ("picture", "answer", "truth"), strict=True):
        panel.set_ylabel(name)
    figure.savefig(path, dpi=100)


_INTRODUCTION = f"""\
# Pets cut out of photographs

Photographs of cats and dogs (Oxford-IIIT Pet), 64 × 64 pixels, {_TRAINING} to train on, 200 others to test. Two labels:
the pet with its border, or not; three: pet, ground, border. `StructuralSVM(Segmentation2D(cell=…), C=1, tol=1e-2)` on
colours and places of pixels, one thread; CPU seconds of `fit`. Right: pixels of the test pictures.
`python benchmarks/segmentation.py`.

"""


def row(setting: Setting, X: list[Any], Y: np.ndarray) -> tuple[list[str], np.ndarray]:
    start = time.process_time()
    svm = mm.StructuralSVM(setting.model, C=1.0, tol=1e-2, max_passes=100, random_state=0)
    svm.fit(X[:_TRAINING], list(Y[:_TRAINING]))
    seconds = time.process_time() - start
    answers, found = np.array(svm.predict(X[_TRAINING:])), svm.certificate_
    gap = f"{found.relative_gap:.1e}" if found.exact else "none certified"
    right = f"{100 * np.mean(answers == Y[_TRAINING:]):.1f} %"
    return [setting.name, f"{seconds:.0f} s", gap, right], answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", help="a file for pictures, answers and truths")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    pictures, labels = pets()
    X = [features(picture) for picture in pictures]
    mm.StructuralSVM(Segmentation2D(cell=8)).fit(X[:5], list(labels[3][:5]))  # compiles
    rows = []
    for setting in settings():
        cells, answers = row(setting, X, labels[setting.labels])
        rows.append(cells)
        print("  ".join(cells), flush=True)
        if len(rows) == 1 and args.figure:
            draw(args.figure, pictures[_TRAINING:], answers, labels[2][_TRAINING:])
    most = {k: f"{100 * np.mean(Y[_TRAINING:] == np.bincount(Y.ravel()).argmax()):.1f} %" for k, Y in labels.items()}
    rows += [[f"the most frequent of {k} labels everywhere", "", "", share] for k, share in most.items()]
    text = _INTRODUCTION + environment_text(environment()) + "\n" + markdown_table(["", "fit", "gap", "right"], rows)
    (FOLDER / "segmentation.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

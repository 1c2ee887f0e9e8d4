"""Measurements on images of scenes, in a process of its own; those that are compared take turns."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from own_process import answer

from maxmargin.inference import cuts
from maxmargin.models import grid
from maxmargin.vision import DenseSIFT, ImageFolder, SceneClassifier, WordHistograms, read_image
from maxmargin.vision.features.extraction import over_images
from maxmargin.vision.models.grids import GridSearch
from maxmargin.vision.synthetic import scenes

WORDS, PRICE = 200, 2.0


def in_turns(works: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Seconds of the processor, turn by turn: all share the machine's good and bad minutes. The first turn is lost."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(repeats + 1):
        for name, work in works.items():
            begin = time.process_time()
            work()
            if turn:
                seconds[name].append(time.process_time() - begin)
    return seconds


def some_images(folder: str, n: int) -> list[np.ndarray]:
    paths = ImageFolder(f"{folder}/train").paths
    return [read_image(paths[i]) for i in np.linspace(0, len(paths) - 1, n).astype(int)]


def sift(folder: str, images: int, repeats: int) -> dict[str, Any]:
    """Descriptors of the same patches, 16 pixels wide, on the same grids."""
    import cv2

    cv2.setNumThreads(1)
    pictures, ours = some_images(folder, images), DenseSIFT(step=4, scales=(1.0,))
    theirs = cv2.SIFT_create(sigma=0.8)  # OpenCV's own 1.6 blurs more, and takes longer
    # In OpenCV the window of a descriptor is six times the size of its keypoint.
    keypoints = []
    for picture in pictures:
        found = ours.describe(picture)
        keypoints.append([cv2.KeyPoint(x - 0.5, y - 0.5, 16 / 6, 0.0) for x, y in zip(found.x, found.y, strict=True)])
    works = {
        "maxmargin": lambda: [ours.describe(picture) for picture in pictures],
        "OpenCV": lambda: [theirs.compute(picture, k) for picture, k in zip(pictures, keypoints, strict=True)],
    }
    patches = sum(len(k) for k in keypoints)
    return {"images": images, "patches": patches, "opencv": cv2.__version__, "seconds": in_turns(works, repeats)}


def words(folder: str, images: int, repeats: int) -> dict[str, Any]:
    """The nearest word of each descriptor, and all from an image to histograms."""
    from sklearn.metrics import pairwise_distances_argmin

    pictures = some_images(folder, images)
    made = WordHistograms(4, WORDS, n_sampled=20_000, max_iter=10).fit(pictures)
    values = [made.sift.describe(picture).values for picture in pictures]
    vocabulary = made.vocabulary_
    works = {
        "maxmargin": lambda: [made._vocabulary.assign(value) for value in values],
        "scikit-learn": lambda: [pairwise_distances_argmin(value, vocabulary) for value in values],
        "histograms": lambda: [made.histogram(picture) for picture in pictures],
    }
    return {"images": images, "words": WORDS, "seconds": in_turns(works, repeats)}


def learning(folder: str, images: int | None, cache: str, threads: int, repeats: int) -> dict[str, Any]:
    """A discriminative RBoW from EM, on histograms: seconds by the clock on the wall, since threads work at a time."""
    parts = {}
    made = WordHistograms(4, WORDS)
    for name in ("train", "test"):
        listed = ImageFolder(f"{folder}/{name}")
        taken = slice(None, None, 1 if images is None else -(-len(listed.paths) // images))
        paths, y = list(listed.paths)[taken], np.asarray(listed.labels)[taken]
        if name == "train":
            made.fit(paths, n_jobs=threads)
        parts[name] = over_images(paths, made, settings=made.settings(), cache=cache, n_jobs=threads)[0].astype("u2"), y
    settings: dict[str, Any] = {"kind": "rbow", "C": PRICE, "n_jobs": threads, "random_state": 0}
    (X, y), (X_test, y_test) = parts["train"], parts["test"]
    few = np.concatenate([np.flatnonzero(y == name)[:2] for name in np.unique(y)])
    SceneClassifier(**settings).fit(X[few], y[few])  # compiled code is loaded before the clock starts
    begin = time.perf_counter()
    model = SceneClassifier(**settings).fit(X, y)
    seconds = time.perf_counter() - begin
    predicted = model.predict(X_test)
    return {
        "images": len(X), "tested": len(X_test), "classes": len(model.classes_), "threads": threads, "C": PRICE,
        "fit": seconds,
        "gap": model.certificate_.relative_gap,
        "mean_diagonal": float(np.mean([np.mean(predicted[y_test == k] == k) for k in model.classes_])),
        "seconds": in_turns({"predict": lambda: model.predict(X_test)}, repeats),
    }  # fmt: skip


def grids(grids: int, repeats: int) -> dict[str, Any]:
    """Labels of 32 × 32 regions, 8 labels, in noise, with regular tables; both start from each region's best label."""
    rng = np.random.default_rng(0)
    truth = scenes(1, random_state=0).regions[:grids].reshape(grids, -1)
    n_labels, side = 8, 32
    unary = rng.normal(size=(grids, side * side, n_labels)) + 1.5 * np.eye(n_labels)[truth]
    horizontal, vertical = (rng.normal(scale=0.2, size=(n_labels, n_labels)) for _ in range(2))
    tables = [(t - t.T) / 2 + 1.0 * np.eye(n_labels) for t in (horizontal, vertical)]
    _, edges = grid(np.zeros((side, side, 1)), directions=False)
    each = np.concatenate([np.repeat(t[None], len(edges) // 2, axis=0) for t in tables])
    network = cuts.Network(side * side, edges)
    search = GridSearch(side, side, n_labels)
    works = {
        "maxmargin": lambda: search.best(unary, *tables),
        "inference.cuts.swap": lambda: [cuts.swap(u, each, network) for u in unary],
    }
    ours, theirs = works["maxmargin"]()[1], [score for _, score in works["inference.cuts.swap"]()]
    return {
        "grids": grids,
        "score": float(np.mean(ours)),
        "peer_score": float(np.mean(theirs)),
        "seconds": in_turns(works, repeats),
    }


if __name__ == "__main__":
    answer({"sift": sift, "words": words, "learning": learning, "grids": grids})

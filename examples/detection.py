"""Faces among masks: a detector with movable parts, and one with parts that speak against the object.

python examples/detection.py

Drawn faces lie somewhere in two photographs that come with scikit-learn, large or small; masks have the same outline
and mouth, but crosses for eyes. Writes detection.png.
"""

import time

import matplotlib

matplotlib.use("agg")

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_sample_images

from maxmargin.plots import detected, precision_recall_curves
from maxmargin.vision import DeformablePartDetector

HEIGHT, WIDTH = 120, 160
MODELS = {
    "root alone": {"n_parts": 0},
    "4 parts": {"n_parts": 4},
    "2 parts, 2 negative": {"n_parts": 2, "n_negative_parts": 2},
}
ABOUT = """
A certificate covers every window of every training image, not only the hard ones that were kept: it bounds the best
value of the last convex bound, which lies above the objective. It is no claim that no other parts would be better.
"""
NEXT = """\
Next: photographs of yours, with boxes as arrays, a CSV table, COCO or VOC files, go into
DeformablePartDetector().fit(images, boxes); see docs/detection.md."""


def drawn(size, mask, rng):
    """Brightness of a face in a square of ``size`` pixels, and where it covers what is behind it."""
    y, x = (np.mgrid[:size, :size] + 0.5) / size - 0.5
    inside = np.hypot(x, y) < 0.48
    face = np.where(np.hypot(x, y) < 0.42, rng.uniform(120, 200), 70.0)
    for side in (-1, 1):
        dx, dy = x - side * 0.19 - rng.uniform(-0.06, 0.06), y + 0.1 - rng.uniform(-0.08, 0.08)
        if mask:
            eye = (np.minimum(np.abs(dx + dy), np.abs(dx - dy)) < 0.03) & (np.maximum(np.abs(dx), np.abs(dy)) < 0.08)
        else:
            eye = np.hypot(dx, dy) < 0.075
        face[eye] = 70.0
    dx, dy = x - rng.normal(scale=0.04), y - 0.2 - rng.normal(scale=0.02)
    face[(np.abs(dx) < 0.16) & (np.abs(dy) < 0.03)] = 70.0
    return face, inside


def picture(scenes, masks, rng):
    """A piece of a photograph with a face in one half of it, or no face, and perhaps a mask in the other; its boxes."""
    scene = scenes[rng.integers(len(scenes))]
    top, left = rng.integers(0, scene.shape[0] - HEIGHT), rng.integers(0, scene.shape[1] - WIDTH)
    image = scene[top : top + HEIGHT, left : left + WIDTH].copy()
    boxes = []
    for mask, half in zip(masks, rng.permutation(2), strict=False):
        size = int(rng.integers(44, 76))
        y, x = rng.integers(0, HEIGHT - size + 1), rng.integers(0, WIDTH // 2 - size + 1) + half * (WIDTH // 2)
        face, inside = drawn(size, mask, rng)
        place = image[y : y + size, x : x + size]
        place[inside] = face[inside]
        if not mask:
            boxes.append([x, y, x + size, y + size])
    image += rng.normal(scale=18.0, size=image.shape)
    return image.clip(0, 255).astype(np.uint8), np.reshape(boxes, (-1, 4)).astype(float)


def pictures(n, seed):
    scenes = [photo.mean(axis=2) for photo in load_sample_images().images]
    rng = np.random.default_rng(seed)
    kinds = [(False,), (False, True), (True,), ()]  # in turns: a face, a face and a mask, a mask, nothing
    found = [picture(scenes, kinds[i % len(kinds)], rng) for i in range(n)]
    return [image for image, _ in found], [boxes for _, boxes in found]


def main():
    images, boxes = pictures(60, seed=0)
    new_images, new_boxes = pictures(160, seed=1)
    print(f"{len(images)} pictures with {sum(map(len, boxes))} faces in them; {len(new_images)} new ones to search.\n")
    curves, detectors = {}, {}
    for name, parts in MODELS.items():
        begin = time.perf_counter()
        detector = DeformablePartDetector(**parts, part_size=4, C=0.1, flips=False, random_state=0).fit(images, boxes)
        seconds = time.perf_counter() - begin
        curves[name], detectors[name] = detector.precision_recall(new_images, new_boxes), detector
        print(f"{name:20s} average precision {curves[name].average_precision:.3f}, {seconds:.1f} s")
        print(f"{'':20s} {detector.certificate_}")
    print(ABOUT)

    figure, axes = pyplot.subplots(2, 3, figsize=(13, 7.5), layout="constrained")
    precision_recall_curves(curves, ax=axes[0, 0])
    for place, i in zip(axes.flat[1:], range(5), strict=True):
        found = detectors["2 parts, 2 negative"].detect(new_images[i])
        detected(new_images[i], found, ax=place)
    figure.savefig("detection.png", dpi=90)
    print("Picture: detection.png")
    print(NEXT)


if __name__ == "__main__":
    main()

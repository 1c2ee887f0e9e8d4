"""
Faces among masks
=================

Where is the face? A detector of movable parts searches every window of an image at every size. Masks have the outline
and the mouth of faces, but crosses for eyes, so that it takes parts to tell the two apart; some parts may speak against
an object. Faces and masks are drawn into photographs that come with scikit-learn.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_images

from maxmargin.plots import detected, precision_recall_curves
from maxmargin.vision import DeformablePartDetector

HEIGHT, WIDTH = 120, 160
rng = np.random.default_rng(0)
scenes = [photograph.mean(axis=2) for photograph in load_sample_images().images]


def drawn(size, mask):
    """Brightness of a face in a square of ``size`` pixels, and where it covers what is behind it."""
    y, x = (np.mgrid[:size, :size] + 0.5) / size - 0.5
    face = np.where(np.hypot(x, y) < 0.42, rng.uniform(120, 200), 70.0)
    for side in (-1, 1):
        dx, dy = x - side * 0.19 - rng.uniform(-0.06, 0.06), y + 0.1 - rng.uniform(-0.08, 0.08)
        cross = (np.minimum(np.abs(dx + dy), np.abs(dx - dy)) < 0.03) & (np.maximum(np.abs(dx), np.abs(dy)) < 0.08)
        face[cross if mask else np.hypot(dx, dy) < 0.075] = 70.0
    dx, dy = x - rng.normal(scale=0.04), y - 0.2 - rng.normal(scale=0.02)
    face[(np.abs(dx) < 0.16) & (np.abs(dy) < 0.03)] = 70.0
    return face, np.hypot(x, y) < 0.48


def picture(masks):
    """A piece of a photograph with one thing in each half of it, at most: a face or a mask; and the boxes of faces."""
    scene = scenes[rng.integers(len(scenes))]
    top, left = rng.integers(0, scene.shape[0] - HEIGHT), rng.integers(0, scene.shape[1] - WIDTH)
    image, boxes = scene[top : top + HEIGHT, left : left + WIDTH].copy(), []
    for mask, half in zip(masks, rng.permutation(2), strict=False):
        size = int(rng.integers(44, 76))
        y, x = rng.integers(0, HEIGHT - size + 1), rng.integers(0, WIDTH // 2 - size + 1) + half * (WIDTH // 2)
        face, inside = drawn(size, mask)
        image[y : y + size, x : x + size][inside] = face[inside]
        if not mask:
            boxes.append([x, y, x + size, y + size])
    image += rng.normal(scale=18.0, size=image.shape)
    return image.clip(0, 255).astype(np.uint8), np.reshape(boxes, (-1, 4)).astype(float)


def pictures(n):
    """In turns: a face, a face and a mask, a mask, nothing."""
    found = [picture([(False,), (False, True), (True,), ()][i % 4]) for i in range(n)]
    return [image for image, _ in found], [boxes for _, boxes in found]


images, boxes = pictures(40)
new_images, new_boxes = pictures(100)

# %%
# Forty pictures with twenty faces. A certificate covers every window of every training image, not only the hard ones
# that were kept; it bounds the best value of the last convex bound, and claims nothing about other places of parts.

curves = {}
for name, parts in {"root alone": {"n_parts": 0}, "with parts": {"n_parts": 2, "n_negative_parts": 2}}.items():
    begin = time.perf_counter()
    detector = DeformablePartDetector(**parts, part_size=4, C=0.1, flips=False, random_state=0).fit(images, boxes)
    seconds = time.perf_counter() - begin
    curves[name] = detector.precision_recall(new_images, new_boxes)
    print(f"{name}: average precision {curves[name].average_precision:.3f}, {seconds:.1f} s")
    print(f"            {detector.certificate_}")

# %%
# What the detector with parts finds in new pictures: faces in yellow, its parts in blue, and with broken lines those
# that would have spoken against a face.

figure, panels = plt.subplots(2, 2, figsize=(8, 6.2), layout="constrained")
for panel, i in zip(panels.flat, (0, 1, 5, 2), strict=True):
    detected(new_images[i], detector.detect(new_images[i]), ax=panel)
    if panel.get_legend():
        panel.get_legend().remove()
plt.savefig("detection.png", dpi=110)

# %%
# Over all new pictures: how many of the boxes are right, against how many of the faces were found.

precision_recall_curves(curves)
plt.savefig("detection_curves.png", dpi=110)

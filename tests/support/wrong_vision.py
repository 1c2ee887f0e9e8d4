"""Wrong calls about images: folders, files, boxes, and the settings of what learns from them."""

import numpy as np
from sklearn.exceptions import NotFittedError
from wrong_call import Wrong, X

from maxmargin.vision import (
    DeformablePartDetector,
    HOGPatches,
    ImageError,
    ImageFolder,
    PartClassifier,
    SceneClassifier,
    read_image,
)

IMAGE = np.random.default_rng(0).integers(0, 255, size=(64, 64, 3)).astype(np.uint8)
IMAGES = [IMAGE, IMAGE[::-1].copy()]
REGIONS = np.random.default_rng(0).random((4, 2, 2, 3))
BOXES = [[(4, 4, 40, 40)]] * 2


def scenes(X=REGIONS, y=(0, 1) * 2, **settings):
    return lambda _: SceneClassifier(**settings).fit(X, None if y is None else list(y))


def parts(**settings):
    return lambda _: PartClassifier(2, **settings).fit(IMAGES, [0, 1])


def detect(boxes, **settings):
    return lambda _: DeformablePartDetector(**settings).fit(IMAGES, boxes)


def no_image(folder):
    (folder / "a.jpg").write_text("not an image")
    read_image(folder / "a.jpg")


def no_classes(folder):
    SceneClassifier().fit(folder)


CASES = [
    Wrong("no folder", "no", lambda t: SceneClassifier().fit(t / "no"), ImageError, "a folder that exists", "one sub-folder per class"),
    Wrong("folder without classes", "sub-folder", no_classes, ImageError, "no sub-folders", "Move the images"),
    Wrong("folder None", "path", lambda _: ImageFolder(None), ImageError, "got None", "one sub-folder per class"),
    Wrong("no image", "a.jpg", no_image, ImageError, "is not an image", "PNG or JPEG"),
    Wrong("image missing", "no.jpg", lambda t: read_image(t / "no.jpg"), ImageError, "does not exist", "another folder"),
    Wrong("image a folder", "folder", lambda t: read_image(t), ImageError, "is no file, but a folder", "list_images"),
    Wrong("image None", "image", lambda _: read_image(None), ImageError, "got NoneType", "a path, an array"),
    Wrong("one image", "X", scenes(IMAGE, [0]), ValueError, "one image in colour", r"\[image\]"),
    Wrong("images as floats", "images", scenes([IMAGE / 255.0] * 2, [0, 1]), ValueError, "got float64", "astype"),
    Wrong("a matrix", "X", scenes(X, [0, 1] * 10), ValueError, r"shape \(20, 3\)", r"\(n, height, width\)"),
    Wrong("no labels", "y", scenes(IMAGES, None), ValueError, "y is missing", "one class for each image"),
    Wrong("fewer labels", "y", scenes(IMAGES, [0]), ValueError, r"y has shape \(1,\)", "one entry for each image"),
    Wrong("one class", "classes", scenes(IMAGES, [0, 0]), ValueError, "got 0 alone", "at least 2 classes"),
    Wrong("kind", "kind", scenes(kind="rbw"), ValueError, "got 'rbw'", "meant 'rbow'"),
    Wrong("scene bound", "bound", scenes(bound="gmme"), ValueError, "got 'gmme'", "meant 'gmm'"),
    Wrong("scene cache", "cache", scenes(cache=5), ValueError, "got 5", "path of a folder"),
    Wrong("temperature", "temperature", scenes(temperature=0.5), ValueError, r"got 0\.5", "at least 1"),
    Wrong("forgotten fit", "fit", lambda _: SceneClassifier().predict(IMAGES), NotFittedError, "not fitted", "Call 'fit'"),
    Wrong("patches class", "features", parts(features=HOGPatches), ValueError, "class HOGPatches", r"HOGPatches\(…\)"),
    Wrong("pool", "pool_size", parts(pool_size=1), ValueError, "got 1", "at least n_parts=2"),
    Wrong("keep", "keep", parts(keep=2), ValueError, "got 2", "at most 1"),
    Wrong("regions", "regions", parts(regions="x"), ValueError, "got 'x'", r"such as \(1, 2\)"),
    Wrong("box outside", "boxes", detect([[(100, 100, 140, 140)]] * 2), ValueError, "64 × 64 pixels", "x and y swapped"),
    Wrong("no boxes", "boxes", detect(None), ValueError, "boxes is missing", "a COCO file"),
    Wrong("boxes nowhere", "boxes", detect("no.csv"), ValueError, "no.csv do not exist", "another folder"),
    Wrong("components", "n_components", detect(BOXES, n_components=0), ValueError, "got 0", "at least 1"),
    Wrong("overlap", "overlap", detect(BOXES, overlap=2), ValueError, "got 2", "at most 1"),
    Wrong("other detectors", "negative_parts_from", detect(BOXES, negative_parts_from=3), ValueError, "got int", "fitted detectors"),
    Wrong("detect before fit", "fit", lambda _: DeformablePartDetector().detect(IMAGE), NotFittedError, "not fitted", "Call 'fit'"),
]  # fmt: skip

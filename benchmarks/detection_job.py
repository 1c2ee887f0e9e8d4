"""Measurements of detectors on photographs of cats, in a process of its own; those that are compared take turns."""

import copy
import csv
import functools
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from own_process import answer
from resident import resident_peak
from scenes_job import in_turns

from maxmargin.vision import DeformablePartDetector, read_image
from maxmargin.vision.detection.correlation import Correlator
from maxmargin.vision.features.cell_pyramid import Grid
from maxmargin.vision.kernels.distance_transform import spread

PRICE, DLIB_PRICE = 0.01, 5.0
N_PARTS = 6
MAPS = (60, 120)  # sides of maps whose distances are transformed


class Cats:
    """Photographs and heads of one breed, and photographs of others, from both halves in the order of their names."""

    def __init__(self, folder: str, boxes: str, breed: str) -> None:
        there = {path.stem: str(path) for path in Path(folder).glob("*.jpg")}
        with open(boxes, newline="") as lines:
            rows = {row["name"]: row for row in csv.DictReader(lines) if row["name"] in there}
        self.path = there
        self.box = {n: [[float(row[k]) for k in ("xmin", "ymin", "xmax", "ymax")]] for n, row in rows.items()}
        names = sorted(rows)
        self.own = [n for n in names if n.rpartition("_")[0] == breed]
        self.others = [n for n in names if n.rpartition("_")[0] != breed]

    def training(self, n_own: int, n_others: int) -> tuple[list[str], list[Any]]:
        """Every second image of the breed, and some of the others."""
        own, others = _evenly(self.own[0::2], n_own), _evenly(self.others[0::2], n_others)
        return [self.path[n] for n in own + others], [self.box[n] for n in own] + [None] * len(others)

    def unseen(self, n: int) -> list[np.ndarray]:
        names = _evenly(self.own[1::2] + self.others[1::2], n)
        return [read_image(self.path[name], color=True) for name in names]


def _evenly(names: list[str], n: int) -> list[str]:
    return [names[i] for i in np.linspace(0, len(names) - 1, min(n, len(names))).round().astype(int)]


def _dlib() -> Any:
    """The peer, or None where it is not installed."""
    try:
        import dlib
    except ImportError:
        return None
    return dlib


def _ours(data: tuple[list[str], list[Any]], n_parts: int) -> DeformablePartDetector:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # boxes that no root fits, which are counted, and bounds that are left
        return DeformablePartDetector(n_parts=n_parts, C=PRICE, random_state=0, n_jobs=1).fit(*data)


def _enlarged_twice(detector: DeformablePartDetector) -> DeformablePartDetector:
    """The same detector, on images that are enlarged twice."""
    other = copy.copy(detector)
    other.grid_ = replace(detector.grid_, finest=2.0)
    return other


def _theirs(dlib: Any, data: tuple[list[str], list[Any]]) -> Any:
    options = dlib.simple_object_detector_training_options()
    options.C, options.num_threads, options.add_left_right_image_flips = DLIB_PRICE, 1, True
    images = [read_image(path, color=True) for path in data[0]]
    boxes = [[dlib.rectangle(*(round(side) for side in box)) for box in some or ()] for some in data[1]]
    return dlib.train_simple_object_detector(images, boxes, options)


def detection(folder: str, boxes: str, breed: str, images: int, repeats: int) -> dict[str, Any]:
    """Images a second, from pixels to boxes; what is searched for is learned from few images."""
    cats = Cats(folder, boxes, breed)
    few, pictures = cats.training(16, 16), cats.unseen(images)
    ours = {"parts": _ours(few, N_PARTS), "root": _ours(few, 0)}
    ours |= {f"{name}, twice": _enlarged_twice(made) for name, made in ours.items()}  # as dlib looks at images
    works = {name: functools.partial(made.predict, pictures) for name, made in ours.items()}
    dlib = _dlib()
    if dlib is not None:
        theirs = _theirs(dlib, few)
        works["dlib"] = lambda: [theirs(picture, 1) for picture in pictures]
        works["dlib, as it is"] = lambda: [theirs(picture, 0) for picture in pictures]
    shape = {
        name: {
            "rows": made.star_.components[0].rows,
            "columns": made.star_.components[0].columns,
            "finest": float(made.grid_.finest),
            "levels": len(made.grid_.frames(*pictures[0].shape[:2])),
        }
        for name, made in ours.items()
    }
    return {
        "images": len(pictures), "n_parts": N_PARTS, "dlib": None if dlib is None else dlib.__version__,
        "shape": shape, "seconds": in_turns(works, repeats),
    }  # fmt: skip


def training(folder: str, boxes: str, breed: str, own: int, others: int, side: str) -> dict[str, Any]:
    """Seconds by the clock on the wall, one thread, and the peak of memory of the whole process."""
    cats = Cats(folder, boxes, breed)
    data = cats.training(own, others)
    found: dict[str, Any] = {"images": len(data[0]), "own": len(data[0]) - data[1].count(None)}
    dlib = _dlib()
    if side == "dlib":
        if dlib is None:
            return found | {"seconds": None}
        before = resident_peak(reset=True)
        begin = time.perf_counter()
        _theirs(dlib, data)
    else:
        n_parts = N_PARTS if side == "parts" else 0
        _ours(cats.training(4, 4), n_parts)  # compiled code is loaded before the clock starts
        before = resident_peak(reset=True)
        begin = time.perf_counter()
        made = _ours(data, n_parts)
        found |= {"gap": made.certificate_.relative_gap, "bounds": made.n_bounds_, "passes": made.n_passes_}
    return found | {"seconds": time.perf_counter() - begin, "before": before, "peak": resident_peak()}


def pieces(folder: str, boxes: str, breed: str, images: int, repeats: int) -> dict[str, Any]:
    """What detection is made of: pyramids of cells, filters on them, and the best places of parts around anchors."""
    pictures = Cats(folder, boxes, breed).unseen(images)
    rng = np.random.default_rng(0)
    grid = Grid(finest=1.5, least=(8, 8), pad=(3, 3))
    works: dict[str, Any] = {
        "pyramids, coarse and fine cells": lambda: [grid.pyramid(picture) for picture in pictures],
        "pyramids, coarse cells": lambda: [grid.pyramid(picture, False) for picture in pictures],
    }
    levels = [level for picture in pictures for level in grid.pyramid(picture)]
    for text, cells, shapes in (
        ("1 root of 8 × 8", [level.coarse for level in levels], [(8, 8)]),
        ("6 parts of 6 × 6", [level.fine for level in levels], [(6, 6)] * 6),
        ("48 parts of 6 × 6", [level.fine for level in levels], [(6, 6)] * 48),
    ):
        filters = [rng.normal(size=(*shape, 32)).astype(np.float32) for shape in shapes]
        correlator = Correlator(filters)
        works[f"filters: {text}"] = lambda made=correlator, grids=cells: [made(some) for some in grids]
    cost = np.array([0.01, 0.0, 0.01, 0.0])  # about what detectors learn
    maps = {}
    for size in MAPS:
        scores = rng.normal(size=(100, size, size)).astype(np.float32)
        for step in (1, 2):
            shape = (size // step, size // step)
            best, y, x = np.empty(shape, np.float32), np.empty(shape, np.int16), np.empty(shape, np.int16)
            name = f"distance transform, {size} × {size}, an anchor at every {'second ' * (step == 2)}cell of a side"
            maps[name] = scores.size
            works[name] = lambda scores=scores, step=step, best=best, y=y, x=x: [
                spread(some, cost, 0, 0, step, best, y, x) for some in scores
            ]
    return {"images": len(pictures), "maps": maps, "seconds": in_turns(works, repeats)}


def libraries() -> dict[str, Any]:
    """The linear algebra behind the products, and its threads."""
    from threadpoolctl import threadpool_info

    Correlator([np.ones((1, 1, 1))])(np.ones((2, 2, 1), np.float32))
    used = [f"{one['internal_api']} {one['version']}, {one['num_threads']} thread" for one in threadpool_info()]
    return {"used": sorted(set(used))}


if __name__ == "__main__":
    answer({"detection": detection, "training": training, "pieces": pieces, "libraries": libraries})

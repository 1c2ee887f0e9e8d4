"""Joint training of parts at the size of the published experiments, on generated features.

    python benchmarks/parts_scale.py [--device cuda] [--n-jobs 8] [--memory MiB] [--images-per-class 80] …

By default as much as Naderi Parizi, chapter 3, has of MIT Indoor: 67 classes of 80 images, 1200 patches of 60
dimensions each, 372 parts in 5 regions. A patch is noise, and some patches of an image also show one of a few
prototypes: some of these are drawn from those of its class, the others from all. Beyond NumPy this needs what
maxmargin's solvers import (numba, SciPy, threadpoolctl), and PyTorch for devices other than the CPU; no data set.
"""

import argparse
import sys
import threading
import time
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
from resident import resident_peak

from maxmargin.vision.parts.joint import JointRecord, JointSettings, JointTraining, Trained, memory_for_rivals
from maxmargin.vision.parts.patches import Patches
from maxmargin.vision.parts.pool import Whitening, random_parts
from maxmargin.vision.parts.responses import Placed, Pooling, Responder, respond_all, responder_for, responses_of

POOLING = Pooling((1, 2))
PROTOTYPES = 200
OF_A_CLASS = 12  # prototypes that are likely in a class, some of them shared with others
OF_AN_IMAGE = (4, 8)  # prototypes that an image shows: of those of its class, and of all
SHOWN = 0.3  # of the patches of an image show one
LENGTH = 0.8  # of the prototypes, in standard deviations of the noise in each dimension


class World:
    """What classes look like: prototypes, and which of them each class shows.

    Parameters
    ----------
    n_classes, n_features, n_patches : int
    seed : int
    """

    def __init__(self, n_classes: int, n_features: int, n_patches: int, seed: int) -> None:
        rng = np.random.default_rng([seed, 0])
        self.n_patches, self.seed = n_patches, seed
        self.prototypes = LENGTH * rng.standard_normal((PROTOTYPES, n_features), dtype=np.float32)
        self.shows = np.stack([rng.choice(PROTOTYPES, OF_A_CLASS, replace=False) for _ in range(n_classes)])

    def images(self, per_class: int, which: int) -> tuple[Patches, np.ndarray]:
        """Patches and labels; ``which`` tells one set of images from another."""
        rng = np.random.default_rng([self.seed, 1, which])
        label = np.repeat(np.arange(len(self.shows)), per_class)
        values = rng.standard_normal((label.size * self.n_patches, self.prototypes.shape[1]), dtype=np.float32)
        shown = max(1, round(SHOWN * self.n_patches))
        at = np.arange(label.size)[:, None] * self.n_patches + rng.integers(0, self.n_patches, (label.size, shown))
        own = self.shows[label[:, None], rng.integers(0, OF_A_CLASS, (label.size, OF_AN_IMAGE[0]))]
        others = rng.integers(0, PROTOTYPES, (label.size, OF_AN_IMAGE[1]))
        kinds = np.concatenate([own, others], axis=1)
        prototype = np.take_along_axis(kinds, rng.integers(0, kinds.shape[1], at.shape), axis=1)
        values[at.ravel()] += self.prototypes[prototype.ravel()]
        first = np.arange(label.size + 1) * self.n_patches
        return Patches(values, first, np.tile(_windows(self.n_patches), (label.size, 1))), label


def _windows(n: int) -> np.ndarray:
    """Windows all over an image, row by row."""
    side = int(np.ceil(np.sqrt(n)))
    row, column = np.divmod(np.arange(n), side)
    corner = np.stack([column, row], axis=1) / side
    return np.concatenate([corner, corner + 1.0 / side], axis=1).astype(np.float32)


class Timed:
    """A responder and the time it takes, threads added up."""

    def __init__(self, responder: Responder) -> None:
        self.responder = responder
        self.patches, self.pooling, self.dtype = responder.patches, responder.pooling, responder.dtype
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)
        self._lock = threading.Lock()

    def respond(self, ids: np.ndarray, filters: np.ndarray) -> Placed:
        return self._timed("respond", ids, filters)

    def scores_at(self, ids: np.ndarray, filters: np.ndarray, places: np.ndarray) -> np.ndarray:
        return self._timed("scores_at", ids, filters, places)

    def rows(self, ids: np.ndarray, places: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return self._timed("rows", ids, places, weights)

    def _timed(self, name: str, *arguments: Any) -> Any:
        start = time.perf_counter()
        answer = getattr(self.responder, name)(*arguments)
        with self._lock:
            self.seconds[name] += time.perf_counter() - start
            self.calls[name] += 1
        return answer


class Clock:
    """Seconds of each phase."""

    def __init__(self) -> None:
        self.last = self.start = time.perf_counter()
        self.seconds: dict[str, float] = defaultdict(float)

    def lap(self, phase: str) -> float:
        now = time.perf_counter()
        passed, self.last = now - self.last, now
        self.seconds[phase] += passed
        return passed


def whitened_parts(patches: Patches, n_parts: int, responder: Responder, seed: int, n_jobs: int) -> np.ndarray:
    """Filters of random patches, so long that centred responses of an image have a mean squared norm of 1."""
    rng = np.random.default_rng([seed, 2])
    filters, _ = random_parts(patches, n_parts, Whitening.estimate(patches.values, rng=rng), rng=rng)
    responses = respond_all(responder, filters, n_jobs).responses.reshape(len(patches), -1)
    return filters / np.sqrt(((responses - responses.mean(axis=0)) ** 2).sum(axis=1).mean())


def trained(
    responder: Responder, label: np.ndarray, filters: np.ndarray, args: argparse.Namespace, clock: Clock, say: Any
) -> tuple[Trained, np.ndarray]:
    """What was learned, and the responses of the images to it."""

    def told(record: JointRecord) -> None:
        seconds = clock.lap("part weights" if record.step == "weights" else "filters")
        say(
            f"round {record.round:2d} {record.step:8s} {seconds:8.1f} s  objective {record.objective:12.4f}  "
            f"bound [{record.lower:.2f}, {record.upper:.2f}]  {record.passes:4d} passes  {record.rivals:7d} rivals  "
            f"{record.bytes / 2**20:8.0f} MiB{'' if record.taken else '  (not taken)'}"
        )

    memory = None if args.memory is None else memory_for_rivals(int(args.memory * 2**20), responder, len(filters))
    settings = JointSettings(max_rounds=args.rounds, memory=memory, n_jobs=args.n_jobs, random_state=args.seed)
    n_classes = int(label.max()) + 1
    training = JointTraining(responder, label, n_classes, np.array([args.C]), filters, settings, callbacks=[told])
    clock.lap("responses")
    return training.run(), training.placed.responses


def accuracy(found: Trained, responses: np.ndarray, label: np.ndarray) -> float:
    return float((found.weights.scores(responses).argmax(axis=1) == label).mean())


def answered(found: Trained, responder: Responder, n_jobs: int, say: Any) -> None:
    """How long it takes to classify images with the first so many of the parts: the best of three."""
    n_images, n_parts = len(responder.patches), len(found.filters)
    for some in (n_parts // 8, n_parts // 4, n_parts // 2, n_parts):
        chosen, weights = found.filters[:some], found.weights
        weights = replace(weights, table=weights.table[:, :some], centre=weights.centre[:some])
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            weights.scores(responses_of(responder, chosen, n_jobs)).argmax(axis=1)
            seconds.append(time.perf_counter() - start)
        best, spread = min(seconds), max(seconds) / min(seconds) - 1.0
        each = 1e6 * best / n_images / some
        say(f"  {some:4d} parts: {n_images / best:7.0f} images/s, {each:5.2f} µs for each part (spread {spread:.0%})")


def warmed_up(args: argparse.Namespace) -> None:
    """Kernels compiled and the device awake, so that neither is timed."""
    patches, label = World(3, args.dims, 16, args.seed).images(6, 0)
    responder = responder_for(patches, POOLING, args.device)
    filters = whitened_parts(patches, 4, responder, args.seed, args.n_jobs)
    trained(responder, label, filters, args, Clock(), lambda text: None)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images-per-class", type=int, default=80)
    parser.add_argument("--test-images-per-class", type=int, default=20)
    parser.add_argument("--patches", type=int, default=1200, help="of an image")
    parser.add_argument("--dims", type=int, default=60)
    parser.add_argument("--classes", type=int, default=67)
    parser.add_argument("--parts", type=int, default=372)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument(
        "--device", default=None, help='as PyTorch calls it, such as "cuda"; none: compiled code on the CPU'
    )
    parser.add_argument("--memory", type=float, default=None, help="MiB for all that training keeps besides patches")
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    args = parsed()

    def say(text: str) -> None:
        print(text, flush=True)

    warmed_up(args)
    clock = Clock()
    world = World(args.classes, args.dims, args.patches, args.seed)
    patches, label = world.images(args.images_per_class, 0)
    say(
        f"{len(patches)} images of {args.classes} classes, {len(patches.values)} patches of {args.dims} dimensions "
        f"({patches.values.nbytes / 2**20:.0f} MiB), made in {clock.lap('features'):.1f} s"
    )
    plain = responder_for(patches, POOLING, args.device)
    say(f"on {getattr(plain, 'device', 'the CPU, compiled')} after {clock.lap('to the device'):.1f} s")
    filters = whitened_parts(patches, args.parts, plain, args.seed, args.n_jobs)
    say(f"{args.parts} parts in {POOLING.n_regions} regions made in {clock.lap('pool of parts'):.1f} s")
    responder = Timed(plain)
    start = time.perf_counter()
    found, responses = trained(responder, label, filters, args, clock, say)
    seconds = time.perf_counter() - start
    say(f"joint training {seconds:.1f} s, of it " + ", ".join(
        f"{phase} {clock.seconds[phase]:.1f}" for phase in ("responses", "part weights", "filters")
    ))  # fmt: skip
    for name, calls in responder.calls.items():
        took = responder.seconds[name]
        say(f"  {name:9s} {calls:7d} calls  {took:8.1f} s  {1e3 * took / calls:8.2f} ms each (threads added up)")
    say(f"accuracy on training images {100 * accuracy(found, responses, label):.1f} %")
    del plain, responder, patches
    unseen, truth = world.images(args.test_images_per_class, 1)
    seer = responder_for(unseen, POOLING, args.device)
    answers = responses_of(seer, found.filters, args.n_jobs)
    say(f"accuracy on {truth.size} new images {100 * accuracy(found, answers, truth):.1f} %, classified")
    answered(found, seer, args.n_jobs, say)
    say(f"peak memory {resident_peak() / 2**20:.0f} MiB" + _device_peak(args.device))
    say(f"in all {time.perf_counter() - clock.start:.1f} s")


def _device_peak(device: str | None) -> str:
    torch: Any = sys.modules.get("torch")
    if torch is None or device is None or not device.startswith("cuda"):
        return ""
    return f", on the device {torch.cuda.max_memory_allocated(device) / 2**20:.0f} MiB"


if __name__ == "__main__":
    main()

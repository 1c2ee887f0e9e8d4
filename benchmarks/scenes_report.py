"""Turns results/scenes.json into results/scenes.md."""

from typing import Any

from report import environment_text, markdown_table
from results import Results
from structured_goals import TIMES, verdict

Cell = dict[str, Any]

FIT_GOAL, PREDICT_GOAL = 300.0, 2000.0  # seconds, images a second

INTRODUCTION = """\
# Scenes

One thread, unless it says otherwise, in a fresh process. Sides that are compared took turns; numbers are the best of
the turns, by the processor's clock, and in brackets the spread, (slowest - fastest) / fastest. Compiled code is loaded
before the clock starts. Images are those of 15-Scene, about 250 × 270 pixels, read and made grey beforehand.
"""


def write(results: Results) -> None:
    results.path.with_suffix(".md").write_text(report(results))


def report(results: Results) -> str:
    parts = [INTRODUCTION, environment_text(results.data["environment"])]
    if results.path.stem.endswith("quick"):
        parts.append("**A quick check on few images: goals are not meant for it.**\n")
    parts += [section(results.cells[name]) for name, section in SECTIONS.items() if name in results.cells]
    return "\n".join(parts)


def _rate(n: int, seconds: list[float]) -> str:
    low, high = min(seconds), max(seconds)
    return f"{n / low:.0f} images/s ({(high - low) / low:.0%})"


def _ratio(cell: Cell, peer: str) -> str:
    return f"{min(cell['seconds'][peer]) / min(cell['seconds']['maxmargin']):.1f}{TIMES}"


def _sift(cell: Cell) -> str:
    seconds = cell["seconds"]
    row = [
        _rate(cell["images"], seconds["maxmargin"]),
        _rate(cell["images"], seconds["OpenCV"]),
        _ratio(cell, "OpenCV"),
    ]
    return (
        f"## Dense SIFT\n\n{cell['images']} images, {cell['patches'] // cell['images']} patches each, 16 pixels wide, "
        f"one every 4 pixels. `DenseSIFT` pools with triangular windows, so that neighbours share work; `cv2.SIFT` "
        f"(OpenCV {cell['opencv']}, sigma 0.8) is given the same patches as keypoints, and weighs with a Gaussian.\n\n"
        + markdown_table(["maxmargin", "OpenCV", "faster"], [row])
    )


def _words(cell: Cell) -> str:
    seconds, n = cell["seconds"], cell["images"]
    row = [_rate(n, seconds[name]) for name in ("maxmargin", "scikit-learn")] + [_ratio(cell, "scikit-learn")]
    row.append(_rate(n, seconds["histograms"]))
    head = ["words", "`pairwise_distances_argmin`", "faster", "all from image to histograms"]
    return f"## Words\n\nThe nearest of {cell['words']} words for every patch.\n\n" + markdown_table(head, [row])


def _learning(cell: Cell) -> str:
    speed = cell["tested"] / min(cell["seconds"]["predict"])
    rows = [
        [
            f"`fit` from histograms, {cell['threads']} threads, by the clock on the wall",
            f"{cell['fit']:.0f} s",
            "10 hours, 67 classes, about 5360 images",
            verdict(cell["fit"] <= FIT_GOAL, f"{FIT_GOAL:.0f} s", f"{cell['fit']:.0f} s"),
        ],
        [
            "`predict` from histograms",
            _rate(cell["tested"], cell["seconds"]["predict"]),
            "180 images/s, 67 classes",
            verdict(speed >= PREDICT_GOAL, f"{PREDICT_GOAL:.0f} images/s", f"{speed:.0f}"),
        ],
    ]
    return (
        f"## Reconfigurable bags of words\n\n`SceneClassifier(C={cell['C']:g})`: {cell['images']} images of "
        f"{cell['classes']} classes for training, EM to begin with included; mean per-class accuracy "
        f"{100 * cell['mean_diagonal']:.1f} %, gap of the last bound {cell['gap']:.0e}. What the thesis says is about "
        "other data and another computer. Seconds of `predict` are those of all threads together.\n\n"
        + markdown_table(["", "here", "in the thesis", "goal"], rows)
    )


def _grids(cell: Cell) -> str:
    peer = "inference.cuts.swap"
    each = [1e3 * min(cell["seconds"][name]) / cell["grids"] for name in ("maxmargin", peer)]
    spread = [max(s) / min(s) - 1 for s in (cell["seconds"]["maxmargin"], cell["seconds"][peer])]
    row = [f"{ms:.2f} ms ({wide:.0%})" for ms, wide in zip(each, spread, strict=True)] + [_ratio(cell, peer)]
    row += [f"{cell['score']:.2f}", f"{cell['peer_score']:.2f}"]
    return (
        "## Labels of a grid\n\n32 × 32 regions, 8 labels, noisy scores, neighbours that like to be equal and know "
        "what goes on top of what. `GridSearch.best` beside swap moves for graphs of any form, which cut with SciPy; "
        f"mean of {cell['grids']} grids.\n\n"
        + markdown_table(["each", f"`{peer}`", "faster", "score", "its score"], [row])
    )


SECTIONS = {"sift": _sift, "words": _words, "learning": _learning, "grids": _grids}

"""Turns results/detection.json into results/detection.md."""

from typing import Any

from report import environment_text, markdown_table
from results import Results

Cell = dict[str, Any]

INTRODUCTION = """\
# Detectors

One thread, each table in a fresh process. Sides that are compared took turns; numbers are the best of the turns, by the
processor's clock, and in brackets the spread, (slowest - fastest) / fastest. Compiled code is loaded before the clock
starts. Photographs of cats, the longer side 250 pixels, read beforehand.
"""
WITHOUT_DLIB = "dlib was not installed, so there is nothing beside ours.\n"
SIDES = {"parts": "maxmargin, root and {n_parts} parts", "root": "maxmargin, root alone", "dlib": "dlib"}
SPEEDS = {
    "parts": SIDES["parts"],
    "root": SIDES["root"],
    "parts, twice": SIDES["parts"] + ", images enlarged twice",
    "root, twice": SIDES["root"] + ", images enlarged twice",
    "dlib": "dlib, images enlarged twice",
    "dlib, as it is": "dlib, images as they are",
}


def write(results: Results) -> None:
    results.path.with_suffix(".md").write_text(report(results))


def report(results: Results) -> str:
    parts = [INTRODUCTION, environment_text(results.data["environment"])]
    if "libraries" in results.cells:
        parts.append(f"Thread pools: {'; '.join(results.cells['libraries']['used'])}.\n")
    if results.path.stem.endswith("quick"):
        parts.append("**A quick check on few images.**\n")
    parts += [section(results.cells[name]) for name, section in SECTIONS.items() if name in results.cells]
    return "\n".join(parts)


def _rate(n: float, seconds: list[float], unit: str = "images/s") -> str:
    low, high = min(seconds), max(seconds)
    rate = n / low
    return (
        f"{rate:.0f} {unit} ({(high - low) / low:.0%})" if rate >= 10 else f"{rate:.1f} {unit} ({high / low - 1:.0%})"
    )


def _detection(cell: Cell) -> str:
    seconds, rows = cell["seconds"], []
    for side, name in SPEEDS.items():
        if side not in seconds:
            continue
        ratio = f"{min(seconds['dlib']) / min(seconds[side]):.2f}" if "dlib" in seconds else "–"
        shape = cell["shape"].get(side)
        size = "80 × 80 pixels" if shape is None else f"{shape['rows']} × {shape['columns']} cells of 8 pixels"
        first = {"dlib": "2", "dlib, as it is": "1"}.get(side) or f"{shape['finest']:.2g}"
        rows.append([name.format(**cell), _rate(cell["images"], seconds[side]), ratio, size, first])
    head = ["", "speed", "beside dlib, enlarged twice", "root", "first level enlarged by"]
    dlib = (
        WITHOUT_DLIB
        if cell["dlib"] is None
        else f"dlib {cell['dlib']} has a root filter alone; heads below 80 pixels need enlarged images.\n"
    )
    return (
        f"## Detection\n\nFrom pixels to boxes, {cell['images']} images, detectors of one component. What a detector "
        f"has to look at grows with the square of the enlargement. {dlib}\n" + markdown_table(head, rows)
    )


def _training(cell: Cell) -> str:
    rows = []
    for side, name in SIDES.items():
        one = cell.get(side)
        if one is None or one["seconds"] is None:
            continue
        proved = f"{one['gap']:.0e} after {one['bounds']} bounds" if "gap" in one else "–"
        row = [name.format(**cell), f"{one['seconds']:.1f} s", f"{one['peak'] / 2**20:.0f} MiB"]
        rows.append([*row, f"{one['before'] / 2**20:.0f} MiB", proved])
    known = cell["root"]
    head = ["", "seconds, by the clock on the wall", "peak of the process", "before training", "certified gap"]
    text = (
        f"## Training\n\nOne breed ({cell['breed'].replace('_', ' ')}): {known['own']} images with a head, "
        f"{known['images'] - known['own']} of background; once each. dlib has all images in memory "
        "and stops by a tolerance of its own (epsilon 0.01), without bounds to show.\n\n"
    )
    if cell["dlib"]["seconds"] is None:
        text += WITHOUT_DLIB + "\n"
    return text + markdown_table(head, rows)


def _pieces(cell: Cell) -> str:
    seconds, n = cell["seconds"], cell["images"]
    plain = [[name, _rate(n, some)] for name, some in seconds.items() if name.startswith("pyramids")]
    plain += [[name, _rate(cells / 1e6, seconds[name], "million cells/s")] for name, cells in cell["maps"].items()]
    filters = [
        [name.removeprefix("filters: "), f"{1e3 * min(some) / n:.2f} ms ({max(some) / min(some) - 1:.0%})"]
        for name, some in seconds.items()
        if name.startswith("filters: ")
    ]
    return (
        f"## What it is made of\n\nPyramids of {n} images from 1.5 times their size on, five sizes to an octave, three "
        "cells of padding.\n\n"
        + markdown_table(["", "speed"], plain)
        + "\nFilters on all cells of such a pyramid, by matrix products.\n\n"
        + markdown_table(["filters", "for each image"], filters)
    )


SECTIONS = {"detection": _detection, "training": _training, "pieces": _pieces}

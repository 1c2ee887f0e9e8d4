"""Time against gap, one small panel per problem and C."""

import math
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matching import Optimum
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter
from runs import Run

# Okabe-Ito colours: told apart by colour-blind readers and in grey.
STYLE = {
    "maxmargin": {"color": "#D55E00", "marker": "o"},
    "LIBLINEAR": {"color": "#0072B2", "marker": "s"},
    "scikit-learn": {"color": "#009E73", "marker": "^"},
}
FLOOR = 1e-9  # where a logarithmic axis ends: gaps below are rounding

Panel = tuple[str, float, dict[str, list[Run]], Optimum]


def _curve(name: str, runs: list[Run], optimum: Optimum) -> list[tuple[float, float]]:
    """(seconds, gap) of each finished run: certified for ours, true suboptimality for a peer."""
    points = []
    for run in runs:
        if run.finished:
            gap = (run.upper - run.lower) / run.upper if name == "maxmargin" else optimum.suboptimality(run)
            points.append((min(run.seconds), max(gap, FLOOR)))
    return sorted(points)


def _panel(axes: Axes, runs: dict[str, list[Run]], optimum: Optimum) -> None:
    for name, style in STYLE.items():
        points = _curve(name, runs[name], optimum)
        if points:
            axes.plot(*zip(*points, strict=True), label=name, lw=1.5, ms=4, **style)
    # The passes of our tightest run, which is the longest story that one run tells.
    tightest = min(runs["maxmargin"], key=lambda run: run.tol)
    story = [(r["seconds"], max((r["upper"] - r["lower"]) / r["upper"], FLOOR)) for r in tightest.history]
    if story:
        axes.plot(*zip(*story, strict=True), color=STYLE["maxmargin"]["color"], lw=0.8, alpha=0.5)
    if optimum.uncertainty > FLOOR:
        # Nothing about the peers is known below the gap to which the optimum itself is known.
        axes.axhspan(FLOOR / 3, optimum.uncertainty, color="0.92", lw=0, zorder=0)
    axes.set(xscale="log", yscale="log", ylim=(FLOOR / 3, 3))
    axes.set_yticks([1, 1e-2, 1e-4, 1e-6, 1e-8])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major", color="0.88", lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=7)


def draw(panels: list[Panel], path: Path, columns: int = 3) -> None:
    """One row of panels per problem when there are three values of C."""
    order = list(dict.fromkeys(panel[0] for panel in panels))
    panels = sorted(panels, key=lambda panel: (order.index(panel[0]), panel[1]))
    rows = math.ceil(len(panels) / columns)
    figure, grid = plt.subplots(
        rows,
        columns,
        figsize=(3.3 * columns, 1.8 * rows + 0.8),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, (problem, C, runs, optimum) in zip(grid.flat, panels, strict=False):
        _panel(axes, runs, optimum)
        axes.set_title(f"{problem}, C = {C:g}", fontsize=8)
    figure.supxlabel("seconds", fontsize=9)
    figure.supylabel("relative gap: certified (maxmargin), true suboptimality (peers)", fontsize=9)
    handles = [plt.Line2D([], [], label=name, lw=1.5, ms=4, **style) for name, style in STYLE.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(path, dpi=130)
    plt.close(figure)

"""How the objective falls: against seconds and against calls of the oracle, one row of panels per problem."""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from stories import best_lower, runs_of

# Okabe-Ito colours: told apart by colour-blind readers and in grey.
STYLE = {
    "maxmargin": {"color": "#D55E00", "marker": "o"},
    "Frank-Wolfe": {"color": "#0072B2", "marker": "s"},
    "dlib": {"color": "#009E73", "marker": "^"},
}
AXES = {"seconds": "seconds", "calls": "calls of the oracle"}


def draw(cells: dict[str, dict[str, Any]], path: Path) -> None:
    figure, grid = plt.subplots(
        len(cells), 2, figsize=(9, 2.6 * len(cells) + 0.8), sharey=True, squeeze=False, layout="constrained"
    )
    for row, (title, cell) in zip(grid, cells.items(), strict=True):
        for axes, (key, label) in zip(row, AXES.items(), strict=True):
            _panel(axes, cell, key)
            axes.set_title(title, fontsize=9)
            axes.set_xlabel(label, fontsize=8)
    figure.supylabel("(objective - optimum) / objective", fontsize=9)
    handles = [plt.Line2D([], [], label=name, lw=1.5, ms=4, **style) for name, style in STYLE.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _panel(axes: plt.Axes, cell: dict[str, Any], key: str) -> None:
    optimum = best_lower(cell)
    for name, style in STYLE.items():
        runs = list(runs_of(cell, name).values())
        if not runs:
            continue
        # The tightest setting, which comes last, tells the longest story.
        fastest = min(runs[-1], key=lambda run: run["seconds"])
        known = [event for event in fastest["story"] if event["upper"] is not None]
        gaps = [(event["upper"] - optimum) / event["upper"] for event in known]
        axes.plot([event[key] for event in known], gaps, lw=1.5, ms=3, **style)
    axes.set(xscale="log", yscale="log")
    axes.grid(True, which="major", color="0.88", lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=7)

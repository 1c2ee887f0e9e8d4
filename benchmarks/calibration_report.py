"""Turns results/calibration.json into results/calibration.md (tables) and results/calibration.png (figure)."""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from report import environment_text, markdown_table
from results import Results

Cell = dict[str, Any]

DRAWN = {"maxmargin": "#D55E00", "maxmargin, not calibrated (T = 1)": "#999999", "CRFsuite l-bfgs": "#0072B2"}

INTRODUCTION = """\
# Probabilities: calibrated margins beside a CRF

Is a label that a tagger gives 90 % right nine times out of ten? The expected calibration error is the mean difference
between confidence and the share that is right, over 15 bins of the most probable label of each test token: bins of
equal width, and with equally many tokens. The log-loss is that of the marginals, −log of the probability of the true
label; it judges sharpness, too.

- **maxmargin**: `SequenceSVM` with the settings of the [tagging benchmark](structured.md), trained on nine sentences of
  ten; `calibrate` learns the temperature T from the tenth. *offsets* are one more number for each label; *by sequence*
  fits the probabilities of whole sentences, where the default fits those of tokens.
- **CRFsuite l-bfgs**: a CRF, through python-crfsuite, trained on all sentences with identical attributes; the marginals
  are its own.

The first line of each table shows why margins are no probabilities as they are. Speeds are tokens per CPU second, from
prepared sentences to marginals of all labels; CRFsuite gives them through Python one by one.
"""


def write(results: Results) -> None:
    path = results.path
    path.with_suffix(".md").write_text(report(results))
    draw(list(results.cells.values()), path.with_suffix(".png"))


def report(results: Results) -> str:
    parts = [INTRODUCTION, environment_text(results.data["environment"])]
    if results.path.stem.endswith("quick"):
        parts.append("**A quick check on a small part of the data.**\n")
    header = [
        "tagger", "calibration error", "with equal bins", "log-loss", "mean confidence", "accuracy", "T", "calibration",
        "tokens/s",
    ]  # fmt: skip
    for cell in results.cells.values():
        rows = [[name, *_row(run)] for name, run in cell["runs"].items()]
        parts.append(f"## {cell['task']}, {cell['tokens']} test tokens\n\n{markdown_table(header, rows)}")
    return "\n".join(parts)


def _row(run: Cell) -> list[str]:
    own = "temperature" in run
    return [
        f"{100 * run['error']:.2f} %",
        f"{100 * run['error_quantile']:.2f} %",
        f"{run['log_loss']:.4f}",
        f"{100 * run['confidence']:.2f} %",
        f"{100 * run['accuracy']:.2f} %",
        f"{run['temperature']:.3f}" if own else "",
        f"{run['cpu_calibrating']:.2g} s" if own and run["temperature"] != 1.0 else "",
        f"{run['tokens_per_second'] / 1000:.0f}k",
    ]


def draw(cells: list[Cell], path: Path) -> None:
    figure, panels = plt.subplots(
        1, len(cells), figsize=(4.2 * len(cells), 4.3), squeeze=False, sharey=True, layout="constrained"
    )
    for axes, cell in zip(panels[0], cells, strict=True):
        axes.plot([0, 1], [0, 1], color="0.6", lw=0.8, ls=":")
        for name, color in DRAWN.items():
            bins = {key: np.array(column) for key, column in cell["runs"][name]["bins"].items()}
            share = bins["size"] / bins["size"].sum()
            axes.plot(bins["confidence"], bins["right"], color=color, lw=1.2, label=name)
            axes.scatter(bins["confidence"], bins["right"], s=8 + 120 * share, color=color, alpha=0.8, zorder=3)
        axes.set(title=cell["task"], xlabel="confidence", aspect="equal")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0, 0].set_ylabel("share that is right")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(path, dpi=130)
    plt.close(figure)

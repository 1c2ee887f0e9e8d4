"""The main job from end to end: train a classifier of handwritten digits, with proof of how good it is.

python examples/demo.py

Uses data that comes with scikit-learn, takes some seconds, writes demo.png.
"""

import tempfile
import time
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import numpy as np
from matplotlib import pyplot
from rich.console import Console
from rich.table import Table
from sklearn import svm
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import train_test_split

import maxmargin as mm
from maxmargin import plots

C, TOL = 1.0, 1e-6
PICTURE = Path("demo.png")
console = Console(highlight=False, soft_wrap=True)


def heading(text):
    console.print(f"\n[bold]{text}[/bold]")


def objective(model, X, y):
    """½‖W‖² + C Σ_i max(0, 1 + best wrong score − right score), in plain NumPy: the same for every solver."""
    scores = X @ model.coef_.T + model.intercept_
    right = scores[np.arange(y.size), y].copy()
    scores[np.arange(y.size), y] = -np.inf
    slack = np.maximum(0.0, 1.0 + scores.max(axis=1) - right)
    return 0.5 * (np.sum(model.coef_**2) + np.sum(model.intercept_**2)) + C * slack.sum()


def timed_fit(model, X, y):
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return time.perf_counter() - start


def draw(model, X, y):
    figure = pyplot.figure(figsize=(12, 7.6), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=[1, 1.05], hspace=0.06)
    top.suptitle("The bounds close in on the optimum, and the gap between them is the proof")
    plots.convergence(model, ax=top.subplots(1, 2))

    left, right = bottom.subfigures(1, 2, width_ratios=[1.55, 1])
    left.suptitle("What each class looks for (blue) and holds against it (red)")
    limit = np.abs(model.coef_).max()
    for digit, panel in enumerate(left.subplots(2, 5).ravel()):
        panel.imshow(model.coef_[digit].reshape(8, 8), cmap="RdBu", vmin=-limit, vmax=limit)
        panel.set_title(str(digit), fontsize=10)
        panel.set_axis_off()

    table = confusion_matrix(y, model.predict(X))
    right.suptitle(f"Test images: {np.trace(table)} of {table.sum()} right")
    panel = right.subplots()
    mistakes = np.ma.masked_where(np.eye(10, dtype=bool) | (table == 0), table)
    panel.imshow(mistakes, cmap="Reds", vmin=0, vmax=8)
    for (i, j), count in np.ndenumerate(table):
        if count:
            panel.text(j, i, count, ha="center", va="center", fontsize=9, color="0.6" if i == j else "black")
    panel.set(xticks=range(10), yticks=range(10), xlabel="answer", ylabel="truth")
    panel.spines[:].set_color("0.8")
    panel.tick_params(length=0)
    figure.savefig(PICTURE, dpi=120)


def main():
    X, y = load_digits(return_X_y=True)
    X /= 16.0
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
    heading("Data")
    console.print(f"{len(X_train)} training and {len(X_test)} test images of 8 × 8 pixels, 10 digits.")

    heading("Training to a certified gap")
    model = mm.LinearSVC(C=C, tol=TOL, random_state=0)
    first = timed_fit(model, X_train, y_train)
    seconds = timed_fit(model, X_train, y_train)
    certificate = model.certificate_
    console.print(f"{model.n_passes_} passes in {seconds:.2f} s. (The first fit took {first:.1f} s: it compiles.)")
    console.print(f"""
  The training objective of these weights is        [bold]{certificate.upper:.6f}[/bold]
  No weights whatever can bring it below            [bold]{certificate.lower:.6f}[/bold]
  So perfect weights would lower it by at most      [bold]{100 * certificate.relative_gap:.6f} %[/bold]

This is a proof and not an estimate. Both numbers follow from weights, dual
variables and data alone; computed again without the solver, the relative gap
is {model.certify(X_train, y_train).relative_gap:.1e}. Asked for was {TOL:.0e}.""")

    heading("Beside scikit-learn")
    other = svm.LinearSVC(C=C, multi_class="crammer_singer", loss="hinge", max_iter=100_000, random_state=0)
    other_seconds = timed_fit(other, X_train, y_train)
    table = Table(box=None, pad_edge=False, header_style="")
    for name in ("", "objective", "above the optimum", "seconds", "test accuracy"):
        table.add_column(name, justify="right" if name else "left")
    for name, fitted, took in (
        ("maxmargin.LinearSVC", model, seconds),
        ("sklearn.svm.LinearSVC", other, other_seconds),
    ):
        value = objective(fitted, X_train, y_train)
        excess = (value - certificate.lower) / value
        accuracy = fitted.score(X_test, y_test)
        table.add_row(name, f"{value:.5f}", f"at most {excess:.1e}", f"{took:.2f}", f"{100 * accuracy:.1f} %")
    console.print(table)
    console.print("""
One problem and one objective, computed for both in NumPy; scikit-learn at its
own default tolerance. Both solve it well. But only one of them can tell: the
middle column, for either, rests on the lower bound of our certificate.
(A problem this small says little about speed; the benchmark does.)""")

    heading("Saving and loading")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.safetensors"
        model.save(path)
        loaded = mm.load(path)
        same = np.array_equal(loaded.predict(X_test), model.predict(X_test))
        console.print(f"""{path.name}: {path.stat().st_size / 1024:.0f} kB of numbers and text, no code inside.
Read back, it gives {"the same" if same else "DIFFERENT"} answers and the same certificate:
{loaded.certificate_}""")

    draw(model, X_test, y_test)
    heading("Picture")
    console.print(f"{PICTURE}: convergence, weights, mistakes.")

    heading("What to try next")
    console.print("""\
· tol=1e-9 above, to see how far a proof can go; tol=1e-2, how early it comes
· examples/path.py: many values of C, each fit started from the one before
· examples/regularizers.py: weights that may not be negative, that have a
  prior, that vanish in whole groups
· examples/ranking.py: an order to learn instead of classes
· examples/sequence.py, segmentation.py, multilabel.py, own_model.py: answers
  that are whole sequences, regions, sets, or whatever you can search
· examples/bags.py, clustering.py: answers of which a part is never given
· examples/out_of_core.py: files that do not fit into memory, and streams
· .venv/bin/maxmargin demo: the same from the command line, without code
· your own data: any matrix, dense or sparse, float32 or float64""")


if __name__ == "__main__":
    main()

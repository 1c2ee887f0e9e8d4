"""
The main job, from end to end
=============================

Train a classifier of handwritten digits, prove how good its weights are, set it beside scikit-learn's, save it, load it
again, and draw what it has learned. The data comes with scikit-learn. This is what ``make demo`` runs.
"""

import tempfile
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn import svm
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import train_test_split

import maxmargin as mm
from maxmargin import plots

show = Console(highlight=False, soft_wrap=True).print

X, y = load_digits(return_X_y=True)
X /= 16.0
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
show("\n[bold]Data[/bold]")
show(f"{len(X_train)} training and {len(X_test)} test images of 8 × 8 pixels, 10 digits.")

# %%
# Training
# --------
# ``tol`` is the relative gap that has to be proved before the fit ends. Ten classes are one joint problem.

C, TOL = 1.0, 1e-6


def timed_fit(model):
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X_train, y_train)
    return time.perf_counter() - start


model = mm.LinearSVC(C=C, tol=TOL, random_state=0)
first, seconds = timed_fit(model), timed_fit(model)
certificate = model.certificate_
show("\n[bold]Training to a certified gap[/bold]")
show(f"{model.n_passes_} passes in {seconds:.2f} s. (The fit before took {first:.1f} s: the first of all compiles.)")
show(f"""
  The training objective of these weights is        [bold]{certificate.upper:.6f}[/bold]
  No weights whatever can bring it below            [bold]{certificate.lower:.6f}[/bold]
  So perfect weights would lower it by at most      [bold]{100 * certificate.relative_gap:.6f} %[/bold]

This is a proof and not an estimate. Both numbers follow from weights, dual
variables and data alone; computed again without the solver, the relative gap
is {model.certify(X_train, y_train).relative_gap:.1e}. Asked for was {TOL:.0e}.""")

# %%
# Beside scikit-learn
# -------------------
# The lower bound belongs to the problem, not to a solver: it says how good anybody's weights are.


def objective(model):
    """½‖W‖² + C Σ_i max(0, 1 + best wrong score − right score), in plain NumPy: the same for every solver."""
    scores = X_train @ model.coef_.T + model.intercept_
    right = scores[np.arange(y_train.size), y_train].copy()
    scores[np.arange(y_train.size), y_train] = -np.inf
    slack = np.maximum(0.0, 1.0 + scores.max(axis=1) - right)
    return 0.5 * (np.sum(model.coef_**2) + np.sum(model.intercept_**2)) + C * slack.sum()


other = svm.LinearSVC(C=C, multi_class="crammer_singer", loss="hinge", max_iter=100_000, random_state=0)
other_seconds = timed_fit(other)
table = Table(box=None, pad_edge=False, header_style="")
for name in ("", "objective", "above the optimum", "seconds", "test accuracy"):
    table.add_column(name, justify="right" if name else "left")
for name, fitted, took in (("maxmargin.LinearSVC", model, seconds), ("sklearn.svm.LinearSVC", other, other_seconds)):
    value, accuracy = objective(fitted), fitted.score(X_test, y_test)
    excess = f"at most {(value - certificate.lower) / value:.1e}"
    table.add_row(name, f"{value:.5f}", excess, f"{took:.2f}", f"{100 * accuracy:.1f} %")
show("\n[bold]Beside scikit-learn[/bold]")
show(table)
show("""
One problem and one objective, computed for both in NumPy; scikit-learn at its
own default tolerance. Both solve it well. But only one of them can tell: the
middle column, for either, rests on the lower bound of our certificate.
(A problem this small says little about speed; the benchmark does.)""")

# %%
# Saving and loading
# ------------------
# A saved model is a file of numbers and text; loading it runs no code.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "digits.mm"
    model.save(path)
    loaded = mm.load(path)
    same = np.array_equal(loaded.predict(X_test), model.predict(X_test))
    show("\n[bold]Saving and loading[/bold]")
    show(f"""model.save("digits.mm") writes one file, here {path.stat().st_size / 1024:.0f} kB of numbers and text with
no code inside. (This one was written to a temporary folder, and is gone again.)
Read back, it gives {"the same" if same else "DIFFERENT"} answers and the same certificate:
{loaded.certificate_}""")

# %%
# The picture
# -----------
# Above, how the two bounds met. Below, the weights as images, and the answers to the test images.

figure = plt.figure(figsize=(12, 7.6), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=[1, 1.05], hspace=0.06)
top.suptitle("The bounds close in on the optimum, and the gap between them is the proof")
plots.convergence(model, ax=top.subplots(1, 2))

left, right = bottom.subfigures(1, 2, width_ratios=[1.55, 1])
left.suptitle("What each class looks for (red) and holds against it (blue)")
limit = np.abs(model.coef_).max()
for digit, panel in enumerate(left.subplots(2, 5).ravel()):
    panel.imshow(model.coef_[digit].reshape(8, 8), cmap="RdBu_r", vmin=-limit, vmax=limit)
    panel.set_title(str(digit), fontsize=10)
    panel.set_axis_off()

answers = confusion_matrix(y_test, model.predict(X_test))
right.suptitle(f"Test images: {np.trace(answers)} of {answers.sum()} right")
panel = right.subplots()
mistakes = np.ma.masked_where(np.eye(10, dtype=bool) | (answers == 0), answers)
panel.imshow(mistakes, cmap="Reds", vmin=0, vmax=8)
for (i, j), count in np.ndenumerate(answers):
    if count:
        panel.text(j, i, count, ha="center", va="center", fontsize=9, color="0.6" if i == j else "black")
panel.set(xticks=range(10), yticks=range(10), xlabel="answer", ylabel="truth")
panel.spines[:].set_color("0.8")
panel.tick_params(length=0)
plt.savefig("demo.png", dpi=120)

show("\n[bold]Picture[/bold]")
show("demo.png, in the folder you are in: convergence, weights, mistakes.")
show("\n[bold]What to try next[/bold]")
show("""\
· another TOL in examples/demo.py: 1e-9, to see how far a proof can go; 1e-2, how
  early it comes
· examples/certificate.py: another library's weights, judged while it learns
· examples/path.py: many values of C, each fit started from the one before
· examples/regression.py, ranking.py: numbers or an order instead of classes
· examples/regularizers.py: weights that may not be negative, that have a
  prior, that vanish in whole groups
· examples/integration.py: in a pipeline, in a grid search
· examples/sequence.py, segmentation.py, multilabel.py, own_model.py: answers
  that are whole sequences, regions, sets, or whatever you can search
· examples/bags.py, latent_states.py, clustering.py: answers of which a part
  is never given
· examples/scenes.py, parts.py, detection.py: photographs
· examples/out_of_core.py, clusters.py: files that do not fit into memory,
  streams, and several processes or machines
· .venv/bin/maxmargin train --help: training from the command line,
  without code
· your own data: any matrix, dense or sparse, float32 or float64""")

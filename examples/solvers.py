"""
Solvers beside each other
=========================

One problem, solved by five methods: coordinate ascent over a cache of constraints (what ``solver="auto"`` takes),
one-slack cutting planes, block-coordinate Frank-Wolfe with pairwise steps and gap sampling, stochastic subgradient
descent with averaging, and the averaged perceptron. The first four minimise the same objective, and one loop certifies
them all: ``solve``. The perceptron minimises none and is judged by its errors alone. Data is generated.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm
from maxmargin.constraints import Searched
from maxmargin.models import Chain
from maxmargin.regularizers import L2
from maxmargin.solvers import CuttingPlane, FrankWolfe, OracleAscent, Perceptron, Subgradient

LABELS, FEATURES, C = 6, 20, 0.02

# %%
# Sequences from a Markov chain, each token seen through noise.

rng = np.random.default_rng(0)
centres = rng.normal(size=(LABELS, FEATURES))
moves = np.cumsum(0.5 * np.eye(LABELS) + 0.5 * rng.dirichlet(np.full(LABELS, 0.4), LABELS), axis=1)


def sequences(n):
    Y = []
    for length in rng.integers(5, 15, n):
        y = [int(rng.integers(LABELS))]
        for u in rng.random(length - 1):
            y.append(min(int(np.searchsorted(moves[y[-1]], u)), LABELS - 1))
        Y.append(np.array(y))
    return [centres[y] + 2.5 * rng.normal(size=(len(y), FEATURES)) for y in Y], Y


X, Y = sequences(300)
X_test, Y_test = sequences(300)
model = Chain(LABELS, FEATURES)
problem = mm.Problem(Searched(model.oracle(X, Y), np.array([C])), L2())
test_tokens = sum(map(len, Y_test))

# %%
# A callback that asks for the weights of each pass judges them: the objective, and the errors on new sequences. The
# time that this takes is not the solver's.


class Judge:
    def __init__(self):
        self.seconds, self.calls, self.objective, self.errors, self.lower = [], [], [], [], []
        self.spent = 0.0

    def weighed(self, record, weights):
        start = time.perf_counter()
        w = weights().copy()
        self.seconds.append(record.seconds - self.spent)
        self.calls.append(record.oracle_calls)
        self.lower.append(record.lower)
        self.objective.append(mm.certify(problem, w).upper)
        found = model.predict_all(X_test, w)
        self.errors.append(sum((a != y).sum() for a, y in zip(found, Y_test, strict=True)) / test_tokens)
        self.spent += time.perf_counter() - start


solvers = {
    "coordinate ascent": OracleAscent(random_state=0),
    "cutting planes": CuttingPlane(),
    "Frank-Wolfe": FrankWolfe(random_state=0),
    "subgradient": Subgradient(random_state=0),
    "perceptron": Perceptron(random_state=0),
}
runs = {}
for name, solver in solvers.items():
    mm.solve(problem, solver, max_passes=1)  # so that nothing is compiled while the clock runs
    runs[name] = Judge()
    solution = mm.solve(problem, solver, tol=1e-4, max_passes=100, callbacks=[runs[name]])
    print(f"{name:18s} {len(solution.history):3d} passes, {runs[name].calls[-1]:6d} searches  {solution.certificate}")

# %%
# How far above the optimum each pass stands, by the best lower bound of all; and the errors on new sequences.

best = max(max(run.lower) for run in runs.values())
colours = dict(zip(runs, ["#1b6ca8", "#c8553d", "#3d8c40", "#8a5aa8", "0.5"], strict=True))
figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained", sharey="row")
for column, across in enumerate(("seconds", "calls")):
    for name, run in runs.items():
        place = getattr(run, across)
        if name != "perceptron":
            above = np.minimum.accumulate(run.objective) / best - 1.0
            axes[0, column].plot(place, above, ".-", label=name, color=colours[name])
        axes[1, column].plot(place, run.errors, ".-", label=name, color=colours[name])
    for row in axes[:, column]:
        row.set(xscale="log", xlabel=across if across == "seconds" else "oracle calls")
        row.spines[["top", "right"]].set_visible(False)
    axes[0, column].set_yscale("log")
axes[0, 0].set_ylabel("objective above the optimum, relative")
axes[1, 0].set_ylabel("wrong tokens of new sequences")
axes[1, 1].legend(frameon=False)
plt.savefig("solvers.png", dpi=110)

# %%
# Estimators take each of them by its name.

svm = mm.StructuralSVM(model, C=C, tol=0.05, solver="frank_wolfe", random_state=0).fit(X, Y)
print(svm.certificate_)

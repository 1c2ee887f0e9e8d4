"""
Numbers, and the errors that cost nothing
=========================================

Support vector regression ignores errors below ε and counts those above it as they are, not squared, so that single wild
values pull little. On diabetes data that comes with scikit-learn: what the tube of width 2ε means, and what happens to
least squares when a few answers are wrong.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from maxmargin import LinearSVR

X, y = load_diabetes(return_X_y=True)
X = StandardScaler().fit_transform(X)

# %%
# One feature, the body mass index, so that the tube can be drawn. Only patients on its edge or outside have dual
# variables other than zero: they alone hold the line where it is.

index, epsilon = X[:, [2]], 50.0
settings = {"intercept_scaling": 100.0, "solver": "dual_coordinate", "random_state": 0}
line = LinearSVR(C=10.0, epsilon=epsilon, tol=1e-4, **settings).fit(index, y)
outside = line.dual_coef_[0] != 0.0
print(line.certificate_)
print(f"{np.sum(outside)} of {len(y)} patients hold the line; the others may move inside the tube as they like.")

figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
across = np.linspace(index.min(), index.max(), 2)
middle = line.predict(across[:, None])
axes.fill_between(across, middle - epsilon, middle + epsilon, color="#1b6ca8", alpha=0.12, label="no cost")
axes.plot(across, middle, color="#1b6ca8")
axes.scatter(index[~outside], y[~outside], s=12, color="0.7", label="inside: no influence")
axes.scatter(index[outside], y[outside], s=14, color="#c8553d", label="on the edge or outside")
axes.set(xlabel="body mass index, standardised", ylabel="progress of the disease after a year")
axes.set_title("The line and its tube")
axes.legend(frameon=False, loc="upper left")
plt.savefig("regression.png", dpi=110)

# %%
# All ten features, and some of the training answers multiplied by ten, as slips of a decimal point would. The
# mean absolute error on patients that were left out:

X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
slips = np.random.default_rng(0).permutation(len(y_train))
print("slips of the point   LinearSVR   least squares   certificate of LinearSVR")
for n in (0, 5, 10, 20):
    wrong = y_train.copy()
    wrong[slips[:n]] *= 10.0
    svr = LinearSVR(C=1.0, epsilon=5.0, **settings).fit(X_train, wrong)
    errors = [np.abs(model.predict(X_test) - y_test).mean() for model in (svr, Ridge().fit(X_train, wrong))]
    print(f"{n:18d}   {errors[0]:9.1f}   {errors[1]:13.1f}   {svr.certificate_}")

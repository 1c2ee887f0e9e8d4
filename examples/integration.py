"""
In a pipeline and a grid search
===============================

Every estimator follows scikit-learn's rules, so scaling, feature construction and the choice of C are done with the
tools you know. What is added stays within reach: the fit that a search ends with has its certificate.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from maxmargin import LinearSVC

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)

# %%
# Two questions at once: how strong the regularisation should be, and whether products of features help. Scaling is
# part of the pipeline, so that no fold sees the averages of another.

model = make_pipeline(
    StandardScaler(),
    PolynomialFeatures(include_bias=False),
    StandardScaler(),
    LinearSVC(random_state=0),
)
grid = {"polynomialfeatures__degree": [1, 2], "linearsvc__C": np.logspace(-5, 1, 10)}
search = GridSearchCV(model, grid, cv=5).fit(X_train, y_train)
print("best:", search.best_params_)
print(f"accuracy in cross-validation {search.best_score_:.3f}, on test data {search.score(X_test, y_test):.3f}")
print("the final fit:", search.best_estimator_[-1].certificate_)

# %%
# The whole search in one picture, with the deviation over the five folds.

results = search.cv_results_
figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
for degree, colour, name in ((1, "#1b6ca8", "30 features"), (2, "#c8553d", "with their products and squares: 495")):
    chosen = results["param_polynomialfeatures__degree"] == degree
    C = results["param_linearsvc__C"][chosen].astype(float)
    mean, spread = results["mean_test_score"][chosen], results["std_test_score"][chosen]
    axes.fill_between(C, mean - spread, mean + spread, color=colour, alpha=0.12, linewidth=0)
    axes.semilogx(C, mean, "o-", color=colour, label=name)
axes.plot(search.best_params_["linearsvc__C"], search.best_score_, "*", color="black", markersize=14, label="best")
axes.set(xlabel="C", ylabel="accuracy in cross-validation", title="Grid search over C and features")
axes.legend(frameon=False, loc="lower right")
plt.savefig("integration.png", dpi=110)

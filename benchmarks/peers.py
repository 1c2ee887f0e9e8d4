"""The peers: LIBLINEAR through its own Python package, and scikit-learn's LinearSVC and LinearSVR.

Both are treated kindly. LIBLINEAR's clock runs only inside `train`, with the problem already in its own
format; scikit-learn is given float64 CSR, which it need not convert, and a cap on passes far beyond its
default. Both get sparse features with no stored zeros, even where the data set is dense.
"""

import re
import warnings
from typing import Any

import numpy as np
from liblinear.liblinear import PRINT_STRING_FUN
from liblinear.liblinearutil import parameter, problem, train
from problems import Instance
from runs import Outcome
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC, LinearSVR


class Liblinear:
    """Dual coordinate descent of liblinear-official."""

    name = "LIBLINEAR"

    def __init__(self, instance: Instance):
        self.instance = instance
        what = instance.problem
        self._type = {
            ("binary", "hinge"): 3,
            ("ovr", "hinge"): 3,
            ("binary", "squared_hinge"): 1,
            ("ovr", "squared_hinge"): 1,
            ("crammer_singer", "hinge"): 4,
            ("regression", "epsilon_insensitive"): 13,
        }[what.task, what.loss]
        self._problem = problem(instance.y.astype(np.float64), instance.sparse())
        self._log: list[bytes] = []
        # LIBLINEAR tells how it stopped only in print; the reference must outlive every call.
        self._listener = PRINT_STRING_FUN(self._log.append)

    def prepare(self, C: float, tol: float) -> parameter:
        what = self.instance.problem
        options = f"-s {self._type} -c {C!r} -e {tol!r} -B {1 if what.intercept else -1}"
        if what.task == "regression":
            options += f" -p {what.epsilon!r}"
        settings = parameter(options)
        settings.print_func = self._listener
        self._log.clear()
        return settings

    def fit(self, settings: parameter) -> Any:
        return train(self._problem, settings)

    def outcome(self, model: Any) -> Outcome:
        text = b"".join(self._log).decode()
        passes = [int(n) for n in re.findall(r"#iter = (\d+)", text)]
        # With the squared hinge it goes on by another method after the cap: not the end of its efforts.
        capped = "reaching max number of iterations" in text and "Switching" not in text
        return Outcome(self._weights(model), passes=max(passes, default=None), capped=capped)

    def _weights(self, model: Any) -> np.ndarray:
        """One row per class in sorted order; the intercept, if any, comes last."""
        vectors = self.instance.n_vectors
        columns = model.get_nr_feature() + (model.bias >= 0)
        W = np.ctypeslib.as_array(model.w, (columns * vectors,)).reshape(columns, vectors).T.copy()
        if self.instance.problem.task == "regression":
            return W
        # Classes come in the order of first appearance, and a single vector speaks for the first one.
        labels = np.array(model.get_labels())
        return W[np.argsort(labels)] if vectors > 1 else W * labels[0]


class ScikitLearn:
    """LinearSVC and LinearSVR: LIBLINEAR's code inside an estimator, with its cap on passes lifted."""

    name = "scikit-learn"
    max_iter = 100_000

    def __init__(self, instance: Instance):
        self.instance = instance
        self._X = instance.sparse()

    def prepare(self, C: float, tol: float) -> LinearSVC | LinearSVR:
        what = self.instance.problem
        shared: dict[str, Any] = {
            "C": C,
            "tol": tol,
            "loss": what.loss,
            "dual": True,
            "fit_intercept": what.intercept,
            "intercept_scaling": 1.0,
            "max_iter": self.max_iter,
            "random_state": 0,
        }
        if what.task == "regression":
            return LinearSVR(epsilon=what.epsilon, **shared)
        return LinearSVC(multi_class="crammer_singer" if what.task == "crammer_singer" else "ovr", **shared)

    def fit(self, estimator: LinearSVC | LinearSVR) -> LinearSVC | LinearSVR:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return estimator.fit(self._X, self.instance.y)

    def outcome(self, estimator: LinearSVC | LinearSVR) -> Outcome:
        W = np.atleast_2d(estimator.coef_)
        if self.instance.problem.intercept:
            W = np.column_stack([W, np.atleast_1d(estimator.intercept_)])
        passes = int(np.max(estimator.n_iter_))
        return Outcome(W, passes=passes, capped=passes >= self.max_iter)

"""Wrong calls of the estimators on matrices: LinearSVC, LinearSVR, RankingSVM, MultilabelSVM, GMMKMeans, path."""

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from wrong_call import GROUPS, HUGE, Y2, Y3, Wrong, X, frame, named_svc, sparse, svc

import maxmargin as mm
from maxmargin import GMMKMeans, LinearSVC, LinearSVR, MultilabelSVM, RankingSVM
from maxmargin.regularizers import L2, Bounded, GaussianPrior, GroupNorm

TEXT = np.where(Y2, "a", "b")
TABLE = np.c_[Y2, 1 - Y2]


def fit(X, y, sample_weight=None, **settings):
    return lambda _: LinearSVC(**settings).fit(X, y, sample_weight)


def setting(given, needed, **one):
    ((name, value),) = one.items()
    return Wrong(f"{name}={value!r}"[:60], name, fit(X, Y2, **one), ValueError, given, needed)


def by_hand():
    """Weights from elsewhere, in an estimator that was never fitted."""
    model = LinearSVC()
    model.coef_, model.intercept_, model.classes_ = svc().coef_, svc().intercept_, svc().classes_
    return model


def spoiled(value):
    other = X.copy()
    other[3, 1] = value
    return other


CASES = [
    # What X may not be.
    Wrong("X and y swapped", "X", fit(Y2, X), ValueError, "got 1D array", "are X and y swapped"),
    Wrong("X 3-D", "X", fit(X[None], Y2), ValueError, "array with dim 3", "one row per example"),
    Wrong("X None", "X", fit(None, Y2), ValueError, "X is None", "Give a matrix"),
    Wrong("X a path", "X", fit("train.svm", Y2), ValueError, "'train.svm'", r"maxmargin\.data\.open"),
    Wrong("X a dict", "X", fit({"a": 1}, Y2), TypeError, "X is a dict", r"pandas\.DataFrame"),
    Wrong("X of dicts", "X", fit([{"a": 1}] * 20, Y2), TypeError, r"X\[0, 0\] is {'a': 1}", "must be a number"),
    Wrong("X ragged", "X", fit([[1, 2], [3]], [0, 1]), ValueError, "rows of different lengths", "as many numbers"),
    Wrong("X empty", "X", fit([], []), ValueError, "got 1D array", "at least one row"),
    Wrong("X NaN", "X", fit(spoiled(np.nan), Y2), ValueError, "NaN at row 3, column 1", "Fill in or drop"),
    Wrong("X infinite", "X", fit(spoiled(np.inf), Y2), ValueError, r"infinity \(inf\) at row 3, column 1 \(1 such", "Fill in or drop"),
    Wrong("sparse NaN", "X", fit(sp.csr_matrix(spoiled(np.nan)), Y2), ValueError, "NaN at row 3, column 1", "Fill in or drop"),
    Wrong("sparse infinite", "X", fit(sp.csc_matrix(spoiled(np.inf)), Y2), ValueError, "row 3, column 1", "Fill in or drop"),
    Wrong("X without columns", "X", fit(X[:, :0], Y2), ValueError, r"0 feature\(s\)", "minimum of 1"),
    Wrong("frame NaN", "X", lambda _: LinearSVC().fit(frame(b=np.nan), Y2), ValueError, "column 1 'b'", "Fill in"),
    Wrong("frame text", "X", lambda _: LinearSVC().fit(frame(c="red"), Y2), ValueError, "Row 0 of X, column 'c', is 'red'", "Encode"),
    Wrong("X objects", "X", fit(X.astype(str).astype(object) + "x", Y2), ValueError, r"X\[0, 0\] is '", "Encode"),
    Wrong("X dates", "X", fit(np.full((20, 3), np.datetime64("2020-01-01")), Y2), ValueError, "dates", "days since"),
    Wrong("X complex", "data", fit(X + 1j, Y2), ValueError, "Complex data", "not supported"),
    Wrong("predict sparse dates", "X", lambda _: svc().predict(sparse("M8[s]")), ValueError, r"datetime64\[s\]", "days since"),
    Wrong("sparse objects", "X", fit(sparse(object, sp.csc_matrix), Y2), ValueError, "sparse one of object", "matrix of numbers"),
    Wrong("sparse text", "X", fit(sparse(str, sp.coo_matrix), Y2), ValueError, "sparse one of <U", "matrix of numbers"),
    # What y may not be.
    Wrong("y None", "y", fit(X, None), ValueError, "target y is None", r"fit\(X, y\)"),
    Wrong("y a word", "y", fit(X, "labels"), ValueError, "got 'labels'", "one entry for each row"),
    Wrong("y short", "y", fit(X, Y2[:5]), ValueError, r"numbers of samples: \[20, 5\]", "one entry of y for each row"),
    Wrong("y 2-D", "y", fit(X, np.c_[Y2, Y2]), ValueError, r"shape \(20, 2\)", "one label for each row"),
    Wrong("y ragged", "y", fit(X, [[1], [1, 2]] * 10), ValueError, "rows of different lengths", "one label for each row"),
    Wrong("y of dicts", "y", fit(X, [{}] * 20), ValueError, "dict: {}", "Labels are text, whole numbers"),
    Wrong("y with None", "y", fit(X, [None, 1] * 10), ValueError, r"y\[0\] is None", "drop the rows"),
    Wrong("y with NaN", "y", fit(X, np.where(Y2, np.nan, 0.0)), ValueError, "y contains NaN", "Drop such rows"),
    Wrong("y mixed", "y", fit(X, ["a", 1] * 10), ValueError, r"y\[0\] is 'a', y\[1\] is 1", "all strings or all"),
    Wrong("y measured", "y", fit(X, X[:, 0]), ValueError, r"y\[0\] is 0\.12", "Use LinearSVR"),
    Wrong("one class", "y", fit(X, ["a"] * 20), ValueError, "one class only: 'a'", "at least 2 classes"),
    Wrong("text targets", "y", lambda _: LinearSVR().fit(X, TEXT), ValueError, "such as 'b'", "numbers, or use LinearSVC"),
    Wrong("infinite target", "y", lambda _: LinearSVR().fit(X, np.where(Y2, np.inf, 0)), ValueError, "y contains infinity", "Drop such rows"),
    # Settings.
    setting("got 0", "greater than 0", C=0),
    setting("got '1'", "finite number", C="1"),
    setting("got inf", "finite number", C=np.inf),
    setting("got 0.0", "greater than 0", tol=0.0),
    setting("got array", "finite number", C=np.ones(2)),
    setting("got True", "whole number of at least 1", max_passes=True),
    setting("got 0", "None or a whole number", n_jobs=0),
    setting("got 'seed'", "whole number of at least 0", random_state="seed"),
    setting("got 'loud'", "0 is silent", verbose="loud"),
    setting("got 'no'", "True or False", fit_intercept="no"),
    setting("not 'lots'", "'512MB'", memory="lots"),
    setting("got 'hing'", "Perhaps you meant 'hinge'", loss="hing"),
    setting("got 'Squared-Hinge'", "Perhaps you meant 'squared_hinge'", loss="Squared-Hinge"),
    setting("got 'ov'", "Perhaps you meant 'ovr'", multi_class="ov"),
    setting("got 'dual_cordinate'", "Perhaps you meant 'dual_coordinate'", solver="dual_cordinate"),
    setting("class DualCoordinate", r"DualCoordinate\(…\)", solver=mm.solvers.DualCoordinate),
    setting("class L2", r"L2\(…\)", regularizer=L2),
    setting("'l1' lacks value", r"maxmargin\.regularizers", regularizer="l1"),
    setting("factor for 7", r"classes of y: \[0, 1\]", class_weight={7: 1.0}),
    setting("got 'balance'", "'balanced' or a dict", class_weight="balance"),
    setting("0: -1.0", "not negative", class_weight={0: -1.0}),
    setting("got {0: 'x'}", "a number for each class", class_weight={0: "x"}),
    setting("got 0.0", "greater than 0", intercept_scaling=0.0),
    Wrong("text grades", "y", lambda _: RankingSVM().fit(X, TEXT), ValueError, "hold grades.*such as 'b'", "one number per row"),
    Wrong("cost text", "cost", fit(X, Y3, cost="high"), ValueError, "got 'high'", "table of numbers"),
    Wrong("cost shape", "cost", fit(X, Y3, cost=np.ones((2, 2))), ValueError, r"got shape \(2, 2\)", "3 × 3"),
    Wrong("no joint form", "loss", fit(X, Y3, loss="squared_hinge"), ValueError, "no Crammer–Singer", "Use multi_class"),
    Wrong("prior", "mean", fit(X, Y2, regularizer=GaussianPrior(np.ones(4))), ValueError, "for 4 weights", "one per"),
    Wrong("groups", "groups", fit(X, Y2, regularizer=GroupNorm([[0, 1]])), ValueError, "cover 2 weights", "Put every"),
    Wrong("bounds", "indices", fit(X, Y2, regularizer=Bounded(0, [7])), ValueError, "from 7 to 7", "from 0 to 2"),
    Wrong("huge bound", "lower", lambda _: Bounded(lower=HUGE), ValueError, "got 1000", "must be a number"),
    Wrong("ragged indices", "indices", fit(X, Y2, regularizer=Bounded(0, [[0], [1, 2]])), ValueError, r"got \[\[0\]", "list of whole"),
    Wrong("epsilon", "epsilon", lambda _: LinearSVR(epsilon=-1).fit(X, Y2), ValueError, "got -1", "at least 0"),
    # Weights of examples.
    Wrong("weights short", "sample_weight", fit(X, Y2, np.ones(5)), ValueError, r"shape \(5,\)", r"shape \(20,\)"),
    Wrong("weights negative", "sample_weight", fit(X, Y2, -np.ones(20)), ValueError, "is -1", "not be negative"),
    Wrong("weights a word", "sample_weight", fit(X, Y2, "balanced"), ValueError, "got 'balanced'", "class_weight"),
    Wrong("weights NaN", "sample_weight", fit(X, Y2, X[:, 0] * np.nan), ValueError, r"\[0\] is nan", "must be finite"),
    Wrong("weights zero", "sample_weight", fit(X, Y2, np.zeros(20)), ValueError, "are zero", "no example is left"),
    # How a fit is run.
    Wrong("callbacks", "callbacks", lambda _: LinearSVC().fit(X, Y2, callbacks=print), ValueError, "print", "a list"),
    Wrong("checkpoint", "checkpoint", lambda _: LinearSVC().fit(X, Y2, checkpoint=5), ValueError, "got 5", "path of a"),
    Wrong("cluster", "cluster", lambda _: LinearSVC().fit(X, Y2, cluster="spark://x"), ValueError, "'spark://x'", "local:4"),
    Wrong("no worker", "cluster", lambda _: LinearSVC().fit(X, Y2, cluster="local:0"), ValueError, "n_workers=0", "at least one worker"),
    Wrong("source and y", "y", lambda _: LinearSVC().fit(mm.data.open(X, labels=Y2), Y2), ValueError, "source holds", "labels="),
    # A fitted estimator.
    Wrong("forgotten fit", "fit", lambda _: LinearSVC().predict(X), NotFittedError, "not fitted yet", "Call 'fit'"),
    Wrong("fewer columns", "X", lambda _: svc().predict(X[:, :2]), ValueError, "X has 2 features", "expecting 3"),
    Wrong("certify fewer columns", "X", lambda _: svc().certify(X[:, :2], Y2), ValueError, "X has 2 features", "expecting 3"),
    Wrong("no dual variables yet", "fit", lambda _: LinearSVC().dual_coef_, NotFittedError, "not fitted yet", "Call 'fit'"),
    Wrong("one row", "X", lambda _: svc().predict(X[0]), ValueError, "got 1D array", r"reshape\(1, -1\)"),
    Wrong("other names", "names", lambda _: named_svc().predict(frame().rename(columns={"a": "z"})), ValueError, "- z", r"X\[est"),
    Wrong("other order", "names", lambda _: named_svc().predict(frame()[["c", "b", "a"]]), ValueError, "same order", r"X\[est"),
    Wrong("predict a source", "source", lambda _: svc().predict(mm.data.open(X)), ValueError, "A source was given", "chunks"),
    Wrong("certify other class", "y", lambda _: svc().certify(X, Y2 + 5), ValueError, r"y\[0\] is 5", "not in the training"),
    Wrong("new class in a stream", "y", lambda _: LinearSVC().partial_fit(X, Y2).partial_fit(X, Y2 + 1), ValueError, "is 2", "not in"),
    Wrong("None among classes", "classes", lambda _: LinearSVC().partial_fit(X, Y2, [1, None]), ValueError, r"classes\[1\] is None", "needs a label"),
    Wrong("mixed classes", "classes", lambda _: LinearSVC().partial_fit(X, Y2, [0, "a"]), ValueError, r"classes\[1\] is 'a'", "all strings or all"),
    # Settings that there are not, and models that are not fitted.
    Wrong("c for C", "c", lambda _: LinearSVC(c=1), TypeError, "LinearSVC has no setting 'c'", "meant 'C'"),
    Wrong("max_iter", "max_iter", lambda _: LinearSVR(max_iter=9), TypeError, "no setting 'max_iter'", "are max_passes"),
    Wrong("kernel", "kernel", lambda _: LinearSVC(kernel="rbf"), TypeError, "no setting 'kernel'", "kernel_approximation"),
    Wrong("k", "k", lambda _: GMMKMeans(k=3), TypeError, "GMMKMeans has no setting 'k'", "It has n_clusters, eta"),
    Wrong("no certificate yet", "certificate_", lambda _: LinearSVC().certificate_, NotFittedError, "no certificate_ yet", "call fit"),
    Wrong("certify weights set by hand", "weights", lambda _: by_hand().certify(X, Y2), NotFittedError, "set from outside", "Call fit"),
    Wrong("report without a path", "path", lambda _: svc().report(frame(), Y2), TypeError, "got DataFrame", r'report\("report.html", X, y\)'),
    # Numbers and text of NumPy's, shown as they are.
    Wrong("C of NumPy's", "C", fit(X, Y2, C=np.float64(-2)), ValueError, r"got -2\.0", "greater than 0"),
    # Other estimators.
    Wrong("groups short", "groups", lambda _: RankingSVM().fit(X, Y2, [0, 1]), ValueError, r"shape \(2,\)", "each of 20 rows"),
    Wrong("groups a word", "groups", lambda _: RankingSVM().fit(X, Y2, "user"), ValueError, "got 'user'", "one entry for each"),
    Wrong("groups NaN", "groups", lambda _: RankingSVM().fit(X, Y2, X[:, 0] * np.nan), ValueError, "no value at row 0", "Name the"),
    Wrong("groups mixed", "groups", lambda _: RankingSVM().fit(X, Y2, np.array(["a", 1] * 10, object)), ValueError, "mixes", "all text"),
    Wrong("equal grades", "y", lambda _: RankingSVM().fit(X, Y2 * 0, GROUPS), ValueError, "n_groups = 4", "Check that y"),
    Wrong("groups of one row", "y", lambda _: RankingSVM().fit(X, np.arange(20), np.arange(20)), ValueError, "n_samples = 20, n_groups = 20", "Check that y"),
    Wrong("groups 2-D", "groups", lambda _: RankingSVM().fit(X, Y2, np.zeros((20, 2))), ValueError, r"shape \(20, 2\)", "one entry for each"),
    Wrong("one column of labels", "y", lambda _: MultilabelSVM().fit(X, Y2), ValueError, r"shape \(20,\)", "MultiLabelBinarizer"),
    Wrong("no table of labels", "y", lambda _: MultilabelSVM().fit(X, None), ValueError, "target y is None", r"fit\(X, y\)"),
    Wrong("labels not 0 or 1", "y", lambda _: MultilabelSVM().fit(X, TABLE * 2), ValueError, "is 2", "zeros and ones"),
    Wrong("edges name", "edges", lambda _: MultilabelSVM(edges="tre").fit(X, TABLE), ValueError, "got 'tre'", "meant 'tree'"),
    Wrong("edges out of range", "edges", lambda _: MultilabelSVM(edges=[(0, 7)]).fit(X, TABLE), ValueError, "edges", "0 … 1"),
    Wrong("too many clusters", "n_clusters", lambda _: GMMKMeans(30).fit(X), ValueError, "n_clusters=30", "lower n_clusters"),
    Wrong("start", "init", lambda _: GMMKMeans(2, init="kmeans++").fit(X), ValueError, "'kmeans\\+\\+'", r"meant 'k-means\+\+'"),
    # A path.
    Wrong("path of a class", "estimator", lambda _: mm.path(LinearSVC, X, Y2, C=[1.0]), ValueError, "class LinearSVC", r"\(…\)"),
    Wrong("path of another", "estimator", lambda _: mm.path(GMMKMeans(), X, Y2, C=[1.0]), ValueError, "GMMKMeans", r"LinearSVC\(\)"),
    Wrong("path of nothing", "C", lambda _: mm.path(LinearSVC(), X, Y2, C=[]), ValueError, "empty list", "Give the values"),
    Wrong("path of a number", "C", lambda _: mm.path(LinearSVC(), X, Y2, C=1.0), ValueError, r"got 1\.0", "list of values"),
    Wrong("path without values", "C", lambda _: mm.path(LinearSVC(), X, Y2), ValueError, "one parameter", r"C=\[\.\.\.\]"),
]  # fmt: skip

"""MultilabelSVM as an estimator; its model is tested in test_multilabel_model.py."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_multilabel_classification
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler

from maxmargin import LinearSVC, MultilabelSVM


@pytest.fixture(scope="module")
def data():
    X, Y = make_multilabel_classification(n_samples=80, n_features=8, n_classes=5, random_state=0)
    return StandardScaler().fit_transform(X), Y


@pytest.mark.parametrize("edges", ["none", "tree", "full", [(0, 1), (1, 4)]])
def test_fit_certifies_and_certify_says_the_same(data, edges):
    X, Y = data
    svm = MultilabelSVM(C=0.1, edges=edges, tol=1e-4, random_state=0).fit(X, Y)
    assert svm.certificate_.relative_gap <= 1e-4
    again = svm.certify(X, Y)
    assert (again.lower, again.upper) == pytest.approx((svm.certificate_.lower, svm.certificate_.upper), rel=1e-6)
    assert svm.score(X, Y) == np.mean((svm.predict(X) == Y).all(axis=1))
    assert svm.label_coef_.shape == (5, 9)
    assert svm.pair_coef_.shape == (len(svm.edges_), 2, 2)


def test_without_pairs_labels_are_independent_binary_problems(data):
    X, Y = data
    joint = MultilabelSVM(C=0.1, edges="none", tol=1e-7, random_state=0).fit(X, Y)
    # Each label then asks for a margin of 1 on its side of zero: the hinge loss of a binary problem.
    single = OneVsRestClassifier(LinearSVC(C=0.1, tol=1e-7, random_state=0)).fit(X, Y)
    theirs = np.array([np.append(e.coef_[0], e.intercept_[0]) for e in single.estimators_])
    assert np.allclose(joint.label_coef_, theirs, atol=2e-3)
    assert joint.certificate_.upper == pytest.approx(sum(e.certificate_.upper for e in single.estimators_), rel=1e-6)


def test_sparse_dense_and_frames_give_the_same(data):
    pandas = pytest.importorskip("pandas")
    X, Y = data
    dense = MultilabelSVM(C=0.1, random_state=0).fit(X, Y)
    sparse = MultilabelSVM(C=0.1, random_state=0).fit(sp.csr_matrix(X), sp.csr_matrix(Y))
    frame = pandas.DataFrame(X, columns=[f"f{k}" for k in range(8)])
    named = MultilabelSVM(C=0.1, random_state=0).fit(frame, pandas.DataFrame(Y))
    assert np.array_equal(dense.predict(X), sparse.predict(X))
    assert np.array_equal(dense.predict(X), named.predict(frame))
    assert named.feature_names_in_.tolist() == frame.columns.tolist()


def test_a_stream_has_a_true_lower_bound(data):
    X, Y = data
    whole = MultilabelSVM(C=0.1, edges="full", tol=1e-6, random_state=0).fit(X, Y)
    stream = MultilabelSVM(C=0.1, edges="full", tol=1e-3, random_state=0)
    for part in np.array_split(np.arange(80), 4):
        stream.partial_fit(X[part], Y[part])
    assert 0.5 * whole.certificate_.lower < stream.certificate_.lower <= whole.certificate_.upper
    full = stream.certify(X, Y)
    assert full.lower <= whole.certificate_.upper
    assert full.upper >= whole.certificate_.lower
    with pytest.raises(ValueError, match="Start with partial_fit"):
        whole.partial_fit(X, Y)

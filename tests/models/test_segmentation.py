"""Pictures as grids of pixels or cells: what the model makes of them, and that it is the graph model of that."""

import itertools

import numpy as np
import pytest
import reference
from user_models import every_rival

import maxmargin as mm
from maxmargin.checks import check_model
from maxmargin.models import Graph, Segmentation2D
from maxmargin.models.graph import grid


def pictures(rng, n=4, shape=(2, 3), k=2, d=2):
    Y = [rng.integers(k, size=shape) for _ in range(n)]
    return [np.stack([y + rng.normal(size=shape) for _ in range(d)], axis=2) for y in Y], Y


def test_without_contrast_it_is_the_graph_of_the_grid(rng):
    X, Y = pictures(rng, k=3)
    ours = Segmentation2D(contrast=False, bias=False).sized(X, Y)
    theirs = Graph().sized([grid(x) for x in X], [y.ravel() for y in Y])
    w = rng.normal(size=ours.n_weights)
    assert ours.n_weights == theirs.n_weights
    for x, y in zip(X, Y, strict=True):
        assert np.array_equal(ours.features(x, y).toarray(), theirs.features(grid(x), y.ravel()).toarray())
        assert np.array_equal(ours.predict(x, w).ravel(), theirs.predict(grid(x), w))


@pytest.mark.parametrize("settings", [{}, {"neighbours": 8, "inference": "branch"}, {"symmetric": True, "cell": 2}])
def test_it_passes_the_checks_and_reaches_the_optimum(rng, settings):
    X, Y = pictures(rng)
    model = Segmentation2D(**settings).sized(X, Y)
    check_model(model, X, Y)
    svm = mm.StructuralSVM(model, tol=1e-6, max_passes=2000, random_state=0).fit(X, Y)
    n_cells = model.graph(X[0])[0].shape[0]
    flat = [model._of_cells(y) for y in Y]
    labellings = [np.array(z) for z in itertools.product(range(2), repeat=n_cells)]
    optimum = reference.quadratic(*every_rival(model, X, flat, lambda x: labellings, 1.0)).value
    assert svm.certificate_.lower <= optimum * (1 + 1e-6)
    assert optimum <= svm.certify(X, Y, exact_seconds=20.0).upper * (1 + 1e-6)


def test_cells_have_the_mean_of_their_pixels_and_their_most_frequent_label():
    x = np.arange(15.0).reshape(3, 5)
    y = np.array([[0, 1, 2, 2, 0], [1, 1, 2, 0, 1], [0, 0, 1, 1, 2]])
    model = Segmentation2D(3, 1, cell=2)
    nodes, edges, _ = model.graph(x)
    assert nodes.ravel().tolist() == [3.0, 5.0, 6.5, 10.5, 12.5, 14.0]
    assert len(edges) == 2 * 2 + 3
    assert model.loss(y, np.array([1, 2, 0, 0, 1, 2])) == 0.0
    labels = model.predict(x, np.zeros(model.n_weights))
    assert labels.shape == x.shape
    assert model.loss(labels, labels) == 0.0


def test_edges_lead_to_the_neighbours_and_tell_directions_and_contrast():
    x = np.zeros((3, 3))
    x[1, 1] = 1.0
    _, edges, features = Segmentation2D(neighbours=8).graph(x)
    assert len(edges) == 6 + 6 + 4 + 4
    step = edges[:, 1] - edges[:, 0]
    assert np.array_equal(features[:, :4], step[:, None] == np.array([1, 3, 4, 2]))
    alike = features[:, 4:].sum(axis=1)
    centre = (edges == 4).any(axis=1)
    assert (alike[~centre] == 1.0).all() and (alike[centre] < 1.0).all()
    _, edges, features = Segmentation2D().graph(np.zeros((1, 1)))
    assert edges.shape == (0, 2) and features.shape == (0, 4)


def test_pictures_differ_in_size_and_are_labelled_pixel_by_pixel(rng, tmp_path):
    X = [rng.normal(size=(4, 5)), rng.normal(size=(6, 3)), rng.normal(size=(1, 7))]
    Y = [(x > 0).astype(int) for x in X]
    svm = mm.StructuralSVM(Segmentation2D(cell=2), random_state=0).fit(X, Y)
    found = svm.predict(X)
    assert [z.shape for z in found] == [x.shape for x in X]
    svm.save(tmp_path / "pictures")
    again = mm.load(tmp_path / "pictures")
    assert all(np.array_equal(a, b) for a, b in zip(found, again.predict(X), strict=True))
    assert again.model_.cell == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Segmentation2D(cell=0), "cell must be"),
        (lambda: Segmentation2D(neighbours=6), "neighbours must be 4 or 8"),
        (lambda: Segmentation2D(contrast="yes"), "contrast"),
        (lambda: Segmentation2D().graph(np.zeros(3)), "height, width"),
        (lambda: Segmentation2D().graph(np.zeros((0, 3))), "height, width"),
        (lambda: Segmentation2D().sized([np.zeros((2, 2))], [np.zeros((2, 2))]), r"Y\[0\] must be a list of whole"),
        (lambda: Segmentation2D(2, 1).oracle([np.zeros((2, 3))], [np.zeros((3, 2), int)]), "2 rows of 3 pixels"),
        (lambda: Segmentation2D(2, 1).oracle([np.zeros((2, 3))], [np.zeros(5, int)]), "6 positions, but 5 labels"),
    ],
)
def test_what_cannot_be_is_said(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()

"""check_model lets right models pass, and says of wrong ones what is wrong."""

import numpy as np
import pytest
import scipy.sparse as sp
from generators import chains, many_classes
from user_models import ForgetfulTags, HalfBlindTags, Tags, tagged

from maxmargin.checks import check_model
from maxmargin.constraints.oracle import PlainOracle
from maxmargin.models import Chain, Multiclass
from maxmargin.problem import Rivals


@pytest.fixture
def data(rng):
    return tagged(rng, n=10)


@pytest.mark.parametrize(
    "model",
    [
        Chain(),
        Chain(loss="normalized_hamming", bias=True, start=True, end=True),
        Chain(loss=np.array([[0, 1, 2], [1, 0, 1], [3, 1, 0]])),
        Chain(transitions=False),
        Chain(rescaling="slack"),
        Chain(rescaling="slack", loss="normalized_hamming"),
    ],
)
def test_chains_pass(model, rng):
    X, Y = chains(rng, n=8)
    X = [sp.csr_matrix(x) for x in X] if model.rescaling == "slack" else X
    check_model(model.sized(X, Y), X, Y)


def test_chain_with_forbidden_pairs_passes(rng):
    X, Y = chains(rng, n=8)
    forbidden = np.ones((3, 3), bool)
    np.fill_diagonal(forbidden, False)
    for y in Y:
        forbidden[y[:-1], y[1:]] = False
    assert forbidden.any()
    # Labels of other sequences are allowed answers here too: their pairs were seen.
    check_model(Chain(3, 2, forbidden=forbidden), X, Y)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("cost", [None, np.array([[0, 1, 2.0], [5, 0, 1], [1, 1, 0]])], ids=["plain", "cost"])
def test_classes_pass(rescaling, cost, rng):
    X, y = many_classes(rng, n=12, d=3, k=3)
    check_model(Multiclass(3, 3, cost=cost, rescaling=rescaling), X, y)


@pytest.mark.parametrize("model", [Tags(), Tags(rescaling="slack"), Tags(exact=False), HalfBlindTags()])
def test_user_models_pass(model, data):
    check_model(model, *data)


def broken(**methods):
    """Tags with some methods replaced."""
    return type("Broken", (Tags,), methods)()


def searching(sign):
    """A search that counts the loss so many times."""
    return lambda self, x, y, w: max(self.answers(x), key=lambda z: self.score(x, z, w) + sign * self.loss(y, z))


def _meddling(self, x, y, w):
    found = Tags.most_violated(self, x, y, w)
    w *= 0.5
    return found


NOISE = np.random.default_rng(0)
WRONG = {
    "loss of the truth": (
        broken(loss=lambda self, y, z: 0.5 + Tags.loss(self, y, z)),
        r"loss of the true answer itself must be 0, on example \d+ it is 0.5",
    ),
    "loss left out": (ForgetfulTags(), r"most_violated on example \d+ is not the worst offender.*Check the loss"),
    "wrong sign": (
        broken(most_violated=searching(-1)),
        r"most_violated on example \d+ (is not the worst offender|is beaten by the true answer)",
    ),
    "loss twice": (
        broken(most_violated=searching(2)),
        r"most_violated on example \d+ is not the worst offender.*its scale",
    ),
    "margin search for slack": (
        type("Mixed", (Tags,), {"most_violated": searching(1)})(rescaling="slack"),
        r"most_violated on example \d+ is not the worst offender",
    ),
    "second best prediction": (
        broken(predict=lambda self, x, w: sorted(self.answers(x), key=lambda z: self.score(x, z, w))[-2]),
        r"predict on example \d+ is not the best answer",
    ),
    "random features": (
        broken(features=lambda self, x, y: Tags.features(self, x, y) + NOISE.normal(size=self.n_weights)),
        "two vectors for one and the same",
    ),
    "changed weights": (broken(most_violated=_meddling), "most_violated failed on example .* read-only"),
    "short features": (
        broken(features=lambda self, x, y: Tags.features(self, x, y)[:-1]),
        "a vector of 8 entries, the model has 9 weights",
    ),
}


@pytest.mark.parametrize(("model", "message"), WRONG.values(), ids=WRONG)
def test_wrong_models_fail_with_the_reason(model, message, data):
    with pytest.raises(AssertionError, match=message):
        check_model(model, *data)


def test_approximate_model_may_miss_rivals_but_not_the_truth(data):
    class Blind(Tags):
        """Never considers the truth, and picks the answer with the lowest score."""

        def most_violated(self, x, y, w):
            return min(self.answers(x), key=lambda z: self.score(x, z, w))

    with pytest.raises(AssertionError, match="is beaten by the true answer"):
        check_model(Blind(exact=False), *data)


class _Fast(PlainOracle):
    """A fast path with one fault."""

    def __init__(self, model, X, Y, fault):
        super().__init__(model, X, Y)
        self.fault = fault

    def rivals(self, ids, w):
        if self.fault == "answers":
            return self.planes(ids, [self.model.predict(self.X[i], w) for i in ids])
        found = super().rivals(ids, w)
        rows = found.rows if self.fault is None else type(found.rows)(**{**vars(found.rows), "data": -found.rows.data})
        return Rivals(found.labels, rows, found.losses)


def _with_fast_path(fault):
    class Fast(Tags):
        def oracle(self, X, Y):
            return _Fast(self, X, Y, fault)

    return Fast()


@pytest.mark.parametrize("fault", ["answers", "rows"])
def test_fast_path_that_disagrees_is_caught(fault, data):
    with pytest.raises(AssertionError, match="compiled search"):
        check_model(_with_fast_path(fault), *data)


def test_check_needs_data(data):
    X, Y = data
    with pytest.raises(AssertionError, match="got 3 and 2"):
        check_model(Tags(), X[:3], Y[:2])
    with pytest.raises(AssertionError, match="got 0 and 0"):
        check_model(Tags(), [], [])

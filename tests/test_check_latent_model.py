"""check_model lets right latent models pass, and says of wrong ones what is wrong."""

import numpy as np
import pytest
from generators import chains, many_classes
from user_models import Instances, Parts, Tags, tagged

from maxmargin.checks import check_model
from maxmargin.latent.plain import PlainLatentOracle
from maxmargin.models import Bags, Chain, MaxMin, Multiclass, Ramp
from maxmargin.models.max_min import MaxMinObjective
from maxmargin.problem import Rivals


@pytest.fixture
def vectors(rng):
    return list(rng.normal(size=(10, 3))), [i % 2 for i in range(10)]


@pytest.fixture
def bags(rng):
    return [rng.normal(size=(2 + i % 3, 2)) for i in range(12)], [i % 2 for i in range(12)]


def test_user_models_pass(vectors, bags):
    check_model(Parts(), *vectors)
    check_model(Parts(exact=False), *vectors)
    check_model(Instances(), *bags)


@pytest.mark.parametrize("states", ["shared", "separate"])
def test_bags_pass(states, bags):
    check_model(Bags(states=states), *bags)


def test_ramps_pass(rng):
    check_model(Ramp(Multiclass()), *many_classes(rng, n=12, d=3, k=3))
    check_model(
        Ramp(Multiclass(cost=np.array([[0, 1, 2.0], [5, 0, 1], [1, 1, 0]]))), *many_classes(rng, n=12, d=3, k=3)
    )
    check_model(Ramp(Chain(loss="normalized_hamming", bias=True)), *chains(rng, n=8))
    check_model(Ramp(Tags()), *tagged(rng))


def broken(base=Parts, exact=True, **methods):
    """A model with some methods replaced."""
    model = type("Broken", (base,), methods)()
    model.exact = exact
    return model


def _own_latent_only(self, x, y, w):
    """Searches other labels but not other latent values."""
    return max(((k, (1, 1, 1)) for k in (0, 1)), key=lambda a: self.loss(y, a) + self.score(x, a, w))


def _shrinking(self, x, y, w):
    w *= 0.5
    return Parts.complete(self, x, y, w)


class _MeddlingProposal(Parts):
    """Latent values are lists here, and the one that was given is changed."""

    def values(self):
        return [list(z) for z in super().values()]

    def propose(self, x, y, z, w, rng):
        z[0] = 1 - z[0]
        return z

    def initial(self, x, y):
        return [1] * self.n_parts


NOT_BEST = r"complete on example \d+ is not the best latent value"
WRONG = {
    "loss of latent values": (
        broken(loss=lambda self, y, a: Parts.loss(self, y, a) + 0.1 * (a[1] != (1, 1, 1))),
        r"loss .*must be 0",
    ),
    "worst completion": (
        broken(complete=lambda self, x, y, w: min(self.values(), key=lambda z: self.score(x, (y, z), w))),
        rf"({NOT_BEST}.*maximise|is beaten by)",
    ),
    "lazy completion": (broken(complete=lambda self, x, y, w: self.initial(x, y)), rf"{NOT_BEST}: z = \(1, 1, 1\)"),
    "completion of another label": (broken(complete=lambda self, x, y, w: Parts.complete(self, x, 1 - y, w)), NOT_BEST),
    "loss left out": (
        broken(most_violated=lambda self, x, y, w: self.predict(x, w)),
        r"most_violated on example \d+ is not the worst offender.*Check the loss",
    ),
    "own latent value only": (
        broken(most_violated=_own_latent_only),
        r"most_violated on example \d+ is (not the worst offender|beaten by the true label with its best)",
    ),
    "worst prediction": (
        broken(predict=lambda self, x, w: min(self.answers(x), key=lambda a: self.score(x, a, w))),
        r"predict on example \d+ is not the best answer",
    ),
    "long proposal": (
        broken(propose=lambda self, x, y, z, w, rng: (*z, 1)),
        r"propose on example \d+ led from .* of which there are no features",
    ),
    "meddling proposal": (
        _MeddlingProposal(),
        r"propose on example \d+ has changed the latent value that it was given",
    ),
    "changed weights": (broken(complete=_shrinking), r"complete failed on example \d+: .*read-only"),
    "nothing": (broken(complete=lambda self, x, y, w: None), r"no latent value: complete or initial gave None"),
}


@pytest.mark.parametrize(("model", "message"), WRONG.values(), ids=WRONG)
def test_wrong_models_fail_with_the_reason(model, message, vectors):
    with pytest.raises(AssertionError, match=message):
        check_model(model, *vectors)


def test_a_negative_loss_is_noticed_even_of_an_approximate_model(vectors):
    with pytest.raises(AssertionError, match="is beaten by the true"):
        check_model(broken(most_violated=_own_latent_only, exact=False), *vectors)


def _listing(change):
    """Lists scores that ``complete`` does not go by."""
    return broken(
        Instances,
        latent_scores=lambda self, x, y, w: change(Instances.latent_scores(self, x, y, w)),
        complete=lambda self, x, y, w: int(np.argmax(Instances.latent_scores(self, x, y, w))),
    )


WRONG_LISTS = {
    "other scores": (
        _listing(lambda scores: scores[::-1]),
        r"latent_scores on example \d+ says .* but w·features\(x, \(y, z\)\) is",
    ),
    "some scores": (
        _listing(lambda scores: scores[:1]),
        r"complete on example \d+ gives \d, but latent_scores has 1 entries",
    ),
    "first instance": (
        broken(Instances, complete=lambda self, x, y, w: 0),
        rf"{NOT_BEST}: z = .* highest of latent_scores",
    ),
}


@pytest.mark.parametrize(("model", "message"), WRONG_LISTS.values(), ids=WRONG_LISTS)
def test_wrong_lists_fail_with_the_reason(model, message, bags):
    with pytest.raises(AssertionError, match=message):
        check_model(model, *bags)


class _Fast(PlainLatentOracle):
    """A fast path with one fault."""

    def __init__(self, model, X, Y, fault):
        super().__init__(model, X, Y)
        self.fault = fault

    def complete(self, w):
        best, top = super().complete(w)
        if self.fault == "complete":
            best = np.zeros_like(best)
            top = self.scores(np.arange(self.n_examples), best, w)
        return best, top

    def scores(self, ids, latent, w):
        return super().scores(ids, latent, w) + (self.fault == "scores")

    def listed(self, w):
        scores, first = super().listed(w)
        return (-scores, first) if self.fault == "listed" else (scores, first)

    def bound(self, latent):
        oracle = super().bound(latent)
        if self.fault == "answers":
            oracle.rivals = lambda ids, w: oracle.planes(ids, [self.model.predict(self.X[i], w) for i in ids])
        if self.fault == "rows":
            planes = oracle.planes

            def turned(ids, labels):
                found = planes(ids, labels)
                rows = type(found.rows)(**{**vars(found.rows), "data": -found.rows.data})
                return Rivals(found.labels, rows, found.losses)

            oracle.planes = turned
        return oracle

    def truths(self, ids, latent):
        found = super().truths(ids, latent)
        return [(1 - y, z) for y, z in found] if self.fault == "truths" else found


def _with_fast_path(fault):
    class Fast(Instances):
        def latent_oracle(self, X, Y):
            return _Fast(self, X, Y, fault)

    return Fast()


@pytest.mark.parametrize("fault", ["complete", "scores", "listed", "answers", "rows", "truths"])
def test_fast_path_that_disagrees_is_caught(fault, bags):
    with pytest.raises(AssertionError, match=r"compiled search .* disagree on example \d+"):
        check_model(_with_fast_path(fault), *bags)


def test_bounds_of_a_model_with_an_objective_of_its_own_are_checked(rng, monkeypatch):
    X, Y = rng.normal(size=(4, 2, 2, 3)), [0, 1, 0, 1]
    check_model(MaxMin(), X, Y)
    evaluation = MaxMinObjective.evaluate
    monkeypatch.setattr(MaxMinObjective, "evaluate", lambda self, w: evaluation(self, -w))
    with pytest.raises(AssertionError, match="bound"):
        check_model(MaxMin(), X, Y)

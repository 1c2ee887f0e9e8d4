"""One tagger on one task: quality on the test sentences, processor seconds of training, tokens tagged per second."""

import doctest
import time
from typing import Any, Protocol

import spans
from sequence_data import Sentences, sentences

# The settings of maxmargin, chosen on sentences kept out of training: the dev part of EWT, and the last tenth of
# CoNLL-2000's training sentences. The test sentences had no say.
SETTINGS: dict[str, dict[str, Any]] = {
    "CoNLL-2000": {"C": 0.2, "tol": 0.05, "loss": "hamming"},
    "EWT": {"C": 0.2, "tol": 0.05, "loss": "hamming"},
}
# Chains of second order, and segments of at least one token with features of their own, with the same settings.
OURS = ["maxmargin", "maxmargin, order 2", "maxmargin, segments"]
SCORES = {"CoNLL-2000": spans.span_f1, "EWT": spans.accuracy}


class Tagger(Protocol):
    """From lists of attributes to tags, in steps that are timed apart."""

    def prepare(self, train: Sentences) -> Any: ...

    def fit(self, prepared: Any) -> None: ...

    def items(self, X: list[Any]) -> Any: ...

    def predict(self, X: Any) -> Any: ...


class MaxMargin:
    """`SequenceSVM`, whose `fit` begins with lists of strings: there is nothing to prepare."""

    def __init__(self, settings: dict[str, Any]):
        import maxmargin

        self.svm = maxmargin.SequenceSVM(n_jobs=1, random_state=0, **settings)

    def prepare(self, train: Sentences) -> Any:
        return train

    def fit(self, prepared: Any) -> None:
        self.svm.fit(*prepared)

    def items(self, X: list[Any]) -> Any:
        return self.svm.prepare(X)

    def predict(self, X: Any) -> Any:
        return self.svm.predict(X)


def tagger(name: str, task: str) -> Tagger:
    if name == "maxmargin, segments":
        from segment_tagger import SegmentTagger

        return SegmentTagger({key: SETTINGS[task][key] for key in ("C", "tol")})
    if name in OURS:
        return MaxMargin(SETTINGS[task] | ({"order": 2} if name == "maxmargin, order 2" else {}))
    from peer_crfsuite import CrfSuite

    return CrfSuite(name)


def measure(name: str, task: str, limit: int | None = None) -> dict[str, Any]:
    """Trains on `limit` sentences (all by default) and tags the test sentences."""
    doctest.testmod(spans, raise_on_error=True)
    train, test = sentences(task, "train", limit), sentences(task, "test", limit)
    if name in OURS:
        # A few sentences load the compiled kernels; a full cache on disk is taken for granted.
        few = tagger(name, task)
        few.fit(few.prepare((train[0][:50], train[1][:50])))
        few.predict(few.items(test[0][:5]))
    model = tagger(name, task)
    prepared, preparing = cpu(model.prepare, train)
    _, training = cpu(model.fit, prepared)
    items = model.items(test[0])
    found, tagging = fastest(model.predict, items)
    _, from_lists = fastest(model.predict, test[0])
    tokens = sum(map(len, test[1]))
    return {
        "score": SCORES[task](test[1], [list(tags) for tags in found]),
        "cpu_preparing": preparing,
        "cpu_training": training,
        "tokens_per_second": tokens / tagging,
        "tokens_per_second_from_lists": tokens / from_lists,
        "settings": SETTINGS[task] if name in OURS else {},
    }


def cpu(work: Any, argument: Any) -> tuple[Any, float]:
    start = time.process_time()
    got = work(argument)
    return got, time.process_time() - start


def fastest(work: Any, argument: Any, times: int = 3) -> tuple[Any, float]:
    """Tagging takes a fraction of a second: the best of a few."""
    runs = [cpu(work, argument) for _ in range(times)]
    return runs[0][0], min(seconds for _, seconds in runs)

"""Chooses the settings of file_tagging.py on training sentences alone, one setting after another.

    python benchmarks/choose_templates.py CoNLL-2000
    python benchmarks/choose_templates.py EWT

Two tenths of the training sentences are kept out in turns; what counts is the mean score on them. From narrow windows
on, each setting takes another value where that gains more than noise, as long as the averaged perceptron of CRFsuite,
given ready strings of the same sentences, takes longer to train, and more than twice as long to tag, by a margin.
Nothing is read of the test sentences.
"""

import argparse
from typing import Any

from sequence_data import Sentences, raw_sentences, sentences
from tagging import SCORES, cpu, fastest, tagger

VALUES: dict[str, list[Any]] = {
    "window": [2, 3],
    "affixes": [2, 4],
    "shape": [False],
    "lowercase": [False],
    "pairs": [False],
    "triples": [False],
    "order": [2],
    "C": [0.05, 0.2],
}
TEMPLATES = ["window", "affixes", "shape", "lowercase", "pairs", "triples"]
FIXED = {"CoNLL-2000": {"tol": 0.1, "segments": "iob2"}, "EWT": {"tol": 0.1}}
TENTHS = [9, 4]
TIMES = 7  # of tagging, of which the fastest counts
NOISE = 0.05  # points
TRAINING, TAGGING = 0.85, 0.45  # processor time at most, as a share of the peer's


def parts(data: Any, tenth: int) -> tuple[Sentences, Sentences]:
    """The sentences that are left, and those that are kept out."""
    first, end = (k * len(data[0]) // 10 for k in (tenth, tenth + 1))
    X, Y = data
    return (X[:first] + X[end:], Y[:first] + Y[end:]), (X[first:end], Y[first:end])


def tried(task: str, settings: dict[str, Any]) -> tuple[float, float, float]:
    """Mean score in points, and mean processor seconds of training and of tagging."""
    import maxmargin

    data = raw_sentences(task, "train")
    found = []
    for train, (X, Y) in (parts(data, tenth) for tenth in TENTHS):
        templates = maxmargin.features.TokenFeatures(**{k: v for k, v in settings.items() if k in TEMPLATES})
        others = {k: v for k, v in settings.items() if k not in TEMPLATES}
        svm = maxmargin.SequenceSVM(features=templates, n_jobs=1, random_state=0, **FIXED[task], **others)
        _, training = cpu(lambda pair, svm=svm: svm.fit(*pair), train)
        tags, tagging = fastest(svm.predict, X, TIMES)
        found.append((100 * SCORES[task](Y, tags.tolist()), training, tagging))
    score, training, tagging = (sum(each) / len(TENTHS) for each in zip(*found, strict=True))
    print(f"{settings}: {score:.3f}, {training:.1f} s, {1000 * tagging:.0f} ms", flush=True)
    return score, training, tagging


def allowed(task: str) -> tuple[float, float]:
    """Seconds of training and of tagging that are allowed: what the peer takes, but for a margin."""
    train, out = parts(sentences(task, "train"), TENTHS[0])
    peer = tagger("CRFsuite averaged perceptron", task)
    prepared, preparing = cpu(peer.prepare, train)
    _, training = cpu(peer.fit, prepared)
    _, tagging = fastest(peer.predict, out[0], TIMES)
    return TRAINING * (preparing + training), TAGGING * tagging


def choose(task: str) -> dict[str, Any]:
    most, slowest = allowed(task)
    print(f"at most {most:.1f} s, {1000 * slowest:.0f} ms", flush=True)
    tried(task, {"C": 1.0, "window": 0})  # loads the compiled kernels
    chosen: dict[str, Any] = {"C": 0.1, "window": 1}
    best, *_ = tried(task, chosen)
    for name, values in VALUES.items():
        for settings in [chosen | {name: value} for value in values]:
            score, training, tagging = tried(task, settings)
            if score > best + NOISE and training <= most and tagging <= slowest:
                chosen, best = settings, score
    return chosen


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=list(FIXED))
    print("chosen:", choose(parser.parse_args().task))

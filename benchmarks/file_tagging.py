"""From CoNLL files to a tagger: `SequenceSVM` with `TokenFeatures`, everything a user waits for included.

CRFsuite is given ready lists of strings (see tagging.py); here the clock starts before the file is read.
"""

import doctest
import tempfile
from pathlib import Path
from typing import Any

import spans
from sequence_data import raw_sentences
from tagging import SCORES, cpu, fastest

# Chosen by choose_templates.py, which looks at training sentences only.
SETTINGS: dict[str, dict[str, Any]] = {
    "CoNLL-2000": {"C": 0.1, "tol": 0.1, "segments": "iob2"},
    "EWT": {"C": 0.1, "tol": 0.1},
}
TEMPLATES: dict[str, dict[str, Any]] = {"CoNLL-2000": {"window": 2, "shape": False}, "EWT": {"window": 1}}


def measure(task: str, limit: int | None = None) -> dict[str, Any]:
    """Trains on the first `limit` sentences (all by default) and tags the test sentences, from raw words."""
    import maxmargin

    doctest.testmod(spans, raise_on_error=True)
    test, labels = raw_sentences(task, "test", limit)
    tokens = sum(map(len, labels))

    def tagger() -> Any:
        templates = maxmargin.features.TokenFeatures(**TEMPLATES[task])
        return maxmargin.SequenceSVM(features=templates, n_jobs=1, random_state=0, **SETTINGS[task])

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.conll"
        maxmargin.data.write_conll(path, *raw_sentences(task, "train", 50))
        tagger().fit(*maxmargin.data.read_conll(path)).predict(test[:5])  # loads the compiled kernels
        maxmargin.data.write_conll(path, *raw_sentences(task, "train", limit))
        svm = tagger()
        read, reading = cpu(maxmargin.data.read_conll, path)
        _, training = cpu(lambda pair: svm.fit(*pair).predict(test[:1]), read)  # the first prediction makes a table
        found, tagging = fastest(svm.predict, test)
    return {
        "score": SCORES[task](labels, [list(tags) for tags in found]),
        "cpu_preparing": reading,
        "cpu_training": training,
        "tokens_per_second": tokens / tagging,
        "tokens_per_second_from_lists": tokens / tagging,
        "settings": {key: str(value) for key, value in (SETTINGS[task] | TEMPLATES[task]).items()},
    }

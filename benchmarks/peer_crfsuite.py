"""CRFsuite, trained and timed on tagged sentences."""

import tempfile
from pathlib import Path
from typing import Any

import pycrfsuite
from sequence_data import Sentences

ALGORITHMS: dict[str, tuple[str, dict[str, Any]]] = {
    "CRFsuite l-bfgs": ("lbfgs", {"c2": 1.0}),
    "CRFsuite averaged perceptron": ("averaged-perceptron", {"max_iterations": 50}),
    "CRFsuite passive-aggressive": ("passive-aggressive", {"max_iterations": 50}),
}


class CrfSuite:
    """One algorithm, from lists of attributes to a tagger. CRFsuite keeps its models in files."""

    def __init__(self, name: str):
        self.algorithm, self.settings = ALGORITHMS[name]
        self.folder = tempfile.TemporaryDirectory()

    def prepare(self, train: Sentences) -> Any:
        """The data in CRFsuite's own form."""
        trainer = pycrfsuite.Trainer(algorithm=self.algorithm, params=self.settings, verbose=False)
        for x, y in zip(*train, strict=True):
            trainer.append(x, y)
        return trainer

    def fit(self, trainer: Any) -> None:
        path = str(Path(self.folder.name) / "model")
        trainer.train(path)
        self.tagger = pycrfsuite.Tagger()
        self.tagger.open(path)

    def items(self, X: list[list[list[str]]]) -> list[Any]:
        """Sentences in the form that is tagged fastest."""
        return [pycrfsuite.ItemSequence(x) for x in X]

    def predict(self, X: list[Any]) -> list[list[str]]:
        return [self.tagger.tag(x) for x in X]

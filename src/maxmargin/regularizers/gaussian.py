from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from .shape import Shape
from .vectors import dot, numbers


class GaussianPrior:
    """Ω(w) = ½ (w − mean)ᵀ covariance⁻¹ (w − mean).

    Parameters
    ----------
    mean : array (n_weights,) or float
        Where the weights are drawn to.
    covariance : array (n_weights,), array (n_weights, n_weights) or float
        A vector is the diagonal, a matrix the full covariance (symmetric, positive definite).
        A large variance leaves a weight free, a small one holds it at its mean.

    Examples
    --------
    >>> prior = GaussianPrior(mean=np.array([1.0, 0.0]), covariance=np.array([4.0, 1.0]))
    >>> prior.weights(np.array([0.5, 0.5]))
    array([3. , 0.5])
    """

    mean: np.ndarray
    covariance: np.ndarray

    def __init__(self, mean: Any = 0.0, covariance: Any = 1.0) -> None:
        self.mean = numbers("GaussianPrior: mean", mean)
        self.covariance = numbers("GaussianPrior: covariance", covariance)
        self._check()
        self._factor = self._cholesky() if self.covariance.ndim == 2 else None

    def _check(self) -> None:
        covariance = self.covariance
        if self.mean.ndim > 1:
            raise ValueError(f"GaussianPrior: mean must be a number or a vector, got shape {self.mean.shape}.")
        if not (np.isfinite(self.mean).all() and np.isfinite(covariance).all()):
            raise ValueError(
                "GaussianPrior: mean and covariance must be finite. Use a large variance for a free weight."
            )
        if covariance.ndim > 2 or (covariance.ndim == 2 and covariance.shape[0] != covariance.shape[1]):
            raise ValueError(
                f"GaussianPrior: covariance must be a number, a vector (diagonal) or a square matrix, "
                f"got shape {covariance.shape}."
            )
        if self.mean.ndim and covariance.ndim and len(self.mean) != len(covariance):
            raise ValueError(
                f"GaussianPrior: mean is for {len(self.mean)} weights, covariance for {len(covariance)}. Give both for "
                "the same weights."
            )
        if covariance.ndim < 2:
            if not (covariance > 0).all():
                worst = int(np.argmin(covariance)) if covariance.ndim else 0
                raise ValueError(
                    f"GaussianPrior: a variance must be positive; entry {worst} is {covariance.min():g}. "
                    "Use a small positive variance to hold a weight at its mean."
                )
        elif not np.allclose(covariance, covariance.T, rtol=1e-10, atol=1e-12 * abs(covariance).max()):
            raise ValueError("GaussianPrior: the covariance matrix is not symmetric. Use (S + S.T) / 2.")

    def _cholesky(self) -> Any:
        try:
            return linalg.cho_factor(self.covariance, lower=True)
        except linalg.LinAlgError:
            smallest = float(np.linalg.eigvalsh(self.covariance).min())
            raise ValueError(
                "GaussianPrior: the covariance matrix is not positive definite "
                f"(smallest eigenvalue {smallest:.3g}). Add a multiple of the identity to it."
            ) from None

    def _spread(self, v: np.ndarray) -> np.ndarray:
        return self.covariance @ v if self.covariance.ndim == 2 else self.covariance * v

    def value(self, w: np.ndarray) -> float:
        d = w - self.mean
        if self._factor is None:
            return 0.5 * float(np.sum(d * d / self.covariance))
        return 0.5 * dot(d, linalg.cho_solve(self._factor, d))

    def conjugate(self, v: np.ndarray) -> float:
        return float(np.sum(self.mean * v) + 0.5 * dot(v, self._spread(v)))

    def weights(self, v: np.ndarray) -> np.ndarray:
        return self.mean + self._spread(v)

    def shape(self, n_weights: int) -> Shape:
        mean, covariance = self.mean, self.covariance
        for name, array in (("mean", mean), ("covariance", covariance)):
            if array.ndim and array.shape[0] != n_weights:
                raise ValueError(
                    f"GaussianPrior: {name} is for {array.shape[0]} weights, the problem has {n_weights}. Give one "
                    "number, or one per weight."
                )
        centre = np.broadcast_to(mean, n_weights).copy() if mean.any() else None
        if covariance.ndim == 2:
            return Shape(n_weights, centre=centre, covariance=np.ascontiguousarray(covariance))
        return Shape(n_weights, centre=centre, scale=np.broadcast_to(covariance, n_weights).copy())

    def dual_scale(self, v: np.ndarray) -> float:
        return 1.0

    def __repr__(self) -> str:
        mean, covariance = (
            str(a.item()) if a.ndim == 0 else f"<{'×'.join(map(str, a.shape))} array>"
            for a in (self.mean, self.covariance)
        )
        return f"GaussianPrior(mean={mean}, covariance={covariance})"

"""Gaussian priors."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from ..kernels.vectors import dot
from ..rounding import gamma
from ..validation import numbers
from .shape import Shape, smooth_conjugate_error


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

    def __init__(self, mean: object = 0.0, covariance: Any = 1.0) -> None:
        self.mean = numbers("GaussianPrior: mean", mean)
        self.covariance = numbers("GaussianPrior: covariance", covariance)
        self._check()
        if self.covariance.ndim == 2:
            self.covariance = 0.5 * (self.covariance + self.covariance.T)  # symmetric to the last bit
        self._factor = self._cholesky() if self.covariance.ndim == 2 else None
        self._least: float | None = None

    def _check(self) -> None:
        mean, covariance = self.mean, self.covariance
        if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
            raise ValueError(
                "GaussianPrior: mean and covariance must be finite. Use a large variance for a free weight."
            )
        square = covariance.ndim < 2 or covariance.shape == (len(covariance), len(covariance))
        alike = not (mean.ndim and covariance.ndim) or len(mean) == len(covariance)
        if mean.ndim > 1 or not square or not alike:
            raise ValueError(
                "GaussianPrior: mean must be a number or a vector, covariance a number, a vector (diagonal) or a "
                f"square matrix for the same weights; got shapes {mean.shape} and {covariance.shape}."
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

    def value_error(self, w: np.ndarray) -> float:
        """With z near Σ⁻¹d and r = d − Σz: dᵀΣ⁻¹d = z·d + z·r + rᵀΣ⁻¹r, and all of r is rounding."""
        if self._factor is None:
            return gamma(w.size + 16) * self.value(w)
        d = w - self.mean
        z = linalg.cho_solve(self._factor, d)
        terms = np.abs(d) + np.abs(self.covariance) @ np.abs(z)
        rest = np.abs(d - self.covariance @ z) + gamma(w.size + 8) * terms
        spread = np.sqrt(np.diagonal(self.covariance))
        off = dot(np.abs(z), rest) + gamma(w.size + 8) * dot(np.abs(z), np.abs(d))
        least = self._least_eigenvalue()
        return 0.51 * (off + float(np.square(rest / spread).sum()) / least) if least > 0.0 else np.inf

    def conjugate_error(self, v: np.ndarray, error: np.ndarray) -> float:
        if self._factor is None:
            return smooth_conjugate_error(self, v, error)
        size, covariance = np.abs(v), np.abs(self.covariance)
        terms = float(np.sum(np.abs(self.mean) * size)) + dot(size, covariance @ size)
        moved = dot(np.abs(self.weights(v)) + gamma(v.size + 8) * (covariance @ size), error)
        return gamma(2 * v.size + 16) * terms + 1.01 * (moved + 0.5 * dot(error, covariance @ error))

    def _least_eigenvalue(self) -> float:
        """A number below the least eigenvalue of the correlations: ‖L⁻¹‖⁻², less what rounding may add to LLᵀ."""
        if self._least is None:
            spread = np.sqrt(np.diagonal(self.covariance))
            root = np.tril(self._cholesky()[0]) / spread[:, None]
            inverse, _ = linalg.lapack.dtrtri(root, lower=1)
            least = 0.5 / float(np.square(np.tril(inverse)).sum()) - gamma(2 * len(spread) + 8) * len(spread)
            self._least = least
        return self._least

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

    def __repr__(self) -> str:
        mean, covariance = (
            str(a.item()) if a.ndim == 0 else f"<{'×'.join(map(str, a.shape))} array>"
            for a in (self.mean, self.covariance)
        )
        return f"GaussianPrior(mean={mean}, covariance={covariance})"

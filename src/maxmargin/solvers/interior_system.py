"""The linear system of a Newton step: its coordinates, and its Cholesky factor."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import numpy as np
from scipy import linalg

_SHIFTS = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-8)  # of a diagonal of ones, until a factor exists
_REFINEMENTS = 2  # what a shift has changed is corrected so many times


@dataclass(frozen=True)
class Coordinates:
    """Weights in which the matrix is formed: differences of classes, u_k = w_k − w_K for k < K and u_K = w_K.

    The loss of a joint problem does not see u_K. What holds it, the regularizer and bounds, is then never added to the
    large numbers of the loss, in which it would drown. With one column u is w.
    """

    columns: int = 1
    fixed: np.ndarray | None = None
    """Weights that do not move, if any: then u is w."""

    @property
    def _plain(self) -> bool:
        return self.columns == 1 or self.fixed is not None

    def weights(self, u: np.ndarray) -> np.ndarray:
        if self._plain:
            return u
        w = u.reshape(-1, self.columns).copy()
        w[:, :-1] += w[:, -1:]
        return w.ravel()

    def right(self, own: np.ndarray, loss: np.ndarray) -> np.ndarray:
        """Gradients in w as one in u. That of the loss adds up to zero over classes, but for rounding."""
        if self._plain:
            return own + loss if self.fixed is None else np.where(self.fixed, 0.0, own + loss)
        u = (own + loss).reshape(-1, self.columns)
        u[:, -1] = own.reshape(-1, self.columns).sum(axis=1)
        return u.ravel()

    def matrix(self, own: np.ndarray, loss: np.ndarray) -> np.ndarray:
        """A second derivative in w, which is used up, plus that of the loss in differences of classes, as one in u."""
        if self.columns > 1:
            K, d = self.columns, len(own) // self.columns
            M, G = own.reshape(d, K, d, K), loss.reshape(d, K, d, K)
            if not self._plain:
                M[:, -1] = M.sum(axis=1)
                M[..., -1] = M.sum(axis=3)
                return own + loss
            M[:, -1] -= G[:, :-1].sum(axis=1)
            M[..., -1] -= G[..., :-1].sum(axis=3)
            M[:, -1, :, -1] += G.sum(axis=(1, 3))
        own += loss
        if self.fixed is not None:
            own[self.fixed] = own[:, self.fixed] = 0.0
            own[self.fixed, self.fixed] = 1.0
        return own

    def curvature(self, diagonal: np.ndarray) -> np.ndarray:
        """The diagonal of the loss's matrix in w, about, from that in u: the last class is not in it."""
        if self.columns == 1:
            return diagonal
        diagonal = diagonal.reshape(-1, self.columns).copy()
        diagonal[:, -1] = diagonal[:, :-1].mean(axis=1)
        return diagonal.ravel()


class Factor:
    """A Cholesky factor, scaled to a diagonal of ones, which is raised if need be; refinement undoes what that did.

    Where columns of the data depend on each other the matrix is singular but for the regularizer's share, which gets
    lost in rounding once C‖x‖² is large. The shift damps directions that nothing is known of. (Modified factors in
    interior-point methods: S. Wright, 1999.)
    """

    def __init__(self, H: np.ndarray) -> None:
        self._unit = 1.0 / np.sqrt(np.maximum(np.diagonal(H), 1e-300))
        self._matrix = H * self._unit * self._unit[:, None]
        self.shift = np.inf
        """What the diagonal was raised by; infinite if nothing helped."""
        if not np.isfinite(self._matrix).all():
            return
        for shift in _SHIFTS:
            shifted = self._matrix.copy()
            shifted[np.diag_indices_from(shifted)] += shift
            with contextlib.suppress(linalg.LinAlgError):
                self._factor = linalg.cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
                self.shift = shift
                return

    def solve(self, right: np.ndarray) -> np.ndarray:
        right = self._unit * right
        x = linalg.cho_solve(self._factor, right, check_finite=False)
        for _ in range(_REFINEMENTS):
            x = x + linalg.cho_solve(self._factor, right - self._matrix @ x, check_finite=False)
        return self._unit * x

    def squared_length(self, right: np.ndarray) -> float:
        """rᵀ H⁻¹ r."""
        half = linalg.solve_triangular(self._factor[0], self._unit * right, lower=True, check_finite=False)
        return float(half @ half)

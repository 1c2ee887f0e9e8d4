"""Second-order cones of group norms in an interior-point method."""

from __future__ import annotations

import numpy as np


class Cones:
    """Products of second-order cones (t, w_g)·(λ, U_g) at their Nesterov–Todd points.

    Only the weights that have a group count here: ``at`` are their places. (Nesterov and Todd, 1997; the formulas of
    scaling and step lengths are those of Andersen, Roos and Terlaky, 2003.)
    """

    def __init__(self, group: np.ndarray, strength: np.ndarray) -> None:
        self.at = np.flatnonzero(group >= 0)
        self.g, self.lam = group[self.at], strength
        self.n = self.lam.size

    def sum(self, x: np.ndarray) -> np.ndarray:
        return np.bincount(self.g, x, minlength=self.n)

    def norm(self, x: np.ndarray) -> np.ndarray:
        return np.sqrt(self.sum(x * x))

    def centred(self, w: np.ndarray, mu: float) -> tuple[np.ndarray, np.ndarray]:
        """t and U on the central path at these weights."""
        w = w[self.at]
        length = self.norm(w)
        t = (mu + np.sqrt(mu * mu + 4.0 * (self.lam * length) ** 2)) / (2.0 * self.lam)
        return t, -w * (self.lam / t)[self.g]

    def place(self, t: np.ndarray, w: np.ndarray, U: np.ndarray) -> None:
        """Scale both cones to one point."""
        w = w[self.at]
        nw, nu = self.norm(w), self.norm(U)
        self.dp, self.dq = (t - nw) * (t + nw), (self.lam - nu) * (self.lam + nu)
        self.p0, self.p1 = t / np.sqrt(self.dp), w / np.sqrt(self.dp)[self.g]
        self.q0, self.q1 = self.lam / np.sqrt(self.dq), U / np.sqrt(self.dq)[self.g]
        gamma = np.sqrt(0.5 * (1.0 + np.maximum(self.p0 * self.q0 + self.sum(self.p1 * self.q1), 1.0)))
        self.w1 = (self.p1 - self.q1) / (2.0 * gamma)[self.g]
        self.n1 = self.norm(self.w1)
        self.w0 = np.sqrt(1.0 + self.n1**2)
        self.eta = (self.dp / self.dq) ** 0.25
        self.l0, self.l1 = self._scaled(self.lam, U)
        self.determinant = np.sqrt(self.dp * self.dq)
        self.along = 1.0 / (self.eta**2 * (1.0 + 2.0 * self.n1**2))
        self.across = 2.0 * self.n1**2 * self.along
        self.unit = self.w1 / np.maximum(self.n1, 1e-300)[self.g]
        self.m00 = (1.0 + 2.0 * self.n1**2) / self.eta**2
        self.m0 = -2.0 * self.w1 * (self.w0 / self.eta**2)[self.g]

    def _scaled(self, x0: np.ndarray, x1: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        s = self.sum(self.w1 * x1)
        return self.eta * (self.w0 * x0 + s), self.eta[self.g] * (x1 + self.w1 * (x0 + s / (1.0 + self.w0))[self.g])

    def _unscaled(self, x0: np.ndarray, x1: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        s = self.sum(self.w1 * x1)
        return (self.w0 * x0 - s) / self.eta, (x1 + self.w1 * (-x0 + s / (1.0 + self.w0))[self.g]) / self.eta[self.g]

    def times(self, x: np.ndarray) -> np.ndarray:
        """The second derivative times x: η⁻² [I/(1 + 2n²) + 2n²/(1 + 2n²)·(I − û ûᵀ)] with t eliminated.

        û is the direction of w1 and n its length. Along û and across it, nothing cancels.
        """
        return self.along[self.g] * x + self.across[self.g] * (x - self.unit * self.sum(self.unit * x)[self.g])

    def add_hessian(self, H: np.ndarray) -> None:
        H[self.at, self.at] += self.along[self.g]
        for p in range(self.n):
            here = np.flatnonzero(self.g == p)
            if here.size > 1:
                block = np.eye(here.size) - np.outer(self.unit[here], self.unit[here])
                H[np.ix_(self.at[here], self.at[here])] += self.across[p] * block

    def products(self) -> tuple[np.ndarray, np.ndarray]:
        """The scaled point times itself."""
        return self.l0 * self.l0 + self.sum(self.l1 * self.l1), 2.0 * self.l0[self.g] * self.l1

    def second_order(self, dt: np.ndarray, dw: np.ndarray, dU: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        s0, s1 = self._unscaled(dt, dw[self.at])
        q0, q1 = self._scaled(np.zeros(self.n), dU)
        return s0 * q0 + self.sum(s1 * q1), s0[self.g] * q1 + q0[self.g] * s1

    def right(self, c0: np.ndarray, c1: np.ndarray) -> np.ndarray:
        """What a change (c0, c1) of the scaled products adds to the right side of the system."""
        x0 = (self.l0 * c0 - self.sum(self.l1 * c1)) / self.determinant
        x1 = (c1 - x0[self.g] * self.l1) / self.l0[self.g]
        self.h0, self.h1 = self._unscaled(x0, x1)
        return self.h1 - self.m0 * (self.h0 / self.m00)[self.g]

    def back(self, dw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Changes of t and U, given that of the weights."""
        dw = dw[self.at]
        dt = (self.h0 - self.sum(self.m0 * dw)) / self.m00
        s = self.sum(self.w1 * dw)
        return dt, self.h1 - self.m0 * dt[self.g] - (dw + 2.0 * self.w1 * s[self.g]) / (self.eta**2)[self.g]

    def rate(self, dt: np.ndarray, dw: np.ndarray, dU: np.ndarray) -> float:
        """The fastest rate at which one of them comes to the boundary of its cone."""
        one = self._rate(self.p0, self.p1, self.dp, dt, dw[self.at])
        return max(one, self._rate(self.q0, self.q1, self.dq, np.zeros(self.n), dU))

    def _rate(self, b0: np.ndarray, b1: np.ndarray, det: np.ndarray, d0: np.ndarray, d1: np.ndarray) -> float:
        r0 = b0 * d0 - self.sum(b1 * d1)
        r1 = d1 - b1 * ((r0 + d0) / (1.0 + b0))[self.g]
        return float(((self.norm(r1) - r0) / np.sqrt(det)).max())

"""Newton's method on cached constraints when weights are few and rows are long.

    minimise   ½ (w − m)ᵀ P (w − m) + Σ_i C_i ξ_i      such that   x_ij·w + ξ_i − l_ij = s_ij ≥ 0,   ξ_i ≥ 0

A primal-dual interior-point method (Mehrotra's predictor and corrector). Every constraint of an example carries the
same ξ_i, so the ξ are eliminated one by one and what is left is a system of the size of w. Graphs of many nodes
have a handful of weights and rows of length 100; there coordinate steps crawl, and this takes about twenty steps.
"""

from __future__ import annotations

import numpy as np

from ..regularizers.shape import Shape

_MOST_WEIGHTS = 300
_MOST_STEPS = 60


def applies(shape: Shape) -> bool:
    """Whether the regularizer is quadratic and the weights are few."""
    return shape.n_weights <= _MOST_WEIGHTS and shape.affine


def solve(
    X: np.ndarray,
    loss: np.ndarray,
    example: np.ndarray,
    budget: np.ndarray,
    shape: Shape,
    alpha: np.ndarray,
    gap: float,
) -> np.ndarray:
    """Dual variables of explicit constraints to within a duality gap.

    Parameters
    ----------
    X : array (n_constraints, n_weights)
        x_ij.
    loss : array (n_constraints,)
    example : int array (n_constraints,)
        Which ξ a constraint shares.
    budget : array (n_examples,)
        C_i, all greater than zero.
    shape : Shape
        A quadratic regularizer.
    alpha : array (n_constraints,)
        Where to start from.
    gap : float
    """
    n, d = budget.size, X.shape[1]
    mean = np.zeros(d) if shape.centre is None else shape.centre
    if shape.covariance is not None:
        metric = np.linalg.inv(shape.covariance)
    else:
        metric = np.diag(np.ones(d) if shape.scale is None else 1.0 / shape.scale)

    def per_example(values: np.ndarray) -> np.ndarray:
        return np.bincount(example, values, minlength=n)

    # Start inside: shares off their bounds, slacks that leave room.
    size = 1.0 + np.bincount(example, minlength=n)
    alpha = 0.8 * alpha + 0.1 * (budget / size)[example]
    beta = np.maximum(budget - per_example(alpha), 0.05 * budget / size)
    w = mean + np.linalg.solve(metric, X.T @ alpha)
    missing = loss - X @ w
    xi = np.zeros(n)
    np.maximum.at(xi, example, missing)
    xi += 0.1 * (1.0 + np.abs(missing).mean())
    s = xi[example] - missing
    for _ in range(_MOST_STEPS):
        mu = (alpha @ s + beta @ xi) / (alpha.size + n)
        r_w = metric @ (w - mean) - X.T @ alpha
        r_c = budget - per_example(alpha) - beta
        r_s = X @ w + xi[example] - loss - s
        if (alpha.size + n) * mu <= gap and np.abs(r_c).max() <= 1e-6 * budget.max():
            break
        D, B = alpha / s, beta / xi
        S = per_example(D)
        H = S + B
        G = np.stack([per_example(D * column) for column in X.T], axis=1)
        # Xᵀ D X − Gᵀ H⁻¹ G, around the mean of each example: differences of large numbers would not be positive.
        mean_row = G / S[:, None]
        apart = X - mean_row[example]
        M = metric + apart.T @ (D[:, None] * apart) + mean_row.T @ ((S * B / H)[:, None] * mean_row)
        unit = 1.0 / np.sqrt(np.diagonal(M))  # features on different scales would spoil the factors
        try:
            factor = np.linalg.cholesky(M * unit * unit[:, None])
        except np.linalg.LinAlgError:
            break  # as far as rounding lets it go

        def direction(c: np.ndarray, c_xi: np.ndarray) -> tuple[np.ndarray, ...]:
            """The Newton step towards α s = c and β ξ = c_xi (both as changes of the products)."""
            q = c / s - D * r_s
            right = -r_w + X.T @ q
            right_c = -r_c + per_example(q) + c_xi / xi
            dw = unit * np.linalg.solve(factor.T, np.linalg.solve(factor, unit * (right - G.T @ (right_c / H))))
            dxi = (right_c - G @ dw) / H
            ds = X @ dw + dxi[example] + r_s
            return dw, dxi, ds, (c - alpha * ds) / s, (c_xi - beta * dxi) / xi

        dw, dxi, ds, dalpha, dbeta = direction(-alpha * s, -beta * xi)
        p, q = _longest(s, ds, xi, dxi), _longest(alpha, dalpha, beta, dbeta)
        ahead = (alpha + q * dalpha) @ (s + p * ds) + (beta + q * dbeta) @ (xi + p * dxi)
        centre = mu * (ahead / ((alpha.size + n) * mu)) ** 3
        dw, dxi, ds, dalpha, dbeta = direction(centre - alpha * s - dalpha * ds, centre - beta * xi - dbeta * dxi)
        p, q = 0.995 * _longest(s, ds, xi, dxi), 0.995 * _longest(alpha, dalpha, beta, dbeta)
        p = q = min(p, q)  # the quadratic ties both together
        w, xi, s = w + p * dw, xi + p * dxi, s + p * ds
        alpha, beta = alpha + q * dalpha, beta + q * dbeta
    # Where a share is small against the slack of its constraint it is on its way to zero: such planes can be dropped.
    return np.where(alpha > 1e-7 * budget[example], alpha, 0.0)


def _longest(a: np.ndarray, da: np.ndarray, b: np.ndarray, db: np.ndarray) -> float:
    """The longest step up to 1 that keeps both above zero."""
    longest = 1.0
    for value, change in ((a, da), (b, db)):
        falling = change < 0.0
        if falling.any():
            longest = min(longest, float((-value[falling] / change[falling]).min()))
    return longest

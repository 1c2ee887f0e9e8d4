"""Optima from an independent cone solver: nothing here is shared with the package.

    minimise  Ω(w) + Σ_i C_i·max(0, max_j (l_ij − w·x_ij)),   with one slack variable per example

Ω is a quadratic around a mean, optionally with bounds, or a group norm with an optional l2 term. The smoothed hinge has
a second variable e per example, which shortens its slack and costs C·e²/(2·width).
"""

from dataclasses import dataclass

import clarabel
import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class Optimum:
    value: float
    weights: np.ndarray


def quadratic(X, loss, example, budget, *, mean=0.0, covariance=1.0, lower=None, upper=None, width=0.0):
    """½ (w − mean)ᵀ covariance⁻¹ (w − mean), with lower ≤ w ≤ upper where these are finite."""
    d = X.shape[1]
    mean = np.broadcast_to(mean, d).astype(float)
    covariance = np.asarray(covariance, dtype=float)
    precision = np.linalg.inv(covariance) if covariance.ndim == 2 else np.diag(1.0 / np.broadcast_to(covariance, d))
    lower = np.full(d, -np.inf) if lower is None else np.asarray(lower, dtype=float)
    upper = np.full(d, np.inf) if upper is None else np.asarray(upper, dtype=float)

    def omega(w):
        return 0.5 * (w - mean) @ precision @ (w - mean)

    w = _cone_program(X, loss, example, budget, precision, -precision @ mean, (lower, upper), [], [], width)
    # The cone solver ends a hair outside the bounds; its weights are moved inside before they are valued.
    w = np.clip(w, lower, upper)
    return Optimum(omega(w) + _hinge(X, loss, example, budget, w, width), w)


def group_norm(X, loss, example, budget, *, groups, strength, l2=0.0):
    """Σ_p strength_p ‖w^p‖ + l2/2 ‖w‖²."""
    d = X.shape[1]
    strength = np.broadcast_to(strength, len(groups)).astype(float)

    def omega(w):
        return sum(s * np.linalg.norm(w[g]) for s, g in zip(strength, groups, strict=True)) + 0.5 * l2 * w @ w

    w = _cone_program(X, loss, example, budget, l2 * np.eye(d), np.zeros(d), _free(d), groups, strength)
    return Optimum(omega(w) + _hinge(X, loss, example, budget, w), w)


def group_norm_and_l2(X, loss, example, budget, *, groups, strength, free):
    """Σ_p strength ‖w^p‖ + ½ Σ w_j² over the weights j in ``free``, which belong to no group."""
    d = X.shape[1]
    square = np.zeros(d)
    square[free] = 1.0
    strength = np.broadcast_to(strength, len(groups)).astype(float)
    w = _cone_program(X, loss, example, budget, np.diag(square), np.zeros(d), _free(d), groups, strength)
    omega = sum(s * np.linalg.norm(w[g]) for s, g in zip(strength, groups, strict=True)) + 0.5 * square @ w**2
    return Optimum(omega + _hinge(X, loss, example, budget, w), w)


def _free(d):
    return np.full(d, -np.inf), np.full(d, np.inf)


def _hinge(X, loss, example, budget, w, width=0.0):
    slack = np.zeros(budget.size)
    np.maximum.at(slack, example, loss - X @ w)
    if width:
        slack = np.where(slack <= width, slack**2 / (2.0 * width), slack - width / 2.0)
    return float(budget @ slack)


def _cone_program(X, loss, example, budget, quadratic_part, linear_part, bounds, groups, strength, width=0.0):
    """The weights that minimise; variables are (w, slack of every example, e of every example, norm of every group)."""
    rows, d = X.shape
    n, p = budget.size, len(groups)
    m = n if width else 0
    owner = sp.csr_matrix((np.ones(rows), (np.arange(rows), example)), shape=(rows, n))
    below, above = (np.flatnonzero(np.isfinite(side)) for side in bounds)
    eye = sp.eye(d, format="csr")
    pick = sp.vstack([-eye[below], eye[above]])
    limits = np.concatenate([-bounds[0][below], bounds[1][above]])
    A = [
        sp.hstack([-sp.csr_matrix(X), -owner, -owner[:, :m], sp.csr_matrix((rows, p))]),
        sp.hstack([sp.csr_matrix((n, d)), -sp.eye(n), sp.csr_matrix((n, m + p))]),
        sp.hstack([pick, sp.csr_matrix((limits.size, n + m + p))]),
    ]
    b = [-np.asarray(loss, dtype=float), np.zeros(n), limits]
    cones = [clarabel.NonnegativeConeT(rows + n + limits.size)]
    for k, g in enumerate(groups):
        size = len(g)
        columns = np.concatenate([[d + n + m + k], np.asarray(g)])
        A.append(sp.csr_matrix((-np.ones(size + 1), (np.arange(size + 1), columns)), shape=(size + 1, d + n + m + p)))
        b.append(np.zeros(size + 1))
        cones.append(clarabel.SecondOrderConeT(size + 1))
    bent = sp.diags(budget / width) if width else sp.csr_matrix((0, 0))
    P = sp.block_diag([np.triu(quadratic_part), sp.csr_matrix((n, n)), bent, sp.csr_matrix((p, p))], format="csc")
    q = np.concatenate([linear_part, budget, np.zeros(m), strength])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    settings.max_iter = 200
    solution = clarabel.DefaultSolver(P, q, sp.vstack(A, format="csc"), np.concatenate(b), cones, settings).solve()
    good = (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved)
    assert solution.status in good, f"the reference solver failed: {solution.status}"
    return np.array(solution.x[:d])

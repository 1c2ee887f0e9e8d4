"""The loss inside a kernel: what one example pays, what its dual variable is worth, and how far it may go.

An example with the residual r = t − w·x exceeds what is free by e = r − ε (side +1), −r − ε (side −1) or |r| − ε
(side 0, both), and pays C·φ(e). Kernels know one family of φ: nothing up to zero, then a parabola, then a line.

    φ(e) = max over 0 ≤ α ≤ 1 of  α·e − ½·κ·α²       = e²/(2κ) up to e = κ, then e − κ/2     (``bounded``)
    φ(e) = max over 0 ≤ α     of  α·e − ½·κ·α²       = e²/(2κ)                              (not bounded)

In units of C that is 0 ≤ |β_i| ≤ U_i and a term ½·q_i·β_i² in the dual objective, as Hsieh et al. 2008 write it:

| loss           | κ (``curvature``) | ``bounded`` | U_i | q_i    |
| -------------- | ----------------- | ----------- | --- | ------ |
| hinge          | 0                 | yes         | C_i | 0      |
| squared hinge  | ½                 | no          | ∞   | ½/C_i  |
| smoothed hinge | its width         | yes         | C_i | κ/C_i  |

ε > 0 makes regression losses of them.
"""

from typing import NamedTuple

import numpy as np

from . import inlined


class LossShape(NamedTuple):
    """A loss as kernels read it; every loss of ``maxmargin.losses`` has one.

    Misses up to ``epsilon`` are free. What exceeds it, e, costs e²/(2·``curvature``): for ever if not ``bounded``, else
    up to e = curvature, then the line e − curvature/2. No other loss can be trained, such as one with several kinks or
    a steeper line; for the latter use a larger C or ``sample_weight``.
    """

    epsilon: float = 0.0
    curvature: float = 0.0
    bounded: bool = True


@inlined
def excess_of(residual, side, shape):
    """By how much the residual t − w·x is on the wrong side of what is free."""
    return (residual if side > 0 else -residual if side < 0 else abs(residual)) - shape.epsilon


@inlined
def cost(excess, budget, shape):
    """C·φ(excess)."""
    if excess <= 0.0:
        return 0.0
    if shape.bounded and excess > shape.curvature:
        return budget * (excess - 0.5 * shape.curvature)
    return budget * excess * excess * (0.5 / shape.curvature)


@inlined
def dual_curvature(budget, shape):
    """q of the term ½·q·β²; zero where nothing can be paid, because β is zero there."""
    return shape.curvature / budget if shape.curvature > 0.0 and budget > 0.0 else 0.0


@inlined
def dual_term(beta, target, budget, shape):
    """What β adds to the dual objective, but for its share of Ω*."""
    penalty = beta * beta / ((2.0 / shape.curvature) * budget) if shape.curvature > 0.0 else 0.0
    return target * beta - shape.epsilon * abs(beta) - penalty


@inlined
def limits(side, budget, shape):
    """The interval of one dual variable."""
    top = np.inf if budget > 0.0 and not shape.bounded else budget
    return (0.0 if side > 0 else -top), (0.0 if side < 0 else top)

"""One sweep on several threads, without races.

Each thread takes its own share of the examples and its own copy of v; afterwards the changes of v are added up.
Sums of steps that did not know of each other can overshoot, so the sum is scaled by the best of a few factors,
down to 1/threads: the average of improvements is an improvement, because the dual objective is concave. No
update is ever lost, v stays Σ α x, and the certificate needs no repair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..problem import Problem
from ..regularizers.shape import Shape
from .threads import run

if TYPE_CHECKING:
    from .dual_coordinate import DualState

# Multiply-adds that make it worth waking a thread, and the most rounds a sweep is cut into: the more rounds,
# the less the threads work on outdated weights.
_WORTH_A_THREAD = 5_000_000
_MOST_ROUNDS = 16


def rounds(problem: Problem, state: DualState, threads: int) -> int:
    """Into how many rounds to cut the sweep; 0 if threads would cost more than they save."""
    constraints = problem.in_memory
    if not constraints.by_example:
        return 0
    per_example = constraints.n_read / constraints.n_examples * problem.n_weights / constraints.rows.n_weights
    work = per_example * state.active
    # Copying v and adding up its changes is work too, and all of it waits for memory.
    worth = max(_WORTH_A_THREAD, 50 * problem.n_weights) * threads
    return min(int(work / worth), _MOST_ROUNDS)


def sweep(problem: Problem, shape: Shape, state: DualState, block: int, threads: int, n_rounds: int) -> None:
    """Sweep ``order[:active]`` and update the state as a sweep on one thread would."""
    parts = np.array_split(state.order[: state.active].copy(), n_rounds * threads)
    if block <= 1:
        everybody = state.rng.permutation(np.concatenate(parts))
        parts = np.array_split(everybody, n_rounds * threads)
    else:
        parts = [parts[i] for i in state.rng.permutation(len(parts))]
    awake: list[np.ndarray] = []
    asleep: list[np.ndarray] = []
    state.seen = 0.0
    for start in range(0, len(parts), threads):
        _round(problem, shape, state, block, parts[start : start + threads], awake, asleep)
    active = sum(part.size for part in awake)
    state.order[: state.active] = np.concatenate([*awake, *asleep])
    state.active = active


def _round(
    problem: Problem,
    shape: Shape,
    state: DualState,
    block: int,
    parts: list[np.ndarray],
    awake: list[np.ndarray],
    asleep: list[np.ndarray],
) -> None:
    constraints, v = problem.in_memory, state.map.v
    old_alpha = [state.alpha[part].copy() for part in parts]
    copies = [v.copy() for _ in parts]

    def work(k: int, seed: int) -> tuple[int, float, float]:
        m = shape.bind(copies[k])
        return constraints.sweep(state.alpha, m, state.norms, parts[k], parts[k].size, block, seed)

    before = [part.copy() for part in parts]
    seeds = [int(s) for s in state.rng.integers(1, 2**63, size=len(parts))]
    results = run(work, list(range(len(parts))), seeds)
    change = sum(r[2] for r in results)
    step = copies[0] - v
    for copy in copies[1:]:
        step += copy
        step -= v
    factor = _best_factor(problem, v, step, change, len(parts))
    if factor < 1.0:
        # Other examples may have a part in the sum, too, if these are only some of the problem's.
        stepped = constraints.linear(state.alpha)
        for examples, old in zip(before, old_alpha, strict=True):
            state.alpha[examples] = old + factor * (state.alpha[examples] - old)
        change += constraints.linear(state.alpha) - stepped
    state.linear += change
    v += factor * step
    state.map.refresh()
    for part, (active, seen, _) in zip(parts, results, strict=True):
        awake.append(part[:active])
        asleep.append(part[active:])
        state.seen += seen


def _best_factor(problem: Problem, v: np.ndarray, step: np.ndarray, change: float, n: int) -> float:
    """The factor in 1/n … 1 that raises the dual objective most."""
    factors = np.linspace(1.0, 1.0 / n, 3)
    gains = [f * change - problem.regularizer.conjugate(v + f * step) for f in factors]
    return float(factors[int(np.argmax(gains))])

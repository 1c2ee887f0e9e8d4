"""Random walks over latent values inside a budget of regret (G-MM; Naderi Parizi §5.4.1).

States are all z with Σ_i regret_i(z_i) ≤ budget; a step proposes another value of one variable, all n·(k − 1) such
changes being equally likely where every variable has k values. A change that leaves the budget is not made. The
proposal is symmetric, so the stationary distribution is uniform.
"""

from . import compiled
from .order import below, next_random


@compiled
def walk(regrets, first, latent, budget, steps, seed):
    """``steps`` steps from ``latent``, in place; returns the total regret.

    ``regrets[first[i] + z]`` is the regret of value z of variable i. A variable is picked uniformly, then one of its
    other values: from z to z' and back the two have the same probability, whatever the numbers of values are.
    """
    state = next_random(seed)
    n = latent.size
    total = 0.0
    for i in range(n):
        total += regrets[first[i] + latent[i]]
    for _ in range(steps):
        state = next_random(state)
        i = below(state, n)
        size = first[i + 1] - first[i]
        if size < 2:
            continue
        state = next_random(state)
        z = below(state, size - 1)
        if z >= latent[i]:
            z += 1
        after = total - regrets[first[i] + latent[i]] + regrets[first[i] + z]
        if after <= budget:
            total = after
            latent[i] = z
    return total

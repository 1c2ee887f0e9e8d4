"""Random order of visits, cheap on memory traffic.

Blocks of neighbouring rows are visited in random order and rows are shuffled inside a block: as good as
a full shuffle for wide data, and the processor still reads memory almost in sequence. Block size 1 asks
for the full shuffle that low-dimensional data needs.
"""

import numpy as np
from numpy import uint64

from . import compiled


@compiled
def next_random(state):
    """One step of a 64-bit xorshift generator."""
    state = uint64(state)  # a state that came back through Python is a plain int
    state ^= state << uint64(13)
    state ^= state >> uint64(7)
    state ^= state << uint64(17)
    return state


@compiled
def below(state, n):
    """A number in 0 … n−1 from the upper half of the state."""
    return np.int64(((state >> uint64(32)) * uint64(n)) >> uint64(32))


@compiled
def shuffle(items, start, stop, state):
    for i in range(stop - start - 1, 0, -1):
        state = next_random(state)
        j = below(state, i + 1)
        kept = items[start + i]
        items[start + i] = items[start + j]
        items[start + j] = kept
    return state


@compiled
def shuffled_blocks(count, block, state):
    """The blocks of ``count`` items in random order, their size, and the generator's new state."""
    size = count if block <= 1 else block
    blocks = np.empty((count + size - 1) // size if count > 0 else 0, np.int32)
    for z in range(blocks.size):
        blocks[z] = z
    state = shuffle(blocks, np.int64(0), blocks.size, state)
    return blocks, size, state


@compiled
def active_first(items, count):
    """Items marked dormant (as −item − 1) go behind the others; returns how many are not."""
    active = 0
    for p in range(count):
        item = items[p]
        if item >= 0:
            items[p] = items[active]
            items[active] = item
            active += 1
    for p in range(active, count):
        items[p] = -items[p] - 1
    return active

"""The regularizer inside a kernel: how the weights w answer when v = Σ α x moves along one row.

    w = ∇Ω*(v)        with u = centre + scale∘v   (or centre + covariance·v)

A map is one file here and one line in ``MAPS``. The file has

- ``READS``, the names of the arrays of a ``regularizers.Shape`` that the map knows;
- a named tuple of arrays, the first of them v, which kernels move in place. It is made from a shape by ``bind``,
  recomputes all that follows from v in ``refresh`` (after v was changed from outside, or rounding may have crept in),
  and gives its ``weights``;
- the functions ``score``, ``move``, ``inner``, ``difference`` and ``spread``, as they are described below. They are
  compiled into the kernels; helpers that they call are ``inlined``.

Which functions a kernel means is decided by the type of the tuple when it is compiled: one kernel in the source, one
machine-code version per map, and the plain map pays nothing for the others.
"""

from types import ModuleType

from .. import inlined, when_compiling
from . import boxed, clipped, dense, grouped, plain
from .boxed import Boxed
from .clipped import Clipped
from .dense import Dense
from .grouped import Grouped
from .plain import Plain

WeightMap = Plain | Clipped | Boxed | Grouped | Dense

MAPS: dict[type, ModuleType] = {Plain: plain, Clipped: clipped, Boxed: boxed, Grouped: grouped, Dense: dense}
"""All maps, the fastest first: a regularizer is given the first that reads all of its arrays."""


def _of_map(name):
    """The function of this name in the file of whichever map it is given."""

    def called(*arguments):
        kind = next(type(a) for a in arguments if type(a) in MAPS)
        return getattr(MAPS[kind], name)(*arguments)

    @when_compiling
    def register():
        from numba import types
        from numba.extending import overload

        @overload(called, jit_options={"error_model": "numpy", "forceinline": True, "_nrt": False}, strict=False)
        def _(*arguments):
            kind = next(a.instance_class for a in arguments if isinstance(a, types.NamedTuple | types.NamedUniTuple))
            return getattr(MAPS[kind], name)

    return called


# (indptr, indices, data, width, bias, r, m): w · (stored row r).
stored_score = _of_map("score")
# (indptr, indices, data, width, bias, r, c, m): v += c · (stored row r), and w follows.
stored_move = _of_map("move")
# (indptr, indices, data, width, bias, a, b, m): xₐᵀ S x_b with S the curvature of Ω*, an upper bound of it where the
# map is not linear.
stored_inner = _of_map("inner")
# (indptr, indices, data, width, bias, a, b, m): (xₐ − x_b)ᵀ S (xₐ − x_b).
stored_difference = _of_map("difference")
# (indptr, indices, data, width, bias, r, c, m, out): out += c · S (stored row r).
spread = _of_map("spread")


@inlined
def score(indptr, indices, data, width, bias, a, b, m):
    """w · (stored row a − stored row b), or w · (stored row a) if b is negative."""
    total = stored_score(indptr, indices, data, width, bias, a, m)
    if b >= 0:
        total -= stored_score(indptr, indices, data, width, bias, b, m)
    return total


@inlined
def move(indptr, indices, data, width, bias, a, b, c, m):
    """v += c · (stored row a − stored row b), and w follows."""
    stored_move(indptr, indices, data, width, bias, a, c, m)
    if b >= 0:
        stored_move(indptr, indices, data, width, bias, b, -c, m)


@inlined
def inner(indptr, indices, data, width, bias, a, b, c, d, m):
    """(row a − row b)ᵀ S (row c − row d) in the metric of the regularizer; negative b or d: no second row."""
    total = stored_inner(indptr, indices, data, width, bias, a, c, m)
    if b >= 0:
        total -= stored_inner(indptr, indices, data, width, bias, b, c, m)
    if d >= 0:
        total -= stored_inner(indptr, indices, data, width, bias, a, d, m)
        if b >= 0:
            total += stored_inner(indptr, indices, data, width, bias, b, d, m)
    return total


@inlined
def curvature(indptr, indices, data, width, bias, a, b, m):
    """‖row a − row b‖² in the metric of the regularizer, or ‖row a‖² if b is negative."""
    if b >= 0:
        return stored_difference(indptr, indices, data, width, bias, a, b, m)
    return stored_inner(indptr, indices, data, width, bias, a, a, m)

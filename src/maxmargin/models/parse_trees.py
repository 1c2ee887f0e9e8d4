"""Parse trees: nested tuples of names, as users write them, and rows (start, end, symbol), parents first."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..validation import shown


def rows_of(tree: Any, number: dict[str, int], what: str) -> np.ndarray:
    """The rows of a nested tree; arrays are such rows already.

    >>> rows_of(("S", "N", ("VP", "V")), {"S": 0, "N": 1, "VP": 2, "V": 3}, "y").tolist()
    [[0, 2, 0], [0, 1, 1], [1, 2, 2], [1, 2, 3]]
    """
    if isinstance(tree, np.ndarray):
        if tree.ndim != 2 or tree.shape[1] != 3 or tree.dtype.kind not in "iu" or not len(tree):
            raise ValueError(f"{what} must have rows (start, end, symbol), got an array of shape {tree.shape}.")
        return tree.astype(np.int64)
    rows: list[list[int]] = []
    open_nodes: list[tuple[int, int]] = []  # rows whose end is not known, and how many nodes of theirs are to come
    waiting, position = [tree], 0
    while waiting:
        node = waiting.pop()
        name, children = (node, ()) if isinstance(node, str) else _taken_apart(node, what)
        if name not in number:
            raise ValueError(
                f"{what} has the symbol {shown(name)}, which no rule has. There are {shown(list(number))}."
            )
        rows.append([position, -1, number[name]])
        open_nodes.append((len(rows) - 1, len(children)))
        waiting.extend(reversed(children))
        if not children:
            position += 1
        while open_nodes and not open_nodes[-1][1]:
            rows[open_nodes.pop()[0]][1] = position
            if open_nodes:
                row, left = open_nodes.pop()
                open_nodes.append((row, left - 1))
    return np.array(rows, np.int64)


def _taken_apart(node: Any, what: str) -> tuple[str, tuple[Any, ...]]:
    if not isinstance(node, tuple | list) or not 2 <= len(node) <= 3 or not isinstance(node[0], str):
        raise ValueError(
            f'{what} must be a tree of names such as ("S", ("NP", "D", "N"), "V"): a symbol, and one or two trees '
            f"below it; a name alone stands over a token. It has {shown(node)}."
        )
    return node[0], tuple(node[1:])


def children_of(rows: np.ndarray, n: int, what: str) -> list[list[int]]:
    """The numbers of the rows below each, of a tree over n tokens."""
    below: list[list[int]] = [[] for _ in rows]
    open_nodes: list[int] = []
    position = 0
    spans = rows[:, :2].tolist()
    for k, (s, e) in enumerate(spans):
        above = spans[open_nodes[-1]] if open_nodes else [0, n]
        if s != position or not s < e <= above[1] or (k > 0 and not open_nodes):
            raise ValueError(f"{what} is no tree over {n} tokens: row {k} of its nodes is {shown(rows[k].tolist())}.")
        if open_nodes:
            below[open_nodes[-1]].append(k)
        open_nodes.append(k)
        if e == s + 1 and (k + 1 == len(spans) or spans[k + 1] != [s, e]):  # over a token, nothing below
            position = e
            while open_nodes and spans[open_nodes[-1]][1] == position:
                open_nodes.pop()
    if position != n:
        raise ValueError(f"{what} covers {position} tokens, its sentence has {n}.")
    return below


def nested(rows: np.ndarray, names: list[str]) -> Any:
    """The tree of names.

    >>> nested(np.array([[0, 2, 0], [0, 1, 1], [1, 2, 2], [1, 2, 3]]), ["S", "N", "VP", "V"])
    ('S', 'N', ('VP', 'V'))
    """
    below = children_of(rows, int(rows[0, 1]), "The tree")
    made: list[Any] = [None] * len(rows)
    for k in range(len(rows) - 1, -1, -1):
        name = names[int(rows[k, 2])]
        made[k] = (name, *(made[child] for child in below[k])) if below[k] else name
    return made[0]

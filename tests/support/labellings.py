"""The best labelling of a graph: by trying all of them, and by max-sum where there are no cycles."""

from itertools import product

import numpy as np

from maxmargin.inference.trees import as_edges, as_tables, visiting_order
from maxmargin.kernels.graphs import max_sum


def best_of_all(score, n_nodes, n_labels):
    """The first labelling of the highest score, and that score."""
    everything = [np.array(labels) for labels in product(range(n_labels), repeat=n_nodes)]
    values = [float(score(labels)) for labels in everything]
    return everything[int(np.argmax(values))], max(values)


def best_on_forest(unary, edges, tables):
    edges, value = as_edges(edges, len(unary)), np.array(unary, dtype=float)
    labels = np.empty(len(unary), np.int32)
    visit = visiting_order(len(unary), edges)
    return labels, max_sum(value, labels.size, edges, as_tables(tables, len(edges), value.shape[1]), *visit, labels)

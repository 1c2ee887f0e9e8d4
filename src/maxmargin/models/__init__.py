"""Problems in terms of labels: each model here turns examples and labels into constraints.

``binary``, ``multiclass``, ``regression`` and ``ranking`` list all constraints at once; the classes search for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..extensions import attribute
from .assignment import Assignment
from .bags import Bags
from .chain import Chain
from .classes import Multiclass
from .closed import binary, multiclass, regression
from .dependency_tree import DependencyTree
from .grammar import Grammar
from .graph import Graph, grid
from .latent_graph import LatentGraph
from .max_min import MaxMin
from .multilabel import Multilabel
from .pystruct import from_pystruct
from .ramp import Ramp
from .ranked import NDCG, AveragePrecision
from .ranking import ranking
from .segmentation import Segmentation2D
from .semi_markov import SemiMarkov
from .set_measure import SetMeasure

if TYPE_CHECKING:
    from ..vision.models import Reconfigurable as Reconfigurable

__all__ = [
    "NDCG",
    "Assignment",
    "AveragePrecision",
    "Bags",
    "Chain",
    "DependencyTree",
    "Grammar",
    "Graph",
    "LatentGraph",
    "MaxMin",
    "Multiclass",
    "Multilabel",
    "Ramp",
    "Reconfigurable",
    "Segmentation2D",
    "SemiMarkov",
    "SetMeasure",
    "binary",
    "from_pystruct",
    "grid",
    "multiclass",
    "ranking",
    "regression",
]


def __getattr__(name: str) -> Any:
    return attribute(__name__, __all__, name)


def __dir__() -> list[str]:
    return sorted(__all__)

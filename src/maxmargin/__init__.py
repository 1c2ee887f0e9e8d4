"""maxmargin: one dual solver for every max-margin problem, and a certificate with every answer.

Names are imported when first used, so that ``import maxmargin`` is fast and compiles nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import (
        callbacks as callbacks,
        checks as checks,
        constraints as constraints,
        data as data,
        features as features,
        latent as latent,
        losses as losses,
        metrics as metrics,
        models as models,
        plots as plots,
        regularizers as regularizers,
        report as report,
        solvers as solvers,
        vision as vision,
    )
    from .clustering import GMMKMeans as GMMKMeans
    from .estimators import (
        LatentStructuralSVM as LatentStructuralSVM,
        LatentSVC as LatentSVC,
        LinearSVC as LinearSVC,
        LinearSVR as LinearSVR,
        MultilabelSVM as MultilabelSVM,
        RankingSVM as RankingSVM,
        SequenceSVM as SequenceSVM,
        StructuralSVM as StructuralSVM,
        load as load,
        path as path,
    )
    from .persistence import ModelFileError as ModelFileError
    from .problem import Certificate as Certificate, Problem as Problem, Rows as Rows, Solution as Solution
    from .solvers import certify as certify, solve as solve

_MODULES = (
    "callbacks", "checks", "constraints", "data", "features", "latent", "losses", "metrics", "models", "plots",
    "regularizers", "report", "solvers", "vision",
)  # fmt: skip
_NAMES = {
    "LinearSVC": "estimators",
    "LinearSVR": "estimators",
    "RankingSVM": "estimators",
    "StructuralSVM": "estimators",
    "MultilabelSVM": "estimators",
    "SequenceSVM": "estimators",
    "GMMKMeans": "clustering",
    "LatentStructuralSVM": "estimators",
    "LatentSVC": "estimators",
    "path": "estimators",
    "load": "estimators",
    "ModelFileError": "persistence",
    "Certificate": "problem",
    "Problem": "problem",
    "Rows": "problem",
    "Solution": "problem",
    "certify": "solvers",
    "solve": "solvers",
}

__all__ = ["__version__", *_MODULES, *_NAMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _NAMES:
        globals()[name] = found = vars(import_module(f".{_NAMES[name]}", __name__))[name]
        return found
    # Python's own traceback names the closest attribute, if it is told which module was asked.
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return sorted(__all__)

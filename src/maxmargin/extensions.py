"""Names of the packages that build on the core, and the modules that have them: imported when first used.

The core imports neither ``vision`` nor ``clustering``, and works without them. They register what files may hold
(``persistence``) when they are imported; this table says where to look for a name that nobody has imported yet.
"""

from __future__ import annotations

import sys
from collections.abc import Container
from importlib import import_module
from typing import Any

_NAMES = {
    "clustering": ("GMMKMeans",),
    "vision": ("SceneClassifier", "PartClassifier", "DeformablePartDetector"),
    "vision.models": ("Reconfigurable",),
    "vision.plots": (
        "detected", "detection_mosaic", "detector_filters", "filter_glyphs", "hog_glyphs", "labelled_regions",
        "part_curve", "part_weights", "precision_recall_curves", "region_models", "top_detections",
    ),
    "vision.synthetic": ("Scenes", "scenes"),
}  # fmt: skip
_HOMES = {name: home for home, names in _NAMES.items() for name in names}


def names(home: str) -> tuple[str, ...]:
    """The public names of a module of an extension."""
    return _NAMES[home]


def find(name: str) -> Any:
    """The object of that name; None if no extension has one."""
    home = _HOMES.get(name)
    return None if home is None else getattr(import_module(f".{home}", __package__), name)


def attribute(module: str, public: Container[str], name: str) -> Any:
    """What ``__getattr__`` of a module returns, some of whose public names belong to an extension."""
    if name in public and name in _HOMES:
        return find(name)
    # Python's own traceback names the closest attribute, if it is told which module was asked.
    raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name, obj=sys.modules[module])

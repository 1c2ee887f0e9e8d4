"""Data drawn from known distributions, for experiments in which it must be plain what a model can and cannot see.

Scenes, which are images, belong to ``maxmargin.vision`` and are imported when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..extensions import attribute

if TYPE_CHECKING:
    from ..vision.synthetic import Scenes, scenes

__all__ = ["Scenes", "scenes"]


def __getattr__(name: str) -> Any:
    return attribute(__name__, __all__, name)

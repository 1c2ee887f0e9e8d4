"""What a search over bounds saves, between bounds and within them, and what it finds there when it goes on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ..problem import BoundRecord
from ..protocols import Checkpoint
from .search_state import Latent

if TYPE_CHECKING:
    from .loop import Search


class SavedSearch:
    """A search in its checkpoint. For the bound in progress it is a checkpoint itself (``protocols.Checkpoint``): what
    ``solve`` saves stands beside the search that it is a part of."""

    def __init__(self, search: Search, checkpoint: Checkpoint) -> None:
        self._search, self._checkpoint = search, checkpoint
        self.under_way: dict[str, Any] | None = None
        """What was saved in the midst of the bound at hand."""

    def restored(self) -> dict[str, Any] | None:
        """What was saved, if anything was; the search has taken over from it what needs no check."""
        saved, search = self._checkpoint.load(), self._search
        if saved is None:
            return None
        search.history = [BoundRecord(*values) for values in saved["history"]]
        search.rng.bit_generator.state = saved["random"]
        search.tol, search.changed = max(float(saved["tol"]), search.settings.tol), float(saved["changed"])
        search.finishing = bool(saved["finishing"])
        search.clock -= float(saved["seconds"])
        search.latent, search.alpha, self.under_way = saved["latent"], saved["alpha"], saved.get("under_way")
        return saved

    def save_start(self) -> None:
        """Save before there is anything to lose: whether these latent values can be saved shows now."""
        try:
            self._checkpoint.save(self._content())
        except ValueError as error:
            raise ValueError(
                "checkpoint= can keep latent values that are numbers, text, arrays, or tuples and lists of them; "
                f"{error} Give the model such values, or fit without a checkpoint."
            ) from None

    def save_between(self) -> None:
        if self._search.ended or self.due():
            self._checkpoint.save(self._content())

    def load(self) -> dict[str, Any] | None:
        return self.under_way

    def due(self) -> bool:
        return self._checkpoint.due()

    def save(self, content: dict[str, Any]) -> None:
        if self.due():  # the end of a bound is saved with what comes after it
            self._checkpoint.save({**self._content(), "under_way": content})

    def _content(self) -> dict[str, Any]:
        search, best = self._search, self._search.best
        return {
            "latent": _plain(search.latent),
            "weights": np.empty(0) if search.weights is None else search.weights,
            "alpha": search.alpha,
            "best": {"weights": best.weights, "latent": _plain(best.latent), "alpha": best.alpha},
            "history": [tuple(vars(record).values()) for record in search.history],
            "random": search.rng.bit_generator.state,
            "tol": search.tol,
            "changed": search.changed,
            "finishing": search.finishing,
            "seconds": time.perf_counter() - search.clock,
        }


def _plain(latent: Latent) -> Latent:
    return latent if isinstance(latent, np.ndarray) else list(latent)

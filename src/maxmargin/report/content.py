"""What an estimator tells of itself on a page, and the data it is told about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .markup import Markup


@dataclass(frozen=True)
class Data:
    """What answers are compared with: arrays or lists with their labels, or a source that has both."""

    X: Any = None
    y: Any = None
    groups: Any = None
    name: str = "this data"

    @property
    def given(self) -> bool:
        return self.X is not None

    @property
    def is_source(self) -> bool:
        return callable(getattr(self.X, "chunks", None))

    def pairs(self) -> Iterator[tuple[Any, Any]]:
        """Inputs and labels, a chunk at a time."""
        if self.is_source:
            for chunk in self.X.chunks():
                if chunk.y is None:
                    raise ValueError(
                        "The source has no labels to compare answers with. Give it some, as in "
                        "maxmargin.data.open(X, labels=y), or leave it out."
                    )
                if len(chunk):
                    yield chunk.x, chunk.y
        elif self.given:
            yield self.X, self.y


@dataclass
class ReportContent:
    """The parts of a page that only an estimator knows.

    ``kind`` is its title where there is no other. ``results`` say how well it does on the data, ``tiles`` what was
    trained: names with text, or with counts. ``sections`` are titles with contents (those that are None are left out),
    ``facts`` describes the data. ``subject`` and ``about`` say what the certificate is of: "The objective" of the
    problem itself, unless something was fixed. ``claim`` takes its place where there is none. ``history`` is the
    section on how training went.
    """

    kind: str
    results: dict[str, str | int] = field(default_factory=dict)
    tiles: dict[str, str | int] = field(default_factory=dict)
    sections: list[tuple[str, Markup | None]] = field(default_factory=list)
    facts: Markup | None = None
    history: Markup | None = None
    subject: str = "The objective"
    about: str = ""
    claim: Markup | None = None


LATENT = "of the last convex bound, latent values fixed; about other latent values nothing is proved"
LAST_BOUND = "The last convex bound"

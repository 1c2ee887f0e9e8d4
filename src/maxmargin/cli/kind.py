"""What a task contributes to the commands; what is here holds for most of them."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Sized
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..problem import BoundRecord, Certificate, Record
from ..report import numbers
from ..report.content import Data
from ..solvers.progress import described
from .files import named

if TYPE_CHECKING:
    from .talk import Talk
    from .tasks import Task

D = TypeVar("D", bound=Sized)


class Kind(ABC, Generic[D]):
    """Data in files, a model of them, and what is said of both. ``unit`` is what is counted.

    ``model`` is None until it is loaded, or about to be trained.
    """

    unit = "rows"
    what = "data"
    helps = "More --max-passes, a smaller --C or features of similar scale help."
    uncertified = "this estimator has none"
    other = "This is likely not the data that the model was trained on, or it was read in another way."
    about = ""
    """What the certificate is of, where that is not the training problem itself."""
    model: Any = None

    def __init__(self, task: Task, args: argparse.Namespace, talk: Talk) -> None:
        self.task, self.args, self.talk = task, args, talk

    # Data

    def prepare(self, settings: dict[str, Any]) -> None:
        """Complete the settings, and refuse those that make no sense together."""

    @abstractmethod
    def open(self, paths: list[str]) -> D:
        """The data in these files, to train a model or to compare it with."""

    def training(self) -> tuple[D, D | None]:
        """Data to learn from, and to be judged by (or None): what is wrong with them is said before training."""
        return self.open(self.args.data), self.open(self.args.test) if self.args.test else None

    def held_out(self, data: D) -> D:
        """Data to be judged by, now that the model knows how it was read."""
        return data

    @abstractmethod
    def arguments(self, data: D) -> tuple[Any, ...]:
        """The data as ``fit`` and ``certify`` take it."""

    @abstractmethod
    def page(self, data: D, name: str) -> Data:
        """The data as a report takes it."""

    def reported(self, name: str) -> tuple[Data, dict[str, Any]]:
        """What ``maxmargin report`` shows beside the model, and what it says of it."""
        return self.page(self.open(self.args.data), name) if self.args.data else Data(), {}

    def left_out(self, data: D) -> int:
        """How many examples could not be used in training."""
        return 0

    # Training, and what it came to

    def fit(self, model: Any, data: D, options: dict[str, Any], interrupted: list[bool]) -> Any:
        """The fitted model; ``options`` are those of ``fit``, and the list is not empty once Ctrl-C was pressed."""
        return model.fit(*self.arguments(data), **options)

    def shown(self, data: D, test: D | None) -> tuple[D, str]:
        """The data that a report is about, and what it is called."""
        if test is None:
            return data, f"training {self.what} ({named(self.args.data)})"
        return test, f"test {self.what} ({named(self.args.test) if self.args.test else 'held out'})"

    @abstractmethod
    def facts(self, data: D) -> dict[str, Any]:
        """What was trained, for programs."""

    def trained_on(self, data: D) -> int:
        """How many examples training has used."""
        return len(data)

    def rows(self, facts: dict[str, Any]) -> list[tuple[str, str]]:
        """The same for people."""
        return [("features", numbers.count(facts["features"]))]

    def outcome(self, interrupted: bool) -> dict[str, Any]:
        """What training can prove, and whether it got where it was to go."""
        model, certificate = self.model, self.model.certificate_
        found = {"certificate": as_json(certificate), "tol": model.tol, "passes": self.passes()}
        solved = certificate.relative_gap <= model.tol
        bounds = [record for record in model.history_ if isinstance(record, BoundRecord)]
        if not bounds:
            return found | {"converged": solved}
        closed = bounds[-1].gap <= model.bound_tol * abs(bounds[-1].objective)
        # Without an upper bound there is nothing to compare tol with.
        reached = closed and (solved or not certificate.exact) and not interrupted
        return found | {"converged": reached, "bounds": len(bounds), "objective": model.objective_}

    def passes(self) -> int:
        return int(self.model.n_passes_)

    def line(self, record: Any) -> str:
        """A record of training, for the log."""
        if isinstance(record, Record):
            return described(record, self.model.tol)
        return (
            f"bound {record.number}, objective {record.objective:.6g}, gap {record.gap:.1e}, "
            f"{record.changed:.0%} of the latent values changed, {record.seconds:.1f} s"
        )

    @abstractmethod
    def score(self, data: D) -> dict[str, Any]:
        """How well it does: ``score`` is what is measured, ``value`` how much it is; and how many it is measured on."""

    def in_words(self, score: dict[str, Any]) -> str:
        return f"{numbers.score(self.task.name, score['value'])} on {numbers.count(score[self.unit])} {self.unit}"

    # With a model at hand

    def certified(self, data: D) -> Certificate:
        """The bounds, computed anew."""
        found: Certificate = self.model.certify(*self.arguments(data))
        return found

    def use(self, model: Any) -> None:
        """Take a loaded model, with the means of this machine."""
        self.model = model

    @abstractmethod
    def predict(self) -> None: ...


def as_json(certificate: Certificate) -> dict[str, float | bool]:
    return {
        "lower": certificate.lower,
        "upper": certificate.upper,
        "gap": certificate.gap,
        "relative_gap": certificate.relative_gap,
        "exact": certificate.exact,
        "relaxation": certificate.relaxation,
        "relaxed": certificate.relaxed,
    }


def bracket(certificate: Certificate, tol: float, state: bool = False) -> list[tuple[str, str]]:
    """Both bounds and their gap, as rows of a table."""
    below = f"{certificate.lower:.8g} <= {certificate.optimum}"
    if not certificate.exact:
        return [("certificate", f"{below}; searched approximately: no upper bound")]
    gap = certificate.relative_gap
    reached = (" reached" if gap <= tol else " NOT reached") if state else ""
    loose = f", of which relaxation {certificate.loose:.1e}" if certificate.loose else ""
    return [
        ("certificate", f"{below} <= {certificate.upper:.8g}"),
        ("relative gap", f"{gap:.1e}{loose}, goal {tol:g}{reached}"),
    ]

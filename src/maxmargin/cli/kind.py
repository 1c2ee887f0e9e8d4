"""What a task contributes to the commands; what is here holds for most of them."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from .reading import again

if TYPE_CHECKING:
    from ..report.content import Data
    from .talk import Talk
    from .tasks import Task


class Kind(ABC):
    """Data in files, a model of them, and what is said of both. ``unit`` is what is counted."""

    unit = "rows"
    what = "data"
    reads: tuple[str, ...] = ("label", "group", "weight", "zero_based", "on_error")
    helps = "More --max-passes, a smaller --C or features of similar scale help."
    uncertified = "this estimator has none"
    other = "This is likely not the data that the model was trained on, or it was read in another way."

    def __init__(self, task: Task) -> None:
        self.task = task

    # Data

    def prepare(self, args: argparse.Namespace, settings: dict[str, Any]) -> None:  # noqa: B027
        """Complete the settings, and refuse those that make no sense together."""

    @abstractmethod
    def open(self, args: argparse.Namespace, paths: list[str], model: Any = None) -> Any:
        """The data in these files, to train ``model`` or, if that is fitted, to compare it with."""

    def training(self, args: argparse.Namespace) -> tuple[Any, Any]:
        """Data to learn from, and to be judged by (or None): what is wrong with them is said before training."""
        return self.open(args, args.data), self.open(args, args.test) if args.test else None

    def held_out(self, args: argparse.Namespace, data: Any, model: Any) -> Any:
        """Data to be judged by, now that the model knows how it was read."""
        return data

    @abstractmethod
    def arguments(self, data: Any) -> tuple[Any, ...]:
        """The data as ``fit`` and ``certify`` take it."""

    def count(self, data: Any, model: Any = None) -> int:
        """How many examples there are; with a model, how many of them it was trained on."""
        return len(data)

    @abstractmethod
    def page(self, data: Any, name: str) -> Data:
        """The data as a report takes it."""

    def reported(self, args: argparse.Namespace, model: Any, name: str) -> tuple[Data, dict[str, Any]]:
        """What ``maxmargin report`` shows beside the model, and what it says of it."""
        from ..report.content import Data

        return self.page(self.open(args, args.data, model), name) if args.data else Data(), {}

    def left_out(self, model: Any, data: Any) -> int:
        """How many examples could not be used in training."""
        return 0

    # What training came to

    def facts(self, model: Any, data: Any) -> dict[str, Any]:
        """What was trained, for programs."""
        classes = getattr(model, "classes_", None)
        return {"features": model.n_features_in_, "classes": None if classes is None else len(classes)}

    def rows(self, model: Any, facts: dict[str, Any]) -> list[tuple[str, str]]:
        """The same for people."""
        from ..report import numbers

        return [("features", numbers.count(facts["features"]))]

    def about(self, model: Any) -> str:
        """What the certificate is of, where that is not the training problem itself."""
        from ..report.content import LATENT

        return LATENT if _bounds(model) else ""

    def outcome(self, model: Any, interrupted: bool) -> dict[str, Any]:
        """What training can prove, and whether it got where it was to go."""
        certificate = model.certificate_
        found = {"certificate": as_json(certificate), "tol": model.tol, "passes": self.passes(model)}
        solved = certificate.relative_gap <= model.tol
        bounds = _bounds(model)
        if not bounds:
            return found | {"converged": solved}
        closed = bounds[-1].gap <= model.bound_tol * abs(bounds[-1].objective)
        # Without an upper bound there is nothing to compare tol with.
        reached = closed and (solved or not certificate.exact) and not interrupted
        return found | {"converged": reached, "bounds": len(bounds), "objective": model.objective_}

    def passes(self, model: Any) -> int:
        return int(model.n_passes_)

    def line(self, record: Any, tol: float) -> str:
        """A record of training, for the log."""
        from ..problem import BoundRecord
        from ..solvers.progress import described

        if not isinstance(record, BoundRecord):
            return described(record, tol)
        return (
            f"bound {record.number}, objective {record.objective:.6g}, gap {record.gap:.1e}, "
            f"{record.changed:.0%} of the latent values changed, {record.seconds:.1f} s"
        )

    @abstractmethod
    def score(self, args: argparse.Namespace, model: Any, data: Any) -> dict[str, Any]:
        """How well it does: ``score`` is what is measured, ``value`` how much it is; and how many it is measured on."""

    def in_words(self, score: dict[str, Any]) -> str:
        from ..report import numbers

        return f"{numbers.score(self.task.name, score['value'])} on {numbers.count(score[self.unit])} {self.unit}"

    def next_steps(self, args: argparse.Namespace, model: str, data: str) -> list[tuple[str, str]]:
        """Commands to go on with."""
        same = again(args, self.reads)
        return [
            ("predict", f"maxmargin predict {model} NEW-DATA{same} -o answers.txt"),
            ("prove it again", f"maxmargin certify {model} {data}{same}"),
            ("look at it", f"maxmargin report {model} {data}{same} -o report.html"),
        ]

    # With a model at hand

    def use(self, args: argparse.Namespace, model: Any, talk: Talk) -> Any:
        """A loaded model, with the means of this machine."""
        return model

    @abstractmethod
    def predict(self, args: argparse.Namespace, model: Any, talk: Talk) -> None: ...


def _bounds(model: Any) -> list[Any]:
    from ..problem import BoundRecord

    return [record for record in model.history_ if isinstance(record, BoundRecord)]


def as_json(certificate: Any) -> dict[str, Any]:
    names = ("lower", "upper", "gap", "relative_gap", "exact")
    return {name: getattr(certificate, name) for name in names}


def bracket(certificate: dict[str, Any], tol: float, state: bool = False) -> list[tuple[str, str]]:
    """Both bounds and their gap, as rows of a table."""
    if not certificate["exact"]:
        return [("certificate", f"{certificate['lower']:.8g} <= optimum; searched approximately: no upper bound")]
    gap = certificate["relative_gap"]
    reached = (" reached" if gap <= tol else " NOT reached") if state else ""
    return [  # no -0
        ("certificate", f"{certificate['lower'] + 0.0:.8g} <= optimum <= {certificate['upper']:.8g}"),
        ("relative gap", f"{gap:.1e}, goal {tol:g}{reached}"),
    ]

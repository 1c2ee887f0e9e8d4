"""Rows of a matrix in files that need not fit into memory: classes, numbers and orders."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from ..report.content import Data
from .files import answers_to, on_one_line
from .kind import Kind
from .reading import open_source
from .talk import Talk, say_left_out, warn

_MEMORY = "512MB"  # of training, if nothing is said


class Rows(Kind):
    def prepare(self, args: argparse.Namespace, settings: dict[str, Any]) -> None:
        from ..estimators.inputs import check_memory

        args.memory = settings.setdefault("memory", _MEMORY)
        check_memory(args.memory)

    def open(self, args: argparse.Namespace, paths: list[str], model: Any = None) -> Any:
        """Rows at the end of a text file may lack the last features; a model knows how many there were."""
        more = {"n_features": model.n_features_in_} if args.command == "certify" and args.features is None else {}
        more |= {"n_features": None} if args.command == "train" and paths is args.test else {}
        return open_source(paths, args, like=model, **more)

    def held_out(self, args: argparse.Namespace, data: Any, model: Any) -> Any:
        return self.open(args, args.test, model)

    def arguments(self, data: Any) -> tuple[Any, ...]:
        return (data,)

    def page(self, data: Any, name: str) -> Data:
        return Data(data, name=name)

    def left_out(self, model: Any, data: Any) -> int:
        from ..report.reading import left_out

        return left_out(data)[0]

    def facts(self, model: Any, data: Any) -> dict[str, Any]:
        return super().facts(model, data) | {"skipped": self.left_out(model, data)}

    def score(self, args: argparse.Namespace, model: Any, data: Any) -> dict[str, Any]:
        from ..report.reading import measure

        tally, survey = measure(model, data)
        return {"score": tally.name, "value": tally.score, "rows": survey.rows}

    def predict(self, args: argparse.Namespace, model: Any, talk: Talk) -> None:
        from ..report import numbers
        from ..report.reading import Survey, scored
        from ..report.tallies import tally_for

        source, task = self.open(args, args.data, model), self.task.name
        tally, survey = tally_for(model), Survey()
        lines = _lines_of(model, task, args.scores)
        # Answers on a terminal are progress enough, and would be torn by another line.
        shown = args.output or not sys.stdout.isatty()
        with answers_to(args) as file, talk.counting("Answered") if shown else nullcontext(_nothing) as progress:
            for chunk, scores in scored(model, source, survey):
                if file is not None:
                    file.write(lines(scores))
                if chunk.y is not None:
                    tally.add(chunk, scores)
                progress(survey.rows)
        extra = survey.features - model.n_features_in_
        if extra > 0:
            warn(
                f"{extra} of {survey.features} features were not in the training data; they have no weight and are "
                "ignored."
            )
        unseen = getattr(tally, "unseen", 0)
        if unseen and tally.score is not None:
            value, row = tally.first_unseen  # type: ignore[attr-defined]
            warn(
                f"{unseen} rows have labels that were not in the training data and count as wrong; the first is "
                f"{numbers.label(value)!r} in row {row + 1}."
            )
        talk.result(
            command="predict", task=task, model=args.model, rows=survey.rows, features=survey.features,
            features_ignored=max(extra, 0), score=tally.name, value=tally.score, labelled_rows=tally.rows,
            labels_unseen=unseen, skipped=survey.left_out[0], output=args.output,
        )  # fmt: skip
        say_left_out(source)
        talk.say(f"{numbers.count(survey.rows)} rows answered. {_verdict(task, tally)}")


def _nothing(rows: int) -> None:
    """Progress that nobody sees."""


def _verdict(task: str, tally: Any) -> str:
    from ..report import numbers

    if not tally.rows:
        return "There are no labels to compare them with."
    if tally.score is None:
        reason = {
            "classify": "None of the labels was in the training data",
            "regress": "All labels are the same",
            "rank": "No two rows of one group have different grades",
        }[task]
        return f"{reason}: no score."
    return f"{tally.name[0].upper()}{tally.name[1:]}: {numbers.score(task, tally.score)}."


def _lines_of(model: Any, task: str, with_scores: bool) -> Callable[[np.ndarray], str]:
    """A function from the scores of a chunk to its lines."""
    from ..report import numbers
    from ..report.tallies import chosen

    if task != "classify":
        return lambda scores: "".join([f"{score:.9g}\n" for score in scores.tolist()])
    names = np.array([on_one_line(numbers.label(c)) for c in model.classes_], dtype=object)
    if not with_scores:
        return lambda scores: "".join([f"{name}\n" for name in names[chosen(scores)]])

    def lines(scores: np.ndarray) -> str:
        rows = scores[:, None] if scores.ndim == 1 else scores
        values = ["\t".join([f"{s:.9g}" for s in row]) for row in rows.tolist()]
        return "".join([f"{name}\t{v}\n" for name, v in zip(names[chosen(scores)], values, strict=True)])

    return lines

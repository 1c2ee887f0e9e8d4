"""Rows of a matrix in files that need not fit into memory: classes, numbers and orders, told apart by their labels."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..data.chunked import left_out
from ..data.errors import DataError
from ..estimators.inputs import check_memory
from ..protocols import Source
from ..report import numbers
from ..report.content import Data
from ..report.tallies import Classes, Survey, Tally, chosen, measure, scored, tally_for
from .files import answers_to, on_one_line, open_source
from .kind import Kind
from .talk import say_left_out, warn

if TYPE_CHECKING:
    from ..estimators.linear import LinearEstimator

_MEMORY = "512MB"  # of training, if nothing is said
# As many rows tell as much about the kind of labels as all of them would.
_LOOKED_AT = 100_000
_FEW = 10
_ROWS_PER_CLASS = 5
_MOST_CLASSES = 1000


class Rows(Kind[Source]):
    model: LinearEstimator

    def prepare(self, settings: dict[str, Any]) -> None:
        self.args.memory = settings.setdefault("memory", _MEMORY)
        check_memory(self.args.memory)

    def open(self, paths: list[str]) -> Source:
        """Rows at the end of a text file may lack the last features; a model knows how many there were."""
        args = self.args
        more: dict[str, int | None] = {}
        if args.command == "certify" and args.features is None:
            more["n_features"] = self.model.n_features_in_
        elif args.command == "train" and paths is args.test:
            more["n_features"] = None
        return open_source(paths, args, like=self.model, **more)

    def held_out(self, data: Source) -> Source:
        return self.open(self.args.test)

    def arguments(self, data: Source) -> tuple[Source]:
        return (data,)

    def page(self, data: Source, name: str) -> Data:
        return Data(data, name=name)

    def left_out(self, data: Source) -> int:
        return left_out(data)[0]

    def facts(self, data: Source) -> dict[str, Any]:
        classes = len(self.model.classes_) if self.task.name == "classify" else None
        return {"features": self.model.n_features_in_, "classes": classes, "skipped": self.left_out(data)}

    def score(self, data: Source) -> dict[str, Any]:
        tally, survey = measure(self.model, data)
        return {"score": tally.name, "value": tally.score, "rows": survey.rows}

    def predict(self) -> None:
        args, task = self.args, self.task.name
        source = self.open(args.data)
        tally, survey = tally_for(self.model), Survey()
        lines = _lines_of(self.model, task, args.scores)
        # Answers on a terminal are progress enough, and would be torn by another line.
        shown = args.output or not sys.stdout.isatty()
        counting = self.talk.counting("Answered") if shown else nullcontext(lambda rows: None)
        with answers_to(args) as file, counting as progress:
            for chunk, scores in scored(self.model, source, survey):
                if file is not None:
                    file.write(lines(scores))
                if chunk.y is not None:
                    tally.add(chunk, scores)
                progress(survey.rows)
        extra = survey.features - self.model.n_features_in_
        if extra > 0:
            warn(
                f"{extra} of {survey.features} features were not in the training data; they have no weight and are "
                "ignored."
            )
        unseen = tally.unseen if isinstance(tally, Classes) else 0
        if isinstance(tally, Classes) and tally.first_unseen and tally.score is not None:
            value, row = tally.first_unseen
            warn(
                f"{unseen} rows have labels that were not in the training data and count as wrong; the first is "
                f"{numbers.label(value)!r} in row {row + 1}."
            )
        self.talk.result(
            command="predict", task=task, model=args.model, rows=survey.rows, features=survey.features,
            features_ignored=max(extra, 0), score=tally.name, value=tally.score, labelled_rows=tally.rows,
            labels_unseen=unseen, skipped=survey.left_out[0], output=args.output,
        )  # fmt: skip
        say_left_out(source)
        self.talk.say(f"{numbers.count(survey.rows)} rows answered. {_verdict(task, tally)}")


def _verdict(task: str, tally: Tally) -> str:
    if not tally.rows:
        return "There are no labels to compare them with."
    if tally.score is None:
        return f"{tally.unjudged}: no score."
    return f"{tally.name[0].upper()}{tally.name[1:]}: {numbers.score(task, tally.score)}."


def _lines_of(model: LinearEstimator, task: str, with_scores: bool) -> Callable[[np.ndarray], str]:
    """A function from the scores of a chunk to its lines."""
    if task != "classify":
        return lambda scores: "".join([f"{score:.9g}\n" for score in scores.tolist()])
    names = np.array([on_one_line(numbers.label(c)) for c in model.classes_], dtype=object)

    def lines(scores: np.ndarray) -> str:
        answers = names[chosen(scores)]
        if not with_scores:
            return "".join([f"{name}\n" for name in answers])
        rows = scores.reshape(len(scores), -1).tolist()
        return "".join(
            ["\t".join([name, *[f"{s:.9g}" for s in row]]) + "\n" for name, row in zip(answers, rows, strict=True)]
        )

    return lines


class Guess(NamedTuple):
    task: str
    because: str


def guess_task(source: Source) -> Guess:
    """Look at the first labels.

    - Rows in groups are to be ranked: nothing else uses groups.
    - Text names classes. So do whole numbers, if they are few: up to ten different ones (digits, grades, −1 and 1),
      or more with at least five rows each on average. Fewer rows could not teach a class, and are what counts of
      things look like. Beyond a thousand a weight vector each would be a waste on what is likely a measurement.
    - Anything else is a number to predict.
    """
    rows, values = 0, np.empty(0)
    chunks = source.chunks()
    try:
        for chunk in chunks:
            if chunk.group is not None:
                return Guess("rank", "its rows are in groups")
            if chunk.y is None:
                raise DataError("The data has no labels to learn from. Name their column with --label.")
            y = np.asarray(chunk.y)
            if y.dtype.kind not in "biuf":
                return Guess("classify", "labels are text")
            if not (np.isfinite(y).all() and (y == np.floor(y)).all()):
                return Guess("regress", "labels are not whole numbers")
            rows += y.size
            values = np.union1d(values, y)
            if rows >= _LOOKED_AT:
                break
    finally:
        if hasattr(chunks, "close"):
            chunks.close()
    if rows == 0:
        return Guess("classify", "there are no rows")
    if values.size <= min(_MOST_CLASSES, max(_FEW, rows // _ROWS_PER_CLASS)):
        return Guess("classify", f"labels are {values.size} different whole number{'s' * (values.size > 1)}")
    return Guess("regress", f"labels are {values.size} different numbers in {rows} rows, too many for classes")

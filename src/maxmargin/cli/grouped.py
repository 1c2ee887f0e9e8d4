"""Rows that are learned from together, in memory: sequences, bags, rows with several labels."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.bags import Bags as BagsOfRows
from ..data.errors import DataError
from ..data.opening import open as open_data
from ..data.svmlight import LabelSets
from ..report.content import Data
from .files import answers_to, on_one_line
from .kind import Kind
from .reading import open_source, reading, where
from .talk import Talk, say_left_out


@dataclass(frozen=True)
class Collected:
    """Rows, sequences or bags with labels, groups and weights, as far as there are any."""

    X: Any
    y: Any
    group: np.ndarray | None = None
    weight: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.X) if not sp.issparse(self.X) else self.X.shape[0]


def collected(args: argparse.Namespace, paths: list[str], model: Any = None) -> Collected:
    """All rows of files, as wide as those that the model knows."""
    return _collected(open_source(paths, args, like=model), paths, model)


def _collected(source: Any, paths: list[str], model: Any) -> Collected:
    from ..report.reading import to_width

    columns = [(c.x.copy(), c.y, c.group, c.weight) for c in source.chunks() if len(c)]
    if not columns:
        raise DataError(f"{paths[0]} has no rows.")
    say_left_out(source)
    x, y, group, weight = zip(*columns, strict=True)
    width = max(part.shape[1] for part in x) if model is None else _width(model)
    parts = [to_width(part, width) for part in x]
    X = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
    return Collected(X, *(None if column[0] is None else np.concatenate(column) for column in (y, group, weight)))


def _width(model: Any) -> int:
    return getattr(model, "n_features_in_", None) or model.model_.n_features


class InMemory(Kind):
    """Data in lists or matrices, with one answer for each."""

    measure = "accuracy"

    def facts(self, model: Any, data: Any) -> dict[str, Any]:
        return {"features": _width(model), "classes": len(model.classes_)}

    def arguments(self, data: Any) -> tuple[Any, ...]:
        return data.X, data.y

    def page(self, data: Any, name: str) -> Data:
        return Data(data.X, data.y, name=name)

    def score(self, args: argparse.Namespace, model: Any, data: Any) -> dict[str, Any]:
        return {"score": self.measure, "value": model.score(data.X, data.y), self.unit: self.count(data)}

    def lines(self, answers: Any) -> Iterable[str]:
        return (_text(answer) for answer in answers)

    def predict(self, args: argparse.Namespace, model: Any, talk: Talk) -> None:
        from ..report import numbers

        data = self.open(args, args.data, model)
        answers = model.predict(data.X)
        with answers_to(args) as file:
            if file is not None:
                file.writelines(f"{line}\n" for line in self.lines(answers))
        score = None if data.y is None else self.score(args, model, data)
        talk.result(
            command="predict", task=self.task.name, model=args.model, score=self.measure,
            value=None if score is None else score["value"], output=args.output, **{self.unit: self.count(data)},
        )  # fmt: skip
        verdict = "" if score is None else f" {self.measure.capitalize()}: {self.in_words(score)}."
        talk.say(f"{numbers.count(self.count(data))} {self.unit} answered.{verdict}")


def _text(label: Any) -> str:
    from ..report import numbers

    return on_one_line(numbers.label(label))


def _bags(data: Collected, what: str) -> BagsOfRows:
    """Rows of one group, which must be next to each other."""
    if data.group is None:
        raise DataError(
            f"The rows are in no groups, and each is one of the {what}. Text files have qid: after the label, tables a "
            "column that --group names."
        )
    first = np.flatnonzero(np.r_[True, data.group[1:] != data.group[:-1], True])
    if np.unique(data.group).size != first.size - 1:
        raise DataError(f"The rows of a group must be next to each other, in their order: groups are {what}.")
    return BagsOfRows(data.X, first)


class Sequences(InMemory):
    """A group is a sequence, as in files of SVM-hmm."""

    unit = "sequences"
    measure = "accuracy of labels"

    def open(self, args: argparse.Namespace, paths: list[str], model: Any = None) -> Collected:
        data = collected(args, paths, model)
        bags = _bags(data, self.unit)
        labels = None if data.y is None else [part.tolist() for part in np.split(data.y, bags.first[1:-1])]
        return Collected([sp.csr_matrix(bag) for bag in bags], labels)

    def lines(self, answers: Any) -> Iterable[str]:
        return (_text(label) for answer in answers for label in answer)


class Bags(InMemory):
    """A group is a bag; its rows all have its label."""

    unit = "bags"

    def open(self, args: argparse.Namespace, paths: list[str], model: Any = None) -> Collected:
        data = collected(args, paths, model)
        bags = _bags(data, self.unit)
        if data.y is None:
            return Collected(bags, None)
        labels = data.y[bags.first[:-1]]
        wrong = np.flatnonzero(np.repeat(labels, bags.sizes) != data.y)
        if wrong.size:
            raise DataError(f"Row {wrong[0] + 1} has another label than the first row of its group: a bag has one.")
        return Collected(bags, labels)


class Labels(InMemory):
    """Rows with several labels each: text files in which these have commas between them."""

    measure = "exact matches"

    def open(self, args: argparse.Namespace, paths: list[str], model: Any = None) -> Collected:
        source = LabelSets(open_data(where(paths), dtype=np.float64, **reading(args)))
        data = _collected(source, paths, model)
        for i, row in enumerate(source.sets):
            if model is None and not all(label >= 0 and label.is_integer() for label in row):
                raise DataError(f"Row {i + 1} has the labels {row}: labels are whole numbers from 0.")
        largest = max((label for row in source.sets for label in row), default=0)
        n = int(largest) + 1 if model is None else model.classes_.size
        y = np.zeros((len(data), n), np.int8)
        for i, row in enumerate(source.sets):
            y[i, [int(label) for label in row if 0 <= label < n and label.is_integer()]] = 1
        return Collected(data.X, y)

    def lines(self, answers: Any) -> Iterable[str]:
        return (",".join(map(str, np.flatnonzero(row))) for row in answers)

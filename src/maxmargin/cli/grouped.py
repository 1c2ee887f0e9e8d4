"""Rows that are learned from together, in memory: sequences, bags, rows with several labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.bags import Bags as BagsOfRows
from ..data.errors import DataError
from ..data.opening import open as open_data
from ..data.svmlight import LabelSets
from ..protocols import Source
from ..report import numbers
from ..report.content import LATENT, Data
from ..report.tallies import to_width
from .files import answers_to, on_one_line, open_source, reading, refuse_sentences, where
from .kind import Kind
from .talk import say_left_out


@dataclass(frozen=True)
class Collected:
    """Rows, sequences or bags with labels, groups and weights, as far as there are any."""

    X: Any
    y: np.ndarray | list[list[Any]] | None
    group: np.ndarray | None = None
    weight: np.ndarray | None = None

    def __len__(self) -> int:
        return self.X.shape[0] if sp.issparse(self.X) else len(self.X)


class InMemory(Kind[Collected]):
    """Data in lists or matrices, with one answer for each."""

    measure = "accuracy"

    def collected(self, paths: list[str], source: Source | None = None) -> Collected:
        """All rows of files, as wide as those that the model knows."""
        source = open_source(paths, self.args, like=self.model) if source is None else source
        columns = [(c.x.copy(), c.y, c.group, c.weight) for c in source.chunks() if len(c)]
        if not columns:
            raise DataError(f"{paths[0]} has no rows.")
        say_left_out(source)
        x, y, group, weight = zip(*columns, strict=True)
        width = max(part.shape[1] for part in x) if self.model is None else self.width()
        parts = [to_width(part, width) for part in x]
        X = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
        return Collected(X, *(None if column[0] is None else np.concatenate(column) for column in (y, group, weight)))

    def width(self) -> int:
        """How many features the model knows."""
        return int(self.model.n_features_in_)

    def facts(self, data: Collected) -> dict[str, Any]:
        return {"features": self.width(), "classes": len(self.model.classes_)}

    def arguments(self, data: Collected) -> tuple[Any, ...]:
        return data.X, data.y

    def page(self, data: Collected, name: str) -> Data:
        return Data(data.X, data.y, name=name)

    def score(self, data: Collected) -> dict[str, Any]:
        return {"score": self.measure, "value": self.model.score(data.X, data.y), self.unit: len(data)}

    def lines(self, answers: Iterable[object]) -> Iterable[str]:
        return (on_one_line(numbers.label(answer)) for answer in answers)

    def predict(self) -> None:
        data = self.open(self.args.data)
        with answers_to(self.args) as file:
            answers = self.lines(self.model.predict(data.X))
            if file is not None:
                file.writelines(f"{line}\n" for line in answers)
        score = None if data.y is None else self.score(data)
        self.talk.result(
            command="predict", task=self.task.name, model=self.args.model, score=self.measure,
            value=None if score is None else score["value"], output=self.args.output, **{self.unit: len(data)},
        )  # fmt: skip
        verdict = "" if score is None else f" {self.measure.capitalize()}: {self.in_words(score)}."
        self.talk.say(f"{numbers.count(len(data))} {self.unit} answered.{verdict}")


class Grouped(InMemory):
    """Rows of one group, which must be next to each other, are one example."""

    def grouped(self, paths: list[str]) -> tuple[BagsOfRows, np.ndarray | None]:
        """The groups, and the labels of all rows."""
        data = self.collected(paths)
        if data.group is None:
            raise DataError(
                f"The rows are in no groups, and each is one of the {self.unit}. Text files have qid: after the "
                "label, tables a column that --group names."
            )
        first = np.flatnonzero(np.r_[True, data.group[1:] != data.group[:-1], True])
        if np.unique(data.group).size != first.size - 1:
            raise DataError(f"The rows of a group must be next to each other, in their order: groups are {self.unit}.")
        return BagsOfRows(data.X, first), None if data.y is None else np.asarray(data.y)


class Sequences(Grouped):
    """A group is a sequence, as in files of SVM-hmm."""

    unit = "sequences"
    measure = "accuracy of labels"

    def open(self, paths: list[str]) -> Collected:
        bags, y = self.grouped(paths)
        labels = None if y is None else [part.tolist() for part in np.split(y, bags.first[1:-1])]
        return Collected([sp.csr_matrix(bag) for bag in bags], labels)

    def width(self) -> int:
        return int(self.model.model_.n_features)

    def lines(self, answers: Iterable[Any]) -> Iterable[str]:
        return super().lines(label for answer in answers for label in answer)


class Bags(Grouped):
    """A group is a bag; its rows all have its label."""

    unit = "bags"
    about = LATENT

    def open(self, paths: list[str]) -> Collected:
        bags, y = self.grouped(paths)
        if y is None:
            return Collected(bags, None)
        labels = y[bags.first[:-1]]
        wrong = np.flatnonzero(np.repeat(labels, bags.sizes) != y)
        if wrong.size:
            raise DataError(f"Row {wrong[0] + 1} has another label than the first row of its group: a bag has one.")
        return Collected(bags, labels)


class Labels(InMemory):
    """Rows with several labels each: text files in which these have commas between them."""

    measure = "exact matches"

    def open(self, paths: list[str]) -> Collected:
        refuse_sentences(paths)
        source = LabelSets(open_data(where(paths), dtype=np.float64, **reading(self.args)))
        data = self.collected(paths, source)
        for i, row in enumerate(source.sets):
            if self.model is None and not all(label >= 0 and label.is_integer() for label in row):
                raise DataError(f"Row {i + 1} has the labels {row}: labels are whole numbers from 0.")
        largest = max((label for row in source.sets for label in row), default=0)
        n = int(largest) + 1 if self.model is None else self.model.classes_.size
        y = np.zeros((len(data), n), np.int8)
        for i, row in enumerate(source.sets):
            y[i, [int(label) for label in row if 0 <= label < n and label.is_integer()]] = 1
        return Collected(data.X, y)

    def lines(self, answers: Iterable[Any]) -> Iterable[str]:
        return (",".join(map(str, np.flatnonzero(row))) for row in answers)

"""What can be learned: the tasks of ``maxmargin train``, and where the estimator and the commands of each are.

This table is all that the core knows of images and clusters; their modules are imported when a command needs them.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .signatures import Parameter, fit_options, parameters
from .tagging_options import TAGGING

if TYPE_CHECKING:
    from .kind import Kind
    from .talk import Talk

READING = (
    Parameter("label", about="Column of labels (Parquet): label, y or target if nothing is said."),
    Parameter("group", about="Column of groups (Parquet), for what is ranked, sequences and bags."),
    Parameter("weight", about="Column of weights of rows (Parquet)."),
    Parameter("zero_based", "auto", '{"auto", "yes", "no"}', "Whether text files count features from 0."),
    Parameter("features", None, "int", "Number of features, where it is known."),
    Parameter("on_error", "raise", '{"raise", "skip"}', "What to do with rows that cannot be read."),
)
SCORES = Parameter("scores", False, "bool", "Write the scores of the classes as well.")
_EVERYWHERE = ("n_jobs", "random_state", "verbose", "warm_start")  # options of all tasks, or of none


@dataclass(frozen=True)
class Task:
    """``home`` is the module of the estimator, ``commands`` the module and class of the :class:`~.kind.Kind`.

    ``own`` are options beside the estimator's parameters: those of a module's ``OPTIONS``, or how to read rows;
    ``also`` are more of them, by command.
    """

    name: str
    home: str
    estimator: str
    commands: str
    own: str = ""
    also: Mapping[str, tuple[Parameter, ...]] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    scores: bool = False

    def settings(self) -> dict[str, Parameter]:
        """The estimator's parameters that a command line can express."""
        known = parameters(self.home, self.estimator)
        return {name: p for name, p in known.items() if p.is_option and name not in _EVERYWHERE}

    def options(self, command: str) -> list[Parameter]:
        """Options of a command that have a meaning for this task."""
        if self.own:
            found = list(import_module(self.own).OPTIONS.get((self.name, command), ()))
        else:
            found = [p for p in READING if p.name not in self.without]
            found += [SCORES] if command == "predict" and self.scores else []
            found += self.also.get(command, ())
        if command != "train":
            return found
        run = fit_options(self.home, self.estimator)
        return [*self.settings().values(), *(p for p in _RUN if _MEANS.get(p.name, p.name) in run), *found]

    def kind(self, args: argparse.Namespace, talk: Talk) -> Kind[Any]:
        module, _, name = self.commands.partition(":")
        return getattr(import_module(module), name)(self, args, talk)

    def make(self, **settings: Any) -> Any:
        return getattr(import_module(f"maxmargin.{self.home}"), self.estimator)(**settings)


_RUN = (
    Parameter("checkpoint", about="Folder for what is needed to go on after an interruption."),
    Parameter("checkpoint_every", 30.0, "float", "Seconds between two times that it is written."),
    Parameter(
        "cluster", None, "str", "Train with workers, each of which holds a part of the rows: local:4 (processes of "
        "this machine), ray://auto or ray://host:10001.",
    ),
    Parameter("progress", False, "bool", "One line per pass, where stderr is no terminal."),
)  # fmt: skip
_MEANS = {"progress": "callbacks"}  # an argument of ``fit`` that an option stands for

_ROWS, _GROUPED, _IMAGES = "maxmargin.cli.rows:Rows", "maxmargin.cli.grouped:", "maxmargin.vision.cli"
_CLASSES = f"{_IMAGES}.classes:"
TASKS = {
    task.name: task
    for task in (
        Task("classify", "estimators.classification", "LinearSVC", _ROWS, scores=True),
        Task("regress", "estimators.regression", "LinearSVR", _ROWS),
        Task("rank", "estimators.ranking", "RankingSVM", _ROWS),
        Task(
            "sequence", "estimators.sequence", "SequenceSVM", "maxmargin.cli.tagging:Tagging", also=TAGGING,
            without=("weight",),
        ),
        Task(
            "multilabel", "estimators.multilabel", "MultilabelSVM", f"{_GROUPED}Labels",
            without=("label", "group", "weight", "on_error"),
        ),
        Task("bags", "estimators.bags", "LatentSVC", f"{_GROUPED}Bags", without=("weight",)),
        Task("cluster", "clustering.estimator", "GMMKMeans", "maxmargin.clustering.cli:Clusters"),
        Task("scene", "vision.classifier", "SceneClassifier", f"{_CLASSES}Scenes", _IMAGES),
        Task("parts", "vision.part_classifier", "PartClassifier", f"{_CLASSES}Parts", _IMAGES),
        Task("detect", "vision.detector", "DeformablePartDetector", f"{_IMAGES}.detector:Detectors", _IMAGES),
    )
}  # fmt: skip


def task_of(model: object, path: str = "The file") -> Task:
    """The task that a model was trained for."""
    found = next((task for task in TASKS.values() if task.estimator == type(model).__name__), None)
    if found is None:
        raise ValueError(
            f"{path} holds a {type(model).__name__}, whose data the command line does not read. Use it from Python: "
            "maxmargin.load."
        )
    return found


def chosen(args: argparse.Namespace, say: Callable[[str], None]) -> Task:
    """The task that was asked for, or that the data are of."""
    images = len(args.data) == 1 and os.path.isdir(args.data[0])
    images = images and import_module(_IMAGES).is_image_folder(args.data[0])
    if args.task != "auto":
        if images and not TASKS[args.task].own:
            known = ", ".join(task.name for task in TASKS.values() if task.own)
            raise ValueError(f"{args.data[0]} is a folder of images, and --task {args.task} is for rows. Use {known}.")
        return TASKS[args.task]
    if args.boxes is not None:
        say("Task: detect, because there are --boxes.")
        return TASKS["detect"]
    if images:
        say("Task: scene, because DATA is a folder of images (--task parts for parts that all classes share).")
        return TASKS["scene"]
    from ..data.opening import kind_of
    from .files import named, open_source, where
    from .rows import guess_task
    from .token_files import has_token_lines

    if has_token_lines(args.data):
        say(f"Task: sequence, because {named(args.data)} has a token per line (--task says otherwise).")
        return TASKS["sequence"]
    if kind_of(where(args.data)) == "conll":
        say("Task: sequence, because DATA is in CoNLL files.")
        return TASKS["sequence"]

    guess = guess_task(open_source(args.data, args))
    say(f"Task: {guess.task}, because {guess.because} (--task says otherwise).")
    return TASKS[guess.task]

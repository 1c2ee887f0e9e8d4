"""Classes of images on the command line: scenes, and parts that all classes share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ...cli.files import answers_to, draw_into_files, on_one_line, where
from ...cli.kind import Kind
from ...cli.talk import warn
from ...estimators.inputs import check_memory
from ...report import numbers
from ...report.content import Data
from ..images import ImageFolder, list_images
from ..pages import parts as parts_page, scenes as scenes_page
from ..pages.classified import accuracies, answers, folder_classes, scored
from ..pages.pictures import pyplot
from ..parts.joint import JointRecord, at_rest

if TYPE_CHECKING:
    from ..classifier import SceneClassifier
    from ..part_classifier import PartClassifier

_LATENT = ("rbow", "rbow+", "rbow++")


class Folders:
    """Images of several folders of class folders, one after another."""

    def __init__(self, paths: list[str]) -> None:
        folders = [ImageFolder(path) for path in paths]
        self.paths = [path for folder in folders for path in folder.paths]
        self.labels = np.concatenate([folder.labels for folder in folders])

    def __len__(self) -> int:
        return len(self.paths)


class Images(Kind[Folders]):
    """One folder with a sub-folder per class."""

    unit = what = "images"
    other = "These are likely not the images that the model was trained on, or they come in another order."
    uncertified = "generative training minimises no hinge loss"
    model: SceneClassifier | PartClassifier

    def prepare(self, settings: dict[str, Any]) -> None:
        check_memory(settings.get("memory"))
        if settings.get("training") == "generative" and settings.get("features") == "cnn":
            raise ValueError("--training generative counts words, and --features cnn has none. Use --features words.")
        if self.args.report is not None:
            draw_into_files()
            pyplot()  # complain now rather than after training

    def open(self, paths: list[str]) -> Folders:
        if len(paths) != 1 and paths is self.args.data:
            raise ValueError(f"Images are learned from one folder with a sub-folder per class, got {len(paths)} paths.")
        return Folders(paths)

    def arguments(self, data: Folders) -> tuple[list[str], np.ndarray]:
        return data.paths, data.labels

    def trained_on(self, data: Folders) -> int:
        return len(data) - self.model.left_out_

    def left_out(self, data: Folders) -> int:
        return self.model.left_out_

    def page(self, data: Folders, name: str) -> Data:
        return Data(data.paths, data.labels, name=name)

    def whole(self) -> str | None:
        """The folder that is all of the data, if that is one: its sub-folders may be classes."""
        return self.args.data[0] if len(self.args.data) == 1 and os.path.isdir(self.args.data[0]) else None

    def reported(self, name: str) -> tuple[Data, dict[str, Any]]:
        """Any images will do: where they lie in folders of classes, answers are compared with these."""
        data = self.args.data
        X = (self.whole() or list_images(where(data))) if data else None
        return Data(X, name=name if data else "these images"), {"task": self.task.name}

    def facts(self, data: Folders) -> dict[str, Any]:
        return {"classes": self.model.classes_.size, "training": self.model.training}

    def score(self, data: Folders) -> dict[str, Any]:
        """Accuracy, and its mean over the classes."""
        kept, answered = answers(self.model, data.paths, np.arange(len(data)))
        return _verdict(data.labels[kept], answered, self.model.classes_) | {"left_out": len(data) - kept.size}

    def in_words(self, score: dict[str, Any]) -> str:
        left_out = f", {numbers.count(score['left_out'])} left out" if score["left_out"] else ""
        mean = f"; mean over classes {numbers.share(score['per_class'])}"
        return f"{numbers.share(score['value'])} on {numbers.count(score['images'])} images{left_out}{mean}"

    def use(self, model: SceneClassifier | PartClassifier) -> None:
        args = self.args
        if model.extractor_ is None:
            raise ValueError(
                f"{args.model} was trained on features and cannot look at images. Use it from Python: maxmargin.load."
            )
        said = {"cache": args.cache, "n_jobs": args.jobs, "verbose": int(self.talk.progress)}
        said |= {"device": args.device} if "device" in model.get_params() else {}
        self.model = model.set_params(**said, **({} if args.on_error is None else {"on_error": args.on_error}))

    def predict(self) -> None:
        args, model, talk = self.args, self.model, self.talk
        files, whole = list_images(where(args.data)), self.whole()
        true = folder_classes(whole, files, model.classes_) if whole else None
        answered, judged = 0, []
        with answers_to(args) as file, talk.counting("Answered", "images") as counting:
            model.set_params(verbose=0, on_error=args.on_error or "raise")  # one line that counts is enough
            for kept, scores in scored(model, files, np.arange(len(files))):
                labels = model.classes_[scores.argmax(axis=1)]
                if file is not None:
                    for i, label, values in zip(kept, labels, scores, strict=True):
                        told = [f"{value:.9g}" for value in values.tolist()] if args.scores else []
                        file.write("\t".join([on_one_line(files[i]), on_one_line(str(label)), *told]) + "\n")
                if true is not None:
                    judged.append((true[kept], labels))
                answered += kept.size
                counting(answered, done=int(kept[-1]) + 1, total=len(files))
        if not answered:
            raise ValueError(f"None of the {len(files)} images could be read.")
        score: dict[str, Any] = {"score": None, "value": None, "per_class": None}
        verdict = "They are in no folders of known classes to compare answers with."
        if judged:
            y, found = (np.concatenate(part) for part in zip(*judged, strict=True))
            score = _verdict(y[y != ""], found[y != ""], model.classes_)
            each = numbers.share(score["per_class"])
            verdict = f"Accuracy: {numbers.share(score['value'])}, mean over classes {each}."
        talk.result(
            command="predict", task=self.task.name, model=args.model, left_out=len(files) - answered,
            output=args.output, **(score | {"images": answered}),
        )  # fmt: skip
        talk.say(f"{numbers.count(answered)} images answered. {verdict}")


class Scenes(Images):
    helps = "More --max-bounds or --max-passes, or a smaller --C, help."
    model: SceneClassifier

    @property
    def about(self) -> str:  # type: ignore[override]
        return scenes_page.ABOUT if self.model.kind in _LATENT else ""

    def facts(self, data: Folders) -> dict[str, Any]:
        return super().facts(data) | {"kind": self.model.kind, "grid": list(self.model.grid_)}

    def outcome(self, interrupted: bool) -> dict[str, Any]:
        if self.model.training == "generative":
            return {"certificate": None, "tol": None, "converged": getattr(self.model.learner_, "converged", True)}
        return super().outcome(interrupted)

    def passes(self) -> int:
        return int(self.model.learner_.n_passes_)

    def rows(self, facts: dict[str, Any]) -> list[tuple[str, str]]:
        model = self.model
        down, across = model.grid_
        what = {"bow": "bag of words", "sbow": "one model per region"}.get(
            model.kind, f"{model.n_parts} parts {'in all' if model.parts == 'shared' else 'per class'}"
        )
        proof = [] if facts["certificate"] else [("certificate", f"none: {self.uncertified}")]
        return [
            ("kind", f"{model.kind} ({what}), {model.training}"),
            *([("grid", f"{down} × {across} regions")] if model.kind != "bow" else []),
            ("features", model.features + (f", {model.n_words}" if model.features == "words" else "")),
            *proof,
        ]


class Parts(Images):
    helps = "More --max-rounds or --max-passes, or a smaller --C, help."
    about = parts_page.ABOUT
    model: PartClassifier

    def line(self, record: JointRecord) -> str:
        kept = "" if record.taken else ", not taken"
        return f"round {record.round}, {record.step}, objective {record.objective:.6g}{kept}, {record.seconds:.1f} s"

    def facts(self, data: Folders) -> dict[str, Any]:
        return super().facts(data) | {"parts": len(self.model.filters_), "regions": list(self.model.regions)}

    def outcome(self, interrupted: bool) -> dict[str, Any]:
        found, model = super().outcome(interrupted), self.model
        rested = model.training != "joint" or at_rest(model.history_, model.tol, model.bound_tol)
        found["converged"] = found["converged"] and rested and not interrupted
        return found | {"rounds": model.history_[-1].round, "objective": model.objective_}

    def rows(self, facts: dict[str, Any]) -> list[tuple[str, str]]:
        model = self.model
        how = {"random": "random", "selected": "selected from random ones", "joint": "trained with their weights"}
        return [
            ("parts", f"{len(model.filters_)}, {how[model.training]}"),
            ("regions", " + ".join(f"{g} × {g}" for g in model.regions)),
            ("features", model.features + ("" if model.n_components is None else f", {model.n_components} components")),
        ]


def _verdict(true: np.ndarray, answered: np.ndarray, classes: np.ndarray) -> dict[str, Any]:
    unseen = np.setdiff1d(true, classes)
    if unseen.size:
        warn(
            f"{int(np.isin(true, unseen).sum())} images are of classes that were not there in training and count as "
            f"wrong: {', '.join(unseen[:5].tolist())}."
        )
    share, mean = accuracies(true, answered)
    return {"score": "accuracy", "value": share, "images": true.size, "per_class": mean}

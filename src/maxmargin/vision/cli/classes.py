"""Classes of images on the command line: scenes, and parts that all classes share."""

from __future__ import annotations

import argparse
import os
from contextlib import ExitStack
from typing import Any

import numpy as np

from ...cli.files import answers_to, draw_into_files, on_one_line
from ...cli.kind import Kind
from ...cli.reading import again, where
from ...cli.talk import Talk, warn
from ...report import numbers
from ...report.content import Data

_LATENT = ("rbow", "rbow+", "rbow++")


class Images(Kind):
    """One folder with a sub-folder per class."""

    unit = what = "images"
    reads = ("cache", "on_error", "device")
    other = "These are likely not the images that the model was trained on, or they come in another order."
    uncertified = "generative training minimises no hinge loss"

    def prepare(self, args: argparse.Namespace, settings: dict[str, Any]) -> None:
        from ...estimators.inputs import check_memory

        check_memory(settings.get("memory"))
        self.check(settings)
        if args.report is not None:
            from ..pages.pictures import pyplot

            draw_into_files()
            pyplot()  # complain now rather than after training

    def check(self, settings: dict[str, Any]) -> None:
        """Refuse settings that have no effect."""

    def open(self, args: argparse.Namespace, paths: list[str], model: Any = None) -> Any:
        from .. import ImageFolder

        if len(paths) != 1 and paths is args.data:
            raise ValueError(f"Images are learned from one folder with a sub-folder per class, got {len(paths)} paths.")
        return Folders([ImageFolder(path) for path in paths])

    def arguments(self, data: Any) -> tuple[Any, ...]:
        return data.paths, data.labels

    def count(self, data: Any, model: Any = None) -> int:
        return len(data.paths) - (0 if model is None else model.left_out_)

    def left_out(self, model: Any, data: Any) -> int:
        return model.left_out_

    def page(self, data: Any, name: str) -> Data:
        return Data(data.paths, data.labels, name=name)

    def reported(self, args: argparse.Namespace, model: Any, name: str) -> tuple[Data, dict[str, Any]]:
        """Any images will do: where they lie in folders of classes, answers are compared with these."""
        from ..images import list_images

        whole = len(args.data) == 1 and os.path.isdir(args.data[0])
        X = (args.data[0] if whole else list_images(where(args.data))) if args.data else None
        return Data(X, name=name if args.data else "these images"), {"task": self.task.name}

    def facts(self, model: Any, data: Any) -> dict[str, Any]:
        return {"classes": model.classes_.size, "training": model.training}

    def score(self, args: argparse.Namespace, model: Any, data: Any) -> dict[str, Any]:
        """Accuracy, and its mean over the classes."""
        from ..pages.classified import answers

        kept, answered = answers(model, data.paths, np.arange(len(data.paths)), args.on_error or "raise", warn)
        return _verdict(data.labels[kept], answered, model.classes_) | {"left_out": len(data.paths) - kept.size}

    def in_words(self, score: dict[str, Any]) -> str:
        left_out = f", {numbers.count(score['left_out'])} left out" if score["left_out"] else ""
        mean = f"; mean over classes {numbers.share(score['per_class'])}"
        return f"{numbers.share(score['value'])} on {numbers.count(score['images'])} images{left_out}{mean}"

    def next_steps(self, args: argparse.Namespace, model: str, data: str) -> list[tuple[str, str]]:
        _, *others = super().next_steps(args, model, data)
        return [("predict", f"maxmargin predict {model} PHOTOS{again(args, self.reads)} -o answers.txt"), *others]

    def use(self, args: argparse.Namespace, model: Any, talk: Talk) -> Any:
        if model.extractor_ is None:
            raise ValueError(
                f"{args.model} was trained on features and cannot look at images. Use it from Python: maxmargin.load."
            )
        said = {"cache": args.cache, "n_jobs": args.jobs, "verbose": int(talk.progress)}
        said |= {"device": args.device} if "device" in model.get_params() else {}
        return model.set_params(**said, **({} if args.on_error is None else {"on_error": args.on_error}))

    def predict(self, args: argparse.Namespace, model: Any, talk: Talk) -> None:
        from ..images import list_images
        from ..pages.classified import features_kept, folder_classes, scored

        if args.regions and model.kind == "bow":
            raise ValueError("--regions is for kinds with regions, and this model is a bag of words. Leave it out.")
        files = list_images(where(args.data))
        whole = len(args.data) == 1 and os.path.isdir(args.data[0])
        true = folder_classes(args.data[0], files, model.classes_) if whole else None
        answered, judged = 0, []
        with ExitStack() as stack:
            file = stack.enter_context(answers_to(args))
            if args.regions:  # parts are a second look at the features
                stack.enter_context(features_kept(model))
            counting = stack.enter_context(talk.counting("Answered", "images"))
            model.verbose = 0  # one line that counts is enough
            for kept, scores in scored(model, files, np.arange(len(files)), args.on_error or "raise", warn):
                labels = model.classes_[scores.argmax(axis=1)]
                parts = model.predict_regions([files[i] for i in kept], labels) if args.regions else None
                if file is not None:
                    for k, i in enumerate(kept):
                        file.write(_line(files[i], labels[k], scores[k] if args.scores else None, parts, k))
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


class Folders:
    """Images of several folders of class folders, one after another."""

    def __init__(self, folders: list[Any]) -> None:
        self.paths = [path for folder in folders for path in folder.paths]
        self.labels = np.concatenate([folder.labels for folder in folders])


class Scenes(Images):
    helps = "More --max-bounds or --max-passes, or a smaller --C, help."

    def check(self, settings: dict[str, Any]) -> None:
        kind, training = settings.get("kind", "rbow"), settings.get("training", "discriminative")
        features, by_svm = settings.get("features", "words"), training == "discriminative"
        if not by_svm and features == "cnn":
            raise ValueError("--training generative counts words, and --features cnn has none. Use --features words.")
        if not by_svm and settings.get("init") in ("em", "kmeans"):
            raise ValueError(f"--init {settings['init']} is for --training discriminative; EM begins otherwise.")
        parts, svm = "--kind rbow, rbow+ or rbow++", "--training discriminative"
        for flag, name, has_meaning, what in (
            ("--grid", "grid", kind != "bow", "kinds with regions, and --kind bow has none"),
            ("--parts", "n_parts", kind in _LATENT, parts),
            ("--shared-parts", "parts", kind in _LATENT, parts),
            ("--init", "init", kind in _LATENT, parts),
            ("--words", "n_words", features == "words", "--features words"),
            ("--bound", "bound", kind in _LATENT and by_svm, f"{parts} and {svm}"),
            ("--max-bounds", "max_bounds", kind in _LATENT and by_svm, f"{parts} and {svm}"),
            *((f"--{name.replace('_', '-')}", name, by_svm, svm) for name in ("C", "tol", "max_passes", "memory")),
        ):
            if name in settings and not has_meaning:
                raise ValueError(f"{flag} is for {what}. Leave it out.")

    def about(self, model: Any) -> str:
        from ..pages.scenes import ABOUT

        return "" if model.kind not in _LATENT else ABOUT

    def facts(self, model: Any, data: Any) -> dict[str, Any]:
        return super().facts(model, data) | {"kind": model.kind, "grid": list(model.grid_)}

    def outcome(self, model: Any, interrupted: bool) -> dict[str, Any]:
        if model.training == "generative":
            return {"certificate": None, "tol": None, "converged": getattr(model.learner_, "converged", True)}
        return super().outcome(model, interrupted)

    def passes(self, model: Any) -> int:
        return int(model.learner_.n_passes_)

    def rows(self, model: Any, facts: dict[str, Any]) -> list[tuple[str, str]]:
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

    def check(self, settings: dict[str, Any]) -> None:
        training = settings.get("training", "joint")
        for flag, name, trainings in (
            ("--pool", "pool_size", ("selected", "joint")),
            ("--max-rounds", "max_rounds", ("joint",)),
            ("--memory", "memory", ("joint",)),
        ):
            if name in settings and training not in trainings:
                raise ValueError(f"{flag} is for --training {' or '.join(trainings)}. Leave it out.")

    def about(self, model: Any) -> str:
        from ..pages.parts import ABOUT

        return ABOUT

    def line(self, record: Any, tol: float) -> str:
        kept = "" if record.taken else ", not taken"
        return f"round {record.round}, {record.step}, objective {record.objective:.6g}{kept}, {record.seconds:.1f} s"

    def facts(self, model: Any, data: Any) -> dict[str, Any]:
        return super().facts(model, data) | {"parts": len(model.filters_), "regions": list(model.regions)}

    def outcome(self, model: Any, interrupted: bool) -> dict[str, Any]:
        from ..parts.joint import at_rest

        found = super().outcome(model, interrupted)
        rested = model.training != "joint" or at_rest(model.history_, model.tol, model.bound_tol)
        found["converged"] = found["converged"] and rested and not interrupted
        return found | {"rounds": model.history_[-1].round, "objective": model.objective_}

    def rows(self, model: Any, facts: dict[str, Any]) -> list[tuple[str, str]]:
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
    right = true == answered
    return {
        "score": "accuracy", "value": right.mean(), "images": true.size,
        "per_class": np.mean([right[true == name].mean() for name in np.unique(true)]),
    }  # fmt: skip


def _line(path: str, label: Any, scores: np.ndarray | None, parts: np.ndarray | None, k: int) -> str:
    columns = [on_one_line(path), on_one_line(str(label))]
    if parts is not None:
        columns.append(";".join(",".join(map(str, row)) for row in parts[k].tolist()))
    if scores is not None:
        columns += [f"{score:.9g}" for score in scores.tolist()]
    return "\t".join(columns) + "\n"

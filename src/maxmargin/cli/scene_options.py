"""Options for scenes: which there are, and for which kind of scenes each has a meaning."""

from __future__ import annotations

import argparse
from typing import Any

from . import image_options, options

_LATENT = ("rbow", "rbow+", "rbow++")


def add_training(parser: argparse.ArgumentParser) -> None:
    """Options of ``train`` for scenes. None has a default here: what was not said is the classifier's affair."""
    group = parser.add_argument_group("scenes")
    group.add_argument(
        "--kind", choices=("bow", "sbow", *_LATENT),
        help="bag of words; one per region; parts that regions choose (default: rbow); parts that like equal "
        "neighbours; parts that know their neighbours",
    )  # fmt: skip
    group.add_argument("--grid", type=_grid, metavar="N|RxC", help="rows and columns of regions (default: 4)")
    group.add_argument(
        "--parts", type=options.count, metavar="N",
        help="region models of each class (default: 16); detectors: parts of each component (default: 6)",
    )  # fmt: skip
    group.add_argument("--shared-parts", action="store_true", help="all classes have their parts in common")
    group.add_argument("--words", type=options.whole, metavar="N", help="size of the vocabulary (default: 200)")
    group.add_argument(
        "--init", choices=("auto", "em", "kmeans", "fixed", "random"),
        help="the parts that regions begin with (default: auto, which is em for words and kmeans for cnn)",
    )  # fmt: skip
    group.add_argument("--bound", choices=("cccp", "gmm", "coherent"), help="how bounds are chosen (default: cccp)")
    group.add_argument(
        "--max-bounds", type=options.whole, metavar="N", help="most convex bounds (default: 100; detectors: 8)"
    )


def _grid(text: str) -> tuple[int, int]:
    try:
        sides = [int(side) for side in text.lower().split("x")]
    except ValueError:
        sides = []
    if len(sides) not in (1, 2) or min(sides) < 1:
        raise argparse.ArgumentTypeError(f"must be a number such as 4, or rows and columns such as 4x6, got {text!r}")
    return sides[0], sides[-1]


def settings(args: argparse.Namespace) -> dict[str, Any]:
    """What was said, in the words of ``SceneClassifier``. What has no meaning for this kind is refused."""
    image_options.refuse(args, "scene")
    if args.parts == 0:
        raise ValueError("--parts must be a whole number of at least 1 for scenes, got 0. --kind sbow has no parts.")
    kind, training = args.kind or "rbow", args.training or "discriminative"
    features = args.features or "words"
    latent, generative = kind in _LATENT, training == "generative"
    if generative and kind in ("rbow+", "rbow++"):
        raise ValueError(
            f"--kind {kind} has no generative training: its neighbours are not independent. Use --training "
            "discriminative, or --kind rbow."
        )
    if generative and features == "cnn":
        raise ValueError("--training generative counts words, and --features cnn has none. Use --features words.")
    trained_by_svm, with_parts = "--training discriminative", "--kind rbow, rbow+ or rbow++"
    for option, name, has_meaning, where in (
        ("--grid", "grid", kind != "bow", "kinds with regions, and --kind bow has none"),
        ("--parts", "parts", latent, with_parts),
        ("--shared-parts", "shared_parts", latent, with_parts),
        ("--init", "init", latent, with_parts),
        ("--words", "words", features == "words", "--features words"),
        ("--bound", "bound", latent and not generative, f"{with_parts} and {trained_by_svm}"),
        ("--max-bounds", "max_bounds", latent and not generative, f"{with_parts} and {trained_by_svm}"),
        ("--C", "C", not generative, trained_by_svm),
        ("--tol", "tol", not generative, trained_by_svm),
        ("--max-passes", "max_passes", not generative, trained_by_svm),
        ("--memory", "memory", not generative, trained_by_svm),
        ("--checkpoint", "checkpoint", not generative, trained_by_svm),
        ("--progress", "progress", not generative, trained_by_svm),
    ):
        if getattr(args, name) not in (None, False) and not has_meaning:
            raise ValueError(f"{option} is for {where}. Leave it out.")
    if generative and args.init in ("em", "kmeans"):
        raise ValueError(f"--init {args.init} is for {trained_by_svm}; EM begins with fixed or random parts.")
    return image_options.said(
        kind=kind, training=training, features=features, grid=args.grid, n_parts=args.parts,
        parts="shared" if args.shared_parts else None, n_words=args.words, init=args.init, bound=args.bound,
        max_bounds=args.max_bounds, C=args.C, tol=args.tol, max_passes=args.max_passes, memory=args.memory,
        cache=args.cache, on_error=args.on_error, n_jobs=args.jobs, random_state=args.seed,
    )  # fmt: skip

"""Options for parts: which there are, and which have no meaning together."""

from __future__ import annotations

import argparse
from typing import Any

from . import image_options, options


def add_training(parser: argparse.ArgumentParser) -> None:
    """Options of ``train`` for parts. None has a default here: what was not said is the classifier's affair."""
    group = parser.add_argument_group("parts")
    group.add_argument("--n-parts", type=options.whole, metavar="N", help="parts that all classes share (default: 64)")
    group.add_argument(
        "--pool", type=options.whole, metavar="N",
        help="random parts to select from (default: ten times --n-parts, but at least 200)",
    )  # fmt: skip
    group.add_argument(
        "--components", type=_components, metavar="N|all",
        help="leading directions of the features that are kept (default: 128); detectors: kinds of views (default: 1)",
    )  # fmt: skip
    group.add_argument("--no-flips", action="store_true", help="do not look at mirror images as well; so detectors")
    group.add_argument(
        "--regions", dest="grids", type=_grids, metavar="N,N",
        help="grids of regions in which responses are taken (default: 1,2, the whole image and its quarters)",
    )  # fmt: skip
    group.add_argument("--max-rounds", type=options.whole, metavar="N", help="most rounds of training (default: 20)")


def _components(text: str) -> int | str:
    return text if text == "all" else options.whole(text)


def _grids(text: str) -> tuple[int, ...]:
    try:
        return tuple(options.whole(side) for side in text.split(","))
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"must be numbers with commas such as 1,2, got {text!r}") from None


def settings(args: argparse.Namespace) -> dict[str, Any]:
    """What was said, in the words of ``PartClassifier``. What has no meaning for this training is refused."""
    image_options.refuse(args, "parts")
    training = args.training or "joint"
    for option, name, has_meaning, where in (
        ("--pool", "pool", training != "random", "--training selected or joint"),
        ("--max-rounds", "max_rounds", training == "joint", "--training joint"),
        ("--memory", "memory", training == "joint", "--training joint"),
    ):
        if getattr(args, name) is not None and not has_meaning:
            raise ValueError(f"{option} is for {where}. Leave it out.")
    given = image_options.said(
        n_parts=args.n_parts, training=training, features=args.features, n_components=args.components,
        flips=False if args.no_flips else None, regions=args.grids, pool_size=args.pool, max_rounds=args.max_rounds,
        C=args.C, tol=args.tol, max_passes=args.max_passes, memory=args.memory, device=args.device, cache=args.cache,
        on_error=args.on_error, n_jobs=args.jobs, random_state=args.seed,
    )  # fmt: skip
    return given | ({"n_components": None} if args.components == "all" else {})

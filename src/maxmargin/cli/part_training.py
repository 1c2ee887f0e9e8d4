"""What is particular to parts when a model is trained and talked about; see ``image_training``."""

from __future__ import annotations

import argparse
from typing import Any

from . import part_options

WHAT = "parts"
HELPS = "More --max-rounds or --max-passes, or a smaller --C, help."


def classifier(args: argparse.Namespace, verbose: int) -> Any:
    from ..vision import PartClassifier

    return PartClassifier(**part_options.settings(args), verbose=verbose)


def about(model: Any) -> str:
    """What the certificate is about."""
    from ..vision.pages.parts import ABOUT

    return ABOUT


def line(record: Any, tol: float) -> str:
    kept = "" if record.taken else ", not taken"
    return f"round {record.round}, {record.step}, objective {record.objective:.6g}{kept}, {record.seconds:.1f} s"


def facts(model: Any) -> dict[str, Any]:
    return {"parts": len(model.filters_), "regions": list(model.regions)}


def outcome(model: Any, interrupted: bool) -> dict[str, Any]:
    """What training can prove, and whether it got where it was to go."""
    from ..vision.parts.joint import at_rest
    from .train import as_json

    certificate = model.certificate_
    reached = certificate.relative_gap <= model.tol and not interrupted
    return {
        "certificate": as_json(certificate) | {"exact": certificate.exact}, "tol": model.tol,
        "converged": reached and (model.training != "joint" or at_rest(model.history_, model.tol, model.bound_tol)),
        "rounds": model.history_[-1].round, "objective": model.objective_, "passes": model.n_passes_,
    }  # fmt: skip


def rows(model: Any) -> list[tuple[str, str]]:
    """What was trained."""
    how = {"random": "random", "selected": "selected from random ones", "joint": "trained with their weights"}
    grids = " + ".join(f"{g} × {g}" for g in model.regions)
    return [
        ("parts", f"{len(model.filters_)}, {how[model.training]}"),
        ("regions", grids),
        ("features", model.features + ("" if model.n_components is None else f", {model.n_components} components")),
    ]


def proof(model: Any, facts: dict[str, Any]) -> list[tuple[str, str]]:
    """What is proved, in a few words, and what is not."""
    from .image_training import bracket

    said = f"{facts['objective']:.8g} after {facts['rounds']} rounds, {facts['passes']} passes"
    return [("objective", said), *bracket(facts["certificate"], model.tol), ("", about(model))]

"""What is particular to scenes when a model is trained and talked about; see ``image_training``."""

from __future__ import annotations

import argparse
from typing import Any

from . import scene_options

WHAT = "scenes"
HELPS = "More --max-bounds or --max-passes, or a smaller --C, help."


def classifier(args: argparse.Namespace, verbose: int) -> Any:
    from ..vision import SceneClassifier

    return SceneClassifier(**scene_options.settings(args), verbose=verbose)


def about(model: Any) -> str:
    """What the certificate is about, where it is not about the problem itself."""
    from ..vision.pages.scenes import ABOUT

    return "" if model.kind in ("bow", "sbow") else ABOUT


def line(record: Any, tol: float) -> str:
    from ..solvers.progress import described

    if not hasattr(record, "changed"):
        return described(record, tol)
    return (
        f"bound {record.number}, objective {record.objective:.6g}, gap {record.gap:.1e}, "
        f"{record.changed:.0%} of the parts changed, {record.seconds:.1f} s"
    )


def facts(model: Any) -> dict[str, Any]:
    return {"kind": model.kind, "grid": list(model.grid_)}


def outcome(model: Any, interrupted: bool) -> dict[str, Any]:
    """What training can prove, and whether it got where it was to go."""
    from .train import as_json

    if model.training == "generative":
        return {"certificate": None, "tol": None, "converged": getattr(model.learner_, "converged", True)}
    certificate, history = model.certificate_, model.history_
    solved = certificate.relative_gap <= model.tol
    if not hasattr(history[-1], "changed"):
        found = {"converged": solved, "passes": model.learner_.n_passes_}
    else:
        last = history[-1]
        closed = last.gap <= model.bound_tol * abs(last.objective)
        # Without an upper bound there is nothing to compare tol with.
        found = {
            "converged": closed and (solved or not certificate.exact) and not interrupted, "bounds": len(history),
            "objective": model.learner_.objective_, "passes": model.learner_.n_passes_,
        }  # fmt: skip
    return {"certificate": as_json(certificate) | {"exact": certificate.exact}, "tol": model.tol, **found}


def rows(model: Any) -> list[tuple[str, str]]:
    """What was trained."""
    down, across = model.grid_
    what = {"bow": "bag of words", "sbow": "one model per region"}.get(
        model.kind, f"{model.n_parts} parts {'in all' if model.parts == 'shared' else 'per class'}"
    )
    return [
        ("kind", f"{model.kind} ({what}), {model.training}"),
        *([("grid", f"{down} × {across} regions")] if model.kind != "bow" else []),
        ("features", model.features + (f", {model.n_words}" if model.features == "words" else "")),
    ]


def proof(model: Any, facts: dict[str, Any]) -> list[tuple[str, str]]:
    """What is proved, in a few words, and what is not."""
    from ..report import numbers
    from .image_training import bracket

    certificate = facts["certificate"]
    if certificate is None:
        return [("certificate", "none: generative training minimises no hinge loss")]
    found = []
    if "bounds" in facts:
        found.append(
            ("objective", f"{facts['objective']:.8g} after {facts['bounds']} bounds, {facts['passes']} passes")
        )
    if certificate["exact"]:
        found += bracket(certificate, model.tol)
    else:
        found += [
            ("certificate", f"{certificate['lower']:.8g} <= optimum, and no upper bound:"),
            ("", f"parts that know their neighbours were searched approximately on this grid ({model.kind})"),
        ]
    return [*found, ("", about(model)) if "bounds" in facts else ("passes", numbers.count(facts["passes"]))]

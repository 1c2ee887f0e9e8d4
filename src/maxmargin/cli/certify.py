"""maxmargin certify MODEL DATA [DATA ...] [options]

Compute both bounds on the best possible objective anew, from the model's weights and dual variables and the training
data alone: nothing that training has kept along the way is trusted.

The upper bound is the objective of the weights on this data. The lower bound comes from the dual variables, one set
per row, so it needs the data that the model was trained on, all of it, read in the same way and order. On other data it
is trivial, and the gap says nothing.

Where something latent was chosen (bags, scenes, parts, detectors), both bounds are those of the last convex problem.
For a detector say --boxes and --holdout as in training.

examples:
  maxmargin certify model.mm train.svm
  maxmargin certify model.mm clicks.parquet --label clicked --weight n
  maxmargin certify model.mm train.svm --json
  maxmargin certify scenes.mm train/
  maxmargin certify cats.mm photos/ --boxes boxes.csv

exit status: 0 the gap is at most the goal that the model was trained to, 1 it is larger, 2 wrong usage or
unusable data.
"""

from __future__ import annotations

import argparse
import time

from . import DONE, NOT_CONVERGED, options
from .files import loaded
from .talk import Talk, peak_memory


def add(parser: argparse.ArgumentParser) -> None:
    options.add_model(parser)
    options.add_data(parser, what="the data it was trained on")
    options.add_jobs(parser)
    options.add_talk(parser)
    options.add_all(parser, "certify")


def run(args: argparse.Namespace, talk: Talk) -> int:
    from ..report import numbers
    from .kind import as_json, bracket

    kind = loaded(args, talk)
    model = kind.model
    if getattr(model, "certificate_", None) is None:
        raise ValueError(f"{args.model} has no certificate to prove again: {kind.uncertified}.")
    data = kind.open(args.data)
    start = time.perf_counter()
    certificate = kind.certified(data)
    seconds = time.perf_counter() - start
    gap = certificate.relative_gap
    proved = gap <= model.tol
    talk.result(
        command="certify", task=kind.task.name, model=args.model, data=args.data,
        certificate=as_json(certificate), tol=model.tol, proved=proved, seconds=seconds, peak_memory=peak_memory(),
        **{kind.unit: len(data)},
    )  # fmt: skip
    facts = [
        *bracket(certificate, model.tol),
        *([("", kind.about)] if kind.about else []),
        (kind.unit, numbers.count(len(data))),
        ("time", numbers.duration(seconds)),
    ]
    talk.facts("Proved again" if proved else "Not proved to the model's goal", facts)
    if not proved and certificate.exact:
        likely = gap > 2.0 * max(model.certificate_.relative_gap, model.tol)
        talk.say("\n" + (kind.other if likely else "Training ended before its goal; train longer for a smaller gap."))
    return DONE if proved else NOT_CONVERGED

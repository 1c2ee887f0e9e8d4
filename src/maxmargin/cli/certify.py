"""maxmargin certify"""

from __future__ import annotations

import argparse
import time

from . import DONE, NOT_CONVERGED, detect_options, image_options, images, options
from .files import load_usable
from .measuring import peak_memory
from .talk import Talk

HELP = "prove again how close to perfect a model is"
USAGE = "MODEL DATA [DATA ...] [options]"
ABOUT = """\
Compute both bounds on the best possible objective anew, from the model's weights and dual variables and the training
data alone: nothing that training has kept along the way is trusted.

The upper bound is the objective of the weights on this data. The lower bound comes from the dual variables, one set
per row, so it needs the data that the model was trained on, all of it, read in the same way and order. On other data it
is trivial, and the gap says nothing.

For scenes with latent parts both bounds are those of the last convex bound, in which parts are fixed; for a model of
parts (--task parts) they are those of the part weights, the filters as they are. For a detector they are those of the
last convex bound, over all windows of the images; say --boxes and --holdout as in training.
"""
EXAMPLES = """\
examples:
  maxmargin certify model.mm train.svm
  maxmargin certify model.mm clicks.parquet --label clicked --weight n
  maxmargin certify model.mm train.svm --json
  maxmargin certify scenes.mm train/
  maxmargin certify cats.mm photos/ --boxes boxes.csv

exit status: 0 the gap is at most the goal that the model was trained to, 1 it is larger, 2 wrong usage or
unusable data.
"""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="model file, written by maxmargin train")
    options.add_data(parser, what="the data it was trained on")
    image_options.add_using(parser)
    detect_options.add_boxes(parser)
    options.add_jobs(parser)
    options.add_talk(parser)


def run(args: argparse.Namespace, talk: Talk) -> int:
    from ..report import numbers
    from .train import as_json

    model = load_usable(args.model)
    if images.task_of(model) == "detect":
        from . import detecting

        return detecting.certify(model, args, talk)
    if images.task_of(model) is not None:
        return images.certify(model, args, talk)
    image_options.refuse(args, "rows")
    # Rows at the end of a text file may lack the last features; the model knows how many there were.
    source = options.open_data(args.data, args, like=model, n_features=args.features or model.n_features_in_)
    start = time.perf_counter()
    certificate = model.certify(source)
    seconds = time.perf_counter() - start
    gap = certificate.relative_gap
    proved = gap <= model.tol
    talk.result(
        command="certify", model=args.model, data=args.data, rows=len(source), certificate=as_json(certificate),
        tol=model.tol, proved=proved, seconds=seconds, peak_memory=peak_memory(),
    )  # fmt: skip
    talk.facts(
        "Proved again" if proved else "Not proved to the model's goal",
        [
            ("certificate", f"{certificate.lower:.8g} <= optimum <= {certificate.upper:.8g}"),
            ("relative gap", f"{gap:.1e}, goal {model.tol:g}"),
            ("rows", numbers.count(len(source))),
            ("time", numbers.duration(seconds)),
        ],
    )
    if not proved:
        if gap > 2.0 * max(model.certificate_.relative_gap, model.tol):
            talk.say("\nThis is likely not the data that the model was trained on, or it was read in another way.")
        else:
            talk.say("\nTraining ended before its goal; train longer for a smaller gap.")
    return DONE if proved else NOT_CONVERGED

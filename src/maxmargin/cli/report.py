"""maxmargin report"""

from __future__ import annotations

import argparse
from pathlib import Path

from . import DONE, detect_options, image_options, images, options
from .files import check_writable, load_any, named
from .talk import Talk

HELP = "a model and how well it does, as one HTML file"
USAGE = "MODEL [DATA ...] -o FILE [options]"
ABOUT = """\
Write a page to look at and to pass on: how close to perfect the weights are and how training got there, the heaviest
weights, and, where data is named, answers beside labels: confusions, residuals or pairs in order.

For a model of scenes it shows confusions, labelled images and the region models of every class; for one of parts
confusions, part weights, filters and what the parts respond to; for a detector its filters, how its bounds came down,
what it finds in images, and with --boxes how precise it is. DATA are images.

Models of other kinds (sequences, several labels, bags, clusters, structures) have a page without data; with data, from
Python: maxmargin.load(MODEL).report(FILE, X, y).

It is one HTML file that loads nothing from anywhere.
"""
EXAMPLES = """\
examples:
  maxmargin report model.mm -o report.html
  maxmargin report model.mm test.svm -o report.html
  maxmargin report scenes.mm test/ -o report.html
  maxmargin report cats.mm test/ --boxes boxes.csv -o report.html
  maxmargin report model.mm held-out.parquet --label clicked -o report.html --title "Clicks, October"

exit status: 0 done, 2 wrong usage or unusable data, 130 interrupted.
"""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="model file, written by maxmargin train")
    options.add_data(parser, required=False, what="data to compare answers with")
    image_options.add_using(parser)
    detect_options.add_boxes(parser)
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="HTML file to write")
    parser.add_argument("--title", help="what to write on top (default: the name of the model file)")
    options.add_jobs(parser)
    options.add_talk(parser)


def run(args: argparse.Namespace, talk: Talk) -> int:
    from .. import report
    from ..report.linear import is_linear

    check_writable(args.output, [args.model, *(args.data or [])])
    model = load_any(args.model)
    if images.task_of(model) == "detect":
        from . import detecting

        return detecting.report(model, args, talk)
    if images.task_of(model) is not None:
        return images.report(model, args, talk)
    image_options.refuse(args, "rows")
    if args.data and not is_linear(model):
        raise ValueError(
            f"{args.model} holds a {type(model).__name__}, whose data the command line does not read. Leave the data "
            "out for a page about the model alone, or use Python: maxmargin.load(path).report(page, X, y)."
        )
    source = options.open_data(args.data, args, like=model) if args.data else None
    known = {"title": args.title or Path(args.model).name, "data": named(args.data) or None}
    report.write(args.output, model, source, known)
    talk.result(command="report", model=args.model, data=args.data, output=args.output)
    talk.say(f"Report: {args.output}")
    return DONE

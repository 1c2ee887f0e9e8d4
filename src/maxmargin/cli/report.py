"""maxmargin report MODEL [DATA ...] -o FILE [options]

Write a page to look at and to pass on: how close to perfect the weights are and how training got there, what was
learned, and, where data is named, answers beside labels: confusions, residuals, pairs in order, images with what was
found in them; for a detector with --boxes also how precise it is.

It is one HTML file that loads nothing from anywhere. Models that are trained in Python alone have a page without data.

examples:
  maxmargin report model.mm -o report.html
  maxmargin report model.mm test.svm -o report.html
  maxmargin report scenes.mm test/ -o report.html
  maxmargin report cats.mm test/ --boxes boxes.csv -o report.html
  maxmargin report model.mm held-out.parquet --label clicked -o report.html --title "Clicks, October"

exit status: 0 done, 2 wrong usage or unusable data, 130 interrupted.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from . import DONE, options
from .files import check_writable, draw_into_files, load_any, loaded, named
from .talk import Talk
from .tasks import TASKS


def add(parser: argparse.ArgumentParser) -> None:
    options.add_model(parser)
    options.add_data(parser, required=False, what="data to compare answers with")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="HTML file to write")
    parser.add_argument("--title", help="what to write on top (default: the name of the model file)")
    options.add_jobs(parser)
    options.add_talk(parser)
    options.add_all(parser, "report")


def run(args: argparse.Namespace, talk: Talk) -> int:
    from .. import report

    check_writable(args.output, [args.model, *args.data])
    model, data = load_any(args.model), None
    said: dict[str, Any] = {}
    if args.data or type(model).__name__ in {task.estimator for task in TASKS.values()}:
        kind = loaded(args, talk)
        model = kind.model
        data, said = kind.reported(named(args.data) or "this data")
    draw_into_files()
    report.write(args.output, model, data, {"title": args.title or Path(args.model).name})
    talk.result(command="report", model=args.model, data=args.data, output=args.output, **said)
    score = said.get("test")
    talk.say(f"Report: {args.output}" + (f". {score['score'].capitalize()}: {kind.in_words(score)}." if score else ""))
    return DONE

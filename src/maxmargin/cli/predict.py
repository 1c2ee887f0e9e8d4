"""maxmargin predict"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from . import DONE, detect_options, image_options, images, options
from .files import answers_to, check_writable, load_usable, on_one_line
from .talk import Talk, say_left_out, warn

HELP = "answers of a model, one line per row"
USAGE = "MODEL DATA [DATA ...] [-o FILE] [options]"
ABOUT = """\
Read data in chunks and write one answer per row: the class, the predicted number, or the score to rank by.

If the data has labels, stderr says how well the answers fit them: accuracy, R², or the share of pairs in the right
order. Labels that were not in the training data count as wrong. Features that were not there have no weight and are
left out, with one warning; features that are missing are zero.

For a model of scenes or parts, DATA are images: a folder (at any depth), a pattern or files. Each line holds the path
of an image and its class, separated by a tab. If all images lie in sub-folders with names of classes, stderr says how
many answers are right. For a detector it does what maxmargin detect does, and writes the boxes as a table.
"""
EXAMPLES = """\
examples:
  maxmargin predict model.mm new.svm > answers.txt
  maxmargin predict model.mm 'logs/*.svm.gz' -o answers.txt
  maxmargin predict model.mm new.parquet --scores -o answers.tsv
  maxmargin predict model.mm test.svm --json
  maxmargin predict scenes.mm photos/ -o answers.txt
  maxmargin predict cats.mm photos/ -o boxes.csv

With --scores each line holds the answer and the score of every class (one score for two classes), separated by tabs.
With --regions (scenes) the parts of the regions stand between: numbers with commas, row after row with semicolons.
With --json stdout holds one JSON object with the counts and the score; name -o for the answers themselves.

exit status: 0 done, 2 wrong usage or unusable data, 130 interrupted.
"""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="model file, written by maxmargin train")
    options.add_data(parser, what="rows to answer")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write the answers (default: stdout)")
    parser.add_argument("--scores", action="store_true", help="write the scores of the classes as well")
    parser.add_argument("--regions", action="store_true", help="scenes: write the part of every region as well")
    image_options.add_using(parser)
    detect_options.add_finding(parser)
    options.add_jobs(parser)
    options.add_talk(parser)


def run(args: argparse.Namespace, talk: Talk) -> int:
    from ..report import numbers
    from ..report.reading import Survey, scored
    from ..report.tallies import tally_for, task_of

    check_writable(args.output, [args.model, *args.data])
    model = load_usable(args.model)
    if images.task_of(model) == "detect":
        from . import detecting

        return detecting.predict(model, args, talk)
    if images.task_of(model) is not None:
        return images.predict(model, args, talk)
    image_options.refuse(args, "rows")
    task = task_of(model)
    if args.scores and task != "classify":
        raise ValueError(f"--scores is for classes; the answers of this model ({task}) are its scores. Leave it out.")
    source = options.open_data(args.data, args, like=model)
    tally, survey = tally_for(model), Survey()
    lines = _lines_of(model, task, args.scores)
    # Answers on a terminal are progress enough, and would be torn by another line.
    counting = talk.counting("Answered") if args.output or not sys.stdout.isatty() else nullcontext(lambda rows: None)
    with answers_to(args) as file, counting as progress:
        for chunk, scores in scored(model, source, survey):
            if file is not None:
                file.write(lines(scores))
            if chunk.y is not None:
                tally.add(chunk, scores)
            progress(survey.rows)

    extra = survey.features - model.n_features_in_
    if extra > 0:
        warn(
            f"{extra} of {survey.features} features were not in the training data; they have no weight and are ignored."
        )
    unseen = getattr(tally, "unseen", 0)
    if unseen and tally.score is not None:
        value, row = tally.first_unseen  # type: ignore[attr-defined]
        warn(
            f"{unseen} rows have labels that were not in the training data and count as wrong; the first is "
            f"{numbers.label(value)!r} in row {row + 1}."
        )
    talk.result(
        command="predict", task=task, model=args.model, rows=survey.rows, features=survey.features,
        features_ignored=max(extra, 0), score=tally.name, value=tally.score, labelled_rows=tally.rows,
        labels_unseen=unseen, skipped=survey.left_out[0], output=args.output,
    )  # fmt: skip
    say_left_out(source)
    talk.say(f"{numbers.count(survey.rows)} rows answered. {_verdict(task, tally)}")
    return DONE


def _verdict(task: str, tally: Any) -> str:
    from ..report import numbers

    if not tally.rows:
        return "There are no labels to compare them with."
    if tally.score is None:
        reason = {
            "classify": "None of the labels was in the training data",
            "regress": "All labels are the same",
            "rank": "No two rows of one group have different grades",
        }[task]
        return f"{reason}: no score."
    return f"{tally.name[0].upper()}{tally.name[1:]}: {numbers.score(task, tally.score)}."


def _lines_of(model: Any, task: str, with_scores: bool) -> Callable[[np.ndarray], str]:
    """A function from the scores of a chunk to its lines."""
    from ..report import numbers
    from ..report.tallies import chosen

    if task != "classify":
        return lambda scores: "".join([f"{score:.9g}\n" for score in scores.tolist()])
    names = np.array([on_one_line(numbers.label(c)) for c in model.classes_], dtype=object)
    if not with_scores:
        return lambda scores: "".join([f"{name}\n" for name in names[chosen(scores)]])

    def lines(scores: np.ndarray) -> str:
        rows = scores[:, None] if scores.ndim == 1 else scores
        values = ["\t".join([f"{s:.9g}" for s in row]) for row in rows.tolist()]
        return "".join([f"{name}\t{v}\n" for name, v in zip(names[chosen(scores)], values, strict=True)])

    return lines

"""maxmargin predict MODEL DATA [DATA ...] [-o FILE] [options]

Read data in chunks and write one answer per row: the class, the predicted number, the score to rank by, the label of a
token, labels with commas between them, the number of a cluster. Bags have one answer per group.

If the data has labels, stderr says how well the answers fit them. Labels that were not in the training data count as
wrong. Features that were not there have no weight and are left out, with one warning; features that are missing are
zero.

For a tagger, DATA are CoNLL files, or plain text with one sentence per line, split at blanks; - reads stdin. What is
written is a CoNLL file: the columns that the model reads, the label if there is one, the answer, and with --marginals
its probability. With --k-best there are several labellings of each sentence, each after a line that begins with # and
has its score, and with --marginals its probability.

For a model of scenes or parts, DATA are images: a folder (at any depth), a pattern or files. Each line holds the path
of an image and its class, separated by a tab. If all images lie in sub-folders with names of classes, stderr says how
many answers are right.

With a detector (maxmargin train --task detect) what is written depends on the name after -o:

  found.png    one image with boxes, scores and parts drawn into it (white: parts, violet: negative parts)
  found/       such a picture of every image
  boxes.csv    a table with a row for each box (.tsv with tabs): image, x_min, y_min, x_max, y_max in pixels, score,
               component, mirrored, and the label if the detector has one; maxmargin train --boxes reads it too
  boxes.json   results in the form of COCO

Without -o the table goes to stdout. Images that cannot be read are named, counted and left out.

examples:
  maxmargin predict model.mm new.svm > answers.txt
  maxmargin predict model.mm 'logs/*.svm.gz' -o answers.txt
  maxmargin predict model.mm new.parquet --scores -o answers.tsv
  maxmargin predict model.mm test.svm --json
  maxmargin predict ner.mm news.txt --marginals -o news.conll
  echo 'Ada flew to Rome .' | maxmargin predict ner.mm -
  maxmargin predict scenes.mm photos/ -o answers.txt
  maxmargin predict cats.mm photo.jpg -o found.png
  maxmargin predict cats.mm 'photos/*.jpg' -o boxes.csv --threshold 0.5

With --scores each line holds the answer and the score of every class (one score for two classes), separated by tabs.
With --json stdout holds one JSON object with the counts and the score; name -o for the answers themselves.

exit status: 0 done, 2 wrong usage or unusable data, 130 interrupted.
"""

from __future__ import annotations

import argparse

from . import DONE, options
from .files import loaded
from .talk import Talk


def add(parser: argparse.ArgumentParser) -> None:
    options.add_model(parser)
    options.add_data(parser, what="rows to answer")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write the answers (default: stdout)")
    options.add_jobs(parser)
    options.add_talk(parser)
    options.add_all(parser, "predict")


def run(args: argparse.Namespace, talk: Talk) -> int:
    loaded(args, talk).predict()
    return DONE

"""maxmargin detect"""

from __future__ import annotations

import argparse

from . import detect_options, options
from .talk import Talk

HELP = "find objects in images, as pictures or as a table"
USAGE = "IMAGE [IMAGE ...] --model MODEL [-o PICTURE|FOLDER|TABLE] [options]"
ABOUT = """\
Find objects in images with a detector (maxmargin train --task detect). What is written depends on the name after -o:

  found.png    one image with boxes, scores and parts drawn into it (white: parts, violet: negative parts)
  found/       such a picture of every image
  boxes.csv    a table with a row for each box (.tsv with tabs): image, x_min, y_min, x_max, y_max in pixels, score,
               component, mirrored, and the label if the detector has one; maxmargin train --boxes reads it too
  boxes.json   results in the form of COCO

Without -o the table goes to stdout. Images that cannot be read are named, counted and left out.
"""
EXAMPLES = """\
examples:
  maxmargin detect photo.jpg --model cats.mm -o found.png
  maxmargin detect photos/ --model cats.mm -o found --threshold 0.5 --jobs 4
  maxmargin detect 'photos/*.jpg' --model cats.mm -o boxes.csv

exit status: 0 done, 2 wrong usage or unusable data, 130 interrupted.
"""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="+", metavar="IMAGE", help="images: files, patterns, or folders (at any depth)")
    parser.add_argument("-m", "--model", required=True, metavar="MODEL", help="model file, written by maxmargin train")
    parser.add_argument("-o", "--output", metavar="FILE", help="what to write, see above (default: a table on stdout)")
    parser.add_argument("--only-boxes", action="store_true", help="pictures: draw no parts")
    detect_options.add_finding(parser)
    options.add_jobs(parser)
    options.add_talk(parser)


def run(args: argparse.Namespace, talk: Talk) -> int:
    from . import detecting, images
    from .files import load_usable

    model = load_usable(args.model)
    if images.task_of(model) != "detect":
        raise ValueError(
            f"{args.model} holds a {type(model).__name__}, which finds no objects. maxmargin train --task detect makes "
            "a detector; for this model: maxmargin predict."
        )
    return detecting.detect(model, args, talk)

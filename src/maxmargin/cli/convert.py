"""maxmargin convert DATA [DATA ...] FOLDER [options]

Read data of any size once and write it as a folder of shards: binary, checked, in random order, ready to be mapped
into memory. Every command takes such a folder as its data.

maxmargin train does this by itself, into a temporary folder. It is worth doing by hand where the same data will be
trained on more than once.

examples:
  maxmargin convert train.svm train.shards
  maxmargin convert 'logs/day-*.svm.gz' logs.shards --memory 2GB
  maxmargin convert train.svm small.shards --batch-size 256kB
  maxmargin convert clicks.parquet clicks.shards --label clicked --dtype float64
  maxmargin train logs.shards -o model.mm

exit status: 0 done, 2 wrong usage or unusable data, 130 interrupted.
"""

from __future__ import annotations

import argparse
import time

from . import DONE, options
from .files import reading, where
from .talk import Talk, peak_memory, say_left_out


def add(parser: argparse.ArgumentParser) -> None:
    options.add_data(parser, what="data to read")
    parser.add_argument("folder", metavar="FOLDER", help="folder to write")
    group = parser.add_argument_group("writing")
    group.add_argument("--no-shuffle", action="store_true", help="keep the order of rows (training wants them mixed)")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="of the random order (default: 0)")
    group.add_argument("--memory", default="512MB", metavar="SIZE", help="memory to use (default: 512MB)")
    group.add_argument(
        "--dtype", choices=("float32", "float64"), default="float32", help="of values (default: float32)"
    )
    group.add_argument(
        "--batch-size", default="4MB", metavar="SIZE",
        help="size of the batches that rows are read in, and dealt to workers (default: 4MB; at most 1GB)",
    )  # fmt: skip
    group.add_argument("--overwrite", action="store_true", help="replace the folder if it is there")
    options.add_jobs(parser)
    options.add_talk(parser)
    options.add_reading(parser)


def run(args: argparse.Namespace, talk: Talk) -> int:
    from .. import data
    from ..estimators.inputs import check_memory
    from ..report import numbers
    from ..report.tallies import left_out

    check_memory(args.memory)
    start = time.perf_counter()
    with talk.counting("Reading") as progress:
        shards = data.convert(
            where(args.data),
            args.folder,
            shuffle=not args.no_shuffle,
            seed=args.seed,
            memory=args.memory,
            batch_bytes=args.batch_size,
            dtype=args.dtype,
            overwrite=args.overwrite,
            progress=progress,
            **reading(args),
        )
    seconds = time.perf_counter() - start
    skipped = left_out(shards)[0]
    talk.result(
        command="convert", data=args.data, folder=args.folder, rows=len(shards), features=shards.n_features,
        shuffled=not args.no_shuffle, seconds=seconds, peak_memory=peak_memory(), skipped=skipped,
    )  # fmt: skip
    facts = [
        ("rows", numbers.count(len(shards))),
        ("features", numbers.count(shards.n_features)),
        ("order", "as it was" if args.no_shuffle else f"random, seed {args.seed}"),
        ("time", numbers.duration(seconds)),
        ("folder", args.folder),
    ]
    say_left_out(shards)
    talk.facts("Converted", facts + ([("rows left out", numbers.count(skipped))] if skipped else []))
    return DONE

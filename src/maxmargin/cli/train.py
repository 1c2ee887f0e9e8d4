"""maxmargin train DATA [DATA ...] -o MODEL [options]

Train an estimator on files that may be larger than memory, or on images.

Training minimises a penalty on the weights plus C times the losses. It ends with a certificate: the objective that the
weights reach (upper bound), and a value that no weights can get below (lower bound). --tol is the relative gap between
the two to stop at, and it is proved, not estimated. A smaller --tol means more passes over the data.

--task says what to learn, from what, and with which estimator; with --help, only the options of that task are shown. It
is guessed for rows, CoNLL files, folders of images and --boxes:

  classify    classes of rows: text labels, or few different whole numbers (LinearSVC)
  regress     a number for each row (LinearSVR)
  rank        the order of rows within groups: qid: in text files, or --group (RankingSVM)
  sequence    labels of tokens: names, parts of speech, chunks. Learned from CoNLL files (a line per token, its label
              in the last column) by templates of the words around; or from rows in groups, a group being a sequence
              (SequenceSVM)
  multilabel  several labels for each row, in text files with commas: 1,4 3:0.5 (MultilabelSVM)
  bags        a class for each group, of which one row is enough to tell (LatentSVC)
  cluster     groups of similar rows; labels are not looked at (GMMKMeans)
  scene       classes of images, in one sub-folder per class, by what their regions show (SceneClassifier)
  parts       the same by parts that all classes share and that may be anywhere (PartClassifier)
  detect      objects in images, learned from --boxes: a table with a row for each box (.csv: image, x_min, y_min,
              x_max, y_max, label), a COCO file (.json) or a folder of VOC files (.xml); other images show no object
              (DeformablePartDetector)

Where something latent is chosen (bags, scenes, parts, detectors) training is not convex, and the certificate is that of
the last convex problem. With --cluster, workers train together; those that die are started anew.

examples:
  maxmargin train train.svm -o model.mm
  maxmargin train 'logs/day-*.svm.gz' -o model.mm --C 0.1 --memory 2GB --jobs 4 --checkpoint run1
  maxmargin train clicks.parquet --label clicked --weight n -o model.mm --test held-out.parquet
  maxmargin train shards -o model.mm --cluster local:4 --memory 2GB --checkpoint run1
  maxmargin train prices.svm -o model.mm --task regress --epsilon 0.5 --report prices.html
  maxmargin train train.conll -o ner.mm --segments iob2 --dev dev.conll --tune C --calibrate --report ner.html
  maxmargin train esp.train -o ner.mm --task sequence --columns 0,-1 --encoding latin-1 --window 1 --affixes 4
  maxmargin train points.npy -o groups.mm --task cluster --clusters 20
  maxmargin train photos/ -o scenes.mm --kind rbow --cache features --jobs -1 --test others/
  maxmargin train photos/ -o parts.mm --task parts --n-parts 50 --cache features --jobs -1 --test others/
  maxmargin train photos/ --boxes boxes.csv -o cats.mm --label cat --components 2 --holdout 0.2 --report cats.html

Stopped with Ctrl-C it writes the best model so far; with --checkpoint, the same command goes on where it stopped.

exit status: 0 trained to --tol, 1 stopped earlier (model written, gap said), 2 wrong usage or unusable data,
130 interrupted (best model so far written, if there was one).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..files import replacing
from . import DONE, INTERRUPTED, NOT_CONVERGED, interrupts, options
from .files import check_writable, draw_into_files, named
from .talk import Talk, peak_memory, say_checkpoint, say_left_out
from .tasks import TASKS, chosen

if TYPE_CHECKING:
    from ..distributed.transport import Transport
    from .kind import Kind


def add(parser: argparse.ArgumentParser) -> None:
    options.add_data(parser, what="data to learn from")
    parser.add_argument("-o", "--output", required=True, metavar="MODEL", help="model file to write")
    parser.add_argument(
        "--task", choices=("auto", *TASKS), default="auto", help="what to learn (default: from the data)"
    )
    options.add_jobs(parser)
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="the same seed on one thread gives the same model (default: 0)"
    )
    parser.add_argument("--test", metavar="FILE", action="append", help="data to score the model on; may be repeated")
    parser.add_argument("--report", metavar="FILE", help="write a report as one HTML file")
    options.add_talk(parser)
    options.add_all(parser, "train")


def run(args: argparse.Namespace, talk: Talk) -> int:
    with _workers(args.cluster) as transport:  # whoever has mistyped it knows at once
        return _trained(args, talk, transport)


def _trained(args: argparse.Namespace, talk: Talk, transport: Transport | None) -> int:
    task = chosen(args, talk.say)
    kind, settings = task.kind(args, talk), options.resolve(args, task)
    others = [vars(args).get(name) for name in ("boxes", "dev")]
    gazetteers = (vars(args).get("gazetteers") or "").split(",")
    for path in (args.output, args.report):
        check_writable(path, [*args.data, *(args.test or []), *filter(None, [*others, *gazetteers])])
    kind.prepare(settings)
    model = task.make(**settings, n_jobs=args.jobs, random_state=args.seed, verbose=int(talk.progress))
    data, test = kind.training()
    kind.model = model
    say_checkpoint(args.checkpoint, talk)
    start = time.perf_counter()
    with interrupts() as seen:
        kind.model = model = kind.fit(model, data, _fit_options(kind, transport), seen)
    model.verbose = 0  # whoever loads it says so anew
    seconds = time.perf_counter() - start
    with replacing(args.output) as path:
        model.save(path)
    # Whoever has interrupted does not want to wait for more passes over data.
    test = kind.held_out(test) if test is not None and not seen else None
    score = kind.score(test) if test is not None else None
    page = None if seen else args.report
    facts = {
        "task": task.name, "task_guessed": args.task == "auto", "model": args.output, "data": args.data,
        kind.unit: kind.trained_on(data), "left_out": kind.left_out(data),
        **kind.facts(data), **kind.outcome(bool(seen)), "interrupted": bool(seen), "seconds": seconds,
        "peak_memory": peak_memory(), "workers": None if transport is None else transport.n_workers,
        "test": score, "report": page,
    }  # fmt: skip
    if page is not None:
        _report(page, kind, *kind.shown(data, test), facts)
    talk.result(command="train", **facts)
    say_left_out(data)
    _summary(facts, kind, kind.left_out(data))
    return INTERRUPTED if seen else DONE if facts["converged"] else NOT_CONVERGED


@contextmanager
def _workers(cluster: str | None) -> Iterator[Transport | None]:
    """The transport that ``--cluster`` asks for, closed afterwards; None where training stays in this process."""
    if cluster is None:
        yield None
        return
    from ..distributed import WorkerDied, transport_of

    try:
        with transport_of(cluster) as transport:
            yield transport
    except WorkerDied as died:
        # It was started anew again and again before this was raised: the cause is not in this program.
        raise ChildProcessError(
            f"{died}. Systems end processes when memory runs out: fewer workers or a smaller --memory may help. With "
            "--checkpoint, the same command goes on from what was saved."
        ) from died


def _fit_options(kind: Kind[Any], transport: Transport | None) -> dict[str, Any]:
    args = kind.args
    given: dict[str, Any] = {} if transport is None else {"cluster": transport}
    if args.checkpoint is not None:
        given |= {"checkpoint": args.checkpoint, "checkpoint_every": args.checkpoint_every}
    if args.progress and not kind.talk.on_terminal:
        who = "" if transport is None else f", {transport.n_workers} worker{'s' * (transport.n_workers > 1)}"

        def log(record: object) -> None:
            print(kind.line(record) + who, file=sys.stderr, flush=True)

        given["callbacks"] = (log,)
    return given


def _report(page: str, kind: Kind[Any], data: Any, name: str, facts: dict[str, Any]) -> None:
    from .. import report

    draw_into_files()
    title = f"{named([kind.args.output])}: {facts['task']}, trained on {named(kind.args.data)}"
    report.write(page, kind.model, kind.page(data, name), facts | {"title": title})


def _summary(facts: dict[str, Any], kind: Kind[Any], left_out: int) -> None:
    from ..report import numbers

    args, model, talk = kind.args, kind.model, kind.talk
    classes, test = facts.get("classes"), facts["test"]
    rows = [
        ("task", facts["task"] + (f", {classes} classes" if classes else "")),
        (kind.unit, numbers.count(facts[kind.unit])),
        *([(f"{kind.unit} left out", numbers.count(left_out))] if left_out else []),
        *kind.rows(facts),
        *_proof(facts, kind),
        *([("workers", f"{numbers.count(facts['workers'])} ({args.cluster})")] if facts["workers"] else []),
        ("time", numbers.duration(facts["seconds"])),
        ("peak memory", numbers.size(facts["peak_memory"])
         + (f", and up to {model.memory} of rows in each worker" if facts["workers"] and model.memory else "")),
        ("model", args.output),
        *([(f"test {test['score']}", kind.in_words(test))] if test is not None else []),
        *([("report", facts["report"])] if facts["report"] else []),
    ]  # fmt: skip
    talk.facts("Interrupted: the best model so far" if facts["interrupted"] else "Trained", rows)
    if not facts["converged"] and not facts["interrupted"]:
        after = f", after {facts['passes']} passes" if facts.get("passes") else ""
        talk.say(f"\nStopped before the goal{after}. What is said of it is true all the same. {kind.helps}")
    if args.checkpoint and not facts["converged"]:
        talk.say(f"\nThe same command continues from {args.checkpoint}.")


def _proof(facts: dict[str, Any], kind: Kind[Any]) -> list[tuple[str, str]]:
    """What is proved, in a few words, and what is not."""
    from ..report import numbers
    from .kind import bracket

    steps = next((name for name in ("bounds", "rounds") if name in facts), None)
    rows = []
    if steps is not None:
        counted = f"{facts[steps]} {steps if facts[steps] != 1 else steps[:-1]}"
        rows.append(("objective", f"{facts['objective']:.8g} after {counted}, {facts['passes']} passes"))
    if facts["certificate"] is None:
        return rows
    gap = facts["certificate"]["relative_gap"]
    most = f"perfect weights would lower the objective by {numbers.share(gap)} at most"
    bounds, *reached = bracket(kind.model.certificate_, facts["tol"], state=True)
    rows += [bounds, ("", kind.about or (most if gap < 1 else "the lower bound says nothing yet")), *reached]
    return rows if steps else [*rows, ("passes", numbers.count(facts["passes"]))]

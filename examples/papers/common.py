"""What scripts of this folder share: the command line, where data lies, processes, results on disk, tables."""

import argparse
import json
import multiprocessing
import os
import signal
import sys
import tarfile
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from sklearn.exceptions import ConvergenceWarning


def arguments(description, argv=None, extend=None):
    """The usual options; ``extend`` is called with the parser to add some of the script's own."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(), help="folder for tables and figures (default: here)")
    parser.add_argument("--quick", action="store_true", help="a small part of the data, in about a minute")
    parser.add_argument("--jobs", type=int, default=2, help="processes or threads (default: 2)")
    if extend is not None:
        extend(parser)
    given = parser.parse_args(argv)
    if given.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {given.jobs}")
    try:
        given.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--out: no folder can be made at {given.out} ({error.strerror})")
    # Searches that end at max_bounds are counted in the tables; a warning for each would drown them.
    warnings.simplefilter("ignore", ConvergenceWarning)
    return given


def data_file(name, what):
    """The path of a file in the folder named by MAXMARGIN_DATA."""
    folder = os.environ.get("MAXMARGIN_DATA")
    path = Path(folder or "") / name
    if not folder or not path.is_file():
        sys.exit(
            f"This needs {name} ({what}) in the folder named by the environment variable MAXMARGIN_DATA, which is "
            f"{folder or 'not set'}. Put it there, set the variable and try again."
        )
    return path


def unpacked(name, what, folder):
    """The files of an archive in the folder named by MAXMARGIN_DATA, unpacked into ``folder`` if they are not yet."""
    target = folder / Path(name).stem
    if not target.is_dir():
        archive = data_file(name, what)
        with tempfile.TemporaryDirectory(dir=folder) as aside, tarfile.open(archive) as opened:
            opened.extractall(Path(aside) / target.name, filter="data")
            (Path(aside) / target.name).rename(target)
    return target


def parallel(work, jobs, processes):
    """``work`` of every job, in their order, with a line of progress. Ctrl-C ends all of it at once."""
    results = []
    try:
        with ProcessPoolExecutor(processes, initializer=_leave_interrupts_to_the_parent) as pool:
            for result in _stopping_with_children(pool.map(work, jobs)):
                results.append(result)
                print(f"\r{len(results)} of {len(jobs)} done", end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        sys.exit(f"\nStopped after {len(results)} of {len(jobs)}. Nothing was written.")
    print(file=sys.stderr)
    return results


def _leave_interrupts_to_the_parent():
    # A fit that is interrupted ends with its best so far, which would pass for a result here.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _stopping_with_children(results):
    try:
        yield from results
    except KeyboardInterrupt:
        for child in multiprocessing.active_children():
            child.terminate()
        raise


class Kept:
    """Results by name in a JSON file, written as soon as they are known: an interrupted run goes on from there."""

    def __init__(self, path):
        self.path = path
        self.values = {}
        if path.exists():
            try:
                self.values = json.loads(path.read_text())
            except ValueError:
                sys.exit(f"{path} is not a file of results. Move it away, or choose another folder with --out.")

    def result(self, name, work):
        """What ``work()`` returns, or has returned in an earlier run."""
        if name not in self.values:
            self.values[name] = work()
            aside = self.path.with_suffix(".part")
            aside.write_text(json.dumps(self.values, indent=1) + "\n")
            aside.replace(self.path)
        return self.values[name]


def stop_when_interrupted(kept):
    """Ctrl-C ends the script at once, and says where results are.

    A fit that sees KeyboardInterrupt ends with its best so far, which would pass for a result here.
    """

    def stop(*_):
        done = f"{len(kept.values)} results are in {kept.path}; the same command goes on from there."
        sys.exit(f"\nStopped. {done if kept.values else 'There are no results yet.'}")

    signal.signal(signal.SIGINT, stop)


def table(head, rows):
    """Rows of texts as a table in Markdown."""
    if any(len(row) != len(head) for row in rows):
        raise ValueError(f"A row does not have one cell for each of {head}.")
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"

"""Max-margin learning on data of any size, with a certificate: training ends with two numbers between which the best
possible objective lies, so that you know how close to perfect a model is.

examples:
  maxmargin train train.svm -o model.mm --test test.svm
  maxmargin predict model.mm new.svm -o answers.txt
  maxmargin report model.mm test.svm -o report.html
  maxmargin train train.conll -o ner.mm --segments iob2 --test test.conll
  maxmargin predict ner.mm news.txt
  maxmargin train photos/ -o scenes.mm --test others/
  maxmargin train photos/ -o parts.mm --task parts --test others/
  maxmargin train photos/ --boxes boxes.csv -o cats.mm --holdout 0.2
  maxmargin predict cats.mm new.jpg -o found.png

exit status: 0 done, 1 not converged to --tol (the model is written, its gap said), 2 wrong usage or unusable data,
3 a fault of maxmargin itself, 130 interrupted. Messages go to stderr, results to stdout.
"""

# The command line. Each command is a module with ``add`` (its arguments) and ``run``; its docstring, as this one, is
# its help: usage, what it does, examples. What differs between tasks is in a ``Kind``; ``tasks`` has the table of them.
# Libraries are imported when a command runs, so that help comes at once.

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn

from .. import __version__
from ..validation import meant
from . import options
from .talk import Talk, complain, warnings_in_plain_words

DONE, NOT_CONVERGED, UNUSABLE, FAULT, INTERRUPTED = 0, 1, 2, 3, 130

_COMMANDS = {
    "train": ("maxmargin.cli.train", "learn from data of any size, or from images"),
    "predict": ("maxmargin.cli.predict", "answers of a model, one line per row; objects in images"),
    "certify": ("maxmargin.cli.certify", "prove again how close to perfect a model is"),
    "convert": ("maxmargin.cli.convert", "data as a folder that trains fast, read once and shuffled"),
    "report": ("maxmargin.cli.report", "a model and how well it does, as one HTML file"),
    "compile": ("maxmargin.cli.compile", "compile ahead of time, for containers and continuous integration"),
}  # the module of each, which is imported when it is asked for


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    try:
        status = _run(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever reads has had enough. Python would complain again when it flushes stdout at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


def _run(arguments: list[str]) -> int:
    parser = _parser()
    if not arguments:
        parser.print_help(sys.stderr)
        return UNUSABLE
    try:
        args = parser.parse_args(arguments)
    except SystemExit as end:
        return int(end.code or 0)
    command = import_module(_COMMANDS[args.command][0])
    in_words_of_the_shell = options.translator(vars(args).get("table", {}).values())
    try:
        with warnings_in_plain_words(in_words_of_the_shell):
            return command.run(args, Talk(quiet=args.quiet, as_json=args.json))
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        complain("interrupted.")
        return INTERRUPTED
    except Exception as error:
        if args.debug:
            traceback.print_exc()
        if isinstance(error, ValueError | OSError | MemoryError) or _is_known(error):
            complain(in_words_of_the_shell(_message(error)))
            return UNUSABLE
        complain(f"{type(error).__name__}: {error}. This is a fault of maxmargin: --debug shows where.")
        return FAULT


def _is_known(error: Exception) -> bool:
    """Whether data could not be read in the middle of training, or a library is missing that only some tasks need: the
    message says what to do."""
    from ..protocols import OracleError

    return isinstance(error, OracleError) or (isinstance(error, ImportError) and "pip install" in str(error))


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if isinstance(error, MemoryError):
        mend = "" if "is too little" in str(error) else " A smaller --memory leaves more to the system."
        return f"Not enough memory. {error}".strip() + mend
    return str(error)


@contextmanager
def interrupts() -> Iterator[list[bool]]:
    """Remember whether Ctrl-C was pressed: a fit ends in good order then, and does not say so itself.

    The polite way to end a process, SIGTERM, counts as that. The value is a list, empty as long as nothing has come.
    """
    seen: list[bool] = []

    def remember(number: int, frame: Any) -> None:
        seen.append(True)
        signal.default_int_handler(number, frame)

    before = {number: signal.signal(number, remember) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Parser(argparse.ArgumentParser):
    """Errors in one line, with what was probably meant and the way to help."""

    def error(self, message: str) -> NoReturn:
        complain(f"{message}{self._hint(message)} (see {self.prog} --help)")
        raise SystemExit(UNUSABLE)

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        """A command's options are added when it is used. What it does not know is its affair: it can say what comes
        close, as the whole cannot."""
        self.fill()
        given = list(args[0] or ()) if args else []
        if {"-h", "--help"} & set(given):
            options.show_one_task(self, given)
        found, unknown = super().parse_known_args(*args, **kwargs)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def format_help(self) -> str:
        self.fill()
        return super().format_help()

    def fill(self) -> None:
        """Add the arguments of the command, if this is the parser of one."""
        name = self.prog.partition(" ")[2]
        if name and self.description is None:
            module = import_module(_COMMANDS[name][0])
            self.usage, _, text = (module.__doc__ or "").partition("\n\n")
            self.description, self.epilog = _help(text)
            module.add(self)

    def _hint(self, message: str) -> str:
        option = re.match(r"(?:ambiguous option|unrecognized arguments): (--?[\w-]+)", message)
        hint = option and meant(option[1], [name for name in self._option_string_actions if name.startswith("--")])
        return f".{hint}" if hint else ""


def _help(text: str | None) -> tuple[str, str]:
    """What stands above the options, and below them: the examples."""
    about, examples, after = (text or "").partition("examples:")
    return about, examples + after


def _parser() -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter
    about, examples = _help(__doc__)
    parser = _Parser(prog="maxmargin", description=about, epilog=examples, formatter_class=form)
    parser.add_argument("--version", action="version", version=f"maxmargin {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (_, about) in _COMMANDS.items():
        commands.add_parser(name, help=about, formatter_class=form)
    return parser

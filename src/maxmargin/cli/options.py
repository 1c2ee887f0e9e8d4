"""Options from parameters: what the parsers of commands are told, what was said, and messages that name options."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from .signatures import Parameter
from .tasks import READING, TASKS, Task

_SHARED = 4  # options that so many tasks have are general ones
_SPELLED = {
    "C": ("-C", "--C"),
    "fit_intercept": ("--no-intercept",),
    "parts": ("--shared-parts",),
    "pool_size": ("--pool", "--pool-size"),
    "n_init": ("--n-init",),
}  # where it is not the name of the parameter, with or without its n_
_VALUES = {"parts": "shared"}  # what an option without a value stands for


@dataclass
class Option:
    """A parameter by the same name of one task or several."""

    name: str
    owners: dict[str, Parameter] = field(default_factory=dict)

    @property
    def first(self) -> Parameter:
        return next(iter(self.owners.values()))

    @property
    def is_switch(self) -> bool:
        return self.first.is_switch or self.name in _VALUES

    @property
    def words(self) -> list[str]:
        return list(dict.fromkeys(word for parameter in self.owners.values() for word in parameter.words))

    @property
    def flags(self) -> tuple[str, ...]:
        words = self.name.replace("_", "-")
        if self.name in _SPELLED:
            return _SPELLED[self.name]
        if self.first.default is True:
            return (f"--no-{words}",)
        return (f"--{words.removeprefix('n-')}", f"--{words}") if words.startswith("n-") else (f"--{words}",)

    @property
    def flag(self) -> str:
        return self.flags[-1] if self.name == "C" else self.flags[0]

    def add(self, group: Any) -> None:
        given: dict[str, Any] = {"dest": self.name, "default": None, "help": self.escaped()}
        if self.is_switch:
            group.add_argument(*self.flags, action="store_const", const=_VALUES.get(self.name, "switched"), **given)
            return
        plain = self.words and not any(p.forms for p in self.owners.values())
        shape = (
            {"choices": self.words, "metavar": "NAME"} if plain
            else {"type": self.check, "metavar": _metavar(self.first)}
        )  # fmt: skip
        group.add_argument(*self.flags, **shape, **given)

    def check(self, text: str) -> str:
        """The text, if it has a meaning for any task. Which one it is may only be known when data was looked at."""
        wanted = []
        for parameter in self.owners.values():
            try:
                parameter.read(text)
                return text
            except argparse.ArgumentTypeError:
                wanted.append(parameter.wanted)
        raise argparse.ArgumentTypeError(f"must be {' or '.join(dict.fromkeys(wanted))}, got {text!r}")

    def escaped(self) -> str:
        """The help as argparse takes it."""
        return self.help().replace("%", "%%")

    def help(self) -> str:
        """What the parameter is about, in the words of each task where it is about different things; its defaults."""
        abouts = {p.about: task for task, p in reversed(self.owners.items()) if p.about}
        said = [text if i == 0 else f"{task}: {text}" for i, (text, task) in enumerate(reversed(abouts.items()))]
        said = [text.rstrip(".") for text in said[: None if len(self.owners) < _SHARED else 1]]
        if self.first.default is True:
            said = [f"switch off: {said[0][0].lower()}{said[0][1:]}"]
        words = "" if self.is_switch else ", ".join(self.words)
        defaults: dict[str, list[str]] = {}
        for task, p in self.owners.items():
            if p.default is not None and not self.is_switch:
                shown = ",".join(map(str, p.default)) if isinstance(p.default, tuple) else f"{p.default}"
                defaults.setdefault(shown, []).append(task)
        values = [f"{', '.join(tasks)}: {value}" for value, tasks in defaults.items()]
        values[:1] = [f"default: {value}" for value in defaults][:1]
        others = list(self.owners)[1:] if len(self.owners) < _SHARED else []
        said += [words] * bool(words) + values + [f"also --task {', '.join(others)}"] * bool(others)
        return re.sub(r":\w+:`(?:maxmargin\.)?([^`]*)`|``([^`]*)``", r"\1\2", "; ".join(said))


def _metavar(parameter: Parameter) -> str:
    return {"int": "N", "float": "X"}.get(parameter.kind.split()[0].rstrip(","), "VALUE")


def table(command: str) -> dict[str, Option]:
    """The options of a command, over all tasks."""
    found: dict[str, Option] = {}
    for task in TASKS.values():
        for parameter in task.options(command):
            found.setdefault(parameter.name, Option(parameter.name)).owners[task.name] = parameter
    return found


def add_all(parser: argparse.ArgumentParser, command: str) -> None:
    """Add the options of all tasks: those that many share first, the others under the first task that has them."""
    known = table(command)
    parser.set_defaults(table=known)
    groups: dict[str, Any] = {}
    for name in ("", *TASKS):
        for option in known.values():
            owner = "" if len(option.owners) >= _SHARED else next(iter(option.owners))
            if owner == name:
                title = f"--task {name}" if name else "for many tasks"
                groups.setdefault(name, parser.add_argument_group(title) if name not in groups else None)
                option.add(groups[name])


def show_one_task(parser: argparse.ArgumentParser, arguments: list[str]) -> None:
    """Leave options that mean nothing for ``--task NAME`` out of the help, if that is among the arguments."""
    asked = re.search(r"(?<!\S)--task[ =](\S+)", " ".join(arguments))
    if asked is None or asked[1] not in TASKS:
        return
    known = parser.get_default("table") or {}
    for action in parser._actions:
        if action.dest in known:
            mine = known[action.dest].owners.get(asked[1])
            action.help = Option(action.dest, {asked[1]: mine}).escaped() if mine else argparse.SUPPRESS


def add_jobs(parser: Any) -> None:
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="threads; -1 for all cores (default: 1)")


def add_talk(parser: argparse.ArgumentParser) -> None:
    """How much to say, and in what form."""
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print one JSON object on stdout, and nothing else there")
    group.add_argument("--quiet", action="store_true", help="say nothing but warnings and errors")
    group.add_argument("--debug", action="store_true", help="show where in the code an error came from")


def add_data(parser: argparse.ArgumentParser, *, what: str, required: bool = True) -> None:
    parser.add_argument(
        "data", nargs="+" if required else "*", metavar="DATA",
        help=f"{what}: files of one kind (.svm, .libsvm, .txt, .conll, also .gz or .zst; .parquet, .npy), a pattern "
        "such as 'day-*.svm.gz', a folder written by maxmargin convert, or images",
    )  # fmt: skip


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="model file, written by maxmargin train")


def said(args: argparse.Namespace, task: Task) -> dict[str, Any]:
    """What was said, as the task understands it; what has no meaning for it is refused, not ignored."""
    found = {}
    for option in args.table.values():
        text = vars(args)[option.name]
        if text is None:
            continue
        parameter = option.owners.get(task.name)
        if parameter is None:
            owners = " or ".join(option.owners)
            raise ValueError(f"{option.flag} is for --task {owners}, and this is --task {task.name}. Leave it out.")
        if option.is_switch:
            found[option.name] = _VALUES.get(option.name, not parameter.default)
            continue
        try:
            found[option.name] = parameter.read(text)
        except argparse.ArgumentTypeError:
            raise ValueError(
                f"{option.flag} {text} is not for --task {task.name}: it must be {parameter.wanted}."
            ) from None
    return found


def resolve(args: argparse.Namespace, task: Task) -> dict[str, Any]:
    """Settings of the estimator; other options become attributes of ``args``, or what they are by default."""
    given, settings = said(args, task), task.settings() if args.command == "train" else {}
    for option in args.table.values():
        if option.name not in settings:
            parameter = option.owners.get(task.name)
            number = parameter.default if parameter and isinstance(parameter.default, float) else None
            setattr(args, option.name, given.get(option.name, False if option.is_switch else number))
    return {name: value for name, value in given.items() if name in settings}


def add_reading(parser: argparse.ArgumentParser) -> None:
    """How to read rows, for a command that is about no task."""
    group = parser.add_argument_group("reading data")
    for parameter in READING:
        Option(parameter.name, {"rows": parameter}).add(group)


_ALSO = {
    "n_jobs": "--jobs",
    "random_state": "--seed",
    "batch_bytes": "--batch-size",
    "n_features": "--features",
    "overwrite": "--overwrite",
}


def translator(known: Iterable[Option]) -> Callable[[str], str]:
    """A function that translates messages, given the options of a command: those of the library name its parameters."""
    flags = _ALSO | {option.name: option.flag for option in known}
    names = "|".join(sorted(flags, key=len, reverse=True))
    subject = re.compile(rf"(^|[.:] )({names})(?= must\b)")  # at the beginning of a sentence: some names are words
    setting = re.compile(rf"(?<![\w.`'-])({names})=(True\b)?")

    def translated(text: str) -> str:
        text = subject.sub(lambda found: found[1] + flags[found[2]], text)
        return setting.sub(lambda found: flags[found[1]] + ("" if found[2] else " "), text)

    return translated

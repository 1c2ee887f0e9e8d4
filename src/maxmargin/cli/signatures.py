"""Parameters of estimators as options: names and defaults from their classes, types and help from the docstring.

They are read from the source text. Nothing is imported, so that help comes at once.
"""

from __future__ import annotations

import argparse
import ast
import math
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

_PACKAGE = Path(__file__).parents[1]
_REFERENCE = re.compile(r"(?:As for|See) (?::class:`(?:maxmargin\.)?(\w+)`|the other estimators)")
_NOTHING = ("none", "all")  # what stands for None, where a parameter may be that


class Parameter(NamedTuple):
    """``kind`` is the type as the docstring has it, ``about`` its first sentence."""

    name: str
    default: Any = None
    kind: str = "str"
    about: str = ""

    @property
    def is_switch(self) -> bool:
        return isinstance(self.default, bool)

    @property
    def words(self) -> list[str]:
        return re.findall(r'"([^"]+)"', self.kind)

    @property
    def forms(self) -> list[tuple[str, Callable[[str], Any]]]:
        """What a value may look like besides words: in words, and how it is read."""
        kind = re.sub(r'"[^"]*"', "", self.kind)
        return [(said, read) for mark, said, read in _FORMS if re.search(mark, kind)]

    @property
    def is_option(self) -> bool:
        """Whether a command line can express it: objects and arrays it cannot."""
        return self.is_switch or bool(self.words or self.forms)

    @property
    def wanted(self) -> str:
        return " or ".join([", ".join(self.words)] * bool(self.words) + [said for said, _ in self.forms])

    def read(self, text: str) -> Any:
        """The value that text stands for."""
        if text in self.words:
            return text
        if "None" in self.kind and text in _NOTHING:
            return None
        for _, read in self.forms:
            try:
                return read(text)
            except ValueError:
                continue
        raise argparse.ArgumentTypeError(f"must be {self.wanted}, got {text!r}")


def _pair(text: str) -> tuple[int, int]:
    rows, columns = text.lower().split("x")
    return int(rows), int(columns)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _label(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


_FORMS: tuple[tuple[str, str, Callable[[str], Any]], ...] = (
    (r"\(int, int\)", "rows and columns such as 4x6", _pair),
    (r"sequence of int", "whole numbers with commas such as 1,2", lambda text: tuple(map(int, text.split(",")))),
    (r"(?<!\()(?<!of )\bint\b(?!\))", "a whole number", int),
    (
        r"sequence of float",
        "numbers with commas such as 0.1,1",
        lambda text: tuple(_finite(part) for part in text.split(",")),
    ),
    (r"(?<!of )\bfloat\b", "a number", _finite),
    (r"\bbool\b", "yes or no", lambda text: bool(("no", "yes").index(text))),
    (r"^label\b", "a label", _label),
    (r"\b(str|text|path)\b", "text", str),
)


@cache
def fit_options(module: str, estimator: str) -> frozenset[str]:
    """What ``fit`` takes besides data."""
    fit = next(_methods(_family(module, estimator), "fit"))
    return frozenset(argument.arg for argument in fit.args.kwonlyargs)


@cache
def parameters(module: str, estimator: str) -> dict[str, Parameter]:
    """The parameters of an estimator that lives in a module, by name and in order."""
    family = _family(module, estimator)
    documented = _documented(ast.get_docstring(family[0]) or "")
    found = {}
    for name, annotation, default in _settings(family):
        kind, about = documented.get(name, ("", ""))
        other = _REFERENCE.match(about)
        source = (other and other[1]) or "LinearSVC"
        if (other or not about) and source != estimator:  # it is said where the docstring refers to
            like = parameters(*_HOMES[source]).get(name, Parameter(name, kind=""))
            kind, about = kind or like.kind, like.about
        found[name] = Parameter(name, ast.literal_eval(default), kind or ast.unparse(annotation), about)
    return found


_HOMES = {
    "LinearSVC": ("estimators.classification", "LinearSVC"),
    "StructuralSVM": ("estimators.structured", "StructuralSVM"),
    "LatentStructuralSVM": ("estimators.latent", "LatentStructuralSVM"),
}  # whom docstrings refer to


@cache
def _family(module: str, name: str) -> list[ast.ClassDef]:
    """A class, and those that it inherits from in this package."""
    place = module.split(".")
    body = ast.parse(_PACKAGE.joinpath(*place).with_suffix(".py").read_text(encoding="utf-8")).body
    homes = {part.name: module for part in body if isinstance(part, ast.ClassDef)}
    for part in body:
        if isinstance(part, ast.ImportFrom) and part.level:
            homes |= {alias.name: ".".join([*place[: -part.level], part.module or ""]) for alias in part.names}
    node = next(part for part in body if isinstance(part, ast.ClassDef) and part.name == name)
    bases = [ast.unparse(base).partition("[")[0] for base in node.bases]
    return [node, *(relative for base in bases if base in homes for relative in _family(homes[base], base))]


def _methods(family: list[ast.ClassDef], name: str) -> Iterator[ast.FunctionDef]:
    return (part for node in family for part in node.body if isinstance(part, ast.FunctionDef) and part.name == name)


def _settings(family: list[ast.ClassDef]) -> Iterator[tuple[str, ast.expr, ast.expr]]:
    """Name, type and default of what ``__init__`` takes; where there is none, of annotated attributes."""
    init = next(_methods(family, "__init__"), None)
    if init is not None:
        names, defaults = init.args.args[1:] + init.args.kwonlyargs, [*init.args.defaults, *init.args.kw_defaults]
        for argument, default in zip(names, filter(None, defaults), strict=True):
            yield argument.arg, argument.annotation or ast.Constant(""), default
        return
    parts = [part for node in reversed(family) for part in node.body if isinstance(part, ast.AnnAssign)]
    for name, part in {ast.unparse(part.target): part for part in parts if part.value}.items():
        # What calls ``field`` is learned, or takes away what a base has as a parameter.
        if part.value and not isinstance(part.value, ast.Call) and not name.startswith("_"):
            yield name, part.annotation, part.value


def _documented(docstring: str) -> dict[str, tuple[str, str]]:
    """Type and first sentence of each parameter in a docstring of NumPy's style."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}|\Z)", docstring, flags=re.DOTALL | re.MULTILINE)
    found = {}
    entries = re.compile(r"^(\S[^\n]*)\n((?:[ \t]+[^\n]*\n|\n)*)", flags=re.MULTILINE)
    for entry in entries.finditer(section[1] + "\n" if section else ""):
        names, _, kind = entry[1].partition(" : ")
        text = " ".join(entry[2].split())
        sentence = re.match(r".*?(?:[.](?= |$)|$)", text)
        for name in names.split(", "):
            found[name] = (kind.split(", default")[0], sentence[0] if sentence else "")
    return found

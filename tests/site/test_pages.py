"""The pages as they stand: their Python runs and prints what they say it prints, their command lines exist.

All blocks fenced as ``python`` of one page run in order, in one namespace and an empty folder. A ``text`` fence right
after a block shows what that block prints. A page may begin with front matter: ``needs: [module, …]`` (it is skipped
where one of them cannot be imported), ``tolerance: 0.1`` (of numbers in what is shown; 0.01 unless it says so) and
``shell: true`` (blocks fenced as ``sh`` run, too, if a ``text`` fence right after shows their stdout, stderr or both).
"""

import contextlib
import importlib.util
import io
import re
import shlex
import tomllib
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from maxmargin.cli import _parser, main

ROOT = Path(__file__).parents[2]
BUILT = ("_build", "gallery")  # made from the sources, not written
FENCE = re.compile(r"^```([^\s`]+)[^\n]*\n(.*?)^```[ \t]*$", flags=re.DOTALL | re.MULTILINE)
TOKEN = re.compile(r"…|[^\W\d]\w*|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\S")


@dataclass(frozen=True)
class Page:
    name: str
    text: str

    @cached_property
    def matter(self):
        """What stands between the two lines of dashes at the beginning."""
        found = re.match(r"---\n(.*?)^---\n", self.text, flags=re.DOTALL | re.MULTILINE)
        return found[1] if found else ""

    @property
    def needs(self):
        found = re.search(r"^needs:\s*\[(.*)\]", self.matter, flags=re.MULTILINE)
        return [name.strip() for name in found[1].split(",")] if found else []

    @property
    def tolerance(self):
        found = re.search(r"^tolerance:\s*(\S+)", self.matter, flags=re.MULTILINE)
        return float(found[1]) if found else 1e-2

    @property
    def blocks(self):
        """(code, what it prints according to the page, None if that is not shown) of every block that runs."""
        return [(code, shown) for kind, code, shown in self.runs if kind == "python"]

    @cached_property
    def runs(self):
        """The same with the kind of each block: python or sh."""
        fences = list(FENCE.finditer(self.text))
        shell = re.search(r"^shell:\s*true$", self.matter, flags=re.MULTILINE)
        found = []
        for fence, after in pairwise([*fences, None]):
            close = after is not None and not self.text[fence.end() : after.start()].strip()
            shown = after[2] if close and after[1] == "text" else None
            if fence[1] == "python" or (fence[1] == "sh" and shell and shown is not None):
                found.append((fence[1], fence[2], shown))
        return found

    @property
    def commands(self):
        """The command lines of all ``sh`` fences, as lists of words; pipes and redirections end a command."""
        for fence in FENCE.finditer(self.text):
            if fence[1] in ("sh", "bash", "shell", "console"):
                for line in fence[2].replace("\\\n", " ").splitlines():
                    words = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=True)
                    words.whitespace_split = True
                    command = []
                    for word in [*words, ";"]:
                        if set(word) <= set("|&;<>()"):
                            yield command
                            command = []
                        elif command or "=" not in word:  # variables may be set before the name of the program
                            command.append(word)


def pages():
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for path in paths:
        name = path.relative_to(ROOT)
        if not set(name.parts) & set(BUILT):
            yield Page(name.as_posix(), path.read_text(encoding="utf8"))


PAGES = list(pages())


def fits(shown, printed, tolerance=1e-2):
    """Whether text is what was shown: spaces count for nothing, numbers are close, … stands for anything.

    Numbers below a thousandth are taken for zero: gaps and rounding are not the same everywhere.
    """
    shown, printed = TOKEN.findall(shown), TOKEN.findall(printed)
    reached = {0}  # how many of the printed tokens the shown ones so far can account for
    for token in shown:
        if token == "…":
            reached = set(range(min(reached), len(printed) + 1)) if reached else set()
        else:
            reached = {p + 1 for p in reached if p < len(printed) and _alike(token, printed[p], tolerance)}
    return len(printed) in reached


def _alike(a, b, tolerance):
    if a == b:
        return True
    try:
        x, y = float(a), float(b)
    except ValueError:
        return False
    return abs(x - y) <= tolerance * max(abs(x), abs(y)) + 1e-3


def photographs(folder):
    """What blocks with photographs ask for: two classes, waves and noise."""
    Image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    waves = 100 + 60 * np.sin(np.arange(96) / 3.0)
    for place in ("train/Coast", "train/Forest", "test/Coast", "test/Forest"):
        (folder / place).mkdir(parents=True)
        for i in range(6):
            noise = rng.normal(size=(80, 96))
            image = (waves + 10 * noise if place.endswith("Coast") else 128 + 50 * noise).clip(0, 255)
            Image.fromarray(image.astype(np.uint8)).save(folder / place / f"{i}.png")
    for name, place in (("a", "test/Coast"), ("b", "test/Forest")):
        Image.open(folder / place / "0.png").save(folder / f"{name}.jpg")


@pytest.mark.parametrize("page", [p for p in PAGES if p.blocks], ids=lambda page: page.name)
def test_page_runs_and_prints_what_it_shows(page, tmp_path, monkeypatch):
    missing = [name for name in page.needs if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{page.name} needs {', '.join(missing)}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    if any('"train"' in code for code, _ in page.blocks):  # the folder of images that such pages train on
        photographs(tmp_path)
    names = {"__name__": "page"}
    for number, (kind, code, shown) in enumerate(page.runs, start=1):
        where = f"{page.name}, block {number}"
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err) if kind == "sh" else contextlib.nullcontext(),
        ):
            if kind == "python":
                exec(compile(code, where, "exec"), names)
            for line in code.splitlines() if kind == "sh" else ():
                assert main(shlex.split(line)[1:]) == 0, f"{where}: {line}\n{err.getvalue()}"
        printed = [out.getvalue(), err.getvalue(), out.getvalue() + err.getvalue()]
        assert shown is None or any(fits(shown, text, page.tolerance) for text in printed), (
            f"{where} prints\n{printed[-1]}\nwhere the page shows\n{shown}"
        )


@pytest.mark.parametrize("page", [p for p in PAGES if any(p.commands)], ids=lambda page: page.name)
def test_commands_of_a_page_exist(page, capsys):
    parser = _parser()
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for command in page.commands:
        line, words = shlex.join(command), [word for word in command if "=" not in word]
        if command[:1] == ["maxmargin"]:
            try:
                parser.parse_args(command[1:])
            except SystemExit as end:  # help and version end so, too
                assert not end.code, f"{page.name} has the line `{line}`, of which the parser says:\n" + (
                    capsys.readouterr().err
                )
        elif words[:1] == ["make"]:
            unknown = set(words[1:]) - targets
            assert not unknown, f"{page.name} has the line `{line}`; there is no target {unknown}."
        elif words[:2] == ["pip", "install"]:
            wanted = re.findall(r"(?:maxmargin|\.)\[([\w,]+)\]", line)
            unknown = {extra for extras in wanted for extra in extras.split(",")} - set(
                project["optional-dependencies"]
            )
            assert not unknown, f"{page.name} has the line `{line}`; there is no extra {unknown}."


def test_pages_are_read_and_outputs_compared():
    assert {"README.md", "docs/quickstart.md", "docs/guide/own_model.md"} <= {page.name for page in PAGES}
    page = Page(
        "p",
        "---\nneeds: [numpy]\ntolerance: 0.5\n---\n```python\na\n```\n\n```text\n2\n```\n\n```sh\n$ A=1 a b | c\n```\n",
    )
    assert (page.needs, page.tolerance, page.blocks) == (["numpy"], 0.5, [("a\n", "2\n")])
    assert [command for command in page.commands if command] == [["a", "b"], ["c"]]
    for shown, printed, same in [
        ("gap 1.00e+00", "gap  1.005", True), ("gap 1.0", "gap 1.2", False), ("a … b", "a 17 things b", True),
        ("a … b", "a 17 things", False), ("one", "one two", False), ("5e-04", "0.0008", True), ("w1 1", "w2 1", False),
    ]:  # fmt: skip
        assert fits(shown, printed) is same

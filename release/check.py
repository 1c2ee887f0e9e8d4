"""Builds wheel and sdist into dist/, and tries them where nothing else is installed.

python release/check.py [PYTHON ...]

PYTHON: interpreters to try, by default every python3.N on the path that the package supports. For each, the wheel is
installed into an empty environment and ``smoke.py`` is run; for the oldest, the sdist is, too, and once more with the
lowest versions of dependencies that ``pyproject.toml`` admits.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MINORS = [int(c.rpartition(".")[2]) for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]


def build() -> tuple[Path, Path]:
    """The wheel (made from the sdist, so that the sdist is whole) and the sdist."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(ROOT / "dist"), str(ROOT)], check=True)
    (wheel,), (sdist,) = (ROOT / "dist").glob("*.whl"), (ROOT / "dist").glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive, tarfile.open(sdist) as source:
        inside, packed = archive.namelist(), {name.partition("/")[2] for name in source.getnames()}
    sources = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*") if _belongs(path)}
    missing, strangers = sources - set(inside), {n for n in inside if ".dist-info/" not in n} - sources
    assert not missing and not strangers, f"the wheel lacks {sorted(missing)}, and has {sorted(strangers)}"
    assert any(name.endswith("licenses/LICENSE") for name in inside), "the wheel has no licence"
    for name in ("tests/solvers/test_solve.py", "docs/mathematics.md", "CHANGELOG.md", "CITATION.cff", "SECURITY.md"):
        assert name in packed, f"the sdist lacks {name}"
    return wheel, sdist


def _belongs(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


def interpreters() -> list[str]:
    """Those on the path that run, oldest first."""
    found = []
    for minor in sorted(MINORS):
        name = f"python3.{minor}"
        if shutil.which(name) and subprocess.run([name, "-c", ""], capture_output=True, check=False).returncode == 0:
            found.append(name)
    return found


def lowest() -> list[str]:
    """Every dependency at its lower bound."""
    return [requirement.replace(">=", "==") for requirement in PROJECT["dependencies"]]


def attempt(python: str, what: list[str], name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        print(f"{python}, {name}", flush=True)
        subprocess.run([python, "-m", "venv", folder], check=True)
        inside = f"{folder}/bin/python"
        quiet = ["--quiet", "--disable-pip-version-check"]
        subprocess.run([inside, "-m", "pip", "install", *quiet, *what], check=True)
        subprocess.run([inside, "-I", str(ROOT / "release" / "smoke.py")], check=True, cwd=folder)


def main(pythons: list[str]) -> None:
    wheel, sdist = build()
    pythons = pythons or interpreters()
    for python in pythons:
        attempt(python, [str(wheel)], "wheel")
    attempt(pythons[0], [str(sdist)], "sdist")
    attempt(pythons[0], [str(wheel), *lowest()], "wheel with the lowest versions")
    print(f"{wheel.name} and {sdist.name} work on {', '.join(pythons)}.")


if __name__ == "__main__":
    main(sys.argv[1:])

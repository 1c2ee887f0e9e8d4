"""The JSON file of results: one entry per measured cell, on disk as soon as it is known."""

import importlib.metadata
import json
import os
import platform
import time
from argparse import Namespace
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PACKAGES = ["numpy", "scipy", "scikit-learn", "liblinear-official", "numba"]
FOLDER = Path(__file__).parent / "results"


class Results:
    """A dictionary of cells that lives in a file. A cell measured again replaces the old one."""

    def __init__(self, path: Path):
        self.path = path
        self.data: dict[str, Any] = {"environment": {}, "cells": {}}
        if path.exists():
            self.data = json.loads(path.read_text())

    def __contains__(self, key: str) -> bool:
        return key in self.data["cells"]

    @property
    def cells(self) -> dict[str, Any]:
        return self.data["cells"]

    def put(self, key: str, cell: dict[str, Any]) -> None:
        before = self.data["environment"].get("packages", {})
        self.data["environment"] = environment(before)
        self.cells[key] = {"measured": datetime.now(UTC).isoformat(timespec="seconds")} | cell
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Written aside and renamed: an interrupted run leaves the old file or the new one, never half.
        aside = self.path.with_suffix(".part")
        aside.write_text(json.dumps(self.data, indent=1) + "\n")
        aside.replace(self.path)


def measure(
    name: str,
    args: Namespace,
    plan: Iterable[tuple[str, Callable[[], dict[str, Any]]]],
    write: Callable[[Results], None],
) -> None:
    """All cells of a plan that ``args`` asks for, then the tables: the loop of a benchmark with --quick, --only,
    --resume and --report."""
    found = Results(FOLDER / (f"{name}-quick.json" if args.quick else f"{name}.json"))
    start = time.perf_counter()
    for key, cell in plan:
        wanted = key.startswith(tuple(args.only.split(",")))
        if args.report or not wanted or (args.resume and key in found):
            continue
        print(f"{time.perf_counter() - start:7.1f} s  {key}", flush=True)
        found.put(key, cell())
    if not found.cells:
        raise SystemExit(f"There is nothing in {found.path.name} to report on.")
    write(found)
    print(f"{time.perf_counter() - start:7.1f} s  results in {found.path.name} and its tables")


def environment(before: dict[str, str] | None = None) -> dict[str, Any]:
    """Versions and processor: what a reader needs to weigh the seconds; cells measured before had other packages."""
    installed = {each.name: each.version for each in importlib.metadata.distributions()}
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "packages": (before or {}) | {name: installed[name] for name in PACKAGES if name in installed},
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()

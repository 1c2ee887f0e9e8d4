"""Where a page is written to."""

from __future__ import annotations

import os
from pathlib import Path

from ..wording import shown


def check_path(path: str | Path) -> Path:
    """Complain about a place that cannot be written to before any work is done."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"path must name the HTML file to write, got {type(path).__name__}: {shown(path)}. It comes first, the "
            'data after it: report("report.html", X, y).'
        )
    target = Path(path)
    if not target.name:
        raise ValueError(f"path must name the HTML file to write, got {os.fspath(path)!r}.")
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file to write, such as {target / 'report.html'}.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"Cannot write {path}: there is no folder {target.parent}. Create it first.")
    if not os.access(target.parent, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise PermissionError(f"Cannot write {path}: no permission to. Name another file.")
    return target

"""Lists the licences of everything that maxmargin and its extras install, as LICENCES.md.

python release/licences.py [EXTRA ...]    # written to the terminal; needs the extras to be installed

Licences are what packages say of themselves in their metadata. Nothing of theirs is in our files.
"""

from __future__ import annotations

import re
import sys
from importlib import metadata

from packaging.requirements import Requirement

EXTRAS = (
    "plots",
    "vision",
    "torch",
    "ray",
    "cnn",
    "mlflow",
    "tensorboard",
    "docs",
    "test",
    "bench",
    "papers",
    "release",
)
_OURS = "maxmargin"
_KNOWN = {  # the longer ways in which metadata says it
    "apache software license": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "bsd license": "BSD",
    "bsd": "BSD",
    "mit license": "MIT",
    "python software foundation license": "PSF-2.0",
    "unknown": "does not say",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
}


def needed(name: str, extra: str = "") -> set[str]:
    """Names of what a package asks for here, with one of its extras or with none."""
    names = set()
    for line in metadata.requires(name) or ():
        requirement = Requirement(line)
        plain = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        chosen = extra and requirement.marker is not None and requirement.marker.evaluate({"extra": extra})
        if (chosen and not plain) if extra else plain:
            names |= {_normal(requirement.name)} - {_OURS}
            for further in requirement.extras:
                names |= needed(requirement.name, further)
    return names


def closure(names: set[str]) -> set[str]:
    """The same with all that they ask for in turn, as far as it is installed."""
    seen: set[str] = set()
    queue = list(names)
    while queue:
        name = queue.pop()
        if name in seen or not _installed(name):
            continue
        seen.add(name)
        queue.extend(needed(name))
    return seen


def licence(name: str) -> str:
    about = metadata.metadata(name)
    said = about.get("License-Expression")
    if not said:
        classes = [c.rpartition(" :: ")[2] for c in about.get_all("Classifier") or () if c.startswith("License ::")]
        classes = [c for c in classes if c != "OSI Approved"]
        said = " and ".join(classes) or (about.get("License") or "UNKNOWN").strip().split("\n")[0]
    return _KNOWN.get(said.lower(), said)


def _installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main(extras: list[str]) -> None:
    core = closure(needed(_OURS))
    groups: dict[str, set[str]] = {"every install": core}
    told = set(core)
    for extra in extras or EXTRAS:
        groups[f"`{extra}`"] = closure(needed(_OURS, extra)) - told
        told |= groups[f"`{extra}`"]
    print("| package | licence | comes with |\n| --- | --- | --- |")
    for group, names in groups.items():
        for name in sorted(names):
            print(f"| {name} | {licence(name)} | {group} |")


if __name__ == "__main__":
    main(sys.argv[1:])

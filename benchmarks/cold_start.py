"""CPU seconds of the first fit of each kind in a fresh process: ``python benchmarks/cold_start.py [--repeats N]``.

The table goes to results/cold_start.md. Needs no data.
"""

import argparse
import compileall
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from report import environment_text, markdown_table
from results import FOLDER, environment

import maxmargin

_INTRODUCTION = """\
# The first fit of a process

CPU seconds of a process that imports maxmargin, fits one small estimator and ends. *Cold*: no kernel is compiled yet;
Python's own bytecode is there, as `pip install` leaves it. *Warm*: compiled code is on disk, where `maxmargin compile`
or an earlier process has left it; in brackets the spread, (slowest - fastest) / fastest.
`python benchmarks/cold_start.py`.

"""

_BEGIN = """
import warnings
warnings.simplefilter("ignore")
import numpy as np
import maxmargin as mm
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 10))
y = (X[:, 0] + 0.3 * rng.normal(size=300) > 0).astype(int)
three = y + (X[:, 1] > 0.5)
parts = [slice(a, a + 6) for a in range(0, 300, 6)]
"""

FITS = {
    "imports of Numba and scikit-learn alone": "import numba, sklearn.base, sklearn.utils.validation",
    "LinearSVC, two classes": "mm.LinearSVC().fit(X, y)",
    "LinearSVC, three classes": "mm.LinearSVC().fit(X, three)",
    "LinearSVR": "mm.LinearSVR().fit(X, X[:, 0])",
    "RankingSVM": "mm.RankingSVM().fit(X, three, groups=np.arange(300) // 6)",
    "SequenceSVM": "mm.SequenceSVM().fit([X[p] for p in parts], [three[p] for p in parts])",
    "MultilabelSVM": "mm.MultilabelSVM().fit(X, X[:, :4] > 0)",
    "LatentSVC": "mm.LatentSVC().fit([X[p] for p in parts], y[::6])",
    "GMMKMeans": "mm.GMMKMeans(3).fit(X)",
}

GOALS = {  # cold, warm
    "LinearSVC, two classes": (4.0, 1.6),
    "LinearSVC, three classes": (4.0, 1.6),
    "SequenceSVM": (10.0, 2.0),
    "MultilabelSVM": (10.0, 2.0),
    "LatentSVC": (10.0, 2.0),
    "GMMKMeans": (5.0, 1.6),
}


_environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def cpu_seconds(code: str, cache: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], env=_environment | {"NUMBA_CACHE_DIR": cache}, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="warm runs, of which the fastest counts")
    repeats = parser.parse_args().repeats
    compileall.compile_dir(Path(maxmargin.__file__).parent, quiet=1)
    rows = []
    for name, fit in FITS.items():
        with tempfile.TemporaryDirectory() as cache:
            code = fit if fit.startswith("import") else _BEGIN + fit
            cold = cpu_seconds(code, cache)
            warm = [cpu_seconds(code, cache) for _ in range(repeats)]
        row = [name, f"{cold:.1f} s", f"{min(warm):.2f} s ({max(warm) / min(warm) - 1.0:.0%})", ""]
        if name in GOALS:
            met = cold <= GOALS[name][0] and min(warm) <= GOALS[name][1]
            row[-1] = f"{'met' if met else '**miss**'} {GOALS[name][0]:g} s, {GOALS[name][1]:g} s"
        print("  ".join(row), flush=True)
        rows.append(row)
    table = markdown_table(["first fit of a process", "cold", "warm", "goal"], rows)
    text = _INTRODUCTION + environment_text(environment()) + "\n" + table
    (FOLDER / "cold_start.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""CPU seconds of the first fit of each kind in a fresh process: ``python benchmarks/cold_start.py [--repeats N]``.

Cold: nothing is compiled yet. Warm: everything is on disk. Imports are included, and so is all that Python does at its
end. Each fit is small; what is measured is compiling and importing. Needs no data.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile

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


def cpu_seconds(code: str, cache: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"NUMBA_CACHE_DIR": cache}, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="warm runs, of which the fastest counts")
    repeats = parser.parse_args().repeats
    print("| fit | cold, CPU s | warm, CPU s (slowest) |\n| --- | --- | --- |")
    for name, fit in FITS.items():
        with tempfile.TemporaryDirectory() as cache:
            code = fit if fit.startswith("import") else _BEGIN + fit
            cold = cpu_seconds(code, cache)
            warm = [cpu_seconds(code, cache) for _ in range(repeats)]
        print(f"| {name} | {cold:.1f} | {min(warm):.2f} ({max(warm):.2f}) |", flush=True)

"""What the first seconds cost: compilation, once per machine, and a fresh process after that."""

import json
import os
import subprocess
import sys
import tempfile

_SMALL_FIT = """
import json, time
start = time.perf_counter()
import maxmargin as mm
imported = time.perf_counter()
import numpy as np
rng = np.random.default_rng(0)
X = rng.standard_normal((200, 10)).astype(np.float32)
y = np.where(X[:, 0] + 0.1 * rng.standard_normal(200) > 0, 1, -1)
begin = time.perf_counter()
mm.LinearSVC(C=1.0).fit(X, y)
first = time.perf_counter()
mm.LinearSVC(C=1.0).fit(X, y)
second = time.perf_counter()
print(json.dumps({"import": imported - start, "first_fit": first - begin, "second_fit": second - first}))
"""


def startup(repeats: int) -> dict[str, dict[str, float]]:
    """Seconds of import, first and second small fit: with an empty kernel cache, then with a full one."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}
        empty = _fresh_process(environment)
        full = [_fresh_process(environment) for _ in range(max(1, repeats))]
    return {"empty cache": empty, "full cache": {key: min(run[key] for run in full) for key in empty}}


def _fresh_process(environment: dict[str, str]) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", _SMALL_FIT], env=environment, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)

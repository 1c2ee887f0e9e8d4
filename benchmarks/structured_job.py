"""One measurement in a process of its own: `fresh` starts it, and this file is also what it runs.

A fresh process has nobody else's memory, caches or thread pools. The answer is the last line it prints.
"""

import json
import os
import subprocess
import sys
from typing import Any

# Linear algebra libraries would otherwise help themselves to more threads than were asked for.
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


def fresh(job: str, **arguments: Any) -> dict[str, Any]:
    """Runs a job of the table below and returns what it found."""
    command = [sys.executable, __file__, job, json.dumps(arguments)]
    done = subprocess.run(command, env=os.environ | ONE_THREAD, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def _chains(name: str, task: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    import chains

    return getattr(chains, name)(chains.Task(**task), **arguments)


def _tagging(**arguments: Any) -> dict[str, Any]:
    import tagging

    return tagging.measure(**arguments)


def _main(job: str, arguments: str) -> None:
    run = {
        "maxmargin": lambda **k: _chains("run_ours", **k),
        "Frank-Wolfe": lambda **k: _chains("run_frank_wolfe", **k),
        "dlib": lambda **k: _chains("run_dlib", **k),
        "tagging": _tagging,
    }[job]
    print(json.dumps(run(**json.loads(arguments))))


if __name__ == "__main__":
    _main(*sys.argv[1:])

"""One measurement in a process of its own, which has nobody else's memory, caches or thread pools."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

# Linear algebra libraries would otherwise help themselves to more threads than were asked for.
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


def fresh(script: str, job: str, **arguments: Any) -> dict[str, Any]:
    """Runs a job of a script that ends with `answer`, and returns what it found."""
    command = [sys.executable, script, job, json.dumps(arguments)]
    done = subprocess.run(command, env=os.environ | ONE_THREAD, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def answer(jobs: dict[str, Callable[..., dict[str, Any]]]) -> None:
    """In the new process: does the job that `fresh` asks for. The answer is the last line it prints."""
    job, arguments = sys.argv[1:]
    print(json.dumps(jobs[job](**json.loads(arguments))))

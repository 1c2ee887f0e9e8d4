"""The jobs of the structured benchmark: `fresh` starts one in a process of its own, and this file is what it runs."""

from typing import Any

import own_process


def fresh(job: str, **arguments: Any) -> dict[str, Any]:
    """Runs a job of the table below and returns what it found."""
    return own_process.fresh(__file__, job, **arguments)


def _chains(name: str, task: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    import chains

    return getattr(chains, name)(chains.Task(**task), **arguments)


def _tagging(**arguments: Any) -> dict[str, Any]:
    import tagging

    return tagging.measure(**arguments)


def _file_tagging(**arguments: Any) -> dict[str, Any]:
    import file_tagging

    return file_tagging.measure(**arguments)


if __name__ == "__main__":
    own_process.answer(
        {
            "maxmargin": lambda **k: _chains("run_ours", **k),
            "Frank-Wolfe": lambda **k: _chains("run_frank_wolfe", **k),
            "dlib": lambda **k: _chains("run_dlib", **k),
            "tagging": _tagging,
            "file tagging": _file_tagging,
        }
    )

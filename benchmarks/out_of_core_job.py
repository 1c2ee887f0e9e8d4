"""The jobs of the benchmark of data larger than memory: `fresh` starts one, and this file is what it runs."""

from typing import Any

import own_process


def fresh(job: str, **arguments: Any) -> dict[str, Any]:
    """Runs a job of the table below and returns what it found."""
    return own_process.fresh(__file__, job, **arguments)


def _fits(name: str, **arguments: Any) -> dict[str, Any]:
    import sourced_fits

    return getattr(sourced_fits, name)(**arguments)


def _streams(**arguments: Any) -> dict[str, Any]:
    import streams

    return streams.measure(**arguments)


def _reading(**arguments: Any) -> dict[str, Any]:
    import reading

    return reading.measure(**arguments)


if __name__ == "__main__":
    own_process.answer(
        {
            "warm up": lambda **k: _fits("warm_up", **k),
            "from files": lambda **k: _fits("from_files", **k),
            "in memory": lambda **k: _fits("in_memory", **k),
            "stream": _streams,
            "reading": _reading,
        }
    )

"""The jobs of the benchmark of clusters: `fresh` starts one, and this file is what it runs."""

from typing import Any

import own_process


def fresh(job: str, **arguments: Any) -> dict[str, Any]:
    """Runs a job of the table below and returns what it found."""
    return own_process.fresh(__file__, job, **arguments)


def _fits(name: str, **arguments: Any) -> dict[str, Any]:
    import cluster_fits

    return getattr(cluster_fits, name)(**arguments)


def _peers(name: str, **arguments: Any) -> dict[str, Any]:
    import round_peers

    return getattr(round_peers, name)(**arguments)


if __name__ == "__main__":
    own_process.answer(
        {
            "on files": lambda **k: _fits("on_files", **k),
            "chains": lambda **k: _fits("chains", **k),
            "rounds": lambda **k: _fits("rounds_at", **k),
            "counted": lambda **k: _fits("counted", **k),
            "optimum": lambda **k: _peers("optimum", **k),
            "gradients": lambda **k: _peers("gradients", **k),
            "subgradients": lambda **k: _peers("subgradients", **k),
            "averaging": lambda **k: _peers("averaging", **k),
        }
    )

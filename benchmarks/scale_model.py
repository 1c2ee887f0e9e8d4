"""What a run over many machines would take, by a model of its costs with constants that were measured or assumed.

    seconds = rounds · (fixed + 2 · latency · depth + 8 · d · (copies down + copies up) / bandwidth)
              + worker visits · entries · seconds per entry / K
              + centre's visits · entries · seconds per entry + what it is sent / bandwidth
              + bytes of all rows / (K · reading)

Rounds and visits follow power laws in shards and rows, fitted to what was counted: beyond the range of the count they
are a guess.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

BANDWIDTH = 10e9 / 8  # bytes a second, of one machine's network; assumed
LATENCY = 0.5e-3  # seconds of one message; assumed
READING = 1e9  # bytes a second from a machine's own disk; assumed
BRANCHES = 4  # of the tree by which sums are formed
TOL = 1e-3  # the gap of the runs that are fitted: those that did not arrive are left out
BYTES = 8  # of an entry: a value and its index

Cell = dict[str, Any]


@dataclass(frozen=True)
class Law:
    """scale · K^shards · n^rows."""

    scale: float
    shards: float
    rows: float

    @classmethod
    def fitted(cls, by_shards: list[tuple[int, float]], by_rows: list[tuple[int, float]], rows: int) -> "Law":
        """Least squares of the logarithms; ``rows`` is how many rows the runs by shards had.

        That more rows take fewer rounds is seen now and then, and not believed.
        """
        slope, level = np.polyfit(*np.log(np.array(by_shards, float)).T, 1)
        growth = max(np.polyfit(*np.log(np.array(by_rows, float)).T, 1)[0], 0.0)
        return cls(float(np.exp(level) / rows**growth), float(slope), float(growth))

    def __call__(self, shards: float, rows: float) -> float:
        return self.scale * shards**self.shards * rows**self.rows


@dataclass(frozen=True)
class Laws:
    """Of rounds, of visits by workers and at the centre per row, and of bytes that leave for the centre per row."""

    rounds: Law
    visits: Law
    centre_visits: float
    centre_bytes: float

    @classmethod
    def of(cls, by_shards: list[Cell], by_rows: list[Cell]) -> "Laws":
        several = [run for run in by_shards if run["workers"] > 1 and run["relative_gap"] <= TOL]
        by_rows = [run for run in by_rows if run["relative_gap"] <= TOL]
        rows = several[0]["rows"]

        def law(value: Any) -> Law:
            pairs = [(run["workers"], value(run)) for run in several]
            return Law.fitted(pairs, [(run["rows"], value(run)) for run in by_rows], rows)

        largest = several[-1]
        return cls(
            rounds=law(lambda run: run["rounds"] + run["proofs"]),
            visits=law(lambda run: run["worker_visits"] / run["rows"]),
            centre_visits=(largest["visits"] - largest["worker_visits"]) / largest["rows"],
            centre_bytes=largest["parcel_bytes"] / largest["rows"],
        )


@dataclass(frozen=True)
class Constants:
    """What was measured: seconds per stored entry that is visited, and of a round that moves next to nothing."""

    per_entry: float
    per_round: float


@dataclass(frozen=True)
class Projection:
    rounds: float
    broadcast: float
    work: float
    centre: float
    reading: float
    centre_memory: float
    worker_memory: float

    @property
    def seconds(self) -> float:
        return self.broadcast + self.work + self.centre + self.reading

    @property
    def bottleneck(self) -> str:
        parts = {"rounds": self.broadcast, "work": self.work, "centre": self.centre, "reading": self.reading}
        return max(parts, key=lambda name: parts[name])


def project(laws: Laws, constants: Constants, shards: int, rows: float, entries: float, width: float) -> Projection:
    rounds = laws.rounds(shards, rows)
    down = math.ceil(math.log2(shards))
    up = math.ceil(math.log(shards, BRANCHES))
    one = 2 * LATENCY * (down + up) + 8 * width * (down + BRANCHES * up) / BANDWIDTH
    pass_seconds = rows * entries * constants.per_entry
    return Projection(
        rounds=rounds,
        broadcast=rounds * (constants.per_round + one),
        work=laws.visits(shards, rows) * pass_seconds / shards,
        centre=laws.centre_visits * pass_seconds + laws.centre_bytes * rows / BANDWIDTH,
        reading=BYTES * entries * rows / shards / READING,
        centre_memory=laws.centre_bytes * rows,
        worker_memory=BYTES * entries * rows / shards,
    )

"""maxmargin compile [FAMILY ...] [--all] [--jobs N]

Compile ahead of time what the first fit of each kind would compile, on all cores: when an image is built, or before a
test suite runs. Without a name that is what estimators of tables call with their default settings (linear, ranking).

Compiled code is kept beside the package or, where that cannot be written to, in the user's cache folder; the
environment variable NUMBA_CACHE_DIR names another one. It serves one version of Python, Numba and maxmargin and one
kind of CPU: in another environment it is compiled anew. For an image that runs on several kinds of CPU set
NUMBA_CPU_NAME=generic, both here and where it runs: slower loops, but the same everywhere.

examples:
  maxmargin compile
  maxmargin compile linear sequences
  NUMBA_CACHE_DIR=/opt/compiled maxmargin compile --all

exit status: 0 done, 2 wrong usage or no folder to keep compiled code in.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from . import DONE
from .talk import Talk

_ROWS, _FEATURES = 60, 6


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"any of {', '.join(FAMILIES)}")
    parser.add_argument("--all", action="store_true", help="every family, all losses, regularizers and solvers")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes at the same time (default: one per core)")
    group = parser.add_argument_group("output")
    group.add_argument("--quiet", action="store_true", help="say nothing")
    group.add_argument("--json", action="store_true", help="what was done as JSON")
    group.add_argument("--debug", action="store_true", help="show where in the code an error came from")


def run(args: argparse.Namespace, talk: Talk) -> int:
    from joblib import Parallel, delayed

    from ..report import numbers
    from ..validation import one_of

    for family in args.families:
        one_of("FAMILY", family, FAMILIES)
    families = list(FAMILIES) if args.all else args.families or ["linear", "ranking"]
    folder = _folder()
    start = time.perf_counter()
    jobs = [delayed(_compiled)(family, dtype, args.all) for family in families for dtype in ("float64", "float32")]
    workers = Parallel(n_jobs=args.jobs or os.cpu_count() or 1, batch_size=1)
    # Processes that keep the same function at the same moment may lose one entry of its table: the second round,
    # which finds nearly everything, makes up for that.
    n_functions = sum(workers(jobs)) + sum(workers(jobs))
    seconds = time.perf_counter() - start
    talk.result(command="compile", families=families, functions=n_functions, folder=folder, seconds=seconds)
    facts = [("families", ", ".join(families)), ("functions", str(n_functions)), ("kept in", folder)]
    title = "Compiled" if n_functions else "Nothing was left to compile"
    talk.facts(title, [*facts, ("time", numbers.duration(seconds))])
    return DONE


def _folder() -> str:
    """Where Numba keeps what it compiles here."""
    from ..kernels import rows

    folder = rows.dot.stats.cache_path
    if folder is None:
        raise ValueError(
            "There is no folder to keep compiled code in: neither the package's nor the user's cache folder can be "
            "written to. Name one with the environment variable NUMBA_CACHE_DIR."
        )
    return str(os.environ.get("NUMBA_CACHE_DIR") or folder)


def _compiled(family: str, dtype: str, thorough: bool) -> int:
    """Fit small problems of this family, and say how many functions that compiled.

    Dense rows and sparse ones with 32-bit indices are read by the same functions.
    """
    import numpy as np
    from numba.core import event

    from ..constraints.small import none_is_small

    rng = np.random.default_rng(0)
    X = rng.normal(size=(_ROWS, _FEATURES)).astype(dtype)
    kind = np.arange(_ROWS) % 3
    X[:, 0] += kind
    with event.install_recorder("numba:compile") as recorder, warnings.catch_warnings(), none_is_small():
        warnings.simplefilter("ignore")  # of fits that end before their goal
        FAMILIES[family](X, kind, thorough)
    begun = [record for _, record in recorder.buffer if record.is_start]
    return sum(record.data["dispatcher"].py_func.__module__.startswith("maxmargin.") for record in begun)


def _used(estimator: Any, X: Any, y: object, **more: Any) -> None:
    """What a user does with it."""
    estimator.set_params(max_passes=20, random_state=0).fit(X, y, **more)
    estimator.certify(X, y, **more)
    estimator.predict(X)


def _linear(X: Any, kind: Any, thorough: bool) -> None:
    from .. import LinearSVC, LinearSVR, data

    source = data.open(X, labels=kind, chunk_rows=_ROWS // 2)
    LinearSVC(max_passes=20).fit(source).certify(source)
    LinearSVC(max_passes=20).partial_fit(X, kind, classes=(0, 1, 2))
    if thorough:
        _used(LinearSVC(), _with_long_indices(X), kind > 0)
    for y in (kind > 0, kind):
        for estimator in _variants(LinearSVC, thorough, ("hinge", "squared_hinge", "smoothed_hinge")):
            if y is not kind or estimator.loss == "hinge":
                _used(estimator, X, y)
    _used(LinearSVC(multi_class="ovr"), X, kind)
    _newton_steps(X, kind)
    for estimator in _variants(LinearSVR, thorough, ("epsilon_insensitive", "squared_epsilon_insensitive")):
        _used(estimator, X, kind + 0.5)


def _newton_steps(X: Any, kind: Any) -> None:
    """Of so many examples that they are compiled: dense ones and sparse ones."""
    import numpy as np
    import scipy.sparse as sp

    from .. import LinearSVC, LinearSVR
    from ..solvers.interior_rows import COMPILED_FROM

    times = COMPILED_FROM // _ROWS + 1
    many, y = np.tile(X, (times, 1)), np.tile(kind, times)
    few_nonzeros = sp.csr_matrix((many[:, 0], (np.arange(len(y)), y)), shape=(len(y), 10))
    for rows in (many, few_nonzeros):
        LinearSVC(solver="interior_point", max_passes=5).fit(rows, y > 0)
        LinearSVR(solver="interior_point", max_passes=5).fit(rows, y + 0.5)


def _with_long_indices(X: object) -> Any:
    """Sparse rows as they are read where there are more than 2³¹ values."""
    import scipy.sparse as sp

    table = sp.csr_matrix(X)
    table.indices, table.indptr = table.indices.astype("int64"), table.indptr.astype("int64")
    return table


def _variants(estimator: Any, thorough: bool, losses: Sequence[str]) -> Iterator[Any]:
    """Estimators of this class: as they come, and with the settings that lead to other compiled loops."""
    yield estimator()
    yield estimator(solver="dual_coordinate")
    if thorough:
        from ..regularizers import Bounded, GaussianPrior, GroupNorm

        groups = GroupNorm([[i] for i in range(_FEATURES)], 0.1)
        for regularizer in (Bounded(0.0), GaussianPrior(0.0, 2.0), groups):
            yield estimator(regularizer=regularizer)
        for loss in losses[1:]:
            yield estimator(loss=loss, solver="dual_coordinate")


def _ranking(X: Any, kind: object, thorough: bool) -> None:
    from .. import RankingSVM

    for estimator in _variants(RankingSVM, thorough, ("hinge", "squared_hinge")):
        _used(estimator, X, kind, groups=[i // 6 for i in range(_ROWS)])


def _sequences(X: Any, kind: Any, thorough: bool) -> None:
    from .. import SequenceSVM, StructuralSVM
    from ..features import TokenFeatures
    from ..models import SemiMarkov

    ends = range(0, _ROWS, 6)
    sequences, labels = [X[a : a + 6] for a in ends], [kind[a : a + 6] for a in ends]
    words = [[f"word {k}" for k in part] for part in labels]
    for given in (sequences, words):
        _used(SequenceSVM(), given, labels)
    _used(SequenceSVM(features=TokenFeatures()), words, labels)
    _used(SequenceSVM(order=2), sequences, labels)
    segments = [[(0, 3, int(y[0])), (3, 6, int(y[3]))] for y in labels]
    _used(StructuralSVM(SemiMarkov()), sequences, segments)
    if thorough:
        _used(SequenceSVM(solver="cutting_plane", tol=0.1), sequences, labels)
        _used(SequenceSVM(solver="frank_wolfe", tol=0.1), sequences, labels)
    tagger = SequenceSVM(random_state=0).fit(sequences, labels).calibrate(sequences, labels)
    tagger.sequence_proba(sequences)
    tagger.segment_proba(sequences[:1], [[(0, 1, labels[0][0])]])


def _multilabel(X: object, kind: Any, thorough: bool) -> None:
    from .. import MultilabelSVM

    Y = [[k == 0, k == 1, k > 0] for k in kind.tolist()]
    for edges in ("tree", "full") if thorough else ("tree",):
        _used(MultilabelSVM(edges=edges), X, Y)


def _bags(X: Any, kind: object, thorough: bool) -> None:
    from .. import LatentSVC

    bags = [X[a : a + 3] for a in range(0, _ROWS, 3)]
    y = [a % 2 for a in range(len(bags))]
    for bound in ("cccp", "gmm", "gmme") if thorough else ("cccp", "gmm"):
        _used(LatentSVC(bound=bound, max_bounds=3), bags, y)


def _clusters(X: object, kind: object, thorough: bool) -> None:
    from .. import GMMKMeans

    for bound in ("merge", "random", "kmeans", "gmme") if thorough else ("merge",):
        GMMKMeans(3, bound=bound, random_state=0).fit(X).predict(X)


FAMILIES = {
    "linear": _linear,
    "ranking": _ranking,
    "sequences": _sequences,
    "multilabel": _multilabel,
    "bags": _bags,
    "clusters": _clusters,
}

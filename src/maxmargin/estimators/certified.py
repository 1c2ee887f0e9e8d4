"""What all estimators share: checked settings, progress, the certificate and the warning that go with a fit, save."""

from __future__ import annotations

import contextlib
import json
import os
import re
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from .. import persistence
from ..checkpoint import CheckpointFolder
from ..constraints.oracle import is_relaxed
from ..distributed import Transport
from ..notebook import as_html
from ..problem import Certificate, Planes, Problem, Record, Solution
from ..protocols import OracleError, Regularizer, Solver
from ..regularizers import L2
from ..rounding import rounded_down, rounded_up
from ..solvers import best_start, choose
from ..solvers.progress import ProgressLine
from ..validation import shown
from . import inputs
from .fit_callbacks import Callback, users_line
from .inputs import Seed
from .reporting import Reporting
from .settings import check_settings, with_parameters

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # of an object without a repr of its own: another in every process
_MEANS = {
    "tol", "bound_tol", "max_passes", "max_bounds", "max_rounds", "memory", "n_jobs", "device", "random_state",
    "solver", "verbose", "warm_start",
}  # fmt: skip


Folder = str | os.PathLike[str] | None
Workers = str | Transport | None
Shares = np.ndarray | Planes | None
"""Dual variables of a problem, as far as there are any."""
Callbacks = Sequence[Callable[[Record], object]]


@dataclass(frozen=True)
class Run:
    """How a fit is to be run: where to save it and how often, whom to tell, and on which cluster, if on any.

    ``identity`` is what a run that is saved is about; see ``CertifiedEstimator._identified``.
    """

    checkpoint: Folder = None
    every: float = 30.0
    callbacks: Sequence[Callback] = ()
    cluster: Workers = None
    identity: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.checkpoint, str | os.PathLike | None) or self.checkpoint == "":
            raise ValueError(f"checkpoint must be the path of a folder, or None; got {shown(self.checkpoint)}.")


@with_parameters
class SolverParameters:
    """Parameters of all estimators that have a problem solved: what they mean is said in ``LinearSVC``."""

    _: KW_ONLY
    tol: float = 1e-3
    regularizer: Regularizer | None = None
    solver: str | Solver = "auto"
    max_passes: int = 20_000
    memory: int | str | None = None
    n_jobs: int | None = None
    random_state: Seed = None
    warm_start: bool = False
    verbose: int = 0


class CertifiedEstimator(SolverParameters, Reporting, BaseEstimator):
    """Base of all estimators that end with a certificate."""

    C: float
    certificate_: Certificate
    history_: list[Record]
    n_passes_: int
    _alpha: Any
    _fitted_C: float
    _certified: ClassVar[str] = ""
    """What the certificate is about, in a few words, where that is not the training problem itself."""
    _stream: Any = None
    """What is kept between two chunks, while a stream goes on."""

    if not TYPE_CHECKING:  # with it, a type checker would believe in attributes of any name

        def __getattr__(self, name: str) -> Any:
            if name == "certificate_" and self._stream is not None:
                relaxed = is_relaxed(vars(self).get("model_"))
                self.certificate_ = Certificate(self._stream.lower(), np.inf, relaxed=relaxed)
                return self.certificate_
            if name[-1:] == "_" != name[0] and "certificate_" not in vars(self) and not hasattr(type(self), name):
                raise NotFittedError(f"This {type(self).__name__} has no {name} yet: call fit first.")
            return object.__getattribute__(self, name)  # which says what is wrong, or what a property has said

    def _check_settings(self) -> None:
        check_settings(self)
        inputs.check_positive("tol", self.tol)

    def _own_regularizer(self) -> Regularizer:
        """The regularizer that was asked for, l2 by default."""
        return L2() if self.regularizer is None else self.regularizer

    def _chosen_solver(
        self, problem: Problem, threads: int, warm: bool, centre: np.ndarray | None, scratch: str | None = None
    ) -> Solver:
        """The solver that was asked for, fitted to the problem (see ``solvers.Means``)."""
        return choose(
            problem,
            self.solver,
            tol=self.tol,
            seed=self.random_state,
            threads=threads,
            memory=inputs.check_memory(self.memory),
            warm=warm,
            centre=centre,
            scratch=scratch,
        )

    def _progress(self) -> Any:
        """A context whose value is the callbacks for ``solve``: a progress line, or nothing."""
        if not self.verbose:
            return contextlib.nullcontext(())
        return ProgressLine.as_callbacks(type(self).__name__, self.tol)

    def _settings(self) -> dict[str, str]:
        """What the problem depends on: all parameters but those that say how long and with what means to work on it."""
        params = self.get_params(deep=False)
        return {k: _as_text(v) for k, v in params.items() if k not in _MEANS}

    def _identified(self, run: Run, fingerprint: Callable[[], str]) -> Run:
        """The run with its settings and data, as checkpoints know it; data is not looked at where nothing is saved."""
        if run.checkpoint is None:
            return run
        return replace(run, identity={"estimator": type(self).__name__, **self._settings(), "data": fingerprint()})

    @contextlib.contextmanager
    def _saving(self, run: Run, part: str = "") -> Iterator[CheckpointFolder | None]:
        """The folder in which the run, or one part of it, is saved, if there is to be one."""
        if run.checkpoint is None:
            yield None
            return
        every = inputs.check_positive("checkpoint_every", run.every, zero=True)
        with CheckpointFolder(Path(run.checkpoint) / part, run.identity, every) as folder:
            yield folder

    def _begin_like(self, other: CertifiedEstimator) -> None:
        """Take over from another fitted estimator what a warm start goes on from."""
        self._alpha, self._fitted_C = other._alpha, other._fitted_C

    def _shares_of(self, problem: Problem) -> Shares:
        """The last dual variables, if they are dual variables of this problem too."""
        alpha = self._alpha
        try:
            problem.constraints.totals(alpha)
        except (ValueError, IndexError, OracleError):
            return None  # those of other data prove nothing here
        return alpha

    def _rescaled(self, problem: Problem, alpha: Shares) -> Shares:
        """The last dual variables to start from, which may be those of another C.

        Variables at their bound grow with C, those inside hardly do: which kind matters more is tried out.
        """
        ratio = float(self.C) / self._fitted_C
        return alpha if alpha is None or ratio == 1.0 else best_start(problem, [alpha, ratio * alpha])

    def _store(self, solutions: list[Solution], alpha: Shares) -> None:
        """Attributes that every fit leaves behind."""
        self._alpha = alpha
        self._fitted_C = float(self.C)
        self.__dict__.pop("_stream", None)
        self.certificate_ = total([s.certificate for s in solutions])
        self.history_ = [record for s in solutions for record in s.history]
        self.n_passes_ = max(len(s.history) for s in solutions)

    def _warn_unfinished(self, solutions: list[Solution]) -> None:
        """A warning where the goal was missed."""
        unfinished = [s for s in solutions if not (s.converged or (s.stuck and s.objective == 0.0))]  # nothing to gain
        interrupted = any(s.interrupted for s in solutions)
        # Several problems side by side reach the goal together, even if one of them alone does not.
        if not unfinished or (self.certificate_.relative_gap <= self.tol and not interrupted):
            return
        gap = f"a relative gap of {self.certificate_.relative_gap:.1e} (goal {self.tol:.1e})"
        if self.certificate_.exact and not np.isfinite(self.certificate_.upper):
            gap = "no certified gap, which its solver does not aim at"
        reason, advice = f"was told to stop, at {gap}", "."
        if interrupted:
            reason = f"was interrupted, at {gap}"
        elif any(len(s.history) >= self.max_passes and not s.stuck for s in unfinished):
            reason = f"stopped after max_passes={self.max_passes} passes, at {gap}"
            advice = "; raise max_passes, or scale the features to a similar range."
        elif any(s.stuck for s in unfinished):
            reason = f"came to the limit of double precision, which cannot prove more than {gap} here"
            advice = "; more passes would not help, but features scaled to a similar range may."
        warnings.warn(
            f"{type(self).__name__} {reason}. The weights are the best found and the certificate is true{advice}",
            ConvergenceWarning,
            stacklevel=users_line(),
        )

    def _check_trained(self) -> None:
        """Weights that came from elsewhere have no dual variables."""
        check_is_fitted(self)
        if not hasattr(self, "certificate_"):
            raise NotFittedError(
                f"This {type(self).__name__} has weights that were set from outside, and was never fitted: there are "
                "no dual variables to prove anything with. Call fit; weights from elsewhere are judged by "
                "maxmargin.certify(problem, w, alpha)."
            )

    def _compared(self, found: Certificate) -> Certificate:
        """Warn where dual variables were not those of the rows given. A stream keeps too few of them to tell."""
        before = self.certificate_
        if before.exact and not np.isfinite(before.upper):
            return found
        same = abs(found.lower - before.lower) <= 1e-3 * abs(before.lower)
        proved = found.exact and found.relative_gap <= 2.0 * max(before.relative_gap, self.tol)
        if not same and not proved:
            warnings.warn(
                "These are not the rows of fit, in its order and with its labels, weights and settings: the lower "
                f"bound is {found.lower:.4g} here, fit had proved {before.lower:.4g}. Each row has dual variables of "
                "its own, so on other rows only what holds for any of them is proved. Give certify what fit was given.",
                UserWarning,
                stacklevel=users_line(),
            )
        return found

    def _repr_html_inner(self) -> str:
        """scikit-learn's diagram, as notebooks show it, and the certificate below."""
        return super()._repr_html_inner() + self._certificate_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._certificate_html()
        return bundle

    def _certificate_html(self) -> str:
        certificate = getattr(self, "certificate_", None)
        return "" if certificate is None else as_html(certificate, self._certified)

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to one file (safetensors); ``maxmargin.load`` reads it back."""
        self._check_trained()
        persistence.save(self, path)


def _as_text(value: object) -> str:
    """A setting as text that differs where the setting does: arrays, which text cuts short, have a checksum besides."""
    text = _ADDRESS.sub("", repr(value))
    arrays: dict[str, np.ndarray] = {}
    try:
        content = persistence.encode(value, "", arrays)
    except ValueError:  # an object of the user's, known by its text alone
        return text
    if not isinstance(content, dict) or "pairs" in content:
        return text
    found = zlib.crc32(json.dumps(content).encode())
    for array in arrays.values():
        found = zlib.crc32(np.ascontiguousarray(array).tobytes(), found)
    return f"{text} ({found:08x})"


def total(certificates: list[Certificate]) -> Certificate:
    """Independent problems solved side by side are one problem: their bounds add up."""
    return Certificate(
        lower=rounded_down(*(c.lower for c in certificates)),
        upper=rounded_up(*(c.upper for c in certificates)),
        exact=all(c.exact for c in certificates),
        relaxation=rounded_up(*(c.relaxation for c in certificates)),
        relaxed=any(c.relaxed for c in certificates),
    )

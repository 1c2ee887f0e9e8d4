"""A callback that writes fits down as runs of MLflow."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .. import __version__
from .fit_log import FitLog, certificate_of, conclusion, needed

_SECONDS = 1.0  # between two deliveries: a server takes longer to hear of a short pass than the pass takes
_MANY = 500  # numbers to deliver at once; MLflow takes 1000
_LONG = 500  # characters of a parameter


class MLflow:
    """Write fits down as runs of MLflow: parameters, every pass, the certificate, the model file and the report.

    Where and in which experiment is what MLflow has been told, as always (``mlflow.set_tracking_uri``,
    ``mlflow.set_experiment``, or their environment variables). Every fit gets a run of its own, below the active run
    if there is one, so that the fits of a grid search stay together.

    Parameters
    ----------
    run_name : str or None
    run_id : str or None
        Write into this run instead, which is left open: ``MLflow(run_id=run.info.run_id)``. Good for one fit, because a
        run has only one value for every parameter.
    tags : dict or None
    model : bool
        Keep the model file, ``model.mm``, which ``maxmargin.load`` reads.
    report : bool
        Keep the report, ``report.html``.

    Attributes
    ----------
    run_ids : list of str
        The runs that fits of this process have made, the last one last.

    Notes
    -----
    Needs mlflow or mlflow-skinny: ``pip install 'maxmargin[mlflow]'``. Infinite numbers, such as the upper bound of a
    pass that did not compute one, are left out. If a run cannot be made, ``fit`` fails at once; if writing fails later,
    there is a warning and the fit goes on.
    """

    def __init__(
        self,
        *,
        run_name: str | None = None,
        run_id: str | None = None,
        tags: dict[str, str] | None = None,
        model: bool = True,
        report: bool = True,
    ) -> None:
        needed("mlflow", "mlflow", "A log in MLflow")
        self.run_name = run_name
        self.run_id = run_id
        self.tags = tags
        self.model = model
        self.report = report
        self.run_ids: list[str] = []

    def begin(self, estimator: object) -> FitLog:
        """A log for one fit."""
        mlflow = needed("mlflow", "mlflow", "A log in MLflow")
        if self.run_id is not None:
            self.run_ids.append(self.run_id)
            return _Run(self.run_id, estimator, own=False, model=self.model, report=self.report)
        name = self.run_name or type(estimator).__name__
        with mlflow.start_run(run_name=name, nested=True, tags=self.tags) as run:  # one that fails here is marked so
            log = _Run(str(run.info.run_id), estimator, own=True, model=self.model, report=self.report)
        log.reopen()
        self.run_ids.append(log.run_id)
        return log


class _Run(FitLog):
    tool = "MLflow"

    def __init__(self, run_id: str, estimator: Any, *, own: bool, model: bool, report: bool) -> None:
        super().__init__()
        mlflow = needed("mlflow", "mlflow", "A log in MLflow")
        self._entities = mlflow.entities
        self._client = mlflow.MlflowClient()
        self.run_id, self._own, self._model, self._report = run_id, own, model, report
        self._waiting: list[Any] = []
        self._delivered = time.monotonic()
        given = estimator.get_params(deep=False).items()
        params = [self._entities.Param(name, str(value)[:_LONG]) for name, value in given]
        facts = {"maxmargin.estimator": type(estimator).__name__, "maxmargin.version": __version__}
        tags = [self._entities.RunTag(name, value) for name, value in facts.items()]
        self._client.log_batch(run_id, params=params, tags=tags)

    def reopen(self) -> None:
        """The run is no longer the active one of this thread, which may fit others meanwhile, but it goes on."""
        self._client.update_run(self.run_id, status="RUNNING")

    def log(self, numbers: dict[str, float], step: int) -> None:
        now = int(time.time() * 1000)
        self._waiting += [self._entities.Metric(name, value, now, step) for name, value in numbers.items()]
        if len(self._waiting) >= _MANY or time.monotonic() - self._delivered > _SECONDS:
            self._deliver()

    def _deliver(self) -> None:
        if self._waiting:
            self._client.log_batch(self.run_id, metrics=self._waiting)
        self._waiting, self._delivered = [], time.monotonic()

    def finish(self, estimator: Any, error: BaseException | None) -> None:
        if error is not None:
            self._deliver()
            self._client.set_tag(self.run_id, "maxmargin.error", f"{type(error).__name__}: {error}"[:_LONG])
            return
        self.log(conclusion(estimator), self._step)
        self._deliver()
        certificate = certificate_of(estimator)
        if certificate is not None:
            self._client.set_tag(self.run_id, "maxmargin.certificate", repr(certificate))
        with TemporaryDirectory() as folder:
            if self._model:
                self._keep(Path(folder) / "model.mm", estimator.save)
            if self._report:
                from ..report import write

                self._keep(Path(folder) / "report.html", lambda path: write(path, estimator))

    def _keep(self, path: Path, make: Callable[[Path], object]) -> None:
        """Keep a file with the run, if it can be made: models of users' own cannot be saved."""
        try:
            make(path)
        except Exception as error:
            self.warn(f"MLflow keeps no {path.name} of this fit: {error}")
            return
        self._client.log_artifact(self.run_id, str(path))

    def close(self, error: BaseException | None) -> None:
        if self._own:
            killed = isinstance(error, KeyboardInterrupt)
            status = "FINISHED" if error is None else "KILLED" if killed else "FAILED"
            self._client.set_terminated(self.run_id, status)

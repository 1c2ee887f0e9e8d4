"""A callback that writes fits down for TensorBoard."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

from .. import __version__
from .fit_log import FitLog, certificate_of, conclusion, needed


class TensorBoard:
    """Write fits for TensorBoard, one sub-folder each: bounds, gap, seconds, searches and cache size of every pass.

    Parameters
    ----------
    folder : path
        Where the sub-folders go, named after the estimator: ``LinearSVC``, ``LinearSVC-2``, … Look at them with
        ``tensorboard --logdir folder``.
    name : str or None
        Another name than the estimator's.

    Notes
    -----
    Needs tensorboardX: ``pip install 'maxmargin[tensorboard]'``. Infinite numbers, such as the upper bound of a pass
    that did not compute one, are left out. If the folder cannot be made, ``fit`` fails at once; if writing fails later,
    there is a warning and the fit goes on.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import LinearSVC
    >>> from maxmargin.callbacks import TensorBoard
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     svm = LinearSVC(random_state=0).fit(*load_iris(return_X_y=True), callbacks=[TensorBoard(folder)])
    ...     print([path.name for path in Path(folder).iterdir()])
    ['LinearSVC']
    """

    folder: Path

    def __init__(self, folder: str | Path, *, name: str | None = None) -> None:
        needed("tensorboardX", "tensorboard", "A log for TensorBoard")
        self.folder = Path(folder)
        self.name = name

    def begin(self, estimator: object) -> FitLog:
        """A log for one fit, in a sub-folder of its own."""
        return _Events(self._new_folder(self.name or type(estimator).__name__), estimator)

    def _new_folder(self, name: str) -> Path:
        for number in count(1):
            path = self.folder / (name if number == 1 else f"{name}-{number}")
            try:
                path.mkdir(parents=True)
                return path
            except FileExistsError:  # perhaps made by another process a moment ago
                if not path.is_dir():
                    raise
        raise AssertionError


class _Events(FitLog):
    tool = "TensorBoard"

    def __init__(self, folder: Path, estimator: Any) -> None:
        super().__init__()
        tensorboardX = needed("tensorboardX", "tensorboard", "A log for TensorBoard")
        self._writer = tensorboardX.SummaryWriter(str(folder), flush_secs=5)
        settings = "\n".join(f"| {name} | {value!r} |" for name, value in estimator.get_params(deep=False).items())
        self._writer.add_text("parameters", f"| {type(estimator).__name__} | {__version__} |\n|---|---|\n{settings}")

    def log(self, numbers: dict[str, float], step: int) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)

    def finish(self, estimator: object, error: BaseException | None) -> None:
        if error is not None:
            self._writer.add_text("error", f"{type(error).__name__}: {error}")
            return
        for name, value in conclusion(estimator).items():
            self._writer.add_scalar(name, value, self._step)
        self._writer.add_text("certificate", repr(certificate_of(estimator)))

    def close(self, error: BaseException | None) -> None:
        self._writer.close()

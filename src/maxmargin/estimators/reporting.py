"""``report``: a page about a fitted estimator, for all of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from .settings import with_known_settings

if TYPE_CHECKING:
    from ..report.content import Data, ReportContent


class Reporting:
    """Base of all estimators that can tell what they have learned. Subclasses say what their content is."""

    _compared_with_labels = True
    """Whether a page on data needs labels."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = with_known_settings(vars(cls)["__init__"])  # type: ignore[method-assign]

    def report(
        self, path: Any, X: object = None, y: Any = None, *, title: str | None = None, name: str | None = None
    ) -> Path:
        """Write a page about this model: one HTML file that loads nothing, to look at and to pass on.

        It shows what is proved about the fit, how training got there, what was learned and, where data is given, how
        well answers fit labels and where they do not.

        Parameters
        ----------
        path : path
            The file to write; what was there before is replaced once all is written.
        X, y : data as for ``fit``, or None
            What to compare answers with, preferably data that the model has not seen. X may be a source of both.
        title : str or None
            What to write on top.
        name : str or None
            What to call the data, such as "the test set".

        Returns
        -------
        Path
            The file.
        """
        return self._write_report(path, X, y, None, title, name)

    def _write_report(
        self, path: object, X: object, y: object, groups: object, title: str | None, name: str | None
    ) -> Path:
        from ..report import write
        from ..report.content import Data
        from ..report.page import check_path

        check_is_fitted(self)
        target = check_path(path)
        data = Data(X, y, groups, name or "this data")
        if y is not None and not data.given:
            raise ValueError("X is missing: there are labels, but nothing that has them. Give both, or neither.")
        if y is not None and data.is_source:
            raise ValueError("A source has its labels within it: leave y out.")
        if y is None and data.given and not data.is_source and self._compared_with_labels:
            raise ValueError("y is missing: a report compares answers with labels. Give both X and y, or neither.")
        write(target, self, data, {"title": title})
        return target

    def _report_content(self, data: Data) -> ReportContent:
        """What a page shows of this estimator, and of its answers to the data."""
        raise NotImplementedError

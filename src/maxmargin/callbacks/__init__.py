"""Callbacks that write fits down in other tools: every pass while it trains, and the certificate when it is done.

A callback for ``fit(callbacks=[...])`` is any function of one record. One with a method ``begin`` is asked for a new
callback at the start of every fit, ``begin(estimator)``, so that one object serves a whole grid search, also in several
threads or processes. If what it returns has a method ``end``, that is called as ``end(estimator, error)`` when the fit
is over, with the exception that ended it or None. If it has a method ``judge``, that is called in place of it where one
convex problem is solved, as ``judge(record, fitted)``; ``fitted()`` is the estimator with the weights of this pass.
That is all there is to writing another.
"""

from .development import DevelopmentScore
from .mlflow_runs import MLflow
from .tensorboard_files import TensorBoard

__all__ = ["DevelopmentScore", "MLflow", "TensorBoard"]

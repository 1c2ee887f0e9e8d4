"""Fits of tests that need few bounds or passes: nothing is said where these were not enough."""

import warnings

from sklearn.exceptions import ConvergenceWarning


def quiet(estimator, *args, **kwargs):
    """Fit, whether it converges or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(*args, **kwargs)

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import LinearSVC, LinearSVR, RankingSVM

# Some checks compare predictions of two fits to 1e-7, far below what the default tol=1e-3 promises.
TOL = 1e-13
ESTIMATORS = [LinearSVC(tol=TOL), LinearSVR(tol=TOL), RankingSVM(tol=TOL)]


# Features far from zero with 5000 passes at most: some fits end short of that goal, which is no failure.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)

from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import LinearSVC, LinearSVR, RankingSVM

# Some checks compare predictions of two fits to 1e-7, far below what the default tol=1e-3 promises.
TOL = 1e-13
ESTIMATORS = [LinearSVC(tol=TOL), LinearSVR(tol=TOL), RankingSVM(tol=TOL)]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)

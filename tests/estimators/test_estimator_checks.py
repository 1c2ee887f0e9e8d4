import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import GMMKMeans, LinearSVC, LinearSVR, RankingSVM

# Some checks compare predictions of two fits to 1e-7, far below what the default tol=1e-3 promises.
TOL = 1e-13
ESTIMATORS = [LinearSVC(tol=TOL), LinearSVR(tol=TOL), RankingSVM(tol=TOL), GMMKMeans(n_clusters=3)]


def _expected_to_fail(estimator):
    if isinstance(estimator, GMMKMeans):
        name = "check_sample_weight_equivalence_on_dense_data"
        return {name: "a start and a walk that are drawn from other numbers of rows are other ones, as with KMeans"}
    return {}


# Features far from zero with 5000 passes at most: some fits end short of that goal, which is no failure.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=_expected_to_fail)
def test_scikit_learn_check(estimator, check):
    check(estimator)

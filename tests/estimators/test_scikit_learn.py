"""The checks that scikit-learn has for estimators: all of them, as they are."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from interdomain.estimators import GPClassifier, GPRegressor

# There is no time to compare models, so that each fit trains one: the first that suits the rows.
ESTIMATORS = GPRegressor(seconds=1e-9, progress=False), GPClassifier(seconds=1e-9, progress=False)


@pytest.mark.slow
@parametrize_with_checks(ESTIMATORS)
def test_check(estimator: Any, check: Any) -> None:
    check(estimator)

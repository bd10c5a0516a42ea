"""The benchmark of the estimators with scikit-learn's interface."""

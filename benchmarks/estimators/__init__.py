"""The benchmark of the estimators in scikit-learn's interface."""

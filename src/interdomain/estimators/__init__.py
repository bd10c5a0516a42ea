"""Estimators that choose a model for a data set, and comparisons of models.

``GPRegressor`` and ``GPClassifier`` have the interface of scikit-learn and need it:
``pip install "interdomain[estimators]"``. ``race`` compares models on one clock, and ``recommend``
compares the models that suit a data set.

The package is imported on demand, and uses only public names of the library.
"""

import importlib
from typing import TYPE_CHECKING, Any

from .race import race
from .recommend import recommend

if TYPE_CHECKING:
    from .classifier import GPClassifier
    from .regressor import GPRegressor

_ON_DEMAND = {"GPClassifier": "classifier", "GPRegressor": "regressor"}


def __getattr__(name: str) -> Any:
    """The estimator of this name, imported on demand because it needs scikit-learn."""
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f".{_ON_DEMAND[name]}", __name__), name)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{name} needs scikit-learn, which is not installed; run pip install "
            '"interdomain[estimators]".'
        ) from error


__all__ = ["GPClassifier", "GPRegressor", "race", "recommend"]

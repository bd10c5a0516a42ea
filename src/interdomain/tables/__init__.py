"""Additive models of tables: kernel, features, a fit in one call, and a report of effects.

The package is imported on demand. It takes features and models by their public names, and base
classes and checks from ``core``, ``linalg`` and ``sums``.
"""

from .columns import CategoricalColumn, NumericColumn
from .effects import effects
from .features import AdditiveFeatures
from .fitting import fit_additive
from .groups import GroupFeatures, GroupIntercepts
from .kernel import Additive
from .scaler import TableScaler

__all__ = [
    "Additive",
    "AdditiveFeatures",
    "CategoricalColumn",
    "GroupFeatures",
    "GroupIntercepts",
    "NumericColumn",
    "TableScaler",
    "effects",
    "fit_additive",
]

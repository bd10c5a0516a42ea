"""Sums of effects of a table's columns: kernel, features, a fit in one call, and its effects.

An annex: imported on demand, it takes other kernels, features and models by their public names.
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

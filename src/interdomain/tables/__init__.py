"""Sums of effects of a table's columns: kernel, features, a fit in one call, and its effects.

An annex: imported on demand, it uses the library by its public names alone.
"""

from .columns import CategoricalColumn, NumericColumn
from .effects import Effects, effects
from .features import AdditiveFeatures
from .fitting import AdditiveFit, fit_additive
from .kernel import Additive
from .pairs import RankedPair
from .pictures import plot_effect, plot_effects, plot_shares

__all__ = [
    "Additive",
    "AdditiveFeatures",
    "AdditiveFit",
    "CategoricalColumn",
    "Effects",
    "NumericColumn",
    "RankedPair",
    "effects",
    "fit_additive",
    "plot_effect",
    "plot_effects",
    "plot_shares",
]

"""Sums of effects of a table's columns: main effects and interactions, each orthogonal to all
others.

For tables of which one wants to know what each column does.
:class:`interdomain.inducing_variables.AdditiveFeatures` are made for them.
"""

from .additive import Additive
from .columns import CategoricalColumn, Column, NumericColumn

__all__ = ["Additive", "CategoricalColumn", "Column", "NumericColumn"]

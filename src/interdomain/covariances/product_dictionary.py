"""The dictionary of products of orthogonal features: any of them may be taken."""

from __future__ import annotations

import numpy as np
from gpflow.kernels import Product

from ..inducing_variables import ProductInducingVariables
from ..inducing_variables.products import by_variance, feature_variances
from ..sphere._typing import Array, IntArray
from .dictionaries import Dictionary, dictionary
from .pairs import Block


class ProductDictionary(Dictionary):
    """All products of the features that the factors have: an atom is a row of ``members``.

    The factors' features stay as they are; of these, the products are chosen.
    """

    def __init__(self, features: ProductInducingVariables, kernel: Product) -> None:
        self._features, self._kernel = features, kernel

    @property
    def atoms(self) -> IntArray:
        return self._features.members

    def arranged(self, X: Array) -> Dictionary:
        return self

    def likeliest(self, X: Array, count: int) -> IntArray:
        """By the variance over the factors' domains, the same for all rows."""
        pairs = self._features.pairs(self._kernel)
        variances = [np.asarray(feature_variances(*pair), np.float64) for pair in pairs]
        members, _ = by_variance(variances, count)
        return members

    def neighbours(self, atoms: IntArray, limit: int | None = None) -> IntArray:
        """With the next or the last feature of one of the factors."""
        sizes = [int(factor.num_inducing) for factor in self._features.inducing_variables]
        steps = np.eye(len(sizes), dtype=np.int64)
        around = (atoms[:, None] + np.concatenate([steps, -steps])).reshape([-1, len(sizes)])
        around = around[np.all((around >= 0) & (around < sizes), axis=1)]
        seen = set(map(tuple, atoms.tolist()))
        found = [row for row in dict.fromkeys(map(tuple, around.tolist())) if row not in seen]
        return np.array(found, np.int64).reshape([len(found), len(sizes)])[:limit]

    def block(self, atoms: IntArray, *, alone: bool = False) -> Block:
        features = ProductInducingVariables(self._features.inducing_variables, atoms)
        return features, self._kernel

    def owners(self, atoms: IntArray, *, alone: bool = False) -> IntArray:
        return np.arange(len(atoms))


@dictionary.register(ProductInducingVariables, Product)
def dictionary_products(features: ProductInducingVariables, kernel: Product) -> Dictionary | None:
    """Rows of members, if the Kuu of all factors are diagonal."""
    if any(feature_variances(*pair) is None for pair in features.pairs(kernel)):
        return None
    return ProductDictionary(features, kernel)

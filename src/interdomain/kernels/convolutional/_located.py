"""The kernel of a function of a patch and of its place."""

from __future__ import annotations

from itertools import product

import gpflow
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType
from gpflow.kernels import Kernel

from ..._tracing import unconverted
from ...linalg.radial_terms import RadialTerm, product_of_terms
from .._radial_forms import HasRadialTerms, radial_terms


class LocatedKernel(HasRadialTerms, gpflow.kernels.Kernel):
    """``k(patch, patch') k_loc(place, place')``, for rows of a patch and then its place.

    :param base_kernel: The kernel on patches.
    :param location_kernel: The kernel on places.
    :param patch_size: The number of columns of a patch.
    """

    def __init__(self, base_kernel: Kernel, location_kernel: Kernel, patch_size: int) -> None:
        super().__init__()
        self.base_kernel = base_kernel
        self.location_kernel = location_kernel
        self.patch_size = patch_size

    @inherit_check_shapes
    @unconverted
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        (patch, place), (patch2, place2) = self._split(X), self._split(X2)
        return self.base_kernel(patch, patch2) * self.location_kernel(place, place2)

    @inherit_check_shapes
    @unconverted
    def K_diag(self, X: TensorType) -> tf.Tensor:
        patch, place = self._split(X)
        return self.base_kernel(patch, full_cov=False) * self.location_kernel(place, full_cov=False)

    def radial_terms(self) -> list[RadialTerm] | None:
        """Of the product of squared exponentials, which is one of both inputs together."""
        factors = radial_terms(self.base_kernel), radial_terms(self.location_kernel)
        if factors[0] is None or factors[1] is None:
            return None
        products = []
        for first, second in product(factors[0], factors[1]):
            term = product_of_terms(first, second, self._split)
            if term is None:
                return None
            products.append(term)
        return products

    def _split(self, X: TensorType | None) -> tuple[tf.Tensor | None, tf.Tensor | None]:
        if X is None:
            return None, None
        return X[..., : self.patch_size], X[..., self.patch_size :]

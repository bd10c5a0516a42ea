"""Kernels with their features, as tests of many folders build them."""

from typing import Any

import gpflow

from interdomain.inducing_variables import BoxFourierFeatures, SphericalHarmonics
from interdomain.kernels import FiniteRank, Periodized

Parts = tuple[Any, Any]


def frozen(*modules: Any) -> Any:
    """The modules, of which nothing is trained any more."""
    gpflow.set_trainable(modules, False)
    return modules


def with_harmonics(kernel: Any, degree: int, num_columns: int = 2, *, fixed: bool = False) -> Parts:
    """All harmonics up to a degree; ``fixed``, nothing that they depend on is trained."""
    if fixed:
        frozen(kernel.weight_variances, kernel.bias_variance)
    return kernel, SphericalHarmonics.for_kernel(kernel, num_columns, degree)


def with_waves(base: Any, X: Any, num_features: int, **box: Any) -> Parts:
    """The kernel made periodic on a box around the rows, and its waves."""
    kernel = Periodized.from_data(base, X, **box)
    return kernel, BoxFourierFeatures.for_kernel(kernel, num_features)


def finite_rank(kernel: Any, features: Any) -> Parts:
    """A prior that ends with its features."""
    return FiniteRank(kernel, features), features

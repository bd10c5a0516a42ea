"""Functionals of priors whose functions are weighted sums of known functions."""

from __future__ import annotations

from typing import Any

import gpflow
import tensorflow as tf
from gpflow.kernels import Constant, Linear, Polynomial

from .acting import acted_features
from .columns import select_columns
from .finite_rank import FiniteRank
from .functionals import LinearFunctional, Places
from .pairs import Kuu_operator
from .product_rule import columns_seen


def is_linear(kernel: Any) -> bool:
    """Whether f is a weighted sum of known functions, on which functionals act."""
    is_sum = isinstance(kernel, (FiniteRank, Constant, Linear))
    return is_sum and not isinstance(kernel, Polynomial)


def linear_features(kernel: Any, functional: LinearFunctional, places: Places) -> tf.Tensor:
    """The functional of functions whose weights have unit variances, ``[M, n]``."""
    if isinstance(kernel, FiniteRank):
        features = acted_features(kernel.inducing_variable, kernel, functional, places)
        jitter = gpflow.config.default_jitter()
        return Kuu_operator(kernel.inducing_variable, kernel, jitter=jitter).root().solve(features)
    if isinstance(kernel, Constant):
        return tf.transpose(functional.of_ones(places)) * tf.sqrt(kernel.variance)
    size = len(columns_seen(kernel, places.inputs))
    slopes = functional.act(lambda X: select_columns(kernel, X), places, size)
    return tf.transpose(slopes * tf.sqrt(kernel.variance))

"""Covariances between linear functionals of f, under a prior that is not of finite rank."""

from __future__ import annotations

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels import Kernel

from .functional_rows import FunctionalRows


def covariances(
    prior: Kernel, rows: FunctionalRows, X: TensorType, X2: TensorType | None
) -> tf.Tensor:
    """The covariances of rows ``[..., N, D]`` with X2, or with each other.

    :raises ValueError: If the prior does not support the functionals.
    """
    raise NotImplementedError


def variances(prior: Kernel, rows: FunctionalRows, X: TensorType) -> tf.Tensor:
    """The variances of rows, ``[..., N]``; for the errors see :func:`covariances`."""
    raise NotImplementedError

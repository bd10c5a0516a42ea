"""Activation features never explain more than there is: no negative variance, whatever Z is."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.config import default_jitter
from gpflow.covariances import Kuf, Kuu
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from interdomain.inducing_variables import ActivationFeatures
from interdomain.kernels import (
    ArcCosine,
    ChordalSquaredExponential,
    SphericalMatern12,
    SphericalMatern52,
    ZonalKernel,
)
from interdomain.sphere import CustomActivation

KERNELS: dict[str, Any] = {
    "arc-cosine-0": lambda **a: ArcCosine(0, **a),
    "arc-cosine-1": lambda **a: ArcCosine(1, **a),
    "arc-cosine-2": lambda **a: ArcCosine(2, **a),
    "matern12": SphericalMatern12,
    "matern52": SphericalMatern52,
    "chordal": ChordalSquaredExponential,
}
# Whatever its coefficients are: those of the named smooth ones take most of the time.
ACTIVATIONS: dict[str, Any] = {
    "relu": "relu",
    "smooth": tf.exp,
    "own": CustomActivation(lambda t: abs(t - 0.3), [0.3]),
}


def build(
    kernel: str, activation: str, dimension: int, max_degree: int, num_units: int, seed: int
) -> tuple[ZonalKernel, ActivationFeatures, np.ndarray]:
    """A random kernel, random units, and points: random ones and some at the units' directions."""
    rng = np.random.default_rng(seed)
    arguments = {
        "variance": rng.uniform(0.5, 2.0),
        "weight_variances": rng.uniform(0.3, 3.0, dimension - 1),
        "bias_variance": rng.uniform(0.3, 3.0),
    }
    zonal = KERNELS[kernel](**arguments)
    if hasattr(zonal, "lengthscale"):
        zonal.lengthscale.assign(rng.uniform(0.3, 1.5))
    Z = rng.normal(size=(num_units, dimension))
    Z[:, -1] = np.abs(Z[:, -1]) + 0.1  # where data are: the bias is positive
    units = ActivationFeatures(Z, ACTIVATIONS[activation], max_degree)
    ratio = np.sqrt(arguments["bias_variance"] / arguments["weight_variances"])
    at_units = Z[:15, :-1] / Z[:15, -1:] * ratio
    X = np.concatenate([at_units, rng.normal(size=(15, dimension - 1))])
    return zonal, units, X.astype(gpflow.default_float())


def possible(*arguments: Any) -> tuple[ZonalKernel, ActivationFeatures, np.ndarray]:
    """Skips what has more units than harmonics, an error that is tested elsewhere."""
    try:
        kernel, units, X = build(*arguments)
        units.degrees(kernel)
    except ValueError as error:
        assert "rows, but the degrees up to" in str(error)
        assume(False)
    return kernel, units, X


def unexplained(units: ActivationFeatures, kernel: ZonalKernel, X: np.ndarray) -> np.ndarray:
    """``Kff - Kfu (Kuu + jitter)^{-1} Kuf``, in units of the standard deviations: not clipped."""
    root = tf.linalg.cholesky(Kuu(units, kernel, jitter=default_jitter()))
    whitened = tf.linalg.triangular_solve(root, Kuf(units, kernel, X))
    prior = kernel(X)
    deviations = tf.sqrt(tf.linalg.diag_part(prior)).numpy()
    residual = prior - tf.matmul(whitened, whitened, transpose_a=True)
    return residual.numpy() / np.multiply.outer(deviations, deviations)


# 30 points: rounding moves an eigenvalue of a matrix with trace <= 30 by some multiples of 30 eps,
# 7e-15 or 4e-6, and the solve with Kuu adds up to eps times its condition number, which the jitter,
# relative to Kuu, bounds by 30 / jitter: 7e-9 and 0.02. Both are very rarely approached.
DOUBLE, SINGLE = (np.float64, 1e-6, 1e-10), (np.float32, 1e-4, 2e-3)
"""Type, jitter, tolerance."""


@given(
    precision=st.sampled_from([DOUBLE, SINGLE]),
    kernel=st.sampled_from(sorted(KERNELS)),
    activation=st.sampled_from(sorted(ACTIVATIONS)),
    dimension=st.sampled_from([2, 3, 5, 9, 20]),
    max_degree=st.sampled_from([1, 6, 30]),
    num_units=st.integers(1, 30),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=8, deadline=None, derandomize=True, database=None)
def test_variances_are_not_negative(
    precision: tuple[type, float, float],
    kernel: str,
    activation: str,
    dimension: int,
    max_degree: int,
    num_units: int,
    seed: int,
) -> None:
    dtype, jitter, tolerance = precision
    with gpflow.config.as_context(gpflow.config.Config(float=dtype, jitter=jitter)):
        zonal, units, X = possible(kernel, activation, dimension, max_degree, num_units, seed)
        smallest = np.linalg.eigvalsh(unexplained(units, zonal, X)).min()
        assert smallest > -tolerance

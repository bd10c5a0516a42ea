"""Covariances between two sets of inducing variables on the sphere: Tiao et al. 2023, App. A."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from ...core.covariances import Kvu, Kvu_shapes
from .activation_features import ActivationFeatures
from .harmonics import SphericalHarmonics
from .kernel import ZonalKernel


@Kvu.register(SphericalHarmonics, SphericalHarmonics, ZonalKernel)
@Kvu_shapes
def Kvu_harmonics_harmonics(
    iv_v: SphericalHarmonics, iv_u: SphericalHarmonics, kernel: ZonalKernel
) -> tf.Tensor:
    """The covariance ``1 / (variance lambda_l)`` of equal harmonics, zero elsewhere (eq. 39)."""
    iv_v.check_same_sphere(iv_u)
    if iv_v.column_order != iv_u.column_order:
        raise ValueError(
            f"iv_v, iv_u: column_order must be the same for both, found {iv_v.column_order} and "
            f"{iv_u.column_order}, whose harmonics are not orthogonal; build one with the "
            "column_order of the other."
        )
    columns = {chain: column for column, chain in enumerate(map(tuple, iv_u.chains.tolist()))}
    places = [columns.get(chain, -1) for chain in map(tuple, iv_v.chains.tolist())]
    diagonal = iv_v.diagonal(kernel)
    return diagonal[:, None] * tf.one_hot(places, iv_u.num_inducing, dtype=diagonal.dtype)


@Kvu.register(ActivationFeatures, SphericalHarmonics, ZonalKernel)
@Kvu_shapes
def Kvu_activations_harmonics(
    iv_v: ActivationFeatures, iv_u: SphericalHarmonics, kernel: ZonalKernel
) -> tf.Tensor:
    """The covariances ``a_l Y_m(w) / (variance lambda_l)``; a_l are coefficients (eq. 42)."""
    iv_v.check_same_sphere(iv_u)
    coefficients = iv_v.activation.coefficients(iv_v.dimension, iv_u.degrees)
    coefficients = coefficients * np.isin(iv_u.degrees, iv_v.degrees(kernel))
    diagonal = iv_u.diagonal(kernel)
    rows = tf.constant(coefficients[iv_u.level_of_each], diagonal.dtype) * diagonal
    return tf.linalg.matrix_transpose(rows[:, None] * iv_u.at(iv_v.directions))


@Kvu.register(SphericalHarmonics, ActivationFeatures, ZonalKernel)
@Kvu_shapes
def Kvu_harmonics_activations(
    iv_v: SphericalHarmonics, iv_u: ActivationFeatures, kernel: ZonalKernel
) -> tf.Tensor:
    """The transposed covariances of activation features and harmonics (eq. 49)."""
    return tf.linalg.matrix_transpose(Kvu_activations_harmonics(iv_u, iv_v, kernel))


@Kvu.register(ActivationFeatures, ActivationFeatures, ZonalKernel)
@Kvu_shapes
def Kvu_activations_activations(
    iv_v: ActivationFeatures, iv_u: ActivationFeatures, kernel: ZonalKernel
) -> tf.Tensor:
    """The covariances ``sum_l a_l b_l / lambda_l N(d, l) P_l(w^T z) / variance``, over common
    degrees; the activations may differ (eq. 53)."""
    iv_v.check_same_sphere(iv_u)
    return iv_v.inner_products(iv_u, kernel)

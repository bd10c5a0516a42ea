"""Covariances between two sets of inducing variables: Tiao et al. 2023, Appendix A."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import tensorflow as tf
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel, Sum

from ..inducing_variables import (
    ActivationFeatures,
    InterDomainInducingVariables,
    SphericalHarmonics,
    SumInducingVariables,
)
from ..kernels import DecomposedKernel, ZonalKernel
from .blocks import pair_blocks
from .dispatch import Kvu, Kvu_shapes
from .spherical_harmonics import Kuu_diagonal, inner_products


@Kvu.register(InducingVariables, InducingVariables, Kernel)
def Kvu_unknown(iv_v: InducingVariables, iv_u: InducingVariables, kernel: Kernel) -> NoReturn:
    """:raises ValueError: Always; families register the pairs they know."""
    raise ValueError(
        f"iv_v, iv_u: there is no covariance between {type(iv_v).__name__} and "
        f"{type(iv_u).__name__} under {type(kernel).__name__}; use InducingPoints for one of them."
    )


@Kvu.register(InducingPoints, InducingPoints, Kernel)
@Kvu_shapes
def Kvu_points_points(iv_v: InducingPoints, iv_u: InducingPoints, kernel: Kernel) -> tf.Tensor:
    """``k(w, z)`` (eq. 25)."""
    return kernel(iv_v.Z, iv_u.Z)


@Kvu.register(InducingPoints, InterDomainInducingVariables, Kernel)
@Kvu_shapes
def Kvu_points_inter_domain(
    iv_v: InducingPoints, iv_u: InterDomainInducingVariables, kernel: Kernel
) -> tf.Tensor:
    """v is f itself at points, so this is Kuf there (eqs. 36 and 47)."""
    return tf.linalg.matrix_transpose(Kuf(iv_u, kernel, iv_v.Z))


@Kvu.register(InterDomainInducingVariables, InducingPoints, Kernel)
@Kvu_shapes
def Kvu_inter_domain_points(
    iv_v: InterDomainInducingVariables, iv_u: InducingPoints, kernel: Kernel
) -> tf.Tensor:
    """u is f itself at points, so this is Kuf there (eq. 28)."""
    return Kuf(iv_v, kernel, iv_u.Z)


@Kvu.register(SphericalHarmonics, SphericalHarmonics, ZonalKernel)
@Kvu_shapes
def Kvu_harmonics_harmonics(
    iv_v: SphericalHarmonics, iv_u: SphericalHarmonics, kernel: ZonalKernel
) -> tf.Tensor:
    """``1 / (variance lambda_l)`` where v and u are the same harmonic, zero elsewhere (eq. 39)."""
    _validate_dimensions(iv_v, iv_u)
    if iv_v.column_order != iv_u.column_order:
        raise ValueError(
            f"iv_v, iv_u: column_order must be the same for both, found {iv_v.column_order} and "
            f"{iv_u.column_order}, of which the harmonics are not orthogonal; build one with the "
            "column_order of the other."
        )
    rows = {chain: row for row, chain in enumerate(map(tuple, iv_u.chains.tolist()))}
    chains = map(tuple, iv_v.chains.tolist())
    common = [(row, rows[chain]) for row, chain in enumerate(chains) if chain in rows]
    same = np.zeros((iv_v.num_inducing, iv_u.num_inducing))
    same[tuple(np.array(common, int).reshape([-1, 2]).T)] = 1
    diagonal = Kuu_diagonal(iv_v, kernel)
    return diagonal[:, None] * tf.constant(same, diagonal.dtype)


@Kvu.register(ActivationFeatures, SphericalHarmonics, ZonalKernel)
@Kvu_shapes
def Kvu_activations_harmonics(
    iv_v: ActivationFeatures, iv_u: SphericalHarmonics, kernel: ZonalKernel
) -> tf.Tensor:
    """``a_l Y_m(w) / (variance lambda_l)``, with the activation's coefficient a_l (eq. 42)."""
    _validate_dimensions(iv_v, iv_u)
    common = set(iv_v.degrees(kernel))
    found = dict.fromkeys(iv_u.degrees, 0.0)
    degrees = [degree for degree in iv_u.degrees if degree in common]
    if degrees:
        values = iv_v.activation.coefficients(iv_v.dimension, degrees)
        found.update(zip(degrees, values, strict=True))
    diagonal = Kuu_diagonal(iv_u, kernel)
    coefficients = np.array(list(found.values()))[iv_u.level_of_each]
    harmonics = iv_u.at(iv_v.directions)
    rows = tf.constant(coefficients, diagonal.dtype) * diagonal
    return tf.linalg.matrix_transpose(rows[:, None] * harmonics)


@Kvu.register(SphericalHarmonics, ActivationFeatures, ZonalKernel)
@Kvu_shapes
def Kvu_harmonics_activations(
    iv_v: SphericalHarmonics, iv_u: ActivationFeatures, kernel: ZonalKernel
) -> tf.Tensor:
    """The other way around (eq. 49)."""
    _validate_dimensions(iv_v, iv_u)
    return tf.linalg.matrix_transpose(Kvu_activations_harmonics(iv_u, iv_v, kernel))


@Kvu.register(ActivationFeatures, ActivationFeatures, ZonalKernel)
@Kvu_shapes
def Kvu_activations_activations(
    iv_v: ActivationFeatures, iv_u: ActivationFeatures, kernel: ZonalKernel
) -> tf.Tensor:
    """``sum_l a_l b_l / lambda_l N(d, l) P_l(w^T z) / variance`` over the degrees of both; the
    activations may differ (eq. 53)."""
    _validate_dimensions(iv_v, iv_u)
    return inner_products(iv_v, iv_u, kernel)


@Kvu.register(SumInducingVariables, SumInducingVariables, (Sum, DecomposedKernel))
@Kvu_shapes
def Kvu_sums(
    iv_v: SumInducingVariables, iv_u: SumInducingVariables, kernel: Sum | DecomposedKernel
) -> tf.Tensor:
    """Block-diagonal: different summands are independent."""
    blocks = [
        Kvu(block_v, block_u, summand)
        for (block_v, summand), (block_u, _) in zip(
            pair_blocks(iv_v, kernel), pair_blocks(iv_u, kernel), strict=True
        )
    ]
    operators = [tf.linalg.LinearOperatorFullMatrix(block) for block in blocks]
    return tf.linalg.LinearOperatorBlockDiag(operators).to_dense()


def _validate_dimensions(
    iv_v: SphericalHarmonics | ActivationFeatures, iv_u: SphericalHarmonics | ActivationFeatures
) -> None:
    if iv_v.dimension != iv_u.dimension:
        raise ValueError(
            f"iv_v has dimension {iv_v.dimension}, but iv_u has {iv_u.dimension}; both must live "
            "on the sphere of the kernel's inputs."
        )

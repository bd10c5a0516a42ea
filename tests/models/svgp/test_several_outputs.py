"""Kernels of several outputs, with unequal numbers of inducing variables: as many models of one
output each."""

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import (
    Kernel,
    LinearCoregionalization,
    MultioutputKernel,
    SeparateIndependent,
    SharedIndependent,
    SquaredExponential,
)

from interdomain.inducing_variables import (
    SeparateIndependentInducingVariables,
    SphericalHarmonics,
    SumInducingVariables,
)
from interdomain.kernels import SphericalMatern32
from interdomain.models import AdditiveSVGP, OrthogonalSVGP
from tests.conformance.helpers import assert_close, assert_same_objective, random_q

NUM_LATENTS, NUM_DATA = 3, 8
W = np.array([[1.0, 0.3, 0.2], [-0.4, 0.8, 0.1]])
RNG = np.random.default_rng(0)
X = RNG.normal(size=(NUM_DATA, 2))
Z = RNG.normal(size=(4, 2))


def zonal(scale: float) -> Kernel:
    return SphericalMatern32(variance=scale, weight_variances=np.ones(2))


def summed(scale: float) -> Kernel:
    return zonal(scale) + SquaredExponential(lengthscales=scale, active_dims=[0])


def harmonics(max_degree: int) -> SphericalHarmonics:
    return SphericalHarmonics.for_kernel(zonal(1.0), 2, max_degree=max_degree)


def blocks(max_degree: int) -> SumInducingVariables:
    return SumInducingVariables([harmonics(max_degree), InducingPoints(Z)])


def several(make: Callable[[float], Kernel], mixing: str) -> MultioutputKernel:
    """The third latent GP has the kernel of the first."""
    first, second = make(1.0), make(0.6)
    if mixing == "shared":
        return SharedIndependent(first, NUM_LATENTS)
    if mixing == "separate":
        return SeparateIndependent([first, second, first])
    return LinearCoregionalization([first, second, first], W=W)


def in_turn(make: Callable[[int], InducingVariables]) -> list[InducingVariables]:
    """Of each latent GP; the third has that of the first, and shares its factorisation."""
    first, second = make(2), make(1)
    return [first, second, first]


def likelihood() -> gpflow.likelihoods.Gaussian:
    return gpflow.likelihoods.Gaussian(0.2)


def pairs_of(model: gpflow.models.SVGP) -> list[tuple[gpflow.Parameter, gpflow.Parameter]]:
    return getattr(model, "variational_parameters", [(model.q_mu, model.q_sqrt)])


def set_q(model: gpflow.models.SVGP, singles: list) -> None:
    """Random numbers, the same in the model and, latent GP by latent GP, in the single ones."""
    rng = np.random.default_rng(1)
    for t, (q_mu, q_sqrt) in enumerate(pairs_of(model)):
        q_diag = len(q_sqrt.shape) == 2
        for parameter, values in zip(
            (q_mu, q_sqrt), random_q(rng, q_mu.shape[0], NUM_LATENTS, q_diag), strict=True
        ):
            parameter.assign(values)
        for i, single in enumerate(singles):
            own_mu, own_sqrt = pairs_of(single)[t]
            rows, own = slice(own_mu.shape[0]), slice(i, i + 1)
            own_mu.assign(q_mu.numpy()[rows, own])
            own_sqrt.assign(q_sqrt.numpy()[(rows, own) if q_diag else (own, rows, rows)])


FAMILIES: dict[str, tuple[Any, ...]] = {
    "svgp": (gpflow.models.SVGP, zonal, in_turn(harmonics)),
    "svgp of points": (gpflow.models.SVGP, zonal, [harmonics(3), harmonics(1), InducingPoints(Z)]),
    "additive": (AdditiveSVGP, summed, in_turn(blocks)),
    "orthogonal": (OrthogonalSVGP, zonal, in_turn(harmonics), InducingPoints(Z)),
}


def several_and_singles(family: str, mixing: str, **options: Any) -> tuple[Any, list[Any]]:
    """A model, and one for each of its latent GPs."""
    model_class, make, own, *others = FAMILIES[family]
    kernel = several(make, mixing)
    together = SeparateIndependentInducingVariables(own)
    # Other models ask the kernel for the number.
    number = {"num_latent_gps": NUM_LATENTS} if model_class is gpflow.models.SVGP else {}
    model = model_class(kernel, likelihood(), together, *others, **number, **options)
    return model, [
        model_class(latent, likelihood(), variables, *others, **options)
        for latent, variables in zip(kernel.latent_kernels, own, strict=True)
    ]


@pytest.mark.parametrize(
    ("family", "mixing", "q_diag", "whiten"),
    [
        ("svgp", "coregionalised", False, True),
        ("svgp of points", "separate", True, True),
        ("additive", "separate", False, False),
        ("orthogonal", "coregionalised", True, False),
    ],
)
def test_as_many_models_of_one_output(family: str, mixing: str, q_diag: bool, whiten: bool) -> None:
    """Marginals, covariances, cached or not, KL divergence and bound; and the bound's gradient."""
    model, singles = several_and_singles(family, mixing, q_diag=q_diag, whiten=whiten)
    set_q(model, singles)
    assert model.num_latent_gps == NUM_LATENTS
    num_outputs = len(W) if mixing == "coregionalised" else NUM_LATENTS

    def mixed(full_cov: bool) -> tuple[tf.Tensor, tf.Tensor]:
        identity = tf.eye(NUM_LATENTS, dtype=gpflow.default_float())
        weights = tf.convert_to_tensor(model.kernel.W) if num_outputs == len(W) else identity
        pairs = [single.predict_f(X, full_cov=full_cov) for single in singles]
        mean = tf.concat([mean for mean, _ in pairs], axis=-1) @ tf.transpose(weights)
        if full_cov:
            cov = tf.concat([cov for _, cov in pairs], axis=0)
            return mean, tf.tensordot(weights**2, cov, 1)
        return mean, tf.concat([cov for _, cov in pairs], axis=-1) @ tf.transpose(weights**2)

    assert_close(model.predict_f(X), mixed(False))
    assert_close(model.posterior().predict_f(X, full_cov=True), mixed(True))
    assert_close(model.prior_kl(), sum(single.prior_kl() for single in singles))
    Y = np.random.default_rng(2).normal(size=(NUM_DATA, num_outputs))

    def bound() -> tf.Tensor:
        expectations = model.likelihood.variational_expectations(X, *mixed(False), Y)
        return tf.reduce_sum(expectations) - sum(single.prior_kl() for single in singles)

    assert_same_objective(lambda: model.elbo((X, Y)), bound, model.kernel.trainable_variables)


def test_errors() -> None:
    with pytest.raises(ValueError, match="num_latent_gps must be 3, .* found 2; leave it out"):
        several_and_singles("additive", "separate", num_latent_gps=2)
    kernel = SeparateIndependent([summed(1.0), zonal(1.0)])
    own = SeparateIndependentInducingVariables([blocks(2), harmonics(2)])
    with pytest.raises(ValueError, match=r"as many blocks for each latent GP, found \[2, 1\]"):
        AdditiveSVGP(kernel, likelihood(), own)

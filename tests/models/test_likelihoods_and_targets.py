"""Where likelihoods meet their targets: what is known of each, in every model, right or refused."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.likelihoods import Gaussian

import interdomain as idm
from interdomain.models import CollapsedSVGP, StructuredSGPR
from interdomain.models.targets import densities_of

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, [12, 1])
Z = np.linspace(-1, 1, 4)[:, None]
KERNEL_VARIANCE = 1.5


def kernel() -> Any:
    made = gpflow.kernels.Matern52(variance=KERNEL_VARIANCE, lengthscales=0.5)
    gpflow.set_trainable(made, False)
    return made


def points() -> Any:
    made = gpflow.inducing_variables.InducingPoints(Z.copy())
    gpflow.set_trainable(made, False)
    return made


def svgp(likelihood: Any, num_latent_gps: int = 1) -> Any:
    return gpflow.models.SVGP(
        kernel(), likelihood, points(), num_latent_gps=num_latent_gps, num_data=len(X)
    )


def collapsed(likelihood: Any, Y: Any, **arguments: Any) -> CollapsedSVGP:
    return CollapsedSVGP((X, Y), kernel(), likelihood, points(), progress=False, **arguments)


MISSING = -999.0


class WithoutMissing(Gaussian):
    """Gaussian, where targets of -999 say nothing (GPflow #671)."""

    def _variational_expectations(self, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> Any:
        noise = self._variance(X)
        each = -0.5 * (tf.math.log(2 * np.pi * noise) + ((Y - Fmu) ** 2 + Fvar) / noise)
        return tf.reduce_sum(tf.where(tf.equal(Y, MISSING), tf.zeros_like(each), each), axis=-1)


class Renamed(Gaussian):
    """Another constructor, and nothing else."""

    def __init__(self) -> None:
        super().__init__(0.2)


def with_method_replaced() -> Gaussian:
    likelihood = Gaussian(0.2)
    likelihood._variational_expectations = WithoutMissing._variational_expectations
    return likelihood


def test_whose_densities_a_likelihood_has() -> None:
    class Mixed(gpflow.base.Module):
        def _scalar_log_prob(self, X: Any, F: Any, Y: Any) -> Any:
            return F

    class OfAMixin(Mixed, Gaussian):
        """Its densities come before those of Gaussian."""

    for likelihood in (Gaussian(), Renamed(), gpflow.likelihoods.Bernoulli()):
        assert densities_of(likelihood) in (Gaussian, gpflow.likelihoods.Bernoulli)
    for other in (WithoutMissing(), OfAMixin(), with_method_replaced(), None, object()):
        assert densities_of(other) is None


@pytest.mark.parametrize("make", [WithoutMissing, with_method_replaced], ids=["class", "instance"])
def test_the_closed_form_is_for_the_densities_of_gaussian(make: Any) -> None:
    Y = np.where(np.arange(len(X))[:, None] % 3 == 0, MISSING, np.sin(3 * X))
    for call in (
        lambda: StructuredSGPR((X, Y), kernel(), points(), likelihood=make()),
        lambda: idm.training.start_at_optimum(svgp(make()), (X, Y)),
    ):
        with pytest.raises(ValueError, match="densities of its own; .*CollapsedSVGP"):
            call()
    for own in (Renamed(), Gaussian(0.2)):
        assert StructuredSGPR((X, X), kernel(), points(), likelihood=own).likelihood is own


def test_targets_that_are_missing_leave_the_others() -> None:
    """The model that is named takes them: one step gives the exact posterior of the others."""
    missing = np.arange(len(X)) % 3 == 0
    Y = np.where(missing[:, None], MISSING, np.sin(3 * X))
    model = collapsed(WithoutMissing(0.2), Y)
    model.assign_sites(model.pass_over_data().sites)
    K = lambda A, B: kernel()(A, B).numpy()  # noqa: E731
    Kzz, Kzx = K(Z, Z), K(Z, X[~missing])
    precision = Kzz + Kzx @ Kzx.T / 0.2
    expected = K(X, Z) @ np.linalg.solve(precision, Kzx @ Y[~missing]) / 0.2
    np.testing.assert_allclose(model.predict_f(X)[0], expected, atol=1e-5)


def test_noise_of_each_column_is_no_single_noise() -> None:
    noise = Gaussian(np.array([0.1, 0.4]))
    Y = np.hstack([X, -X])
    with pytest.raises(ValueError, match="its noise is 2 variances"):
        StructuredSGPR((X, Y), kernel(), points(), likelihood=noise)
    with pytest.raises(ValueError, match="differs between the columns of Y"):
        idm.training.start_at_optimum(svgp(noise, 2), (X, Y))

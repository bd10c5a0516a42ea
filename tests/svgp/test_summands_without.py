"""None in SumInducingVariables: a summand's variance stays in the prior of f."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
from gpflow.kernels import Linear, White

from interdomain.inducing_variables import SphericalHarmonics, SumInducingVariables
from interdomain.kernels import SphericalMatern32
from interdomain.models import AdditiveSVGP, StructuredSGPR
from tests.conformance.helpers import assert_close

RNG = np.random.default_rng(0)
X, XNEW = RNG.normal(size=(8, 2)), RNG.normal(size=(5, 2))
Y = np.sin(X[:, :1])


def kernel() -> SphericalMatern32:
    return SphericalMatern32(weight_variances=np.ones(2))


def harmonics() -> SphericalHarmonics:
    return SphericalHarmonics.for_kernel(kernel(), 2, max_degree=2)


@pytest.mark.parametrize("full_cov", [False, True], ids=["marginal", "joint"])
def test_predictions(full_cov: bool) -> None:
    """Those of the other summand, with the rest's variance added."""
    own, rest = kernel(), Linear(0.4)
    alone = gpflow.models.SVGP(own, gpflow.likelihoods.Gaussian(), harmonics())
    alone.q_mu.assign(RNG.normal(size=alone.q_mu.shape))
    alone.q_sqrt.assign(0.4 * alone.q_sqrt)
    mean, cov = alone.predict_f(XNEW, full_cov=full_cov)
    added = rest(XNEW, full_cov=full_cov)
    expected = (mean, cov + (added[None] if full_cov else added[:, None]))
    blocks = SumInducingVariables([harmonics(), None])
    assert blocks.num_inducing == harmonics().num_inducing
    assert blocks.inducing_variables[1] is None
    for build in (gpflow.models.SVGP, AdditiveSVGP):
        model = build(own + rest, gpflow.likelihoods.Gaussian(), blocks)
        single = isinstance(model.q_mu, gpflow.Parameter)
        (model.q_mu if single else model.q_mu[0]).assign(alone.q_mu)
        (model.q_sqrt if single else model.q_sqrt[0]).assign(alone.q_sqrt)
        assert_close(model.predict_f(XNEW, full_cov=full_cov), expected)
        assert_close(model.posterior().predict_f(XNEW, full_cov=full_cov), expected)
        assert_close(model.prior_kl(), alone.prior_kl())


def test_white_noise_is_noise() -> None:
    """The collapsed bound with White in the kernel is Titsias' for the sum of both noises less what
    the trace term takes for the variance that nothing explains."""
    own, white, noise = kernel(), White(0.3), 0.2
    blocks = SumInducingVariables([harmonics(), None])
    with_rest = StructuredSGPR((X, Y), own + white, blocks, noise_variance=noise, progress=False)
    without = StructuredSGPR((X, Y), own, harmonics(), noise_variance=noise, progress=False)
    trace = len(X) * 0.3 / (2 * noise)
    assert_close(with_rest.elbo(), without.elbo() - trace)
    assert_close(with_rest.predict_f(XNEW)[0], without.predict_f(XNEW)[0])
    assert_close(with_rest.predict_f(XNEW)[1], without.predict_f(XNEW)[1] + 0.3)

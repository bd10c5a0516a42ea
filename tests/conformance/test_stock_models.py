"""GPflow's other models, which see dense Kuu and Kuf alone: two cases stand for all."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow_probability as tfp
from gpflow.covariances import Kuf, Kuu

from .cases import FIRST_AND_LAST_KIND, Case
from .dense_twin import DenseTwin
from .helpers import (
    assert_close,
    make_data,
    make_inputs,
)

pytestmark = pytest.mark.usefixtures("no_jitter")
NOISE = 0.2
two_cases = pytest.mark.parametrize("case", FIRST_AND_LAST_KIND, ids=lambda case: case.name)


def make_pair(case: Case, model_class: type, **options: Any) -> tuple[Any, Any]:
    """The model, and the same one with the same parameters over the dense twin."""
    kernel, inducing_variable = case.build()
    num_outputs = 1 if model_class is gpflow.models.CGLB else 2  # CGLB takes one output only
    data = make_data(case, num_outputs)
    model = model_class(
        data, kernel, inducing_variable=inducing_variable, noise_variance=NOISE, **options
    )
    twin = model_class(data, kernel, inducing_variable=DenseTwin(inducing_variable), **options)
    twin.likelihood = model.likelihood
    return model, twin


def gaussian_log_density(Y: np.ndarray, covariance: np.ndarray) -> float:
    """Of independent columns."""
    zero = np.zeros(len(Y))
    return sum(
        tfp.distributions.MultivariateNormalFullCovariance(zero, covariance).log_prob(y).numpy()
        for y in Y.T
    )


@two_cases
@pytest.mark.filterwarnings("ignore:MultivariateNormalFullCovariance")
def test_bounds_by_brute_force(case: Case) -> None:
    """SGPR's and FITC's from N x N matrices; SGPR's is that of an SVGP, and below the evidence."""
    sgpr, twin = make_pair(case, gpflow.models.SGPR)
    X, Y = make_data(case, 2)
    kernel, u = sgpr.kernel, sgpr.inducing_variable
    fitc = gpflow.models.GPRFITC((X, Y), kernel, u, noise_variance=NOISE)
    features, dense = Kuf(u, kernel, X).numpy(), Kuu(u, kernel).numpy()
    explained = features.T @ np.linalg.solve(dense, features)
    missing = kernel(X, full_cov=False).numpy() - np.diag(explained)
    noise = NOISE * np.eye(len(X))
    elbo = sgpr.elbo()
    bound = gaussian_log_density(Y, explained + noise) - np.sum(missing) / NOISE
    assert_close(elbo, bound)
    likelihood = gaussian_log_density(Y, explained + noise + np.diag(missing))
    assert_close(fitc.fitc_log_marginal_likelihood(), likelihood)

    exact = gpflow.models.GPR((X, Y), kernel, noise_variance=NOISE)
    likelihood = exact.log_marginal_likelihood().numpy()
    rounding = 1e-10 * abs(likelihood)
    assert elbo.numpy() <= likelihood + rounding
    assert sgpr.upper_bound().numpy() >= likelihood - rounding

    mean, covariance = sgpr.compute_qu()
    assert_close((mean, covariance), twin.compute_qu())
    root = np.linalg.cholesky(covariance)
    svgp = gpflow.models.SVGP(
        kernel,
        sgpr.likelihood,
        u,
        num_latent_gps=2,
        whiten=False,
        q_mu=mean,
        q_sqrt=np.stack([root, root]),
    )
    assert_close(svgp.elbo((X, Y)), elbo)
    Xnew = make_inputs(case, 6)
    assert_close(svgp.predict_f(Xnew), sgpr.predict_f(Xnew))

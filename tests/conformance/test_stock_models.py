"""GPflow's other models, its optimisers, and how its users handle a model.

They see no more of a family than dense Kuu and Kuf, parameters and a loss: two cases stand for all,
one without structure to speak of and one with most.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import disable_check_shapes
from gpflow.covariances import Kuf, Kuu
from gpflow.utilities import multiple_assign, read_values, set_trainable

from .cases import FIRST_AND_LAST_KIND, Case
from .dense_twin import DenseTwin, dense_twin
from .helpers import (
    assert_close,
    assert_same_objective,
    change,
    make_data,
    make_inputs,
    make_svgp,
)

pytestmark = pytest.mark.usefixtures("no_jitter")
NOISE = 0.2
two_cases = pytest.mark.parametrize("case", FIRST_AND_LAST_KIND, ids=lambda case: case.name)
first_case = pytest.mark.parametrize("case", FIRST_AND_LAST_KIND[:1], ids=lambda case: case.name)
last_case = pytest.mark.parametrize("case", FIRST_AND_LAST_KIND[1:], ids=lambda case: case.name)


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


@last_case
def test_objective_and_predictions(case: Case) -> None:
    X = make_inputs(case, 6)
    for model_class in (gpflow.models.SGPR, gpflow.models.CGLB):
        model, twin = make_pair(case, model_class)
        assert_same_objective(model.training_loss, twin.training_loss, model.trainable_variables)
        assert_close(model.predict_y(X), twin.predict_y(X))
        assert_close(model.upper_bound(), twin.upper_bound())
        data = model.data
        assert_close(model.predict_log_density(data), twin.predict_log_density(data))
        if model_class is gpflow.models.SGPR:
            joint = twin.predict_f(X, full_cov=True)
            assert_close(model.predict_f(X, full_cov=True), joint)
            assert_close(model.posterior().predict_f(X, full_cov=True), joint)


@two_cases
def test_sgpmc(case: Case) -> None:
    """The density and its gradients, which are all that HMC sees."""
    kernel, features = case.build()
    data, likelihood = make_data(case), gpflow.likelihoods.StudentT()
    model, twin = (
        gpflow.models.SGPMC(data, kernel, likelihood, inducing_variable=inducing_variable)
        for inducing_variable in (features, DenseTwin(features))
    )
    model.V.assign(0.3 * np.sin(np.arange(model.V.shape[0]))[:, None])
    twin.V = model.V
    assert_same_objective(
        model.log_posterior_density, twin.log_posterior_density, model.trainable_variables
    )
    X = make_inputs(case, 6)
    assert_close(model.predict_f(X), twin.predict_f(X), atol=1e-13)


Loss = Callable[[], tf.Tensor]


def scipy_steps(loss: Loss, model: gpflow.models.SVGP) -> None:
    gpflow.optimizers.Scipy().minimize(
        loss, model.trainable_variables, compile=False, options={"maxiter": 2}
    )


def natural_and_adam_steps(loss: Loss, model: gpflow.models.SVGP) -> None:
    """Natural gradients for q, Adam (of tf_keras) for the rest, in turns."""
    set_trainable(model.q_mu, False)
    set_trainable(model.q_sqrt, False)
    adam = gpflow.keras.tf_keras.optimizers.Adam(0.01)
    natural = gpflow.optimizers.NaturalGradient(gamma=0.05)
    for _ in range(2):
        natural.minimize(loss, [(model.q_mu, model.q_sqrt)])
        adam.minimize(loss, model.trainable_variables)


@pytest.mark.parametrize("steps", [scipy_steps, natural_and_adam_steps])
@first_case
def test_optimizers(case: Case, steps: Callable[[Loss, gpflow.models.SVGP], None]) -> None:
    """The first steps lead where they lead the dense twin."""
    model = make_svgp(case, likelihood=gpflow.likelihoods.StudentT())
    twin = dense_twin(copy.deepcopy(model))
    data = make_data(case)
    before = model.training_loss(data).numpy()
    parameters = read_values(model)
    steps(model.training_loss_closure(data, compile=False), model)
    with disable_check_shapes():
        steps(twin.training_loss_closure(data, compile=False), twin)
    after = model.training_loss(data).numpy()
    assert after < before - 1e-3
    assert_close(after, twin.training_loss(data), rtol=1e-6)
    for path, value in read_values(model).items():
        assert np.any(value != parameters[path]), f"{path} has not moved"


@two_cases
def test_stored_and_restored(case: Case, tmp_path: Path) -> None:
    """pickle, freeze, multiple_assign, checkpoints."""
    model, data, X = make_svgp(case), make_data(case), make_inputs(case, 4)
    before, bound = model.predict_f(X), model.elbo(data)
    path = tf.train.Checkpoint(model=model).save(str(tmp_path / "checkpoint"))
    values, pickled = read_values(model), pickle.loads(pickle.dumps(model))
    frozen = gpflow.utilities.freeze(model)
    assert frozen.trainable_variables == () and model.trainable_variables
    assert len(pickled.trainable_variables) == len(model.trainable_variables)
    assert_close(pickled.elbo(data), bound, rtol=1e-14)
    change(model)
    moved = model.predict_f(X)
    assert np.max(np.abs(moved[0] - before[0])) > 1e-3
    for other in (frozen, pickled):
        assert_close(other.predict_f(X), before, rtol=1e-14)
    multiple_assign(model, values)
    assert_close(model.predict_f(X), before, rtol=1e-12)
    change(model)
    tf.train.Checkpoint(model=model).restore(path).assert_existing_objects_matched()
    assert_close(model.predict_f(X), before, rtol=1e-14)

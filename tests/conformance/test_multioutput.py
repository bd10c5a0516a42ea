"""The multi-output wrappers and kernels of GPflow around each case."""

from __future__ import annotations

import copy
import itertools

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from check_shapes import disable_check_shapes
from gpflow.inducing_variables import (
    InducingVariables,
    SeparateIndependentInducingVariables,
    SharedIndependentInducingVariables,
)
from gpflow.kernels import (
    Kernel,
    LinearCoregionalization,
    MultioutputKernel,
    SeparateIndependent,
    SharedIndependent,
)
from gpflow.utilities import parameter_dict

from .cases import FIRST_AND_LAST_KIND, REPRESENTATIVES, Case
from .dense_twin import dense_twin, has_triangular_root
from .helpers import NUM_DATA, assert_close, assert_same_objective, make_data, make_inputs
from .selection import param

NUM_LATENTS = 2
WRAPPERS = ["shared", "separate"]
MIXINGS = ["shared", "separate", "coregionalised"]
COVARIANCES = [(False, False), (True, True)]


def half_of_the_pairs(first: int) -> pytest.MarkDecorator:
    """Each class with all kernels and both wrappers, and with three of the six pairs of them: those
    that are left out with the next class, and if ``first`` is one more. GPflow's posteriors of
    several outputs see no more of a case than Kuu and Kuf, which are dense tensors."""
    return pytest.mark.parametrize(
        ("case", "wrapper", "mixing"),
        [
            param(
                case,
                wrapper,
                mixing,
                id=f"{case.name}-{mixing}-{wrapper}",
                quick=case in FIRST_AND_LAST_KIND,
            )
            for (k, case), (i, wrapper), (j, mixing) in itertools.product(
                enumerate(REPRESENTATIVES), enumerate(WRAPPERS), enumerate(MIXINGS)
            )
            if (k + i + j + first) % 2 == 0
        ],
    )


def second_kernel(case: Case) -> Kernel:
    """Another kernel of the same family: each of its variances is doubled."""
    kernel, _ = case.build()
    factors = {"variance": 2.0, "amplitudes_real": 2**0.5, "amplitudes_imaginary": 2**0.5}
    parameters = [
        (parameter, factors[name])
        for path, parameter in parameter_dict(kernel).items()
        if (name := path.rsplit(".", 1)[-1]) in factors
    ]
    assert parameters
    for parameter, factor in parameters:
        parameter.assign(factor * parameter)
    return kernel


def make_kernel(case: Case, mixing: str) -> MultioutputKernel:
    kernels = [case.build()[0], second_kernel(case)]
    if mixing == "shared":
        return SharedIndependent(kernels[0], output_dim=NUM_LATENTS)
    if mixing == "separate":
        return SeparateIndependent(kernels)
    return LinearCoregionalization(kernels, W=np.array([[1.0, 0.3], [-0.4, 0.8], [0.5, 0.5]]))


def make_inducing_variable(case: Case, wrapper: str) -> InducingVariables:
    inducing_variable = case.build()[1]
    if wrapper == "shared":
        return SharedIndependentInducingVariables(inducing_variable)
    return SeparateIndependentInducingVariables(
        [inducing_variable, copy.deepcopy(inducing_variable)]
    )


def make_model(
    case: Case, wrapper: str, mixing: str, *, q_diag: bool, whiten: bool = True
) -> gpflow.models.SVGP:
    model = gpflow.models.SVGP(
        make_kernel(case, mixing),
        gpflow.likelihoods.Gaussian(0.2),
        make_inducing_variable(case, wrapper),
        num_latent_gps=NUM_LATENTS,
        q_diag=q_diag,
        whiten=whiten,
        num_data=2 * NUM_DATA,
    )
    rng = np.random.default_rng(5)
    model.q_mu.assign(rng.normal(size=model.q_mu.shape))
    model.q_sqrt.assign(0.4 * model.q_sqrt)
    return model


@half_of_the_pairs(0)
def test_elbo_and_gradients(case: Case, wrapper: str, mixing: str) -> None:
    model = make_model(case, wrapper, mixing, q_diag=False)
    twin = dense_twin(model)
    data = make_data(case, 3 if mixing == "coregionalised" else NUM_LATENTS)
    assert_same_objective(
        lambda: model.elbo(data), lambda: twin.elbo(data), model.trainable_variables
    )


@half_of_the_pairs(1)
def test_predictions(case: Case, wrapper: str, mixing: str) -> None:
    """A cached posterior and, marginal or joint, a conditional; GPflow takes a second for each that
    is not cached."""
    model = make_model(case, wrapper, mixing, q_diag=wrapper == "shared")
    kernel, inducing_variable = model.kernel, model.inducing_variable
    twin = dense_twin(model)
    posterior = model.posterior()
    X = make_inputs(case, 4)
    q_mu, q_sqrt = tf.identity(model.q_mu), tf.identity(model.q_sqrt)
    for full_cov, full_output_cov in COVARIANCES:
        options = {"full_cov": full_cov, "full_output_cov": full_output_cov}
        with disable_check_shapes():
            reference = twin.predict_f(X, **options)
        assert_close(posterior.predict_f(X, **options), reference, message=f"cached {options}")
        if full_cov == (wrapper == "shared"):
            actual = gpflow.conditionals.conditional(
                X, inducing_variable, kernel, q_mu, q_sqrt=q_sqrt, white=True, **options
            )
            assert_close(actual, reference, message=f"conditional {options}")


@pytest.mark.parametrize(
    ("case", "wrapper"),
    [
        param(case, wrapper, id=f"{case.name}-{wrapper}", quick=case in FIRST_AND_LAST_KIND)
        for case, wrapper in zip(REPRESENTATIVES, itertools.cycle(WRAPPERS), strict=False)
    ],
)
def test_outputs_are_single_output_models(case: Case, wrapper: str) -> None:
    """Independent outputs with kernels of their own are as many models with one output each."""
    # Whitened variables of one and of several outputs are the same if both are by a triangle.
    whiten = has_triangular_root(case.build()[1])
    model = make_model(case, wrapper, "separate", q_diag=False, whiten=whiten)
    X = make_inputs(case, 4)
    mean, var = model.predict_f(X)
    for i, kernel in enumerate(model.kernel.kernels):
        single = gpflow.models.SVGP(
            kernel,
            model.likelihood,
            case.build()[1],
            q_mu=model.q_mu.numpy()[:, i : i + 1],
            q_sqrt=model.q_sqrt.numpy()[i : i + 1],
            whiten=whiten,
        )
        assert_close((mean[:, i : i + 1], var[:, i : i + 1]), single.predict_f(X))

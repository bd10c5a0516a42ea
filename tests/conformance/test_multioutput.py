"""Several outputs: the wrappers and kernels of GPflow, and the wrappers of this library."""

import copy

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
    LinearCoregionalization,
    MultioutputKernel,
    SeparateIndependent,
    SharedIndependent,
)

from interdomain import inducing_variables
from interdomain.kernels import SphericalMatern32
from interdomain.posteriors import StructuredPosterior
from tests.posteriors.graph_ops import count_ops

from .cases import ONE_OF_EACH_KIND, Case
from .dense_twin import dense_twin
from .helpers import (
    NUM_DATA,
    assert_close,
    assert_same_objective,
    double,
    make_data,
    make_inputs,
    moved,
)

pytestmark = pytest.mark.usefixtures("no_jitter")
NUM_LATENTS = 2
OURS = {
    "shared": inducing_variables.SharedIndependentInducingVariables,
    "separate": inducing_variables.SeparateIndependentInducingVariables,
}
GPFLOWS = {
    "shared": SharedIndependentInducingVariables,
    "separate": SeparateIndependentInducingVariables,
}
ALL_WRAPPERS = ["bare", *(f"{whose} {kind}" for whose in ("gpflow", "own") for kind in GPFLOWS)]
MIXINGS = ["shared", "separate", "coregionalised"]


def make_kernel(case: Case, mixing: str) -> MultioutputKernel:
    kernels = [case.build()[0], double(case.build()[0])]
    if mixing == "shared":
        return SharedIndependent(kernels[0], output_dim=NUM_LATENTS)
    if mixing == "separate":
        return SeparateIndependent(kernels)
    return LinearCoregionalization(kernels, W=np.array([[1.0, 0.3], [-0.4, 0.8], [0.5, 0.5]]))


def make_inducing_variable(case: Case, wrapper: str) -> InducingVariables:
    inducing_variable = case.build()[1]
    if wrapper == "bare":
        return inducing_variable
    whose, kind = wrapper.split()
    wrap = (OURS if whose == "own" else GPFLOWS)[kind]
    if kind == "shared":
        return wrap(inducing_variable)
    return wrap([inducing_variable, copy.deepcopy(inducing_variable)])


def make_model(case: Case, wrapper: str, mixing: str, *, q_diag: bool) -> gpflow.models.SVGP:
    kernel, features = make_kernel(case, mixing), make_inducing_variable(case, wrapper)
    options = {"num_latent_gps": NUM_LATENTS, "num_data": 2 * NUM_DATA, "q_diag": q_diag}
    model = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(0.2), features, **options)
    return moved(model)


@pytest.mark.parametrize("case", ONE_OF_EACH_KIND, ids=lambda case: case.kind)
def test_each_kind_of_operator(case: Case) -> None:
    """Latent GPs with kernels and inducing variables of their own, which are mixed."""
    model = make_model(case, "own separate", "coregionalised", q_diag=False)
    twin = dense_twin(model)
    data = make_data(case, 3)
    assert_same_objective(
        lambda: model.elbo(data), lambda: twin.elbo(data), model.trainable_variables
    )
    X, posterior = make_inputs(case, 4), model.posterior()
    for full_cov in (False, True):
        options = {"full_cov": full_cov, "full_output_cov": full_cov}
        reference = twin.predict_f(X, **options)
        assert_close(model.predict_f(X, **options), reference, message=f"fused {options}")
        cached = posterior.predict_f(X, **options)
        assert_close(cached, reference, message=f"cached {options}")


@pytest.mark.parametrize("wrapper", ALL_WRAPPERS)
def test_each_wrapper(wrapper: str) -> None:
    """GPflow's lead to its own posteriors, which see dense tensors; others to the library's."""
    case = ONE_OF_EACH_KIND[0]
    X = make_inputs(case, 4)
    is_gpflows = wrapper.startswith("gpflow")
    for mixing in MIXINGS[-1:] if is_gpflows else MIXINGS:
        model = make_model(case, wrapper, mixing, q_diag=wrapper.endswith("shared"))
        posterior = model.posterior()
        structured = isinstance(posterior, StructuredPosterior)
        assert structured == (not is_gpflows), wrapper
        data = make_data(case, 3 if mixing == "coregionalised" else NUM_LATENTS)
        twin = dense_twin(model)
        with disable_check_shapes():
            assert_close(model.elbo(data), twin.elbo(data), message=mixing)
        options = {"full_cov": mixing != "shared", "full_output_cov": mixing != "shared"}
        with disable_check_shapes():
            reference = twin.predict_f(X, **options)
        message = f"{mixing} {options}"
        assert_close(posterior.predict_f(X, **options), reference, message=message)


def test_shared_blocks_are_factorised_once() -> None:
    """Latent GPs with the same kernel and inducing variable have one factor; harmonics none."""
    kernels = [SphericalMatern32(weight_variances=np.ones(2)) for _ in range(2)]
    points = gpflow.inducing_variables.InducingPoints(np.eye(2))
    wrap = inducing_variables.SeparateIndependentInducingVariables

    def count(kernel: MultioutputKernel, features: InducingVariables) -> int:
        noise, data = gpflow.likelihoods.Gaussian(), (np.ones((4, 2)), np.ones((4, 3)))
        model = gpflow.models.SVGP(kernel, noise, features, num_latent_gps=3)
        function = tf.function(lambda: model.elbo(data), autograph=False)
        return count_ops(function.get_concrete_function(), ("Cholesky",))

    first, second = kernels
    few, many = (inducing_variables.SphericalHarmonics(3, range(size)) for size in (3, 4))
    assert count(SharedIndependent(first, 3), wrap([points] * 3)) == 1
    assert count(SeparateIndependent([first, second, first]), wrap([points] * 3)) == 2
    assert count(SeparateIndependent([first, second, first]), wrap([few, many, points])) == 1
    assert count(LinearCoregionalization([first, second, first], W=np.ones((3, 3))), few) == 0

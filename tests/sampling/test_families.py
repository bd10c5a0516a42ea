"""Functions of the posterior, for every kind of inducing variable."""

from collections.abc import Callable

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

import interdomain as idm
from interdomain.families.harmonizable.spectral_mixture import SpectralComponent
from interdomain.sampling import sample_functions
from interdomain.sampling.base import Draws, PriorSample
from interdomain.sampling.priors import prior_sample
from interdomain.sampling.zonal import variance_shares_of_degrees
from tests.conformance.cases import CASES, Case
from tests.conformance.helpers import assert_refused, assert_slopes, make_inputs, make_svgp

from .moments import NUM_SAMPLES, assert_mean, assert_moments

OF_KINDS = ("harmonics-free-spectrum", "orbits", "sum-with-points")
"""One case for each kind of operator of which there are functions, with few features."""
OF_PRIORS = {"activation-softplus", "orbits"}
"""A zonal and a stationary prior."""


@pytest.mark.parametrize(
    ("name", "q"),
    [(name, {}) for name in OF_KINDS]
    + [(name, {"whiten": False, "q_diag": True}) for name in (OF_KINDS[0], OF_KINDS[-1])],
)
def test_moments_are_those_of_the_posterior(name: str, q: dict[str, bool]) -> None:
    """The covariance would be another one by the order of the prior's, were u' not what the
    inducing variables are of the function of the prior."""
    (case,) = (case for case in CASES if case.name == name)
    model, X = make_svgp(case, **q), make_inputs(case, 4)
    functions = sample_functions(model, NUM_SAMPLES, num_features=6, seed=3)
    assert_moments(functions, X, *model.predict_f(X, full_cov=True))


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in OF_PRIORS], ids=lambda case: case.name
)
def test_a_function_has_one_value_and_one_slope_at_a_place(case: Case) -> None:
    """In any batch, and in compiled functions, of which the number of rows is not known; slopes
    are those of finite differences."""
    functions = sample_functions(make_svgp(case), 3, num_features=8, seed=2)
    X, rng = tf.Variable(0.9 * make_inputs(case, 5)), np.random.default_rng(1)
    weights, values = rng.normal(size=[3, 5, 1]), functions(X.value())
    np.testing.assert_array_equal(values, functions(X.value()))
    np.testing.assert_allclose(values[:, 2:4], functions(X[2:4]), rtol=1e-8, atol=1e-8)
    signature = [tf.TensorSpec([None, case.input_dim], gpflow.default_float())]
    compiled = tf.function(functions, input_signature=signature)  # AutoGraph stops at the door
    np.testing.assert_allclose(values, compiled(X.value()), rtol=1e-8, atol=1e-8)

    def total() -> tf.Tensor:
        return tf.reduce_sum(weights * functions(X.value()))

    assert_slopes(total, [X], rng, rtol=2e-5, atol=1e-7, step=1e-6)


# Functions of priors: the mean of products of their values is the kernel.

SE, M12, M32, M52 = (
    gpflow.kernels.SquaredExponential,
    gpflow.kernels.Matern12,
    gpflow.kernels.Matern32,
    gpflow.kernels.Matern52,
)


def globe() -> Kernel:
    return idm.kernels.ArcCosine(2, inputs="unit_vectors")


def mixture() -> Kernel:
    parts = [
        SpectralComponent([0.3, -0.1], variance=0.8, lag=0.02),
        SpectralComponent([0.1, 0.2], lag=[[0.03, 0.01], [0.01, 0.02]]),
    ]
    return idm.kernels.SpectralMixture(parts)


def colours() -> Kernel:
    bases = [SE(lengthscales=0.7), M52(variance=0.4)]
    return idm.kernels.Convolutional(idm.kernels.ChannelAdditive(bases, (1, 1)), (2, 1, 2), (1, 1))


def harmonic_patches() -> Kernel:
    base = idm.kernels.Convolutional(SE(lengthscales=1.2), (2, 2), (1, 2), weights=False)
    flip = idm.transforms.ImageFlip((1, 2), axis=1)
    return idm.kernels.HarmonicKernel(base, flip)


def product() -> Kernel:
    """A product of kernels; some have active_dims, and one has a frequency of one sign."""
    return (
        SE(lengthscales=[0.8, 1.1])
        * M32(active_dims=[1])
        * SpectralComponent([0.4], variance=1.2, lag=0.02, active_dims=[0])
        * gpflow.kernels.Constant(0.7)
    )


POINTS = np.array([[0.3, -1.1, 0.2, 0.5], [0.5, -0.8, 0.4, -0.3], [-0.9, 1.2, 0.1, 0.8]])
UNITS = POINTS[:, :3] / np.linalg.norm(POINTS[:, :3], axis=1, keepdims=True)

KERNELS: dict[str, tuple[Callable[[], Kernel], np.ndarray]] = {
    "squared-exponential": (lambda: SE(variance=1.4, lengthscales=[0.5, 1.2]), POINTS[:, :2]),
    "matern12": (lambda: M12(lengthscales=0.9, active_dims=[2, 0]), POINTS),
    "matern12-one-column": (lambda: M12(lengthscales=0.9), POINTS[:, :1]),
    "matern32-one-column": (lambda: M32(lengthscales=0.7), POINTS[:, :1]),
    "matern52": (lambda: M52(variance=0.6), POINTS[:, :3]),
    "exponential": (lambda: gpflow.kernels.Exponential(lengthscales=0.4), POINTS[:, :2]),
    "rational-quadratic": (lambda: gpflow.kernels.RationalQuadratic(alpha=0.7), POINTS[:, :2]),
    "cosine": (lambda: gpflow.kernels.Cosine(lengthscales=[2.0, 3.0]), POINTS[:, :2]),
    "constant": (lambda: gpflow.kernels.Constant(0.7), POINTS[:, :1]),
    "linear": (lambda: gpflow.kernels.Linear([0.7, 1.3]), POINTS[:, :2]),
    "product": (product, POINTS[:, :2]),
    "spectral-mixture": (mixture, POINTS[:, :2]),
    "unit-vectors": (globe, UNITS),
    "colours": (colours, POINTS),
    "harmonic-patches": (harmonic_patches, POINTS),
}


@pytest.mark.parametrize("name", KERNELS)
def test_the_covariance_of_functions_is_the_kernel(name: str) -> None:
    build, X = KERNELS[name]
    kernel = build()
    functions = sample_functions(kernel, NUM_SAMPLES, num_features=12, seed=5, input_dim=X.shape[1])
    assert_moments(functions, X, np.zeros([len(X), 1]), kernel(X).numpy()[None])


def test_what_a_zonal_spectrum_leaves_out_is_given_to_its_last_degree() -> None:
    """The last degree gets 4% of the variance of a rough kernel of a short lengthscale."""
    kernel = idm.kernels.SphericalMatern12(lengthscale=0.2)
    shares, own = variance_shares_of_degrees(kernel, 3), kernel.variance_shares(3, 128).numpy()
    np.testing.assert_allclose(shares[:-1], own[:-1], rtol=1e-12)
    assert len(shares) == 129 and np.sum(shares) == pytest.approx(1.0, rel=1e-12)
    assert shares[-1] - own[-1] == pytest.approx(0.04, abs=0.005)
    # Of the arc-cosine kernel of order 1 no odd degree above the first is there.
    shares = variance_shares_of_degrees(idm.kernels.ArcCosine(1), 3)
    assert shares[-1] > 0 and len(shares) % 2 == 1 and np.sum(shares) == pytest.approx(1.0)


def test_kernels_without_features_are_refused() -> None:
    """With what to use in their place."""
    images, white = gpflow.kernels.Convolutional(SE(), (2, 2), (1, 2)), gpflow.kernels.White()
    message = "^kernel must be .*, found .*FiniteRank.*predict_f_samples.*White"
    others = gpflow.kernels.Periodic(M32()), gpflow.kernels.Polynomial(2)
    assert_refused(
        (lambda kernel=kernel: sample_functions(kernel, 2, input_dim=4), message)
        for kernel in (white, SE() + white, images, *others)
    )
    columns = "input_dim must be given, .*SquaredExponential.* None"
    assert_refused([(lambda: sample_functions(SE(), 2), columns)])


# What inducing variables are of functions of the prior: against covariances, and exactly where
# functions are combinations of the features.

PROJECTED = {
    *("harmonics-chosen", "activation-softplus", "sum-with-points", "harmonic-negations"),
    *("harmonic-shared", "harmonic-complete", "patches", "channels", "orbits"),
}
"""One case for each way to compute inducing variables of functions of the prior."""


def drawn(kernel: Kernel, num_columns: int, num_samples: int, num_features: int) -> PriorSample:
    rng = np.random.default_rng(5)
    return prior_sample(kernel, Draws(rng, num_samples, num_features, num_columns))


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in PROJECTED], ids=lambda case: case.name
)
def test_covariances_with_f_and_of_u(case: Case) -> None:
    """Covariances with f and of u are Kuf and Kuu, to within the error of as many functions."""
    kernel, inducing_variable = case.build()
    X = make_inputs(case, 4)
    sample = drawn(kernel, case.input_dim, NUM_SAMPLES, 6)
    values = sample(tf.constant(X)).numpy()
    whole = Kuu(inducing_variable, kernel)
    scales = np.sqrt(np.diag(whole))  # any
    u = np.asarray(sample.project(inducing_variable)) / scales
    whole = whole / scales / scales[:, None]
    assert_mean(u[:, :, None] * u[:, None, :], whole, 2.0)
    cross = Kuf(inducing_variable, kernel, X) / scales[:, None]
    assert_mean(u[:, :, None] * values[:, None, :], cross, 2.0)


def harmonics() -> tuple[Kernel, InducingVariables, int]:
    smooth = idm.kernels.SphericalMatern52(weight_variances=[0.6, 1.7])
    kernel = idm.kernels.FreeSpectrum.from_kernel(smooth, input_dim=2, max_degree=4)
    features = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree=4)
    return kernel, features, 2


def activations() -> tuple[Kernel, InducingVariables, int]:
    """Activations, as many as the harmonics in them: they span the same functions."""
    first = idm.kernels.ArcCosine(1)
    kernel = idm.kernels.FreeSpectrum.from_kernel(first, input_dim=1, max_degree=4)
    features = idm.inducing_variables.ActivationFeatures.random(1, 7, "relu", 4, seed=1)
    return kernel, features, 1


@pytest.mark.parametrize("build", [harmonics, activations])
def test_features_that_are_all_of_the_prior_leave_nothing(build: object) -> None:
    """``f' = Kfu Kuu^{-1} u'``, function by function."""
    kernel, inducing_variable, num_columns = build()  # type: ignore[operator]
    sample = drawn(kernel, num_columns, 5, 20)
    X = np.random.default_rng(0).uniform(-1.5, 1.5, size=(9, num_columns))
    u = sample.project(inducing_variable)
    solved = np.linalg.solve(Kuu(inducing_variable, kernel), np.transpose(u))
    explained = np.transpose(solved) @ Kuf(inducing_variable, kernel, X)
    values = sample(tf.constant(X))
    np.testing.assert_allclose(explained, values, rtol=0, atol=1e-6 * np.max(np.abs(values)))

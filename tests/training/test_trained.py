"""What is said of features that end, of boxes and frequencies that were outgrown, and of rows
beyond a box."""

from __future__ import annotations

import warnings

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from interdomain import fit
from interdomain.inducing_variables import (
    BoxFourierFeatures,
    SphericalHarmonics,
    SumInducingVariables,
)
from interdomain.kernels import FiniteRank, Periodized, SphericalMatern52
from interdomain.models import StructuredSGPR
from interdomain.training.trained import warn_of_fit

X = np.linspace(0, 10, 80)[:, None]
Y = np.sin(3 * X) + 0.1 * np.cos(17 * X)


def model(
    *, lengthscale: float = 1.0, num_inducing: int = 41, finite_rank: bool = True
) -> StructuredSGPR:
    base = gpflow.kernels.Matern32(lengthscales=lengthscale)
    kernel = Periodized.from_data(base, X)
    features = BoxFourierFeatures.for_kernel(kernel, num_inducing)
    prior = FiniteRank(kernel, features) if finite_rank else kernel
    return StructuredSGPR((X, Y), prior, features, noise_variance=0.01)


def found(of: StructuredSGPR) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_fit(of, None)
    return [str(warning.message) for warning in caught]


def test_margin_outgrown() -> None:
    trained = model()
    assert found(trained) == []
    assert trained.kernel.kernel.margin == pytest.approx([4.0])
    trained.kernel.kernel.base_kernel.lengthscales.assign(3.0)
    (message,) = found(trained)
    assert message.startswith("kernel: the lengthscale of column 0, 3, has outgrown the margin")
    # One that no longer varies over the box has no ends that could see each other.
    trained.kernel.kernel.base_kernel.lengthscales.assign(100.0)
    assert found(trained) == []


def test_frequencies_outgrown() -> None:
    trained = model()
    trained.kernel.kernel.base_kernel.lengthscales.assign(0.1)
    (message,) = found(trained)
    whole = trained.kernel.kernel.total_variance()
    share = 1 - trained.kernel(X[:1], full_cov=False)[0] / whole
    assert 0.25 < share < 1
    assert f"{share.numpy():.0%} of the variance of the base kernel" in message


def test_whole_kernels_are_charged_for() -> None:
    trained = model(num_inducing=11, finite_rank=False)
    kernel, features = trained.kernel, trained.inducing_variable
    left = kernel.total_variance() - kernel.explained_variance(features.frequencies)
    assert trained.unexplained_variance() == pytest.approx(float(left), rel=1e-8)
    (message,) = found(trained)
    assert message.startswith("inducing_variable: the BoxFourierFeatures end")
    assert f"the bound pays {float(left) / 0.02:.2g} a row" in message
    with pytest.warns(UserWarning, match="the bound pays"):
        fit(trained, steps=1, progress=False)
    trained.likelihood.variance.assign(100.0)
    assert found(trained) == []


def test_what_features_leave_depends_on_the_rows() -> None:
    """Of chosen harmonics, which are not the same everywhere; not of points, which are trained."""
    kernel = SphericalMatern52(weight_variances=[2.0, 0.01], active_dims=[1, 0])
    rows = np.random.default_rng(0).normal(size=[30, 2])
    chosen = SphericalHarmonics.for_data(kernel, rows, 12)
    likelihood = gpflow.likelihoods.Gaussian(0.01)
    fewer = SphericalHarmonics(3, chains=chosen.chains[:5], column_order=chosen.column_order)
    left = kernel(rows, full_cov=False) - FiniteRank(kernel, chosen)(rows, full_cov=False)
    with pytest.warns(UserWarning, match=f"SphericalH.*{np.mean(left) / 0.02:.2g} a row for the"):
        warn_of_fit(gpflow.models.SVGP(kernel, likelihood, chosen), rows)
    with pytest.warns(UserWarning, match="the SphericalHarmonics end, the kernel does not"):
        warn_of_fit(gpflow.models.SVGP(FiniteRank(kernel, chosen), likelihood, fewer), rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for svgp in (
            gpflow.models.SVGP(FiniteRank(kernel, chosen), likelihood, chosen),
            gpflow.models.SVGP(gpflow.kernels.Matern32(), likelihood, rows[:3].copy()),
        ):
            warn_of_fit(svgp, rows)


# Rows beyond the box of Fourier features: refused in training, and predictions there warn.

ROWS = np.random.default_rng(0).uniform(size=[60, 3])
TARGETS = np.sin(5 * ROWS[:, :1]) * ROWS[:, 2:]
BEYOND = np.concatenate([ROWS, [[0.5, 0.5, 3.0]]]), np.concatenate([TARGETS, [[0.0]]])
MESSAGE = r"1 of 61 rows of .*X is outside of the box .*column 2 goes from .* to 3"


def parts() -> tuple[FiniteRank, BoxFourierFeatures]:
    """On columns 2 and 0, in this order."""
    base = gpflow.kernels.Matern32(lengthscales=[0.3, 0.2])
    kernel = Periodized.from_data(base, ROWS[:, [2, 0]], active_dims=[2, 0])
    features = BoxFourierFeatures.for_kernel(kernel, 25)
    return FiniteRank(kernel, features), features


def test_one_pass_refuses_them() -> None:
    model = StructuredSGPR(BEYOND, *parts(), noise_variance=0.1, progress=False)
    with pytest.raises(ValueError, match=MESSAGE) as error:
        fit(model, progress=False)
    assert "Periodized.from_data(base_kernel, X)" in str(error.value)


def test_minibatches_refuse_them() -> None:
    """Also of features in a sum."""
    kernel, features = parts()
    kernel = kernel + gpflow.kernels.White(0.1)
    features = SumInducingVariables([features, None])
    likelihood = gpflow.likelihoods.Gaussian(0.1)
    model = gpflow.models.SVGP(kernel, likelihood, features, num_data=61)
    with pytest.raises(ValueError, match=rf"^data: {MESSAGE}.*the prior repeats; make the kernel"):
        fit(model, BEYOND, steps=1, batch_size=61, progress=False)


def test_predictions_warn() -> None:
    model = StructuredSGPR((ROWS, TARGETS), *parts(), noise_variance=0.1, progress=False)
    posterior = model.posterior()
    with pytest.warns(UserWarning, match="Xnew: 1 of 61 rows are outside of the box") as found:
        mean, _ = posterior.predict_f(BEYOND[0])
    assert found[0].filename == __file__  # the line that asked
    period = model.kernel.kernel.periods[0]
    with pytest.warns(UserWarning, match="60 of 60 rows"):
        again, _ = posterior.predict_f(ROWS + [0, 0, period])
    np.testing.assert_allclose(again, mean[:60], rtol=1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        posterior.predict_f(ROWS)
        tf.function(posterior.predict_f)(tf.constant(BEYOND[0]))  # where nothing is known of X

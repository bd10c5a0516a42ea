"""Checks of targets: the densities of a likelihood, and columns, types and values of Y."""

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow import likelihoods as of
from gpflow.likelihoods import Gaussian

import interdomain as idm
from interdomain._targets import densities_of
from interdomain.models import StructuredSGPR
from interdomain.training.data_checks import batches_of
from tests.models.svgp.small import (
    MISSING,
    VALUES,
    KnownNoise,
    WithoutMissing,
    X,
    Z,
    by_source,
    collapsed,
    kernel,
    points,
    svgp,
    with_method_replaced,
)


class Renamed(Gaussian):
    """Another constructor, and nothing else."""

    def __init__(self) -> None:
        super().__init__(0.2)


def test_whose_densities_a_likelihood_has() -> None:
    class Mixed(gpflow.base.Module):
        def _scalar_log_prob(self, X: Any, F: Any, Y: Any) -> Any:
            return F

    class OfAMixin(Mixed, Gaussian):
        """Its densities come before those of Gaussian."""

    for likelihood in (Gaussian(), Renamed(), of.Bernoulli()):
        assert densities_of(likelihood) in (Gaussian, of.Bernoulli)
    for other in (WithoutMissing(), OfAMixin(), with_method_replaced(), None, object()):
        assert densities_of(other) is None


@pytest.mark.parametrize("make", [WithoutMissing, with_method_replaced], ids=["class", "instance"])
def test_the_closed_form_is_for_the_densities_of_gaussian(make: Any) -> None:
    Y = np.where(np.arange(len(X))[:, None] % 3 == 0, MISSING, np.sin(3 * X))
    with pytest.raises(ValueError, match="densities of its own; .*DualSVGP"):
        StructuredSGPR((X, Y), kernel(), points(), likelihood=make())
    for own in (Renamed(), Gaussian(0.2)):
        assert StructuredSGPR((X, X), kernel(), points(), likelihood=own).likelihood is own


SOURCES = np.random.default_rng(1).integers(0, 2, X.shape).astype(float)


def log_evidence(noise: Any) -> float:
    """The log evidence of VALUES under the prior of the points' projection, in NumPy."""
    Kzx, Kzz = kernel()(Z, X).numpy(), kernel()(Z).numpy()
    covariance = Kzx.T @ np.linalg.solve(Kzz + gpflow.default_jitter() * np.eye(len(Z)), Kzx)
    rest = kernel()(X, full_cov=False).numpy() - np.diag(covariance)
    covariance += np.diag(noise)
    alpha = np.linalg.solve(covariance, VALUES)
    determinant = np.linalg.slogdet(2 * np.pi * covariance)[1]
    return -0.5 * (float(np.sum(VALUES * alpha)) + determinant + np.sum(rest / noise))


def test_noise_by_source_has_one_function() -> None:
    """GPflow #1712: the column that says which likelihood a row has is no function's."""
    Y = np.hstack([VALUES, SOURCES])
    noise = np.where(SOURCES[:, 0] == 1, 0.4, 0.05)
    told = np.hstack([VALUES, noise[:, None]])
    for model in (
        collapsed(by_source(), Y),
        collapsed(KnownNoise(), told),
        collapsed(KnownNoise(None, None), told, num_latent_gps=1),
    ):
        assert model.num_latent_gps == 1
        model.assign_sites(model.pass_over_data().sites)
        assert float(model.elbo()) == pytest.approx(log_evidence(noise), rel=1e-6)


CLASSES = np.digitize(X, [-0.3, 0.4])
ONE_HOT = np.eye(3)[CLASSES[:, 0]]
MIXED = of.SwitchedLikelihood([Gaussian(), of.Bernoulli()])
TWO = np.hstack([VALUES, -VALUES, SOURCES])


def test_messages_of_wrong_targets() -> None:
    """Messages that test_likelihoods_and_targets does not read; GPflow #438, #1591, #2123."""
    classes = r"Y has 3 columns.*np.argmax\(Y, axis=1\)"
    last = "one of the 2 likelihoods: 0, ..., 1, in the last"
    for likelihood, Y, num_latent_gps, message in (
        (of.Poisson(), 0 * X + 0.5, None, "data: Y must be counts: .* found 0.5"),
        (of.Bernoulli(), 2 * SOURCES, None, "data: Y must be 0 or 1 .* found 0, 2; pass such"),
        (of.MultiClass(3), ONE_HOT, None, classes),
        (MIXED, np.hstack([VALUES, SOURCES / 2]), None, last),
        (MIXED, SOURCES, None, "Y has 1 columns, .* SwitchedLikelihood likelihood take 2"),
        (Gaussian(), TWO[:, :2], 1, "Y has 2 columns, .* Gaussian likelihood take 1"),
        (KnownNoise(), TWO[:, :2], 2, "num_latent_gps must be 1 for KnownNoise, found 2"),
    ):
        with pytest.raises(ValueError, match=message):
            collapsed(likelihood, Y, num_latent_gps=num_latent_gps).sites_of(X, Y)
        if num_latent_gps is None:
            model = svgp(likelihood, likelihood.latent_dim or 1)
            with pytest.raises(ValueError, match=message):
                idm.fit(model, (X, Y), steps=1, progress=False)
    assert collapsed(by_source(), TWO).num_latent_gps == 2
    assert collapsed(KnownNoise(None, None), TWO).num_latent_gps == 3  # of nothing that says more


def test_classes_of_any_type_have_densities() -> None:
    """Softmax takes integers only."""
    model = collapsed(of.Softmax(3), CLASSES)
    densities = []
    for rows in (CLASSES, CLASSES.astype(float), CLASSES.astype(np.uint8)):
        tf.random.set_seed(0)
        densities.append(model.predict_log_density((X, rows)).numpy())
    np.testing.assert_array_equal(densities[:-1], densities[1:])


def test_every_batch_of_a_dataset_is_looked_at() -> None:
    wrong = np.where(np.arange(len(X))[:, None] == 7, 3, CLASSES)
    dataset = tf.data.Dataset.from_tensor_slices((X, wrong)).batch(6)
    batches = batches_of(svgp(of.Softmax(3), 3), dataset, batch_size=None, seed=0)
    batches.batch(0)
    with pytest.raises(ValueError, match="one of the 3 classes: .* Softmax, found 0, 1, ..., 3"):
        batches.batch(1)


# Values of Y that are missing, for likelihoods that leave them out.


class LeavesOutNaN(Gaussian):
    """Gaussian, where NaN says nothing, output by output."""

    allow_nan = True

    def _variational_expectations(self, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> Any:
        known, noise = ~tf.math.is_nan(Y), self._variance(X)
        square = tf.square(tf.where(known, Y - Fmu, 0.0))
        each = -0.5 * (tf.math.log(2 * np.pi * noise) + (square + Fvar) / noise)
        return tf.reduce_sum(tf.where(known, each, 0.0), axis=-1)


def with_missing() -> Any:
    """Two outputs, of which different rows are missing; one row of both."""
    Y = np.hstack([VALUES, np.cos(3 * X)])
    Y[::3, 0] = Y[1::4, 1] = Y[0, 1] = np.nan
    return Y


def means_of_known(Y: Any, noise: float) -> Any:
    """The mean of each output, by NumPy, from the rows in which it is known."""
    columns = []
    for column in Y.T:
        rows = ~np.isnan(column)
        Kzx = kernel()(Z, X[rows]).numpy()
        jitter = gpflow.default_jitter() * np.eye(len(Z))
        weights = np.linalg.solve(kernel()(Z).numpy() + jitter + Kzx @ Kzx.T / noise, Kzx)
        columns.append(kernel()(X, Z).numpy() @ weights @ column[rows] / noise)
    return np.transpose(columns)


def test_values_that_are_missing_are_left_out_output_by_output() -> None:
    Y, likelihood = with_missing(), LeavesOutNaN(0.2)
    expected = means_of_known(Y, 0.2)
    numbers = np.where(np.isnan(Y), MISSING, Y)
    for model in (collapsed(WithoutMissing(0.2), numbers), collapsed(likelihood, Y)):
        model.assign_sites(model.pass_over_data().sites)
        np.testing.assert_allclose(model.predict_f(X)[0], expected, rtol=1e-8, atol=1e-10)
    assert model.num_data == len(X)
    elbo = float(model.elbo())
    assert float(model.to_svgp().elbo((X, Y))) == pytest.approx(elbo, rel=1e-10)
    trained = svgp(likelihood, 2)
    gpflow.set_trainable(likelihood, False)
    idm.fit(
        trained,
        (X, Y),
        batch_size=len(X),
        optimizer=gpflow.optimizers.NaturalGradient(1.0),
        steps=1,
        progress=False,
    )
    np.testing.assert_allclose(trained.predict_f(X)[0], expected, rtol=1e-6, atol=1e-8)


def test_nan_and_infinity_are_refused() -> None:
    """NaN by all likelihoods with GPflow's densities, which name the way; infinity by all."""
    Y, declared = with_missing(), Gaussian(0.2)
    declared.allow_nan = True  # its densities are those of GPflow: NaN
    infinite = np.where(np.isnan(Y), np.inf, VALUES)
    way = "DualSVGP or gpflow.models.SVGP.*allow_nan = Tr"
    for likelihood, targets, message in (
        (LeavesOutNaN(0.2), infinite, "6 rows have NaN|in 6 of 12"),
        (declared, Y, way),
    ):
        with pytest.raises(ValueError, match=message):
            collapsed(likelihood, targets).pass_over_data()
        with pytest.raises(ValueError, match=message):
            idm.fit(svgp(likelihood, 2), (X, targets), progress=False)
    with pytest.raises(ValueError, match=way):
        StructuredSGPR((X, Y), kernel(), points(), progress=False).elbo()

"""Values of Y that are missing, for likelihoods that leave them out."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.likelihoods import Gaussian

import interdomain as idm
from interdomain.models import StructuredSGPR
from tests.svgp.small import (
    MISSING,
    VALUES,
    WithoutMissing,
    X,
    Z,
    collapsed,
    kernel,
    points,
    svgp,
)


class LeavesOutNaN(Gaussian):
    """Gaussian, where NaN says nothing, output by output."""

    allow_nan = True

    def _variational_expectations(self, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> Any:
        return self._of_known(Y, Fmu, self._variance(X), Fvar / self._variance(X))

    def _of_known(self, Y: Any, mean: Any, variance: Any, more: Any) -> Any:
        known = ~tf.math.is_nan(Y)
        square = tf.square(tf.where(known, Y - mean, 0.0)) / variance
        each = -0.5 * (tf.math.log(2 * np.pi * variance) + square + more)
        return tf.reduce_sum(tf.where(known, each, 0.0), axis=-1)


def with_missing() -> Any:
    """Two outputs, of which different rows are missing; one row of both."""
    Y = np.hstack([VALUES, np.cos(3 * X)])
    Y[::3, 0] = Y[1::4, 1] = Y[0, 1] = np.nan
    return Y


def means_of_known(Y: Any, noise: float) -> Any:
    """Of each output, by NumPy, from the rows that there are of it."""
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

"""Likelihoods that fail alone are named; what a race says of targets that are no values."""

from __future__ import annotations

import pickle
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.likelihoods import Gaussian

import interdomain as idm
from interdomain.training.validation import failing_likelihood
from tests.models.small import (
    MISSING,
    VALUES,
    WithoutMissing,
    X,
    collapsed,
    svgp,
)


class WithoutEdges(gpflow.likelihoods.Ordinal):
    """GPflow's, as with versions of TensorFlow whose erf of infinity is NaN."""

    def _scalar_log_prob(self, X: Any, F: Any, Y: Any) -> Any:
        inside = super()._scalar_log_prob(X, F, tf.ones_like(Y))
        return tf.where(tf.equal(Y, 1), inside, np.nan)


class SteepWhereMissing(WithoutMissing):
    """Values that are finite, and slopes that are not: zero times that of a root at zero."""

    def _variational_expectations(self, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> Any:
        each = tf.where(tf.equal(Y, MISSING), tf.sqrt(0.0 * Fmu), -tf.square(Y - Fmu))
        return tf.reduce_sum(each, axis=-1)


def edges() -> Any:
    return np.digitize(X, [-0.5, 0.5]).astype(float)


def test_a_likelihood_that_fails_alone_is_named() -> None:
    ordinal, missing = WithoutEdges(np.array([-0.5, 0.5])), SteepWhereMissing()
    Y = np.where(np.arange(len(X))[:, None] % 3 == 0, MISSING, VALUES)
    for likelihood, targets, shown in (ordinal, edges(), "0, 2"), (missing, Y, "-999"):
        said = failing_likelihood(svgp(likelihood), X, targets)
        kind = type(likelihood).__name__
        assert said is not None and f"density of {kind}, or its slope, is not finite" in said
        assert f"for Y = {shown}, although" in said
    for likelihood, targets in (ordinal, np.ones_like(X)), (WithoutMissing(), Y), (Gaussian(), X):
        assert failing_likelihood(svgp(likelihood), X, targets) is None


@pytest.mark.parametrize("optimizer", [None, 0.01])
def test_a_fit_names_the_likelihood_that_fails(optimizer: float | None) -> None:
    model = svgp(WithoutEdges(np.array([-0.5, 0.5])))
    with pytest.raises(idm.training.NonFiniteError, match="for Y = 0, 2, alth") as caught:
        idm.training.fit(model, (X, edges()), optimizer=optimizer, steps=2, progress=False)
    assert "standardised" not in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_passes_name_the_likelihood_that_fails() -> None:
    model = collapsed(WithoutEdges(np.array([-0.5, 0.5])), edges())
    with pytest.raises(ValueError, match="^likelihood: .* WithoutEdges, .* Y = 0, 2, although"):
        idm.training.fit_collapsed(model, progress=False)
    far = collapsed(gpflow.likelihoods.Poisson(), np.ones_like(X))
    far.kernel.variance.assign(1e5)
    with pytest.raises(ValueError, match="check the kernel's parameters"):
        idm.training.fit_collapsed(far, progress=False)

"""SVGP: objective, gradients and predictions, in every form of q(u)."""

from __future__ import annotations

import itertools

import gpflow
import pytest
import tensorflow as tf

from .cases import CASES, Case
from .dense_twin import dense_twin
from .helpers import assert_close, assert_same_objective, make_data, make_inputs, make_svgp

# Half of the eight: every two of the three options in every combination.
PAIRWISE = {
    "whitened-diagonal-1": (True, True, 1),
    "whitened-full-3": (True, False, 3),
    "unwhitened-diagonal-3": (False, True, 3),
    "unwhitened-full-1": (False, False, 1),
}


@pytest.mark.parametrize(
    ("whiten", "q_diag", "num_latent_gps"), PAIRWISE.values(), ids=list(PAIRWISE)
)
def test_elbo_and_gradients(case: Case, whiten: bool, q_diag: bool, num_latent_gps: int) -> None:
    model = make_svgp(case, whiten=whiten, q_diag=q_diag, num_latent_gps=num_latent_gps)
    twin = dense_twin(model)
    data = make_data(case, num_latent_gps)
    assert_same_objective(
        lambda: model.elbo(data), lambda: twin.elbo(data), model.trainable_variables
    )


@pytest.mark.parametrize(
    ("case", "whiten", "q_diag", "num_latent_gps"),
    [
        pytest.param(case, *options, id=f"{case.name}-{name}")
        for case, (name, options) in zip(CASES, itertools.cycle(PAIRWISE.items()), strict=False)
    ],
)
def test_predict_f(case: Case, whiten: bool, q_diag: bool, num_latent_gps: int) -> None:
    """Each case in every form, with two latent GPs, is in test_posteriors.py: the same fused
    prediction. Here other numbers of latent GPs, in one form for each case."""
    model = make_svgp(case, whiten=whiten, q_diag=q_diag, num_latent_gps=num_latent_gps)
    twin = dense_twin(model)
    X = make_inputs(case, 6)
    for full_cov in (False, True):
        for full_output_cov in (False, True) if num_latent_gps > 1 else (False,):
            options = {"full_cov": full_cov, "full_output_cov": full_output_cov}
            assert_close(
                model.predict_f(X, **options), twin.predict_f(X, **options), message=str(options)
            )


@pytest.mark.parametrize(
    ("whiten", "q_diag"),
    [(True, False), (False, True)],
    ids=["whitened-full", "unwhitened-diagonal"],
)
def test_prediction_gradients(case: Case, whiten: bool, q_diag: bool) -> None:
    """Of a joint prediction, with respect to each parameter and to the inputs. Those of a cached
    prediction in test_posteriors.py take the other two forms of q."""
    model = make_svgp(case, whiten=whiten, q_diag=q_diag)
    twin = dense_twin(model)
    X = tf.Variable(make_inputs(case, 5))

    def summary(m: gpflow.models.SVGP) -> tf.Tensor:
        mean, cov = m.predict_f(X, full_cov=True)
        return tf.reduce_sum(tf.sin(mean)) + tf.reduce_sum(tf.sin(cov))

    likelihood = model.likelihood.variance.unconstrained_variable
    variables = tuple(v for v in model.trainable_variables if v is not likelihood)
    assert_same_objective(lambda: summary(model), lambda: summary(twin), (*variables, X))


def test_non_gaussian_likelihood(case: Case) -> None:
    model = make_svgp(case, likelihood=gpflow.likelihoods.Bernoulli())
    twin = dense_twin(model)
    X, Y = make_data(case)
    data = (X, (Y > 0).astype(Y.dtype))
    assert_same_objective(
        lambda: model.elbo(data), lambda: twin.elbo(data), model.trainable_variables
    )


def test_minibatch_scaling(case: Case) -> None:
    """The data term of a third of the data counts three times."""
    model = make_svgp(case)
    X, Y = make_data(case)
    kl = model.prior_kl()
    model.num_data = None
    once = model.elbo((X, Y)) + kl
    model.num_data = 3 * len(X)
    assert_close(model.elbo((X, Y)) + kl, 3 * once)

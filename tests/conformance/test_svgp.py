"""SVGP in every form of q(u): the objective, and predictions by every way that GPflow has.

For each case the forms share a kernel and an inducing variable, and all ways to predict share the
oracle's predictions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from check_shapes import disable_check_shapes
from gpflow.posteriors import PrecomputeCacheType

from .cases import CASES, ONE_OF_EACH_KIND, Case
from .dense_twin import dense_twin
from .helpers import assert_close, assert_same_objective, make_data, make_inputs, make_svgp
from .selection import each_class_quick_each_kind, every_case_quick_each_kind, param

FORMS = {
    "whitened-diagonal": (True, True),
    "unwhitened-full": (False, False),
    "whitened-full": (True, False),
    "unwhitened-diagonal": (False, True),
}
HALVES = (tuple(FORMS)[:2], tuple(FORMS)[2:])


def number_of_latent_gps(case: Case, form: str) -> int:
    """One, two or three: each form has each number with several cases."""
    return (1, 2, 3, 2)[(CASES.index(case) + list(FORMS).index(form)) % 4]


def models(case: Case, forms: Iterable[str]) -> Iterator[tuple[str, gpflow.models.SVGP]]:
    """One for each form of q, with the same kernel and inducing variable."""
    parts = case.build()
    for form in forms:
        whiten, q_diag = FORMS[form]
        latent = number_of_latent_gps(case, form)
        yield (
            f"{form}, P = {latent}",
            make_svgp(case, whiten=whiten, q_diag=q_diag, num_latent_gps=latent, parts=parts),
        )


def covariances(whiten: bool, q_diag: bool, other: bool = False) -> list[tuple[bool, bool]]:
    """Two of the four kinds of covariance for each form of q, or the other two: any three of the
    four options occur in every combination."""
    return [(full_cov, full_cov ^ whiten ^ q_diag ^ other) for full_cov in (False, True)]


def of_all_outputs(cov: tf.Tensor, full_cov: bool) -> np.ndarray:
    """Of independent outputs: ``[N, P]`` as ``[N, P, P]``, ``[P, N, N]`` as ``[N, P, N, P]``."""
    latent = cov.shape[0 if full_cov else 1]
    if full_cov:
        return np.einsum("pnm,pq->npmq", cov, np.eye(latent))
    return np.einsum("np,pq->npq", cov, np.eye(latent))


@pytest.mark.parametrize(
    ("case", "forms"),
    [
        param(
            case,
            half,
            id=f"{case.name}-{'-'.join(half)}",
            quick=case.representative and h == k % 2,
        )
        for k, case in enumerate(CASES)
        for h, half in enumerate(HALVES)
        # How q is given does not matter to the family, but to the kind of its operator.
        if case in ONE_OF_EACH_KIND or h == k % 2
    ],
)
def test_elbo_gradients_and_predictions(case: Case, forms: tuple[str, ...]) -> None:
    """The elbo with its gradients; predictions, marginal and joint over inputs and over outputs:
    fused, from a cache, by a conditional, and from a posterior made of arrays."""
    X = make_inputs(case, 5)
    for form, model in models(case, forms):
        twin, data = dense_twin(model), make_data(case, model.num_latent_gps)
        assert_same_objective(
            lambda: model.elbo(data),  # noqa: B023
            lambda: twin.elbo(data),  # noqa: B023
            model.trainable_variables,
            message=form,
        )
        kernel, u, whiten = model.kernel, model.inducing_variable, model.whiten
        q_mu, q_sqrt = tf.constant(model.q_mu), tf.constant(model.q_sqrt)
        shift = model.mean_function(X)
        cached = model.posterior(PrecomputeCacheType.TENSOR)
        references = {full_cov: twin.predict_f(X, full_cov=full_cov) for full_cov in (False, True)}

        def reference(full_cov: bool, full_output_cov: bool) -> tuple[tf.Tensor, tf.Tensor]:
            mean, cov = references[full_cov]  # noqa: B023
            return mean, of_all_outputs(cov, full_cov) if full_output_cov else cov

        q_diag = q_sqrt.shape.rank == 2
        for kinds in covariances(whiten, q_diag):
            options = {"full_cov": kinds[0], "full_output_cov": kinds[1]}
            message, desired = f"{form} {options}", reference(*kinds)
            assert_close(model.predict_f(X, **options), desired, message=f"fused {message}")
            assert_close(cached.predict_f(X, **options), desired, message=f"cached {message}")
        with disable_check_shapes():  # they see the same shapes as above
            from_arrays = gpflow.posteriors.create_posterior(kernel, u, q_mu, q_sqrt, whiten)
            for kinds in covariances(whiten, q_diag, other=True):
                options = {"full_cov": kinds[0], "full_output_cov": kinds[1]}
                message, (mean, cov) = f"{form} {options}", reference(*kinds)
                actual = gpflow.conditionals.conditional(
                    X, u, kernel, q_mu, q_sqrt=q_sqrt, white=whiten, **options
                )
                assert_close(actual, (mean - shift, cov), message=f"conditional {message}")
                assert_close(
                    from_arrays.predict_f(X, **options),
                    (mean - shift, cov),
                    message=f"from arrays {message}",
                )


@every_case_quick_each_kind
def test_prediction_gradients(case: Case) -> None:
    """Of a joint prediction, with respect to each parameter and to the inputs; and, for the other
    two forms of q, of a cached prediction with respect to q and to the inputs. One of each kind of
    operator has all forms of q, the others one of each two, in turn."""
    X = tf.Variable(make_inputs(case, 5))

    def summary(prediction: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        mean, cov = prediction
        return tf.reduce_sum(tf.sin(mean)) + tf.reduce_sum(tf.sin(cov))

    def fused(model: gpflow.models.SVGP) -> tf.Tensor:
        return summary(model.predict_f(X, full_cov=True))

    def cached(model: gpflow.models.SVGP) -> tf.Tensor:
        return summary(model.posterior(PrecomputeCacheType.TENSOR).predict_f(X))

    turn = CASES.index(case) % 2
    forms = FORMS if case in ONE_OF_EACH_KIND else (HALVES[0][turn], HALVES[1][turn])
    for form, model in models(case, forms):
        twin = dense_twin(model)
        if form.startswith(HALVES[0]):
            function, of_q = cached, (model.q_mu, model.q_sqrt)
            variables = tuple(p.unconstrained_variable for p in of_q)
        else:
            function, likelihood = fused, model.likelihood.variance.unconstrained_variable
            variables = tuple(v for v in model.trainable_variables if v is not likelihood)
        assert_same_objective(
            lambda: function(model),  # noqa: B023
            lambda: function(twin),  # noqa: B023
            (*variables, X),
            message=form,
        )


@each_class_quick_each_kind
def test_non_gaussian_likelihood(case: Case) -> None:
    model = make_svgp(case, likelihood=gpflow.likelihoods.Bernoulli())
    twin = dense_twin(model)
    X, Y = make_data(case)
    data = (X, (Y > 0).astype(Y.dtype))
    assert_same_objective(
        lambda: model.elbo(data), lambda: twin.elbo(data), model.trainable_variables
    )


@each_class_quick_each_kind
def test_minibatch_scaling(case: Case) -> None:
    """The data term of a third of the data counts three times."""
    model = make_svgp(case)
    X, Y = make_data(case)
    kl = model.prior_kl()
    model.num_data = None
    once = model.elbo((X, Y)) + kl
    model.num_data = 3 * len(X)
    assert_close(model.elbo((X, Y)) + kl, 3 * once)

"""The function ``check_family``, which tests an inducing variable against dense linear algebra."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.conditionals.util import base_conditional
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from ._arguments import filled_matrix
from ._functional_checks import acted_on
from .core.pairs import Kuf_in_domain, Kuu_operator, as_family, feature_sums
from .linalg.full import stack

__all__ = ["check_family"]


def check_family(
    inducing_variable: InducingVariables,
    kernel: Kernel,
    X: TensorType,
    *,
    jitter: float = 1e-6,
    rtol: float = 1e-8,
) -> None:
    """Check an inducing variable and a kernel, values and gradients, against dense linear algebra.

    The checks cover what models use: Kuf with leading dimensions; Kuu as a matrix and as an
    operator, its root, and batches of Kuu; the part of the kernel that the features explain, which
    must equal the family's own value and not exceed the kernel; sums over rows; and the posterior
    of an SVGP. A slope, a mean and a blur of the features (:mod:`interdomain.functionals`) are
    checked against differences and quadrature of Kuf, in one column. Functionals that the features
    refuse by a ValueError are left out. Use float64 (``gpflow.default_float()``), and parameters
    under which Kuu is not nearly singular.

    >>> import numpy as np, interdomain as idm
    >>> kernel = idm.kernels.SphericalMatern52()
    >>> harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree=3)
    >>> X = np.random.default_rng(0).normal(size=[20, 2])
    >>> idm.testing.check_family(harmonics, kernel, X)

    :param inducing_variable: An inducing variable of one output, with M variables.
        :param kernel: A kernel of one output, with which the inducing variable has covariances.
        :param X: Rows ``[N, D]`` in the domain of the features, a few tens.
        :param jitter: The jitter that is added to Kuu before it is factorised.
        :param rtol: The largest allowed difference, relative to the largest number of an array.
        :raises AssertionError: If a check fails; the message names the check.
    """
    X = filled_matrix("X", X, "[N, D]").astype(gpflow.default_float())
    rng, size = np.random.default_rng(0), int(inducing_variable.num_inducing)
    close = partial(_close, rtol)
    features = Kuf(inducing_variable, kernel, X).numpy()
    _equal("the shape of Kuf", features.shape, (size, len(X)))
    batches = Kuf(inducing_variable, kernel, np.stack([X, X[::-1]]))
    close("Kuf with leading dimensions", batches, np.stack([features, features[:, ::-1]], axis=1))
    close("Kuf_in_domain", Kuf_in_domain(inducing_variable, kernel, X), features)

    operator = Kuu_operator(inducing_variable, kernel, jitter=jitter)
    dense = operator.to_dense().numpy()
    plain = Kuu(inducing_variable, kernel).numpy()
    _equal("the shape of Kuu", dense.shape, (size, size))
    close("Kuu as an operator", Kuu_operator(inducing_variable, kernel).to_dense(), plain)
    close("the transpose of Kuu", plain.T, plain)
    added = np.diag(Kuu(inducing_variable, kernel, jitter=0.5).numpy() - plain)
    assert np.all(added > 0), f"Kuu(jitter=0.5) must add to the diagonal, found {added.min()}"
    assert np.linalg.eigvalsh(dense)[0] > 0, "Kuu must be positive definite"

    root, L = operator.root(), np.linalg.cholesky(dense)
    close("root().solve", root.solve(features), np.linalg.solve(L, features))
    close("root().log_determinant()", root.log_determinant(), np.log(np.diag(L)).sum())
    close("root().inverse_diagonal()", root.inverse_diagonal(), np.diag(np.linalg.inv(dense)))
    A = np.linalg.solve(L, features)
    inverse, tensors = root.inverse()
    close("root().inverse()", inverse(tensors, features), A)
    several = stack([operator, operator])
    close("stacked_with", several.root().solve(np.stack([features] * 2)), np.stack([A, A]))
    close("cast", operator.cast(tf.float32).to_dense(), dense.astype(np.float32), 1e-5)

    inside = A.T @ A
    left = np.linalg.eigvalsh(kernel(X).numpy() - inside)
    assert left[0] > -1e-8 * np.trace(inside), (
        f"the features explain more of the kernel than there is: {left[0]} is left"
    )
    family, base = as_family(inducing_variable, kernel)
    with gpflow.config.as_context(gpflow.config.Config(jitter=jitter)):
        for X2, expected in ((None, inside), (X[:3], inside[:, :3])):
            close("explained", family.explained(base, X, X2), expected, 1e-5)
    terms = family.explained_terms(base)
    if terms is not None:
        diagonal = tf.add_n([factor() * row(tf.constant(X)) for row, factor in terms])
        close("explained_terms", diagonal, np.diag(inside), 1e-5)

    weights, targets = rng.uniform(size=[len(X), 2]), rng.normal(size=[len(X), 3])
    sums = feature_sums(inducing_variable, kernel, X, None, targets)
    close("sums", sums.gram, features @ features.T)
    close("sums of targets", sums.products, features @ targets)
    weighted = feature_sums(inducing_variable, kernel, X, weights, targets).gram
    close("weighted sums", weighted, np.einsum("mn,nl,kn->lmk", features, weights, features))

    parts = tf.nest.flatten([kernel.trainable_variables, inducing_variable.trainable_variables])
    variables = list({id(variable): variable for variable in parts}.values())
    acted = acted_on(inducing_variable, kernel, X)
    if acted.names:
        (actual, slopes), (expected, expected_slopes) = (
            _with_gradients(one, variables) for one in (acted.closed, acted.reference)
        )
        for name, one, other in zip(acted.names, actual, expected, strict=True):
            close(f"{name} of the features", one, other, 1e-6, acted.size)
        for variable, one, other in zip(variables, slopes, expected_slopes, strict=True):
            close(f"the gradient of functionals to {variable.name}", one, other, 1e-5, acted.size)

    # Mean and variance of an SVGP with a random q, and their gradients, against GPflow's.
    q_mu = tf.constant(rng.normal(size=[size, 1]))
    q_sqrt = tf.constant(0.3 * np.tril(rng.normal(size=[1, size, size])) + np.eye(size))

    def structured() -> Sequence[tf.Tensor]:
        model = gpflow.models.SVGP(
            kernel, gpflow.likelihoods.Gaussian(), inducing_variable, q_mu=q_mu, q_sqrt=q_sqrt
        )
        mean, variance = model.predict_f(X)
        return mean, variance, model.prior_kl()

    def by_gpflow() -> Sequence[tf.Tensor]:
        Kmm = Kuu_operator(inducing_variable, kernel, jitter=jitter).to_dense()
        Kmn, Knn = Kuf(inducing_variable, kernel, X), kernel(X, full_cov=False)
        mean, variance = base_conditional(Kmn, Kmm, Knn, q_mu, q_sqrt=q_sqrt, white=True)
        return mean, variance, gpflow.kullback_leiblers.gauss_kl(q_mu, q_sqrt)

    with gpflow.config.as_context(gpflow.config.Config(jitter=jitter)):
        actual = _with_gradients(structured, variables)
        expected = _with_gradients(by_gpflow, variables)
    for name, one, other in zip(("mean", "variance", "KL"), actual[0], expected[0], strict=True):
        close(f"the {name} of an SVGP", one, other, 1e-6)
    for variable, one, other in zip(variables, actual[1], expected[1], strict=True):
        close(f"the gradient of an SVGP to {variable.name}", one, other, 1e-6)


def _with_gradients(
    function: Callable[[], Sequence[tf.Tensor]], variables: Sequence[tf.Variable]
) -> tuple[Sequence[tf.Tensor], Sequence[tf.Tensor]]:
    with tf.GradientTape() as tape:
        values = function()
        total = tf.add_n([tf.reduce_sum(tf.sin(value)) for value in values])
    return values, tape.gradient(total, variables, unconnected_gradients="zero")


def _close(
    rtol: float,
    what: str,
    actual: Any,
    expected: Any,
    least_rtol: float = 0.0,
    least_scale: float = float(np.finfo(np.float64).tiny),
) -> None:
    """Check that no difference exceeds the tolerance, relative to the largest number."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    _equal(f"the shape of {what}", actual.shape, expected.shape)
    scale = float(np.max(np.abs(expected), initial=0.0))
    error = float(np.max(np.abs(actual - expected), initial=0.0))
    limit = max(rtol, least_rtol) * max(scale, least_scale)
    assert error <= limit, (
        f"{what} is off by {error:.3g}, relative to the largest number {scale:.3g}; it must equal "
        "the result of dense linear algebra"
    )


def _equal(what: str, actual: Any, expected: Any) -> None:
    assert tuple(actual) == tuple(expected), f"{what} must be {expected}, found {actual}"

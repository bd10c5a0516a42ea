"""The bound of SVGP and OrthogonalSVGP with the q that is optimal for a Gaussian likelihood.

With ``f = C^T w`` plus what the inducing variables leave, w being the whitened variables and C the
rows ``A = L_u^{-1} Kuf`` and, for orthogonal variables, ``D = L_v^{-1} (Kvf - Kvu Kuu^{-1} Kuf)``,
and the noise variance s, the optimum is

    mean (s I + C C^T)^{-1} C y,   covariances s (s I + A A^T)^{-1} and s (s I + D D^T)^{-1}.

Both means are found together; the covariances are those of q(u) and q(v') one by one, because
q(u, v') = q(u) q(v').
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu

from benchmarks.data import Array
from interdomain.models import OrthogonalSVGP
from interdomain.posteriors.orthogonal_terms import OrthogonalPair, factorise, whitened_residuals


class _Terms(NamedTuple):
    """The roots of ``I + A A^T / s`` and ``I + D D^T / s``, the optimal means, and the bound."""

    roots: list[tf.Tensor]
    means: list[tf.Tensor]
    bound: tf.Tensor


class OptimalQ(gpflow.models.BayesianModel, gpflow.models.InternalDataTrainingLossMixin):
    """What ``model.elbo(data)`` is once q is optimal, as a function of everything but q.

    Maximising it leads to the same places as maximising ``elbo`` over q too, without a gradient
    step ever being spent on q.

    :param model: SVGP or OrthogonalSVGP, whitened, with one output, a Gaussian likelihood, no mean
        function and one latent GP. Its q is marked as not trainable.
    :param data: All of the data.
    """

    def __init__(self, model: gpflow.models.SVGP, data: tuple[Array, Array]) -> None:
        super().__init__()
        if not model.whiten or not isinstance(model.likelihood, gpflow.likelihoods.Gaussian):
            raise ValueError("model must be whitened and have a Gaussian likelihood.")
        self.model = model
        self.data = tuple(tf.convert_to_tensor(part, gpflow.default_float()) for part in data)
        for parameter in self._q():
            gpflow.set_trainable(parameter, False)

    def maximum_log_likelihood_objective(self) -> tf.Tensor:
        return self._terms().bound

    def assign_q(self) -> None:
        """Give the model its optimal q."""
        terms = self._terms()
        for i, (root, mean) in enumerate(zip(terms.roots, terms.means, strict=True)):
            covariance = tf.linalg.cholesky_solve(root, tf.eye(len(root), dtype=root.dtype))
            self._q()[2 * i].assign(mean)
            self._q()[2 * i + 1].assign(tf.linalg.cholesky(covariance)[None])

    def _q(self) -> list[gpflow.Parameter]:
        model = self.model
        q = [model.q_mu, model.q_sqrt]
        if isinstance(model, OrthogonalSVGP):
            if model.q_sqrt_orthogonal is None:
                raise ValueError("model must be of the variant 'solve': q(v') needs a covariance.")
            q += [model.q_mu_orthogonal, model.q_sqrt_orthogonal]
        return q

    def _terms(self) -> _Terms:
        X, Y = self.data
        noise = self.model.likelihood.variance
        rows = _projections(self.model, X)
        features = tf.concat(rows, axis=0)
        gram = tf.matmul(features, features, transpose_b=True) / noise
        identity = tf.eye(tf.shape(gram)[0], dtype=gram.dtype)
        joint = tf.linalg.cholesky(identity + gram)
        target = tf.matmul(features, Y) / noise
        mean = tf.linalg.cholesky_solve(joint, target)
        if len(rows) == 1:
            roots, means = [joint], [mean]
        else:
            sizes = [tf.shape(part)[0] for part in rows]
            blocks = [gram[: sizes[0], : sizes[0]], gram[sizes[0] :, sizes[0] :]]
            roots = [
                tf.linalg.cholesky(tf.eye(size, dtype=gram.dtype) + block)
                for size, block in zip(sizes, blocks, strict=True)
            ]
            means = tf.split(mean, sizes)
        num_rows = tf.cast(tf.shape(X)[0], gram.dtype)
        prior = tf.reduce_sum(self.model.kernel(X, full_cov=False))
        bound = -0.5 * (
            num_rows * tf.math.log(2 * np.pi * noise)
            + tf.reduce_sum(tf.square(Y)) / noise
            - tf.reduce_sum(mean * target)
            + prior / noise
            - tf.linalg.trace(gram)
        )
        for root in roots:
            bound -= tf.reduce_sum(tf.math.log(tf.linalg.diag_part(root)))
        return _Terms(roots, means, bound)


def _projections(model: Any, X: tf.Tensor) -> list[tf.Tensor]:
    """A, and D where the model has orthogonal variables."""
    base, kernel = model.inducing_variable, model.kernel
    if not isinstance(model, OrthogonalSVGP):
        root = tf.linalg.cholesky(Kuu(base, kernel, jitter=gpflow.default_jitter()))
        return [tf.linalg.triangular_solve(root, Kuf(base, kernel, X))]
    pair = OrthogonalPair(base, model.orthogonal_inducing_variable)
    roots = factorise(pair, kernel)
    A = roots.base.solve(Kuf(base, kernel, X))
    return [A, whitened_residuals(roots, A, Kuf(pair.orthogonal, kernel, X))]

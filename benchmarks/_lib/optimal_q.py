"""The bound of a sparse variational GP with the q that is optimal for a Gaussian likelihood.

The model is SVGP, OrthogonalSVGP or AdditiveSVGP. With ``f = C^T w`` plus what the inducing
variables leave, w being the whitened variables, C the rows ``A_1, A_2, ...`` that belong to its
independent q's, and the noise variance s, the optimum is

    mean (s I + C C^T)^{-1} C y,   covariances s (s I + A_i A_i^T)^{-1}.

All means are found together; the covariances one by one, because q is a product. SVGP has one q,
with ``A = L_u^{-1} Kuf``; OrthogonalSVGP another one with ``L_v^{-1} (Kvf - Kvu Kuu^{-1} Kuf)``;
AdditiveSVGP one for each block, with ``L_i^{-1} Kuf_i``.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu

from benchmarks._lib.data import Array
from interdomain.core.pairs import block_batches
from interdomain.models import AdditiveSVGP, OrthogonalSVGP
from interdomain.posteriors.orthogonal_terms import OrthogonalPair, factorise, orthogonal_features
from interdomain.posteriors.parts import batch_root


class _Terms(NamedTuple):
    """The roots of ``I + A_i A_i^T / s``, the optimal means, and the bound."""

    roots: list[tf.Tensor]
    means: list[tf.Tensor]
    bound: tf.Tensor


class OptimalQ(gpflow.models.BayesianModel, gpflow.models.InternalDataTrainingLossMixin):
    """``model.elbo(data)`` with the optimal q, as a function of all parameters but q.

    Its maxima are those of ``elbo`` over all parameters and q, and no gradient step is spent on q.

    :param model: SVGP, OrthogonalSVGP or AdditiveSVGP, whitened, with a Gaussian
        likelihood, no mean function, and a latent GP with the same prior for each column of Y. Its
        q is marked as not trainable.
    :param data: All of the data.
    """

    def __init__(self, model: gpflow.models.SVGP, data: tuple[Array, Array]) -> None:
        super().__init__()
        if not model.whiten or not isinstance(model.likelihood, gpflow.likelihoods.Gaussian):
            raise ValueError("model must be whitened and have a Gaussian likelihood.")
        self.model = model
        self.data = tuple(tf.convert_to_tensor(part, gpflow.default_float()) for part in data)
        for pair in self._q():
            gpflow.set_trainable(pair, False)

    def maximum_log_likelihood_objective(self) -> tf.Tensor:
        return self._terms().bound

    def assign_q(self) -> None:
        """Give the model its optimal q."""
        terms = self._terms()
        for (q_mu, q_sqrt), root, mean in zip(self._q(), terms.roots, terms.means, strict=True):
            covariance = tf.linalg.cholesky_solve(root, tf.eye(len(root), dtype=root.dtype))
            q_mu.assign(mean)
            copies = [int(q_sqrt.shape[0]), 1, 1]
            q_sqrt.assign(tf.tile(tf.linalg.cholesky(covariance)[None], copies))

    def _q(self) -> list[tuple[gpflow.Parameter, gpflow.Parameter]]:
        model = self.model
        if isinstance(model, OrthogonalSVGP):
            if model.q_sqrt_orthogonal is None:
                raise ValueError("model must be of the variant 'solve': q(v') needs a covariance.")
            orthogonal = (model.q_mu_orthogonal, model.q_sqrt_orthogonal)
            return [(model.q_mu, model.q_sqrt), orthogonal]
        if isinstance(model, AdditiveSVGP):
            return model.variational_parameters
        return [(model.q_mu, model.q_sqrt)]

    def _terms(self) -> _Terms:
        X, Y = self.data
        noise = self.model.likelihood.variance
        rows = _projections(self.model, X)
        features = tf.concat(rows, axis=0)
        gram = tf.matmul(features, features, transpose_b=True) / noise
        joint = _unit_root(gram)
        target = tf.matmul(features, Y) / noise
        mean = tf.linalg.cholesky_solve(joint, target)
        sizes = [part.shape[0] for part in rows]
        starts = np.cumsum([0, *sizes])
        within = [slice(*ends) for ends in itertools.pairwise(starts)]
        roots = [joint] if len(rows) == 1 else [_unit_root(gram[own, own]) for own in within]
        means = tf.split(mean, sizes)
        num_rows = tf.cast(tf.shape(X)[0], gram.dtype)
        prior = tf.reduce_sum(self.model.kernel(X, full_cov=False))
        terms = num_rows * tf.math.log(2 * np.pi * noise) + prior / noise - tf.linalg.trace(gram)
        for root in roots:
            terms += 2 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(root)))
        num_columns = tf.cast(tf.shape(Y)[1], gram.dtype)
        fit = tf.reduce_sum(tf.square(Y)) / noise - tf.reduce_sum(mean * target)
        bound = -0.5 * (num_columns * terms + fit)
        return _Terms(roots, means, bound)


def _unit_root(gram: tf.Tensor) -> tf.Tensor:
    """The Cholesky factor of ``I + gram``."""
    return tf.linalg.cholesky(gram + tf.eye(tf.shape(gram)[0], dtype=gram.dtype))


def _projections(model: Any, X: tf.Tensor) -> list[tf.Tensor]:
    """The whitened features of each q, ``[M_i, N]``."""
    base, kernel = model.inducing_variable, model.kernel
    if isinstance(model, AdditiveSVGP):
        rows = {}
        for batch in block_batches(base, kernel):
            A = batch_root(batch).solve(batch.features(X))
            rows.update({position: A[i] for i, position in enumerate(batch.positions)})
        return [rows[position] for position in sorted(rows)]
    if not isinstance(model, OrthogonalSVGP):
        root = tf.linalg.cholesky(Kuu(base, kernel, jitter=gpflow.default_jitter()))
        return [tf.linalg.triangular_solve(root, Kuf(base, kernel, X))]
    pair = OrthogonalPair(base, model.orthogonal_inducing_variable)
    return [
        features[0] for features in orthogonal_features(factorise(pair, kernel), pair, kernel, X)
    ]

"""Log normalisers of sites to train parameters on: features included, and tilted ones."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.models.training_mixins import InternalDataTrainingLossMixin

from .._tracing import calls_user_code
from ..covariances import Kuu_operator
from ..sphere._typing import Array
from ..streaming.contributions import Contributions
from .collapsed import root_of
from .residuals import OfBatch, Residuals
from .sites import Prior, Sites, log_normaliser, whitened_q


def prior_of(features: Contributions) -> Prior:
    """What of the prior sums over sites are compared with, in float64."""
    kuu = Kuu_operator(
        features.inducing_variable, features.kernel, jitter=gpflow.config.default_jitter()
    )
    return Prior(
        root_of(kuu),
        tf.cast(features.mean.weights(), tf.float64),
        tf.cast(features.diagonal_factors(), tf.float64),
        features.charged,
    )


class SiteEvidence(gpflow.models.BayesianModel, InternalDataTrainingLossMixin):
    """Sites of some rows, which stay as they are while the kernel and the features are trained.

    :param X: ``[n, D]``.
    """

    def __init__(self, features: Contributions, X: Array) -> None:
        super().__init__()
        self.kernel = features.kernel
        self.inducing_variable = features.inducing_variable
        self.mean_function = features.mean_function
        self._features = features
        self._X = tf.constant(X, gpflow.default_float())
        zeros = tf.zeros([features.num_outputs, len(X)], tf.float64)
        self._precisions = tf.Variable(zeros, trainable=False)
        self._shifts = tf.Variable(zeros, trainable=False)

    def take(self, precisions: Array, shifts: Array) -> None:
        """Other sites of the same rows.

        :param precisions: beta, ``[L, n]``.
        :param shifts: lambda, ``[L, n]``.
        """
        self._precisions.assign(tf.cast(precisions, tf.float64))
        self._shifts.assign(tf.cast(shifts, tf.float64))

    def maximum_log_likelihood_objective(self) -> tf.Tensor:
        """log Z, up to a constant."""
        value = log_normaliser(prior_of(self._features), self.sites(), gram_gradient=True)
        return tf.cast(value, gpflow.default_float())

    @calls_user_code
    def sites(self) -> Sites:
        """The sums over the sites for the present features."""
        features = self._features
        size, outputs = features.num_inducing, features.num_outputs
        zeros = tf.zeros([len(self._X), outputs], self._X.dtype)
        stacked, terms = features.stack(self._X, zeros)
        stacked = tf.cast(tf.concat([stacked[:size], stacked[size + outputs :]], 0), tf.float64)
        precisions = tf.convert_to_tensor(self._precisions)
        return Sites(
            tf.matmul(stacked * precisions[:, None], stacked, transpose_b=True),
            tf.matmul(stacked, tf.convert_to_tensor(self._shifts), transpose_b=True),
            tf.matmul(tf.cast(terms, tf.float64), precisions, transpose_b=True),
        )

    def residuals(self) -> Residuals:
        """What q of the sites leaves of them, to compare features with that are not in it."""
        features, dtype = self._features, gpflow.default_float()
        prior = prior_of(features)
        mean, root = whitened_q(prior, self.sites())
        precisions, shifts = np.asarray(self._precisions).T, np.asarray(self._shifts).T
        if features.mean.residual:  # the sites are those of what the mean function leaves
            shifts = shifts + precisions * np.asarray(features.mean_function(self._X))
        X, Y = np.asarray(self._X), np.concatenate([shifts, precisions], axis=1)

        def sums_of(of_batch: OfBatch) -> dict[str, Array]:
            return dict(of_batch(X, Y))

        def slopes_of(mean: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            shifts, precisions = tf.split(Y, 2, axis=1)
            return shifts - precisions * mean, precisions

        return Residuals(
            sums_of,
            slopes_of,
            features,
            tf.cast(prior.root.solve(mean, adjoint=True), dtype),
            np.asarray(prior.root.solve(root, adjoint=True)),
        )


class TiltedEvidence(gpflow.models.BayesianModel, InternalDataTrainingLossMixin):
    """The log normaliser of a model's sites, tilted to have the slope of that of other sites.

    Sites of negative precision make a log normaliser that grows without end with the prior
    variance. Without these, and tilted, it has the same slope where it is now, and an end.

    :param model: A :class:`interdomain.models.CollapsedSVGP`.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self._variables = tuple(model.trainable_variables)
        self._tilts = tuple(tf.Variable(tf.zeros_like(v), trainable=False) for v in self._variables)

    def tilt(self, sites: Sites, others: Sites) -> None:
        """Leave the model with ``sites``, and tilt towards the slope that ``others`` have."""
        slopes = []
        for given in (others, sites):
            self.model.assign_sites(given)
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(self._variables)
                value = self.model.log_normaliser()
            slopes.append([tf.convert_to_tensor(g) for g in tape.gradient(value, self._variables)])
        for tilt, wanted, present in zip(self._tilts, *slopes, strict=True):
            tilt.assign(wanted - present)

    def maximum_log_likelihood_objective(self) -> tf.Tensor:
        """log Z and the tilt, up to a constant."""
        tilts = [
            tf.reduce_sum(tilt * variable)
            for tilt, variable in zip(self._tilts, self._variables, strict=True)
        ]
        return tf.add_n([self.model.log_normaliser(), *tilts])

"""A model of few rows with any likelihood, for the start of training and the choice of features."""

from __future__ import annotations

import sys
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from ..._arguments import Array
from ...core.parameters import frozen
from ...sums.residuals import Residuals
from ...training import run
from .model import DualSVGP
from .parameters import train_parameters
from .passes import Passes
from .sites import Prior, Sites

_TURNS = 3
_PASSES = 6  # before and after features are trained
_PASSES_OF_Q = 2  # for the sites of new features, before these are trained again
_TOLERANCE = 0.05  # nats of the bound of the rows


class RowsWithSites(DualSVGP):
    """A model of few rows that stores the site of each row, for any features.

    The sums over sites depend on the features, and the sites of rows do not. So the features can
    be trained or replaced without training q from scratch.

    :ivar tolerance: The tolerance of the passes, in nats; used if it exceeds 0.05.
    """

    tolerance: float | None = None

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._rows: tuple[Array, ...] = self.draw(sys.maxsize)  # all rows, in their order
        zeros = np.zeros([self.num_latent_gps, len(self._rows[0])])
        self._row_sites = tuple(tf.Variable(zeros, trainable=False) for _ in range(2))
        self._has_sites = False

    def take(self, precisions: Array, shifts: Array) -> None:
        """Replace the sites of the rows by sites that were computed with the present features.

        :param precisions: beta, ``[L, n]``.
        :param shifts: lambda, ``[L, n]``.
        """
        for variable, value in zip(self._row_sites, (precisions, shifts), strict=True):
            variable.assign(tf.cast(value, tf.float64))
        self._has_sites = True

    def train(self, steps: int) -> None:
        """Train all parameters in turns: passes, and steps of L-BFGS for the kernel and the
        features, with the sites of the rows."""
        self._passes()
        if self._features.trainable():
            for _ in range(_TURNS):
                train_parameters(self, -(-steps // _TURNS))
                self._passes(_PASSES_OF_Q)
            self._passes()

    def _passes(self, number: int | None = None) -> None:
        """Make passes that start from the stored sites, and store the sites at the new q. The
        features' parameters are fixed; if a number of passes is given, all parameters are fixed."""
        with frozen(self.feature_parameters.values()):
            enough = max(_TOLERANCE, self.tolerance or 0.0)
            passes = Passes(self, enough, trains=number is None)
            run.train(self, passes, run.Plan(0.0, number or _PASSES))
        self.take(*self.sites_of(*self._rows))

    def replace_features(self, inducing_variable: InducingVariables, kernel: Kernel) -> None:
        """Replace the features, and train q with the new ones from the stored sites of the rows."""
        super().replace_features(inducing_variable, kernel)
        if self._has_sites:
            self.assign_sites(self._first_sites())  # equal sizes would not reset the sites
        self._passes(_PASSES_OF_Q if self._has_sites else None)

    def _traced_state(self) -> Any:
        return super()._traced_state(), tuple(self._features.trainable())

    def maximum_log_likelihood_objective(self) -> tf.Tensor:
        """The objective of the base class, in which features may depend on trainable parameters."""
        if not self._features.trainable():
            return super().maximum_log_likelihood_objective()
        value = Prior(self._features).log_normaliser(self._first_sites(), gram_gradient=True)
        return tf.cast(value, gpflow.default_float())

    def _first_sites(self) -> Sites:
        """The sums over the sites of the rows for the present features."""
        features, X = self._features, tf.constant(self._rows[0], gpflow.default_float())
        precisions, shifts = (tf.convert_to_tensor(part) for part in self._row_sites)
        terms = tf.cast(features.terms_of(X), tf.float64)
        variances = tf.matmul(terms, precisions, transpose_b=True)
        return Sites(*features.sums.site_sums(X, precisions, shifts), variances)

    def residuals(self) -> Residuals:
        """The residuals of the sites under q, to compare features that q does not have."""
        features, dtype, one = self._features, gpflow.default_float(), tf.ones([], tf.float64)
        latents = Prior(features).latents(self._first_sites())
        means, roots = zip(*(latent.weights(one) for latent in latents), strict=True)
        precisions, shifts = (np.asarray(part).T for part in self._row_sites)
        X: Array = np.asarray(self._rows[0], dtype)
        # The sites are for f minus a mean function that is neither constant nor linear.
        shifts = shifts + precisions * np.asarray(features.mean.rest(X))
        sites = np.concatenate([shifts, precisions], axis=1)

        def slopes_of(mean: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            shifts, precisions = tf.split(Y, 2, axis=1)
            return shifts - precisions * mean, precisions

        return Residuals(
            lambda: [(X, sites)],
            slopes_of,
            features,
            tf.cast(tf.concat(means, axis=1), dtype),
            np.stack(roots),
        )

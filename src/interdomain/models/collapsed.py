"""Regression whose optimal q has a closed form, computed from sums over the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.kernels import Kernel
from gpflow.likelihoods import Gaussian
from gpflow.mean_functions import MeanFunction
from gpflow.models.util import InducingPointsLike

from .._arguments import Array
from .._tracing import unconverted
from ..core.descriptions import checksum_of_rows
from ..sums.bound import bound, from_reference, residual_of
from ..sums.current import CurrentSums
from ..sums.features import Features
from ..sums.kinds import combined
from ..sums.protocol import Collapsed, Latents
from ..sums.row_batches import Rows
from ..sums.row_weights import with_weights
from ..sums.statistics import SufficientStatistics
from .noise import noise_by_functional, noise_variance_of
from .rows_model import RowsModel

_ROWS_AT_A_TIME = 8_192


class CollapsedModel(RowsModel):
    """A regression model whose bound and optimal q follow from sums over its rows.

    :ivar charge: The charge of the bound for prior variance that the features do not explain:
        "trace" or "log"; see :class:`interdomain.models.StructuredSGPR`.
    """

    charge = "log"

    def __init__(
        self,
        data: Any,
        kernel: Kernel,
        likelihood: Gaussian,
        inducing_variable: InducingPointsLike,
        mean_function: MeanFunction | None,
        *,
        batch_size: int | None,
        progress: bool,
    ) -> None:
        super().__init__(
            data,
            kernel,
            likelihood,
            inducing_variable,
            mean_function,
            num_latents=int,
            batch_size=batch_size,
            progress=progress,
        )
        statistics = data if isinstance(data, SufficientStatistics) else None
        self._sums = CurrentSums(self._source, statistics)

    @property
    def statistics(self) -> SufficientStatistics:
        """The statistics of all rows, for the present values of :attr:`feature_parameters`.

        If these parameters have changed, reading the property takes a pass over the data.
        """
        return self._sums.statistics(self._features)

    def _rows_checksum(self) -> int:
        """The checksum of the rows, or of rounded sums if the model has only statistics."""
        if self._source is not None:
            return super()._rows_checksum()
        return checksum_of_rows([np.float32(self.statistics.sums["targets"])])

    @property
    def num_data(self) -> int:
        """The number N of rows."""
        return self.statistics.num_rows

    def _further_rows(self, data: Any, noise_weights: Any) -> Rows:
        """:raises ValueError: For rows with other numbers of columns than the model's rows."""
        rows: Rows = self._rows_of(with_weights(data, noise_weights))
        if rows.columns != self._columns:
            raise ValueError(
                f"data: X and Y have {rows.columns} columns, the model's have {self._columns}; "
                "pass rows of the same kind."
            )
        return rows

    def _traced_state(self) -> Any:
        """The features, which a compiled bound contains. This call also computes the sums again if
        necessary, before a compiled step reads them."""
        if not self._features.trainable():
            _ = self.statistics
        return self._features

    def weights(self) -> tuple[tf.Tensor, tf.Tensor]:
        """The posterior of the weights of the features Kuf, in float64: the mean ``[M, P]``, and a
        root ``[M, M]`` of the covariance, which all outputs share. There are no gradients with
        respect to :attr:`feature_parameters`."""
        collapsed, *_ = self._collapsed(known=True)
        return collapsed.weights(self._noise_variance())

    def _mean_of_weights(self) -> Array:
        """The mean of :meth:`weights`, computed without the covariance."""
        collapsed, *_ = self._collapsed(known=True)
        return collapsed.mean_of_weights(self._noise_variance())

    def explained(self, X: Array) -> Array:
        """The mean function plus the features' part of the posterior mean of f, at rows ``[N, D]``:
        ``[N, P]``, computed in batches."""
        mean, parts = tf.cast(self._mean_of_weights(), gpflow.default_float()), []
        for start in range(0, len(X), _ROWS_AT_A_TIME):
            some = tf.constant(X[start : start + _ROWS_AT_A_TIME], mean.dtype)
            feature_mean = tf.cast(self._features.sums.weighted(some, mean), mean.dtype)
            parts.append((self.mean_function(some) + feature_mean).numpy())
        return np.concatenate(parts)

    def residual_sums(self) -> tuple[Array, Array]:
        """The products of targets ``t = (y - r, h)`` that remain after regression on the features,
        ``sum t t^T - C^T (s Kuu + G)^{-1} C``, ``[P + H, P + H]``, with ``C = sum phi t^T``; and
        the reference r, ``[P]``. The columns of the mean function are h."""
        features, sums = self._features, dict(self.statistics.sums)
        targets, products = np.asarray(sums["targets"]), np.asarray(sums["products"])
        if features.kinds is not None:
            known = {name: tf.constant(array) for name, array in sums.items()}
            sums = {name: part.numpy() for name, part in self._of_all_kinds(known).items()}
            targets, products = sums["targets"], sums["products"]
        if len(products):
            gram = tf.constant(sums["gram"])
            collapsed = features.sums.finish(features.sums.prior(), gram, tf.constant(products))
            targets = targets - products.T @ collapsed.mean_of_weights(self._noise_variance())
        reference = np.broadcast_to(self.statistics.reference, [features.num_outputs])
        return targets, reference

    @inherit_check_shapes
    @unconverted
    def maximum_log_likelihood_objective(self) -> tf.Tensor:
        return self.elbo()

    @check_shapes(
        "return: []",
    )
    @unconverted
    def elbo(self) -> tf.Tensor:
        """The collapsed lower bound on the log marginal likelihood (Titsias 2009, eq. 9), with the
        :attr:`charge` for variance that the features do not explain.

        :raises tf.errors.InvalidArgumentError: If a matrix cannot be factorised, or if Y is so far
            from the mean function that the bound is lost to rounding.
        """
        return self._elbo()

    @inherit_check_shapes
    @unconverted
    def log_posterior_density(self, *args: Any, **kwargs: Any) -> tf.Tensor:
        """The bound plus the log prior density of the parameters. If the bound cannot be computed,
        it is minus infinity with zero gradients, so that samplers reject the point."""
        variables = self.trainable_variables

        @tf.custom_gradient
        def density() -> Any:
            with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
                tape.watch(variables)
                try:
                    value = self._elbo(refuse=False) + self.log_prior_density()
                except tf.errors.InvalidArgumentError:  # of TensorFlow before version 2.21
                    value = tf.constant(np.nan, gpflow.default_float())
            is_known = tf.math.is_finite(value)

            def gradient(upstream: tf.Tensor, variables: Any = ()) -> Any:
                zero = tf.UnconnectedGradients.ZERO
                found = tape.gradient(value, variables, unconnected_gradients=zero)
                found = [upstream * tf.convert_to_tensor(part) for part in found]
                return (), [tf.where(is_known, part, tf.zeros_like(part)) for part in found]

            return tf.where(is_known, value, tf.constant(-np.inf, value.dtype)), gradient

        return density()

    def _elbo(self, *, refuse: bool = True) -> tf.Tensor:
        """The bound.

        :param refuse: Whether a bound that cannot be computed is an error; it is NaN otherwise.
        """
        features, (collapsed, sums, weights) = self._features, self._collapsed()
        value = bound(
            collapsed,
            sums["targets"],
            weights,
            self._prior_variance(sums),
            features.charged,
            self._noise_variance(),
            sums["num_rows"],
            log_weights=sums.get("log_weights", 0.0),
            log_variances=sums.get("log_variances"),
            charge=self.charge,
            refuse=refuse,
        )
        return tf.cast(value, gpflow.default_float())

    def _collapsed(
        self, *, known: bool = False
    ) -> tuple[Collapsed, Mapping[str, tf.Tensor], tf.Tensor]:
        """The collapsed posterior, the sums over rows, and the weights of the mean function's
        columns minus the reference of the sums.

        :param known: See :meth:`.CurrentSums.tensors`.
        """
        features, trainable = self._features, self._features.trainable()
        features.sums.require_fixed(trainable)
        sums = self._of_all_kinds(self._sums.tensors(features, known=known))
        weights = features.mean.weights()
        weights = from_reference(tf.cast(weights, tf.float64), sums["reference"])
        parts = sums["gram"], tf.matmul(sums["products"], residual_of(weights))
        prior = features.sums.prior()
        gradient = bool(trainable) or (features.kinds is not None and not known)
        return features.sums.finish(prior, *parts, gram_gradient=gradient), sums, weights

    def _of_all_kinds(self, sums: Mapping[str, tf.Tensor]) -> Mapping[str, tf.Tensor]:
        """The sums over rows of all functionals, weighted by the inverse of their noise variances,
        if the rows of each functional have a noise variance of their own."""
        noise = noise_by_functional(self.likelihood)
        if noise is None:
            return sums
        return combined(sums, tf.cast(tf.convert_to_tensor(noise.variances), tf.float64))

    def _make_features(self) -> Features:
        noise = noise_by_functional(self.likelihood)
        kinds = None if noise is None else noise.rows
        parts = self.kernel, self.inducing_variable, self.mean_function
        return Features(*parts, self.num_columns, self.num_latent_gps, kinds)

    def _prior_variance(self, sums: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The sum of ``K(x_n, x_n)``, for blocks whose features leave out a part of the kernel."""
        factors = tf.cast(self._features.diagonal_factors(), tf.float64)
        return tf.reduce_sum(factors * sums["diagonal"])

    def _noise_variance(self) -> tf.Tensor:
        """The noise variance of rows of weight one. It is one if each functional has a noise
        variance, whose inverse is then a weight of its rows."""
        if noise_by_functional(self.likelihood) is not None:
            return tf.ones([], tf.float64)
        return noise_variance_of(self.likelihood)

    def latents(self) -> Latents:
        """The collapsed posterior of all outputs, with the noise variance."""
        return [(self._collapsed()[0], self._noise_variance())]

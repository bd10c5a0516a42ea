"""``StructuredSGPR``: sparse regression with the optimal q, which uses the structure of Kuu."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gpflow
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorData
from gpflow.kernels import Kernel
from gpflow.likelihoods import Gaussian
from gpflow.mean_functions import MeanFunction
from gpflow.models.util import InducingPointsLike

from ..._arguments import Array, choice
from ...core.pairs import Kuu_operator
from ...sums.passes import statistics_of
from ...sums.protocol import whitened_q
from ...sums.residuals import Residuals
from ...sums.row_weights import with_weights
from ...sums.statistics import SufficientStatistics
from ..collapsed import CollapsedModel
from ..convertible import ConvertibleModel
from ..noise import by_functional, gaussian, noise_by_functional


class StructuredSGPR(CollapsedModel, ConvertibleModel):
    """Sparse GP regression as in GPflow's ``SGPR``, from sums over the rows and structured Kuu.

    The optimal q has a closed form, so only the hyperparameters are trained. ``gpflow.models.SGPR``
    factorises a dense Kuu, and solves with the factor for every row at every step. In this model,
    Kuu of spherical harmonics needs no factorisation and no jitter. Sums of kernels need one
    factorisation for each block. Predictions equal those of ``SGPR`` (Titsias 2009). With
    ``charge="trace"``, the bound and its gradients also do.

    >>> import numpy as np, interdomain as idm
    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> Y = np.sin(5 * X)
    >>> kernel = idm.kernels.SphericalMatern52()
    >>> harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 1, max_degree=10)
    >>> prior = idm.kernels.FiniteRank(kernel, harmonics)
    >>> model = idm.models.StructuredSGPR((X, Y), prior, harmonics, noise_variance=0.1)
    >>> fitted = idm.fit(model, progress=False)
    >>> mean, variance = model.predict_f(np.array([[0.3]]))
    >>> print(f"prediction {mean[0, 0]:.1f}, truth {np.sin(1.5):.1f}")
    prediction 1.0, truth 1.0

    The data need not fit into memory. The sums over the rows,
    :class:`interdomain.regression.SufficientStatistics`, are computed a batch at a time. Memory is
    O(batch_size M + M^2) for any number of rows.

    **When the data are read.** The features Kuf depend on the parameters in
    :attr:`feature_parameters`. (The model finds these in the graph that computes Kuf.) A pass
    computes the sums again only if one of these parameters changes:

    * :class:`~interdomain.inducing_variables.SphericalHarmonics` depend on the kernel's
      ``weight_variances`` and ``bias_variance`` (Dutordoir et al. 2020, section 4.3). Freeze both,
      as :func:`interdomain.fit` does: after one pass, every step costs O(M^3).
    * :class:`~interdomain.inducing_variables.VariationalFourierFeatures`, also several of them in a
      sum, depend on no parameter: the data are read once, whatever is trained. This holds for rows
      inside the interval, so rows outside raise an error. (An SVGP accepts them, with a warning.)
    * If a feature parameter is trainable (points, activation features, patches; or weight
      variances), each evaluation computes the features again. Gradients need the features of all
      rows at once: arrays, with at most 2^27 numbers of features (1 GiB). For more rows, train such
      parameters on a subset, or in minibatches (``gpflow.models.SVGP``).

    **Several machines.** Each machine computes the statistics of a part of the rows.
    :meth:`interdomain.regression.SufficientStatistics.all_reduce` adds them, and the model is built
    from the sum.

    :param data: (X ``[N, D]``, Y ``[N, P]``) as arrays, memory-mapped arrays or other objects of
        this shape that can be sliced; a ``tf.data.Dataset`` of batches (X, Y) that ends; a function
        that returns a new iterator over such batches at every call; or
        :class:`~interdomain.regression.SufficientStatistics` without their rows. Batches may be
        (X, Y, w), where w are the ``noise_weights`` of the rows.
    :param kernel: A kernel of one output.
    :param inducing_variable: Any inducing variable that has covariances with the kernel, or points
        ``[M, D]``.
    :param mean_function: Zero by default. Parameters of a constant or linear mean need no pass.
    :param noise_variance: The initial noise variance, 1 by default. For an
        :class:`interdomain.kernels.Functional` kernel, also one number for each functional: each is
        trained, without another pass.
    :param noise_weights: A positive number w for each row, ``[N]`` or ``[N, 1]``: an array, or a
        memory-mapped array. The noise variance of the row is s / w, where s is the noise variance
        of the likelihood. A mean of n readings has the weight n. For known noise variances v, pass
        ``noise_weights=1 / v`` and ``noise_variance=1``, and fix the noise variance by
        ``gpflow.set_trainable(model.likelihood.variance, False)``. New rows have weights of one:
        ``predict_y`` adds s to the variance of f.
    :param likelihood: A Gaussian likelihood in place of ``noise_variance``, with one variance
        parameter. A subclass may not have densities of its own (a mask, robust terms), for which q
        has no closed form; :class:`DualSVGP` accepts them.
    :param charge: The term that is subtracted from the bound for prior variance that the features
        do not explain. For N rows with noise variance s this variance is ``t = tr(Kff - Qff) / s``,
        or ``tr W (Kff - Qff) / s`` with weights W. "log" subtracts ``N log(1 + t / N) / 2``
        (Titsias 2025; Bui, Ashman and Turner 2025), "trace" ``t / 2`` (Titsias 2009, eq. 9), as
        ``gpflow.models.SGPR``. The bound with "log" is at least as tight, with the same q and
        predictions. For priors of finite rank t is zero.
    :param batch_size: The number of rows in a batch; by default so many that products run at full
        speed (between 256 and 8,192). Datasets and generators are cut into such batches.
    :param progress: Whether passes that take more than a second show a progress bar.
    :warns UserWarning: If columns of X or Y are far from standardised in a sample of rows: see
        :func:`interdomain.fit`.
    :raises ValueError: For arguments that are wrong or do not fit together; in a pass, for rows
        that are fewer or more than in the first pass, not finite, or outside of the interval of
        Fourier features; for weights that are not positive and finite.
    """

    takes_weights = True

    def __init__(
        self,
        data: Any,
        kernel: Kernel,
        inducing_variable: InducingPointsLike,
        *,
        mean_function: MeanFunction | None = None,
        noise_variance: TensorData | None = None,
        noise_weights: Any = None,
        likelihood: Gaussian | None = None,
        charge: str = "log",
        batch_size: int | None = None,
        progress: bool = True,
    ) -> None:
        self.charge = choice("charge", charge, ("trace", "log"))
        if likelihood is None and (own := by_functional(noise_variance, kernel)) is not None:
            likelihood, noise_variance = own, None
        super().__init__(
            with_weights(data, noise_weights),
            kernel,
            gaussian(noise_variance, likelihood),
            inducing_variable,
            mean_function,
            batch_size=batch_size,
            progress=progress,
        )

    def model_of(self, rows: tuple[Array, ...], kind: Any = None, **changes: Any) -> Any:
        model = super().model_of(rows, kind, **changes)
        model.charge = self.charge
        return model

    @inherit_check_shapes
    def predict_log_density(
        self, data: Any, full_cov: bool = False, full_output_cov: bool = False
    ) -> tf.Tensor:
        """The log predictive density of (X, Y), or (X, Y, w) with weights ``[N]`` or ``[N, 1]``."""
        X, Y, *weights = data
        if not weights or full_cov or full_output_cov:
            return super().predict_log_density((X, Y), full_cov, full_output_cov)
        mean, variance = self.predict_f(X)
        noise = self.likelihood.variance_at(tf.cast(X, variance.dtype))
        variance += noise / tf.cast(tf.reshape(weights[0], [-1, 1]), variance.dtype)
        density = gpflow.logdensities.gaussian(tf.cast(Y, mean.dtype), mean, variance)
        return tf.reduce_sum(density, axis=-1)

    def accumulate(self, data: Any, *, noise_weights: Any = None) -> SufficientStatistics:
        """Compute the statistics of further rows for the features of the model, which stays as it
        is. Sums and differences of statistics give models of more or fewer rows.

        :param data: The further rows, in a form that the constructor accepts, with equal columns.
        :param noise_weights: The weights of the further rows, as for the constructor.
        """
        return statistics_of(self._further_rows(data, noise_weights), self._features)

    def residuals(self) -> Residuals:
        """The residuals of Y under the present model, which show what further features would gain.

        :raises ValueError: In a pass over the rows, if the model has only their statistics.
        """
        dtype, (mean, root) = gpflow.default_float(), self.weights()
        precision = tf.cast(1 / self._noise_variance(), dtype)

        def slopes_of(
            mean: tf.Tensor, Y: tf.Tensor, *weights: tf.Tensor
        ) -> tuple[tf.Tensor, tf.Tensor]:
            precisions = tf.fill([tf.shape(Y)[0], 1], precision)
            for part in weights:
                precisions *= part
            return precisions * (Y - mean), precisions

        return Residuals(
            self._weighted_batches,
            slopes_of,
            self._features,
            tf.cast(mean, dtype),
            root.numpy()[None],
            self._price(),
        )

    def _weighted_batches(self) -> Iterator[tuple[Array, ...]]:
        """The rows in batches, with weights that include the noise variances of functionals."""
        noise = noise_by_functional(self.likelihood)
        for X, Y, *weights in self._rows_at_hand.batches():
            if noise is not None:
                inverse = 1 / noise(tf.constant(X, gpflow.default_float())).numpy()
                weights = [inverse * weights[0] if weights else inverse]
            yield X, Y, *weights

    def _price(self) -> float:
        """The derivative of the charge with respect to ``t / 2`` (see ``charge`` of the model)."""
        features, (collapsed, sums, _) = self._features, self._collapsed(known=True)
        if self.charge == "trace":
            return 1.0
        left = self._prior_variance(sums) - collapsed.explained_variance(features.charged)
        ratio = float(left / self._noise_variance() / sums["num_rows"])
        return 1 / (1 + max(ratio, 0.0))

    @check_shapes(
        "return[0]: [M, P]",
        "return[1]: [M, M]",
    )
    def compute_qu(self) -> tuple[tf.Tensor, tf.Tensor]:
        """The mean and covariance of the optimal q(u). All outputs have the same covariance."""
        mean, roots = whitened_q(self.latents())
        features, jitter = self._features, gpflow.config.default_jitter()
        kuu = Kuu_operator(features.inducing_variable, features.kernel, jitter=jitter).to_dense()
        triangle = tf.linalg.cholesky(tf.cast(kuu, tf.float64))
        mean, root = tf.matmul(triangle, mean), tf.matmul(triangle, roots[0])
        dtype = gpflow.default_float()
        return tf.cast(mean, dtype), tf.cast(tf.matmul(root, root, transpose_b=True), dtype)
